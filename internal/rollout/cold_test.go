package rollout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// coldSpec has one stage of 50 percent and room for ten points at a time.
func coldSpec() v1alpha1.WeightedRolloutSpec {
	spec := defaultSpec()
	spec.Plan.Stages = []v1alpha1.Stage{stageOf("20", "30m"), stageOf("50", "30m")}
	return spec
}

// track notes every share that is confirmed, and when: "0:02:00 6".
func (w *world) track(d time.Duration) []string {
	var seen []string
	last := v1alpha1.Percent("")
	end := w.at.Add(d)
	for w.at.Before(end) {
		if s := w.status().Share; s.ConfirmedAt != nil && *s.Desired != last {
			last = *s.Desired
			seen = append(seen, fmt.Sprintf("%s %s", w.at.Sub(start).Round(time.Second), last))
		}
		w.runFor(time.Second)
	}
	return seen
}

// TestWarmup: 30 percent of the stage's share, held for ten minutes, and then a fifth
// of it at a time. Once warm, the ramp's own limits hold.
func TestWarmup(t *testing.T) {
	w := newWorld(t, coldSpec())
	got := w.track(21 * time.Minute)
	// The gateway takes 2 s, and the first window of evidence is full after 75 s.
	want := []string{"2s 0", "1m4s 6", "11m6s 10", "12m23s 14", "13m40s 18", "14m57s 20"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	if w.status().Warmup != nil {
		t.Errorf("at the stage's share it is still cold: %v", w.status().Warmup)
	}
	w.until(24*time.Hour, "the next stage begins", w.atShare("24"))
}

func TestWarmupSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		warmup v1alpha1.Warmup
		want   string
	}{
		"off":             {v1alpha1.Warmup{InitialPercent: "100"}, "10 12 14 16 19 20"},
		"a small start":   {v1alpha1.Warmup{InitialPercent: "1", Soak: "0s", IncrementPercent: "100"}, "1 11 20"},
		"no soak":         {v1alpha1.Warmup{InitialPercent: "50", Soak: "0s", IncrementPercent: "30"}, "10 16 20"},
		"small increases": {v1alpha1.Warmup{InitialPercent: "40", Soak: "1s", IncrementPercent: "10"}, "8 10 12 14 16 18 20"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := coldSpec()
			spec.Ramp.Warmup = tc.warmup
			w := newWorld(t, spec)
			w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
			if got := strings.Join(w.journal.shares("web"), " "); got != tc.want {
				t.Errorf("shares %s, want %s", got, tc.want)
			}
		})
	}
	t.Run("broken", func(t *testing.T) {
		spec := coldSpec()
		spec.Ramp.Warmup.InitialPercent = "0"
		w := newWorld(t, spec)
		w.runFor(time.Hour)
		w.expect("", v1alpha1.ReasonInvalidSpec, "100/0")
	})
}

// TestWarmupWithoutEvidence: a cold canary without requests stays where it is.
func TestWarmupWithoutEvidence(t *testing.T) {
	w := newWorld(t, coldSpec())
	w.feel("canary", quiet)
	w.runFor(10 * time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonAwaitingEvidence, "94/6")
}

// TestWarmupIsNotPromoted: promote ends soaks, and not the warm-up, which is a limit
// of the ramp.
func TestWarmupIsNotPromoted(t *testing.T) {
	w := newWorld(t, coldSpec())
	w.until(time.Hour, "it is at its first share", w.atShare("6"))
	w.say(v1alpha1.VerbPromote)
	w.runFor(9 * time.Minute)
	if w.wire() != "94/6" {
		t.Errorf("after promote: %s", w.summary())
	}
}

// breakSpec breaks twice at most.
func breakSpec() v1alpha1.WeightedRolloutSpec {
	spec := coldSpec()
	spec.OnUnhealthy = v1alpha1.OnUnhealthy{Action: v1alpha1.UnhealthyBreak, For: "1m", Cooldown: "10m", MaxTrips: 2}
	return spec
}

