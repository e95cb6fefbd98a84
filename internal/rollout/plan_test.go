package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

func TestDefaultPlan(t *testing.T) {
	w := newWorld(t, defaultSpec())
	w.edit(0, weightsOf(1, 1), "kubectl-edit")
	w.until(24*time.Hour, "the revision is promoted", w.reason(v1alpha1.ReasonPromoted))
	want := []string{
		"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "12", "14", "16", "19", "20",
		"24", "28", "33", "39", "46", "50", "60", "70", "80", "90", "100",
	}
	if diff := cmp.Diff(want, w.journal.shares("web")); diff != "" {
		t.Errorf("weights of the canary (-want +got):\n%s", diff)
	}
}

// TestFirstIntent: whatever the route says at first, the first intent is 0 percent,
// and status says what was found.
func TestFirstIntent(t *testing.T) {
	for _, tc := range []struct {
		weights  string
		observed v1alpha1.Percent
		first    string
	}{
		{"100/0", "0", "90/10"},
		{"-/-", "50", "100/0"},
		{"8/2", "20", "100/0"},
		{"100/100", "50", "100/0"},
		{"0/0", "0", "100/0"},
		{"2/1", "33.34", "100/0"},
	} {
		t.Run(tc.weights, func(t *testing.T) {
			w := newWorld(t, smallSpec())
			w.edit(0, weightsFrom(tc.weights), "helm")
			w.controller.crash = crash{write: 2} // after the finalizer and the status
			if _, err := w.pass(); err == nil && tc.first == "100/0" {
				t.Fatal("the pass should have died before its write to the route")
			}
			s := w.status()
			if s.Share.Desired == nil || *s.Share.Desired != "0" || s.Share.Observed == nil || *s.Share.Observed != tc.observed {
				t.Fatalf("first intent %s", encoded(s.Share))
			}
			w.controller.crash = never
			w.runFor(time.Minute)
			if got := w.journal.wires[0]; got != "web "+tc.first {
				t.Errorf("first write %s, want %s", got, tc.first)
			}
		})
	}
}

// TestPlanEdited: the present stage is the first whose weight is at least the
// share, and its soak starts again.
func TestPlanEdited(t *testing.T) {
	for _, tc := range []struct {
		name   string
		stages []v1alpha1.Stage
		stage  int
		share  v1alpha1.Percent // after the next raise
		after  time.Duration    // from the edit to that raise
	}{
		{"another stage before, the present one stays", []v1alpha1.Stage{stageOf("5", "1m"), stageOf("20", "5m"), stageOf("50", "6m")}, 1, "40", time.Minute},
		{"one more stage before", []v1alpha1.Stage{stageOf("5", "1m"), stageOf("10", "4m"), stageOf("20", "5m"), stageOf("50", "6m")}, 2, "40", 5 * time.Minute},
		{"the earlier stages are removed", []v1alpha1.Stage{stageOf("20", "5m"), stageOf("50", "6m")}, 0, "40", 5 * time.Minute},
		{"the weight rises", []v1alpha1.Stage{stageOf("10", "4m"), stageOf("30", "5m")}, 1, "30", 0},
		{"the weight falls below the share", []v1alpha1.Stage{stageOf("10", "4m"), stageOf("15", "5m"), stageOf("50", "6m")}, 2, "40", 0},
		{"a longer soak", []v1alpha1.Stage{stageOf("10", "4m"), stageOf("20", "9m"), stageOf("50", "6m")}, 1, "40", 9 * time.Minute},
		{"a later stage", []v1alpha1.Stage{stageOf("10", "4m"), stageOf("20", "5m"), stageOf("60", "6m")}, 1, "40", time.Minute},
		{"only 100 is left", []v1alpha1.Stage{stageOf("100", "1m")}, 0, "40", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, smallSpec())
			w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
			w.runFor(4 * time.Minute)
			edited := w.at
			w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Plan.Stages = tc.stages })
			w.settle()
			if got := stageIndex(w.status()); got != tc.stage {
				t.Errorf("stage %d, want %d", got, tc.stage)
			}
			raised := func() bool { return *w.status().Share.Desired != "20" }
			w.until(time.Hour, "the share rises", raised)
			if got := *w.status().Share.Desired; got != tc.share || w.at.Sub(edited) != tc.after {
				t.Errorf("%s percent after %s, want %s after %s", got, w.at.Sub(edited), tc.share, tc.after)
			}
		})
	}
}

// TestBrokenPlanHolds: a plan that cannot be carried out holds the share, and a
// breach still rolls back.
func TestBrokenPlanHolds(t *testing.T) {
	for name, stages := range map[string][]v1alpha1.Stage{
		"empty": nil, "falling": {stageOf("20", "1m"), stageOf("5", "1m")}, "no weight": {stageOf("5%", "1m")},
		"no soak": {stageOf("5", "0s")}, "zero": {stageOf("0", "1m")}, "unitless": {stageOf("5", "5")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, smallSpec())
			w.until(time.Hour, "it soaks at 10 percent", w.atShare("10"))
			w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Plan.Stages = stages })
			w.runFor(time.Hour)
			w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonInvalidSpec, "90/10")
			w.feel("canary", bad)
			w.runFor(5 * time.Minute)
			w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy, "100/0")
		})
	}
}

// TestNewAttemptUnderBrokenPlan: a revision that arrives together with a plan that
// cannot be carried out starts at the first stage once the plan is right again.
func TestNewAttemptUnderBrokenPlan(t *testing.T) {
	w := newWorld(t, smallSpec())
	w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
	plan := w.object.spec.Plan
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Revision, s.Plan.Stages = "v3", nil })
	w.runFor(time.Minute)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonInvalidSpec, "100/0")
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Plan = plan })
	w.settle()
	if got := stageIndex(w.status()); got != 0 {
		t.Errorf("the new attempt is at stage %d, want 0", got)
	}
}

// expect checks the outcome, the reason of the condition Ready and the weights.
func (w *world) expect(outcome v1alpha1.Outcome, reason, wire string) {
	w.tb.Helper()
	got := conditionOf(w.status(), v1alpha1.ConditionReady)
	if w.status().Outcome != outcome || got.Reason != reason || w.wire() != wire {
		w.tb.Fatalf("%s: outcome %s, reason %s (%s), weights %s; want %s, %s, %s", offset(w.at), w.status().Outcome, got.Reason, got.Message, w.wire(), outcome, reason, wire)
	}
}
