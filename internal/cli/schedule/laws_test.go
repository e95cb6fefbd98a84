package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/cli/schedule"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// drawRollout draws a rollout as the API server would store it.
func drawRollout(t *rapid.T) *v1alpha1.WeightedRollout {
	percent := func(name string, low, high, step int) v1alpha1.Percent {
		return weights.Share(rapid.IntRange(low/step, high/step).Draw(t, name) * step).Percent()
	}
	duration := func(name string, low, high int, unit time.Duration) v1alpha1.Duration {
		d := time.Duration(rapid.IntRange(low, high).Draw(t, name)) * unit
		return v1alpha1.Duration(fmt.Sprintf("%ds", int(d.Seconds())))
	}
	step := rapid.SampledFrom([]int{1, 100, 100, 100}).Draw(t, "resolution")
	wr := &v1alpha1.WeightedRollout{}
	wr.Name = "web"
	s := &wr.Spec
	s.Revision, s.Mode, s.OnDelete = "2", v1alpha1.ModeEnforce, v1alpha1.DeletionRestore
	s.Routes = []v1alpha1.RouteReference{{Kind: v1alpha1.HTTPRouteKind, Name: "web"}}
	s.Stable = &v1alpha1.StableTrack{Track: v1alpha1.Track{Service: "web-stable", Port: 80}}
	s.Canary = &v1alpha1.CanaryTrack{Track: v1alpha1.Track{Service: "web-canary", Port: 80}}
	s.OnUnhealthy = v1alpha1.OnUnhealthy{Action: v1alpha1.UnhealthyRollback, For: "1m"}
	s.Promotion.Mode = v1alpha1.PromotionAwait
	last := 0
	for range rapid.IntRange(1, 4).Draw(t, "stages") {
		if last >= 10000 {
			break
		}
		last += rapid.IntRange(1, (10000-last)/step).Draw(t, "rise") * step
		s.Plan.Stages = append(s.Plan.Stages, v1alpha1.Stage{
			Weight: weights.Share(last).Percent(), Soak: duration("soak", 2, 20, 30*time.Second),
			Approval: rapid.SampledFrom([]v1alpha1.Approval{v1alpha1.ApprovalNone, v1alpha1.ApprovalNone, v1alpha1.ApprovalRequired}).Draw(t, "approval"),
		})
	}
	s.Ramp = v1alpha1.Ramp{
		MinIncrease: percent("minIncrease", 50, 1500, 50), MaxIncrease: percent("maxIncrease", 1500, 5000, step),
		MaxChangePercent: percent("maxChangePercent", 1000, 10000, step), Interval: duration("interval", 1, 12, 10*time.Second),
		Warmup: v1alpha1.Warmup{
			InitialPercent: percent("initialPercent", 1000, 10000, 100), Soak: duration("warm-up", 0, 6, time.Minute),
			IncrementPercent: percent("incrementPercent", 1000, 10000, 100),
		},
	}
	interval := rapid.SampledFrom([]int{20, 30}).Draw(t, "health.interval")
	s.Health = &v1alpha1.Health{
		Preset: v1alpha1.PresetTraefik, ErrorRate: &v1alpha1.ErrorRate{MaxPercent: "1"},
		Interval:    v1alpha1.Duration(fmt.Sprintf("%ds", interval)),
		Window:      v1alpha1.Duration(fmt.Sprintf("%ds", interval*rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "window"))),
		SampleDelay: duration("sampleDelay", 0, 9, 5*time.Second),
		MinRequests: int64(rapid.IntRange(1, 300).Draw(t, "minRequests")), MinRampRequests: int64(rapid.IntRange(1, 50).Draw(t, "minRampRequests")),
		Disabled: rapid.SampledFrom([]bool{false, false, false, false, true}).Draw(t, "disabled"),
	}
	return wr
}

// TestScheduleAgreesWithTheController compares the schedule with what the
// controller's own decisions make of the same plan and traffic, when the gateway
// confirms at once and nothing goes wrong: every step, its time, its weights and
// what bounds it are the same, and so is the time of the return to stable.
func TestScheduleAgreesWithTheController(t *testing.T) {
	type step struct {
		At       simulate.Elapsed
		Stage    string
		From, To float64
		Weights  []simulate.RouteWeights
		Bound    string
	}
	rapid.Check(t, func(t *rapid.T) {
		wr := drawRollout(t)
		rps := rapid.SampledFrom([]float64{2, 10, 100}).Draw(t, "rps")
		s, err := schedule.For(wr, schedule.Options{RPS: rps, ErrorPercent: 0.1})
		if err != nil {
			t.Fatal(err)
		}
		if time.Duration(s.Duration) > time.Hour {
			t.Skip("too long to simulate often")
		}
		quiet := &simulate.Scenario{Gateway: simulate.Gateway{Delay: "0s"}}
		finish, end := finishAt(wr, s), time.Duration(s.Duration)+10*time.Minute
		if s.Return != nil {
			end = finish + time.Duration(s.Return.Duration) + 10*time.Minute
			quiet.Events = []simulate.Happening{{At: v1alpha1.Duration(finish.String()), Command: simulate.Command(v1alpha1.VerbFinish)}}
		}
		quiet.Duration = v1alpha1.Duration(end.String())
		r, err := simulate.Run(&wr.Spec, quiet, simulate.Options{Exact: true, Approve: true, RPS: rps})
		if err != nil {
			t.Fatal(err)
		}
		var want, got []step
		for _, a := range r.Adjustments {
			if !a.Raise() {
				continue
			}
			want = append(want, step{a.At, a.Stage, a.From, a.To, a.Weights, a.Bound})
		}
		for _, a := range s.Adjustments {
			got = append(got, step{a.At, a.Stage, a.From, a.To, a.Weights, string(a.Bound)})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("steps (-controller +schedule):\n%s", diff)
		}
		if promoted := told(r, v1alpha1.ReasonPromoted); (promoted == nil) != (s.Stuck != "") || promoted != nil && *promoted != s.Duration {
			t.Fatalf("the controller promotes at %v, the schedule after %s, stuck: %q", promoted, s.Duration, s.Stuck)
		}
		returned(t, r, s, finish)
	})
}