// TestBreak: to 0 for the cooldown, back at half of the stage's share, and after
// three good evaluations in a row up by the ramp's own limits; a third breach rolls
// back.
func TestBreak(t *testing.T) {
	w := newWorld(t, breakSpec())
	w.until(24*time.Hour, "it soaks at 20 percent", w.atShare("20"))
	began := w.at
	w.feel("canary", bad)
	w.runFor(3 * time.Minute)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonBreakerOpen, "100/0")
	if s := w.status(); s.Phase != v1alpha1.PhaseCoolingDown || s.Breaker.Trips != 1 || s.NextTransitionTime == nil {
		t.Errorf("%s, %v, next %v", s.Phase, s.Breaker, s.NextTransitionTime)
	}
	w.feel("canary", good)
	before := len(w.journal.wires)
	w.runFor(9 * time.Minute)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonBreakerOpen, "100/0")
	w.until(time.Hour, "it is back at its stage", w.atShare("20"))
	// 10 is half of 20; three good evaluations end the hold long before its time.
	want := []string{"web 90/10", "web 86/14", "web 82/18", "web 80/20"}
	if diff := cmp.Diff(want, w.journal.wires[before:]); diff != "" {
		t.Errorf("after the break (-want +got):\n%s", diff)
	}
	if back := w.at.Sub(began); back > 25*time.Minute {
		t.Errorf("back after %s, which is no fast recovery", back)
	}
	if c := w.status(); c.Warmup != nil || c.Breaker.OpenedAt != nil || c.Breaker.Trips != 1 {
		t.Errorf("warm-up %v, breaker %v", c.Warmup, c.Breaker)
	}
	// The soak starts again.
	w.runFor(29 * time.Minute)
	if w.wire() != "80/20" {
		t.Errorf("the stage ends before its soak: %s", w.summary())
	}
	w.feel("canary", bad)
	w.until(time.Hour, "there is a second break", w.reason(v1alpha1.ReasonBreakerOpen))
	w.until(time.Hour, "a third breach rolls back", w.reason(v1alpha1.ReasonUnhealthy))
	w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy, "100/0")
	if s := w.status(); s.Breaker.Trips != 2 || s.Breaker.OpenedAt != nil || !strings.Contains(s.OutcomeMessage, "unhealthy again after 2 breaks") {
		t.Errorf("breaker %v: %s", s.Breaker, s.OutcomeMessage)
	}
	w.feel("canary", good)
	w.runFor(24 * time.Hour)
	w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy, "100/0")
}

// TestBreakWithoutRecovery: what is not good three times in a row is held for the
// whole of its warm-up.
func TestBreakWithoutRecovery(t *testing.T) {
	w := newWorld(t, breakSpec())
	w.until(24*time.Hour, "it soaks at 20 percent", w.atShare("20"))
	w.feel("canary", bad)
	w.until(time.Hour, "it breaks", w.reason(v1alpha1.ReasonBreakerOpen))
	w.feel("canary", good)
	w.windows.steady = 24 * time.Hour
	w.until(time.Hour, "it is tried again", w.atShare("10"))
	again := w.at
	w.until(time.Hour, "it goes on", w.atShare("14"))
	if held := w.at.Sub(again); held < 10*time.Minute {
		t.Errorf("held for %s", held)
	}
}

// TestRecoveryIsNotSlowerThanTheRamp: where the warm-up allows less than the ramp, a
// canary that has recovered goes by the ramp.
func TestRecoveryIsNotSlowerThanTheRamp(t *testing.T) {
	spec := breakSpec()
	spec.Ramp.Warmup.IncrementPercent = "1"
	w := newWorld(t, spec)
	w.until(24*time.Hour, "it soaks at 20 percent", w.atShare("20"))
	w.feel("canary", bad)
	w.until(time.Hour, "it breaks", w.reason(v1alpha1.ReasonBreakerOpen))
	w.feel("canary", good)
	before := len(w.journal.wires)
	w.until(time.Hour, "it is back at its stage", w.atShare("20"))
	want := []string{"web 90/10", "web 88/12", "web 86/14", "web 84/16", "web 81/19", "web 80/20"}
	if diff := cmp.Diff(want, w.journal.wires[before:]); diff != "" {
		t.Errorf("after the break (-want +got):\n%s", diff)
	}
}

// TestBreakOfPromoted: a promoted canary breaks as well. What was proved has been
// disproved, and so it walks the whole plan again.
func TestBreakOfPromoted(t *testing.T) {
	w := newWorld(t, breakSpec())
	w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
	w.feel("canary", bad)
	w.until(time.Hour, "it breaks", w.reason(v1alpha1.ReasonBreakerOpen))
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonBreakerOpen, "100/0")
	w.feel("canary", good)
	broke := w.at
	w.until(24*time.Hour, "it soaks at 20 percent again", w.atShare("20"))
	w.until(24*time.Hour, "it is promoted again", w.reason(v1alpha1.ReasonPromoted))
	if took := w.at.Sub(broke); took < 70*time.Minute {
		t.Errorf("promoted again after %s, which is too short for two soaks of 30 minutes", took)
	}
}

