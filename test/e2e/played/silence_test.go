package played

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// silence is how long a manager that has nothing to do must not say a word.
const silence = time.Minute

// TestWritesPerChange: a change of share costs one write to the route and two to
// status, the intent and the confirmation. Only a verdict that changes, or evidence
// that is late, is worth another.
func TestWritesPerChange(t *testing.T) {
	w := newWorld(t)
	w.rollout("web", stages("6s", "5", "10", "20"), soak(2, "10m"))
	w.startManager()
	w.awaitShare("web", "20")
	routes, traffic := 0, 0
	for _, r := range w.api.inOrder() {
		if r.isRouteWrite() {
			routes++
		}
		if !r.isStatusWrite() || routes == 0 {
			continue
		}
		patch, err := r.patch()
		if err != nil {
			t.Fatal(err)
		}
		intent := has(patch, "status", "share", "desired")
		confirmation := at(patch, "status", "share", "confirmedAt") != nil
		late := strings.Contains(string(r.Body), `"reason":"`+v1alpha1.ReasonAwaitingEvidence+`"`)
		if !intent && !confirmation && strings.Contains(string(r.Body), `"reason":"`+v1alpha1.ReasonTrafficDiffers+`"`) {
			// The played metrics count the same for both, whatever the weights say. That is
			// told once, and not at every share.
			if traffic++; traffic > 1 {
				t.Errorf("after write %d of the route: told again that the traffic differs: %s", routes, r.Body)
			}
			continue
		}
		if !intent && !confirmation && !late && !has(patch, "status", "verdict") {
			t.Errorf("after write %d of the route: status is written for %s", routes, r.Body)
		}
	}
	if routes != 3 {
		t.Errorf("the route was written %d times for 3 changes", routes)
	}
}

// TestC43IdleMeansSilent: rollouts that wait, whatever for, cost the API server
// nothing. Watches, which the client renews now and then, are no requests.
func TestC43IdleMeansSilent(t *testing.T) {
	w := newWorld(t)
	w.rollout("soaking", stages("10m", "1", "50"))
	w.rollout("promoted", stages("1s", "100"))
	w.rollout("rolled-back", stages("1s", "10"))
	w.rollout("paused", stages("10m", "10", "50"))
	w.prom.set(w.namespace, canaryOf("rolled-back"), traffic{perSecond: 50, failed: 0.25})
	w.startManager()
	w.awaitVerdict("soaking", v1alpha1.VerdictHealthy, v1alpha1.ReasonChecksPassed)
	w.awaitPhase("promoted", v1alpha1.PhasePromoted)
	w.awaitPhase("rolled-back", v1alpha1.PhaseRolledBack)
	w.awaitShare("paused", "10")
	w.edit("paused", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Paused = true })
	w.awaitPhase("paused", v1alpha1.PhasePaused)
	// From here on the windows are longer, so that a stutter of a busy machine is not
	// taken for metrics that have stopped coming.
	for _, name := range []string{"soaking", "promoted", "rolled-back", "paused"} {
		w.edit(name, func(wr *v1alpha1.WeightedRollout) {
			wr.Spec.Health.Window, wr.Spec.Health.Interval, wr.Spec.Health.SampleDelay = "5s", "5s", "5s"
			for i := range wr.Spec.Plan.Stages {
				wr.Spec.Plan.Stages[i].Soak = "10m"
			}
		})
	}
	noWatch := func(r *request) bool { return !r.isWatch() }
	heard := 0
	eventually(t, "15 s without a request", func() (bool, string) {
		requests := w.api.since(0, noWatch)
		heard = w.api.count()
		last := requests[len(requests)-1]
		return time.Since(last.At) > 15*time.Second, fmt.Sprintf("%s %s ago", last, time.Since(last.At).Round(time.Second))
	})
	_, askedBefore := w.prom.asked(0)
	time.Sleep(silence)
	for _, r := range w.api.since(heard, noWatch) {
		t.Errorf("nothing happens, and yet the manager asks the API server: %s", r)
	}
	if _, asked := w.prom.asked(0); asked == askedBefore {
		t.Error("the metrics were not read either, so the silence proves nothing")
	}
	for name, phase := range map[string]v1alpha1.Phase{
		"soaking": v1alpha1.PhaseProgressing, "promoted": v1alpha1.PhasePromoted, "rolled-back": v1alpha1.PhaseRolledBack, "paused": v1alpha1.PhasePaused,
	} {
		if wr := w.get(name); wr.Status.Phase != phase {
			t.Errorf("%s is no longer %s: %s", name, phase, summary(wr))
		}
	}
}
