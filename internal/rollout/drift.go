package rollout

import (
	"slices"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// driftHealed compares the routes with the record. More for the track under test
// than recorded is taken back at once; less is taken over, and ramps up again, but gives
// the canary no more than it had when the return to stable began. In all cases soak and
// evidence start again, and the stage stays. It decides nothing itself.
func driftHealed(d *draft) bool {
	if !d.known {
		return false
	}
	d.withinStage()
	found := d.drift()
	if found.others() && !d.contend(found.writer) {
		return false
	}
	taken := d.wholeDown(found.lowest)
	if d.returning() {
		taken = min(taken, d.returnedFrom())
	}
	switch {
	case found.less && taken != d.share:
		d.takeOver(taken, found)
	case found.any() && d.confirmed():
		d.unconfirm()
		d.moved = true
		d.event(true, v1alpha1.ReasonDrift, "the weights were changed%s: they are set back to %s percent for the canary, the soak starts again", by(found.writer), percent(d.share))
	case d.confirmed() && (d.sharedAnew() || d.rewrittenByUs()):
		d.unconfirm()
		d.moved = true
	}
	return false
}

// drift is what routes carry that differs from the record.
type drift struct {
	// lowest is the least that one of them gives to the track under test; without less it is
	// the desired part. ours says that this was the controller's own doing.
	lowest     weights.Share
	less, ours bool
	// higher says that one gives more, and rewritten that one has other weights for the same.
	higher, rewritten bool
	// writer wrote it, if known.
	writer string
}

func (f drift) any() bool { return f.less || f.higher || f.rewritten }

// others reports whether another writer has a part in it.
func (f drift) others() bool { return f.less && !f.ours || f.higher || f.rewritten }

// takeOver goes on from a lower share.
func (d *draft) takeOver(share weights.Share, found drift) {
	was := d.share
	d.forceShare(share)
	why := "the weights were changed" + by(found.writer)
	if found.ours {
		why = "the share was taken back, while the status could not be written,"
	}
	d.event(true, v1alpha1.ReasonDrift, "%s from %s percent for the canary to %s: the share ramps back from there, the soak starts again", why, percent(was), percent(d.share))
	if d.status.Outcome == v1alpha1.OutcomePromoted && d.planErr == nil {
		d.reopen()
	}
}

// rewrittenByUs reports whether the controller has set a route back since the confirmation,
// and could not record that.
func (d *draft) rewrittenByUs() bool {
	return d.obs.Status.Share.ConfirmedAt != nil && slices.ContainsFunc(d.obs.Routes, d.writtenByUs)
}

// withinStage lowers a record that says more than its own stage. That of a return has the
// share that the return began at, if it is known.
func (d *draft) withinStage() {
	most := d.recordedStage()
	bound := d.status.Outcome == v1alpha1.OutcomeInProgress || d.returning() && most > 0
	if d.status.Stage == nil || !bound || d.share <= most {
		return
	}
	d.event(true, v1alpha1.ReasonDrift, "status.share.desired is %s percent, more than the stage's %s: the record was changed by another hand, and is set to %s", percent(d.share), percent(most), percent(most))
	d.forceShare(most)
}

// sharedAnew tells whether a route with a third backend was edited since its
// confirmation: with another sum, two pairs of weights that divide the traffic
// differently can both stand for the same share.
func (d *draft) sharedAnew() bool {
	for i, r := range d.obs.Routes {
		if !r.Found || r.Inspection.Problem != nil || r.Generation == d.routeStatus(i).Generation {
			continue
		}
		if slices.ContainsFunc(r.Inspection.Rules, func(m route.ManagedRule) bool { return m.Others }) {
			return true
		}
	}
	return false
}

// drift looks for routes that carry something else than the record says. An intent that has
// not been written yet is no drift.
func (d *draft) drift() drift {
	want := d.tested(d.share)
	found := drift{lowest: want}
	for i, r := range d.obs.Routes {
		if !r.Found || r.Inspection.Problem != nil || r.Inspection.Matches(d.share) {
			continue
		}
		if !d.confirmed() && d.pending(i) {
			continue
		}
		lo, hi := r.Inspection.Observed()
		if d.returning() {
			lo, hi = d.tested(hi), d.tested(lo)
		}
		switch {
		case lo < found.lowest:
			found.lowest, found.less, found.writer, found.ours = lo, true, r.Writer, d.writtenByUs(r)
		case lo < want:
		default:
			found.higher, found.rewritten = found.higher || hi > want, found.rewritten || hi <= want
			if found.writer == "" {
				found.writer = r.Writer
			}
		}
	}
	return found
}

// pending tells whether a route still carries what was confirmed last, so that
// the difference is an intent that is not written yet. A raise that the ramp does
// not allow is none: the record was tampered with, or the ramp was edited since. Nor is
// it one if the route has been written more than once since: the intent was written, and
// another writer has taken it back before it was confirmed; unless it is known that the
// intent was not written.
func (d *draft) pending(i int) bool {
	written := d.routeStatus(i).Written
	if written == nil {
		return false
	}
	if r := d.obs.Routes[i]; r.WriteError == "" && !r.Overtaken && r.Generation > d.routeStatus(i).Generation+1 {
		return false
	}
	bp, err := written.BasisPoints()
	if err != nil || !d.obs.Routes[i].Inspection.Matches(weights.Share(bp)) {
		return false
	}
	from, to := d.tested(weights.Share(bp)), d.tested(d.share)
	switch {
	case to <= from:
		return true
	case d.planErr != nil:
		return true
	}
	return to-from <= d.largestRaise(from)
}

// recordedStage is the weight of the present stage as it was when the stage began.
func (d *draft) recordedStage() weights.Share {
	if d.status.Stage == nil {
		return weights.ShareNone
	}
	share, err := weights.ShareFrom(d.status.Stage.Weight)
	if err != nil {
		return weights.ShareNone
	}
	return share
}

// largestRaise is the most by which the track under test may be raised at once. What
// a cold canary may get has a limit of its own.
func (d *draft) largestRaise(from weights.Share) weights.Share {
	if !d.returning() && (from == 0 || d.status.Warmup != nil) {
		return d.plan.limits.MaxIncrease
	}
	return d.plan.limits.Cap(from)
}

// wholeDown turns a part for the track under test into a share of the canary, in
// whole points where the plan is in whole points, rounded against that track.
func (d *draft) wholeDown(part weights.Share) weights.Share {
	if d.planErr == nil && d.plan.limits.WholePoints {
		part -= part % 100
	}
	return d.tested(part)
}

// reopen puts a promoted attempt back on the way to 100 percent.
func (d *draft) reopen() {
	d.status.Outcome = v1alpha1.OutcomeInProgress
	d.status.OutcomeReason, d.status.OutcomeMessage = "", ""
	d.setStage(d.plan.last())
}

func by(writer string) string {
	if writer == "" {
		return ""
	}
	return " by " + writer
}
