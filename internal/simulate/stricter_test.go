package simulate_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// TestStricterSpecIsSafer: a spec with one more target or check, or a lower limit, never
// lets a canary live that the same spec without it rolls back, and until then it costs no
// more failed requests, but for those of one window per change of the share. The world
// has no noise, and canaries are cold, worse than stable, or both.
func TestStricterSpecIsSafer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawLaxSpec(t)
		scenario := drawWorse(t, spec)
		strict := spec.DeepCopy()
		rapid.SampledFrom(stricter).Draw(t, "stricter").edit(strict)
		without, with := simulated(t, spec, scenario), simulated(t, strict, scenario)
		if without.Outcome.State != v1alpha1.OutcomeRolledBack {
			return
		}
		if with.Outcome.State != v1alpha1.OutcomeRolledBack {
			t.Fatalf("without it: %s\nwith it: %s", ended(without), ended(with))
		}
		if most := without.Outcome.Canary.Failed + windowPerChange(strict, scenario, with); with.Outcome.Canary.Failed > most {
			t.Fatalf("it may cost %.0f failed requests\nwithout it: %s\nwith it: %s", most, ended(without), ended(with))
		}
	})
}

// element is what makes a spec stricter.
type element struct {
	name string
	edit func(*v1alpha1.WeightedRolloutSpec)
}

func (e element) String() string { return e.name }

// stricter does not have errorRate.maxAboveStablePercent and latency.maxRatioToStable:
// they say by how much the canary may be worse, where otherwise it may not be.
var stricter = []element{
	{"a target of errors", func(s *v1alpha1.WeightedRolloutSpec) { s.Health.ErrorRate.TargetPercent = "1" }},
	{"a low target of errors", func(s *v1alpha1.WeightedRolloutSpec) { s.Health.ErrorRate.TargetPercent = "0.2" }},
	{"a lower limit of errors", func(s *v1alpha1.WeightedRolloutSpec) { s.Health.ErrorRate.MaxPercent = "2" }},
	{"a limit of response times", func(s *v1alpha1.WeightedRolloutSpec) { s.Health.Latency = quickSpec().Health.Latency }},
	{"a target of response times", func(s *v1alpha1.WeightedRolloutSpec) {
		s.Health.Latency = quickSpec().Health.Latency
		s.Health.Latency.Target = "100ms"
	}},
	{"a higher score", func(s *v1alpha1.WeightedRolloutSpec) { s.Health.DegradedBelow = "0.98" }},
	{"a check of its own", func(s *v1alpha1.WeightedRolloutSpec) {
		s.Health.Checks = []v1alpha1.Check{{Name: "queue", Query: "queue", Max: new(v1alpha1.Decimal("10"))}}
	}},
	{"a proof that it is not worse", func(s *v1alpha1.WeightedRolloutSpec) { s.Health.Require = v1alpha1.RequireNotWorse }},
	{"a deadline", func(s *v1alpha1.WeightedRolloutSpec) { s.ProgressDeadline = "1h" }},
}

