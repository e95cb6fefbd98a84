package rollout

import (
	"fmt"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// trips counts the breaks of this attempt.
func (d *draft) trips() int32 {
	if d.status.Breaker == nil {
		return 0
	}
	return max(d.status.Breaker.Trips, 0)
}

// broken tells whether stable has all traffic because of a break.
func (d *draft) broken() bool { return d.status.Breaker != nil && d.status.Breaker.OpenedAt != nil }

// tripBreaker gives stable all traffic for a while.
func (d *draft) tripBreaker(message string) {
	if d.cannotLower() {
		d.stallStableUnavailable()
		return
	}
	from := d.share
	if d.status.Outcome == v1alpha1.OutcomePromoted {
		d.reopen()
	}
	d.setShare(weights.ShareNone)
	d.status.Breaker = &v1alpha1.BreakerStatus{Trips: d.trips() + 1, OpenedAt: micro(d.now), Message: clip(message)}
	d.status.Warmup = &v1alpha1.WarmupStatus{Reason: v1alpha1.ColdBreak}
	d.writes = WriteAll
	d.event(true, v1alpha1.ReasonBreakerOpen, "break %d of %d: the canary's share goes from %s to 0 percent for %s: %s", d.trips(), d.plan.breaker.maxTrips, percent(from), d.plan.breaker.cooldown, message)
	d.waitForRoutes()
}

// coolingDown keeps stable's traffic where it is until a break is over. The time
// counts from the moment at which the canary was without traffic.
func coolingDown(d *draft) bool {
	if !d.broken() || d.share > 0 || d.status.Outcome != v1alpha1.OutcomeInProgress {
		return false
	}
	b := d.status.Breaker
	from := b.OpenedAt.Time
	if c := d.status.Share.ConfirmedAt; c != nil && c.After(from) {
		from = c.Time
	}
	if at := from.Add(d.plan.breaker.cooldown); d.now.Before(at) {
		d.transitionsAt(at)
		d.wait(v1alpha1.ReasonBreakerOpen, "break %d of %d, at 0 percent for %s, then the canary is tried again: %s", b.Trips, d.plan.breaker.maxTrips, d.plan.breaker.cooldown, b.Message)
		return true
	}
	return false
}

// stop holds the share until a person says resume or abort.
func (d *draft) stop(message string) {
	if d.status.Pause != nil {
		return
	}
	d.status.Pause = &v1alpha1.PauseStatus{Message: clip(message), At: *micro(d.now)}
	d.moved = true
	d.event(true, v1alpha1.ReasonUnhealthy, "held at %s percent, until a person says resume or abort: %s", percent(d.share), message)
}

// stopped holds the share where an unhealthy canary was stopped.
func stopped(d *draft) bool {
	if d.status.Pause == nil || d.returning() {
		return false
	}
	d.phase = v1alpha1.PhasePaused
	d.writes = WriteSafe
	d.stall(v1alpha1.ReasonUnhealthy, "held at %s percent, since the canary was unhealthy and onUnhealthy.action is Pause: %s. Give the resume command, or abort (attempt %d)", percent(d.share), d.status.Pause.Message, d.status.Attempt)
	return true
}

// resume goes on after a stop, with evidence from now on.
func (d *draft) resume() {
	d.status.Pause = nil
	// Bad news from before is known by now.
	d.status.Share.ChangedAt = micro(d.now)
	d.unconfirm()
	d.fresh, d.moved = true, true
}

// refuseResume says why there is nothing to resume, or is empty.
func (d *draft) refuseResume() string {
	switch {
	case !d.known:
		return "there is no record of what was stopped"
	case d.status.Pause != nil:
		return ""
	case d.obs.Spec.Paused:
		return "the rollout is held by spec.paused; set it to false"
	}
	return fmt.Sprintf("attempt %d is not stopped", d.status.Attempt)
}
