package rollout

import (
	"fmt"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

const (
	// reassertions is how often weights that another writer has changed are set again.
	reassertions = 5
	// contentionQuiet is how long nobody else must have written for the count to begin anew.
	contentionQuiet = 10 * time.Minute
	// contentionPace is how often the share is lowered after that.
	contentionPace = time.Minute
)

// contended tells whether another writer has had its way so often that the weights are
// not raised any more.
func (d *draft) contended() bool {
	c := d.status.Contention
	return c != nil && c.At != nil && c.Count > reassertions
}

// contentionOpens is from when on the share may be raised again: after 0, 2, 4, 8 and 16
// seconds, and then once a minute.
func (d *draft) contentionOpens() time.Time {
	c := d.status.Contention
	if c == nil || c.At == nil || c.Count < 2 {
		return time.Time{}
	}
	if d.contended() {
		return c.At.Add(contentionPace)
	}
	return c.At.Add(time.Second << min(c.Count-1, 30))
}

// contend counts a change of the weights by another writer. It returns false if nothing
// is to be done about it yet, since that would only be written over again.
func (d *draft) contend(writer string) bool {
	generation := d.foreignGeneration()
	c := d.status.Contention
	switch {
	case generation == 0:
		return true
	case c != nil && d.contended() && d.now.Before(d.contentionOpens()) && !d.changedSince(c.At.Time):
		d.calmed = true
		d.wakeAt(d.contentionOpens())
		return false
	case c != nil && generation == c.Generation && !d.contended():
		// Seen before, and about to be set back.
		return true
	case !d.stillCounts(c):
		c = &v1alpha1.ContentionStatus{}
		d.status.Contention = c
	}
	c.At, c.Generation, d.moved = micro(d.now), generation, true
	if writer != "" {
		c.Manager = clipTo(writer, 253)
	}
	if d.contended() {
		return true
	}
	c.Count++
	if d.contended() {
		d.event(true, v1alpha1.ReasonWeightContention, "%s has changed the weights %d times in a row: they are not raised any more, until a person says resume", d.otherWriter(), c.Count)
	}
	return true
}

// stillCounts tells whether the changes that were counted are no longer ago than a quiet
// time.
func (d *draft) stillCounts(c *v1alpha1.ContentionStatus) bool {
	return c != nil && c.At != nil && c.Count > 0 && (d.contended() || d.now.Sub(c.At.Time) <= contentionQuiet)
}

// changedSince tells whether the share was changed since a time: a rollback is written at
// once, whoever else writes.
func (d *draft) changedSince(t time.Time) bool {
	at := d.status.Share.ChangedAt
	return at != nil && at.After(t)
}

// foreignGeneration is the sum of the generations of the routes, if one that carried a
// share of ours was changed by another writer since, or 0. It rises with every change of
// any of them, and falls only when there are other routes than before.
func (d *draft) foreignGeneration() int64 {
	sum, foreign := int64(0), false
	for i, r := range d.obs.Routes {
		sum += r.Generation
		if !r.Found || r.Inspection.Problem != nil || r.Inspection.Matches(d.share) || d.routeStatus(i).Written == nil || !d.confirmed() && d.pending(i) {
			continue
		}
		foreign = true
	}
	if !foreign {
		return 0
	}
	return sum
}

// stillContended speaks for an attempt that has ended: its routes are set back, once a
// minute at most, until the other writer has been quiet for a while.
func (d *draft) stillContended() bool {
	if !d.contended() {
		return false
	}
	quiet := d.status.Contention.At.Add(contentionQuiet)
	if !d.now.Before(quiet) {
		d.status.Contention = nil
		return false
	}
	d.wakeAt(quiet)
	if d.calmed {
		d.writes = WriteNone
	}
	why := ""
	if d.status.Outcome == v1alpha1.OutcomeRolledBack {
		why = fmt.Sprintf(". Revision %q is rolled back: %s", d.status.Revision, d.status.OutcomeMessage)
	}
	d.stall(v1alpha1.ReasonWeightContention, "%s keeps changing the weights, so stable is given all traffic again once a minute at most: let it leave backendRefs[].weight alone%s", d.otherWriter(), why)
	return true
}

func (d *draft) otherWriter() string {
	if c := d.status.Contention; c != nil && c.Manager != "" {
		return c.Manager
	}
	return "another writer"
}

// contention holds the share while another writer keeps changing the weights, or has just
// done so. Lowering goes on, though not at every turn.
func contention(d *draft) bool {
	if d.contended() {
		d.writes = WriteSafe
		if d.calmed {
			d.writes = WriteNone
		}
		d.stall(v1alpha1.ReasonWeightContention, "%s keeps changing the weights, so they are held at %s percent for the canary and not raised: let it leave backendRefs[].weight alone, then give the resume command for attempt %d", d.otherWriter(), percent(d.share), d.status.Attempt)
		return true
	}
	opens := d.contentionOpens()
	if opens.IsZero() || !d.now.Before(opens) || !d.confirmed() {
		return false
	}
	d.transitionsAt(opens)
	d.wait(v1alpha1.ReasonWeightContention, "%s has changed the weights %d times: they are held at %s percent for the canary for a while", d.otherWriter(), d.status.Contention.Count, percent(d.share))
	return true
}
