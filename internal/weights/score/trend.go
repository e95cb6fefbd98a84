package score

import (
	"errors"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// minTrendPoints leaves one degree of freedom for the scatter about the line.
	minTrendPoints = 3
	// trendPrecision is the least scatter about a line, as a part of the largest
	// value. Less is rounding, and rounding must not make a level line rise.
	trendPrecision = 1e-12
)

// ErrNoTrend says that the points have no line: there are too few, or they are all
// of one time. It is no sign of calm.
var ErrNoTrend = errors.New("no trend")

// Point is one observation.
type Point struct {
	At    time.Time
	Value float64
}

// Line is a straight line through points, by least squares, with its scatter. The
// zero Line is not fitted: it is 0 everywhere and proves nothing.
type Line struct {
	origin           time.Time
	intercept, slope float64 // at origin; per second
	// scatter is the standard deviation of a value about the line.
	scatter float64
	// n points have a mean time of meanX seconds after origin and a sum of squared
	// distances from it of sumXX.
	n, meanX, sumXX float64
}

// Trend fits a line to the points, in any order. A point whose value is NaN or an
// infinity is left out, since it tells nothing. With fewer than 3 points left, or
// all of them of one time, it fails with ErrNoTrend. It also fails when the line is
// too steep for a float64.
func Trend(points []Point) (Line, error) {
	x, y := make([]float64, 0, len(points)), make([]float64, 0, len(points))
	var line Line
	var largest float64
	for _, p := range points {
		if !finite(p.Value) {
			continue
		}
		if len(x) == 0 {
			line.origin = p.At
		}
		x, y = append(x, p.At.Sub(line.origin).Seconds()), append(y, p.Value)
		largest = max(largest, math.Abs(p.Value))
	}
	if len(x) < minTrendPoints {
		return Line{}, fmt.Errorf("%w: %d of %d points have a finite value, at least %d are needed", ErrNoTrend, len(x), len(points), minTrendPoints)
	}
	line.n, line.meanX = float64(len(x)), stat.Mean(x, nil)
	for _, at := range x {
		line.sumXX += (at - line.meanX) * (at - line.meanX)
	}
	if line.sumXX == 0 {
		return Line{}, fmt.Errorf("%w: the %d points are all of one time, at least 2 times are needed", ErrNoTrend, len(x))
	}
	if largest > 0 {
		line.fit(x, y, largest)
	}
	if !finite(line.slope) || !finite(line.intercept) {
		return Line{}, fmt.Errorf("the line through values up to %v is too steep; take a larger unit", largest)
	}
	return line, nil
}

// fit sets the line and its scatter. The values are divided by the largest first,
// so that their squares do not overflow.
func (l *Line) fit(x, y []float64, largest float64) {
	for i := range y {
		y[i] /= largest
	}
	intercept, slope := stat.LinearRegression(x, y, nil, false)
	var squares float64
	for i := range y {
		residual := y[i] - (intercept + slope*x[i])
		squares += residual * residual
	}
	scatter := max(math.Sqrt(squares/(l.n-2)), trendPrecision)
	l.intercept, l.slope, l.scatter = intercept*largest, slope*largest, scatter*largest
}

// At returns the line's value at t.
func (l Line) At(t time.Time) float64 { return l.intercept + l.slope*l.seconds(t) }

// Slope returns how much the line rises in a second.
func (l Line) Slope() float64 { return l.slope }

// StandardError returns the standard deviation of the difference between At(t) and
// a value yet to be seen at t: the scatter of one value and the doubt about the
// line, which grows with the distance from the points.
func (l Line) StandardError(t time.Time) float64 {
	if l.n == 0 {
		return 0
	}
	away := l.seconds(t) - l.meanX
	return l.scatter * math.Sqrt(1+1/l.n+away*away/l.sumXX)
}

// Exceeds says whether the value at t will be above limit beyond doubt: whether the
// one-sided lower bound of the prediction, at this confidence, is above it. The
// bound is Student's, with 2 degrees of freedom fewer than there are points. Few or
// scattered points therefore prove little.
//
// It fails on a confidence that is not from 0.5 to below 1, on a limit of NaN, and
// on a line that was not fitted.
func (l Line) Exceeds(t time.Time, limit, confidence float64) (bool, error) {
	quantile, err := l.quantile(confidence)
	if err != nil {
		return false, err
	}
	if math.IsNaN(limit) {
		return false, errors.New("the limit is NaN; it must be a number")
	}
	return l.At(t)-quantile*l.StandardError(t) > limit, nil
}

// Rising says whether the values rise beyond doubt: whether the slope's one-sided
// lower bound, at this confidence, is above 0. It fails as Exceeds does.
func (l Line) Rising(confidence float64) (bool, error) {
	quantile, err := l.quantile(confidence)
	if err != nil {
		return false, err
	}
	return l.slope-quantile*l.scatter/math.Sqrt(l.sumXX) > 0, nil
}

// quantile returns Student's for a one-sided bound.
func (l Line) quantile(confidence float64) (float64, error) {
	if l.n < minTrendPoints {
		return 0, fmt.Errorf("%w: the line was not fitted; make it with Trend", ErrNoTrend)
	}
	if !(confidence >= 0.5 && confidence < 1) {
		return 0, fmt.Errorf("the confidence is %v; take one from 0.5 to below 1, such as 0.95", confidence)
	}
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: l.n - 2}.Quantile(confidence), nil
}

func (l Line) seconds(t time.Time) float64 { return t.Sub(l.origin).Seconds() }
