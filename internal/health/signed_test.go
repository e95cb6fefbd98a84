package health

import (
	"testing"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// A check with max alone is a count, a rate or a time, and cannot be below 0. Where a limit
// says that it can, the limits decide.
func TestValueBelowZero(t *testing.T) {
	for name, tc := range map[string]struct {
		check Check
		value float64
		want  v1alpha1.VerdictState
	}{
		"an error rate":                {Check{Max: new(0.01)}, -0.5, nothing},
		"far below":                    {Check{Max: new(1000.0)}, -1e9, nothing},
		"at most 0":                    {Check{Max: new(0.0)}, -1, nothing},
		"0 itself":                     {Check{Max: new(0.01)}, 0, healthy},
		"0, as floating point has it":  {Check{Max: new(0.01)}, -1e-16, healthy},
		"max is below 0":               {Check{Max: new(-5.0)}, -7, healthy},
		"min is below 0":               {Check{Min: new(-1.0), Max: new(0.01)}, -0.5, healthy},
		"under a min of 0":             {Check{Min: new(0.0), Max: new(0.01)}, -0.5, unhealthy},
		"min alone":                    {Check{Min: new(-3.0)}, -2, healthy},
		"above max, whatever its sign": {Check{Max: new(-5.0)}, -4, unhealthy},
	} {
		t.Run(name, func(t *testing.T) {
			c := checksOnly()
			tc.check.Name = "own"
			c.Checks = []Check{tc.check}
			own := func(value float64) func(*Window) {
				return func(w *Window) { w.Checks = []CheckResult{{Name: "own", Value: value, SampleAt: w.End}} }
			}
			v := Evaluate(input(c, windows(5, 20, own(tc.value))))
			if v.State != tc.want || (v.State == healthy) != v.StageReady || v.State == nothing && v.Reason != v1alpha1.ReasonUnsupportedResult {
				t.Errorf("%+v, want %s", v, tc.want)
			}
		})
	}
}

// What cannot be is no best value, which the later ones would be measured by.
func TestValueBelowZeroIsNoBest(t *testing.T) {
	c := checksOnly()
	c.Checks = []Check{{Name: "queue", Max: new(10.0), Importance: 1}}
	ws := concat(windows(5, 12, check("queue", -90)), windows(13, 24, check("queue", 4)))
	if v := Evaluate(input(c, ws)); v.Score != 1 || v.State != healthy {
		t.Errorf("%+v", v)
	}
}
