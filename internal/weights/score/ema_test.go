package score_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

func TestEMA(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, tc := range []struct {
		name    string
		alpha   float64
		values  []float64
		want    float64
		started bool
	}{
		{"not started", 0.2, nil, 0, false},
		{"NaN does not start it", 0.2, []float64{nan, inf}, 0, false},
		{"the first value starts it", 0.2, []float64{50}, 50, true},
		{"a 0 starts it too", 0.2, []float64{0, 10}, 2, true},
		{"a fifth of the difference", 0.2, []float64{50, 100}, 60, true},
		{"and again", 0.2, []float64{50, 100, 100}, 68, true},
		{"slow", 0.1, []float64{50, 100}, 55, true},
		{"fast", 0.3, []float64{50, 100}, 65, true},
		{"NaN and infinities are ignored", 0.2, []float64{50, nan, 100, inf, math.Inf(-1)}, 60, true},
		{"no overflow", 0.2, []float64{math.MaxFloat64, -math.MaxFloat64}, 0.6 * math.MaxFloat64, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, err := score.NewEMA(tc.alpha)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range tc.values {
				e = e.Add(v)
			}
			got, started := e.Value()
			if diff := cmp.Diff(tc.want, got, near); diff != "" || started != tc.started {
				t.Errorf("started: %v (-want +got):\n%s", started, diff)
			}
		})
	}

	if got, _ := (score.EMA{}).Add(50).Add(100).Value(); got != 60 {
		t.Errorf("the zero EMA gives %v, want 60", got)
	}
	for _, alpha := range []float64{0, 0.09, 0.31, -1, nan, inf} {
		if _, err := score.NewEMA(alpha); err == nil || !strings.Contains(err.Error(), "from 0.1 to 0.3") {
			t.Errorf("alpha %v: error %v", alpha, err)
		}
	}
}

// The average stays within the values seen, a steady signal does not move it, and
// adding to it leaves the old average as it was.
func TestEMAProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, err := score.NewEMA(rapid.Float64Range(0.1, 0.3).Draw(t, "alpha"))
		if err != nil {
			t.Fatal(err)
		}
		low, high := math.Inf(1), math.Inf(-1)
		for _, x := range rapid.SliceOf(anyFloat()).Draw(t, "values") {
			before := e
			next := e.Add(x)
			if e != before {
				t.Fatal("Add changed its receiver")
			}
			e = next
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				low, high = min(low, x), max(high, x)
			}
			if value, started := e.Value(); started {
				slack := 1e-12 * max(math.Abs(low), math.Abs(high))
				if !(value >= low-slack && value <= high+slack) {
					t.Fatalf("the average of values from %v to %v is %v", low, high, value)
				}
				if e.Add(value) != e {
					t.Fatalf("an average of %v moves when %v is added", value, value)
				}
			}
		}
	})
}
