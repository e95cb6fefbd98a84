package rollout_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
)

// readiness checks what is said of an attempt that has ended.
func (w *world) readiness(reason string) {
	w.tb.Helper()
	w.settle()
	ready, stalled := conditionOf(w.status(), v1alpha1.ConditionReady), conditionOf(w.status(), v1alpha1.ConditionStalled)
	isReady := reason != v1alpha1.ReasonStableChanged
	if ready.Reason != reason || (ready.Status == "True") != isReady || (stalled.Status == "True") == isReady {
		w.tb.Fatalf("Ready %s, Stalled %s with %s, want %s: %s", ready.Status, stalled.Status, ready.Reason, reason, ready.Message)
	}
	if says := strings.Contains(ready.Message, "stable runs revision"); says != isReady {
		w.tb.Fatalf("%s says %q", reason, ready.Message)
	}
	if w.status().StableRevision == w.status().Revision != isReady {
		w.tb.Fatalf("%s: stable runs %q, on record", reason, w.status().StableRevision)
	}
	if why := w.refuses(v1alpha1.VerbRetry); (why == "") == isReady {
		w.tb.Fatalf("%s: retry is refused with %q", reason, why)
	}
}

// refuses is what a person is told who sees only the object.
func (w *world) refuses(verb v1alpha1.Verb) string {
	o := &w.object
	c := v1alpha1.Command{ID: "asked", Verb: verb, Attempt: o.status.Attempt}
	if s := o.status.Stage; s != nil {
		c.Stage = &s.Index
	}
	return rollout.Refusal(onlyTheObject(rollout.Observation{Generation: o.generation, Spec: &o.spec, Status: &o.status, Deleting: o.deleting}), c, w.clock())
}

// onlyTheObject is what can be seen of an observation without the controller's rights.
func onlyTheObject(o rollout.Observation) rollout.Observation {
	return rollout.Observation{
		Name: o.Name, Generation: o.Generation, Spec: o.Spec, Status: o.Status, Deleting: o.Deleting,
		Owner: o.Owner, PartOwner: o.PartOwner, StableReady: true, CanaryReady: true,
	}
}

// TestReadyFollowsWhatStableRuns: an attempt that ended since stable ran its revision is
// Ready as long as stable does.
func TestReadyFollowsWhatStableRuns(t *testing.T) {
	same := func(t *testing.T) *world {
		w := newWorld(t, derived(withWorkloads(smallSpec(), v1alpha1.CapacityCheck)))
		w.canary = newFleet(v1alpha1.TrackCanary, 1, 10)
		w.runFor(time.Hour)
		w.readiness(v1alpha1.ReasonStableRevision)
		return w
	}
	promoted := func(t *testing.T) *world {
		w := derivedWorld(t)
		w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
		return w
	}
	t.Run("superseded", func(t *testing.T) {
		w := same(t)
		w.stable.deploy(2)
		w.readiness(v1alpha1.ReasonStableChanged)
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeSuperseded, v1alpha1.ReasonStableChanged, "100/0")
		w.stable.deploy(1)
		w.readiness(v1alpha1.ReasonStableRevision)
		w.stable.deploy(3)
		w.readiness(v1alpha1.ReasonStableChanged)
		w.say(v1alpha1.VerbRetry)
		w.until(time.Hour, "it is rolled out", w.atShare("20"))
	})
	t.Run("the canary changes", func(t *testing.T) {
		w := same(t)
		w.canary.deploy(2)
		w.settle()
		if got := w.status().StableRevision; got != "Canary-1" || w.status().Attempt != 2 {
			t.Errorf("stable runs %q, on record, in attempt %d", got, w.status().Attempt)
		}
	})
	t.Run("completed", func(t *testing.T) {
		w := promoted(t)
		w.stable.deploy(2)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
		w.readiness(v1alpha1.ReasonCompleted)
		w.stable.deploy(1)
		w.readiness(v1alpha1.ReasonStableChanged)
		w.stable.deploy(2)
		w.readiness(v1alpha1.ReasonCompleted)
		w.stable.deploy(1)
		w.readiness(v1alpha1.ReasonStableChanged)
		w.say(v1alpha1.VerbRetry)
		w.until(time.Hour, "it is rolled out", w.atShare("20"))
	})
	t.Run("finished by a person", func(t *testing.T) {
		w := promoted(t)
		w.say(v1alpha1.VerbFinish)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
		w.stable.deploy(7) // nobody has said that the templates are to be the same
		w.readiness(v1alpha1.ReasonCompleted)
	})
	t.Run("by the spec's word", func(t *testing.T) {
		spec := smallSpec()
		spec.Revision, spec.Stable.Revision = "v1", "v1"
		w := newWorld(t, spec)
		w.runFor(time.Hour)
		w.readiness(v1alpha1.ReasonStableRevision)
		for _, says := range []struct{ revision, reason string }{{"v0", v1alpha1.ReasonStableChanged}, {"v1", v1alpha1.ReasonStableRevision}} {
			w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Stable.Revision = says.revision })
			w.readiness(says.reason)
		}
	})
}

