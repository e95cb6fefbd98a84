package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// foundWorse lets time pass until the canary, which is worse than stable and above a
// target all the time, is rolled back. It returns how long that took.
func (w *world) foundWorse(limit time.Duration) time.Duration {
	w.tb.Helper()
	began := w.at
	w.until(limit, "it is rolled back", func() bool { return w.status().Outcome == v1alpha1.OutcomeRolledBack })
	if s := w.status(); s.OutcomeReason != v1alpha1.ReasonUnhealthy {
		w.tb.Fatalf("rolled back for %s: %s", s.OutcomeReason, s.OutcomeMessage)
	}
	return w.at.Sub(began)
}

// TestColdCanaryIsComparedInTime: a degraded canary, whose warm-up cannot go on, is
// compared with stable all the same once it has had its traffic for ramp.warmup.soak,
// however often the controller restarts.
func TestColdCanaryIsComparedInTime(t *testing.T) {
	for name, restarts := range map[string]bool{"one controller": false, "restarts": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, coldSpec())
			w.feel("canary", worse)
			w.until(time.Hour, "it is at its first share", w.atShare("6"))
			w.runFor(11 * time.Minute)
			w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonDegraded, "94/6")
			for range 3 {
				if restarts {
					w.restart()
				}
				w.runFor(time.Minute)
			}
			w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy, "100/0")
		})
	}
}

// TestScaledBackColdCanaryIsComparedInTime: a share that is scaled back in the warm-up
// gives no more time.
func TestScaledBackColdCanaryIsComparedInTime(t *testing.T) {
	w := newWorld(t, coldSpec())
	w.score = 0.2
	w.feel("canary", worse)
	if took := w.foundWorse(time.Hour); took > 16*time.Minute {
		t.Errorf("found after %s", took)
	}
	if w.times(v1alpha1.ReasonDegraded) == 0 {
		t.Error("it was not scaled back")
	}
}

// TestUnconfirmedCanaryIsComparedInTime: a gateway that never confirms a share does not
// keep the canary from being compared.
func TestUnconfirmedCanaryIsComparedInTime(t *testing.T) {
	w := newWorld(t, coldSpec())
	w.feel("canary", worse)
	w.runFor(30 * time.Second)
	w.gateway.silent = true
	w.until(time.Hour, "its first share is written", func() bool { return w.wire() == "94/6" })
	w.runFor(10 * time.Minute)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonRouteNotConfirmed, "94/6")
	if took := w.foundWorse(time.Hour); took > 5*time.Minute {
		t.Errorf("found %s after that", took)
	}
}

// TestInterruptedWarmup: a canary that dies in its warm-up has what is left of its time,
// of which what it has no traffic is no part.
func TestInterruptedWarmup(t *testing.T) {
	w := newWorld(t, coldSpec())
	w.feel("canary", worse)
	w.until(time.Hour, "it is at its first share", w.atShare("6"))
	w.runFor(4 * time.Minute)
	w.canaryReady = false
	w.runFor(time.Hour)
	w.canaryReady = true
	w.until(time.Hour, "it is back", w.atShare("6"))
	w.runFor(5 * time.Minute)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonDegraded, "94/6")
	if took := w.foundWorse(time.Hour); took > 5*time.Minute {
		t.Errorf("found %s after that", took)
	}
}

// TestReplacedAgainAndAgain: pods that are replaced again and again, in the warm-up or as
// soon as it is over, do not keep the canary from being compared.
func TestReplacedAgainAndAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		stage v1alpha1.Percent
		every time.Duration
		m     mood
	}{
		"in the warm-up":        {"20", 7 * time.Minute, worse},
		"after it":              {"2", 11 * time.Minute, good},
		"long after it":         {"20", 40 * time.Minute, good},
		"long before it is due": {"2", 3 * time.Minute, worse},
	} {
		t.Run(name, func(t *testing.T) {
			spec := coldSpec()
			spec.Plan.Stages = []v1alpha1.Stage{stageOf(tc.stage, "9h")}
			w := newWorld(t, spec)
			w.feel("canary", tc.m)
			for range 12 {
				w.runFor(tc.every)
				if w.status().Outcome != v1alpha1.OutcomeInProgress {
					break
				}
				w.canary.restart()
			}
			if tc.m == worse {
				w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy, "100/0")
				return
			}
			// A good canary shows by its record whether it was compared at all.
			if w.status().Comparison == nil {
				t.Errorf("it was never compared: %s", encoded(w.status().Warmup))
			}
		})
	}
}

