package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// sized returns a world of ten stable replicas and so many of the canary.
func sized(t *testing.T, capacity v1alpha1.CapacityMode, canary int32) *world {
	w := newWorld(t, withWorkloads(smallSpec(), capacity))
	w.canary = newFleet(v1alpha1.TrackCanary, 2, canary)
	return w
}

// scales writes down what was scaled: "web-canary 1-2".
func (w *world) scales() []string {
	var texts []string
	for _, s := range w.journal.scaled {
		texts = append(texts, fmt.Sprintf("%s %s %d-%d", s.Kind, s.Name, s.From, s.To))
	}
	return texts
}

// message is what the condition Ready says.
func (w *world) message() string { return conditionOf(w.status(), v1alpha1.ConditionReady).Message }

// told tells whether an event with the reason was emitted.
func (w *world) told(reason string) bool { return slices.Contains(w.journal.told, reason) }

// times counts the events with the reason.
func (w *world) times(reason string) (n int) {
	for _, told := range w.journal.told {
		if told == reason {
			n++
		}
	}
	return n
}

// TestCapacityCheck: a raise waits until there are as many ready replicas as it takes,
// and the status says how many.
func TestCapacityCheck(t *testing.T) {
	w := sized(t, v1alpha1.CapacityCheck, 1)
	w.until(time.Hour, "it waits", w.reason(v1alpha1.ReasonInsufficientCapacity))
	w.runFor(10 * time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonInsufficientCapacity, "90/10")
	want := `Deployment "web-canary" has 1 ready replica, and 20 percent of the traffic takes 2 (of 10 for all of it): scale it, or set canary.capacity: Scale`
	if w.message() != want {
		t.Errorf("message %q, want %q", w.message(), want)
	}
	w.canary.scaleTo(2)
	w.runFor(19 * time.Second)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonInsufficientCapacity, "90/10")
	w.until(time.Minute, "it goes on", w.atShare("20"))
	w.canary.scaleTo(10)
	w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
	if len(w.journal.scaled) > 0 {
		t.Errorf("scaled: %v", w.scales())
	}
}

// TestCapacityIgnored: one ready pod is enough, where the spec says so or names no
// workloads.
func TestCapacityIgnored(t *testing.T) {
	alone := smallSpec()
	one := withWorkloads(smallSpec(), v1alpha1.CapacityCheck)
	one.Stable.Workload = nil
	for name, spec := range map[string]v1alpha1.WeightedRolloutSpec{
		"Ignore": withWorkloads(smallSpec(), v1alpha1.CapacityIgnore), "no workloads": alone, "one workload": one,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, spec)
			w.canary = newFleet(v1alpha1.TrackCanary, 2, 1)
			w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
		})
	}
}

// TestCapacityOfAnyKind: of a kind of which only the scale is read the replicas count,
// and nothing but spec.revision says what it runs.
func TestCapacityOfAnyKind(t *testing.T) {
	spec := withWorkloads(smallSpec(), v1alpha1.CapacityCheck)
	spec.Canary.Workload.APIVersion, spec.Canary.Workload.Kind = "example.com/v1", "Fleet"
	w := newWorld(t, spec)
	w.canary = newFleet(v1alpha1.TrackCanary, 2, 1)
	w.until(time.Hour, "it waits", w.reason(v1alpha1.ReasonInsufficientCapacity))
	w.canary.scaleTo(10)
	w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
	w.stable.deploy(2)
	w.runFor(time.Hour)
	w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonPromoted, "0/100")
	w = newWorld(t, derived(spec))
	w.runFor(time.Hour)
	w.expect("", v1alpha1.ReasonInvalidSpec, "100/0")
}

// TestCapacityScale: the replicas that a share takes are asked for before it, and each
// raise waits until they are ready. When all is over they are given back.
func TestCapacityScale(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(*world)
		kind    string
	}{
		"replicas":   {func(*world) {}, "Deployment"},
		"autoscaler": {func(w *world) { w.canary.bound(1, 20) }, autoscalerKind},
	} {
		t.Run(name, func(t *testing.T) {
			w := sized(t, v1alpha1.CapacityScale, 1)
			tc.prepare(w)
			w.until(time.Hour, "replicas are on their way", w.reason(v1alpha1.ReasonInsufficientCapacity))
			if !strings.Contains(w.message(), "20 percent of the traffic takes 2 (of 10 for all of it): they are on their way") {
				t.Errorf("message %q", w.message())
			}
			asked := w.at
			w.until(time.Hour, "it goes on", w.atShare("20"))
			if took := w.at.Sub(asked); took < w.canary.startup {
				t.Errorf("raised %s after the replicas were asked for, and a pod takes %s", took, w.canary.startup)
			}
			w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
			w.say(v1alpha1.VerbFinish)
			w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
			w.runFor(time.Minute)
			var want []string
			for _, step := range []string{"1-2", "2-4", "4-5", "5-7", "7-9", "9-10", "10-1"} {
				want = append(want, tc.kind+" web-canary "+step)
			}
			if diff := cmp.Diff(want, w.scales()); diff != "" {
				t.Errorf("scaled (-want +got):\n%s", diff)
			}
			if !w.told(v1alpha1.ReasonScaled) || w.status().Capacity != nil {
				t.Errorf("told %v, and status.capacity is %s", w.journal.told, encoded(w.status().Capacity))
			}
		})
	}
}

