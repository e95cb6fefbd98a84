package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// writeStatus fills in all that follows from the decision: phase, conditions,
// routes, the verdict's snapshot.
func (d *draft) writeStatus() {
	d.status.ObservedGeneration = d.obs.Generation
	d.reportRoutes()
	d.reportVerdict()
	d.keepWarmPods()
	d.noteCapacity()
	d.keepProgress()
	d.status.NextTransitionTime = nil
	if !d.transitionAt.IsZero() {
		// Whole seconds, rounded up: never early.
		t := metav1.NewTime(d.transitionAt.UTC().Add(time.Second - time.Nanosecond).Truncate(time.Second))
		d.status.NextTransitionTime = &t
	}
	d.reportOrders()
	d.status.Phase = d.phaseNow()
	d.conditions()
	d.reportTraffic()
}

func (d *draft) phaseNow() v1alpha1.Phase {
	if d.phase != "" {
		return d.phase
	}
	switch d.status.Outcome {
	case v1alpha1.OutcomeInProgress:
		if d.broken() && d.share == 0 {
			return v1alpha1.PhaseCoolingDown
		}
		return v1alpha1.PhaseProgressing
	case v1alpha1.OutcomePromoted:
		return v1alpha1.PhasePromoted
	case v1alpha1.OutcomeReturning:
		return v1alpha1.PhaseReturning
	case v1alpha1.OutcomeCompleted:
		return v1alpha1.PhaseCompleted
	case v1alpha1.OutcomeRolledBack:
		return v1alpha1.PhaseRolledBack
	case v1alpha1.OutcomeSuperseded:
		return v1alpha1.PhaseIdle
	}
	return v1alpha1.PhasePending
}

// reportRoutes says what is known of each route, drops what the spec no longer
// names, and sets the observed share.
func (d *draft) reportRoutes() {
	kept := make([]v1alpha1.RouteStatus, 0, len(d.obs.Routes))
	high, seen := weights.ShareNone, false
	for i, r := range d.obs.Routes {
		s := *d.routeStatus(i)
		s.Reason, s.Message = d.routeReason(i)
		if r.Found && s.UID == "" {
			s.UID = r.UID
		}
		if r.Partly {
			s.ConfirmedAt = nil // not as a whole
		}
		kept = append(kept, s)
		if r.Found && r.Inspection.Problem == nil {
			_, h := r.Inspection.Observed()
			if d.known && r.Inspection.Matches(d.share) {
				h = d.share
			}
			high, seen = max(high, h), true
		}
	}
	d.status.Routes = kept
	if d.status.Share.Observed != nil && d.routesCarry() && slices.ContainsFunc(d.obs.Routes, d.underWay) {
		// What was just written is reported with its confirmation, in the same write.
		return
	}
	d.status.Share.Observed, d.status.Share.ObservedFrom = nil, ""
	if seen {
		p := percent(high)
		d.status.Share.Observed, d.status.Share.ObservedFrom = &p, v1alpha1.ShareFromWeights
	}
}

// routeReason says what is wrong with the i-th observed route. What a gateway has said
// against it stands until the gateway has looked at it again: our own write to the route is
// no answer.
func (d *draft) routeReason(i int) (reason, message string) {
	r, was := d.obs.Routes[i], d.routeStatus(i)
	reason, message = d.reasonNow(r)
	if reason == v1alpha1.ReasonRouteNotConfirmed && r.Acceptance.State == route.Pending && rejects(was.Reason) && was.UID == r.UID {
		return was.Reason, was.Message
	}
	return reason, message
}

