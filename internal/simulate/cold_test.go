package simulate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// coldSpec is a plan with the API's defaults, whose first stage begins with a warm-up.
func coldSpec(stages ...v1alpha1.Percent) *v1alpha1.WeightedRolloutSpec {
	spec := quickSpec()
	spec.Plan.Stages = nil
	for _, weight := range stages {
		spec.Plan.Stages = append(spec.Plan.Stages, v1alpha1.Stage{Weight: weight, Soak: "30m", Approval: v1alpha1.ApprovalNone})
	}
	spec.Ramp = v1alpha1.Ramp{
		MinIncrease: "1", MaxIncrease: "10", MaxChangePercent: "20", Interval: "1m",
		Warmup: v1alpha1.Warmup{InitialPercent: "30", Soak: "10m", IncrementPercent: "20"},
	}
	spec.Health = &v1alpha1.Health{
		Preset: v1alpha1.PresetTraefik, Window: "1m", Interval: "15s", SampleDelay: "15s",
		MinRequests: 100, MinRampRequests: 20, DegradedBelow: "0.9",
		ErrorRate: &v1alpha1.ErrorRate{MaxPercent: "5", Penalty: "2"},
	}
	spec.OnUnhealthy.For = "1m"
	return spec
}

// TestColdCanaryThatIsWorse shows that a canary which is worse than stable within every
// limit is rolled back soon after its warm-up's time, though a missed target, which holds
// the share, keeps the warm-up from going on; and that a target makes it cost no more.
func TestColdCanaryThatIsWorse(t *testing.T) {
	for _, tc := range []struct {
		name   string
		stages []v1alpha1.Percent
		within time.Duration
		failed float64
	}{
		{"20 and 50 percent", []v1alpha1.Percent{"20", "50"}, 14 * time.Minute, 150},
		{"5, 20 and 50 percent", []v1alpha1.Percent{"5", "20", "50"}, 30 * time.Minute, 140},
		{"1, 20 and 50 percent", []v1alpha1.Percent{"1", "20", "50"}, 30 * time.Minute, 140},
	} {
		for _, target := range []v1alpha1.Percent{"", "1"} {
			t.Run(strings.TrimSpace(tc.name+" with target "+string(target)), func(t *testing.T) {
				spec := coldSpec(tc.stages...)
				spec.Health.ErrorRate.TargetPercent = target
				r := run(t, spec, &simulate.Scenario{
					Duration: "8h", Canary: simulate.Track{ErrorPercent: steady(v1alpha1.Percent("3"))},
				}, simulate.Options{Exact: true})
				o := r.Outcome
				if o.State != v1alpha1.OutcomeRolledBack || time.Duration(o.ReachedAt) > tc.within || o.Canary.Failed > tc.failed {
					t.Errorf("%s (%s) after %s and %.0f failed requests: %s", o.State, o.Reason, o.ReachedAt, o.Canary.Failed, o.Message)
				}
			})
		}
	}
}

// TestColdCanaryThatIsSlow shows that a canary whose response times stay far above the
// target, though within the limit, is rolled back in the end; and soon, if it fails more
// often than stable as well.
func TestColdCanaryThatIsSlow(t *testing.T) {
	for _, stages := range [][]v1alpha1.Percent{{"20", "50"}, {"5", "20", "50"}} {
		for _, target := range []v1alpha1.Percent{"", "1"} {
			for errors, within := range map[v1alpha1.Percent]time.Duration{"0.1": 4*time.Hour + 30*time.Minute, "3": 40 * time.Minute} {
				spec := coldSpec(stages...)
				spec.Health.ErrorRate.TargetPercent = target
				spec.Health.Latency = &v1alpha1.Latency{Percentile: "99", Target: "200ms", Max: "500ms", Smoothing: "0.2", Penalty: "0.5"}
				r := run(t, spec, &simulate.Scenario{
					Duration: "8h", Canary: simulate.Track{Latency: steady(v1alpha1.Duration("100ms")), ErrorPercent: steady(errors)},
				}, simulate.Options{Exact: true})
				if o := r.Outcome; o.State != v1alpha1.OutcomeRolledBack || time.Duration(o.ReachedAt) > within {
					t.Errorf("%s, target %q, %s percent fail: %s (%s) at %g percent after %s: %s", stages, target, errors, o.State, o.Reason, o.Share, o.ReachedAt, o.Message)
				}
			}
		}
	}
}
