package score_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func second(s float64) time.Time { return noon.Add(time.Duration(s * float64(time.Second))) }

// every returns points that are a number of seconds apart.
func every(apart float64, values ...float64) []score.Point {
	points := make([]score.Point, len(values))
	for i, v := range values {
		points[i] = score.Point{At: second(apart * float64(i)), Value: v}
	}
	return points
}

func TestTrend(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		name   string
		points []score.Point
		at     float64
		// The prediction, the slope and the standard error of a new value.
		want [3]float64
	}{
		{"straight up", every(30, 100, 110, 120, 130), 120, [3]float64{140, 1.0 / 3, 0}},
		{"level", every(30, 0.1, 0.1, 0.1), 90, [3]float64{0.1, 0, 0}},
		{"all 0", every(30, 0, 0, 0), 90, [3]float64{0, 0, 0}},
		{"down", every(10, 5, 3, 1), 30, [3]float64{-1, -0.2, 0}},
		// By hand: mean x 2, mean y 4, Sxx 10, Sxy 6, so y = 2.8 + 0.6x. The residuals
		// are -0.8, 0.6, 1, -0.6, -0.2, their squares add up to 2.4, and the scatter is
		// sqrt(2.4/3). At 5 the error is sqrt(0.8) * sqrt(1 + 1/5 + 9/10).
		{"scattered", every(1, 2, 4, 5, 4, 5), 5, [3]float64{5.8, 0.6, math.Sqrt(0.8 * 2.1)}},
		{"NaN and infinities are left out", every(1, 2, 4, 5, 4, 5, nan, math.Inf(1)), 5, [3]float64{5.8, 0.6, math.Sqrt(0.8 * 2.1)}},
		{"NaN in the middle leaves a gap", every(1, 0, nan, 2, nan, 4), 5, [3]float64{5, 1, 0}},
		{"two of one time", []score.Point{{At: second(0), Value: 1}, {At: second(0), Value: 3}, {At: second(2), Value: 4}}, 2, [3]float64{4, 1, math.Sqrt(2 * (1 + 1.0/3 + (16.0/9)/(8.0/3)))}},
		{"huge", every(1, 1e300, 2e300, 3e300), 3, [3]float64{4e300, 1e300, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			line, err := score.Trend(tc.points)
			if err != nil {
				t.Fatal(err)
			}
			// Rounding is allowed for as the line does it: relative to the values.
			scale := max(1, math.Abs(tc.want[0]))
			got := [3]float64{line.At(second(tc.at)), line.Slope(), line.StandardError(second(tc.at))}
			for i := range got {
				if math.Abs(got[i]-tc.want[i]) > 1e-11*scale {
					t.Errorf("(-want +got):\n%s", cmp.Diff(tc.want, got))
					break
				}
			}
		})
	}
}

func TestTrendErrors(t *testing.T) {
	nan := math.NaN()
	one := score.Point{At: noon, Value: 1}
	for _, tc := range []struct {
		name   string
		points []score.Point
		none   bool
		want   string
	}{
		{"no points", nil, true, "0 of 0 points"},
		{"two points", every(1, 1, 2), true, "2 of 2 points"},
		{"two of them finite", every(1, 1, nan, 2, math.Inf(-1)), true, "2 of 4 points"},
		{"one time", []score.Point{one, one, one}, true, "all of one time"},
		{"too steep", every(1e-9, -math.MaxFloat64, 0, math.MaxFloat64), false, "too steep"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := score.Trend(tc.points)
			if err == nil || errors.Is(err, score.ErrNoTrend) != tc.none || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q, ErrNoTrend: %v", err, tc.want, tc.none)
			}
		})
	}
}

// The bounds of y = 2.8 + 0.6x (see TestTrend) with Student's table for 3 degrees of
// freedom: 2.353 at 95 %, 1.638 at 90 %. The bound at 5 is 5.8 - 2.353 * 1.296 =
// 2.750. The slope's error is sqrt(0.8/10) = 0.2828 and its ratio 2.121: it rises at
// 90 % and not at 95 %.
func TestTrendBeyondDoubt(t *testing.T) {
	scattered, err := score.Trend(every(1, 2, 4, 5, 4, 5))
	if err != nil {
		t.Fatal(err)
	}
	straight, err := score.Trend(every(30, 100, 110, 120, 130))
	if err != nil {
		t.Fatal(err)
	}
	level, err := score.Trend(every(7, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		line    score.Line
		at      float64
		limit   float64
		exceeds bool
	}{
		{"under the bound", scattered, 5, 2.74, true},
		{"over the bound, under the prediction", scattered, 5, 2.76, false},
		{"over the prediction", scattered, 5, 6, false},
		{"further off the doubt grows", scattered, 500, 2.76, false},
		{"no scatter: the prediction counts", straight, 120, 139.999, true},
		{"no scatter: and not more", straight, 120, 140.001, false},
		{"level is not above itself", level, 100, 0.3, false},
		{"an infinite limit is never exceeded", straight, 120, math.Inf(1), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.line.Exceeds(second(tc.at), tc.limit, 0.95)
			if err != nil || got != tc.exceeds {
				t.Errorf("got %v, %v, want %v", got, err, tc.exceeds)
			}
		})
	}
	for _, tc := range []struct {
		name       string
		line       score.Line
		confidence float64
		rising     bool
	}{
		{"scattered at 95 %", scattered, 0.95, false},
		{"scattered at 90 %", scattered, 0.90, true},
		{"straight", straight, 0.999, true},
		{"level", level, 0.5, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.line.Rising(tc.confidence)
			if err != nil || got != tc.rising {
				t.Errorf("got %v, %v, want %v", got, err, tc.rising)
			}
		})
	}
}

