package rollout

import (
	"fmt"
	"slices"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// notOwner keeps a rollout away from the rules that an older one manages.
func notOwner(d *draft) bool {
	if d.obs.Owner == "" {
		return false
	}
	d.release = d.obs.Deleting
	if d.known {
		// Nobody watches the weights for this rollout now, so that what is measured from
		// here on says nothing about its share.
		d.unconfirm()
	}
	d.stall(v1alpha1.ReasonRouteConflict, "the older rollout %q manages the same rule, so this one writes no route: delete one of the two, or give them different routes or ruleNames", d.obs.Owner)
	return true
}

// partOwner holds the share in the rules that are left to a rollout. All that gives stable
// everything comes before, so that a bad canary goes there as anywhere else.
func partOwner(d *draft) bool {
	if d.obs.PartOwner == "" {
		return false
	}
	d.writes = WriteSafe
	held := fmt.Sprintf("held at %s percent", percent(d.share))
	if !d.routesCarry() {
		held += ", which not every route carries"
	}
	d.stall(v1alpha1.ReasonPartialRouteConflict, "%s: %s", held, d.conflict())
	return true
}

// conflict says what an older rollout has taken, and the cure.
func (d *draft) conflict() string {
	return fmt.Sprintf("the older rollout %q manages rules of %s, too: delete one of the two rollouts, or give them different routes or ruleNames", d.obs.PartOwner, d.obs.Taken)
}

// whole begins the soak and the evidence anew once a route has come whose weights nobody
// has confirmed for this rollout at the present share: an older one has let go of it, or
// of a rule of it, or the spec names it since.
func whole(d *draft) bool {
	if !d.known || !d.confirmed() || d.obs.PartOwner != "" {
		return false
	}
	for i, r := range d.obs.Routes {
		if r.Found && r.Inspection.Problem == nil && d.routeStatus(i).ConfirmedAt == nil {
			d.unconfirm()
			d.moved = true
			return false
		}
	}
	return false
}

// observing reports what Enforce would do, and does none of it.
func observing(d *draft) bool {
	if d.obs.Spec.Mode != v1alpha1.ModeObserve {
		return false
	}
	if d.obs.Deleting {
		d.release = true
		d.wait(v1alpha1.ReasonDeleting, "mode is Observe: the routes are left as they are")
		return true
	}
	spec := d.obs.Spec.DeepCopy()
	spec.Mode = v1alpha1.ModeEnforce
	obs := d.obs
	obs.Spec = spec
	would := Decide(obs, d.now)
	d.nextAt = would.NextAt
	d.wait(v1alpha1.ReasonObserving, "mode is Observe, nothing is written; Enforce would %s", wouldDo(d, would))
	return true
}

func wouldDo(d *draft, would Decision) string {
	if would.Status.Pause != nil && d.status.Pause == nil {
		return "stop the rollout, since the canary is unhealthy"
	}
	if would.Share != d.share || slices.ContainsFunc(d.obs.Routes, would.NeedsWrite) {
		return fmt.Sprintf("set the canary's share to %s percent", percent(would.Share))
	}
	return "leave the share as it is"
}

// stableUnavailable holds everything while stable has no ready endpoint. A
// promoted canary needs no stable as long as it is well.
func stableUnavailable(d *draft) bool {
	if d.obs.StableReady || d.returning() {
		return false
	}
	if d.obs.Deleting {
		d.writes = WriteForget
		d.release = true
		d.stallStableUnavailable()
		d.writes = WriteForget
		d.event(true, v1alpha1.ReasonStableUnavailable, "deleted while the stable Service %q has no ready endpoint: the routes keep the canary at %s percent", d.stableService(), percent(d.share))
		return true
	}
	servesAlone := d.status.Outcome == v1alpha1.OutcomePromoted && d.share == weights.ShareAll &&
		d.obs.Orders.Abort != d.status.Attempt && d.obs.revision() == d.status.Revision &&
		d.obs.Verdict.State != v1alpha1.VerdictUnhealthy && d.routesCarry()
	if servesAlone {
		return false
	}
	d.stallStableUnavailable()
	return true
}

// deleted makes the routes safe and lets the object go.
func deleted(d *draft) bool {
	if !d.obs.Deleting {
		return false
	}
	d.wait(v1alpha1.ReasonDeleting, "the routes are made safe before the object goes")
	keep := d.obs.Spec.OnDelete == v1alpha1.DeletionKeep || !d.known ||
		d.status.Outcome == v1alpha1.OutcomePromoted || d.returning() && d.recordedStage() == weights.ShareAll || d.status.Outcome == v1alpha1.OutcomeCompleted
	if keep {
		d.writes = WriteForget
		d.release = true
		return true
	}
	if !d.setShare(weights.ShareNone) {
		return true
	}
	d.writes = WriteRelease
	if refused := d.refusedWrite(); refused != "" {
		d.stall(v1alpha1.ReasonRouteWriteFailed, "deleted, but %s; allow the write, or remove the finalizer %s to let go of the route as it is", refused, v1alpha1.Finalizer)
	}
	d.release = true
	for _, r := range d.obs.Routes {
		if r.Found && len(r.Inspection.Rules) > 0 && !r.Inspection.Matches(weights.ShareNone) {
			d.release = false
		}
	}
	d.release = d.release && !d.keepsPods()
	return true
}

// keepsPods tells whether the canary is to keep its pods for now, until the gateways have
// taken their traffic away.
func (d *draft) keepsPods() bool {
	at := d.status.Share.ChangedAt
	if !d.replicasToReturn() || at == nil || !d.now.Before(at.Add(confirmGrace)) || d.takenByGateways() {
		return false
	}
	d.wakeAt(at.Add(confirmGrace))
	return true
}
