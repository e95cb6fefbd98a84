package cli

import (
	"encoding/json"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
)

// jsonText writes a value of plain fields, which cannot fail.
func jsonText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}

// unended reports whether an attempt with this outcome goes on.
func unended(o v1alpha1.Outcome) bool {
	switch o {
	case v1alpha1.OutcomeInProgress, v1alpha1.OutcomePromoted, v1alpha1.OutcomeReturning:
		return true
	case v1alpha1.OutcomeCompleted, v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeSuperseded:
	}
	return false
}

// underWay reports whether the traffic of a rollout may still move.
func underWay(wr *v1alpha1.WeightedRollout) bool { return unended(wr.Status.Outcome) }

// observed is what the plugin sees of what the controller does: the object itself, and in
// its conditions whether an older rollout manages the rules.
func observed(wr *v1alpha1.WeightedRollout) rollout.Observation {
	const older = "an older rollout"
	o := rollout.Observation{
		Name: wr.Name, Generation: wr.Generation, Spec: &wr.Spec, Status: &wr.Status,
		Deleting: wr.DeletionTimestamp != nil, StableReady: true, CanaryReady: true,
	}
	switch stalledOn(wr) {
	case v1alpha1.ReasonRouteConflict:
		o.Owner = older
	case v1alpha1.ReasonPartialRouteConflict:
		o.PartOwner = older
	}
	return o
}

// refuse asks the controller's own rule whether a command makes sense now.
func refuse(verb v1alpha1.Verb) func(*v1alpha1.WeightedRollout) string {
	return func(wr *v1alpha1.WeightedRollout) string {
		return rollout.Refusal(observed(wr), commandFor(verb, wr, ""), time.Now())
	}
}

func refuseAbort(wr *v1alpha1.WeightedRollout) string {
	return rollout.AbortRefusal(observed(wr), time.Now())
}

// mustResume reports whether a rollout has to be resumed by a command.
func mustResume(wr *v1alpha1.WeightedRollout) bool {
	return rollout.MustResume(observed(wr), time.Now())
}

func refusePause(wr *v1alpha1.WeightedRollout) string {
	switch {
	case wr.DeletionTimestamp != nil:
		return "the rollout is being deleted"
	case wr.Spec.Paused:
		return "it is paused already (spec.paused)"
	}
	return ""
}

// refuseResume says why resume makes no sense: a pause of spec.paused takes no command.
func refuseResume(wr *v1alpha1.WeightedRollout) string {
	if wr.Spec.Paused && !mustResume(wr) {
		return ""
	}
	return refuse(v1alpha1.VerbResume)(wr)
}

// refuseFinish says why finish makes no sense. Without a record it is an answer, as retry is,
// to a question that the controller has put, which sees the routes.
func refuseFinish(wr *v1alpha1.WeightedRollout) string {
	switch {
	case stalledOn(wr) == v1alpha1.ReasonAdoptionAmbiguous:
		return refuse(v1alpha1.VerbRetry)(wr)
	case wr.Status.Outcome == "" && wr.Status.Attempt == 0:
		return "only a promoted revision can be finished"
	}
	return refuse(v1alpha1.VerbFinish)(wr)
}
