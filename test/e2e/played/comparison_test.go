package played

import (
	"strings"
	"testing"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// wideLimits let both tracks fail often, so that only the comparison can tell them
// apart.
func wideLimits(wr *v1alpha1.WeightedRollout) {
	wr.Spec.Health.ErrorRate = &v1alpha1.ErrorRate{MaxPercent: "40"}
	wr.Spec.Health.Latency = nil
	wr.Spec.Health.DegradedBelow = "0.2"
	// What is proven is acted upon without waiting for this.
	wr.Spec.OnUnhealthy.For = "1h"
}

// TestWorseThanStable: a canary that fails far more often than stable is rolled back at
// once, though it is within its limit; one that fails as often as stable is not.
func TestWorseThanStable(t *testing.T) {
	w := newWorld(t)
	w.rollout("worse", wideLimits, soak(1, "10m"))
	w.rollout("alike", wideLimits, soak(1, "10m"))
	often := traffic{perSecond: 200, failed: 0.25}
	w.prom.set(w.namespace, stableOf("worse"), traffic{perSecond: 500, failed: 0.02})
	w.prom.set(w.namespace, canaryOf("worse"), often)
	w.prom.set(w.namespace, stableOf("alike"), often)
	w.prom.set(w.namespace, canaryOf("alike"), often)
	w.startManager()
	wr := w.awaitPhase("worse", v1alpha1.PhaseRolledBack)
	if wr.Status.OutcomeReason != v1alpha1.ReasonUnhealthy || !strings.Contains(wr.Status.OutcomeMessage, "worse than stable") ||
		wr.Status.Verdict == nil || wr.Status.Verdict.Reason != v1alpha1.ReasonWorseThanStable || wr.Status.Comparison != nil {
		t.Errorf("worse: %s: %s, verdict %+v", wr.Status.OutcomeReason, wr.Status.OutcomeMessage, wr.Status.Verdict)
	}
	w.wantWeights("worse", "100/0", "99/1", "100/0")
	wr = w.awaitShare("alike", "5")
	if wr.Status.Comparison == nil || wr.Status.Comparison.Through == nil {
		t.Errorf("alike: the comparison at the first share is not kept: %+v", wr.Status.Comparison)
	}
}

// TestNotWorse: where the spec wants the proof, a stage ends with it, and without it
// does not.
func TestNotWorse(t *testing.T) {
	w := newWorld(t)
	proof := func(margin v1alpha1.Percent) change {
		return func(wr *v1alpha1.WeightedRollout) {
			wideLimits(wr)
			wr.Spec.Health.Require = v1alpha1.RequireNotWorse
			wr.Spec.Health.ErrorRate.MaxAboveStablePercent = margin
		}
	}
	w.rollout("proven", proof("10"), soak(1, "10m"))
	w.rollout("unproven", proof("0.01"), soak(1, "10m"))
	for _, name := range []string{"proven", "unproven"} {
		w.prom.set(w.namespace, stableOf(name), traffic{perSecond: 500, failed: 0.02})
		w.prom.set(w.namespace, canaryOf(name), traffic{perSecond: 200, failed: 0.02})
	}
	w.startManager()
	wr := w.awaitVerdict("unproven", v1alpha1.VerdictUnknown, v1alpha1.ReasonNotProven)
	if c := condition(wr, v1alpha1.ConditionHealthy); !strings.Contains(c.Message, "not proven yet") || !strings.Contains(c.Message, "more requests") {
		t.Errorf("the condition says %q", c.Message)
	}
	w.awaitShare("proven", "5")
	w.awaitQuestions(held, "requests_total")
	w.wantWeights("unproven", "100/0", "99/1")
}
