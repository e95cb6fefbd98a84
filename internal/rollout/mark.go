package rollout

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// recorded reads the part of the traffic that a status gives the canary; known is false
// if it has no usable record.
func recorded(s *v1alpha1.WeightedRolloutStatus) (share weights.Share, known bool) {
	if s == nil || s.Share.Desired == nil || s.Attempt < 1 || !knownOutcome(s.Outcome) {
		return weights.ShareNone, false
	}
	bp, err := s.Share.Desired.BasisPoints()
	return weights.Share(bp), err == nil
}

// mark is what a decision leaves on the routes where the status does not have it; nil if it
// neither lowers the share, nor ends or stops the attempt, nor begins the evidence again.
func (d *draft) mark() *route.Mark {
	was := d.obs.Status
	if _, known := recorded(was); !known || !d.known || !openOutcome(was.Outcome) || d.obs.Deleting {
		return nil
	}
	m := &route.Mark{Attempt: was.Attempt, Revision: was.Revision, At: *micro(d.now), Reason: d.reason, Message: d.message}
	unconfirmed := was.Share.ConfirmedAt == nil
	switch {
	case d.status.Attempt != was.Attempt:
		// The cause, as another revision, is found again.
	case d.status.Outcome == v1alpha1.OutcomeRolledBack:
		m.Ended, m.Reason, m.Message = true, d.status.OutcomeReason, d.status.OutcomeMessage
	case !d.open():
	case d.trips() > tripsOf(was.Breaker):
		m.Break, m.Reason, m.Message = true, v1alpha1.ReasonUnhealthy, d.status.Breaker.Message
	case d.raised() < 0:
	case unconfirmed && d.stopsNow():
	case d.raised() == 0 && !unconfirmed && !d.confirmed():
	default:
		return nil
	}
	return m.Instead(was)
}

// stopsNow reports whether the decision stops the attempt, or is the first of a pause.
func (d *draft) stopsNow() bool {
	paused := func(s *v1alpha1.WeightedRolloutStatus) bool {
		return meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionPaused)
	}
	return paused(&d.status) && !paused(d.obs.Status)
}

// raised is by how much the decision gives the track under test more than is recorded; below
// 0, less.
func (d *draft) raised() weights.Share {
	was := d.obs.Status
	share, _ := recorded(was)
	returned := was.Outcome == v1alpha1.OutcomeReturning
	switch {
	case d.returning(), returned && d.share > share:
		// It is stable that is, or was until now, under test.
		return share - d.share
	}
	return d.share - share
}

// raises reports whether the decision gives the track under test more than is recorded,
// or there is no record.
func (d *draft) raises() bool {
	was := d.obs.Status
	_, known := recorded(was)
	return !known || d.open() && d.status.Attempt == was.Attempt && d.raised() > 0
}

// endedOnRoute ends an attempt of which a route says that it is over: the controller has
// lowered the share, could not record it, and has started again since.
func endedOnRoute(d *draft) bool {
	m := d.endMark()
	if m == nil || d.cannotLower() {
		return false
	}
	if next := d.obs.revision(); next != "" && next != d.status.Revision {
		// The other revision ends the attempt in any case.
		return false
	}
	d.rollBack(m.Reason, fmt.Sprintf("%s (at %s, when the status could not be written)", m.Message, m.At.UTC().Format(time.RFC3339)))
	return true
}

// endMark is the mark of a route that ends the attempt, or nil. A break that could not be
// recorded ends it as well: nobody knows how many there were.
func (d *draft) endMark() *route.Mark {
	if !d.known || !d.open() {
		return nil
	}
	for _, r := range d.obs.Routes {
		m := r.Mark
		if !d.matches(m) {
			continue
		}
		if m.Ended || m.Break && m.Overrules(d.obs.Status) {
			return m
		}
	}
	return nil
}

func (d *draft) matches(m *route.Mark) bool {
	return m != nil && m.Attempt == d.status.Attempt && m.Revision == d.status.Revision
}

// writtenByUs reports whether the controller has written a route and could not record that,
// and has started again since.
func (d *draft) writtenByUs(r Route) bool {
	return d.matches(r.Mark) && r.Mark.Overrules(d.obs.Status)
}
