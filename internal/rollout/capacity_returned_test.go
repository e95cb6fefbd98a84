package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// scaledTo50 is a world whose canary was scaled from 1 to 5 replicas, and soaks at 50
// percent.
func scaledTo50(t *testing.T) *world {
	w := sized(t, v1alpha1.CapacityScale, 1)
	w.until(24*time.Hour, "it soaks at 50 percent", w.atShare("50"))
	if w.canary.replicas != 5 {
		t.Fatalf("%d replicas at 50 percent", w.canary.replicas)
	}
	return w
}

// TestCapacityGivenBack: what was raised is given back when no traffic is left there, if
// it is still what the controller set.
func TestCapacityGivenBack(t *testing.T) {
	t.Run("after a rollback, once the gateway has confirmed it", func(t *testing.T) {
		w := scaledTo50(t)
		w.gateway.silent = true
		w.feel("canary", bad)
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy, "100/0")
		if w.canary.replicas != 5 {
			t.Errorf("%d replicas, and a gateway may still send traffic to 5", w.canary.replicas)
		}
		w.gateway.silent = false
		w.runFor(time.Minute)
		if w.canary.replicas != 1 || w.status().Capacity != nil {
			t.Errorf("%d replicas, status.capacity %s", w.canary.replicas, encoded(w.status().Capacity))
		}
	})
	t.Run("not while another hand sends it traffic that stable cannot take", func(t *testing.T) {
		w := scaledTo50(t)
		w.canary.denied = true
		w.abort(1)
		w.runFor(time.Minute)
		w.stableReady, w.canary.denied = false, false
		w.edit(0, weightsOf(0, 100), "kubectl-edit")
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonStableUnavailable, "0/100")
		if w.canary.replicas != 5 {
			t.Errorf("%d replicas", w.canary.replicas)
		}
		w.stableReady = true
		if w.runFor(10 * time.Minute); w.canary.replicas != 1 || w.wire() != "100/0" {
			t.Errorf("%d replicas: %s", w.canary.replicas, w.summary())
		}
	})
	t.Run("not if somebody has set it since", func(t *testing.T) {
		w := scaledTo50(t)
		w.canary.scaleTo(7)
		w.abort(1)
		w.runFor(time.Hour)
		if w.canary.replicas != 7 || w.status().Capacity != nil {
			t.Errorf("%d replicas, status.capacity %s", w.canary.replicas, encoded(w.status().Capacity))
		}
	})
	t.Run("not if an autoscaler has taken over", func(t *testing.T) {
		w := scaledTo50(t)
		w.canary.bound(2, 20)
		w.abort(1)
		if w.runFor(time.Hour); w.canary.replicas != 5 {
			t.Errorf("%d replicas", w.canary.replicas)
		}
	})
	t.Run("on deletion, with the traffic", func(t *testing.T) {
		w := scaledTo50(t)
		w.remove()
		w.runFor(time.Minute)
		if !w.object.gone || w.canary.replicas != 1 || w.wire() != "100/0" {
			t.Errorf("%d replicas: %s", w.canary.replicas, w.summary())
		}
	})
	t.Run("not on a deletion that no gateway confirms, which waits for a while only", func(t *testing.T) {
		w := scaledTo50(t)
		w.gateway.silent = true
		w.remove()
		w.runFor(20 * time.Second)
		if w.object.gone || w.wire() != "100/0" || w.canary.replicas != 5 {
			t.Errorf("%d replicas: %s", w.canary.replicas, w.summary())
		}
		if w.runFor(time.Minute); !w.object.gone || w.canary.replicas != 5 {
			t.Errorf("%d replicas: %s", w.canary.replicas, w.summary())
		}
	})
	t.Run("not on a deletion that keeps the traffic", func(t *testing.T) {
		w := scaledTo50(t)
		w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.OnDelete = v1alpha1.DeletionKeep })
		w.settle()
		w.remove()
		w.runFor(time.Minute)
		if !w.object.gone || w.canary.replicas != 5 || w.wire() != "50/50" {
			t.Errorf("%d replicas: %s", w.canary.replicas, w.summary())
		}
	})
	t.Run("on a deletion that may not scale it goes all the same", func(t *testing.T) {
		w := scaledTo50(t)
		w.canary.denied = true
		w.remove()
		if w.runFor(time.Minute); !w.object.gone || w.wire() != "100/0" {
			t.Error(w.summary())
		}
	})
	t.Run("later, if it is refused at first", func(t *testing.T) {
		w := scaledTo50(t)
		w.canary.denied = true
		w.abort(1)
		w.runFor(10 * time.Minute)
		w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonAborted, "100/0")
		w.canary.denied = false
		if w.runFor(10 * time.Minute); w.canary.replicas != 1 {
			t.Errorf("%d replicas", w.canary.replicas)
		}
	})
	t.Run("not to a later attempt's loss", func(t *testing.T) {
		w := scaledTo50(t)
		w.abort(1)
		w.settle()
		w.say(v1alpha1.VerbRetry)
		w.until(24*time.Hour, "it soaks at 50 percent again", w.atShare("50"))
		w.abort(2)
		if w.runFor(time.Minute); w.canary.replicas != 1 {
			t.Errorf("%d replicas", w.canary.replicas)
		}
	})
}

