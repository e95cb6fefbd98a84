package rollout

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// verbs are those that a command may have.
var verbs = []v1alpha1.Verb{
	v1alpha1.VerbApprove, v1alpha1.VerbSkip, v1alpha1.VerbPromote, v1alpha1.VerbRetry, v1alpha1.VerbFinish, v1alpha1.VerbResume,
}

// adoptable is the largest share that is taken to 0 without asking when there is
// no record of it.
const adoptable = weights.ShareAll / 2

// unrecorded begins with a rollout that has no record, or none that makes sense.
func unrecorded(d *draft) bool {
	if d.known {
		return false
	}
	if invalid(d) {
		d.phase = v1alpha1.PhasePending
		return true
	}
	if d.obs.PartOwner != "" {
		d.phase = v1alpha1.PhasePending
		d.stall(v1alpha1.ReasonPartialRouteConflict, "no attempt begins: %s", d.conflict())
		return true
	}
	low, high := d.found()
	switch command := d.takeCommand(); {
	case command == v1alpha1.VerbRetry:
		d.startAttempt()
	case command == v1alpha1.VerbFinish:
		d.adopt(low)
	case d.status.Attempt > 0:
		d.stall(v1alpha1.ReasonInvalidStatus, "status.attempt, status.outcome and status.share.desired do not add up, so the weights are left as they are: give the retry command for attempt %d to start again at 0 percent", d.status.Attempt)
	case high > adoptable && low <= adoptable:
		d.stall(v1alpha1.ReasonAdoptionAmbiguous, "a route gives the canary %s percent, one of its rules or another route %s, and there is no record of why: give the retry command to start at 0 percent, or set the weights to what is meant", percent(high), percent(low))
	case high > adoptable:
		d.stall(v1alpha1.ReasonAdoptionAmbiguous, "a route gives the canary %s percent and there is no record of why: give the retry command to start at 0 percent, or finish if the canary's version is proved and stable runs it", percent(high))
	case d.stableRuns(d.obs.revision()):
		d.stableServes(d.obs.revision())
	default:
		d.startAttempt()
	}
	d.phase = v1alpha1.PhasePending
	if d.status.Attempt > 0 && d.known {
		d.phase = ""
	}
	return true
}

// found returns the least and the most that a managed rule gives the canary.
func (d *draft) found() (low, high weights.Share) {
	low = weights.ShareAll
	for _, r := range d.obs.Routes {
		l, h := r.Inspection.Observed()
		low, high = min(low, l), max(high, h)
	}
	return min(low, high), high
}

// adopt takes a canary over that a person says is proved: the traffic returns to stable,
// from the least that a rule gives the canary.
func (d *draft) adopt(low weights.Share) {
	d.status.Attempt = 1
	d.status.Revision = d.obs.revision()
	d.status.StartedAt = micro(d.now)
	d.fresh = true
	d.forceShare(d.wholeDown(low))
	d.setStage(d.plan.stageFor(d.share))
	d.beginReturn()
	d.wait(v1alpha1.ReasonReturning, "the share ramps back to stable")
}

// aborted rolls back when a person says so. It holds whatever else is asked for.
func aborted(d *draft) bool {
	if d.obs.Orders.Abort != d.status.Attempt || !d.open() || d.cannotLower() {
		return false
	}
	d.rollBack(v1alpha1.ReasonAborted, "aborted by the abort order")
	return true
}

// open tells whether the attempt has not ended.
func (d *draft) open() bool { return openOutcome(d.status.Outcome) }

func openOutcome(o v1alpha1.Outcome) bool {
	switch o {
	case v1alpha1.OutcomeInProgress, v1alpha1.OutcomePromoted, v1alpha1.OutcomeReturning:
		return true
	case v1alpha1.OutcomeCompleted, v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeSuperseded:
	}
	return false
}

// anotherRevision ends the attempt when the spec names another revision, and
// starts one for it, unless stable runs that one.
func anotherRevision(d *draft) bool {
	next := d.obs.revision()
	if next == d.status.Revision || next == "" || d.cannotLower() {
		return false
	}
	promoted := d.status.Outcome == v1alpha1.OutcomePromoted
	message := fmt.Sprintf("revision %q took its place", next)
	if d.stableRuns(next) {
		message = fmt.Sprintf("stable runs revision %q", next)
	}
	if d.open() {
		d.record(v1alpha1.OutcomeSuperseded, v1alpha1.ReasonSuperseded, message)
		d.event(promoted, v1alpha1.ReasonSuperseded, "revision %q at %s percent: %s", d.status.Revision, percent(d.share), message)
	}
	d.undersized()
	if !d.stableRuns(next) {
		d.startAttempt()
		return true
	}
	d.stableServes(next)
	return true
}