func TestTrendRefuses(t *testing.T) {
	line, err := score.Trend(every(1, 1, 2, 3))
	if err != nil {
		t.Fatal(err)
	}
	for _, confidence := range []float64{0, 0.49, 1, 95, -1, math.NaN(), math.Inf(1)} {
		if _, err := line.Rising(confidence); err == nil || !strings.Contains(err.Error(), "the confidence is") {
			t.Errorf("Rising at %v: %v", confidence, err)
		}
		if _, err := line.Exceeds(noon, 1, confidence); err == nil || !strings.Contains(err.Error(), "the confidence is") {
			t.Errorf("Exceeds at %v: %v", confidence, err)
		}
	}
	if _, err := line.Exceeds(noon, math.NaN(), 0.95); err == nil || !strings.Contains(err.Error(), "the limit is NaN") {
		t.Errorf("a limit of NaN: %v", err)
	}
	var unfitted score.Line
	if _, err := unfitted.Rising(0.95); !errors.Is(err, score.ErrNoTrend) {
		t.Errorf("Rising of the zero line: %v", err)
	}
	if _, err := unfitted.Exceeds(noon, 0, 0.95); !errors.Is(err, score.ErrNoTrend) {
		t.Errorf("Exceeds of the zero line: %v", err)
	}
	if at, wide := unfitted.At(noon), unfitted.StandardError(noon); at != 0 || wide != 0 {
		t.Errorf("the zero line is %v ± %v", at, wide)
	}
}

// At 95 % a level signal with noise is called rising, and its next value above its
// bound, in 5 % of the cases. 4,000 seeded cases have a standard deviation of 0.34 %;
// three of them are allowed.
func TestTrendKeepsItsConfidence(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const cases = 4000
	var rising, below int
	for range cases {
		values := make([]float64, 6)
		for i := range values {
			values[i] = 100 + 10*random.NormFloat64()
		}
		line, err := score.Trend(every(30, values...))
		if err != nil {
			t.Fatal(err)
		}
		up, err := line.Rising(0.95)
		if err != nil {
			t.Fatal(err)
		}
		// The limit is what is then seen: to exceed it is to have promised too much.
		over, err := line.Exceeds(second(180), 100+10*random.NormFloat64(), 0.95)
		if err != nil {
			t.Fatal(err)
		}
		if up {
			rising++
		}
		if over {
			below++
		}
	}
	for name, count := range map[string]int{"rising": rising, "the next value under its bound": below} {
		if part := float64(count) / cases; part < 0.04 || part > 0.06 {
			t.Errorf("%s: %.4f of the cases, want 0.05", name, part)
		}
	}
}

// A level signal does not rise and does not exceed itself, not even when rounding makes
// the later half of it a last digit larger.
func TestLevelIsNotATrend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.Float64Range(0.001, 1000).Draw(t, "level")
		points := make([]score.Point, rapid.IntRange(3, 12).Draw(t, "n"))
		for i := range points {
			points[i] = score.Point{At: second(float64(i) + rapid.Float64Range(0, 0.5).Draw(t, "late")), Value: level}
			if i >= len(points)/2 {
				points[i].Value = math.Nextafter(level, math.Inf(1))
			}
		}
		line, err := score.Trend(points)
		if err != nil {
			t.Fatal(err)
		}
		rising, err := line.Rising(0.95)
		if err != nil || rising {
			t.Fatalf("rising: %v, %v", rising, err)
		}
		exceeds, err := line.Exceeds(second(30), math.Nextafter(level, math.Inf(1)), 0.95)
		if err != nil || exceeds {
			t.Fatalf("exceeds itself: %v, %v", exceeds, err)
		}
	})
}

// No points make Trend panic or its answers NaN, and the order of the points does
// not count.
func TestTrendProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "n")
		points := make([]score.Point, n)
		for i := range points {
			points[i] = score.Point{
				At:    noon.Add(time.Duration(rapid.Int64().Draw(t, "at"))),
				Value: anyFloat().Draw(t, "value"),
			}
		}
		line, err := score.Trend(points)
		if err != nil {
			return
		}
		if math.IsNaN(line.Slope()) || math.IsInf(line.Slope(), 0) || math.IsNaN(line.At(noon)) {
			t.Fatalf("the line is %v + %v/s", line.At(noon), line.Slope())
		}
		limit := rapid.Float64().Draw(t, "limit")
		at := noon.Add(time.Duration(rapid.Int64().Draw(t, "then")))
		exceeds, err := line.Exceeds(at, limit, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		if exceeds && !(line.At(at) > limit) {
			t.Fatalf("%v exceeds %v beyond doubt", line.At(at), limit)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		points := every(10, rapid.SliceOfN(rapid.Float64Range(0, 1000), 3, 12).Draw(t, "values")...)
		forward, err := score.Trend(points)
		if err != nil {
			t.Fatal(err)
		}
		shuffled, err := score.Trend(rapid.Permutation(points).Draw(t, "order"))
		if err != nil {
			t.Fatal(err)
		}
		at := second(300)
		if diff := math.Abs(forward.At(at) - shuffled.At(at)); diff > 1e-6 {
			t.Fatalf("another order of the points moves the prediction by %v", diff)
		}
	})
}