// TestHealthIsOfNow: where nothing is measured, the last verdict is told as the last one.
func TestHealthIsOfNow(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(w *world)
		says string
	}{
		"completed": {func(w *world) {
			w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
			w.say(v1alpha1.VerbFinish)
			w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
		}, "no attempt is under way; the last verdict was Healthy (ChecksPassed): "},
		"rolled back": {func(w *world) {
			w.feel("canary", bad)
			w.runFor(time.Hour)
		}, "no attempt is under way; the last verdict was Unhealthy (Breach): "},
		"another owner": {func(w *world) { w.owner = "older" }, "an older rollout manages the routes; the last verdict was Healthy (ChecksPassed): "},
	} {
		w := newWorld(t, smallSpec())
		w.until(time.Hour, "a stage has ended", func() bool { return stageIndex(w.status()) == 1 })
		test.do(w)
		w.settle()
		if c := conditionOf(w.status(), v1alpha1.ConditionHealthy); c.Status != "Unknown" || !strings.Contains(c.Message, test.says) {
			t.Errorf("%s: %s: %s", name, c.Status, c.Message)
		}
	}
}

// oneAnswer is that of the controller to a command, and of whoever asks before it is given.
func oneAnswer(s seen) string {
	c, done := s.obs.Orders.Command, s.is.Command
	if c == nil || done == nil || done.ID != c.ID || s.was.Command != nil && s.was.Command.ID == c.ID {
		return ""
	}
	switch {
	case c.Verb == v1alpha1.VerbFinish && (s.was.Share.Desired == nil || s.was.Outcome == ""):
		return "" // the answer lies in the routes
	case s.toldBeforeTheCommand() || s.was.StableRevision != s.is.StableRevision:
		return "" // what it is about has changed in the same decision
	case !done.Accepted && (s.is.Attempt != s.was.Attempt || s.is.Outcome != s.was.Outcome || s.told(v1alpha1.ReasonPlanChanged)):
		return "" // what was asked for was undone in the same decision
	case c.Verb == v1alpha1.VerbRetry && !s.obs.StableReady:
		return "" // the answer lies in the endpoints
	}
	if why := rollout.Refusal(onlyTheObject(s.obs), *c, s.now); done.Accepted != (why == "") || why != "" && done.Message != why {
		return fmt.Sprintf("%s: accepted %t (%s), and beforehand the answer was %q", c.Verb, done.Accepted, done.Message, why)
	}
	return ""
}

// toldBeforeTheCommand reports whether a decision had changed something before it came to the
// command. A verdict is always told first.
func (s seen) toldBeforeTheCommand() bool {
	for _, e := range s.d.Events {
		switch e.Reason {
		case v1alpha1.ReasonVerdictChanged:
		case v1alpha1.ReasonCommandAccepted, v1alpha1.ReasonCommandIgnored:
			return !reflect.DeepEqual(s.was.Contention, s.is.Contention) && s.is.Command.Verb == string(v1alpha1.VerbResume)
		default:
			return true
		}
	}
	return true
}

// TestUnheardOrders: where no order is looked at, that is said beforehand.
func TestUnheardOrders(t *testing.T) {
	for name, change := range map[string]func(*rollout.Observation){
		"deleted":       func(o *rollout.Observation) { o.Deleting = true },
		"observed only": func(o *rollout.Observation) { o.Spec.Mode = v1alpha1.ModeObserve },
		"another owner": func(o *rollout.Observation) { o.Owner = "older" },
		"part owner, no record": func(o *rollout.Observation) {
			o.PartOwner, o.Status = "older", &v1alpha1.WeightedRolloutStatus{}
		},
	} {
		w := at20(t)
		obs := w.observe()
		change(&obs)
		for _, verb := range []v1alpha1.Verb{v1alpha1.VerbApprove, v1alpha1.VerbSkip, v1alpha1.VerbPromote, v1alpha1.VerbRetry, v1alpha1.VerbFinish, v1alpha1.VerbResume} {
			c := v1alpha1.Command{ID: "asked", Verb: verb, Attempt: obs.Status.Attempt}
			obs.Orders.Command = &c
			d := rollout.Decide(obs, w.clock())
			if d.Status.Command != nil || rollout.Refusal(onlyTheObject(obs), c, w.clock()) == "" {
				t.Errorf("%s: %s is answered with %s", name, verb, encoded(d.Status.Command))
			}
		}
		if why := rollout.AbortRefusal(onlyTheObject(obs), w.clock()); why == "" {
			t.Errorf("%s: an abort is not refused", name)
		}
	}
}
