package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// quickWindows let evidence come as fast as the quickest ramp.
var quickWindows = windows{ramp: time.Second, stage: time.Second, unhealthy: 3 * time.Second, steady: 3 * time.Second}

// rampCase has a plan and lets every raise be so many points, so often.
func rampCase(t *testing.T, points v1alpha1.Percent, interval, soak v1alpha1.Duration, weights ...v1alpha1.Percent) *world {
	spec := defaultSpec()
	spec.Plan.Stages = nil
	for _, w := range weights {
		spec.Plan.Stages = append(spec.Plan.Stages, stageOf(w, soak))
	}
	spec.Ramp = v1alpha1.Ramp{MinIncrease: points, MaxIncrease: points, MaxChangePercent: "100", Interval: interval, Warmup: v1alpha1.Warmup{InitialPercent: "100"}}
	w := newWorld(t, spec)
	w.windows, w.gateway.delay = quickWindows, 100*time.Millisecond
	return w
}

// TestC13RampCaps: raises of odd sizes and intervals neither pass a stage nor come too
// early, and none makes the controller run in circles.
func TestC13RampCaps(t *testing.T) {
	t.Run("10 points per 2s", func(t *testing.T) {
		w := rampCase(t, "10", "2s", "1s", "20", "50")
		w.until(time.Hour, "it is at 20 percent", w.atShare("20"))
		var at []time.Time
		w.until(time.Hour, "it is at 50 percent", func() bool {
			// The first two shares led to 20 percent.
			if n := len(w.journal.shares("web")); n > len(at)+2 {
				at = append(at, w.at)
			}
			return w.atShare("50")()
		})
		if got := strings.Join(w.journal.shares("web"), " "); got != "10 20 30 40 50" {
			t.Errorf("shares %s", got)
		}
		if len(at) != 3 {
			t.Fatalf("raises at %v", at)
		}
		for i := 1; i < len(at); i++ {
			if apart := at[i].Sub(at[i-1]); apart < 2*time.Second {
				t.Errorf("raises %d and %d are %s apart", i, i+1, apart)
			}
		}
	})
	t.Run("1 point per 1h", func(t *testing.T) {
		w := rampCase(t, "1", "1h", "1s", "1", "5")
		w.until(2*time.Hour, "it is at 1 percent", w.atShare("1"))
		passes := 0
		w.controller.beforePass = func() { passes++ }
		w.runFor(50 * time.Minute)
		if got := w.journal.shares("web"); !slices.Equal(got, []string{"1"}) {
			t.Errorf("shares %v", got)
		}
		if passes > 20 {
			t.Errorf("%d passes in 50 minutes of nothing", passes)
		}
		w.runFor(20 * time.Minute)
		if got := w.journal.shares("web"); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("shares %v", got)
		}
	})
	t.Run("0 points", func(t *testing.T) {
		w := rampCase(t, "0", "1s", "1s", "20")
		w.runFor(time.Hour)
		w.expect("", v1alpha1.ReasonInvalidSpec, "100/0")
	})
	t.Run("100 points per 1ms", func(t *testing.T) {
		w := rampCase(t, "100", "1ms", "1s", "7", "33", "66")
		w.until(time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
		if got := strings.Join(w.journal.shares("web"), " "); got != "7 33 66 100" {
			t.Errorf("shares %s", got)
		}
	})
}

// TestC37NoSoakWithoutEvidence: however short a soak is, a stage does not end on it
// alone.
func TestC37NoSoakWithoutEvidence(t *testing.T) {
	for _, soak := range []v1alpha1.Duration{"1ms", "1s", "1h30m"} {
		t.Run(string(soak), func(t *testing.T) {
			w := rampCase(t, "50", "1s", soak, "5", "50")
			w.feel("canary", blind)
			w.runFor(48 * time.Hour)
			w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonAwaitingEvidence, "95/5")
		})
	}
	for _, soak := range []v1alpha1.Duration{"0s", "-5m", "", "5", "5 minutes", "9999999h"} {
		t.Run(fmt.Sprintf("%q", soak), func(t *testing.T) {
			w := rampCase(t, "50", "1s", soak, "5", "50")
			w.runFor(48 * time.Hour)
			w.expect("", v1alpha1.ReasonInvalidSpec, "100/0")
		})
	}
}

// TestC38PlanShapes: what the schema would refuse is refused here as well, and every
// plan that is right ends at 100 percent.
func TestC38PlanShapes(t *testing.T) {
	for text, right := range map[string]bool{
		"5": true, "5.5": true, "0.01": true, "100": true, "33 66": true, "1 2 3": true, "99.99": true,
		"5%": false, "-1": false, "0": false, "0.00": false, "101": false, "20 5": false, "5 5": false, "5 5.0": false, "": false, "5.255": false, "1e1": false, "2147483648": false,
	} {
		t.Run(text, func(t *testing.T) {
			var weights []v1alpha1.Percent
			for weight := range strings.FieldsSeq(text) {
				weights = append(weights, v1alpha1.Percent(weight))
			}
			w := rampCase(t, "100", "1s", "1s", weights...)
			if !right {
				w.runFor(time.Hour)
				w.expect("", v1alpha1.ReasonInvalidSpec, "100/0")
				return
			}
			w.until(time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
			if w.live(0).stable == nil || *w.live(0).stable != 0 {
				t.Errorf("promoted at %s", w.wire())
			}
		})
	}
}

// TestC38SumsOfWeights: whatever the pair's sum is, what is written adds up to it,
// within the range of the Gateway API, or is refused with the sum that would do.
func TestC38SumsOfWeights(t *testing.T) {
	for _, tc := range []struct {
		name           string
		stable, canary int32
		third          bool
		want           []string
		reason         string
	}{
		{"no weight at all", 0, 0, false, []string{"web 100/0", "web 95/5", "web 50/50", "web 0/100"}, ""},
		{"one", 1, 0, false, []string{"web 100/0", "web 95/5", "web 50/50", "web 0/100"}, ""},
		{"a million", 1000000, 0, false, []string{"web 100/0", "web 95/5", "web 50/50", "web 0/100"}, ""},
		{"a million beside a third", 999999, 1, true, []string{"web 1000000/0", "web 950000/50000", "web 500000/500000", "web 0/1000000"}, ""},
		{"two millions beside a third", 1000000, 1000000, true, nil, v1alpha1.ReasonWeightResolution},
		{"2^31 beside a third", 1 << 30, 1 << 30, true, nil, v1alpha1.ReasonWeightResolution},
		{"2^31 alone", 1 << 30, 1 << 30, false, []string{"web 100/0", "web 95/5", "web 50/50", "web 0/100"}, ""},
		{"one beside a third", 1, 0, true, nil, v1alpha1.ReasonWeightResolution},
		{"nothing beside a third", 0, 0, true, nil, v1alpha1.ReasonWeightResolution},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := rampCase(t, "100", "1s", "1s", "5", "50")
			if tc.third {
				other := int32(1000000)
				w.createRoute(0, weightsOf(tc.stable, tc.canary), backendRef("web-other", &other))
			} else {
				w.createRoute(0, weightsOf(tc.stable, tc.canary))
			}
			w.runFor(time.Hour)
			if tc.reason != "" {
				w.expect("", tc.reason, w.wire())
			}
			if diff := cmp.Diff(tc.want, w.journal.wires); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}
