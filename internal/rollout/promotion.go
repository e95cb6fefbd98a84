package rollout

import (
	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// promoted holds a canary that has passed the plan, until stable runs the revision, too.
func promoted(d *draft) bool {
	if d.status.Outcome != v1alpha1.OutcomePromoted {
		return false
	}
	if d.share < weights.ShareAll {
		d.reopen()
		return false
	}
	if d.status.OutcomeReason == v1alpha1.ReasonUnhealthy {
		d.done(v1alpha1.ReasonPromoted, "revision %q serves everything again, since stable was unhealthy when the traffic returned to it: %s. Repair stable, then give the finish command", d.status.Revision, d.status.OutcomeMessage)
		return true
	}
	if d.obs.bothWorkloads() && !d.obs.Spec.Paused && d.stableFollows() {
		return true
	}
	d.done(v1alpha1.ReasonPromoted, "revision %q has passed the plan and serves everything: update stable to it, then give the finish command", d.status.Revision)
	return true
}

// stableFollows sees to it that stable's workload gets the revision, if that is asked
// for, and begins the return to it once it has. It returns false if a person has to
// update stable.
func (d *draft) stableFollows() bool {
	w := d.obs.StableWorkload
	if d.obs.SameTemplate {
		d.stableHasIt(w)
		return true
	}
	if d.obs.Spec.Promotion.Mode != v1alpha1.PromotionUpdateStable {
		return false
	}
	switch update := d.status.StableUpdate; {
	case update != nil && (update.Seen || update.Before != w.Revision):
		d.stall(v1alpha1.ReasonStableChanged, "revision %q serves everything; %s was given its pod template, and was changed again by another writer: let it keep the template, or give the finish command once it runs the revision", d.status.Revision, w)
	case update == nil && !d.mayRaiseNow():
	default:
		d.updateStable(w)
	}
	return true
}

// stableHasIt begins the return to a stable that has the revision's pod template, once it
// is rolled out and has the replicas that all traffic takes: until then the canary goes
// on serving, and is watched.
func (d *draft) stableHasIt(w *Workload) {
	if d.status.StableUpdate == nil {
		d.status.StableUpdate = &v1alpha1.StableUpdateStatus{At: *micro(d.now)}
	}
	d.status.StableUpdate.Seen = true
	have, need := len(d.obs.StablePods), d.obs.CanaryWorkload.Replicas
	switch mode := d.capacityMode(); {
	case w.Unready != "":
		d.wait(v1alpha1.ReasonUpdatingStable, "revision %q serves everything; %s has its pod template: %s", d.status.Revision, w, w.Unready)
	case mode != v1alpha1.CapacityIgnore && have < int(need):
		d.wait(v1alpha1.ReasonInsufficientCapacity, "revision %q serves everything; before the traffic returns %s needs %d ready replicas, and has %d", d.status.Revision, w, need, have)
		if mode == v1alpha1.CapacityScale {
			d.scaleUp(w, v1alpha1.TrackStable, need)
			return
		}
		d.message += ": scale it, or set canary.capacity: Scale"
	default:
		d.beginReturn()
		d.event(false, v1alpha1.ReasonReturning, "%s runs revision %q: the traffic returns to it", w, d.status.Revision)
		d.wait(v1alpha1.ReasonReturning, "the traffic returns to stable, which runs revision %q", d.status.Revision)
	}
}

// updateStable asks for stable's workload to be given the canary's pod template, the
// intent first.
func (d *draft) updateStable(w *Workload) {
	d.updates = true
	if d.status.StableUpdate == nil {
		d.status.StableUpdate = &v1alpha1.StableUpdateStatus{Before: w.Revision, At: *micro(d.now)}
		// From here on nobody knows what stable runs, until it has come to the end.
		d.status.StableRevision = ""
		d.moved = true
		d.event(false, v1alpha1.ReasonStableUpdated, "%s is given the pod template of %s, revision %q", w, d.obs.CanaryWorkload, d.status.Revision)
	}
	if w.WriteError != "" {
		d.stall(v1alpha1.ReasonWorkloadWriteFailed, "revision %q serves everything; %s cannot be given its pod template: %s", d.status.Revision, w, w.WriteError)
		return
	}
	d.wait(v1alpha1.ReasonUpdatingStable, "revision %q serves everything; %s is given its pod template", d.status.Revision, w)
}

// stableChanged holds the return to a stable that ran the revision when it began, and
// does not any more. A return that a person has begun is theirs.
func stableChanged(d *draft) bool {
	u := d.status.StableUpdate
	if !d.returning() || u == nil || !u.Seen || !d.obs.bothWorkloads() || d.obs.SameTemplate {
		return false
	}
	d.writes = WriteSafe
	d.stall(v1alpha1.ReasonStableChanged, "the traffic returns to stable, and %s does not have revision %q's pod template any more: give it back, or abort to give stable everything as it is", d.obs.StableWorkload, d.status.Revision)
	return true
}

// beginReturn makes stable the track under test: the share ramps back to it. From here on
// the stage's weight is the share that the return began at.
func (d *draft) beginReturn() {
	d.status.Outcome = v1alpha1.OutcomeReturning
	if d.status.Stage == nil {
		d.status.Stage = &v1alpha1.StageStatus{}
	}
	d.status.Stage.Weight = percent(d.share)
	d.status.Verdict, d.status.Pause = nil, nil
	d.status.Comparison, d.status.NoDataSince = nil, nil
	d.status.Contention = nil
	d.forgetCapacity()
	d.fresh, d.moved = true, true
}

// returnedFrom is the share that the return to stable began at: the canary gets no more of
// the traffic back. Where the record does not know it, it is what the canary still has.
func (d *draft) returnedFrom() weights.Share { return max(d.recordedStage(), d.share) }

// stableUnready gives the canary back what it had when the return began, since stable has
// no ready endpoint.
func (d *draft) stableUnready() {
	share := d.returnedFrom()
	if share > d.share {
		if !d.setShare(share) {
			return
		}
		d.event(true, v1alpha1.ReasonStableNotReady, "the stable Service %q has no ready endpoint: the canary gets %s percent again, as when the traffic began to return", d.stableService(), percent(share))
	}
	// A route that gives the canary more than that is not lowered onto a stable that is away.
	d.writes = WriteSafe
	d.waitForEndpoint()
	if refused := d.refusedWrite(); refused != "" {
		d.stall(v1alpha1.ReasonRouteWriteFailed, "%s. It was to give the canary %s percent again, since the stable Service %q has no ready endpoint", refused, percent(d.share), d.stableService())
	}
}

// unhealthyStable gives the canary back what it had when the return began. Where that is
// not everything stable keeps the rest, and the return stops there until a person says how
// it goes on.
func (d *draft) unhealthyStable(message string) bool {
	if d.status.Pause != nil {
		return false
	}
	share := d.returnedFrom()
	if !d.setShare(share) {
		return true
	}
	if share < weights.ShareAll {
		d.stop("stable is unhealthy: " + message)
		return false
	}
	d.status.Outcome, d.status.OutcomeReason, d.status.OutcomeMessage = v1alpha1.OutcomePromoted, v1alpha1.ReasonUnhealthy, clip(message)
	// From here on the canary is judged again.
	d.status.Verdict, d.fresh, d.moved = nil, true, true
	d.writes = WriteAll
	d.event(true, v1alpha1.ReasonUnhealthy, "stable is unhealthy: the canary serves everything again: %s", message)
	d.waitForRoutes()
	return true
}
