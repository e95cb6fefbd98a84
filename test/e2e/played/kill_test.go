package played

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// wholeRun is every combination of weights from a route that says nothing, through
// the plan, to promotion and back to the updated stable.
var wholeRun = []string{
	"1/1", "100/0", "99/1", "95/5", "90/10", "80/20", "50/50", "20/80", "0/100",
	"30/70", "60/40", "90/10", "100/0",
}

// writesOfWholeRun is every write that such a run cannot do without.
var writesOfWholeRun = []string{
	"finalizer",
	"intent 0", "route 0", "confirmation 0",
	"intent 1", "route 1", "confirmation 1",
	"intent 5", "route 5", "confirmation 5",
	"intent 10", "route 10", "confirmation 10",
	"intent 20", "route 20", "confirmation 20",
	"intent 50", "route 50", "confirmation 50",
	"intent 80", "route 80", "confirmation 80",
	"intent 100", "route 100", "confirmation 100",
	"outcome Promoted",
	"intent 70 returning", "route 70 returning", "confirmation 70 returning",
	"intent 40 returning", "route 40 returning", "confirmation 40 returning",
	"intent 10 returning", "route 10 returning", "confirmation 10 returning",
	"intent 0 returning", "route 0 returning", "confirmation 0 returning",
	"outcome Completed",
}

// TestC27WholeRun is the reference: the weights and the writes of an undisturbed run.
func TestC27WholeRun(t *testing.T) {
	w := newWorld(t)
	writes := newWriteNames()
	w.api.onAnswer(func(r *request) bool {
		if r.isOurWrite() && r.accepted() {
			writes.accept(r)
		}
		return false
	})
	w.runWhole("web")
	w.wantWeights("web", wholeRun...)
	// The last write is seen in the status before its answer is.
	eventually(t, "the last write is answered", func() (bool, string) {
		return len(writes.count("outcome Completed")) > 0, fmt.Sprint(writes.names())
	})
	for _, name := range writesOfWholeRun {
		if n := len(writes.count(name)); n != 1 {
			t.Errorf("the write %q was made %d times, want once", name, n)
		}
	}
	t.Logf("%d writes for %d changes of share: %v", len(writes.names()), len(wholeRun)-1, writes.names())
}

// TestC27KilledBeforeEveryWrite kills the manager each time before a write reaches
// the API server.
func TestC27KilledBeforeEveryWrite(t *testing.T) {
	w := newWorld(t)
	kills := newWriteNames()
	// A point is where the manager was killed: how many writes had been accepted by
	// then, and before which one. The same write is let through the next time.
	type point struct {
		accepted int
		write    string
	}
	killed, accepted := map[point]bool{}, 0
	var mu sync.Mutex
	w.api.onRequest(func(r *request) verdict {
		if !r.isOurWrite() {
			return verdict{}
		}
		mu.Lock()
		defer mu.Unlock()
		here := point{accepted, kills.peek(r)}
		if killed[here] {
			return verdict{}
		}
		killed[here] = true
		kills.note(here.write)
		w.killManager()
		return verdict{drop: true}
	})
	w.api.onAnswer(func(r *request) bool {
		mu.Lock()
		defer mu.Unlock()
		if r.isOurWrite() && r.accepted() {
			kills.track(r)
			accepted++
		}
		return false
	})
	w.runWhole("web")
	w.wantWeights("web", wholeRun...)
	kills.mustCover(t, writesOfWholeRun)
	mu.Lock()
	defer mu.Unlock()
	if len(kills.all) < accepted {
		t.Errorf("the manager was killed before %d writes, and %d were accepted in the end", len(kills.all), accepted)
	}
	t.Logf("killed %d times, before: %v", len(kills.all), kills.all)
}