// broken returns a world one minute into a break at 20 percent.
func broken(t *testing.T, change ...func(*v1alpha1.WeightedRolloutSpec)) *world {
	spec := breakSpec()
	for _, c := range change {
		c(&spec)
	}
	w := newWorld(t, spec)
	w.until(24*time.Hour, "it soaks at 20 percent", w.atShare("20"))
	w.feel("canary", bad)
	w.until(time.Hour, "it breaks", w.reason(v1alpha1.ReasonBreakerOpen))
	w.runFor(time.Minute)
	return w
}

// TestRouteReplacedInABreak: a route that is made again is no way around a break or a
// stop.
func TestRouteReplacedInABreak(t *testing.T) {
	t.Run("break", func(t *testing.T) {
		w := broken(t)
		w.createRoute(0, weightsOf(100, 0))
		w.runFor(7 * time.Minute)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonBreakerOpen, "100/0")
		if s := w.status(); s.Attempt != 2 || s.Breaker.Trips != 1 {
			t.Errorf("attempt %d, breaker %v", s.Attempt, s.Breaker)
		}
	})
	t.Run("stop", func(t *testing.T) {
		spec := coldSpec()
		spec.OnUnhealthy.Action = v1alpha1.UnhealthyPause
		w := newWorld(t, spec)
		w.until(24*time.Hour, "it soaks at 20 percent", w.atShare("20"))
		w.feel("canary", bad)
		w.runFor(10 * time.Minute)
		w.createRoute(0, weightsOf(100, 0))
		w.runFor(10 * time.Hour)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonUnhealthy, "100/0")
	})
}

// TestActionEditedInABreak: another action is carried out, and is no way to get
// traffic sooner.
func TestActionEditedInABreak(t *testing.T) {
	for action, reason := range map[v1alpha1.UnhealthyAction]string{v1alpha1.UnhealthyRollback: v1alpha1.ReasonUnhealthy, v1alpha1.UnhealthyPause: v1alpha1.ReasonUnhealthy} {
		t.Run(string(action), func(t *testing.T) {
			w := broken(t, func(s *v1alpha1.WeightedRolloutSpec) { s.OnUnhealthy.Cooldown = "2h" })
			w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.OnUnhealthy = v1alpha1.OnUnhealthy{Action: action, For: "1m"} })
			w.feel("canary", good)
			w.runFor(10 * time.Hour)
			outcome := v1alpha1.OutcomeRolledBack
			if action == v1alpha1.UnhealthyPause {
				outcome = v1alpha1.OutcomeInProgress
			}
			w.expect(outcome, reason, "100/0")
		})
	}
	t.Run("a longer cooldown", func(t *testing.T) {
		w := broken(t)
		w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.OnUnhealthy.Cooldown = "2h" })
		w.runFor(110 * time.Minute)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonBreakerOpen, "100/0")
	})
}

// TestBreakTakesApprovalsBack: what a person allowed was allowed to a canary that was
// well.
func TestBreakTakesApprovalsBack(t *testing.T) {
	spec := breakSpec()
	spec.Plan.Stages[0] = approvedAfter(spec.Plan.Stages[0])
	w := newWorld(t, spec)
	w.until(24*time.Hour, "it soaks at 20 percent", w.atShare("20"))
	w.say(v1alpha1.VerbApprove)
	w.settle()
	w.say(v1alpha1.VerbPromote)
	w.settle()
	if s := w.status(); !s.Promote || !s.Stage.Approved {
		t.Fatalf("not accepted: %+v", s.Command)
	}
	w.feel("canary", bad)
	w.until(time.Hour, "it breaks", w.reason(v1alpha1.ReasonBreakerOpen))
	if s := w.status(); s.Promote || s.Stage.Approved {
		t.Errorf("promote %v, approved %v", s.Promote, s.Stage.Approved)
	}
}

