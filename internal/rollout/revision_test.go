package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// derivedWorld takes the revision from the canary's workload.
func derivedWorld(t *testing.T) *world {
	w := newWorld(t, derived(withWorkloads(smallSpec(), v1alpha1.CapacityCheck)))
	w.until(24*time.Hour, "it soaks at 20 percent", w.atShare("20"))
	if got := w.status().Revision; got != "Canary-2" {
		t.Fatalf("revision %q", got)
	}
	return w
}

// TestC31AReplicaChangeIsNoRevision: autoscaling and a restart leave the attempt as it
// is; a new template is another one, from 0.
func TestC31AReplicaChangeIsNoRevision(t *testing.T) {
	w := derivedWorld(t)
	soaks := w.at
	for _, replicas := range []int32{8, 3, 14, 10} {
		w.canary.scaleTo(replicas)
		w.runFor(time.Minute)
	}
	w.until(time.Hour, "the stage is over", func() bool { return stageIndex(w.status()) == 2 })
	if soaked := w.at.Sub(soaks); soaked != 5*time.Minute || w.status().Attempt != 1 {
		t.Errorf("attempt %d, the stage is over after %s", w.status().Attempt, soaked)
	}
	w.canary.deploy(3)
	w.settle()
	w.runFor(time.Second)
	if s := w.status(); s.Attempt != 2 || s.Revision != "Canary-3" || s.History[0].Outcome != v1alpha1.OutcomeSuperseded || *s.Share.Desired != "0" {
		t.Errorf("after another template: %s, revision %q", w.summary(), s.Revision)
	}
	w.until(24*time.Hour, "the other one is promoted", w.reason(v1alpha1.ReasonPromoted))
}

// TestC15BackToTheTemplateOfStable is one write that gives stable everything.
func TestC15BackToTheTemplateOfStable(t *testing.T) {
	w := derivedWorld(t)
	before := len(w.journal.wires)
	w.canary.deploy(1)
	w.runFor(24 * time.Hour)
	w.expect(v1alpha1.OutcomeSuperseded, v1alpha1.ReasonStableRevision, "100/0")
	if diff := cmp.Diff([]string{"web 100/0"}, w.journal.wires[before:]); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	s := w.status()
	if s.Phase != v1alpha1.PhaseIdle || s.Attempt != 1 || s.StableRevision != "Canary-1" || s.History[0].Reason != v1alpha1.ReasonSuperseded {
		t.Errorf("phase %s, attempt %d, stable runs %q, %s", s.Phase, s.Attempt, s.StableRevision, encoded(s.History[0]))
	}
	w.canary.deploy(2)
	w.until(24*time.Hour, "it starts again", func() bool { return w.status().Attempt == 2 && w.wire() == "90/10" })
}

// TestSameTemplateFromTheStart: a rollout that is made where both workloads are the same
// has nothing to do, and begins with the first change.
func TestSameTemplateFromTheStart(t *testing.T) {
	w := newWorld(t, derived(withWorkloads(smallSpec(), v1alpha1.CapacityCheck)))
	w.canary = newFleet(v1alpha1.TrackCanary, 1, 10)
	w.runFor(24 * time.Hour)
	w.expect(v1alpha1.OutcomeSuperseded, v1alpha1.ReasonStableRevision, "100/0")
	if s := w.status(); s.Phase != v1alpha1.PhaseIdle || len(w.journal.wires) > 0 || w.told(v1alpha1.ReasonAttemptStarted) {
		t.Errorf("phase %s, written %v, told %v", s.Phase, w.journal.wires, w.journal.told)
	}
	w.canary.deploy(2)
	w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
	t.Run("from an even split", func(t *testing.T) {
		w := newWorld(t, derived(withWorkloads(smallSpec(), v1alpha1.CapacityCheck)))
		w.canary = newFleet(v1alpha1.TrackCanary, 1, 10)
		w.edit(0, pair{}, "helm")
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeSuperseded, v1alpha1.ReasonStableRevision, "100/0")
	})
	t.Run("with a named revision it is one", func(t *testing.T) {
		w := newWorld(t, withWorkloads(smallSpec(), v1alpha1.CapacityCheck))
		w.canary = newFleet(v1alpha1.TrackCanary, 1, 10)
		w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
	})
}

