package rollout

import (
	"fmt"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// invalid holds the share while something about the spec or a route has to be put
// right by a person.
func invalid(d *draft) bool {
	if d.known {
		d.writes = WriteSafe
	}
	switch p := d.obs.SpecProblem; {
	case d.planErr != nil:
		d.stall(v1alpha1.ReasonInvalidSpec, "%v", d.planErr)
		return true
	case p != nil:
		d.stall(p.Reason, "%s", p.Message)
		return true
	}
	if w := d.unreadable(); w != nil {
		d.stall(v1alpha1.ReasonWorkloadMissing, "%s: %s", w, w.Problem)
		return true
	}
	if d.obs.revision() == "" && !d.returning() {
		d.stall(v1alpha1.ReasonInvalidSpec, "spec.revision is empty, and spec.canary.workload has no pod template that a revision could follow from: name the revision")
		return true
	}
	for _, r := range d.obs.Routes {
		if !r.Found {
			d.stall(v1alpha1.ReasonRouteMissing, "there is no %s %q: create it, or correct spec.routes", r.Kind, r.Name)
			return true
		}
		if p := r.Inspection.Problem; p != nil {
			d.stall(p.Reason, "%s %q: %s", r.Kind, r.Name, p.Message)
			return true
		}
		if p := r.Inspection.Express(d.smallestStep()); p != nil {
			d.stall(p.Reason, "%s %q: %s", r.Kind, r.Name, p.Message)
			return true
		}
	}
	if len(d.obs.Routes) == 0 {
		d.stall(v1alpha1.ReasonInvalidSpec, "spec.routes is empty: name the route whose weights are to be managed")
		return true
	}
	d.writes = WriteNone
	return false
}

// smallestStep is the smallest share that the weights have to express: the first step
// from 0. A canary with a weight of 0 would wait for its first request for ever, and
// weights that are coarser than the ramp's steps would make several of them in one.
// While the traffic returns to stable any share can be written, since stable's weight
// is rounded up.
func (d *draft) smallestStep() weights.Share {
	if d.returning() {
		return weights.ShareNone
	}
	stage := d.plan.stages[0]
	if s := d.status.Stage; s != nil && s.Index >= 0 && int(s.Index) < len(d.plan.stages) {
		stage = d.plan.stages[s.Index]
	}
	return weights.NextRaise(weights.ShareNone, stage.share, d.plan.limits)
}

// planEdited finds the place in a plan that was edited in mid-way, and starts its
// soak again. It decides nothing itself.
func planEdited(d *draft) bool {
	if d.status.Outcome != v1alpha1.OutcomeInProgress {
		return false
	}
	if s := d.status.Stage; s != nil && s.Index >= 0 && int(s.Index) < len(d.plan.stages) {
		planned := d.plan.stages[s.Index]
		bp, err := s.Weight.BasisPoints()
		if err == nil && weights.Share(bp) == planned.share && s.Soak == planned.soakText && d.share <= planned.share {
			if position := d.plan.position(int(s.Index)); s.Position != position {
				s.Position = position
			}
			return false
		}
	}
	d.setStage(d.plan.stageFor(d.share))
	d.event(false, v1alpha1.ReasonPlanChanged, "the plan changed: stage %s with %s percent is the present one, its soak starts again", d.status.Stage.Position, d.status.Stage.Weight)
	return false
}

// pausedBySpec tells whether a person wants the share held. Who says promote to a paused
// rollout wants it promoted; a pause that comes after that holds again.
func (d *draft) pausedBySpec() bool {
	return d.obs.Spec.Paused && (!d.status.Promote || d.status.PromoteGeneration != d.obs.Generation)
}

// paused holds the share while a person wants it so.
func paused(d *draft) bool {
	if !d.pausedBySpec() || (d.status.Outcome == v1alpha1.OutcomePromoted && d.share == weights.ShareAll) {
		return false
	}
	d.phase = v1alpha1.PhasePaused
	d.writes = WriteSafe
	d.wait(v1alpha1.ReasonPaused, "held at %s percent by spec.paused; a breach of health still rolls back", percent(d.share))
	return true
}

// unconfirmed writes what is not written yet, and waits until every gateway has
// taken it.
func unconfirmed(d *draft) bool {
	if refused := d.refusedWrite(); refused != "" {
		d.writes = WriteAll
		if d.broken() {
			refused += fmt.Sprintf(". It was to give stable all traffic, since the canary is unhealthy (break %s): %s", d.breakCount(), d.status.Breaker.Message)
		}
		d.stall(v1alpha1.ReasonRouteWriteFailed, "%s", refused)
		return true
	}
	if message := d.rejection(); message != "" {
		d.writes = WriteSafe
		d.wait(v1alpha1.ReasonRouteNotConfirmed, "held at %s percent: %s", percent(d.share), message)
		return true
	}
	if d.confirmed() {
		for _, r := range d.obs.Routes {
			if !r.confirmed() {
				d.wait(v1alpha1.ReasonRouteNotConfirmed, "%s %q: %s", r.Kind, r.Name, r.Acceptance.Message)
				return true
			}
		}
		return false
	}
	d.writes = WriteAll
	for _, r := range d.obs.Routes {
		if r.Inspection.Matches(d.share) && !r.confirmed() && !d.underWay(r) {
			d.wait(v1alpha1.ReasonRouteNotConfirmed, "%s percent is written; %s %q: %s", percent(d.share), r.Kind, r.Name, r.Acceptance.Message)
			return true
		}
	}
	d.waitForRoutes()
	return true
}

// refusedWrite says which route could not be brought to the desired share, or is empty.
func (d *draft) refusedWrite() string {
	for _, r := range d.obs.Routes {
		if r.WriteError != "" && !r.Inspection.Matches(d.share) {
			return fmt.Sprintf("%s %q cannot be written: %s", r.Kind, r.Name, r.WriteError)
		}
	}
	return ""
}

// waitForRoutes says that the share is on its way to the gateways. The words are the
// same before and after the write, so that the write to the route brings none to
// the status.
func (d *draft) waitForRoutes() {
	if d.tested(d.share) == 0 && !d.testedReady() {
		d.waitForEndpoint()
		return
	}
	d.wait(v1alpha1.ReasonRouteNotConfirmed, "the routes are being set to %s percent for the canary", percent(d.share))
}

// confirmGrace is how long the gateways may take before the status names the one
// that is awaited.
const confirmGrace = 30 * time.Second

// underWay tells whether a route is about to be written, or was so recently that its
// gateways need not have taken it yet.
func (d *draft) underWay(r Route) bool {
	if (Decision{Share: d.share, Writes: d.writes, Returning: d.returning()}).NeedsWrite(r) {
		return true
	}
	changed := d.status.Share.ChangedAt
	return !d.confirmed() && r.Acceptance.State == route.Pending && changed != nil && d.now.Before(changed.Add(confirmGrace))
}
