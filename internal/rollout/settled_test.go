package rollout_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// third returns another backend that shares the rule, or none.
func (h *history) third() []gatewayv1.HTTPBackendRef {
	if rapid.IntRange(0, 3).Draw(h.t, "third backend") > 0 {
		return nil
	}
	weight := rapid.Int32Range(0, 500).Draw(h.t, "third weight")
	return []gatewayv1.HTTPBackendRef{backendRef("web-other", &weight)}
}

// settleDown puts everything right, and demands that the rollout comes to a good
// end or says what a person has to do: it never hangs.
func (h *history) settleDown() {
	if h.object.gone {
		return
	}
	h.owner, h.partOwner, h.specProblem, h.stableReady, h.canaryReady = "", "", nil, true, true
	h.gateway = gateway{delay: time.Second}
	h.object.denied, h.object.ordersDenied, h.sleepNext = false, false, false
	h.wakeSleeper()
	if h.skew != 0 {
		h.skew, h.laws.disturbed = 0, h.at
	}
	for i, r := range h.routes {
		r.denied = false
		if r.stored == nil || len(r.stored.Spec.Rules[1].BackendRefs) > 2 {
			h.createRoute(i, weightsOf(100, 0))
		}
	}
	for track := range h.evidence {
		h.feel(track, good)
	}
	h.settleFleets()
	delete(h.object.annotations, v1alpha1.AbortAnnotation)
	calm := smallSpec()
	h.change(func(s *v1alpha1.WeightedRolloutSpec) {
		s.Mode, s.Paused, s.Plan, s.Ramp = v1alpha1.ModeEnforce, false, calm.Plan, calm.Ramp
	})
	h.runFor(time.Minute)
	if c := h.status().Contention; h.status().Pause != nil || c != nil && c.Count > 5 {
		h.say(v1alpha1.VerbResume)
	}
	h.runFor(6 * time.Hour)
	if h.object.deleting {
		if !h.object.gone {
			h.t.Fatalf("a deleted rollout is still there: %s", h.summary())
		}
		return
	}
	ends := []v1alpha1.Outcome{v1alpha1.OutcomePromoted, v1alpha1.OutcomeCompleted, v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeSuperseded}
	stalled := conditionOf(h.status(), v1alpha1.ConditionStalled)
	person := slices.Contains([]string{v1alpha1.ReasonAdoptionAmbiguous, v1alpha1.ReasonInvalidStatus, v1alpha1.ReasonStableChanged}, stalled.Reason)
	if h.status().Outcome == v1alpha1.OutcomePromoted && h.status().Pause != nil && !person {
		h.t.Fatalf("resumed, and stopped again while all is well: %s", h.summary())
	}
	if !slices.Contains(ends, h.status().Outcome) && !person {
		h.t.Fatalf("all is well for hours, and the rollout hangs: %s: %s", h.summary(), conditionOf(h.status(), v1alpha1.ConditionReady).Message)
	}
	if !person {
		h.promotedIsNoEnd()
	}
	if stable := h.status().Outcome != v1alpha1.OutcomePromoted && !person; stable && h.wire() != wireOf(len(h.routes), "100/0") {
		h.t.Fatalf("ended as %s, and the routes carry %s", h.status().Outcome, h.wire())
	}
}

// promotedIsNoEnd demands that a promoted rollout that updates stable comes to an end, or
// says what a person has to do.
func (h *history) promotedIsNoEnd() {
	s := h.status()
	if s.Outcome != v1alpha1.OutcomePromoted || h.object.spec.Promotion.Mode != v1alpha1.PromotionUpdateStable || s.OutcomeReason == v1alpha1.ReasonUnhealthy {
		return
	}
	if ready := conditionOf(s, v1alpha1.ConditionReady); ready.Reason != v1alpha1.ReasonStableChanged {
		h.t.Fatalf("all is well for hours, and stable is not updated: %s: %s: %s", h.summary(), ready.Reason, ready.Message)
	}
}

func wireOf(routes int, weights string) string {
	if routes == 2 {
		return weights + " " + weights
	}
	return weights
}
