package cli

import (
	"encoding/json"
	"fmt"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// jsonText writes a value of plain fields, which cannot fail.
func jsonText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}

// unended tells whether an attempt with this outcome goes on.
func unended(o v1alpha1.Outcome) bool {
	switch o {
	case v1alpha1.OutcomeInProgress, v1alpha1.OutcomePromoted, v1alpha1.OutcomeReturning:
		return true
	case v1alpha1.OutcomeCompleted, v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeSuperseded:
	}
	return false
}

// underWay tells whether the traffic of a rollout may still move.
func underWay(wr *v1alpha1.WeightedRollout) bool { return unended(wr.Status.Outcome) }

// mustResume tells whether a rollout has to be resumed by a command.
func mustResume(wr *v1alpha1.WeightedRollout) bool {
	return wr.Status.Pause != nil || stalledOn(wr) == v1alpha1.ReasonWeightContention
}

// refuseAll says why no order at all makes sense now.
func refuseAll(wr *v1alpha1.WeightedRollout) string {
	switch {
	case wr.DeletionTimestamp != nil:
		return "the rollout is being deleted"
	case wr.Spec.Mode == v1alpha1.ModeObserve:
		return "spec.mode is Observe, in which no command is carried out: set it to Enforce first"
	case stalledOn(wr) == v1alpha1.ReasonPartialRouteConflict && wr.Status.Outcome == "":
		return "an older rollout manages some of the rules, so no attempt begins: see kubectl weightedrollout status"
	case stalledOn(wr) == v1alpha1.ReasonRouteConflict:
		return "an older rollout manages the same rule, so this one does nothing: see kubectl weightedrollout status"
	}
	return ""
}

// refuseMidway says why an order to a plan under way makes no sense now.
func refuseMidway(wr *v1alpha1.WeightedRollout) string {
	st := &wr.Status
	if why := refuseAll(wr); why != "" {
		return why
	}
	switch st.Outcome {
	case v1alpha1.OutcomeInProgress:
		return ""
	case v1alpha1.OutcomePromoted, v1alpha1.OutcomeReturning:
		return fmt.Sprintf("revision %q is promoted already", st.Revision)
	case v1alpha1.OutcomeRolledBack:
		return fmt.Sprintf("revision %q is rolled back: say retry to start it again", st.Revision)
	case v1alpha1.OutcomeCompleted, v1alpha1.OutcomeSuperseded:
		return fmt.Sprintf("there is nothing to roll out: stable runs revision %q", st.Revision)
	}
	return "no attempt has started yet"
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

func refuseResume(wr *v1alpha1.WeightedRollout) string {
	if wr.Spec.Paused && !mustResume(wr) {
		return ""
	}
	if why := refuseAll(wr); why != "" {
		return why
	}
	if !mustResume(wr) {
		return "it is not paused, and not stopped"
	}
	return ""
}

func refuseApprove(wr *v1alpha1.WeightedRollout) string {
	if why := refuseMidway(wr); why != "" {
		return why
	}
	st, stages := &wr.Status, wr.Spec.Plan.Stages
	switch {
	case st.Stage == nil:
		return "no stage is under way"
	case st.Promote:
		return "promote was said, which ends every approval"
	case st.Stage.Approved:
		return fmt.Sprintf("stage %s is approved already", positionOf(wr))
	case int(st.Stage.Index) >= len(stages) || st.Stage.Index < 0 || stages[st.Stage.Index].Approval != v1alpha1.ApprovalRequired:
		return fmt.Sprintf("stage %s waits for no approval", positionOf(wr))
	}
	return ""
}

func refuseSkip(wr *v1alpha1.WeightedRollout) string {
	if why := refuseMidway(wr); why != "" {
		return why
	}
	switch st := &wr.Status; {
	case st.Stage == nil:
		return "no stage is under way"
	case st.Promote:
		return "promote was said, which ends every soak"
	case st.Stage.Skipped:
		return fmt.Sprintf("stage %s is skipped already: it ends once its gate passes", positionOf(wr))
	}
	return ""
}

func refusePromote(wr *v1alpha1.WeightedRollout) string {
	if why := refuseMidway(wr); why != "" {
		return why
	}
	// A pause from after a promote holds until promote is said again.
	if wr.Status.Promote && !wr.Spec.Paused {
		return "promote was said already: what it still waits for is evidence or the ramp"
	}
	return ""
}

func refuseAbort(wr *v1alpha1.WeightedRollout) string {
	st := &wr.Status
	if why := refuseAll(wr); why != "" {
		return why
	}
	if underWay(wr) {
		return ""
	}
	if st.Outcome == v1alpha1.OutcomeRolledBack {
		return fmt.Sprintf("attempt %d is rolled back already", st.Attempt)
	}
	return "no attempt is under way"
}

func refuseRetry(wr *v1alpha1.WeightedRollout) string {
	if why := refuseAll(wr); why != "" {
		return why
	}
	switch stalledOn(wr) {
	case v1alpha1.ReasonAdoptionAmbiguous, v1alpha1.ReasonInvalidStatus:
		return ""
	}
	switch st := &wr.Status; {
	case st.Outcome == v1alpha1.OutcomeRolledBack:
		return ""
	case st.Outcome == v1alpha1.OutcomeSuperseded && st.StableRevision != st.Revision:
		return ""
	case st.Outcome == v1alpha1.OutcomeInProgress:
		return fmt.Sprintf("attempt %d is under way: abort it first", st.Attempt)
	}
	return "only a rolled back revision can be tried again"
}

func refuseFinish(wr *v1alpha1.WeightedRollout) string {
	if why := refuseAll(wr); why != "" {
		return why
	}
	st := &wr.Status
	switch {
	case stalledOn(wr) == v1alpha1.ReasonAdoptionAmbiguous:
		return ""
	case st.Outcome == v1alpha1.OutcomeReturning:
		return "the traffic returns to stable already"
	case st.Outcome != v1alpha1.OutcomePromoted:
		return "only a promoted revision can be finished"
	case number(desiredShare(wr)) < 100:
		return fmt.Sprintf("the canary is to have %s percent yet, and the traffic returns from 100", desiredShare(wr))
	}
	return ""
}
