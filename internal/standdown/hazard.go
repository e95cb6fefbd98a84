package standdown

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// quiet is how long nobody else may have changed the weights after they were given to
// stable: whoever has just done so is likely to do it again.
const quiet = 30 * time.Second

// underWay tells whether an abort would give stable all traffic. A rollout that is Promoted,
// or on its way back to an updated stable, is left as it is, as a deletion would leave it.
func underWay(wr *v1alpha1.WeightedRollout) bool {
	return !observes(wr) && wr.Status.Outcome == v1alpha1.OutcomeInProgress && !stalledFor(wr, v1alpha1.ReasonRouteConflict)
}

// hazard says why a rollout is not safe without a controller; empty if it is.
func hazard(wr *v1alpha1.WeightedRollout) string {
	if wr.Status.ObservedGeneration < wr.Generation {
		return "the controller has not looked at it as it is now: it does not run, or does not look after this namespace"
	}
	if reason := forAPerson(wr); reason != "" || stalledFor(wr, v1alpha1.ReasonRouteConflict) {
		return reason
	}
	switch wr.Status.Outcome {
	case v1alpha1.OutcomeInProgress:
		if observes(wr) {
			return ""
		}
		return says(wr)
	case v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeCompleted, v1alpha1.OutcomeSuperseded:
		return notAtStable(wr)
	case v1alpha1.OutcomePromoted, v1alpha1.OutcomeReturning:
	}
	return ""
}

// leaves says which share a deletion would leave though nobody has asked for that; empty
// if none.
func leaves(wr *v1alpha1.WeightedRollout) string {
	if wr.Spec.OnDelete == v1alpha1.DeletionKeep {
		return ""
	}
	if reason := forAPerson(wr); reason != "" {
		return reason
	}
	if stalledFor(wr, v1alpha1.ReasonStableUnavailable) && wr.Status.Outcome != v1alpha1.OutcomePromoted && (share(wr) != "0" || carried(wr) != "0") {
		return "it is not deleted, since that would leave the canary at " + share(wr) + " percent: " + says(wr)
	}
	return ""
}

// forAPerson says what the controller does not put right by itself, so that neither an
// abort nor a deletion makes it safe; empty if there is nothing of the kind.
func forAPerson(wr *v1alpha1.WeightedRollout) string {
	s := &wr.Status
	switch {
	case carried(wr) != "0" && unaccounted(wr) != "":
		return unaccounted(wr)
	case stalledFor(wr, v1alpha1.ReasonRouteConflict):
		return "" // The older rollout counts.
	case s.Outcome == v1alpha1.OutcomePromoted:
		return unhealthy(wr)
	case observes(wr) && s.Outcome == v1alpha1.OutcomeInProgress && share(wr) != "0":
		return "its mode is Observe, so that nobody changes the " + share(wr) + " percent that its canary has had: set the mode to Enforce"
	case endsAtStable(s.Outcome) && stalledFor(wr, v1alpha1.ReasonWeightContention):
		return says(wr)
	case endsAtStable(s.Outcome) && observes(wr):
		return notAtStable(wr)
	}
	return ""
}

// unaccounted says why nobody answers for the share that the routes give the canary; empty
// if somebody does.
func unaccounted(wr *v1alpha1.WeightedRollout) string {
	switch {
	case stalledFor(wr, v1alpha1.ReasonRouteConflict) && share(wr) != "0":
		return "its routes give the canary " + carried(wr) + " percent, and it has had " + share(wr) + ", which it does not take back: " + says(wr)
	case stalledFor(wr, v1alpha1.ReasonPartialRouteConflict) && wr.Status.Outcome == "":
		return "nobody knows why the canary has " + carried(wr) + " percent, and no attempt begins: " + says(wr)
	case stalledFor(wr, v1alpha1.ReasonAdoptionAmbiguous):
		return "nobody knows why the canary has " + carried(wr) + " percent: give the retry command to start at 0 percent, or finish if stable runs the canary's version"
	case stalledFor(wr, v1alpha1.ReasonInvalidStatus):
		return says(wr)
	}
	return ""
}

// unhealthy says that a promoted canary is not well, and so nothing to be left alone.
func unhealthy(wr *v1alpha1.WeightedRollout) string {
	var why string
	switch v, p := wr.Status.Verdict, wr.Status.Pause; {
	case p != nil:
		why = p.Message
	case v != nil && v.State == v1alpha1.VerdictUnhealthy:
		why = v.Message
	default:
		return ""
	}
	cure := "abort it, or give the resume command if the canary is well"
	if observes(wr) {
		cure = "set the mode to Enforce, since an observing rollout writes nothing, and then " + cure
	}
	return fmt.Sprintf("the canary serves everything and is unhealthy (%s): %s", why, cure)
}

