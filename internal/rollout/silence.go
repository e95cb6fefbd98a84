package rollout

import (
	"fmt"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// silent acts on the lack of a verdict. Silence holds the share; where the spec says so
// it rolls back once it has lasted for health.noDataTimeout. As with bad news, nothing
// that holds the rollout keeps that from happening.
func silent(d *draft) bool {
	since, ok := d.noDataSince()
	if !ok || d.planErr != nil || !d.silenceCounts() {
		return false
	}
	deadline := since.Add(d.plan.noDataTimeout)
	if d.now.Before(deadline) {
		d.wakeAt(deadline)
		return false
	}
	v := d.obs.Verdict
	d.rollBack(v.Reason, fmt.Sprintf("no verdict for %s (health.onNoData): %s", d.plan.noDataText, v.Message))
	return true
}

// noDataSince returns since when there is no verdict on the canary for want of data, if
// there is none. It keeps the record of it.
//
// Metrics that cannot be read are recorded when they are first seen, in the write that
// tells of them anyway. Too few requests are usual at a new share, and worth a write of
// their own only where their time matters.
func (d *draft) noDataSince() (time.Time, bool) {
	s := &d.status
	v := d.obs.Verdict
	if !d.known || d.status.Outcome != v1alpha1.OutcomeInProgress || d.share == 0 || d.fresh || !d.confirmed() || v.State == "" {
		return time.Time{}, false
	}
	if v.Reason == v1alpha1.ReasonAwaitingWindow {
		// The share is new, or the controller is: either way the evidence is on its way.
		return time.Time{}, false
	}
	if v.State != v1alpha1.VerdictUnknown || v.Reason == v1alpha1.ReasonTrendingUp || v.Reason == v1alpha1.ReasonNotProven {
		s.NoDataSince = nil
		return time.Time{}, false
	}
	if s.NoDataSince == nil && (v.Reason != v1alpha1.ReasonInsufficientRequests || d.silenceCounts()) {
		s.NoDataSince = micro(d.now)
	}
	if s.NoDataSince == nil {
		return time.Time{}, false
	}
	return s.NoDataSince.Time, true
}

// silenceCounts says whether the spec gives silence a time.
func (d *draft) silenceCounts() bool {
	return d.obs.Spec.Health != nil && d.obs.Spec.Health.OnNoData == v1alpha1.NoDataRollback
}
