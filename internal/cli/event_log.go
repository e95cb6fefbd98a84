package cli

import (
	"context"
	"slices"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// events reads the controller's events about a rollout, and not about an earlier one of
// the same name, the oldest first.
func (c *cluster) events(ctx context.Context, wr *v1alpha1.WeightedRollout) ([]eventsv1.Event, error) {
	list, err := c.eventList(ctx, wr.Name)
	return about(wr, list.Items), err
}

// eventList reads the events about objects of a name.
func (c *cluster) eventList(ctx context.Context, name string) (*eventsv1.EventList, error) {
	list := &eventsv1.EventList{}
	return list, c.read(ctx, eventsv1.SchemeGroupVersion.String(), "events", "", "regarding.name="+name, list)
}

// about keeps the events about a rollout, in order.
func about(wr *v1alpha1.WeightedRollout, events []eventsv1.Event) []eventsv1.Event {
	kept := slices.DeleteFunc(events, func(e eventsv1.Event) bool { return !isAbout(wr, e) })
	slices.SortStableFunc(kept, func(a, b eventsv1.Event) int { return happened(a).Compare(happened(b)) })
	return kept
}

func isAbout(wr *v1alpha1.WeightedRollout, e eventsv1.Event) bool {
	return e.Regarding.Kind == "WeightedRollout" && e.Regarding.UID == wr.UID
}

// happened is when an event came first.
func happened(e eventsv1.Event) time.Time {
	if e.EventTime.IsZero() {
		return e.CreationTimestamp.Time
	}
	return e.EventTime.Time
}

// lastHappened is when an event came last, and how often it has come.
func lastHappened(e eventsv1.Event) (at time.Time, times int32) {
	if s := e.Series; s != nil && s.Count > 1 {
		return s.LastObservedTime.Time, s.Count
	}
	return happened(e), 1
}