func drawLaxSpec(t *rapid.T) *v1alpha1.WeightedRolloutSpec {
	spec := quickSpec()
	spec.Health.Latency, spec.Health.Window, spec.Health.Interval = nil, "1m", "15s"
	spec.Health.ErrorRate.MaxPercent = rapid.SampledFrom([]v1alpha1.Percent{"5", "20"}).Draw(t, "maxPercent")
	spec.Plan.Stages = nil
	for _, weight := range rapid.SampledFrom([][]v1alpha1.Percent{{"20"}, {"1", "20"}, {"20", "50"}, {"5", "20", "50"}, {"10", "100"}}).Draw(t, "plan") {
		spec.Plan.Stages = append(spec.Plan.Stages, v1alpha1.Stage{
			Weight: weight, Soak: rapid.SampledFrom([]v1alpha1.Duration{"2m", "15m"}).Draw(t, "soak"), Approval: v1alpha1.ApprovalNone,
		})
	}
	spec.Ramp.MinIncrease, spec.Ramp.MaxIncrease, spec.Ramp.MaxChangePercent = "1", "10", rapid.SampledFrom([]v1alpha1.Percent{"20", "100"}).Draw(t, "maxChangePercent")
	spec.Ramp.Warmup.InitialPercent = rapid.SampledFrom([]v1alpha1.Percent{"10", "30", "60", "100"}).Draw(t, "initialPercent")
	spec.Ramp.Warmup.Soak = rapid.SampledFrom([]v1alpha1.Duration{"0s", "1m", "10m"}).Draw(t, "warm-up")
	if rapid.IntRange(0, 3).Draw(t, "action") == 0 {
		spec.OnUnhealthy = v1alpha1.OnUnhealthy{Action: v1alpha1.UnhealthyBreak, For: "30s", Cooldown: "1m", MaxTrips: 2}
	}
	return spec
}

// drawWorse draws a world in which a bad canary has at least one failure in a window, as
// metrics that count whole requests would show them.
func drawWorse(t *rapid.T, spec *v1alpha1.WeightedRolloutSpec) *simulate.Scenario {
	s := &simulate.Scenario{
		Traffic: []simulate.RateStep{{At: "0s", RPS: rapid.SampledFrom([]v1alpha1.Decimal{"100", "300", "1000"}).Draw(t, "rps")}},
		Stable:  simulate.Track{ErrorPercent: steady(rapid.SampledFrom([]v1alpha1.Percent{"0", "0.1", "0.5"}).Draw(t, "stable errors"))},
		Canary: simulate.Track{
			ErrorPercent: steady(rapid.SampledFrom([]v1alpha1.Percent{"0.1", "2", "3", "4", "8"}).Draw(t, "canary errors")),
			Latency:      steady(rapid.SampledFrom([]v1alpha1.Duration{"50ms", "90ms", "300ms"}).Draw(t, "canary latency")),
		},
	}
	// After a break for a limit, three good evaluations end the hold of the spec that has
	// no target, so that it comes to the comparison sooner.
	if broken := spec.OnUnhealthy.Action == v1alpha1.UnhealthyBreak; !broken && rapid.Bool().Draw(t, "cold") {
		s.Canary.Cold = &simulate.Cold{For: "3m", LatencyFactor: "3", ErrorPercent: rapid.SampledFrom([]v1alpha1.Percent{"0", "1", "6"}).Draw(t, "cold errors")}
	}
	return s
}

func simulated(t *rapid.T, spec *v1alpha1.WeightedRolloutSpec, scenario *simulate.Scenario) *simulate.Result {
	r, err := simulate.Run(spec, scenario, simulate.Options{Exact: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// windowPerChange is how many requests to the canary fail in one window for each change
// of its share, at the higher one of the two: a lowering takes the evidence of the share
// that it ends.
func windowPerChange(spec *v1alpha1.WeightedRolloutSpec, scenario *simulate.Scenario, r *simulate.Result) float64 {
	window, _ := spec.Health.Window.Parse()
	rps, _ := scenario.Traffic[0].RPS.Float64()
	bp, _ := scenario.Canary.ErrorPercent[0].Value.BasisPoints()
	if cold := scenario.Canary.Cold; cold != nil {
		more, _ := cold.ErrorPercent.BasisPoints()
		bp += more
	}
	failed := 0.0
	for _, a := range r.Adjustments {
		failed += rps * max(a.From, a.To) / 100 * float64(bp) / 10000 * window.Seconds()
	}
	return failed
}

func ended(r *simulate.Result) string {
	o := r.Outcome
	return fmt.Sprintf("%s (%s) after %s, %d changes and %.0f failed requests: %s", o.State, o.Reason, time.Duration(o.ReachedAt), len(r.Adjustments), o.Canary.Failed, o.Message)
}