// endsAtStable tells whether an attempt of this outcome has left all traffic to stable.
func endsAtStable(o v1alpha1.Outcome) bool {
	return o == v1alpha1.OutcomeRolledBack || o == v1alpha1.OutcomeCompleted || o == v1alpha1.OutcomeSuperseded
}

// notAtStable says why stable does not serve everything for certain, though it has been
// given everything; empty if it does.
func notAtStable(wr *v1alpha1.WeightedRollout) string {
	s := &wr.Status
	var why string
	switch {
	case s.Share.ConfirmedAt == nil && !settled(wr):
		why = "not every gateway has taken that: " + routesSay(s)
	case carried(wr) != "0":
		why = "its routes give the canary " + carried(wr) + " percent" + by(s.Contention)
	case s.Contention != nil && s.Contention.At != nil && justNow(s.Contention.At.Time):
		why = "a moment ago the weights were changed" + by(s.Contention) + ": let it leave backendRefs[].weight alone"
	default:
		return ""
	}
	if observes(wr) {
		why += "; set the mode to Enforce, since an observing rollout writes nothing"
	}
	return "stable has been given everything, but " + why
}

// justNow tells whether a time is less than quiet ago. The controller's clock may be
// another; a time that is still to come says nothing.
func justNow(at time.Time) bool {
	ago := time.Since(at)
	return ago >= 0 && ago < quiet
}

func by(c *v1alpha1.ContentionStatus) string {
	switch {
	case c == nil:
		return ""
	case c.Manager == "":
		return " by another writer"
	}
	return " by " + c.Manager
}

// settled tells whether there are routes, and each has either been taken by its gateways
// with nothing for the canary, or has nothing to give it.
func settled(wr *v1alpha1.WeightedRollout) bool {
	routes := wr.Status.Routes
	return len(routes) > 0 && carried(wr) == "0" && !slices.ContainsFunc(routes, func(r v1alpha1.RouteStatus) bool {
		return r.Reason != "" && !givesNothing(wr, r)
	})
}

// givesNothing tells whether a route is gone, or has no rule with both backends, which is
// as much as if it were. Where the spec names several rules, one of them may have both.
func givesNothing(wr *v1alpha1.WeightedRollout, r v1alpha1.RouteStatus) bool {
	if r.Reason == v1alpha1.ReasonRouteMissing {
		return true
	}
	return r.Reason == v1alpha1.ReasonNoMatchingRule && !slices.ContainsFunc(wr.Spec.Routes, func(ref v1alpha1.RouteReference) bool {
		return ref.Name == r.Name && len(ref.RuleNames) > 1
	})
}

// routesSay is what is known of the routes that are not settled.
func routesSay(s *v1alpha1.WeightedRolloutStatus) string {
	for _, r := range s.Routes {
		if r.Message != "" && r.Reason != v1alpha1.ReasonRouteMissing {
			return r.Message
		}
	}
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionRouteAccepted); c != nil {
		return c.Message
	}
	return "nothing is known of its routes"
}

// carried is the highest share that the weights in the routes stand for, as the controller
// has seen them last; "0" where no route has such weights.
func carried(wr *v1alpha1.WeightedRollout) string {
	s := wr.Status.Share
	if s.Observed == nil || s.ObservedFrom != v1alpha1.ShareFromWeights {
		return "0"
	}
	return string(*s.Observed)
}

// share is the share that the controller has written last, or is to write.
func share(wr *v1alpha1.WeightedRollout) string {
	if wr.Status.Share.Desired == nil {
		return "0"
	}
	return string(*wr.Status.Share.Desired)
}

func attempt(wr *v1alpha1.WeightedRollout) string { return strconv.FormatInt(wr.Status.Attempt, 10) }

func observes(wr *v1alpha1.WeightedRollout) bool { return wr.Spec.Mode == v1alpha1.ModeObserve }

// stalledFor tells whether a person has to do something about a rollout, for this reason.
func stalledFor(wr *v1alpha1.WeightedRollout, reason string) bool {
	c := meta.FindStatusCondition(wr.Status.Conditions, v1alpha1.ConditionStalled)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reason
}

// says is what a rollout says of itself.
func says(wr *v1alpha1.WeightedRollout) string {
	if c := meta.FindStatusCondition(wr.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Message
	}
	return "it has no status: the controller does not run, or does not look after its namespace"
}
