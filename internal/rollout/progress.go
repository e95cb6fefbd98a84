package rollout

import (
	"fmt"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// target is the part of the traffic that the track under test is on the way to.
func (d *draft) target() stage {
	if d.returning() {
		return stage{share: weights.ShareAll}
	}
	return d.plan.stages[d.status.Stage.Index]
}

// ramping takes the share one step closer to the stage's, once the interval has
// passed and the evidence at the present share allows it.
func ramping(d *draft) bool {
	present, target := d.tested(d.share), d.target().share
	d.warm(present, target)
	if present >= target {
		if s := d.status.Stage; s != nil {
			s.ScaledBack = false
		}
		return false
	}
	if present == 0 && !d.testedReady() {
		if first, _ := d.next(present, target); !d.switchedOn(first) {
			return true
		}
		d.waitForEndpoint()
		return true
	}
	d.rampReason(present, target)
	at := d.status.Share.ConfirmedAt.Add(d.pace(present))
	if d.now.Before(at) {
		d.transitionsAt(at)
		return true
	}
	ready, field, requests := d.rampGate()
	if present > 0 && !ready {
		if d.obs.Verdict.Reason == v1alpha1.ReasonAwaitingWindow {
			// As expected of every step, and not worth another write of the status.
			d.transitionAt = at
			return true
		}
		d.wait(v1alpha1.ReasonAwaitingEvidence, "%s: %s", d.at(present, target), d.awaited(field, requests))
		return true
	}
	d.raise(d.next(present, target))
	return true
}

// rampGate tells whether the evidence allows a raise within the stage, and which
// number of requests it needs. A canary that was scaled back needs as much as at the
// end of a stage: a fault that takes some traffic to show would otherwise lift and
// lower the share for ever.
func (d *draft) rampGate() (ready bool, field string, requests int64) {
	if s := d.status.Stage; s != nil && s.ScaledBack && !d.returning() {
		return d.obs.Verdict.StageReady, "health.minRequests", d.minRequests()
	}
	return d.obs.Verdict.RampReady, "health.minRampRequests", d.minRampRequests()
}

// next returns the share that follows present on the way to target, and what keeps
// it from being higher.
func (d *draft) next(present, target weights.Share) (weights.Share, weights.Bound) {
	limits := d.plan.limits
	if d.returning() || present > 0 && d.status.Warmup == nil {
		return weights.NextRaise(present, target, limits), limits.Bound(present, target)
	}
	w := d.warmup()
	if present == 0 {
		return w.First(target, limits), w.Bound(present, target, limits)
	}
	next, bound := w.Next(present, target, limits), w.Bound(present, target, limits)
	if ramp := weights.NextRaise(present, target, limits); d.status.Warmup.Recovered && ramp > next {
		return ramp, limits.Bound(present, target)
	}
	return next, bound
}

func (d *draft) rampReason(present, target weights.Share) {
	switch {
	case d.returning():
		d.wait(v1alpha1.ReasonReturning, "stable gets %s percent again, on the way to %s", percent(present), percent(target))
	case d.broken() && present == 0:
		d.wait(v1alpha1.ReasonBreakerOpen, "at 0 percent after break %d, about to be tried again in stage %s", d.status.Breaker.Trips, d.status.Stage.Position)
	case present == 0:
		d.wait(v1alpha1.ReasonStarting, "at 0 percent, on the way to %s in stage %s", percent(target), d.status.Stage.Position)
	case d.status.Warmup != nil:
		d.wait(v1alpha1.ReasonWarmingUp, "%s: the canary is cold (ramp.warmup)", d.at(present, target))
	default:
		d.wait(v1alpha1.ReasonRamping, "%s", d.at(present, target))
	}
}

func (d *draft) at(present, target weights.Share) string {
	text := "at " + string(percent(present)) + " percent"
	if d.returning() {
		text = "stable " + text
	}
	if present < target {
		text += ", on the way to " + string(percent(target))
	}
	if !d.returning() {
		text += " in stage " + d.status.Stage.Position
	}
	return text
}

func (d *draft) testedReady() bool {
	if d.returning() {
		return d.obs.StableReady
	}
	return d.obs.CanaryReady
}

func (d *draft) waitForEndpoint() {
	if d.returning() {
		d.wait(v1alpha1.ReasonStableNotReady, "the stable Service %q has no ready endpoint, so the traffic cannot return to it: make its pods ready", d.stableService())
		return
	}
	d.wait(v1alpha1.ReasonCanaryNotReady, "the canary Service %q has no ready endpoint, so no traffic is sent to it: make its pods ready", d.canaryService())
}

// raise raises the track under test, if this is the time for it.
func (d *draft) raise(part weights.Share, bound weights.Bound) {
	if part > d.tested(d.share) && d.mayRaiseNow() && d.roomFor(part) {
		d.raiseNow(part, bound)
	}
}

// raiseNow records a raise of the track under test, to be written now.
func (d *draft) raiseNow(part weights.Share, bound weights.Bound) {
	from := d.tested(d.share)
	if part <= from || !d.setShare(d.tested(part)) {
		return
	}
	d.bound = bound
	if from == 0 && !d.returning() {
		d.tellSharedPods()
	}
	d.warmedTo(from, part)
	d.writes = WriteAll
	if d.returning() {
		d.event(false, v1alpha1.ReasonShareLowered, "the canary's share goes to %s percent: the traffic returns to stable", percent(d.share))
	} else {
		d.event(false, v1alpha1.ReasonShareRaised, "the canary's share goes from %s to %s percent in stage %s", percent(from), percent(part), d.status.Stage.Position)
	}
	d.waitForRoutes()
}

// soaking waits until the stage's share has been held for long enough.
func soaking(d *draft) bool {
	t := d.target()
	if t.soak == 0 || d.status.Promote || d.skipped() {
		return false
	}
	from := d.status.Share.ConfirmedAt.Time
	if s := d.status.Stage.StartedAt; s != nil && s.After(from) && !s.After(d.now) {
		from = s.Time
	}
	if d.status.Stage.ClockStoppedSince != nil {
		reason := v1alpha1.ReasonAwaitingEvidence
		if d.degradedNow() {
			reason = v1alpha1.ReasonDegraded
		}
		d.wait(reason, "%s, the soak's clock stands still: %s", d.at(d.share, t.share), d.awaited("", 0))
		return true
	}
	if at := from.Add(t.soak + d.stoodStill()); d.now.Before(at) {
		d.transitionsAt(at)
		d.wait(v1alpha1.ReasonSoaking, "%s for %s", d.at(d.share, t.share), t.soakText)
		return true
	}
	return false
}

// skipped tells whether a person has said skip in this stage.
func (d *draft) skipped() bool {
	return d.status.Stage != nil && d.status.Stage.Skipped && !d.returning()
}

// awaitingApproval waits for a person.
func awaitingApproval(d *draft) bool {
	if !d.target().approval || d.status.Promote || d.status.Stage.Approved || d.skipped() {
		return false
	}
	d.phase = v1alpha1.PhaseAwaitingApproval
	d.wait(v1alpha1.ReasonAwaitingApproval, "%s: give the approve command to go on (for attempt %d; the index of this stage is %d)", d.at(d.share, d.target().share), d.status.Attempt, d.status.Stage.Index)
	return true
}

// gate waits until the evidence at the stage's share lets the stage end.
func gate(d *draft) bool {
	present := d.tested(d.share)
	if !d.obs.Verdict.StageReady {
		d.wait(v1alpha1.ReasonAwaitingEvidence, "%s: %s", d.at(present, d.target().share), d.awaited("health.minRequests", d.minRequests()))
		return true
	}
	if at := d.status.Share.ConfirmedAt.Add(d.plan.interval); d.now.Before(at) && present < weights.ShareAll {
		d.transitionsAt(at)
		d.rampReason(present, present)
		return true
	}
	return false
}

// awaited says what the verdict lacks, without its numbers: those change with every
// sample, and live evidence is no status.
func (d *draft) awaited(field string, requests int64) string {
	v := d.obs.Verdict
	switch v.Reason {
	case v1alpha1.ReasonAwaitingWindow:
		return "waiting for the first full window at this share"
	case v1alpha1.ReasonInsufficientRequests, v1alpha1.ReasonChecksPassed:
		return fmt.Sprintf("waiting for %d requests at this share (%s)", requests, field)
	case v1alpha1.ReasonBreach:
		return fmt.Sprintf("waiting for the breach of %s to end, or to last for onUnhealthy.for", v.Check)
	case v1alpha1.ReasonAboveTarget, v1alpha1.ReasonLowScore:
		if v.Check == "" {
			return "waiting for the health score to be above health.degradedBelow"
		}
		return fmt.Sprintf("waiting for %s to be within its target", v.Check)
	case v1alpha1.ReasonAboveLimit:
		return fmt.Sprintf("waiting for more good requests: since the share was confirmed %s is above its limit", v.Check)
	case v1alpha1.ReasonNotProven:
		return fmt.Sprintf("waiting for the proof that the canary is not worse than stable (health.require NotWorse, %s)", v.Check)
	case v1alpha1.ReasonTrendingUp:
		return "waiting for the response times to stop rising: they would soon be above health.latency.max"
	case v1alpha1.ReasonProviderAuth:
		return "there is no verdict: " + v.Message
	case "":
		return "waiting for the first verdict"
	}
	return fmt.Sprintf("there is no verdict (%s), see the condition Healthy", v.Reason)
}

func (d *draft) minRequests() int64 {
	if h := d.obs.Spec.Health; h != nil {
		return h.MinRequests
	}
	return 0
}

func (d *draft) minRampRequests() int64 {
	if h := d.obs.Spec.Health; h != nil {
		return h.MinRampRequests
	}
	return 0
}

// advance leaves the stage: for the next one, or as promoted or completed.
func advance(d *draft) bool {
	if d.returning() {
		d.status.StableRevision = d.status.Revision
		update := d.status.StableUpdate
		d.end(v1alpha1.OutcomeCompleted, v1alpha1.ReasonCompleted, "stable runs the revision and serves everything")
		// That stable was seen with the template shows, later, that it was given another.
		d.status.StableUpdate = update
		d.event(false, v1alpha1.ReasonCompleted, "revision %q is completed: stable runs it and serves everything", d.status.Revision)
		d.done(v1alpha1.ReasonCompleted, "stable runs revision %q and serves everything", d.status.StableRevision)
		return true
	}
	if i := int(d.status.Stage.Index); i < d.plan.last() {
		if !d.obs.CanaryReady {
			d.waitForEndpoint()
			return true
		}
		next, bound := d.next(d.share, d.plan.stages[i+1].share)
		if !d.mayRaiseNow() || !d.roomFor(next) {
			return true
		}
		d.setStage(i + 1)
		d.event(false, v1alpha1.ReasonStageStarted, "stage %s begins: on the way to %s percent", d.status.Stage.Position, d.status.Stage.Weight)
		// A skip of the stage that ends is good for this raise, and not for the next.
		d.raiseNow(next, bound)
		return true
	}
	d.status.Outcome, d.status.OutcomeReason = v1alpha1.OutcomePromoted, v1alpha1.ReasonPromoted
	d.status.OutcomeMessage = "every gate passed"
	d.status.Promote, d.status.PromoteGeneration = false, 0
	d.moved = true
	d.event(false, v1alpha1.ReasonPromoted, "revision %q has passed the plan and serves everything", d.status.Revision)
	return promoted(d)
}
