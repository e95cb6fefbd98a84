package rollout_test

import (
	"time"
)

// syncTool is another writer of the weights: it sets every route to what it has, again
// and again.
type syncTool struct {
	every   time.Duration
	weights pair
	next    time.Time
	// until is when it stops by itself; zero: never.
	until time.Time
}

// sync starts such a tool now.
func (w *world) sync(every time.Duration, weights pair) {
	w.syncTool = &syncTool{every: every, weights: weights, next: w.at}
}

// runSync lets the tool do what is due, and tells whether it has changed anything.
func (w *world) runSync() (changed bool) {
	t := w.syncTool
	if t == nil || t.next.After(w.at) {
		return false
	}
	if !t.until.IsZero() && w.at.After(t.until) {
		w.syncTool = nil
		return false
	}
	for !t.next.After(w.at) {
		t.next = t.next.Add(t.every)
	}
	for i, r := range w.routes {
		if r.stored == nil || w.live(i).String() == t.weights.String() {
			continue
		}
		w.edit(i, t.weights, "argocd")
		changed = true
	}
	return changed
}
