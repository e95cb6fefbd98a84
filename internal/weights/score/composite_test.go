package score_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

var (
	// near2 allows for the rounding of sums and logarithms.
	near2 = cmpopts.EquateApprox(0, 1e-9)
	// missing makes NaN equal to NaN.
	missing = cmpopts.EquateNaNs()
)

// checkSum checks that weights are from 0 to 1 and add up to 1.
func checkSum(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, weights []float64) {
	t.Helper()
	var sum float64
	for i, w := range weights {
		if !(w >= 0 && w <= 1+1e-12) {
			t.Fatalf("signal %d weighs %v", i, w)
		}
		sum += w
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Fatalf("%v add up to %v", weights, sum)
	}
}

func TestNormalise(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		name      string
		values    []float64
		direction score.Direction
		want      []float64
	}{
		{"higher is better", []float64{10, 30, 20}, score.HigherIsBetter, []float64{0, 1, 0.5}},
		{"lower is better", []float64{10, 30, 20}, score.LowerIsBetter, []float64{1, 0, 0.5}},
		{"negative", []float64{-4, -2, -3.5}, score.HigherIsBetter, []float64{0, 1, 0.25}},
		{"what does not vary takes nothing off", []float64{7, 7}, score.LowerIsBetter, []float64{1, 1}},
		{"one value", []float64{0}, score.HigherIsBetter, []float64{1}},
		{"missing stays missing", []float64{nan, 10, math.Inf(1), 30}, score.HigherIsBetter, []float64{nan, 0, nan, 1}},
		{"no overflow", []float64{-math.MaxFloat64, 0, math.MaxFloat64}, score.LowerIsBetter, []float64{1, 0.5, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := score.Normalise(tc.values, tc.direction)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, near, missing); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, values := range [][]float64{nil, {nan}, {math.Inf(1), math.Inf(-1)}} {
		if _, err := score.Normalise(values, score.HigherIsBetter); !errors.Is(err, score.ErrNoValue) {
			t.Errorf("Normalise(%v): %v, want ErrNoValue", values, err)
		}
	}
	if _, err := score.Normalise([]float64{1}, 2); err == nil || !strings.Contains(err.Error(), "direction 2 is unknown") {
		t.Errorf("an unknown direction: %v", err)
	}
}

func TestUnion(t *testing.T) {
	judged, measured := []float64{0.5, 0.3, 0.2}, []float64{0, 0.2, 0.8}
	for _, tc := range []struct {
		name   string
		lambda float64
		want   []float64
	}{
		{"6:4", score.SixToFour, []float64{0.3, 0.26, 0.44}},
		{"7:3", score.SevenToThree, []float64{0.35, 0.27, 0.38}},
		{"half and half", 0.5, []float64{0.25, 0.25, 0.5}},
		{"judgement alone", 1, judged},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := score.Union(judged, measured, tc.lambda)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, near); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, tc := range []struct {
		name             string
		judged, measured []float64
		lambda           float64
		want             string
	}{
		{"the data outweigh", judged, measured, 0.49, "lambda is 0.49"},
		{"too much", judged, measured, 1.1, "lambda is 1.1"},
		{"NaN lambda", judged, measured, math.NaN(), "lambda is NaN"},
		{"another number", judged, []float64{1}, 0.6, "3 judged weights do not fit 1"},
		{"not normalised", []float64{0.5, 0.6}, []float64{0.5, 0.5}, 0.6, "judged: the 2 weights add up to 1.1"},
		{"negative", []float64{0.5, 0.5}, []float64{-0.5, 1}, 0.6, "measured: the weight of signal 0 is -0.5"},
		{"NaN weight", []float64{math.NaN(), 1}, []float64{0.5, 0.5}, 0.6, "judged: the weight of signal 0 is NaN"},
		{"none", nil, nil, 0.6, "the 0 weights add up to 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := score.Union(tc.judged, tc.measured, tc.lambda); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want an error with %q", got, err, tc.want)
			}
		})
	}
}