// TestCapacityOfAStableThatShrinks: an autoscaler takes stable's replicas away with its
// traffic, and the canary still needs what all of the traffic takes.
func TestCapacityOfAStableThatShrinks(t *testing.T) {
	w := scaledTo50(t)
	w.stable.scaleTo(5)
	w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
	if w.canary.replicas != 10 {
		t.Errorf("%d replicas serve what 10 have served", w.canary.replicas)
	}
}

// TestCapacityOfTheWayBack: stable gets its traffic back as far as it has the replicas.
func TestCapacityOfTheWayBack(t *testing.T) {
	shrunk := func(t *testing.T, capacity v1alpha1.CapacityMode) *world {
		w := sized(t, capacity, 10)
		w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
		w.stable.scaleTo(2)
		w.runFor(time.Minute)
		w.say(v1alpha1.VerbFinish)
		return w
	}
	t.Run("Check", func(t *testing.T) {
		w := shrunk(t, v1alpha1.CapacityCheck)
		w.until(time.Hour, "it waits", w.reason(v1alpha1.ReasonInsufficientCapacity))
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeReturning, v1alpha1.ReasonInsufficientCapacity, "20/80")
		if !strings.HasPrefix(w.message(), `Deployment "web-stable" has 2 ready replicas, and 40 percent of the traffic takes 4 (of 10 for all of it)`) {
			t.Errorf("message %q", w.message())
		}
		w.stable.scaleTo(10)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
	t.Run("Scale", func(t *testing.T) {
		w := shrunk(t, v1alpha1.CapacityScale)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
		if w.runFor(time.Hour); w.stable.replicas != 10 {
			t.Errorf("stable serves everything with %d replicas", w.stable.replicas)
		}
	})
	t.Run("Scale with an autoscaler", func(t *testing.T) {
		w := sized(t, v1alpha1.CapacityScale, 10)
		w.stable.bound(2, 20)
		w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
		w.stable.replicas = 2 // its autoscaler sees no traffic
		w.stable.changed()
		w.say(v1alpha1.VerbFinish)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
		w.runFor(time.Minute)
		if w.stable.replicas != 10 || w.stable.autoscaler.min != 2 {
			t.Errorf("stable has %d replicas, at least %d", w.stable.replicas, w.stable.autoscaler.min)
		}
	})
}

// TestC32StableUndersized: a rollback waits for nothing, and tells of a stable that is
// smaller than it was when it served everything.
func TestC32StableUndersized(t *testing.T) {
	for name, tc := range map[string]struct {
		capacity v1alpha1.CapacityMode
		ready    int32
		told     bool
	}{
		"two of ten":        {v1alpha1.CapacityCheck, 2, true},
		"all of them":       {v1alpha1.CapacityCheck, 10, false},
		"capacity: Ignore":  {v1alpha1.CapacityIgnore, 2, false},
		"with Scale, too":   {v1alpha1.CapacityScale, 9, true},
		"more than it took": {v1alpha1.CapacityScale, 12, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := sized(t, tc.capacity, 10)
			w.until(24*time.Hour, "it soaks at 50 percent", w.atShare("50"))
			w.stable.scaleTo(tc.ready)
			w.runFor(30 * time.Second)
			w.feel("canary", bad)
			w.until(time.Hour, "it is rolled back", w.reason(v1alpha1.ReasonUnhealthy))
			w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy, "100/0")
			if w.told(v1alpha1.ReasonStableUndersized) != tc.told {
				t.Errorf("told %v", w.journal.told)
			}
		})
	}
}

// TestC35SharedPods: Services that pick the same pods are told of when the canary gets
// its first traffic.
func TestC35SharedPods(t *testing.T) {
	for _, shared := range []bool{true, false} {
		w := newWorld(t, smallSpec())
		w.sharedPods = shared
		w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
		if got, want := w.times(v1alpha1.ReasonSharedPods), map[bool]int{true: 1}[shared]; got != want {
			t.Errorf("shared %v: told %d times, want %d", shared, got, want)
		}
	}
}
