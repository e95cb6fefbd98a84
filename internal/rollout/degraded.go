package rollout

import (
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// degradedNow tells whether the canary is degraded at its present share.
func (d *draft) degradedNow() bool {
	return d.obs.Verdict.State == v1alpha1.VerdictDegraded && !d.fresh && d.share > 0 && d.status.Outcome == v1alpha1.OutcomeInProgress
}

// blindNow tells whether the metrics do not let the canary be judged: they are missing,
// old, odd, or cannot be read. That too few requests have come yet, or that a proof is
// awaited, is part of any soak.
func (d *draft) blindNow() bool {
	v := d.obs.Verdict
	if v.State != v1alpha1.VerdictUnknown || d.fresh || d.share == 0 || d.status.Outcome != v1alpha1.OutcomeInProgress {
		return false
	}
	switch v.Reason {
	case v1alpha1.ReasonAwaitingWindow, v1alpha1.ReasonInsufficientRequests, v1alpha1.ReasonTrendingUp, v1alpha1.ReasonNotProven:
		return false
	}
	return true
}

// soakClock stops the soak's clock while the canary is degraded or nothing can be seen
// of it, whatever else holds the rollout: a soak is a time in which it was watched.
// Before the share is confirmed there is no soak. It decides nothing itself.
func soakClock(d *draft) bool {
	// At a share that was already judged, a verdict that awaits its first window only
	// says that the controller has started anew.
	if d.known && d.confirmed() && d.obs.Verdict.Reason != v1alpha1.ReasonAwaitingWindow {
		d.stopClock(d.degradedNow() || d.blindNow())
	}
	return false
}

// degraded scales the share of a degraded canary back by its health score.
func degraded(d *draft) bool {
	v := d.obs.Verdict
	if !d.degradedNow() || !v.ScaleBack {
		return false
	}
	target := d.target().share
	next := weights.ScaleBack(d.share, target, scoreShare(v.Score), d.plan.limits)
	why := d.awaited("", 0)
	if next >= d.share {
		d.wait(v1alpha1.ReasonDegraded, "held %s: %s", d.at(d.share, target), why)
		return true
	}
	d.wait(v1alpha1.ReasonDegraded, "%s: %s", d.at(d.share, target), why)
	if at := d.status.Share.ConfirmedAt.Add(d.plan.interval); d.now.Before(at) {
		d.transitionsAt(at)
		return true
	}
	from := d.share
	if d.setShare(next) {
		d.status.Stage.ScaledBack = true
		d.writes = WriteAll
		d.event(true, v1alpha1.ReasonDegraded, "the canary's share goes from %s to %s percent, since it is degraded: %s", percent(from), percent(next), v.Message)
		d.waitForRoutes()
	}
	return true
}

// scoreShare writes a score in basis points.
func scoreShare(score float64) weights.Share {
	switch {
	case !(score > 0):
		return weights.ShareNone
	case score >= 1:
		return weights.ShareAll
	}
	return weights.Share(score * float64(weights.ShareAll))
}

// stopClock stops the soak's clock, or lets it run on.
func (d *draft) stopClock(stop bool) {
	s := d.status.Stage
	if s == nil || d.returning() {
		return
	}
	switch {
	case stop && s.ClockStoppedSince == nil:
		s.ClockStoppedSince = micro(d.now)
	case !stop && s.ClockStoppedSince != nil:
		// Whole seconds, rounded up: a soak is never shortened.
		still := d.stoodStill() + d.now.Sub(s.ClockStoppedSince.Time)
		s.ClockStoppedFor = (still + time.Second - time.Nanosecond).Truncate(time.Second).String()
		s.ClockStoppedSince = nil
	}
}

// stoodStill is how long the soak's clock has stood still before.
func (d *draft) stoodStill() time.Duration {
	still, err := time.ParseDuration(d.status.Stage.ClockStoppedFor)
	if err != nil || still < 0 {
		return 0
	}
	const most = 10 * 365 * 24 * time.Hour
	still = min(still, most)
	return still
}