// stableServes gives stable all traffic, since it runs the revision that the spec names:
// there is nothing to roll out. Or it says why it cannot, and changes nothing.
func (d *draft) stableServes(revision string) {
	if d.cannotLower() {
		d.stallStableUnavailable()
		return
	}
	d.status.Outcome, d.status.OutcomeReason = v1alpha1.OutcomeSuperseded, v1alpha1.ReasonStableRevision
	d.status.OutcomeMessage = clip(fmt.Sprintf("stable runs revision %q", revision))
	d.status.Attempt = max(d.status.Attempt, 1)
	d.status.Revision, d.status.StableRevision = revision, revision
	d.calm()
	d.moved = true
	d.setShare(weights.ShareNone)
	d.writes = WriteAll
	d.waitForRoutes()
}

// ordered carries out the command in the annotation, once.
func ordered(d *draft) bool {
	d.taken = d.takeCommand()
	switch d.taken {
	case v1alpha1.VerbApprove:
		d.status.Stage.Approved = true
		d.moved = true
	case v1alpha1.VerbSkip:
		d.status.Stage.Skipped = true
		d.moved = true
	case v1alpha1.VerbPromote:
		d.status.Promote, d.status.PromoteGeneration = true, d.obs.Generation
		d.moved = true
	case v1alpha1.VerbRetry:
		d.startAttempt()
		return true
	case v1alpha1.VerbFinish:
		d.beginReturn()
		// A person says what stable runs.
		d.status.StableUpdate = nil
	case v1alpha1.VerbResume:
		d.resume()
	}
	return false
}

// takeCommand returns the verb of a new command that applies now, or "". It
// records the command, so that it is taken once.
func (d *draft) takeCommand() v1alpha1.Verb {
	c := d.obs.Orders.Command
	if c == nil || (d.status.Command != nil && d.status.Command.ID == c.ID) {
		return ""
	}
	refusal := d.refusal(*c)
	record := &v1alpha1.CommandStatus{ID: c.ID, Verb: clipTo(string(c.Verb), 63), Accepted: refusal == "", Message: "carried out"}
	d.status.Command = record
	if refusal != "" {
		record.Message = clip(refusal)
		d.event(true, v1alpha1.ReasonCommandIgnored, "command %s is ignored: %s", record.Verb, refusal)
		return ""
	}
	d.event(false, v1alpha1.ReasonCommandAccepted, "command %s is carried out", record.Verb)
	return c.Verb
}

// answer takes it back that a command is carried out, if its attempt or its stage has ended
// in the same decision for another reason.
func (d *draft) answer() {
	why := d.overtaken()
	if why == "" {
		return
	}
	c := d.status.Command
	c.Accepted, c.Message = false, why
	i := slices.IndexFunc(d.events, func(e Event) bool { return e.Reason == v1alpha1.ReasonCommandAccepted })
	d.events[i] = Event{Warning: true, Reason: v1alpha1.ReasonCommandIgnored, Message: fmt.Sprintf("command %s is ignored: %s", c.Verb, why)}
}

// overtaken says what has ended the attempt or the stage that the command was for since it
// was taken, or is empty.
func (d *draft) overtaken() string {
	switch d.taken {
	case "", v1alpha1.VerbRetry, v1alpha1.VerbResume:
		return ""
	case v1alpha1.VerbApprove, v1alpha1.VerbSkip:
		if slices.ContainsFunc(d.events, func(e Event) bool { return e.Reason == v1alpha1.ReasonPlanChanged }) {
			return "the plan was edited at the same time, so its stage is not the present one any more"
		}
	case v1alpha1.VerbPromote, v1alpha1.VerbFinish:
	}
	if d.status.Attempt != d.obs.Status.Attempt || !d.open() {
		return fmt.Sprintf("attempt %d has ended at the same time", d.obs.Status.Attempt)
	}
	return ""
}

// refusal says why a command does not apply now, or is empty.
func (d *draft) refusal(c v1alpha1.Command) string {
	if !slices.Contains(verbs, c.Verb) {
		return "its verb must be approve, skip, promote, retry, finish or resume"
	}
	if c.Attempt != d.status.Attempt {
		return fmt.Sprintf("it is for attempt %d, and this is attempt %d", c.Attempt, d.status.Attempt)
	}
	if c.Verb != v1alpha1.VerbRetry && d.status.Outcome == v1alpha1.OutcomeRolledBack {
		return "the revision is rolled back; retry starts it again"
	}
	switch c.Verb {
	case v1alpha1.VerbApprove, v1alpha1.VerbSkip:
		return d.refuseForStage(c)
	case v1alpha1.VerbPromote:
		return d.refusePromote()
	case v1alpha1.VerbRetry:
		if why := d.refuseRetry(); why != "" || !d.cannotLower() {
			return why
		}
		return fmt.Sprintf("the stable Service %q has no ready endpoint to take the traffic: make its pods ready, then give it again", d.stableService())
	case v1alpha1.VerbFinish:
		return d.refuseFinish()
	case v1alpha1.VerbResume:
		return d.refuseResume()
	}
	return ""
}

