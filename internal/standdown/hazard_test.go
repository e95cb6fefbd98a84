package standdown

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

type change func(*v1alpha1.WeightedRollout)

// rollout is one of namespace shop that the controller has looked at: its first attempt is
// under way, and the canary has 30 percent.
func rollout(name string, changes ...change) *v1alpha1.WeightedRollout {
	wr := &v1alpha1.WeightedRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1, Finalizers: []string{v1alpha1.Finalizer}}}
	wr.Spec.Routes = []v1alpha1.RouteReference{{Kind: v1alpha1.HTTPRouteKind, Name: name}}
	wr.Status.ObservedGeneration, wr.Status.Attempt, wr.Status.Outcome = 1, 1, v1alpha1.OutcomeInProgress
	for _, c := range append([]change{desired("30"), observed("30"), confirmed, routes("")}, changes...) {
		c(wr)
	}
	return wr
}

func outcome(o v1alpha1.Outcome) change {
	return func(wr *v1alpha1.WeightedRollout) { wr.Status.Outcome = o }
}

func desired(p v1alpha1.Percent) change {
	return func(wr *v1alpha1.WeightedRollout) { wr.Status.Share.Desired = &p }
}

// observed sets the share that the weights in the routes stand for.
func observed(p v1alpha1.Percent) change {
	return func(wr *v1alpha1.WeightedRollout) {
		wr.Status.Share.Observed, wr.Status.Share.ObservedFrom = &p, v1alpha1.ShareFromWeights
	}
}

func confirmed(wr *v1alpha1.WeightedRollout) {
	wr.Status.Share.ConfirmedAt = &metav1.MicroTime{Time: time.Now()}
}

func unconfirmed(wr *v1alpha1.WeightedRollout) { wr.Status.Share.ConfirmedAt = nil }

// routes sets what is wrong with each route.
func routes(reasons ...string) change {
	return func(wr *v1alpha1.WeightedRollout) {
		wr.Status.Routes = nil
		for _, reason := range reasons {
			r := v1alpha1.RouteStatus{Kind: v1alpha1.HTTPRouteKind, Name: wr.Name, Reason: reason}
			if reason != "" {
				r.Message = "it is " + reason
			}
			wr.Status.Routes = append(wr.Status.Routes, r)
		}
	}
}

func stalled(reason, message string) change {
	return func(wr *v1alpha1.WeightedRollout) {
		for _, kind := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionReady} {
			meta.SetStatusCondition(&wr.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message})
		}
	}
}

func observe(wr *v1alpha1.WeightedRollout) { wr.Spec.Mode = v1alpha1.ModeObserve }

func keep(wr *v1alpha1.WeightedRollout) { wr.Spec.OnDelete = v1alpha1.DeletionKeep }

func ruleNames(names ...string) change {
	return func(wr *v1alpha1.WeightedRollout) { wr.Spec.Routes[0].RuleNames = names }
}

func contention(manager string, ago time.Duration) change {
	return func(wr *v1alpha1.WeightedRollout) {
		wr.Status.Contention = &v1alpha1.ContentionStatus{Manager: manager, Count: 1, At: &metav1.MicroTime{Time: time.Now().Add(-ago)}}
	}
}

func pause(message string) change {
	return func(wr *v1alpha1.WeightedRollout) { wr.Status.Pause = &v1alpha1.PauseStatus{Message: message} }
}

func verdict(state v1alpha1.VerdictState) change {
	return func(wr *v1alpha1.WeightedRollout) {
		wr.Status.Verdict = &v1alpha1.VerdictStatus{State: state, Message: "error-rate 50 %"}
	}
}

// rolledBack is what becomes of an aborted attempt.
func rolledBack(changes ...change) *v1alpha1.WeightedRollout {
	return rollout("web", append([]change{outcome(v1alpha1.OutcomeRolledBack), desired("0"), observed("0")}, changes...)...)
}

