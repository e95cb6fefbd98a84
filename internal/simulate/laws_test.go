package simulate_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// TestLaws runs random rollouts in random worlds, and holds every run to the laws of a
// rollout.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, scenario := drawSpec(t), drawScenario(t)
		o := simulate.Options{
			Seed:    rapid.Uint64().Draw(t, "seed"),
			Picker:  rapid.SampledFrom([]string{"smooth", "random", "buckets"}).Draw(t, "picker"),
			Exact:   rapid.Bool().Draw(t, "exact"),
			Approve: rapid.Bool().Draw(t, "approve"),
		}
		r, err := simulate.Run(spec, scenario, o)
		if err != nil {
			t.Fatal(err)
		}
		sums(t, r)
		arrivals(t, r, scenario)
		order(t, r)
		steps(t, r, spec, scenario)
		rollbacks(t, r)
		again, err := simulate.Run(spec, scenario, o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text(t, r), text(t, again)); diff != "" {
			t.Fatalf("the same inputs give another result:\n%s", diff)
		}
	})
}

func text(t *rapid.T, r *simulate.Result) string {
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sums checks that every request is in the samples once, and in one stage at most.
func sums(t *rapid.T, r *simulate.Result) {
	var stable, canary simulate.Traffic
	for _, s := range r.Samples {
		for _, pair := range []struct {
			sum  *simulate.Traffic
			part simulate.TrackSample
		}{{&stable, s.Stable}, {&canary, s.Canary}} {
			if pair.part.Requests < 0 || pair.part.Failed < 0 || pair.part.Failed > pair.part.Requests+1e-9 {
				t.Fatalf("%s: %g of %g requests failed", s.At, pair.part.Failed, pair.part.Requests)
			}
			pair.sum.Requests += pair.part.Requests
			pair.sum.Failed += pair.part.Failed
		}
	}
	for _, pair := range [][2]simulate.Traffic{{stable, r.Outcome.Stable}, {canary, r.Outcome.Canary}} {
		if math.Abs(pair[0].Requests-pair[1].Requests) > 1e-6 || math.Abs(pair[0].Failed-pair[1].Failed) > 1e-6 {
			t.Fatalf("the samples add up to %+v, the outcome says %+v", pair[0], pair[1])
		}
	}
	inStages := 0.0
	for _, s := range r.Stages {
		inStages += s.CanaryRequests
	}
	if inStages > r.Outcome.Canary.Requests+1e-6 {
		t.Fatalf("the stages had %g requests, the canary %g", inStages, r.Outcome.Canary.Requests)
	}
}

// arrivals checks that as many requests were served as came: the first rate for two
// thirds of the time apart from a minute's slope, and the second one then.
func arrivals(t *rapid.T, r *simulate.Result, scenario *simulate.Scenario) {
	first, _ := scenario.Traffic[0].RPS.Float64()
	second, _ := scenario.Traffic[1].RPS.Float64()
	at, _ := scenario.Traffic[1].At.Parse()
	end := r.Outcome.Duration.Seconds()
	sloping := min(end-at.Seconds(), 60)
	at60 := first + (second-first)*sloping/60
	want := first*at.Seconds() + (first+at60)/2*sloping + second*(end-at.Seconds()-sloping)
	if got := r.Outcome.Total().Requests; math.Abs(got-want) > 1 {
		t.Fatalf("%g requests were served, and %g came", got, want)
	}
}

// order checks that everything is in order of time, and that one thing follows from
// the one before.
func order(t *rapid.T, r *simulate.Result) {
	last := simulate.Elapsed(-1)
	for _, s := range r.Samples {
		if s.At <= last {
			t.Fatalf("a sample at %s follows one at %s", s.At, last)
		}
		last = s.At
	}
	if last != r.Outcome.Duration {
		t.Fatalf("the last sample is at %s, the end at %s", last, r.Outcome.Duration)
	}
	last = 0
	for _, e := range r.Events {
		if e.At < last {
			t.Fatalf("an event at %s follows one at %s", e.At, last)
		}
		last = e.At
	}
	share, last := 0.0, 0
	for _, a := range r.Adjustments {
		if a.From != share || a.At < last {
			t.Fatalf("the share was %g percent at %s, and then %+v", share, last, a)
		}
		share, last = a.To, a.At
	}
	if share != r.Outcome.Share {
		t.Fatalf("the last adjustment leads to %g percent, the outcome says %g", share, r.Outcome.Share)
	}
	last = 0
	for i, s := range r.Stages {
		if s.BeganAt < last || s.EndedAt == nil && i+1 < len(r.Stages) || s.Lasted < 0 {
			t.Fatalf("stage %+v follows one that ended at %s", s, last)
		}
		if s.EndedAt != nil {
			last = *s.EndedAt
		}
	}
}

// steps checks that weights are never both 0, that the share stays within the stage's,
// and that raises respect the ramp and the gateway.
func steps(t *rapid.T, r *simulate.Result, spec *v1alpha1.WeightedRolloutSpec, scenario *simulate.Scenario) {
	interval, _ := spec.Ramp.Interval.Parse()
	delay, _ := scenario.Gateway.Delay.Parse()
	var confirmed *simulate.Elapsed
	for i, a := range r.Adjustments {
		for _, w := range a.Weights {
			if w.Stable < 0 || w.Canary < 0 || w.Stable+w.Canary == 0 {
				t.Fatalf("%s: the weights are %s", a.At, w)
			}
		}
		if a.Raise() && a.Cause != v1alpha1.ReasonUnhealthy {
			// Stable that fails while it gets its traffic back is the one reason for which
			// the canary gets everything at once.
			if limit := stageWeight(r, a); a.To > limit {
				t.Fatalf("%+v is above the stage's %g percent", a, limit)
			}
			if a.To-a.From > 20+1e-9 {
				t.Fatalf("%+v is a larger step than ramp.maxIncrease", a)
			}
			if i > 0 && (confirmed == nil || time.Duration(a.At-*confirmed) < interval) {
				t.Fatalf("%+v comes sooner than ramp.interval after the confirmation at %v", a, confirmed)
			}
		}
		if a.ConfirmedAt != nil && a.Cause != v1alpha1.ReasonDrift && time.Duration(*a.ConfirmedAt-a.At) < delay {
			t.Fatalf("%+v was confirmed before the gateway could", a)
		}
		confirmed = a.ConfirmedAt
	}
}

func stageWeight(r *simulate.Result, a simulate.Adjustment) float64 {
	for _, s := range r.Stages {
		if s.Attempt == a.Attempt && s.Position == a.Stage {
			return s.Weight
		}
	}
	return 0
}

// rollbacks checks that a rollback leaves the canary nothing, for good.
func rollbacks(t *rapid.T, r *simulate.Result) {
	over := map[int64]simulate.Elapsed{}
	for _, e := range r.Events {
		if e.Reason != v1alpha1.ReasonRolledBack {
			continue
		}
		var attempt int64
		for _, s := range r.Stages {
			if s.BeganAt <= e.At {
				attempt = s.Attempt
			}
		}
		over[attempt] = e.At
	}
	for _, a := range r.Adjustments {
		if at, ok := over[a.Attempt]; ok && a.At >= at && a.To != 0 {
			t.Fatalf("%+v comes after the rollback at %s", a, at)
		}
	}
	if r.Outcome.State == v1alpha1.OutcomeRolledBack && r.Outcome.Share != 0 {
		t.Fatalf("it is rolled back at %g percent", r.Outcome.Share)
	}
	for _, s := range r.Samples {
		if s.Phase == v1alpha1.PhaseRolledBack && s.Desired != 0 {
			t.Fatalf("%s: it is rolled back at %g percent", s.At, s.Desired)
		}
	}
}

func drawSpec(t *rapid.T) *v1alpha1.WeightedRolloutSpec {
	spec := quickSpec()
	spec.OnUnhealthy.Action = rapid.SampledFrom([]v1alpha1.UnhealthyAction{
		v1alpha1.UnhealthyRollback, v1alpha1.UnhealthyPause, v1alpha1.UnhealthyBreak,
	}).Draw(t, "action")
	if spec.OnUnhealthy.Action == v1alpha1.UnhealthyBreak {
		spec.OnUnhealthy.Cooldown, spec.OnUnhealthy.MaxTrips = "1m", 2
	}
	if rapid.Bool().Draw(t, "target") {
		spec.Health.Latency.Target = "250ms"
	}
	if rapid.Bool().Draw(t, "approval") {
		spec.Plan.Stages[0].Approval = v1alpha1.ApprovalRequired
	}
	return spec
}

func drawScenario(t *rapid.T) *simulate.Scenario {
	minutes := rapid.IntRange(5, 30).Draw(t, "minutes")
	s := &simulate.Scenario{
		Start:    rapid.SampledFrom([]string{"", "2026-01-09T15:30:07-05:00", "2028-02-29T23:59:59Z"}).Draw(t, "start"),
		Duration: duration(minutes * 60),
		Traffic: []simulate.RateStep{
			{At: "0s", RPS: rapid.SampledFrom([]v1alpha1.Decimal{"1", "20", "33.3"}).Draw(t, "rps")},
			{At: duration(minutes * 20), RPS: rapid.SampledFrom([]v1alpha1.Decimal{"0", "5", "40"}).Draw(t, "later"), Over: "1m"},
		},
		Gateway: simulate.Gateway{Delay: rapid.SampledFrom([]v1alpha1.Duration{"0s", "2s", "41s"}).Draw(t, "delay")},
		Stable:  drawTrack(t, "stable", minutes),
		Canary:  drawTrack(t, "canary", minutes),
	}
	second := 0
	for range rapid.IntRange(0, 6).Draw(t, "events") {
		second += rapid.IntRange(1, 240).Draw(t, "after")
		s.Events = append(s.Events, drawEvent(t, second))
		second += 60 // longer than any state lasts, so that none overlap
	}
	return s
}

func drawTrack(t *rapid.T, name string, minutes int) simulate.Track {
	var track simulate.Track
	track.ErrorPercent = []simulate.Step[v1alpha1.Percent]{
		{At: "0s", Value: rapid.SampledFrom([]v1alpha1.Percent{"0", "0.1", "1"}).Draw(t, name+" errors")},
		{At: duration(minutes * 30), Value: rapid.SampledFrom([]v1alpha1.Percent{"0", "3", "30"}).Draw(t, name+" later errors"), For: "2m"},
	}
	track.Latency = []simulate.Step[v1alpha1.Duration]{
		{At: "0s", Value: "60ms"},
		{At: duration(minutes * 20), Value: rapid.SampledFrom([]v1alpha1.Duration{"60ms", "150ms", "600ms"}).Draw(t, name+" latency"), Over: "5m"},
	}
	return track
}

func drawEvent(t *rapid.T, second int) simulate.Happening {
	e := simulate.Happening{At: duration(second)}
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0:
		e.Canary, e.For = simulate.Unready, "50s"
	case 1:
		e.Stable, e.For = simulate.Unready, "50s"
	case 2:
		e.Metrics, e.For = rapid.SampledFrom([]simulate.Metrics{simulate.MetricsOutage, simulate.MetricsNaN, simulate.MetricsEmpty}).Draw(t, "metrics"), "60s"
	case 3:
		e.Revision = fmt.Sprintf("v%d", rapid.IntRange(2, 4).Draw(t, "revision"))
	case 4:
		paused := rapid.Bool().Draw(t, "paused")
		e.Paused = &paused
	case 5:
		e.RouteWeights = rapid.SampledFrom([]string{"20/80", "99/1", "1/0", "0/1", "9995/5"}).Draw(t, "weights")
	default:
		e.Command = rapid.SampledFrom([]simulate.Command{"abort", "pause", "approve", "skip", "promote", "retry", "finish", "resume"}).Draw(t, "command")
	}
	return e
}

func duration(seconds int) v1alpha1.Duration { return v1alpha1.Duration(fmt.Sprintf("%ds", seconds)) }
