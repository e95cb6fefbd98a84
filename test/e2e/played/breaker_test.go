package played

import (
	"strings"
	"testing"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestBreak: an unhealthy canary gets nothing for the cooldown, comes back with half
// of its stage's share, and is rolled back when it is unhealthy once more.
func TestBreak(t *testing.T) {
	w := newWorld(t)
	w.create(newRoute(w.namespace, "web", nil, nil))
	w.rolloutFor("web", stages("1s", "20", "40"), soak(1, "10m"), func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Ramp.Warmup = v1alpha1.Warmup{InitialPercent: "100", Soak: "2s", IncrementPercent: "50"}
		wr.Spec.OnUnhealthy = v1alpha1.OnUnhealthy{Action: v1alpha1.UnhealthyBreak, For: "1s", Cooldown: "3s", MaxTrips: 1}
	})
	w.startManager()
	w.awaitShare("web", "40")
	w.prom.set(w.namespace, canaryOf("web"), traffic{perSecond: 50, failed: 0.25})
	w.awaitPhase("web", v1alpha1.PhaseCoolingDown)
	w.awaitShare("web", "0")
	w.prom.set(w.namespace, canaryOf("web"), traffic{perSecond: 50})
	w.awaitShare("web", "40")
	if b := w.get("web").Status.Breaker; b == nil || b.Trips != 1 || b.OpenedAt != nil || !strings.Contains(b.Message, "requests failed") {
		t.Errorf("status.breaker is %+v", b)
	}
	w.prom.set(w.namespace, canaryOf("web"), traffic{perSecond: 50, failed: 0.25})
	wr := w.awaitPhase("web", v1alpha1.PhaseRolledBack)
	if !strings.Contains(wr.Status.OutcomeMessage, "unhealthy again after 1 breaks") {
		t.Errorf("outcome: %s", wr.Status.OutcomeMessage)
	}
	w.wantWeights("web", "1/1", "100/0", "80/20", "60/40", "100/0", "70/30", "60/40", "100/0")
	w.checkLaws()
}

// TestStop: with action Pause the share stays where it is until a person says resume.
func TestStop(t *testing.T) {
	w := newWorld(t)
	w.create(newRoute(w.namespace, "web", nil, nil))
	w.rolloutFor("web", stages("1s", "20", "40"), soak(0, "5s"), func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.OnUnhealthy = v1alpha1.OnUnhealthy{Action: v1alpha1.UnhealthyPause, For: "1s"}
	})
	w.startManager()
	w.awaitShare("web", "20")
	w.prom.set(w.namespace, canaryOf("web"), traffic{perSecond: 50, failed: 0.25})
	wr := w.awaitPhase("web", v1alpha1.PhasePaused)
	if c := condition(wr, v1alpha1.ConditionStalled); c.Status != "True" || c.Reason != v1alpha1.ReasonUnhealthy || !strings.Contains(c.Message, "Give the resume command, or abort") {
		t.Errorf("Stalled is %+v", c)
	}
	w.prom.set(w.namespace, canaryOf("web"), traffic{perSecond: 50})
	// Better numbers and a restart start nothing.
	w.awaitVerdict("web", v1alpha1.VerdictHealthy, v1alpha1.ReasonChecksPassed)
	w.killManager()
	w.startManager()
	w.command("web", v1alpha1.VerbResume)
	w.awaitPhase("web", v1alpha1.PhasePromoted)
	w.wantWeights("web", "1/1", "100/0", "80/20", "60/40", "30/70", "0/100")
	w.checkLaws()
}