func promoted(changes ...change) *v1alpha1.WeightedRollout {
	return rollout("web", append([]change{outcome(v1alpha1.OutcomePromoted), desired("100"), observed("100")}, changes...)...)
}

// TestHazard: abort and deletion are what is said of a rollout before an uninstallation that
// keeps the rollouts, and before one that deletes them. Empty is safe.
func TestHazard(t *testing.T) {
	const (
		enforce  = "set the mode to Enforce"
		notTaken = "not every gateway has taken that"
	)
	tests := map[string]struct {
		wr              *v1alpha1.WeightedRollout
		abort, deletion string
	}{
		"under way":  {rollout("web", stalled("Soaking", "at 30 percent")), "at 30 percent", ""},
		"unseen":     {rollout("web", func(wr *v1alpha1.WeightedRollout) { wr.Generation = 2 }), "has not looked at it", ""},
		"unhealthy":  {rollout("web", pause("error-rate 50 %"), stalled("Unhealthy", "held at 30 percent")), "held at 30 percent", ""},
		"partly its": {rollout("web", stalled(v1alpha1.ReasonPartialRouteConflict, "held: the older")), "held: the older", ""},
		"only observed, never raised": {
			rollout("web", observe, desired("0")), "", "",
		},
		"raised, and only observed now": {rollout("web", observe), enforce, enforce},
		"the same, to be kept":          {rollout("web", observe, keep), enforce, ""},

		"rolled back":                 {rolledBack(), "", ""},
		"rolled back, not taken":      {rolledBack(unconfirmed, observed("30"), routes(v1alpha1.ReasonRouteNotConfirmed)), notTaken + ": it is RouteNotConfirmed", ""},
		"rolled back, not written":    {rolledBack(unconfirmed, observed("30"), routes("")), notTaken, ""},
		"rolled back, counted before": {rolledBack(func(wr *v1alpha1.WeightedRollout) { wr.Status.Share.ObservedFrom = v1alpha1.ShareFromRequests }, func(wr *v1alpha1.WeightedRollout) { *wr.Status.Share.Observed = "29.8" }), "", ""},
		"its weights are others":      {rolledBack(observed("30"), contention("argocd", time.Hour)), "its routes give the canary 30 percent by argocd", ""},
		"another writer keeps them": {
			rolledBack(observed("0"), stalled(v1alpha1.ReasonWeightContention, "argocd keeps changing the weights")),
			"argocd keeps changing", "argocd keeps changing",
		},
		"the same of a completed one": {
			rolledBack(outcome(v1alpha1.OutcomeCompleted), stalled(v1alpha1.ReasonWeightContention, "argocd keeps changing the weights")),
			"argocd keeps changing", "argocd keeps changing",
		},
		"another writer was here just now":  {rolledBack(contention("argocd", time.Second)), "changed by argocd", ""},
		"one without a name":                {rolledBack(contention("", time.Second)), "changed by another writer", ""},
		"another writer was here once":      {rolledBack(contention("argocd", time.Hour)), "", ""},
		"rolled back, not taken, observed":  {rolledBack(unconfirmed, routes(v1alpha1.ReasonRouteNotConfirmed), observe), enforce, enforce},
		"rolled back, taken since, observe": {rolledBack(unconfirmed, observe), "", ""},
		"rolled back, edited, observed":     {rolledBack(observed("60"), observe), "60 percent; " + enforce, enforce},

		"its route is gone":             {rolledBack(unconfirmed, routes(v1alpha1.ReasonRouteMissing)), "", ""},
		"one is gone, one taken":        {rolledBack(unconfirmed, routes(v1alpha1.ReasonRouteMissing, "")), "", ""},
		"one is gone, one not taken":    {rolledBack(unconfirmed, routes(v1alpha1.ReasonRouteMissing, v1alpha1.ReasonRouteNotConfirmed)), notTaken + ": it is RouteNotConfirmed", ""},
		"one is gone, one not written":  {rolledBack(unconfirmed, observed("30"), routes(v1alpha1.ReasonRouteMissing, "")), notTaken, ""},
		"no rule has both":              {rolledBack(unconfirmed, routes(v1alpha1.ReasonNoMatchingRule)), "", ""},
		"the named rule has not both":   {rolledBack(unconfirmed, routes(v1alpha1.ReasonNoMatchingRule), ruleNames("main")), "", ""},
		"one of two named rules has":    {rolledBack(unconfirmed, routes(v1alpha1.ReasonNoMatchingRule), ruleNames("main", "api")), notTaken, ""},
		"nothing is known of its route": {rolledBack(unconfirmed, routes()), "nothing is known of its routes", ""},

		"promoted":                         {promoted(verdict(v1alpha1.VerdictHealthy)), "", ""},
		"promoted and stopped":             {promoted(pause("error-rate 50 %")), "abort it, or give the resume command", "abort it, or give the resume command"},
		"promoted and unhealthy":           {promoted(verdict(v1alpha1.VerdictUnhealthy)), "(error-rate 50 %)", "(error-rate 50 %)"},
		"the same, only observed":          {promoted(verdict(v1alpha1.VerdictUnhealthy), observe), enforce, enforce},
		"unhealthy, to be kept":            {promoted(verdict(v1alpha1.VerdictUnhealthy), keep), "unhealthy", ""},
		"on its way back":                  {rollout("web", outcome(v1alpha1.OutcomeReturning)), "", ""},
		"promoted, stable without a pod":   {promoted(stalled(v1alpha1.ReasonStableUnavailable, "no ready endpoint")), "", ""},
		"under way, stable without a pod":  {rollout("web", stalled(v1alpha1.ReasonStableUnavailable, "no ready endpoint")), "no ready endpoint", "leave the canary at 30 percent: no ready endpoint"},
		"to be kept, stable without a pod": {rollout("web", stalled(v1alpha1.ReasonStableUnavailable, "no ready endpoint"), keep), "no ready endpoint", ""},
		"at 0, stable without a pod":       {rollout("web", stalled(v1alpha1.ReasonStableUnavailable, "no ready endpoint"), desired("0"), observed("0")), "no ready endpoint", ""},

		"60 percent without a record": {rollout("web", outcome(""), desired(""), observed("60"), stalled(v1alpha1.ReasonAdoptionAmbiguous, "no record")), "nobody knows why the canary has 60 percent", "retry"},
		"the same, and a conflict":    {rollout("web", outcome(""), desired(""), observed("60"), stalled(v1alpha1.ReasonPartialRouteConflict, "of another")), "nobody knows why the canary has 60 percent", "nobody knows why the canary has 60 percent"},
		"the same, taken away since":  {rollout("web", outcome(""), desired("0"), observed("0"), stalled(v1alpha1.ReasonAdoptionAmbiguous, "no record")), "", ""},
		"a record that cannot be":     {rollout("web", outcome("Odd"), stalled(v1alpha1.ReasonInvalidStatus, "do not add up")), "do not add up", "do not add up"},

		"gives way":                       {rollout("web", desired("0"), stalled(v1alpha1.ReasonRouteConflict, "the older")), "", ""},
		"gives way, its routes at 0":      {rollout("web", observed("0"), stalled(v1alpha1.ReasonRouteConflict, "the older")), "", ""},
		"gives way, and has left a share": {rollout("web", stalled(v1alpha1.ReasonRouteConflict, "the older")), "does not take back: the older", "does not take back"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for what, got := range map[string][2]string{"abort": {hazard(tc.wr), tc.abort}, "deletion": {leaves(tc.wr), tc.deletion}} {
				if is, want := got[0], got[1]; (is == "") != (want == "") || !strings.Contains(is, want) {
					t.Errorf("%s: %q, want %q", what, is, want)
				}
			}
		})
	}
}
