package rollout

import (
	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// mayRaiseNow tells whether the share may be raised at this time of the week. If not, it
// says when.
func (d *draft) mayRaiseNow() bool {
	if d.plan.windows.Open(d.now) {
		return true
	}
	// What a person has said of the plan does not hold for what comes after it.
	if d.status.Outcome == v1alpha1.OutcomeInProgress && (d.status.Promote || d.skipped()) {
		return true
	}
	next := d.plan.windows.Next(d.now)
	if next.IsZero() {
		d.wait(v1alpha1.ReasonOutsideWindow, "held at %s percent: none of plan.windows ever opens (%s)", percent(d.share), d.plan.windows)
		return false
	}
	d.transitionsAt(next)
	d.wait(v1alpha1.ReasonOutsideWindow, "held at %s percent until a window of plan.windows opens (%s)", percent(d.share), d.plan.windows)
	return false
}