func (d *draft) reasonNow(r Route) (reason, message string) {
	switch {
	case !r.Found:
		return v1alpha1.ReasonRouteMissing, "there is no such route"
	case r.Inspection.Problem != nil:
		return r.Inspection.Problem.Reason, clip(r.Inspection.Problem.Message)
	case r.WriteError != "":
		return v1alpha1.ReasonRouteWriteFailed, clip(r.WriteError)
	case r.Acceptance.State == route.NotAccepted:
		return v1alpha1.ReasonNotAccepted, clip(r.Acceptance.Message)
	case r.Acceptance.State == route.NotResolved:
		return v1alpha1.ReasonNotResolved, clip(r.Acceptance.Message)
	case d.underWay(r):
		if changed := d.status.Share.ChangedAt; changed != nil && d.now.Before(changed.Add(confirmGrace)) {
			d.wakeAt(changed.Add(confirmGrace))
		}
		return v1alpha1.ReasonRouteNotConfirmed, "the weights are on their way to the gateways"
	case r.Acceptance.State == route.Pending:
		return v1alpha1.ReasonRouteNotConfirmed, clip(r.Acceptance.Message)
	}
	return "", ""
}

// reportVerdict keeps a snapshot of the verdict. A verdict that only says that it
// is too early to tell replaces nothing, and in the middle of a ramp only bad
// news is worth a write of its own.
func (d *draft) reportVerdict() {
	v, old := d.obs.Verdict, d.status.Verdict
	if v.State == "" || !d.known || d.fresh || v.Reason == v1alpha1.ReasonAwaitingWindow {
		return
	}
	is := v1alpha1.VerdictStatus{State: v.State, Reason: v.Reason, Check: v.Check, Message: verdictMessage(v), Score: v.ScoreText(), At: micro(d.now)}
	if old == nil {
		d.status.Verdict = &is
		if is.Reason == v1alpha1.ReasonProviderAuth || is.Reason == v1alpha1.ReasonProviderError {
			d.verdictEvent(true, is)
		}
		return
	}
	if sameVerdict(is, *old) {
		return
	}
	calm := untroubled(is) && untroubled(*old)
	early := is.State == v1alpha1.VerdictUnknown
	if calm && !d.moved && (early || d.inMidRamp()) {
		return
	}
	if !calm {
		d.verdictEvent(!untroubled(is), is)
	}
	d.status.Verdict = &is
}

// verdictEvent tells of a verdict. It is the cause of what else is told, and so it is
// told first.
func (d *draft) verdictEvent(warning bool, v v1alpha1.VerdictStatus) {
	d.event(warning, v1alpha1.ReasonVerdictChanged, "verdict %s (%s): %s", v.State, v.Reason, v.Message)
	last := len(d.events) - 1
	d.events = append([]Event{d.events[last]}, d.events[:last]...)
}

// sameVerdict tells whether a verdict only has other numbers than before. Of credentials
// the message counts, too: one fault is mended, and the next shows.
func sameVerdict(v, old v1alpha1.VerdictStatus) bool {
	return v.State == old.State && v.Reason == old.Reason && v.Check == old.Check &&
		(v.Reason != v1alpha1.ReasonProviderAuth || v.Message == old.Message)
}

// untroubled tells whether a verdict is good, or only too early to tell.
func untroubled(v v1alpha1.VerdictStatus) bool {
	return v.State == v1alpha1.VerdictHealthy || v.Reason == v1alpha1.ReasonInsufficientRequests
}

// verdictMessage adds the remarks about the configuration to what the verdict says.
func verdictMessage(v health.Verdict) string {
	return clip(strings.Join(append([]string{v.Message}, v.Notes...), "; "))
}

// inMidRamp tells whether the share is between two stages' weights.
func (d *draft) inMidRamp() bool {
	if d.planErr != nil || d.status.Outcome != v1alpha1.OutcomeInProgress || d.status.Stage == nil {
		return false
	}
	i := d.status.Stage.Index
	return i >= 0 && int(i) < len(d.plan.stages) && d.share < d.plan.stages[i].share
}

