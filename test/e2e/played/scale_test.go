package played

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestHundredRollouts: a hundred rollouts at once are all promoted, but for the bad
// one among them, which is rolled back. Prometheus is asked for all of them at
// once, so that its requests do not grow with their number.
func TestHundredRollouts(t *testing.T) {
	w := newLoneWorld(t)
	const rollouts, bad = 100, "r042"
	w.prom.set(w.namespace, canaryOf(bad), traffic{perSecond: 50, failed: 0.25})
	for i := range rollouts {
		w.rollout(fmt.Sprintf("r%03d", i), stages("2s", "10", "50"), ramp("50"), func(wr *v1alpha1.WeightedRollout) {
			wr.Spec.Health.Window, wr.Spec.Health.Interval, wr.Spec.OnUnhealthy.For = "2s", "2s", "2s"
		})
	}
	began := time.Now()
	w.startManager()
	eventually(t, "every rollout at its end", func() (bool, string) {
		var all v1alpha1.WeightedRolloutList
		if err := w.client.List(t.Context(), &all, client.InNamespace(w.namespace)); err != nil {
			return false, err.Error()
		}
		phases := map[v1alpha1.Phase]int{}
		for i := range all.Items {
			phases[all.Items[i].Status.Phase]++
		}
		return phases[v1alpha1.PhasePromoted]+phases[v1alpha1.PhaseRolledBack] == rollouts, fmt.Sprint(phases)
	})
	took := time.Since(began)
	for i := range rollouts {
		name := fmt.Sprintf("r%03d", i)
		if name == bad {
			w.wantWeights(name, "100/0", "90/10", "100/0")
			if wr := w.get(name); wr.Status.Phase != v1alpha1.PhaseRolledBack {
				t.Errorf("the bad rollout is not rolled back: %s", summary(wr))
			}
			continue
		}
		w.wantWeights(name, "100/0", "90/10", "50/50", "0/100")
	}
	w.checkBatches(rollouts, took)
}

// checkBatches checks how often Prometheus was asked: per interval once for each
// kind of metric, and again for those who came too late, of whom a busy machine
// makes more. But never once per rollout.
func (w *world) checkBatches(rollouts int, took time.Duration) {
	w.t.Helper()
	const kinds, rounds = 2, 10
	questions, total := w.prom.asked(0)
	perTick, widest := map[string]int{}, 0
	for _, q := range questions {
		perTick[q.end]++
		widest = max(widest, len(named(q.query)))
	}
	for end, n := range perTick {
		if n > kinds*rollouts/4 {
			w.t.Errorf("Prometheus was asked %d times at %s, by %d rollouts", n, end, rollouts)
		}
	}
	average := float64(total) / float64(max(1, len(perTick)))
	w.t.Logf("%d rollouts in %.1f s: %d questions in %d intervals, %.1f per interval; the widest asked for %d backends",
		rollouts, took.Seconds(), total, len(perTick), average, widest)
	if average > rounds*kinds {
		w.t.Errorf("Prometheus was asked %.1f times per interval, want about %d", average, kinds)
	}
	if widest < rollouts {
		w.t.Errorf("the widest question was for %d backends, want those of most of the %d rollouts", widest, rollouts)
	}
}