// TestC27KilledAfterEveryWrite kills the manager each time after the API server has
// accepted a write, and before the manager knows.
func TestC27KilledAfterEveryWrite(t *testing.T) {
	w := newWorld(t)
	kills := newWriteNames()
	w.api.onAnswer(func(r *request) bool {
		if !r.isOurWrite() || !r.accepted() {
			return false
		}
		kills.accept(r)
		w.killManager()
		return true
	})
	w.runWhole("web")
	w.wantWeights("web", wholeRun...)
	kills.mustCover(t, writesOfWholeRun)
	if n := len(w.api.inOrder()); len(kills.all) != n {
		t.Errorf("the manager was killed after %d writes of %d", len(kills.all), n)
	}
	t.Logf("killed %d times, after: %v", len(kills.all), kills.all)
}

// runWhole runs a rollout from a route without weights to its completion, and
// starts the manager again whenever it has been killed.
func (w *world) runWhole(name string) {
	w.t.Helper()
	w.create(newRoute(w.namespace, name, nil, nil))
	w.rolloutFor(name)
	began := time.Now()
	finished := false
	// Every kill costs a start, so there is far more to wait for than usual.
	for deadline := began.Add(4 * patience); ; time.Sleep(pollEvery) {
		if !w.hasManager() {
			w.startManager()
		}
		wr := w.get(name)
		if wr.Status.Outcome == v1alpha1.OutcomeCompleted {
			break
		}
		if wr.Status.Outcome == v1alpha1.OutcomePromoted && !finished {
			finished = true
			w.command(name, v1alpha1.VerbFinish)
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("the run is not completed after %s: %s", time.Since(began), summary(wr))
		}
	}
	// The manager may have been killed by the very last write; what it does after a
	// start must be nothing.
	if !w.hasManager() {
		w.startManager()
	}
	w.t.Logf("completed after %.1f s", time.Since(began).Seconds())
}

// writeNames gives the writes of one rollout names that a person can read.
type writeNames struct {
	mu        sync.Mutex
	all       []string
	share     float64 // of the last accepted intent
	returning bool
}

func newWriteNames() *writeNames { return &writeNames{share: -1} }

// accept notes a write that was accepted.
func (n *writeNames) accept(r *request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, n.name(r, true))
}

// peek names a write that may not happen.
func (n *writeNames) peek(r *request) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name(r, false)
}

// names are those of all writes so far.
func (n *writeNames) names() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

func (n *writeNames) note(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, name)
}

// track follows a write that was accepted without noting it.
func (n *writeNames) track(r *request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.name(r, true)
}

// name gives a write one name.
func (n *writeNames) name(r *request, accepted bool) string {
	share, returning := n.share, n.returning
	name := ""
	switch {
	case r.isRouteWrite():
		p, _ := r.firstPair()
		name = fmt.Sprintf("route %d", p.canary*100/max(1, p.stable+p.canary))
	case !r.isStatusWrite():
		return "finalizer"
	default:
		patch, err := r.patch()
		if err != nil {
			return err.Error()
		}
		outcome, _ := at(patch, "status", "outcome").(string)
		returning = (returning && outcome == "") || outcome == string(v1alpha1.OutcomeReturning)
		switch {
		case has(patch, "status", "share", "desired"):
			share = number(at(patch, "status", "share", "desired"))
			name = fmt.Sprintf("intent %g", share)
		case at(patch, "status", "share", "confirmedAt") != nil:
			name = fmt.Sprintf("confirmation %g", share)
		case outcome != "":
			name = "outcome " + outcome
		case has(patch, "status", "verdict"):
			name = "verdict " + fmt.Sprint(at(patch, "status", "verdict", "state"))
		default:
			name = "conditions"
		}
	}
	if returning && strings.ContainsAny(name, "0123456789") {
		name += " returning"
	}
	if accepted {
		n.share, n.returning = share, returning
	}
	return name
}

// count returns the writes of that name.
func (n *writeNames) count(name string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(n.all), func(s string) bool { return s != name })
}

// mustCover fails the test unless every one of the names was noted.
func (n *writeNames) mustCover(t *testing.T, names []string) {
	t.Helper()
	missing := map[string]bool{}
	for _, name := range names {
		if len(n.count(name)) == 0 {
			missing[name] = true
		}
	}
	if len(missing) > 0 {
		t.Errorf("the manager was never killed at: %v; it was at %v", slices.Sorted(maps.Keys(missing)), n.all)
	}
}
