package rollout

import (
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// Writes says which routes are to be brought to the decided share.
type Writes string

const (
	// WriteNone leaves every route alone.
	WriteNone Writes = "None"
	// WriteSafe writes only where that takes traffic off the track under test.
	WriteSafe Writes = "Safe"
	// WriteAll writes every route that differs.
	WriteAll Writes = "All"
	// WriteRelease is WriteAll for the last time: our annotation goes too.
	WriteRelease Writes = "Release"
	// WriteForget takes our annotation away and leaves the weights as they are.
	WriteForget Writes = "Forget"
)

// Decision is what to do.
type Decision struct {
	// Status is the new status: the intent. It is written before any route is raised.
	Status v1alpha1.WeightedRolloutStatus
	// Share is the canary's share that the routes are to have, where Writes says so.
	Share weights.Share
	// Bound names what kept this decision's raise from being larger; empty if it is
	// no raise.
	Bound weights.Bound
	// Writes says which routes to write.
	Writes Writes
	// Returning is true while stable is the track under test.
	Returning bool
	// Scales are replicas to be set, after the status is written.
	Scales []Scale
	// UpdateStable asks for stable's workload to be given the canary's pod template, after
	// the status is written.
	UpdateStable bool
	// Events are to be emitted once everything is written.
	Events []Event
	// NextAt is when to decide again if nothing happens before; zero if only an
	// event can change anything.
	NextAt time.Time
	// Release is true once the finalizer may go.
	Release bool
	// Mark is left on the routes that are lowered where the status could not be written;
	// nil if the decision neither lowers the share, nor ends or stops the attempt, nor begins
	// the evidence again.
	Mark *route.Mark
	// Raises is true if the track under test gets more than is recorded, or there is no
	// record. Such a decision is nothing before it is recorded.
	Raises bool

	// wasReturning is true if stable was the track under test until now; unconfirmed, if the
	// recorded share was not confirmed, so that its write may still be on the way.
	wasReturning, unconfirmed bool
}

// Event is something to tell people, once.
type Event struct {
	// Warning tells a warning from a normal event.
	Warning bool
	// Reason is one of the API's reasons.
	Reason string
	// Message is a sentence.
	Message string
}

// NeedsWrite tells whether the decision asks for a write to the given route,
// apart from the annotation.
func (d Decision) NeedsWrite(r Route) bool {
	if !r.Found || len(r.Inspection.Rules) == 0 || r.Inspection.Matches(d.Share) {
		return false
	}
	switch d.Writes {
	case WriteAll, WriteRelease:
		// A route with a fault can be made safer, but is never given more.
		return r.Inspection.Problem == nil || d.safer(r)
	case WriteSafe:
		return d.safer(r)
	case WriteNone, WriteForget:
	}
	return false
}

// safer tells whether the write takes traffic off the track under test.
func (d Decision) safer(r Route) bool {
	low, high := r.Inspection.Observed()
	if d.Returning {
		return low < d.Share
	}
	return high > d.Share
}

// Lowers reports whether the decision asks for a write to the route that takes traffic off
// the track that is, or was until now, under test. Such a write waits for no record.
func (d Decision) Lowers(r Route) bool {
	if !d.NeedsWrite(r) {
		return false
	}
	low, _ := r.Inspection.Observed()
	return d.safer(r) || d.wasReturning && !d.Returning && low < d.Share
}

// TakesBack reports whether an earlier decision to raise the route, by this controller or by
// one that is slower, may not have been written yet, and is not to be written any more: the
// route has the decided weights already, or is not to be brought to them. A write to the
// route, whatever it says, keeps that one from going through.
func (d Decision) TakesBack(r Route) bool {
	return d.Mark != nil && d.unconfirmed && r.Found && !r.Partly && (d.Writes == WriteForget || !d.NeedsWrite(r))
}

// Climbs reports whether the write gives the canary more than some rule of the route does,
// or, on the return, stable.
func (d Decision) Climbs(r Route) bool {
	low, high := r.Inspection.Observed()
	return d.Writes != WriteForget && (low < d.Share || d.Returning && high > d.Share)
}
