package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// routeReplaced starts again from the first stage when a route was deleted and
// made anew: what was proved was proved on another object.
func routeReplaced(d *draft) bool {
	if d.cannotLower() {
		return false
	}
	for i, r := range d.obs.Routes {
		if s := d.routeStatus(i); !r.Found || s.UID == "" || s.UID == r.UID {
			continue
		}
		message := fmt.Sprintf("%s %q was deleted and made again", r.Kind, r.Name)
		d.record(v1alpha1.OutcomeSuperseded, v1alpha1.ReasonRouteReplaced, message)
		d.event(true, v1alpha1.ReasonRouteReplaced, "%s: the plan starts again from its first stage", message)
		// It is the same revision: a stop and a break outlast the route.
		breaker, pause := d.status.Breaker, d.status.Pause
		d.startAttempt()
		d.status.Breaker, d.status.Pause = breaker, pause
		if d.broken() {
			d.status.Warmup = &v1alpha1.WarmupStatus{Reason: v1alpha1.ColdBreak}
		}
		return true
	}
	return false
}

// canaryUnavailable mirrors stableUnavailable while the traffic returns to stable: a
// route that gives the canary less than it should is not given more as long as the
// canary has no ready endpoint.
func canaryUnavailable(d *draft) bool {
	if !d.returning() || d.obs.CanaryReady {
		return false
	}
	for _, r := range d.obs.Routes {
		if low, _ := r.Inspection.Observed(); r.Found && low < d.share {
			d.stall(v1alpha1.ReasonCanaryNotReady, "%s %q is to give the canary %s percent again, but the canary Service %q has no ready endpoint: make its pods ready, or abort to give stable everything", r.Kind, r.Name, percent(d.share), d.canaryService())
			return true
		}
	}
	return false
}

// trackUnready takes the traffic off a track under test that has no ready endpoint.
func trackUnready(d *draft) bool {
	if d.tested(d.share) == 0 {
		return false
	}
	switch {
	case d.returning() && !d.obs.StableReady:
		d.stableUnready()
		return true
	case !d.returning() && !d.obs.CanaryReady:
		from := d.share
		if d.setShare(weights.ShareNone) {
			d.writes = WriteAll
			if d.status.Outcome == v1alpha1.OutcomePromoted && d.planErr == nil {
				d.reopen()
			}
			d.goCold(v1alpha1.ColdNotReady)
			d.event(true, v1alpha1.ReasonCanaryNotReady, "the canary Service %q has no ready endpoint: its share goes from %s to 0 percent", d.canaryService(), percent(from))
			d.waitForRoutes()
		}
		return true
	}
	return false
}

// routeUnresolved takes the traffic off a version that a gateway may not be able to
// resolve, and rolls back when a gateway has rejected a route, or could not resolve its
// backends, for onUnhealthy.for.
func routeUnresolved(d *draft) bool {
	message := d.rejection()
	if message == "" {
		return false
	}
	if !d.returning() && d.planErr == nil && (d.share > 0 || d.leftUnresolved()) {
		deadline := d.rejectedSince().Add(d.plan.unhealthyFor)
		if d.rejectedAgain() || !d.now.Before(deadline) {
			d.rollBack(v1alpha1.ReasonRouteNotResolved, message)
			return true
		}
		d.wakeAt(deadline)
	}
	least := weights.ShareNone
	if d.returning() {
		least = d.tested(d.returnedFrom())
	}
	if d.tested(d.share) <= least || !d.unresolved() {
		return false
	}
	d.leaveUnresolved(message)
	return true
}

// rejectedSince is when a gateway began to reject a route.
func (d *draft) rejectedSince() time.Time {
	c := meta.FindStatusCondition(d.status.Conditions, v1alpha1.ConditionRouteAccepted)
	if c == nil || c.Status != metav1.ConditionFalse || !rejects(c.Reason) {
		return d.now
	}
	// Conditions keep whole seconds: one more makes sure that the time has passed.
	return c.LastTransitionTime.Add(time.Second)
}

