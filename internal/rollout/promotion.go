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
	switch update := d.status.StableUpdate; {
	case d.obs.SameTemplate && w.Unready == "":
		d.beginReturn()
		d.event(false, v1alpha1.ReasonReturning, "%s runs revision %q: the traffic returns to it", w, d.status.Revision)
		d.wait(v1alpha1.ReasonReturning, "the traffic returns to stable, which runs revision %q", d.status.Revision)
	case d.obs.SameTemplate:
		d.wait(v1alpha1.ReasonUpdatingStable, "revision %q serves everything; %s has its pod template: %s", d.status.Revision, w, w.Unready)
	case d.obs.Spec.Promotion.Mode != v1alpha1.PromotionUpdateStable:
		return false
	case update != nil && update.Generation != w.Generation && w.WriteError == "":
		d.stall(v1alpha1.ReasonStableChanged, "revision %q serves everything; %s was given its pod template, and was changed again by another writer: let it keep the template, or give the finish command once it runs the revision", d.status.Revision, w)
	case update == nil && !d.mayRaiseNow():
	default:
		d.updateStable(w)
	}
	return true
}

// updateStable asks for stable's workload to be given the canary's pod template, the
// intent first.
func (d *draft) updateStable(w *Workload) {
	d.updates = true
	if d.status.StableUpdate == nil {
		d.status.StableUpdate = &v1alpha1.StableUpdateStatus{Generation: w.Generation, At: *micro(d.now)}
		// From here on nobody knows what stable runs, until it has come to the end.
		d.status.StableRevision = ""
		d.moved = true
		d.event(false, v1alpha1.ReasonStableUpdated, "%s is given the pod template of %s, revision %q", w, d.obs.CanaryWorkload, d.status.Revision)
	}
	if w.WriteError != "" {
		// What was refused has changed nothing: whoever has changed stable since, such as
		// its autoscaler, has taken nothing back.
		d.status.StableUpdate.Generation = w.Generation
		d.stall(v1alpha1.ReasonWorkloadWriteFailed, "revision %q serves everything; %s cannot be given its pod template: %s", d.status.Revision, w, w.WriteError)
		return
	}
	d.wait(v1alpha1.ReasonUpdatingStable, "revision %q serves everything; %s is given its pod template", d.status.Revision, w)
}

// beginReturn makes stable the track under test: the share ramps back to it.
func (d *draft) beginReturn() {
	d.status.Outcome = v1alpha1.OutcomeReturning
	d.status.Verdict, d.status.Pause = nil, nil
	d.status.Comparison, d.status.NoDataSince = nil, nil
	d.status.Contention = nil
	d.forgetCapacity()
	d.fresh, d.moved = true, true
}
