package rollout_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestScaledBack: a degraded canary goes down in the ramp's steps to the stage's share
// times its score, never under a fifth of it, and up again when it is well.
func TestScaledBack(t *testing.T) {
	for name, tc := range map[string]struct {
		score float64
		want  string
	}{
		"half":                 {0.5, "40 32 26 25"},
		"the floor":            {0, "40 32 26 21 17 14 12 10"},
		"below the floor":      {0.05, "40 32 26 21 17 14 12 10"},
		"within the dead band": {0.99, ""},
		"a little":             {0.9, "45"},
		"perfect":              {1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := coldSpec()
			spec.Ramp.Warmup.InitialPercent = "100"
			w := newWorld(t, spec)
			w.until(24*time.Hour, "it soaks at 50 percent", w.atShare("50"))
			before := len(w.journal.shares("web"))
			w.feel("canary", poor)
			w.score = tc.score
			w.runFor(3 * time.Hour)
			if got := strings.Join(w.journal.shares("web")[before:], " "); got != tc.want {
				t.Errorf("shares %q, want %q", got, tc.want)
			}
			if s := w.status(); s.Outcome != v1alpha1.OutcomeInProgress || conditionOf(s, v1alpha1.ConditionReady).Reason != v1alpha1.ReasonDegraded || conditionOf(s, v1alpha1.ConditionHealthy).Status != "False" {
				t.Errorf("%s: %v", w.summary(), s.Conditions)
			}
			w.feel("canary", good)
			w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
		})
	}
}

// TestSmallStageIsNotScaledBack: in whole points there is nothing between 1 and 0.
func TestSmallStageIsNotScaledBack(t *testing.T) {
	w := newWorld(t, defaultSpec())
	w.feel("canary", poor)
	w.score = 0.2
	w.runFor(3 * time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonDegraded, "99/1")
}

// TestSoakStandsStill: the time for which a canary is degraded is no soak.
func TestSoakStandsStill(t *testing.T) {
	w := newWorld(t, defaultSpec())
	w.score = 1 // held, and not scaled back
	w.until(time.Hour, "it soaks at 1 percent", w.atShare("1"))
	began := w.at
	w.runFor(10 * time.Minute)
	for range 2 {
		w.feel("canary", poor)
		w.runFor(20 * time.Minute)
		if w.status().Stage.ClockStoppedSince == nil {
			t.Fatal("the soak's clock runs")
		}
		w.feel("canary", good)
		w.runFor(5 * time.Minute)
		if w.status().Stage.ClockStoppedSince != nil {
			t.Fatal("the soak's clock stands still")
		}
	}
	still, err := time.ParseDuration(w.status().Stage.ClockStoppedFor)
	if err != nil || still < 30*time.Minute || still > 45*time.Minute {
		t.Fatalf("stood still for %q (%v)", w.status().Stage.ClockStoppedFor, err)
	}
	w.until(time.Hour, "the next stage begins", w.atShare("2"))
	if soaked := w.at.Sub(began) - still; soaked < 30*time.Minute || soaked > 31*time.Minute {
		t.Errorf("soaked for %s", soaked)
	}
}

// TestDegradedHoldsWhileItRamps: on the way to a stage a degraded canary is held, if
// it has less than the stage's share times its score already.
func TestDegradedHoldsWhileItRamps(t *testing.T) {
	w := newWorld(t, coldSpec())
	w.until(24*time.Hour, "it is on the way to 50 percent", w.atShare("24"))
	w.feel("canary", poor)
	w.runFor(3 * time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonDegraded, "76/24")
}

// TestDegradedStableIsHeld: when the traffic returns to stable, a degraded stable gets
// no more, and is not scaled back.
func TestDegradedStableIsHeld(t *testing.T) {
	w := newWorld(t, coldSpec())
	w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
	w.say(v1alpha1.VerbFinish)
	w.until(24*time.Hour, "the traffic returns", w.atShare("90"))
	w.feel("stable", poor)
	w.runFor(6 * time.Hour)
	w.expect(v1alpha1.OutcomeReturning, v1alpha1.ReasonAwaitingEvidence, "10/90")
}