// unresolved reports whether a gateway cannot resolve a backend, and the track under test
// may be the one. A gateway speaks of the whole route: of a Service in the route's own
// namespace, which needs no ReferenceGrant and has a ready endpoint, another backend is
// taken to be the cause.
func (d *draft) unresolved() bool {
	elsewhere := d.obs.CanaryElsewhere
	if d.returning() {
		elsewhere = d.obs.StableElsewhere
	}
	return elsewhere && slices.ContainsFunc(d.obs.Routes, func(r Route) bool { return r.Found && r.Acceptance.Unresolved })
}

// leaveUnresolved takes the traffic off the track under test: the gateway answers it with
// errors. On the return to stable the canary gets back what it had.
func (d *draft) leaveUnresolved(message string) {
	from, returning := d.share, d.returning()
	share := weights.ShareNone
	if returning {
		share = d.returnedFrom()
	}
	if !d.setShare(share) {
		return
	}
	d.writes = WriteAll
	if !returning {
		if d.status.Outcome == v1alpha1.OutcomePromoted && d.planErr == nil {
			d.reopen()
		}
		d.goCold(v1alpha1.ColdNotResolved)
	}
	d.event(true, v1alpha1.ReasonNotResolved, "a gateway cannot resolve a backend, so the canary's share goes from %s to %s percent: %s", percent(from), percent(d.share), message)
	d.waitForRoutes()
}

// leftUnresolved reports whether the canary has had no traffic since a gateway could not
// resolve it.
func (d *draft) leftUnresolved() bool {
	w := d.status.Warmup
	return d.share == 0 && w != nil && w.Reason == v1alpha1.ColdNotResolved
}

// rejectedAgain reports whether the canary was not resolved, had no traffic for
// onUnhealthy.for at least (see pace), and cannot be resolved again as soon as it has
// some: a gateway may look only at backends with a weight.
func (d *draft) rejectedAgain() bool {
	w := d.status.Warmup
	return w != nil && w.Reason == v1alpha1.ColdNotResolved && !w.Soaked && d.share > 0 && !d.confirmed() && d.unresolved()
}

// rejects tells whether a reason of RouteAccepted says that a gateway rejects a route.
func rejects(reason string) bool {
	return reason == v1alpha1.ReasonNotAccepted || reason == v1alpha1.ReasonNotResolved
}

// rejection says which gateway rejects a route, or is empty.
func (d *draft) rejection() string {
	for _, r := range d.obs.Routes {
		if r.Found && (r.Acceptance.State == route.NotAccepted || r.Acceptance.State == route.NotResolved) {
			return fmt.Sprintf("%s %q: %s", r.Kind, r.Name, r.Acceptance.Message)
		}
	}
	return ""
}

// unhealthy acts on a verdict that is bad beyond doubt. The verdict is about the
// share that was recorded: that the traffic is gone by now, because a person took
// it away or the pods died, makes it no better.
func unhealthy(d *draft) bool {
	if d.obs.Verdict.State != v1alpha1.VerdictUnhealthy || d.judged == 0 || !d.open() {
		return false
	}
	message := d.badNews()
	if d.returning() {
		return d.unhealthyStable(message)
	}
	return d.unhealthyCanary(message)
}

// badNews says what is bad about the track under test, and names the check.
func (d *draft) badNews() string {
	message := d.obs.Verdict.Message
	if check := d.obs.Verdict.Check; check != "" && !strings.Contains(message, check) {
		return check + ": " + message
	}
	return message
}

// unhealthyCanary does what onUnhealthy.action says.
func (d *draft) unhealthyCanary(message string) bool {
	switch d.obs.Spec.OnUnhealthy.Action {
	case v1alpha1.UnhealthyPause:
		d.stop(message)
		return false
	case v1alpha1.UnhealthyBreak:
		if d.obs.Unrecorded {
			message += ". A break cannot be recorded, so the attempt ends"
			break
		}
		if d.planErr == nil && d.trips() < d.plan.breaker.maxTrips {
			d.tripBreaker(message)
			return true
		}
		if trips := d.trips(); trips > 0 {
			message = fmt.Sprintf("unhealthy again after %d breaks: %s", trips, message)
		}
	case v1alpha1.UnhealthyRollback:
	}
	d.rollBack(v1alpha1.ReasonUnhealthy, message)
	return true
}

// confirmed tells whether the gateways have taken the route as it is.
func (r Route) confirmed() bool {
	return r.Found && r.Inspection.Problem == nil && r.Acceptance.State == route.Confirmed
}
