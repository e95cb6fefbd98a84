package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// onlyReady leaves so many of a fleet's pods ready: the others fail, and stay so for a
// day, unless they are made ready again.
func (w *world) onlyReady(f *fleet, ready int) {
	for i := range f.pods {
		if f.pods[i].up = i < ready; !f.pods[i].up {
			f.pods[i].ready = w.at.Add(24 * time.Hour)
		}
	}
	f.version++
}

// TestC30OneOfTenReadyIsNotPromoted: when the last gate opens one pod of ten is ready.
// Every further step waits for the pods that its share takes.
func TestC30OneOfTenReadyIsNotPromoted(t *testing.T) {
	for _, capacity := range []v1alpha1.CapacityMode{v1alpha1.CapacityCheck, v1alpha1.CapacityScale} {
		t.Run(string(capacity), func(t *testing.T) {
			w := sized(t, capacity, 10)
			w.until(24*time.Hour, "it soaks at 50 percent", w.atShare("50"))
			for _, step := range []struct {
				ready      int
				wire, says string
			}{
				{1, "50/50", `Deployment "web-canary" has 1 ready replica, and 70 percent of the traffic takes 7 (of 10 for all of it)`},
				{6, "50/50", `has 6 ready replicas, and 70 percent of the traffic takes 7 (of 10 for all of it)`},
				{7, "30/70", `has 7 ready replicas, and 90 percent of the traffic takes 9 (of 10 for all of it)`},
				{9, "10/90", `has 9 ready replicas, and 100 percent of the traffic takes 10 (of 10 for all of it)`},
			} {
				w.onlyReady(w.canary, step.ready)
				w.runFor(2 * time.Hour)
				w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonInsufficientCapacity, step.wire)
				if !strings.Contains(w.message(), step.says) {
					t.Errorf("message %q, want %q", w.message(), step.says)
				}
			}
			w.onlyReady(w.canary, 10)
			w.until(time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
			if w.wire() != "0/100" || len(w.scales()) > 0 {
				t.Errorf("weights %s, scaled %v", w.wire(), w.scales())
			}
		})
	}
}

// TestAnotherOwnerIsNotScaled: a rollout that does not manage the rule scales nothing,
// not even what it has on record to give back, and it goes without doing so.
func TestAnotherOwnerIsNotScaled(t *testing.T) {
	for name, tc := range map[string]struct {
		owner    string
		replicas int32
	}{
		"its own rule": {"", 1}, "another's rule": {"older", 5},
	} {
		for how, end := range map[string]func(*world){
			"lives": func(*world) {}, "is deleted": (*world).remove,
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				w := scaledTo50(t)
				w.gateway.silent = true
				w.abort(1)
				w.runFor(time.Minute)
				w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonAborted, "100/0")
				if c := w.status().Capacity; c == nil || len(c.Scaled) != 1 || w.canary.replicas != 5 {
					t.Fatalf("%d replicas, status.capacity %s", w.canary.replicas, encoded(c))
				}
				before := w.scales()
				w.owner, w.gateway.silent = tc.owner, false
				end(w)
				w.runFor(time.Hour)
				if w.canary.replicas != tc.replicas || w.object.gone != (how == "is deleted") {
					t.Errorf("%d replicas, want %d; gone %v", w.canary.replicas, tc.replicas, w.object.gone)
				}
				if tc.owner != "" {
					if diff := cmp.Diff(before, w.scales()); diff != "" {
						t.Errorf("scaled (-before +after):\n%s", diff)
					}
				}
			})
		}
	}
}
