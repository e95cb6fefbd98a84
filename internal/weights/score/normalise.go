package score

import (
	"errors"
	"fmt"
	"math"
)

// ErrNoValue says that there is no value to work on: none was given, or all are
// missing.
var ErrNoValue = errors.New("no value is a finite number")

// Direction says which end of a signal is the good one.
type Direction int

const (
	// HigherIsBetter is the direction of throughput or of free memory.
	HigherIsBetter Direction = iota
	// LowerIsBetter is the direction of errors, response times and load.
	LowerIsBetter
)

// Normalise brings the values of a window to 0 to 1, by the smallest and the largest
// seen in it, and not by what is possible in theory: 1 is the best of the window and
// 0 the worst.
//
// In a window of one value throughout, all are 1: what does not vary takes nothing
// off a score. Whether that value is good in itself is not seen here, and is for a
// limit to say. A missing value stays missing (NaN). It fails with ErrNoValue when
// all are, and on an unknown direction.
func Normalise(values []float64, d Direction) ([]float64, error) {
	if d != HigherIsBetter && d != LowerIsBetter {
		return nil, fmt.Errorf("direction %d is unknown; take HigherIsBetter or LowerIsBetter", d)
	}
	low, high, ok := limits(values)
	if !ok {
		return nil, fmt.Errorf("normalise %d values: %w", len(values), ErrNoValue)
	}
	normal := make([]float64, len(values))
	for i, v := range values {
		switch {
		case !finite(v):
			normal[i] = math.NaN()
		case low == high:
			normal[i] = 1
		case d == LowerIsBetter:
			normal[i] = position(v, high, low)
		default:
			normal[i] = position(v, low, high)
		}
	}
	return normal, nil
}

// limits returns the smallest and the largest finite value, and whether there is one.
func limits(values []float64) (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if finite(v) {
			low, high, ok = min(low, v), max(high, v), true
		}
	}
	return low, high, ok
}

// position returns where v is on the way from one end to the other, which differs:
// 0 at from, 1 at to. Where the way itself overflows, it is walked in quarters.
func position(v, from, to float64) float64 {
	if math.IsInf(to-from, 0) {
		v, from, to = v/4, from/4, to/4
	}
	return min(max((v-from)/(to-from), 0), 1)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