// TestCapacityNeverLowers: what is there already is not touched, at the end neither.
func TestCapacityNeverLowers(t *testing.T) {
	w := sized(t, v1alpha1.CapacityScale, 14)
	w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
	w.say(v1alpha1.VerbFinish)
	w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	w.runFor(time.Hour)
	// Stable has to do now what 14 replicas of the canary have done.
	if diff := cmp.Diff([]string{"Deployment web-stable 10-12", "Deployment web-stable 12-14"}, w.scales()); diff != "" || w.canary.replicas != 14 {
		t.Errorf("%d replicas, scaled (-want +got):\n%s", w.canary.replicas, diff)
	}
}

// TestCapacityFromNone: a canary that is switched off between releases is started, with
// an autoscaler, too, which leaves a workload without replicas alone; and it is switched
// off again.
func TestCapacityFromNone(t *testing.T) {
	for name, scaled := range map[string]bool{"replicas": false, "autoscaler": true} {
		t.Run(name, func(t *testing.T) {
			w := sized(t, v1alpha1.CapacityScale, 0)
			if scaled {
				w.canary.bound(1, 20)
			}
			w.until(time.Hour, "it has its first share", w.atShare("10"))
			if got := w.scales(); len(got) != 1 || got[0] != "Deployment web-canary 0-1" {
				t.Errorf("scaled: %v", got)
			}
			w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
			w.say(v1alpha1.VerbFinish)
			w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
			if w.runFor(time.Minute); !scaled && w.canary.replicas != 0 {
				t.Errorf("%d replicas are left", w.canary.replicas)
			}
		})
	}
	t.Run("Check", func(t *testing.T) {
		w := sized(t, v1alpha1.CapacityCheck, 0)
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonCanaryNotReady, "100/0")
	})
}

// TestCapacityLimit: an autoscaler that may not have so many is for a person to change.
func TestCapacityLimit(t *testing.T) {
	w := sized(t, v1alpha1.CapacityScale, 1)
	w.canary.bound(1, 5)
	w.until(24*time.Hour, "it stalls", w.reason(v1alpha1.ReasonCapacityLimit))
	w.runFor(time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonCapacityLimit, "50/50")
	if !strings.Contains(w.message(), `maxReplicas of HorizontalPodAutoscaler "web-canary" is 5: raise it to 7 at least`) {
		t.Errorf("message %q", w.message())
	}
	w.canary.bound(w.canary.autoscaler.min, 20)
	w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
}

// TestCapacityWriteRefused: it is said what is refused, the share stays, a breach still
// rolls back, and it goes on once it is allowed.
func TestCapacityWriteRefused(t *testing.T) {
	refused := func(t *testing.T) *world {
		w := sized(t, v1alpha1.CapacityScale, 1)
		w.canary.denied = true
		w.until(time.Hour, "it is refused", w.reason(v1alpha1.ReasonWorkloadWriteFailed))
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonWorkloadWriteFailed, "90/10")
		if want := `Deployment "web-canary" cannot be scaled to 2: deployments.apps is forbidden`; w.message() != want {
			t.Errorf("message %q, want %q", w.message(), want)
		}
		return w
	}
	t.Run("then allowed", func(t *testing.T) {
		w := refused(t)
		w.canary.denied = false
		w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
	})
	t.Run("then unhealthy", func(t *testing.T) {
		w := refused(t)
		w.feel("canary", bad)
		w.until(time.Hour, "it is rolled back", w.reason(v1alpha1.ReasonUnhealthy))
		if w.wire() != "100/0" {
			t.Error(w.summary())
		}
	})
	t.Run("then more are needed, and it is allowed", func(t *testing.T) {
		w := sized(t, v1alpha1.CapacityScale, 1)
		w.until(time.Hour, "it has 20 percent", w.atShare("20"))
		w.canary.denied = true
		w.until(time.Hour, "it is refused", w.reason(v1alpha1.ReasonWorkloadWriteFailed))
		w.stable.scaleTo(14)
		w.runFor(10 * time.Minute)
		if !strings.Contains(w.message(), "cannot be scaled to 6") {
			t.Errorf("message %q", w.message())
		}
		w.canary.denied = false
		w.until(time.Hour, "it has 40 percent", w.atShare("40"))
		w.abort(1)
		if w.runFor(time.Minute); w.canary.replicas != 1 {
			t.Errorf("%d replicas are left of 1", w.canary.replicas)
		}
	})
	t.Run("then scaled by hand", func(t *testing.T) {
		w := refused(t)
		w.canary.scaleTo(2)
		w.until(24*time.Hour, "it has 20 percent", w.atShare("20"))
		w.canary.denied = false
		w.abort(1)
		if w.runFor(time.Minute); w.canary.replicas != 2 {
			t.Errorf("%d replicas, and a person has set 2", w.canary.replicas)
		}
	})
}

// TestWorkloadMissing: what the spec names and is not there holds the share, and keeps
// no rollback from happening.
func TestWorkloadMissing(t *testing.T) {
	w := sized(t, v1alpha1.CapacityCheck, 10)
	w.until(24*time.Hour, "it soaks at 20 percent", w.atShare("20"))
	w.stable.missing = true
	w.runFor(time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonWorkloadMissing, "80/20")
	w.feel("canary", bad)
	w.until(time.Hour, "it is rolled back", w.reason(v1alpha1.ReasonUnhealthy))
}
