package rollout

import (
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// policy looks at a draft. It returns true if it has an opinion, which is then
// the decision; a later policy is not asked. A policy may also put things right
// and return false.
type policy func(*draft) bool

// chain lists the policies, the most important first. Those of the second group
// only lower the share of the track under test or hold it; those of the third
// never raise it.
func chain() []policy {
	return []policy{
		// Is it ours, and may we move anything?
		notOwner,
		observing,
		whole,
		soakClock,
		stableUnavailable,

		// Safety: only lowers or holds.
		deleted,
		endedOnRoute,
		driftHealed,
		unrecorded,
		aborted,
		anotherRevision,
		canaryUnavailable,
		unhealthy,
		silent,
		overdue,
		ordered,
		ended,
		routeReplaced,
		trackUnready,
		podsReplaced,
		routeUnresolved,

		// Holds: never raises.
		partOwner,
		invalid,
		planEdited,
		contention,
		stableChanged,
		paused,
		stopped,
		unconfirmed,
		coolingDown,
		degraded,

		// Progress.
		promoted,
		ramping,
		soaking,
		awaitingApproval,
		gate,
		advance,
	}
}

// Decide returns what to do about what was observed at the given time. It does
// not change its input, and the same input gives the same decision.
func Decide(obs Observation, now time.Time) Decision {
	d := newDraft(obs, now)
	d.confirm()
	for _, p := range chain() {
		if p(d) {
			break
		}
	}
	return d.decision()
}

func (d *draft) decision() Decision {
	d.answer()
	d.giveBack()
	d.writeStatus()
	return Decision{
		Status: d.status, Share: d.share, Writes: d.writes, Returning: d.returning(), Scales: d.scales, UpdateStable: d.updates,
		Bound: d.bound, Events: d.events, NextAt: d.nextAt, Release: d.release,
		Mark: d.mark(), Raises: d.raises(), wasReturning: d.obs.Status != nil && d.obs.Status.Outcome == v1alpha1.OutcomeReturning,
		unconfirmed: d.obs.Status != nil && d.obs.Status.Share.ConfirmedAt == nil,
	}
}

// confirm records that the gateways have taken the desired share in every route.
// It is a fact, not a decision, and so it comes first.
func (d *draft) confirm() {
	if !d.known || d.obs.Owner != "" || d.obs.Spec.Mode == v1alpha1.ModeObserve {
		return
	}
	if d.confirmed() || !d.routesCarry() {
		return
	}
	for _, r := range d.obs.Routes {
		if !r.confirmed() {
			return
		}
	}
	at := micro(d.now)
	d.status.Share.ConfirmedAt = at
	d.holdBegins()
	d.noteWarmPods()
	d.resolvedAgain()
	p := percent(d.share)
	for i, r := range d.obs.Routes {
		s := d.routeStatus(i)
		s.UID, s.Generation, s.Written, s.ConfirmedAt = r.UID, r.Generation, &p, at
	}
}

// routesCarry tells whether every route is there and carries the desired share.
func (d *draft) routesCarry() bool {
	for _, r := range d.obs.Routes {
		if !r.Found || r.Inspection.Problem != nil || !r.Inspection.Matches(d.share) {
			return false
		}
	}
	return len(d.obs.Routes) > 0
}

// routeStatus returns the record of the i-th observed route, made if need be.
func (d *draft) routeStatus(i int) *v1alpha1.RouteStatus {
	r := d.obs.Routes[i]
	for j := range d.status.Routes {
		if s := &d.status.Routes[j]; s.Kind == r.Kind && s.Name == r.Name {
			return s
		}
	}
	d.status.Routes = append(d.status.Routes, v1alpha1.RouteStatus{Kind: r.Kind, Name: r.Name})
	return &d.status.Routes[len(d.status.Routes)-1]
}