// finishAt is a time for the finish command: the first on the grid of health.window
// that leaves ramp.interval after the last raise.
func finishAt(wr *v1alpha1.WeightedRollout, s *schedule.Schedule) time.Duration {
	interval, _ := wr.Spec.Ramp.Interval.Parse()
	window, _ := wr.Spec.Health.Window.Parse()
	return (time.Duration(s.Duration) + interval + window).Truncate(window)
}

// told returns when the controller told of something; nil: it never did.
func told(r *simulate.Result, reason string) *simulate.Elapsed {
	for _, e := range r.Events {
		if e.Reason == reason {
			return &e.At
		}
	}
	return nil
}

// returned compares what the schedule says of the return to stable with what came of
// the finish command.
func returned(t *rapid.T, r *simulate.Result, s *schedule.Schedule, finish time.Duration) {
	completed, lowered := told(r, v1alpha1.ReasonCompleted), 0
	for _, a := range r.Adjustments {
		if !a.Raise() {
			lowered++
		}
	}
	if s.Return == nil {
		if completed != nil || lowered > 0 {
			t.Fatalf("the schedule has no return, and the controller lowers the share %d times", lowered)
		}
		return
	}
	if lowered != s.Return.Steps {
		t.Fatalf("the return has %d steps, the schedule says %d", lowered, s.Return.Steps)
	}
	if (completed == nil) != (s.Return.Stuck != "") {
		t.Fatalf("the controller completes at %v, and the schedule is stuck: %q", completed, s.Return.Stuck)
	}
	if completed != nil && *completed-simulate.Elapsed(finish) != s.Return.Duration {
		t.Fatalf("after finish at %s it is completed at %s, the schedule says %s later", finish, *completed, s.Return.Duration)
	}
}

// TestScheduleKeepsTheCaps shows that no share passes its stage or rises faster than
// the ramp allows, that time only goes on, and that the weights never give the canary
// more than its share.
func TestScheduleKeepsTheCaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wr := drawRollout(t)
		rps := rapid.SampledFrom([]float64{0, 1, 100}).Draw(t, "rps")
		s, err := schedule.For(wr, schedule.Options{RPS: rps, ErrorPercent: 1})
		if err != nil {
			t.Fatal(err)
		}
		limits, err := weights.RampLimitsFrom(wr.Spec.Ramp, wr.Spec.Plan.Stages)
		if err != nil {
			t.Fatal(err)
		}
		stageWeight := map[string]float64{}
		for _, st := range s.Stages {
			stageWeight[st.Position] = st.Weight
		}
		interval, _ := wr.Spec.Ramp.Interval.Parse()
		share, at, warm := 0.0, simulate.Elapsed(0), false
		for i, a := range s.Adjustments {
			if a.From != share || !(a.To > a.From) || a.To > stageWeight[a.Stage] {
				t.Fatalf("step %d goes from %g to %g, after %g, in a stage of %g", i, a.From, a.To, share, stageWeight[a.Stage])
			}
			warm = warm || a.From >= stageWeight["1/"+fmt.Sprint(len(s.Stages))]
			limit := limits.MaxIncrease
			if warm {
				limit = limits.Cap(weights.Share(a.From*100 + 0.5))
			}
			if rise := weights.Share((a.To-a.From)*100 + 0.5); rise > limit {
				t.Fatalf("step %d rises by %s, the limit is %s", i, rise, limit)
			}
			if a.At-at < simulate.Elapsed(interval) {
				t.Fatalf("step %d comes %s after the one before, and ramp.interval is %s", i, a.At-at, interval)
			}
			w := a.Weights[0]
			if part := float64(w.Canary) / float64(w.Stable+w.Canary) * 100; part > a.To+1e-9 {
				t.Fatalf("step %d to %g percent writes %s", i, a.To, w)
			}
			share, at = a.To, a.At
		}
		if s.Stuck == "" && share != 100 {
			t.Fatalf("it ends at %g percent", share)
		}
		if s.Stuck != "" && rps == 0 {
			t.Fatalf("stuck without known traffic: %s", s.Stuck)
		}
	})
}

func BenchmarkFor(b *testing.B) {
	wr := &v1alpha1.WeightedRollout{}
	wr.Spec.Routes = []v1alpha1.RouteReference{{Name: "web"}}
	for _, w := range []v1alpha1.Percent{"1", "5", "10", "20", "50"} {
		wr.Spec.Plan.Stages = append(wr.Spec.Plan.Stages, v1alpha1.Stage{Weight: w, Soak: "30m"})
	}
	wr.Spec.Ramp.Interval = "1m"
	wr.Spec.OnUnhealthy.For = "1m"
	wr.Spec.Health = &v1alpha1.Health{Preset: v1alpha1.PresetTraefik, ErrorRate: &v1alpha1.ErrorRate{MaxPercent: "1"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schedule.For(wr, schedule.Options{RPS: 100, ErrorPercent: 0.1}); err != nil {
			b.Fatal(err)
		}
	}
}
