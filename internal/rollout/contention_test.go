package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
)

// fought is a world at 20 percent in which a sync tool has begun to set the weights.
func fought(t *testing.T, every time.Duration, weights pair) *world {
	w := at20(t)
	w.sync(every, weights)
	return w
}

// TestC25SyncToolEveryTwoSeconds: the weights are raised again five times, with growing
// pauses, and then no more; the condition names the other writer, and the writes are
// few.
func TestC25SyncToolEveryTwoSeconds(t *testing.T) {
	w := fought(t, 2*time.Second, weightsOf(100, 0))
	var raised []time.Time
	for range 300 {
		before := len(w.journal.wires)
		w.runFor(time.Second)
		if len(w.journal.wires) > before {
			raised = append(raised, w.at)
		}
	}
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonWeightContention, "100/0")
	if c := conditionOf(w.status(), v1alpha1.ConditionStalled); c.Status != "True" || !strings.HasPrefix(c.Message, "argocd keeps changing the weights") {
		t.Errorf("%s: %s", c.Status, c.Message)
	}
	if len(raised) != 5 {
		t.Errorf("raised %d times, want 5", len(raised))
	}
	for i, pause := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second} {
		// A raise from 0 waits for nothing but the confirmation and the pause.
		if i+1 < len(raised) && raised[i+1].Sub(raised[i]) < pause {
			t.Errorf("raise %d comes %s after the one before, want %s at least", i+2, raised[i+1].Sub(raised[i]), pause)
		}
	}
	if !w.told(v1alpha1.ReasonWeightContention) {
		t.Errorf("told %v", w.journal.told)
	}
	routes, status := len(w.journal.wires), w.journal.statusWrites
	w.runFor(time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonWeightContention, "100/0")
	if more := len(w.journal.wires) - routes; more != 0 {
		t.Errorf("%d writes to the route in an hour", more)
	}
	if more := w.journal.statusWrites - status; more > 62 {
		t.Errorf("%d writes to the status in an hour", more)
	}
}

// TestC25SyncToolWithoutWeights: a tool that leaves the weights out writes 1 and 1, which
// is more than the canary may have. It is lowered, once a minute in the end.
func TestC25SyncToolWithoutWeights(t *testing.T) {
	for name, weights := range map[string]pair{"left out": {}, "1/1": weightsOf(1, 1)} {
		t.Run(name, func(t *testing.T) {
			w := fought(t, 2*time.Second, weights)
			w.runFor(5 * time.Minute)
			w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonWeightContention, w.wire())
			routes, status := len(w.journal.wires), w.journal.statusWrites
			w.runFor(time.Hour)
			w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonWeightContention, w.wire())
			if more := len(w.journal.wires) - routes; more < 58 || more > 61 {
				t.Errorf("%d writes to the route in an hour", more)
			}
			if more := w.journal.statusWrites - status; more > 300 {
				t.Errorf("%d writes to the status in an hour", more)
			}
			for _, canary := range w.journal.shares("web")[routes:] {
				if canary != "20" {
					t.Errorf("the canary gets %s percent", canary)
				}
			}
		})
	}
}

// TestC25SyncToolEveryThreeMinutes is as much of a fight, and ends as one.
func TestC25SyncToolEveryThreeMinutes(t *testing.T) {
	w := fought(t, 3*time.Minute, weightsOf(100, 0))
	w.runFor(30 * time.Minute)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonWeightContention, "100/0")
	writes := w.controller.writes
	w.runFor(10 * time.Hour)
	if more := w.controller.writes - writes; more > 0 {
		t.Errorf("%d writes in ten hours in which the tool wrote nothing", more)
	}
}

// TestC25TwoRoutes: a fight about one route is one, whatever was written to another.
func TestC25TwoRoutes(t *testing.T) {
	w := newWorld(t, alsoRoute(smallSpec()))
	for range 30 {
		w.edit(0, weightsOf(100, 0), "kubectl-edit")
	}
	w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
	w.edit(0, weightsOf(90, 10), "kubectl-edit")
	w.runFor(time.Minute)
	var wires int
	for range 300 {
		if w.live(1).String() != "1/1" {
			w.edit(1, weightsOf(1, 1), "argocd")
		}
		w.runFor(2 * time.Second)
		if wires = len(w.journal.wires); wires > 100 {
			t.Fatalf("%d writes in %s", wires, offset(w.at))
		}
	}
	if !w.reason(v1alpha1.ReasonWeightContention)() {
		t.Errorf("%s: %s", w.summary(), w.message())
	}
}