func (d *draft) conditions() {
	message := clip(d.message)
	reconciling, stalled, ready := metav1.ConditionFalse, metav1.ConditionFalse, metav1.ConditionFalse
	switch d.state {
	case stateReady:
		ready = metav1.ConditionTrue
	case stateStalled:
		stalled = metav1.ConditionTrue
	case stateReconciling:
		reconciling = metav1.ConditionTrue
	}
	d.condition(v1alpha1.ConditionReady, ready, d.reason, message)
	d.condition(v1alpha1.ConditionReconciling, reconciling, d.reason, message)
	d.condition(v1alpha1.ConditionStalled, stalled, d.reason, message)
	d.routeCondition()
	d.healthCondition()
	switch {
	case d.obs.Spec.Paused && !d.pausedBySpec():
		d.condition(v1alpha1.ConditionPaused, metav1.ConditionFalse, "NotPaused", "spec.paused is true, and was overruled by the promote command")
	case d.obs.Spec.Paused:
		d.condition(v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonPaused, "spec.paused is true; set it to false to go on")
	case d.status.Pause != nil && d.returning():
		d.condition(v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonUnhealthy, "stable was unhealthy; give the resume command, or abort")
	case d.status.Pause != nil && d.open():
		d.condition(v1alpha1.ConditionPaused, metav1.ConditionTrue, v1alpha1.ReasonUnhealthy, "the canary was unhealthy; give the resume command, or abort")
	default:
		d.condition(v1alpha1.ConditionPaused, metav1.ConditionFalse, "NotPaused", "spec.paused is false")
	}
}

func (d *draft) routeCondition() {
	reason, message, note := "", "", ""
	for i, r := range d.obs.Routes {
		note = cmp.Or(note, r.Acceptance.Note)
		// A rejection comes first: its duration decides on a rollback.
		if is, text := d.routeReason(i); is != "" && (reason == "" || rejects(is) && !rejects(reason)) {
			reason, message = is, fmt.Sprintf("%s %q: %s", r.Kind, r.Name, text)
		}
	}
	status := metav1.ConditionFalse
	switch reason {
	case "":
		status, reason, message = metav1.ConditionTrue, v1alpha1.ReasonAccepted, "every gateway takes the routes and resolves their backends"
		if note != "" {
			message += "; " + note
		}
	case v1alpha1.ReasonRouteNotConfirmed:
		status = metav1.ConditionUnknown
	}
	if c := meta.FindStatusCondition(d.status.Conditions, v1alpha1.ConditionRouteAccepted); c != nil && rejects(reason) != rejects(c.Reason) {
		// The time of the condition is that of the rejection, whatever was wrong before.
		c.LastTransitionTime = second(d.now)
	}
	d.condition(v1alpha1.ConditionRouteAccepted, status, reason, message)
}

func (d *draft) healthCondition() {
	v := d.status.Verdict
	if why := d.unmeasured(); why != "" {
		d.condition(v1alpha1.ConditionHealthy, metav1.ConditionUnknown, v1alpha1.ReasonAwaitingWindow, clip(why))
		return
	}
	status := metav1.ConditionUnknown
	switch v.State {
	case v1alpha1.VerdictHealthy:
		status = metav1.ConditionTrue
	case v1alpha1.VerdictDegraded, v1alpha1.VerdictUnhealthy:
		status = metav1.ConditionFalse
	case v1alpha1.VerdictUnknown:
	}
	d.condition(v1alpha1.ConditionHealthy, status, v.Reason, v.Message)
}

// unmeasured says why nothing is known of the health of the version under test, or is empty.
// The last verdict is not about now then.
func (d *draft) unmeasured() string {
	v, why := d.status.Verdict, ""
	switch {
	case d.obs.Owner != "":
		why = "nothing is measured, since an older rollout manages the routes"
	case d.known && !d.open():
		why = "nothing is measured, since no attempt is under way"
	case v == nil:
		return "nothing has been measured yet"
	default:
		return ""
	}
	if v != nil {
		why += fmt.Sprintf("; the last verdict was %s (%s): %s", v.State, v.Reason, v.Message)
	}
	return why
}

// condition sets a condition. Its time is that of the decision, in whole seconds.
func (d *draft) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	if reason == "" {
		reason = "Unknown"
	}
	meta.SetStatusCondition(&d.status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: d.obs.Generation, LastTransitionTime: second(d.now),
	})
}