// TestBreaksAreNoExcuse: a canary that was found worse than stable is compared at once
// after the break; after another break the warm-up's time begins again, and ends.
func TestBreaksAreNoExcuse(t *testing.T) {
	t.Run("worse than stable", func(t *testing.T) {
		w := newWorld(t, breakSpec())
		w.feel("canary", worse)
		// Once ten minutes cold, three times a few minutes to be seen, and two cool-downs.
		if took := w.foundWorse(3 * time.Hour); took > 45*time.Minute || w.status().Breaker.Trips != 2 {
			t.Errorf("rolled back after %s and %d breaks", took, w.status().Breaker.Trips)
		}
	})
	t.Run("above a limit", func(t *testing.T) {
		w := newWorld(t, breakSpec())
		w.until(24*time.Hour, "it soaks at 20 percent", w.atShare("20"))
		w.feel("canary", bad)
		w.until(time.Hour, "it breaks", w.reason(v1alpha1.ReasonBreakerOpen))
		w.feel("canary", worse)
		w.until(time.Hour, "it is tried again", w.atShare("10"))
		w.runFor(10 * time.Minute)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonDegraded, "90/10")
		w.runFor(3 * time.Minute)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonBreakerOpen, "100/0")
	})
}

// TestDegradedForHours: a canary that stays degraded is rolled back though the spec has
// no deadline, however often the controller restarts, and the message says of what.
func TestDegradedForHours(t *testing.T) {
	w := newWorld(t, smallSpec())
	w.score = 1 // held, and not scaled back
	w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
	w.feel("canary", poor)
	w.until(time.Hour, "it is held", w.reason(v1alpha1.ReasonDegraded))
	for range 239 {
		w.runFor(time.Minute)
		w.restart()
	}
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonDegraded, "80/20")
	w.runFor(2 * time.Minute)
	w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonProgressDeadlineExceeded, "100/0")
	if m := w.status().OutcomeMessage; !strings.HasPrefix(m, "degraded for 4h without coming further (the default of spec.progressDeadline): latency: ") {
		t.Error(m)
	}
}

// TestDegradedAgainAndAgain: to be well for a while is no way around it, but a share that
// is higher than ever before is.
func TestDegradedAgainAndAgain(t *testing.T) {
	w := newWorld(t, smallSpec())
	w.object.spec.Plan.Stages[1].Soak = "200h"
	w.score = 1
	w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
	for range 3 {
		w.feel("canary", poor)
		w.runFor(70 * time.Minute)
		w.feel("canary", good)
		w.runFor(20 * time.Minute)
	}
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonSoaking, "80/20")
	w.feel("canary", poor)
	w.runFor(40 * time.Minute)
	w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonProgressDeadlineExceeded, "100/0")
}

// TestNotDegraded: without a deadline in the spec, nothing else that a rollout waits for
// ends it, nor does a canary that is degraded while a person holds it, or after it was
// promoted.
func TestNotDegraded(t *testing.T) {
	for name, tc := range map[string]struct {
		edit   func(*v1alpha1.WeightedRolloutSpec)
		then   func(*world)
		reason string
	}{
		"no metrics":            {nil, func(w *world) { w.feel("canary", blind) }, v1alpha1.ReasonAwaitingEvidence},
		"no requests":           {nil, func(w *world) { w.feel("canary", quiet) }, v1alpha1.ReasonAwaitingEvidence},
		"rising":                {nil, func(w *world) { w.feel("canary", rising) }, v1alpha1.ReasonAwaitingEvidence},
		"the canary is unready": {nil, func(w *world) { w.canaryReady = false }, v1alpha1.ReasonCanaryNotReady},
		"a pause":               {func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true }, func(w *world) { w.feel("canary", poor) }, v1alpha1.ReasonPaused},
		"approval":              {func(s *v1alpha1.WeightedRolloutSpec) { s.Plan.Stages[1] = approvedAfter(s.Plan.Stages[1]) }, nil, v1alpha1.ReasonAwaitingApproval},
		"a window": {func(s *v1alpha1.WeightedRolloutSpec) {
			s.Plan.Windows = []v1alpha1.Window{{Days: []v1alpha1.Day{"Sun"}}}
		}, nil, v1alpha1.ReasonOutsideWindow},
		"a stop": {func(s *v1alpha1.WeightedRolloutSpec) { s.OnUnhealthy.Action = v1alpha1.UnhealthyPause }, func(w *world) {
			w.feel("canary", bad)
			w.runFor(10 * time.Minute)
			w.feel("canary", poor)
		}, v1alpha1.ReasonUnhealthy},
		"promoted": {nil, func(w *world) {
			w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
			w.feel("canary", poor)
		}, v1alpha1.ReasonPromoted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, smallSpec())
			w.score = 1
			w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
			if tc.edit != nil {
				w.change(tc.edit)
			}
			if tc.then != nil {
				tc.then(w)
			}
			w.until(2*time.Hour, "it waits", w.reason(tc.reason))
			w.runFor(100 * time.Hour)
			if got := conditionOf(w.status(), v1alpha1.ConditionReady).Reason; w.status().Outcome == v1alpha1.OutcomeRolledBack || got != tc.reason {
				t.Errorf("%s: %s", got, w.summary())
			}
		})
	}
}