// TestC25Resume: once the tool is put right a person says resume, and the plan is
// completed.
func TestC25Resume(t *testing.T) {
	w := fought(t, 2*time.Second, weightsOf(100, 0))
	w.runFor(5 * time.Minute)
	w.syncTool = nil
	w.runFor(10 * time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonWeightContention, "100/0")
	w.say(v1alpha1.VerbResume)
	w.settle()
	if c := w.status().Command; !c.Accepted || w.status().Contention != nil {
		t.Fatalf("%s, %s", encoded(c), encoded(w.status().Contention))
	}
	w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
}

// TestC25Quiet: what a person does now and then is no fight. Ten minutes without a
// foreign write, and the count begins anew.
func TestC25Quiet(t *testing.T) {
	t.Run("two edits of a person", func(t *testing.T) {
		w := at20(t)
		w.edit(0, weightsOf(95, 5), "kubectl-edit")
		w.runFor(time.Minute)
		w.edit(0, weightsOf(50, 50), "kubectl-edit")
		w.runFor(5 * time.Second)
		if w.reason(v1alpha1.ReasonWeightContention)() {
			t.Errorf("held: %s", w.message())
		}
		w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
		if w.told(v1alpha1.ReasonWeightContention) {
			t.Errorf("told %v", w.journal.told)
		}
	})
	t.Run("an edit every eleven minutes", func(t *testing.T) {
		spec := smallSpec()
		spec.Plan.Stages[1].Soak = "5h"
		w := newWorld(t, spec)
		w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
		for range 20 {
			w.edit(0, weightsOf(50, 50), "kubectl-edit")
			w.runFor(11 * time.Minute)
			w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonSoaking, "80/20")
		}
		if n := w.status().Contention.Count; n != 1 {
			t.Errorf("counted %d", n)
		}
	})
}

// TestC25RolledBack: a rollout that is rolled back gives stable everything at once, and
// is as moderate afterwards.
func TestC25RolledBack(t *testing.T) {
	rolledBack := func(t *testing.T, after time.Duration) *world {
		w := fought(t, 2*time.Second, weightsOf(1, 1))
		w.runFor(after)
		w.abort(1)
		w.settle()
		if w.status().Outcome != v1alpha1.OutcomeRolledBack || w.wire() != "100/0" {
			t.Fatalf("not rolled back at once: %s", w.summary())
		}
		return w
	}
	for _, after := range []time.Duration{0, 10 * time.Second, 5 * time.Minute} {
		t.Run(after.String(), func(t *testing.T) {
			w := rolledBack(t, after)
			w.runFor(5 * time.Minute)
			routes, status := len(w.journal.wires), w.journal.statusWrites
			w.runFor(time.Hour)
			w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonWeightContention, w.wire())
			if more := len(w.journal.wires) - routes; more < 55 || more > 61 {
				t.Errorf("%d writes to the route in an hour", more)
			}
			if more := w.journal.statusWrites - status; more > 300 {
				t.Errorf("%d writes to the status in an hour", more)
			}
			if !strings.Contains(w.message(), "rolled back: aborted by the abort order") {
				t.Errorf("message %q", w.message())
			}
			w.syncTool = nil
			w.runFor(12 * time.Minute)
			w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonAborted, "100/0")
		})
	}
	t.Run("after a crash", func(t *testing.T) {
		w := fought(t, 2*time.Second, weightsOf(1, 1))
		w.runFor(5 * time.Minute)
		w.syncTool = nil
		w.edit(0, weightsOf(1, 1), "argocd")
		w.runFor(time.Second)
		w.abort(1)
		w.controller.crash = crash{write: w.controller.writes + 1}
		w.settle()
		if w.wire() != "100/0" {
			t.Errorf("a crash between record and route delays the rollback: %s", w.summary())
		}
	})
}

// TestOvertakenIntent: others edit a route, and leave the weights alone, so often that the
// write of an intent meets one of them each time. What is not written yet cannot have been
// taken back, and is no fight.
func TestOvertakenIntent(t *testing.T) {
	for _, overtaken := range []bool{true, false} {
		obs := at20(t).observe()
		obs.Status.Share.Desired = new(v1alpha1.Percent("10"))
		obs.Status.Share.ConfirmedAt = nil
		obs.Routes[0].Generation += 3
		obs.Routes[0].Writer = "storm"
		obs.Routes[0].Overtaken = overtaken
		d := rollout.Decide(obs, start.Add(time.Hour))
		if fought := d.Status.Contention != nil; fought == overtaken {
			t.Errorf("overtaken: %t; contention %s, %v", overtaken, encoded(d.Status.Contention), d.Events)
		}
		if percent := d.Status.Share.Desired; *percent != "10" {
			t.Errorf("overtaken: %t; %s percent are desired", overtaken, *percent)
		}
	}
}
