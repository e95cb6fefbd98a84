package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// asked is a world whose routes give the canary these weights without a record, and in
// which a person has been asked what is meant.
func asked(t *testing.T, wires ...pair) *world {
	spec := smallSpec()
	if len(wires) > 1 {
		spec = alsoRoute(spec)
	}
	w := newWorld(t, spec)
	for i, p := range wires {
		w.edit(i, p, "helm")
	}
	w.settle()
	w.expect("", v1alpha1.ReasonAdoptionAmbiguous, w.wire())
	return w
}

// wantRefused demands that the last command was not carried out, and why.
func (w *world) wantRefused(t *testing.T, why string) {
	t.Helper()
	if c := w.status().Command; c == nil || c.Accepted || !strings.Contains(c.Message, why) {
		t.Errorf("the command: %s, want it refused: %q", encoded(c), why)
	}
}

// TestFinishWithoutARecord: it only answers the question that AdoptionAmbiguous asks, and
// the rule with the least for the canary says whether it can be answered so.
func TestFinishWithoutARecord(t *testing.T) {
	t.Run("stable has everything", func(t *testing.T) {
		w := newWorld(t, smallSpec())
		w.say(v1alpha1.VerbFinish)
		w.settle()
		w.wantRefused(t, "the routes give the canary 0 percent")
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonRouteNotConfirmed, "100/0")
		w.until(time.Hour, "the plan is walked", w.atShare("10"))
	})
	t.Run("the canary has 5 percent", func(t *testing.T) {
		w := newWorld(t, smallSpec())
		w.edit(0, weightsOf(95, 5), "")
		w.say(v1alpha1.VerbFinish)
		w.settle()
		w.wantRefused(t, "the routes give the canary 5 percent")
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonRouteNotConfirmed, "100/0")
	})
	t.Run("nobody was asked yet", func(t *testing.T) {
		w := newWorld(t, smallSpec())
		w.edit(0, weightsOf(40, 60), "")
		w.say(v1alpha1.VerbFinish)
		w.settle()
		w.wantRefused(t, "AdoptionAmbiguous")
		w.expect("", v1alpha1.ReasonAdoptionAmbiguous, "40/60")
		w.say(v1alpha1.VerbFinish)
		w.settle()
		if w.status().Outcome != v1alpha1.OutcomeReturning {
			t.Errorf("asked, and answered: %s", w.summary())
		}
	})
	t.Run("one rule has nothing and another everything", func(t *testing.T) {
		w := asked(t, weightsOf(100, 0), weightsOf(0, 100))
		if m := w.message(); strings.Contains(m, "or finish") {
			t.Errorf("finish is offered: %q", m)
		}
		w.say(v1alpha1.VerbFinish)
		w.runFor(time.Hour)
		w.wantRefused(t, "the routes give the canary 0 percent")
		w.expect("", v1alpha1.ReasonAdoptionAmbiguous, "100/0 0/100")
	})
	t.Run("it begins with the least", func(t *testing.T) {
		w := asked(t, weightsOf(20, 80), weightsOf(40, 60))
		w.say(v1alpha1.VerbFinish)
		w.runFor(time.Second)
		w.expect(v1alpha1.OutcomeReturning, v1alpha1.ReasonRouteNotConfirmed, "40/60 40/60")
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
	t.Run("weights that no whole point stands for", func(t *testing.T) {
		w := asked(t, weightsOf(1, 2))
		w.say(v1alpha1.VerbFinish)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
		for _, share := range w.journal.shares("web") {
			if len(share) > 2 || share > "66" {
				t.Errorf("the canary had 66.66 percent, and got %v", w.journal.shares("web"))
			}
		}
	})
}

// TestReturnKeepsToItsBeginning: whatever stable does, the canary gets no more back than
// it had when the traffic began to return.
func TestReturnKeepsToItsBeginning(t *testing.T) {
	returning := func(t *testing.T, wires ...pair) *world {
		w := asked(t, wires...)
		w.say(v1alpha1.VerbFinish)
		w.until(time.Hour, "stable has 80 percent", w.atShare("20"))
		return w
	}
	t.Run("stable unhealthy", func(t *testing.T) {
		w := returning(t, weightsOf(40, 60))
		w.feel("stable", bad)
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeReturning, v1alpha1.ReasonUnhealthy, "40/60")
		if s := w.status(); s.Phase != v1alpha1.PhasePaused || !strings.Contains(w.message(), "give the resume command, or abort") {
			t.Errorf("%s: %q", s.Phase, w.message())
		}
		w.feel("stable", good)
		w.runFor(10 * time.Hour)
		w.expect(v1alpha1.OutcomeReturning, v1alpha1.ReasonUnhealthy, "40/60")
		w.say(v1alpha1.VerbResume)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
	t.Run("stable unhealthy, and abort", func(t *testing.T) {
		w := returning(t, weightsOf(40, 60))
		w.feel("stable", bad)
		w.runFor(time.Hour)
		w.abort(1)
		w.settle()
		w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonAborted, "100/0")
	})
	t.Run("stable unready", func(t *testing.T) {
		w := returning(t, weightsOf(40, 60))
		w.stableReady = false
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeReturning, v1alpha1.ReasonStableNotReady, "40/60")
		w.stableReady = true
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
	t.Run("somebody gives the canary everything in one of two routes", func(t *testing.T) {
		w := returning(t, weightsOf(40, 60), weightsOf(40, 60))
		before := len(w.journal.wires)
		w.edit(0, weightsOf(0, 100), "kubectl-edit")
		w.settle()
		want := []string{"web 40/60", "api 40/60"}
		if diff := cmp.Diff(want, w.journal.wires[before:]); diff != "" || !w.told(v1alpha1.ReasonDrift) {
			t.Errorf("told %v, writes (-want +got):\n%s", w.journal.told, diff)
		}
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
	t.Run("a record that says more", func(t *testing.T) {
		w := returning(t, weightsOf(40, 60))
		tampered := v1alpha1.Percent("90")
		w.status().Share.Desired, w.laws.disturbed = &tampered, w.at
		before := len(w.journal.wires)
		w.runFor(time.Hour)
		for _, wire := range w.journal.wires[before:] {
			if canary := weightsFrom(strings.TrimPrefix(wire, "web ")).canary; *canary > 60 {
				t.Errorf("writes %v", w.journal.wires[before:])
			}
		}
	})
}

// TestStartingOverStartsAtNothing: a rollout that is deleted and created again goes
// through its plan, whatever the new object's annotations say.
func TestStartingOverStartsAtNothing(t *testing.T) {
	for name, order := range map[string]v1alpha1.Command{
		"finish":                    {ID: "n", Verb: v1alpha1.VerbFinish},
		"finish for attempt 1":      {ID: "n", Verb: v1alpha1.VerbFinish, Attempt: 1},
		"promote":                   {ID: "n", Verb: v1alpha1.VerbPromote},
		"promote of the next":       {ID: "n", Verb: v1alpha1.VerbPromote, Attempt: 1},
		"approve of the next":       {ID: "n", Verb: v1alpha1.VerbApprove, Attempt: 1, Stage: new(int32)},
		"retry":                     {ID: "n", Verb: v1alpha1.VerbRetry},
		"resume":                    {ID: "n", Verb: v1alpha1.VerbResume},
		"a skip of the first stage": {ID: "n", Verb: v1alpha1.VerbSkip, Attempt: 1, Stage: new(int32)},
	} {
		t.Run(name, func(t *testing.T) {
			spec := smallSpec()
			spec.OnDelete = v1alpha1.DeletionKeep
			for i := range spec.Plan.Stages {
				spec.Plan.Stages[i] = approvedAfter(spec.Plan.Stages[i])
			}
			w := newWorld(t, spec)
			w.until(time.Hour, "it waits for an approval", w.reason(v1alpha1.ReasonAwaitingApproval))
			w.remove()
			w.settle()
			if !w.object.gone || w.wire() != "90/10" {
				t.Fatalf("deleted: %s", w.summary())
			}
			w.createAgain(spec)
			w.command(order)
			w.feel("stable", bad)
			w.settle()
			w.runFor(10 * time.Hour)
			if s := w.status(); s.Outcome != v1alpha1.OutcomeInProgress || s.Attempt != 1 || w.wire() != "90/10" || s.Stage.Approved {
				t.Errorf("the new one: %s, %s", w.summary(), encoded(s.Stage))
			}
			if diff := cmp.Diff([]string{"10", "10", "0", "10"}, w.journal.shares("web")); diff != "" {
				t.Errorf("weights of the canary (-want +got):\n%s", diff)
			}
		})
	}
}
