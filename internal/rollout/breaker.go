package rollout

import (
	"fmt"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// trips counts the breaks of this attempt.
func (d *draft) trips() int32 { return tripsOf(d.status.Breaker) }

func tripsOf(b *v1alpha1.BreakerStatus) int32 {
	if b == nil {
		return 0
	}
	return max(b.Trips, 0)
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
		// What was proved has been disproved: the whole plan again.
		d.reopen()
		d.setStage(0)
	}
	d.setShare(weights.ShareNone)
	d.status.Breaker = &v1alpha1.BreakerStatus{Trips: d.trips() + 1, OpenedAt: micro(d.now), Message: clip(message)}
	d.status.Warmup = &v1alpha1.WarmupStatus{Reason: v1alpha1.ColdBreak}
	if d.obs.Verdict.Reason == v1alpha1.ReasonWorseThanStable {
		// Found by the comparison, it has no time again in which it is not compared.
		d.status.Warmup.HeldFor = d.plan.warmupSoak.String()
	}
	// What is tried again is compared again, from the start.
	d.status.Pause, d.status.Comparison = nil, nil
	d.withdraw()
	d.writes = WriteAll
	d.event(true, v1alpha1.ReasonBreakerOpen, "break %s: the canary's share goes from %s to 0 percent for %s: %s", d.breakCount(), percent(from), d.plan.breaker.text, message)
	d.waitForRoutes()
}

// breakCount writes which break it is, of how many: "1 of 3".
func (d *draft) breakCount() string {
	return fmt.Sprintf("%d of %d", d.trips(), max(d.trips(), d.plan.breaker.maxTrips))
}

// withdraw takes back what people have allowed a canary that turned out unhealthy
// since.
func (d *draft) withdraw() {
	d.status.Promote, d.status.PromoteGeneration = false, 0
	if s := d.status.Stage; s != nil {
		s.Approved, s.Skipped = false, false
	}
}

// coolingDown keeps stable's traffic where it is until a break is over. An action that
// was changed meanwhile is carried out.
func coolingDown(d *draft) bool {
	if !d.broken() || d.share > 0 || d.status.Outcome != v1alpha1.OutcomeInProgress {
		return false
	}
	b := d.status.Breaker
	switch d.obs.Spec.OnUnhealthy.Action {
	case v1alpha1.UnhealthyRollback:
		d.rollBack(v1alpha1.ReasonUnhealthy, b.Message)
		return true
	case v1alpha1.UnhealthyPause:
		b.OpenedAt = nil
		d.stop(b.Message)
		return stopped(d)
	case v1alpha1.UnhealthyBreak:
	}
	if at := b.OpenedAt.Add(d.plan.breaker.cooldown); d.now.Before(at) {
		d.transitionsAt(at)
		d.wait(v1alpha1.ReasonBreakerOpen, "break %s, at 0 percent for %s, then the canary is tried again: %s", d.breakCount(), d.plan.breaker.text, b.Message)
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
	d.withdraw()
	d.moved = true
	d.event(true, v1alpha1.ReasonUnhealthy, "held at %s percent, until a person says resume or abort: %s", percent(d.share), message)
}

// stopped holds the share where an unhealthy canary was stopped.
func stopped(d *draft) bool {
	if d.status.Pause == nil {
		return false
	}
	d.phase = v1alpha1.PhasePaused
	d.writes = WriteSafe
	held := fmt.Sprintf("held at %s percent", percent(d.share))
	if refused := d.refusedWrite(); refused != "" {
		held = fmt.Sprintf("to be held at %s percent, but %s", percent(d.share), refused)
	} else if !d.routesCarry() {
		held += " (the routes do not carry that share yet)"
	}
	if d.returning() {
		d.stall(v1alpha1.ReasonUnhealthy, "%s, where the traffic began to return to stable: %s. Repair stable, then give the resume command, or abort to give stable everything as it is (attempt %d)", held, d.status.Pause.Message, d.status.Attempt)
		return true
	}
	d.stall(v1alpha1.ReasonUnhealthy, "%s, since onUnhealthy.action Pause stopped an unhealthy canary: %s. Give the resume command, or abort (attempt %d)", held, d.status.Pause.Message, d.status.Attempt)
	return true
}

// resume goes on after a stop, with evidence from now on.
func (d *draft) resume() {
	d.status.Pause, d.status.Contention = nil, nil
	// Bad news from before is known by now.
	d.status.Share.ChangedAt = micro(d.now)
	d.unconfirm()
	d.status.Comparison = nil
	d.fresh, d.moved = true, true
}

// refuseResume says why there is nothing to resume, or is empty.
func (d *draft) refuseResume() string {
	switch {
	case !d.known:
		return "there is no record of what was stopped"
	case d.stoppedByUs():
		return ""
	case d.obs.Spec.Paused:
		return "the rollout is held by spec.paused; set it to false"
	}
	return fmt.Sprintf("attempt %d is not stopped", d.status.Attempt)
}
