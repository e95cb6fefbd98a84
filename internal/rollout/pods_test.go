package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestPodsReplaced: a canary of which every pod was replaced is cold. Its share goes to
// that of a cold canary, and soak and evidence start again.
func TestPodsReplaced(t *testing.T) {
	w := newWorld(t, coldSpec())
	w.until(24*time.Hour, "it soaks at 50 percent", w.atShare("50"))
	w.runFor(20 * time.Minute)
	before := len(w.journal.wires)
	w.canary.restart()
	w.runFor(19 * time.Second)
	if w.wire() != "50/50" {
		t.Fatalf("lowered while the old pods are there: %s", w.summary())
	}
	w.runFor(2 * time.Second)
	if s := w.status(); s.Outcome != v1alpha1.OutcomeInProgress || stageIndex(s) != 1 || s.Warmup == nil || s.Warmup.Reason != v1alpha1.ColdPodsReplaced || !w.told(v1alpha1.ReasonPodsReplaced) {
		t.Errorf("%s, warm-up %s, told %v", w.summary(), encoded(s.Warmup), w.journal.told)
	}
	replaced := w.at
	w.until(time.Hour, "it has 50 percent again", w.atShare("50"))
	want := []string{"web 90/10", "web 80/20", "web 70/30", "web 60/40", "web 50/50"}
	if diff := cmp.Diff(want, w.journal.wires[before:]); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
	if took := w.at.Sub(replaced); took < 10*time.Minute {
		t.Errorf("warm after %s, and ramp.warmup.soak is 10m", took)
	}
	w.runFor(29 * time.Minute)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonSoaking, "50/50")
	w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
}

// TestPodsReplacedAtTheFirstShare: what is at the lowest share already is held there
// anew.
func TestPodsReplacedAtTheFirstShare(t *testing.T) {
	w := newWorld(t, coldSpec())
	w.until(time.Hour, "it is at its first share", w.atShare("6"))
	w.runFor(8 * time.Minute)
	w.canary.restart()
	w.runFor(9 * time.Minute)
	if !w.told(v1alpha1.ReasonPodsReplaced) || w.wire() != "94/6" {
		t.Errorf("told %v: %s", w.journal.told, w.summary())
	}
	w.until(time.Hour, "it goes on", w.atShare("10"))
}

// TestPodsPartlyReplaced: as long as one pod is left that has had the traffic, and where
// there is no warm-up, nothing happens.
func TestPodsPartlyReplaced(t *testing.T) {
	noWarmup := coldSpec()
	noWarmup.Ramp.Warmup.InitialPercent = "100"
	for name, tc := range map[string]struct {
		spec    v1alpha1.WeightedRolloutSpec
		replace func(*world)
	}{
		"all but one": {coldSpec(), func(w *world) {
			w.canary.scaleTo(1)
			w.runFor(time.Minute)
			w.canary.scaleTo(10)
		}},
		"one after another": {coldSpec(), func(w *world) {
			// All are, in the end, but the last ones have served beside warm ones for long.
			for range 2 {
				w.canary.pods = w.canary.pods[7:]
				w.canary.version++
				w.runFor(12 * time.Minute)
			}
		}},
		"scaled out": {coldSpec(), func(w *world) { w.canary.scaleTo(30) }},
		"stable's":   {coldSpec(), func(w *world) { w.stable.restart() }},
		"no warm-up": {noWarmup, func(w *world) { w.canary.restart() }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec)
			w.until(24*time.Hour, "it soaks at 20 percent", w.atShare("20"))
			soaks := w.at
			tc.replace(w)
			w.until(time.Hour, "the stage is over", func() bool { return stageIndex(w.status()) == 1 })
			if soaked := w.at.Sub(soaks); soaked != 30*time.Minute || w.told(v1alpha1.ReasonPodsReplaced) {
				t.Errorf("the stage is over after %s, told %v", soaked, w.journal.told)
			}
		})
	}
}

// TestPodsReplacedWhilePromoted: what has passed the plan keeps everything.
func TestPodsReplacedWhilePromoted(t *testing.T) {
	w := promotedWorld(t)
	w.canary.restart()
	w.runFor(time.Hour)
	w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonPromoted, "0/100")
}