// TestStopEditedToBreak: the break takes the place of the stop, and ends.
func TestStopEditedToBreak(t *testing.T) {
	spec := coldSpec()
	spec.OnUnhealthy.Action = v1alpha1.UnhealthyPause
	w := newWorld(t, spec)
	w.until(24*time.Hour, "it soaks at 20 percent", w.atShare("20"))
	w.feel("canary", bad)
	w.runFor(10 * time.Minute)
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.OnUnhealthy.Action = v1alpha1.UnhealthyBreak })
	w.runFor(time.Minute)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonBreakerOpen, "100/0")
	w.feel("canary", good)
	w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
}

// TestBreakThatCannotBeWritten: the status says that the traffic is still there, and
// why it should not be.
func TestBreakThatCannotBeWritten(t *testing.T) {
	w := newWorld(t, breakSpec())
	w.until(24*time.Hour, "it soaks at 20 percent", w.atShare("20"))
	w.routes[0].denied = true
	w.feel("canary", bad)
	w.runFor(10 * time.Minute)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonRouteWriteFailed, "80/20")
	if m := conditionOf(w.status(), v1alpha1.ConditionStalled).Message; !strings.Contains(m, "It was to give stable all traffic, since the canary is unhealthy (break 1 of 2)") {
		t.Error(m)
	}
}

func TestBreakUnderBrokenPlanRollsBack(t *testing.T) {
	w := newWorld(t, breakSpec())
	w.until(24*time.Hour, "it soaks at 20 percent", w.atShare("20"))
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Plan.Stages = nil })
	w.feel("canary", bad)
	w.runFor(5 * time.Minute)
	w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy, "100/0")
}

// TestStop: action Pause holds the share, whatever the numbers do, until a person
// says resume; then evidence and soak start again.
func TestStop(t *testing.T) {
	stopped := func(t *testing.T) *world {
		spec := coldSpec()
		spec.OnUnhealthy.Action = v1alpha1.UnhealthyPause
		w := newWorld(t, spec)
		w.until(24*time.Hour, "it soaks at 20 percent", w.atShare("20"))
		w.feel("canary", bad)
		w.runFor(10 * time.Minute)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonUnhealthy, "80/20")
		if c := conditionOf(w.status(), v1alpha1.ConditionPaused); w.status().Phase != v1alpha1.PhasePaused || c.Status != "True" || c.Reason != v1alpha1.ReasonUnhealthy {
			t.Errorf("phase %s, condition %v", w.status().Phase, c)
		}
		w.feel("canary", good)
		w.restart()
		w.runFor(48 * time.Hour)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonUnhealthy, "80/20")
		return w
	}
	t.Run("resume", func(t *testing.T) {
		w := stopped(t)
		w.say(v1alpha1.VerbResume)
		w.runFor(29 * time.Minute)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonSoaking, "80/20")
		w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
	})
	t.Run("resume while unhealthy", func(t *testing.T) {
		w := stopped(t)
		w.feel("canary", bad)
		w.runFor(10 * time.Minute)
		w.say(v1alpha1.VerbResume)
		w.runFor(time.Minute)
		if w.status().Pause != nil {
			t.Error("resume does nothing")
		}
		w.runFor(10 * time.Minute)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonUnhealthy, "80/20")
	})
	t.Run("abort", func(t *testing.T) {
		w := stopped(t)
		w.abort(1)
		w.runFor(time.Minute)
		w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonAborted, "100/0")
		if w.status().Pause != nil {
			t.Errorf("still stopped: %v", w.status().Pause)
		}
	})
	t.Run("a new revision", func(t *testing.T) {
		w := stopped(t)
		w.revise("v3")
		w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
	})
	t.Run("the pods die", func(t *testing.T) {
		w := stopped(t)
		w.canaryReady = false
		w.runFor(time.Minute)
		if w.wire() != "100/0" {
			t.Error(w.summary())
		}
	})
	t.Run("nothing to resume", func(t *testing.T) {
		w := newWorld(t, coldSpec())
		w.runFor(20 * time.Minute)
		w.say(v1alpha1.VerbResume)
		w.settle()
		if c := w.status().Command; c.Accepted || c.Message != "attempt 1 is not stopped" {
			t.Errorf("%+v", c)
		}
	})
	t.Run("promoted", func(t *testing.T) {
		spec := coldSpec()
		spec.OnUnhealthy.Action = v1alpha1.UnhealthyPause
		w := newWorld(t, spec)
		w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
		w.feel("canary", bad)
		w.runFor(10 * time.Minute)
		w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonUnhealthy, "0/100")
		w.feel("canary", good)
		w.say(v1alpha1.VerbFinish)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
}