func TestComposite(t *testing.T) {
	got, err := score.Composite([]float64{1, 0.5, 0}, []float64{0.5, 0.3, 0.2})
	if err != nil || math.Abs(got-0.65) > 1e-12 {
		t.Errorf("got %v, %v, want 0.65", got, err)
	}
	for _, tc := range []struct {
		name             string
		signals, weights []float64
		want             string
	}{
		{"another number", []float64{1}, []float64{0.5, 0.5}, "1 signals do not fit 2 weights"},
		{"none", nil, nil, "the 0 weights add up to 0"},
		{"missing", []float64{1, math.NaN()}, []float64{0.5, 0.5}, "signal 1 is NaN"},
		{"not normalised", []float64{50, 1}, []float64{0.5, 0.5}, "signal 0 is 50"},
		{"bad weights", []float64{1, 1}, []float64{0.5, 0.6}, "add up to 1.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := score.Composite(tc.signals, tc.weights); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want an error with %q", got, err, tc.want)
			}
		})
	}
}

// From any observations to one number: normalised values are from 0 to 1 and keep or
// turn the order, a union adds up to 1 and lies between its two sides, and the composite is
// from 0 to 1, between its smallest and largest signal.
func TestCompositeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(anyFloat(), 1, 20).Draw(t, "values")
		direction := rapid.SampledFrom([]score.Direction{score.HigherIsBetter, score.LowerIsBetter}).Draw(t, "direction")
		normal, err := score.Normalise(values, direction)
		if err != nil {
			return
		}
		for i, v := range normal {
			if lost := math.IsNaN(values[i]) || math.IsInf(values[i], 0); lost != math.IsNaN(v) || v < 0 || v > 1 {
				t.Fatalf("%v becomes %v", values[i], v)
			}
			for j, w := range normal {
				if values[i] < values[j] && (direction == score.HigherIsBetter && v > w || direction == score.LowerIsBetter && v < w) {
					t.Fatalf("%v and %v become %v and %v", values[i], values[j], v, w)
				}
			}
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10).Draw(t, "signals")
		judged, measured := drawWeights(t, n), drawWeights(t, n)
		union, err := score.Union(judged, measured, rapid.Float64Range(0.5, 1).Draw(t, "lambda"))
		if err != nil {
			t.Fatal(err)
		}
		checkSum(t, union)
		for i, w := range union {
			if w < min(judged[i], measured[i])-1e-12 || w > max(judged[i], measured[i])+1e-12 {
				t.Fatalf("the union of %v and %v is %v", judged[i], measured[i], w)
			}
		}
		signals := rapid.SliceOfN(rapid.Float64Range(0, 1), n, n).Draw(t, "values")
		got, err := score.Composite(signals, union)
		if err != nil {
			t.Fatal(err)
		}
		low, high := 1.0, 0.0
		for _, s := range signals {
			low, high = min(low, s), max(high, s)
		}
		if !(got >= max(0, low-1e-9) && got <= min(1, high+1e-9)) {
			t.Fatalf("the composite of %v is %v", signals, got)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SliceOfN(anyFloat(), 0, 3).Draw(t, "a"), rapid.SliceOfN(anyFloat(), 0, 3).Draw(t, "b")
		if union, err := score.Union(a, b, anyFloat().Draw(t, "lambda")); err == nil && math.Abs(union[0]) > 1.1 {
			t.Fatalf("union %v", union)
		}
		if got, err := score.Composite(a, b); err == nil && !(got >= 0 && got <= 1) {
			t.Fatalf("composite %v", got)
		}
	})
}

func drawWeights(t *rapid.T, n int) []float64 {
	weights := rapid.SliceOfN(rapid.Float64Range(0, 9), n, n).Draw(t, "weights")
	weights[0] += 0.1
	var sum float64
	for _, w := range weights {
		sum += w
	}
	for i := range weights {
		weights[i] /= sum
	}
	return weights
}