func (d *draft) refuseFinish() string {
	if !d.known {
		return d.refuseAdoption()
	}
	if d.status.Outcome != v1alpha1.OutcomePromoted {
		return "only a promoted revision can be finished"
	}
	if d.share < weights.ShareAll {
		return fmt.Sprintf("the canary is recorded with %s percent, and the traffic returns from 100", percent(d.share))
	}
	return ""
}

// refuseAdoption says why finish, without a record, is no answer to AdoptionAmbiguous. An
// order that was there before the question, as in the manifest of a new object, is none.
func (d *draft) refuseAdoption() string {
	c := meta.FindStatusCondition(d.status.Conditions, v1alpha1.ConditionStalled)
	asked := c != nil && c.Status == metav1.ConditionTrue && c.Reason == v1alpha1.ReasonAdoptionAmbiguous
	switch low, _ := d.found(); {
	case d.status.Attempt > 0:
		return "the record in status does not add up; retry starts again at 0 percent"
	case low <= adoptable:
		return fmt.Sprintf("no revision is recorded as promoted, and the routes give the canary %s percent at least: from more than %s in every rule it could return to stable", percent(low), percent(adoptable))
	case !asked:
		return fmt.Sprintf("no revision is recorded as promoted: give it once the rollout is Stalled with %s, if it is still right then", v1alpha1.ReasonAdoptionAmbiguous)
	}
	return ""
}

// ended keeps an ended attempt where it ended: all traffic on stable.
func ended(d *draft) bool {
	if d.open() {
		return false
	}
	if !d.setShare(weights.ShareNone) {
		return true
	}
	d.writes = WriteAll
	if d.stillContended() {
		return true
	}
	if d.status.Outcome != v1alpha1.OutcomeRolledBack && !d.confirmed() {
		return invalid(d) || unconfirmed(d)
	}
	switch d.status.Outcome {
	case v1alpha1.OutcomeCompleted, v1alpha1.OutcomeSuperseded:
		if d.obs.PartOwner != "" {
			return partOwner(d)
		}
		d.endedOnStable()
	case v1alpha1.OutcomeInProgress, v1alpha1.OutcomePromoted, v1alpha1.OutcomeReturning, v1alpha1.OutcomeRolledBack:
		d.stall(d.status.OutcomeReason, "rolled back: %s. Set another revision, or give the retry command", d.status.OutcomeMessage)
		if r, p := d.outOfReach(); p != nil {
			d.stall(p.Reason, "%s %q: %s. It was to give stable all traffic, since revision %q is rolled back: %s", r.Kind, r.Name, p.Message, d.status.Revision, d.status.OutcomeMessage)
		}
		if refused := d.refusedWrite(); refused != "" {
			d.stall(v1alpha1.ReasonRouteWriteFailed, "%s. It was to give stable all traffic, since revision %q is rolled back: %s", refused, d.status.Revision, d.status.OutcomeMessage)
		}
	}
	return true
}

// endedOnStable speaks for an attempt that ended since stable runs its revision: as long as
// it does, nothing is left to do.
func (d *draft) endedOnStable() {
	reason := v1alpha1.ReasonStableRevision
	if d.status.Outcome == v1alpha1.OutcomeCompleted {
		reason = v1alpha1.ReasonCompleted
	}
	if d.stableStillRuns() {
		d.done(reason, "stable runs revision %q and serves everything", d.status.Revision)
		return
	}
	d.phase = v1alpha1.PhasePending
	d.stall(v1alpha1.ReasonStableChanged, "stable serves everything, and does not run revision %q any more: give the retry command to roll it out, or give stable that revision back", d.status.Revision)
}

// outOfReach returns a route with a fault that keeps a rule of it from being lowered.
func (d *draft) outOfReach() (Route, *route.Problem) {
	for _, r := range d.obs.Routes {
		if r.Found && r.Inspection.Problem != nil {
			return r, r.Inspection.Problem
		}
	}
	return Route{}, nil
}

func clipTo(s string, limit int) string {
	runes := []rune(s)
	if len(runes) > limit {
		return string(runes[:limit])
	}
	return s
}
