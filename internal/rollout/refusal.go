package rollout

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// Refusal says why a command would not be carried out on what was observed, or is empty.
// Decide refuses by the same. Who sees less than the controller observes that much less: the
// record in status tells of the rest.
func Refusal(obs Observation, c v1alpha1.Command, now time.Time) string {
	d := newDraft(obs, now)
	if why := d.unheard(); why != "" {
		return why
	}
	return d.refusal(c)
}

// AbortRefusal says why there is nothing that an abort of the present attempt would end, or
// is empty.
func AbortRefusal(obs Observation, now time.Time) string {
	d := newDraft(obs, now)
	if why := d.unheard(); why != "" {
		return why
	}
	switch {
	case d.known && d.open():
		return ""
	case d.status.Outcome == v1alpha1.OutcomeRolledBack:
		return fmt.Sprintf("attempt %d is rolled back already", d.status.Attempt)
	}
	return "no attempt is under way"
}

// MustResume reports whether it takes the command resume to go on: a pause of spec.paused is
// ended there.
func MustResume(obs Observation, now time.Time) bool {
	d := newDraft(obs, now)
	return d.stoppedByUs()
}

// stoppedByUs reports whether the share is held until a person says resume.
func (d *draft) stoppedByUs() bool { return d.known && (d.status.Pause != nil || d.contended()) }

// unheard says why no order is looked at now, or is empty. The policies of these come before
// those that take orders.
func (d *draft) unheard() string {
	switch {
	case d.obs.Owner != "":
		return "an older rollout manages the same rule, so this one does nothing: see kubectl weightedrollout status"
	case d.obs.Spec.Mode == v1alpha1.ModeObserve:
		return "spec.mode is Observe, in which no command is carried out: set it to Enforce first"
	case d.obs.Deleting:
		return "the rollout is being deleted"
	case d.obs.PartOwner != "" && !d.known:
		return "an older rollout manages some of the rules, so no attempt begins: see kubectl weightedrollout status"
	}
	return ""
}

// stableStillRuns reports whether stable runs the revision of an attempt that ended so. What the
// workloads show of that has been noted by noteStableTemplate.
func (d *draft) stableStillRuns() bool {
	return d.status.StableRevision != "" && d.status.StableRevision == d.status.Revision
}

// refuseMidway says why there is no plan under way that an order could bring on, or is empty.
func (d *draft) refuseMidway() string {
	st := &d.status
	switch {
	case !d.known && st.Attempt == 0:
		return "no attempt has started yet"
	case !d.known:
		return "the record in status does not add up; retry starts again at 0 percent"
	}
	switch st.Outcome {
	case v1alpha1.OutcomeInProgress:
		return ""
	case v1alpha1.OutcomePromoted, v1alpha1.OutcomeReturning:
		return fmt.Sprintf("revision %q is promoted already", st.Revision)
	case v1alpha1.OutcomeRolledBack:
		return fmt.Sprintf("revision %q is rolled back; retry starts it again", st.Revision)
	case v1alpha1.OutcomeCompleted, v1alpha1.OutcomeSuperseded:
	}
	if d.stableStillRuns() {
		return fmt.Sprintf("there is nothing to roll out: stable runs revision %q", st.Revision)
	}
	return fmt.Sprintf("no attempt is under way; retry rolls revision %q out", st.Revision)
}

// refuseForStage says why a command for a stage does not apply, or is empty.
func (d *draft) refuseForStage(c v1alpha1.Command) string {
	if why := d.refuseMidway(); why != "" {
		return why
	}
	stage := d.status.Stage
	if stage == nil {
		return "no stage is under way"
	}
	position := cmp.Or(stage.Position, "?")
	switch {
	case c.Stage == nil || *c.Stage != stage.Index:
		return fmt.Sprintf("it must name the present stage, which has index %d", stage.Index)
	case c.Verb == v1alpha1.VerbSkip && d.status.Promote:
		return "promote was said, which ends every soak"
	case c.Verb == v1alpha1.VerbSkip && stage.Skipped:
		return fmt.Sprintf("stage %s is skipped already: it ends once its gate passes", position)
	case c.Verb == v1alpha1.VerbSkip:
		return ""
	case d.status.Promote:
		return "promote was said, which ends every approval"
	case stage.Approved:
		return fmt.Sprintf("stage %s is approved already", position)
	case !d.approvable(stage.Index):
		return fmt.Sprintf("stage %s waits for no approval", position)
	}
	return ""
}

// approvable reports whether a stage of the plan asks for an approval.
func (d *draft) approvable(stage int32) bool {
	stages := d.obs.Spec.Plan.Stages
	return stage >= 0 && int(stage) < len(stages) && stages[stage].Approval == v1alpha1.ApprovalRequired
}

// refusePromote says why promote does not apply, or is empty. A pause from after a promote
// holds until promote is said again.
func (d *draft) refusePromote() string {
	if why := d.refuseMidway(); why != "" {
		return why
	}
	if d.status.Promote && !d.pausedBySpec() {
		return "promote was said already: what it still waits for is evidence or the ramp"
	}
	return ""
}

// refuseRetry says why retry does not apply, or is empty.
func (d *draft) refuseRetry() string {
	st := &d.status
	switch {
	case !d.known || st.Outcome == v1alpha1.OutcomeRolledBack:
		return ""
	case st.Outcome == v1alpha1.OutcomeInProgress:
		return fmt.Sprintf("attempt %d is under way: abort it first", st.Attempt)
	case !d.open() && !d.stableStillRuns():
		return ""
	}
	return "only a rolled back revision can be tried again"
}
