package played

import (
	"slices"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestC24HandEditUp: a hand that gives the canary more is put right at once.
func TestC24HandEditUp(t *testing.T) {
	w := newWorld(t)
	w.loose = true
	w.rollout("web", soak(1, "10m"))
	w.startManager()
	before := w.awaitShare("web", "5")
	w.awaitVerdict("web", v1alpha1.VerdictHealthy, v1alpha1.ReasonChecksPassed)
	began := time.Now()
	w.editWeights("web", pair{20, 80})
	eventually(t, "the weights put right", func() (bool, string) {
		now := w.weightsNow("web")
		return now == pair{95, 5}, now.String()
	})
	took := time.Since(began)
	t.Logf("put right after %s", took.Round(time.Millisecond))
	if took > 10*time.Second {
		t.Errorf("it took %s to put the weights right", took)
	}
	after := w.await("web", "a newer confirmation", func(wr *v1alpha1.WeightedRollout) bool {
		return wr.Status.Share.ConfirmedAt != nil && wr.Status.Share.ConfirmedAt.After(before.Status.Share.ConfirmedAt.Time)
	})
	if after.Status.Stage.Index != before.Status.Stage.Index || after.Status.Attempt != before.Status.Attempt || desired(after) != "5" {
		t.Errorf("the edit moved the rollout from stage %+v to %+v: %s", before.Status.Stage, after.Status.Stage, summary(after))
	}
	w.await("web", "a later end of the soak", func(wr *v1alpha1.WeightedRollout) bool {
		next, was := wr.Status.NextTransitionTime, before.Status.NextTransitionTime
		return next != nil && was != nil && !next.Before(was) && !next.Time.Before(after.Status.Share.ConfirmedAt.Add(10*time.Minute))
	})
	w.awaitEvent("web", v1alpha1.ReasonDrift, "by by-hand")
	w.wantWeights("web", "100/0", "99/1", "95/5", "20/80", "95/5")
}

// TestC24HandEditDown: a hand that gives the canary less is followed, and the share
// ramps back from there.
func TestC24HandEditDown(t *testing.T) {
	w := newWorld(t)
	w.loose = true
	w.rollout("web", stages("1s", "10", "20"), ramp("5"), soak(1, "10m"))
	w.startManager()
	before := w.awaitShare("web", "20")
	w.editWeights("web", pair{100, 0})
	after := w.await("web", "20 percent again", func(wr *v1alpha1.WeightedRollout) bool {
		c := wr.Status.Share.ConfirmedAt
		return desired(wr) == "20" && c != nil && c.After(before.Status.Share.ConfirmedAt.Time)
	})
	w.wantWeights("web", "100/0", "95/5", "90/10", "85/15", "80/20", "100/0", "95/5", "90/10", "85/15", "80/20")
	if after.Status.Stage.Index != before.Status.Stage.Index || after.Status.Attempt != before.Status.Attempt {
		t.Errorf("the edit moved the rollout from stage %+v to %+v", before.Status.Stage, after.Status.Stage)
	}
	w.awaitEvent("web", v1alpha1.ReasonDrift, "by by-hand")
}

// TestC03HandEditToNothing: a hand that takes the traffic from both is put right
// and reported.
func TestC03HandEditToNothing(t *testing.T) {
	w := newWorld(t)
	w.loose = true
	w.rollout("web", stages("10m", "10"))
	// Rolled back, and so idle at 100/0.
	w.prom.set(w.namespace, canaryOf("web"), traffic{perSecond: 50, failed: 0.25})
	w.startManager()
	w.await("web", "a confirmed rollback", func(wr *v1alpha1.WeightedRollout) bool {
		return wr.Status.Phase == v1alpha1.PhaseRolledBack && wr.Status.Share.ConfirmedAt != nil
	})
	w.editWeights("web", pair{0, 0})
	eventually(t, "the weights put right", func() (bool, string) {
		now := w.weightsNow("web")
		return now == pair{100, 0}, now.String()
	})
	w.awaitEvent("web", v1alpha1.ReasonDrift, "by by-hand")
	if wr := w.get("web"); wr.Status.Phase != v1alpha1.PhaseRolledBack {
		t.Errorf("the edit moved the rollout: %s", summary(wr))
	}
	if got, want := w.routes.of("web"), []string{"100/0", "90/10", "100/0", "0/0", "100/0"}; !slices.Equal(got, want) {
		t.Errorf("the route had the weights %v, want %v", got, want)
	}
	for _, r := range w.api.since(0, (*request).isRouteWrite) {
		if _, ok := w.checkRouteWrite(r); !ok {
			t.Errorf("request %d sets no weights", r.Number)
		}
	}
}
