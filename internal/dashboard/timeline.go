package dashboard

import (
	"slices"
	"strconv"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/diagnose"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// mostPoints bounds what is remembered of one rollout: the oldest points go first.
const mostPoints = 600

// Point is the canary's share at one time, in percent. What is not known is absent.
type Point struct {
	At time.Time `json:"at"`
	// Desired is what the routes are to have, Written what they have and the gateways have
	// confirmed (the highest, where routes differ), and Observed the canary's part of the
	// requests, or of the weights.
	Desired  *float64 `json:"desired,omitempty"`
	Written  *float64 `json:"written,omitempty"`
	Observed *float64 `json:"observed,omitempty"`
}

// timeline is what the dashboard has seen of a rollout's share.
type timeline struct {
	since  time.Time
	points []Point
}

// see adds the share in a status.
func (t *timeline) see(wr *v1alpha1.WeightedRollout, now time.Time) {
	st := &wr.Status
	p := Point{At: now.UTC(), Desired: number(st.Share.Desired), Observed: number(st.Share.Observed)}
	for _, r := range st.Routes {
		if w := number(r.Written); w != nil && (p.Written == nil || *w > *p.Written) {
			p.Written = w
		}
	}
	t.add(p)
}

// measure adds the canary's part of the requests.
func (t *timeline) measure(share float64, now time.Time) {
	if len(t.points) == 0 {
		return
	}
	p := t.points[len(t.points)-1]
	p.At, p.Observed = now.UTC(), &share
	t.add(p)
}

func (t *timeline) add(p Point) {
	if t.since.IsZero() {
		t.since = p.At
	}
	if n := len(t.points); n > 0 && sameShares(t.points[n-1], p) {
		return
	}
	t.points = append(t.points, p)
	if over := len(t.points) - mostPoints; over > 0 {
		t.points = slices.Clone(t.points[over:])
		t.since = t.points[0].At
	}
}

func sameShares(a, b Point) bool {
	same := func(x, y *float64) bool { return x == y || x != nil && y != nil && *x == *y }
	return same(a.Desired, b.Desired) && same(a.Written, b.Written) && same(a.Observed, b.Observed)
}

// number reads a percentage; nil: there is none.
func number(p *v1alpha1.Percent) *float64 {
	if p == nil {
		return nil
	}
	f, err := strconv.ParseFloat(string(*p), 64)
	if err != nil {
		return nil
	}
	return &f
}

// reported is what the controller's events, and the status, say of the share before a
// time: the desired one only.
func reported(wr *v1alpha1.WeightedRollout, events []eventsv1.Event, before time.Time) []Point {
	var told []Point
	tell := func(at time.Time, share weights.Share) {
		if at.Before(before) {
			told = append(told, Point{At: at.UTC(), Desired: new(float64(share) / float64(weights.SharePoint))})
		}
	}
	var share weights.Share
	for _, e := range events {
		at := e.EventTime.Time
		if at.IsZero() {
			at = e.CreationTimestamp.Time
		}
		if c, ok := diagnose.ChangeIn(at, e.Reason, e.Note, share); ok {
			if len(told) == 0 && !c.Started {
				tell(at, c.From)
			}
			tell(at, c.To)
			share = c.To
		}
	}
	if at := wr.Status.Share.ChangedAt; at != nil && wr.Status.Share.Desired != nil {
		if s, err := weights.ShareFrom(*wr.Status.Share.Desired); err == nil {
			tell(at.Time, s)
		}
	}
	slices.SortStableFunc(told, func(a, b Point) int { return a.At.Compare(b.At) })
	return told
}
