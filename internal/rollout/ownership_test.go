package rollout_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// taken is a world whose canary has 20 percent in two routes, one of which an older
// rollout has taken since.
func taken(t *testing.T, edit func(*v1alpha1.WeightedRolloutSpec)) *world {
	t.Helper()
	spec := alsoRoute(smallSpec())
	edit(&spec)
	w := newWorld(t, spec)
	w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
	w.partOwner, w.taken = "older", "api"
	w.settle()
	return w
}

func asItIs(*v1alpha1.WeightedRolloutSpec) {}

// TestSomeRulesAreTaken: in what is left to a rollout nothing rises, and all that lowers
// the share works as ever. What was taken is the other's.
func TestSomeRulesAreTaken(t *testing.T) {
	t.Run("it is held", func(t *testing.T) {
		w := taken(t, asItIs)
		w.runFor(6 * time.Hour)
		if c := conditionOf(w.status(), v1alpha1.ConditionStalled); c.Reason != v1alpha1.ReasonPartialRouteConflict || c.Status != metav1.ConditionTrue || w.wire() != "80/20 80/20" {
			t.Fatal(w.summary())
		}
	})
	t.Run("a bad canary is rolled back", func(t *testing.T) {
		w := taken(t, asItIs)
		w.feel("canary", bad)
		w.until(time.Hour, "it is rolled back", w.reason(v1alpha1.ReasonUnhealthy))
		w.settle()
		if w.wire() != "100/0 80/20" || w.status().Outcome != v1alpha1.OutcomeRolledBack {
			t.Fatal(w.summary())
		}
	})
	t.Run("it can be aborted", func(t *testing.T) {
		w := taken(t, asItIs)
		w.abort(w.status().Attempt)
		w.settle()
		if w.wire() != "100/0 80/20" || w.status().Outcome != v1alpha1.OutcomeRolledBack {
			t.Fatal(w.summary())
		}
	})
	t.Run("deletion makes the rest safe", func(t *testing.T) {
		w := taken(t, asItIs)
		w.remove()
		w.settle()
		if w.wire() != "100/0 80/20" || !w.object.gone {
			t.Fatal(w.summary())
		}
	})
	t.Run("one that is completed says so", func(t *testing.T) {
		w := newWorld(t, alsoRoute(smallSpec()))
		w.until(24*time.Hour, "the revision is promoted", w.reason(v1alpha1.ReasonPromoted))
		w.say(v1alpha1.VerbFinish)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
		w.partOwner, w.taken = "older", "api"
		w.settle()
		if c := conditionOf(w.status(), v1alpha1.ConditionStalled); c.Reason != v1alpha1.ReasonPartialRouteConflict || !strings.Contains(c.Message, `"older" manages rules of HTTPRoute "api"`) {
			t.Fatal(w.summary(), c)
		}
		w.partOwner = ""
		w.until(time.Hour, "it is as before", w.reason(v1alpha1.ReasonCompleted))
	})
	t.Run("no attempt begins", func(t *testing.T) {
		w := newWorld(t, alsoRoute(smallSpec()))
		w.partOwner, w.taken = "older", "api"
		w.runFor(time.Hour)
		if c := conditionOf(w.status(), v1alpha1.ConditionStalled); c.Reason != v1alpha1.ReasonPartialRouteConflict || w.status().Attempt != 0 {
			t.Fatal(w.summary())
		}
	})
	t.Run("all that there was", func(t *testing.T) {
		w := at20(t)
		w.partOwner, w.taken = "older", "web"
		w.feel("canary", bad)
		w.runFor(time.Hour)
		if c := conditionOf(w.status(), v1alpha1.ConditionStalled); c.Reason != v1alpha1.ReasonRouteConflict || w.wire() != "80/20" {
			t.Fatal(w.summary())
		}
	})
}

// TestTakenRulesComeBack: the share that the other has left in them is one that somebody
// else has set, and what was measured without them proves nothing.
func TestTakenRulesComeBack(t *testing.T) {
	for left, want := range map[string]string{"80/20": "20", "100/0": "0", "40/60": "20"} {
		t.Run(left, func(t *testing.T) {
			w := taken(t, asItIs)
			w.runFor(20 * time.Minute)
			w.edit(1, weightsFrom(left), "older")
			w.partOwner = ""
			back := w.at
			w.settle()
			if share := *w.status().Share.Desired; share != v1alpha1.Percent(want) {
				t.Errorf("it goes on from %s percent, want %s", share, want)
			}
			w.until(time.Minute, "it is confirmed anew", func() bool {
				at := w.status().Share.ConfirmedAt
				return at != nil && !at.Before(&metav1.MicroTime{Time: back})
			})
			w.until(12*time.Hour, "it goes on", w.reason(v1alpha1.ReasonPromoted))
		})
	}
}

// TestTakenAtTheEnd: a plan does not end by what was measured while a route was another's,
// whatever else was said meanwhile.
func TestTakenAtTheEnd(t *testing.T) {
	for name, awayWithStable := range map[string]bool{"nothing else": false, "stable has no endpoint": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, alsoRoute(smallSpec()))
			w.until(24*time.Hour, "it has 100 percent", w.atShare("100"))
			w.partOwner, w.taken = "older", "api"
			w.runFor(20 * time.Minute)
			w.stableReady = !awayWithStable
			w.runFor(10 * time.Minute)
			w.partOwner = ""
			back := w.at
			w.settle()
			w.stableReady = true
			w.settle()
			if w.status().Outcome != v1alpha1.OutcomeInProgress {
				t.Fatalf("promoted by what was measured before: %s", w.summary())
			}
			w.until(time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
			if at := w.status().Share.ConfirmedAt; at.Before(&metav1.MicroTime{Time: back}) {
				t.Errorf("promoted on a share that was confirmed at %v, before all routes were back at %v", at, back)
			}
		})
	}
}