// TestStatedStableRevision: what the spec says that stable runs is known as stable's; what
// a rollout has left there since counts until the spec says something new.
func TestStatedStableRevision(t *testing.T) {
	spec := smallSpec()
	spec.Stable.Revision = "v1"
	state := func(w *world, revision string) {
		w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Stable.Revision = revision })
	}
	t.Run("going back to it", func(t *testing.T) {
		w := newWorld(t, spec)
		w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
		w.revise("v1")
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeSuperseded, v1alpha1.ReasonStableRevision, "100/0")
	})
	t.Run("from the start", func(t *testing.T) {
		w := newWorld(t, spec)
		w.revise("v1")
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeSuperseded, v1alpha1.ReasonStableRevision, "100/0")
	})
	t.Run("completed since", func(t *testing.T) {
		w := newWorld(t, spec)
		w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
		w.say(v1alpha1.VerbFinish)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
		w.runFor(time.Hour)
		if got := w.status().StableRevision; got != "v2" {
			t.Errorf("stable runs %q", got)
		}
		w.revise("v1")
		w.until(time.Hour, "v1 is a rollout like any other", w.atShare("20"))
		state(w, "v0")
		w.settle()
		if got := w.status().StableRevision; got != "v0" {
			t.Errorf("stable runs %q", got)
		}
	})
	t.Run("taken back", func(t *testing.T) {
		w := newWorld(t, spec)
		w.settle()
		state(w, "")
		w.settle()
		if s := w.status(); s.StableRevision != "v1" || s.StatedStableRevision != "" {
			t.Errorf("stable runs %q, stated %q", s.StableRevision, s.StatedStableRevision)
		}
	})
}

// TestSkip: it ends the soak and the approval of one stage, and is bound to it.
func TestSkip(t *testing.T) {
	t.Run("a soak", func(t *testing.T) {
		w := at20(t)
		began := w.at
		w.say(v1alpha1.VerbSkip)
		w.until(time.Hour, "the stage is over", func() bool { return stageIndex(w.status()) == 2 })
		if took := w.at.Sub(began); took != w.windows.stage {
			t.Errorf("over after %s, and the evidence takes %s", took, w.windows.stage)
		}
		w.until(time.Hour, "it soaks at 50 percent", w.atShare("50"))
		soaks := w.at
		w.until(time.Hour, "that stage is over", func() bool { return stageIndex(w.status()) == 3 })
		if took := w.at.Sub(soaks); took != 6*time.Minute {
			t.Errorf("the next stage is over after %s, and it was not skipped", took)
		}
	})
	t.Run("an approval", func(t *testing.T) {
		spec := smallSpec()
		spec.Plan.Stages[0] = approvedAfter(spec.Plan.Stages[0])
		spec.Plan.Stages[1] = approvedAfter(spec.Plan.Stages[1])
		w := newWorld(t, spec)
		w.until(time.Hour, "it waits", w.reason(v1alpha1.ReasonAwaitingApproval))
		w.say(v1alpha1.VerbSkip)
		w.until(time.Hour, "it has 20 percent", w.atShare("20"))
		w.runFor(10 * time.Hour)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonAwaitingApproval, "80/20")
	})
	t.Run("no gate", func(t *testing.T) {
		w := at20(t)
		w.feel("canary", quiet)
		w.say(v1alpha1.VerbSkip)
		w.runFor(10 * time.Hour)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonAwaitingEvidence, "80/20")
	})
	t.Run("no other stage", func(t *testing.T) {
		w := at20(t)
		for name, c := range map[string]v1alpha1.Command{
			"an earlier one": {ID: "a", Verb: v1alpha1.VerbSkip, Attempt: 1, Stage: new(int32(0))},
			"a later one":    {ID: "b", Verb: v1alpha1.VerbSkip, Attempt: 1, Stage: new(int32(2))},
			"none":           {ID: "c", Verb: v1alpha1.VerbSkip, Attempt: 1},
			"of another try": {ID: "d", Verb: v1alpha1.VerbSkip, Attempt: 2, Stage: new(int32(1))},
		} {
			w.command(c)
			w.settle()
			if s := w.status(); s.Command.Accepted || s.Stage.Skipped {
				t.Errorf("%s: %s", name, encoded(s.Command))
			}
		}
	})
}

// TestRevisionThatIsNotRunning: as long as pods of the template before are behind the
// canary's Service a new revision gets no traffic, though they are ready.
func TestRevisionThatIsNotRunning(t *testing.T) {
	w := derivedWorld(t)
	w.canary.startup = time.Hour
	w.canary.deploy(3)
	w.runFor(50 * time.Minute)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonCanaryNotReady, "100/0")
	if w.status().Attempt != 2 || w.message() == "" {
		t.Errorf("attempt %d: %s", w.status().Attempt, w.message())
	}
	w.until(time.Hour, "it is running", w.atShare("10"))
}

// TestRetryOfWhatStableRanOnce: where stable ran the revision and does not any more, a
// person may have it rolled out.
func TestRetryOfWhatStableRanOnce(t *testing.T) {
	w := newWorld(t, derived(withWorkloads(smallSpec(), v1alpha1.CapacityCheck)))
	w.canary = newFleet(v1alpha1.TrackCanary, 1, 10)
	w.runFor(time.Hour)
	w.say(v1alpha1.VerbRetry)
	w.settle()
	w.expect(v1alpha1.OutcomeSuperseded, v1alpha1.ReasonStableRevision, "100/0")
	if w.status().Command.Accepted {
		t.Error("retry is said to be carried out, and stable runs the revision")
	}
	w.stable.deploy(2)
	w.runFor(time.Hour)
	w.expect(v1alpha1.OutcomeSuperseded, v1alpha1.ReasonStableChanged, "100/0")
	w.say(v1alpha1.VerbRetry)
	w.until(time.Hour, "it is rolled out", w.atShare("20"))
}