// TestSoakStandsStillWhilePaused: a pause does not hide it from the soak's clock.
func TestSoakStandsStillWhilePaused(t *testing.T) {
	w := newWorld(t, defaultSpec())
	w.score = 1
	w.until(time.Hour, "it soaks at 1 percent", w.atShare("1"))
	began := w.at
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true })
	w.feel("canary", poor)
	w.runFor(25 * time.Minute)
	w.feel("canary", good)
	w.runFor(3 * time.Minute)
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = false })
	w.settle()
	still, err := time.ParseDuration(w.status().Stage.ClockStoppedFor)
	if err != nil || still < 20*time.Minute || still > 30*time.Minute {
		t.Errorf("stood still for %q (%v)", w.status().Stage.ClockStoppedFor, err)
	}
	w.until(time.Hour, "the next stage begins", w.atShare("2"))
	if soaked := w.at.Sub(began) - still; soaked < 30*time.Minute {
		t.Errorf("soaked for %s", soaked)
	}
}

// TestNoSoakBeforeTheConfirmation: a gateway that takes hours to confirm a share under
// which the canary is degraded adds nothing to the soak.
func TestNoSoakBeforeTheConfirmation(t *testing.T) {
	w := newWorld(t, defaultSpec())
	w.runFor(30 * time.Second)
	w.gateway.silent = true
	w.feel("canary", degraded)
	w.runFor(3 * time.Hour)
	w.gateway.silent = false
	w.feel("canary", good)
	w.until(time.Hour, "it soaks at 1 percent", w.atShare("1"))
	began := w.at
	w.until(2*time.Hour, "the next stage begins", w.atShare("2"))
	if soaked := w.at.Sub(began); soaked > 40*time.Minute {
		t.Errorf("soaked for %s", soaked)
	}
}

// TestNobodyWatchesForAnotherOwner: what was measured while another rollout managed the
// rule proves nothing.
func TestNobodyWatchesForAnotherOwner(t *testing.T) {
	w := at20(t)
	w.owner = "older"
	w.settle()
	w.edit(0, weightsOf(10, 90), "older")
	w.runFor(time.Minute)
	w.edit(0, weightsOf(80, 20), "older")
	w.runFor(time.Minute)
	w.owner = ""
	back := w.at
	w.settle()
	w.runFor(time.Second)
	if c := w.status().Share.ConfirmedAt; c == nil || c.Before(&metav1.MicroTime{Time: back}) {
		t.Errorf("confirmed at %v, before it was watched again at %v", c, back)
	}
}

// TestAnotherSumIsAnotherShare: beside a third backend two sums can stand for the same
// share, and one of them gives the canary nothing. What was measured under one proves
// nothing under the other.
func TestAnotherSumIsAnotherShare(t *testing.T) {
	w := newWorld(t, smallSpec())
	w.until(time.Hour, "it soaks at 10 percent", w.atShare("10"))
	other := int32(0)
	hr := w.routes[0].stored.DeepCopy()
	hr.Spec.Rules[1].BackendRefs = append(hr.Spec.Rules[1].BackendRefs, backendRef("web-other", &other))
	w.store(w.routes[0], hr)
	w.edit(0, weightsOf(2, 0), "kubectl-edit")
	w.runFor(5 * time.Minute)
	w.edit(0, weightsOf(9, 1), "kubectl-edit")
	edited := w.at
	w.runFor(3 * time.Minute)
	if c := w.status().Share.ConfirmedAt; *w.status().Share.Desired != "10" || c == nil || c.Before(&metav1.MicroTime{Time: edited}) {
		t.Errorf("%s percent, confirmed at %v, before the edit at %v", *w.status().Share.Desired, c, edited)
	}
}

// TestTamperedUnderBrokenPlan: a record that was tampered with is not carried out, even
// while the plan that it breaks cannot be read.
func TestTamperedUnderBrokenPlan(t *testing.T) {
	w := newWorld(t, defaultSpec())
	w.until(time.Hour, "it soaks at 1 percent", w.atShare("1"))
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Plan.Stages = nil })
	w.settle()
	tampered := v1alpha1.Percent("73")
	w.status().Share.Desired, w.status().Share.ConfirmedAt = &tampered, nil
	w.edit(0, weightsOf(20, 80), "kubectl-edit")
	w.runFor(time.Minute)
	if got := w.live(0); *got.canary > 1 {
		t.Errorf("the canary has %s", got)
	}
}

// TestFinishStartsAtEverything: a record that was tampered with does not let stable skip
// the ramp.
func TestFinishStartsAtEverything(t *testing.T) {
	w := newWorld(t, smallSpec())
	w.object.spec.Plan.Stages = w.object.spec.Plan.Stages[:2]
	w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
	tampered := v1alpha1.Percent("73")
	w.status().Share.Desired = &tampered
	w.say(v1alpha1.VerbFinish)
	w.settle()
	if c := w.status().Command; c.Accepted || w.status().Outcome == v1alpha1.OutcomeReturning {
		t.Errorf("%s, command %+v", w.status().Outcome, c)
	}
}
