package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestUnhealthyWhatever: a lasting breach rolls back, whatever else is the case. In
// each case the pass that sees the verdict is the pass that rolls back.
func TestUnhealthyWhatever(t *testing.T) {
	for _, tc := range []struct {
		name    string
		disturb func(*world)
		outcome v1alpha1.Outcome
		reason  string
	}{
		{"nothing else", func(*world) {}, v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy},
		{"paused", func(w *world) { w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true }) }, v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy},
		{"the canary's pods die", func(w *world) { w.canaryReady = false }, v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy},
		{"the gateway is silent", func(w *world) { w.gateway.silent = true }, v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy},
		{"somebody sets the canary to 0", func(w *world) { w.edit(0, weightsOf(100, 0), "kubectl-edit") }, v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy},
		{"somebody sets the canary to 80", func(w *world) { w.edit(0, weightsOf(20, 80), "kubectl-edit") }, v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy},
		{"the spec is broken", func(w *world) { w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Plan.Stages = nil }) }, v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy},
		{"promote", func(w *world) { w.say(v1alpha1.VerbPromote) }, v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy},
		{"abort", func(w *world) { w.abort(1) }, v1alpha1.OutcomeRolledBack, v1alpha1.ReasonAborted},
		{"the route is made again", func(w *world) { w.createRoute(0, weightsOf(80, 20)) }, v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := at20(t)
			w.feel("canary", bad)
			w.runFor(w.windows.unhealthy - time.Millisecond)
			w.at = w.at.Add(time.Millisecond)
			tc.disturb(w)
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			s := w.status()
			if s.Outcome != tc.outcome || s.OutcomeReason != tc.reason || w.wire() != "100/0" {
				t.Errorf("after one pass: %s, %s", w.summary(), s.OutcomeReason)
			}
		})
	}
}

func TestUnknownHolds(t *testing.T) {
	for m, reason := range map[mood]string{
		quiet: v1alpha1.ReasonAwaitingEvidence, blind: v1alpha1.ReasonAwaitingEvidence, rising: v1alpha1.ReasonAwaitingEvidence, degraded: v1alpha1.ReasonDegraded,
	} {
		t.Run(string(m), func(t *testing.T) {
			w := newWorld(t, smallSpec())
			w.feel("canary", m)
			hold := 100 * time.Hour
			if m == degraded {
				hold = 3 * time.Hour // by default it is rolled back after four
			}
			w.runFor(hold)
			w.expect(v1alpha1.OutcomeInProgress, reason, "90/10")
			w.feel("canary", good)
			w.until(24*time.Hour, "the revision is promoted", w.reason(v1alpha1.ReasonPromoted))
		})
	}
}

// TestCanaryUnready: to 0 at once, and then up again from 0 in the same stage.
func TestCanaryUnready(t *testing.T) {
	w := newWorld(t, smallSpec())
	w.until(24*time.Hour, "it soaks at 50 percent", w.atShare("50"))
	w.canaryReady = false
	w.settle()
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonCanaryNotReady, "100/0")
	w.runFor(10 * time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonCanaryNotReady, "100/0")
	w.canaryReady = true
	before := len(w.journal.wires)
	w.until(24*time.Hour, "the revision is promoted", w.reason(v1alpha1.ReasonPromoted))
	// Cold again: 30 percent of the stage's share, and then 20 percent of it at a time.
	want := []string{"web 85/15", "web 75/25", "web 65/35", "web 55/45", "web 50/50", "web 30/70", "web 10/90", "web 0/100"}
	if diff := cmp.Diff(want, w.journal.wires[before:]); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	t.Run("from the start", func(t *testing.T) {
		w := newWorld(t, smallSpec())
		w.canaryReady = false
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonCanaryNotReady, "100/0")
	})
}

func TestStableUnavailable(t *testing.T) {
	for _, tc := range []struct {
		name    string
		disturb func(*world)
	}{
		{"soaking", func(*world) {}},
		{"unhealthy", func(w *world) { w.feel("canary", bad) }},
		{"abort", func(w *world) { w.abort(1) }},
		{"a new revision", func(w *world) { w.revise("v3") }},
		{"the canary is gone too", func(w *world) { w.canaryReady = false }},
		{"edited up", func(w *world) { w.edit(0, weightsOf(10, 90), "") }},
		{"the route is made again", func(w *world) { w.createRoute(0, weightsOf(50, 50)) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := at20(t)
			w.stableReady = false
			tc.disturb(w)
			wire := w.wire()
			w.runFor(time.Hour)
			w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonStableUnavailable, wire)
			w.stableReady = true
			w.settle()
			if tc.name != "soaking" && w.wire() == wire {
				t.Errorf("stable is ready again, and nothing happens: %s", w.summary())
			}
		})
	}
	t.Run("promoted", func(t *testing.T) {
		w := promotedWorld(t)
		w.stableReady = false
		w.runFor(100 * time.Hour)
		w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonPromoted, "0/100")
	})
}

// TestReturning: what can go wrong while the traffic returns to stable.
func TestReturning(t *testing.T) {
	returning := func(t *testing.T) *world {
		w := promotedWorld(t)
		w.say(v1alpha1.VerbFinish)
		w.until(time.Hour, "stable has 40 percent", w.atShare("60"))
		return w
	}
	t.Run("stable unready", func(t *testing.T) {
		w := returning(t)
		w.stableReady = false
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeReturning, v1alpha1.ReasonStableNotReady, "0/100")
		w.stableReady = true
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
	t.Run("stable unhealthy", func(t *testing.T) {
		w := returning(t)
		w.feel("stable", bad)
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonPromoted, "0/100")
	})
	t.Run("the canary unready", func(t *testing.T) {
		w := returning(t)
		w.canaryReady = false
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
	t.Run("the canary unready, and an edit that helps it", func(t *testing.T) {
		w := returning(t)
		w.canaryReady = false
		w.edit(0, weightsOf(70, 30), "kubectl-edit")
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeReturning, v1alpha1.ReasonCanaryNotReady, "70/30")
		w.abort(1)
		w.settle()
		w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonAborted, "100/0")
	})
	t.Run("paused", func(t *testing.T) {
		w := returning(t)
		w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true })
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeReturning, v1alpha1.ReasonPaused, "40/60")
	})
	t.Run("edited to the end", func(t *testing.T) {
		w := returning(t)
		w.edit(0, weightsOf(100, 0), "kubectl-edit")
		w.settle()
		if w.wire() != "40/60" {
			t.Error(w.summary())
		}
	})
}

// TestRejectedRoute: a flicker is not final, a lasting rejection is.
func TestRejectedRoute(t *testing.T) {
	for _, tc := range []struct {
		name  string
		lasts time.Duration
		final bool
	}{{"a flicker", 50 * time.Second, false}, {"for longer than onUnhealthy.for", 62 * time.Second, true}} {
		t.Run(tc.name, func(t *testing.T) {
			w := at20(t)
			w.gateway.rejects = "BackendNotFound"
			w.runFor(tc.lasts)
			w.gateway.rejects = ""
			w.runFor(time.Second)
			if rolledBack := w.status().Outcome == v1alpha1.OutcomeRolledBack; rolledBack != tc.final {
				t.Errorf("after %s: %s", tc.lasts, w.summary())
			}
		})
	}
	t.Run("after something else was wrong for long", func(t *testing.T) {
		w := at20(t)
		stored := w.routes[0].stored
		w.routes[0].stored = nil
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonRouteMissing, "none")
		w.routes[0].stored = stored
		w.gateway.rejects = "BackendNotFound"
		w.runFor(50 * time.Second)
		if w.status().Outcome != v1alpha1.OutcomeInProgress {
			t.Errorf("the flicker is final: %s", w.summary())
		}
	})
	t.Run("at 0 percent it only holds", func(t *testing.T) {
		w := newWorld(t, smallSpec())
		w.gateway.rejects = "BackendNotFound"
		w.runFor(10 * time.Hour)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonRouteNotConfirmed, "100/0")
		w.gateway.rejects = ""
		w.runFor(time.Minute)
		if w.wire() != "90/10" {
			t.Error(w.summary())
		}
	})
	t.Run("one of two, beside a silent one", func(t *testing.T) {
		w := newWorld(t, alsoRoute(smallSpec()))
		w.until(time.Hour, "it soaks at 10 percent", w.atShare("10"))
		w.gateway.silent = true
		w.edit(0, weightsOf(90, 10), "kubectl-edit") // a generation that is never confirmed
		other := w.routes[1].stored.DeepCopy()
		other.Status.Parents[0].Conditions[1].Status = "False"
		other.Status.Parents[0].Conditions[1].Reason = "BackendNotFound"
		w.routes[1].stored = other
		w.runFor(2 * time.Minute)
		if w.status().OutcomeReason != v1alpha1.ReasonRouteNotResolved {
			t.Error(w.summary())
		}
	})
}

// elsewhere20 soaks at 20 percent with a canary in another namespace.
func elsewhere20(t *testing.T) *world {
	w := at20(t)
	w.canaryElsewhere = true
	return w
}

// TestUnresolvedCanary: what a gateway cannot resolve gets nothing at once, and the attempt
// ends only after onUnhealthy.for.
func TestUnresolvedCanary(t *testing.T) {
	t.Run("at once, and for good after onUnhealthy.for", func(t *testing.T) {
		w := elsewhere20(t)
		w.gateway.rejects = "RefNotPermitted"
		w.runFor(time.Millisecond)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonRouteNotConfirmed, "100/0")
		w.runFor(50 * time.Second)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonRouteNotConfirmed, "100/0")
		w.runFor(12 * time.Second)
		w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonRouteNotResolved, "100/0")
	})
	t.Run("a restart does not start the time again", func(t *testing.T) {
		w := elsewhere20(t)
		w.gateway.rejects = "RefNotPermitted"
		for range 6 {
			w.runFor(10 * time.Second)
			w.restart()
		}
		w.runFor(2 * time.Second)
		w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonRouteNotResolved, "100/0")
	})
	t.Run("a slow gateway does not start the time again", func(t *testing.T) {
		w := elsewhere20(t)
		w.gateway.rejects, w.gateway.delay = "RefNotPermitted", 40*time.Second
		w.runFor(62 * time.Second)
		w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonRouteNotResolved, "100/0")
	})
	t.Run("a flicker is not final, and the way up begins in the same stage", func(t *testing.T) {
		w := elsewhere20(t)
		before, stage := len(w.journal.wires), stageIndex(w.status())
		w.gateway.rejects = "RefNotPermitted"
		w.runFor(30 * time.Second)
		w.gateway.rejects = ""
		w.runFor(time.Second)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonStarting, "100/0")
		if now := stageIndex(w.status()); now != stage {
			t.Errorf("stage %d, want %d", now, stage)
		}
		w.until(24*time.Hour, "it has its share again", w.atShare("20"))
		w.until(24*time.Hour, "the revision is promoted", w.reason(v1alpha1.ReasonPromoted))
		// Cold again: its first share is held for ramp.warmup.soak.
		if diff := cmp.Diff([]string{"web 100/0", "web 90/10", "web 80/20"}, w.journal.wires[before:before+3]); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
	t.Run("it is not raised while it is not resolved", func(t *testing.T) {
		w := elsewhere20(t)
		w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.OnUnhealthy.For = "1h" })
		w.settle()
		before := len(w.journal.wires)
		w.gateway.rejects = "RefNotPermitted"
		w.runFor(59 * time.Minute)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonRouteNotConfirmed, "100/0")
		if wrote := len(w.journal.wires) - before; wrote != 1 {
			t.Errorf("%d writes, want 1: %v", wrote, w.journal.wires[before:])
		}
	})
	t.Run("a gateway that ignores idle backends gets a second try, and no third", func(t *testing.T) {
		for _, initial := range []v1alpha1.Percent{"", "100"} {
			w := elsewhere20(t)
			w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Ramp.Warmup.InitialPercent = initial })
			w.settle()
			before, began := len(w.journal.wires), w.at
			w.gateway.rejects, w.gateway.ignoresIdle = "RefNotPermitted", true
			w.until(24*time.Hour, "it is rolled back", func() bool { return w.status().Outcome == v1alpha1.OutcomeRolledBack })
			if took := w.at.Sub(began); took < time.Minute || w.status().OutcomeReason != v1alpha1.ReasonRouteNotResolved {
				t.Errorf("after %s: %s", took, w.summary())
			}
			if wrote := len(w.journal.wires) - before; wrote != 3 {
				t.Errorf("%d writes, want down, up and down: %v", wrote, w.journal.wires[before:])
			}
		}
	})
	t.Run("a gateway that ignores idle backends, and a flicker", func(t *testing.T) {
		for _, initial := range []v1alpha1.Percent{"", "100"} {
			w := elsewhere20(t)
			w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Ramp.Warmup.InitialPercent = initial })
			w.settle()
			w.gateway.rejects, w.gateway.ignoresIdle = "RefNotPermitted", true
			w.runFor(30 * time.Second)
			w.gateway.rejects = ""
			w.until(24*time.Hour, "it has its share again", w.atShare("20"))
			if w.status().Warmup != nil {
				t.Errorf("initialPercent %q: still cold: %+v", initial, w.status().Warmup)
			}
			// Another one, much later, is another flicker.
			w.gateway.rejects = "RefNotPermitted"
			w.runFor(10 * time.Second)
			w.gateway.rejects = ""
			w.until(24*time.Hour, "the revision is promoted", w.reason(v1alpha1.ReasonPromoted))
		}
	})
	t.Run("whatever else holds", func(t *testing.T) {
		for name, disturb := range map[string]func(*world){
			"paused":           func(w *world) { w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true }) },
			"an invalid plan":  func(w *world) { w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Plan.Stages = nil }) },
			"no verdict":       func(w *world) { w.feel("canary", blind) },
			"stable elsewhere": func(w *world) { w.stableElsewhere = true },
		} {
			w := elsewhere20(t)
			disturb(w)
			w.gateway.rejects = "RefNotPermitted"
			w.runFor(5 * time.Second)
			if w.wire() != "100/0" {
				t.Errorf("%s: %s", name, w.summary())
			}
		}
	})
	t.Run("promoted", func(t *testing.T) {
		w := promotedWorld(t)
		w.canaryElsewhere, w.gateway.rejects = true, "RefNotPermitted"
		w.runFor(5 * time.Second)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonRouteNotConfirmed, "100/0")
		w.runFor(time.Minute)
		w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonRouteNotResolved, "100/0")
	})
	t.Run("stable has no endpoint either", func(t *testing.T) {
		w := elsewhere20(t)
		w.stableReady = false
		w.gateway.rejects = "RefNotPermitted"
		w.runFor(5 * time.Minute)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonStableUnavailable, "80/20")
	})
	t.Run("a ready canary in the route's own namespace is held", func(t *testing.T) {
		w := at20(t)
		w.stableElsewhere, w.gateway.rejects = true, "BackendNotFound"
		w.runFor(50 * time.Second)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonRouteNotConfirmed, "80/20")
		w.runFor(12 * time.Second)
		w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonRouteNotResolved, "100/0")
	})
}

// TestUnresolvedStable is the same on the way back to stable, which has no attempt to end.
func TestUnresolvedStable(t *testing.T) {
	returning := func(t *testing.T) *world {
		w := promotedWorld(t)
		w.stableElsewhere = true
		w.say(v1alpha1.VerbFinish)
		w.until(time.Hour, "stable has 40 percent", w.atShare("60"))
		return w
	}
	t.Run("at once", func(t *testing.T) {
		w := returning(t)
		w.gateway.rejects = "RefNotPermitted"
		w.runFor(time.Second)
		w.expect(v1alpha1.OutcomeReturning, v1alpha1.ReasonRouteNotConfirmed, "0/100")
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeReturning, v1alpha1.ReasonRouteNotConfirmed, "0/100")
		w.gateway.rejects = ""
		w.runFor(time.Second)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
	t.Run("a ready stable in the route's own namespace is held", func(t *testing.T) {
		w := returning(t)
		w.stableElsewhere, w.canaryElsewhere = false, true
		w.gateway.rejects = "RefNotPermitted"
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeReturning, v1alpha1.ReasonRouteNotConfirmed, "40/60")
	})
	t.Run("the canary has no endpoint either", func(t *testing.T) {
		w := returning(t)
		w.canaryReady = false
		w.gateway.rejects = "RefNotPermitted"
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeReturning, v1alpha1.ReasonCanaryNotReady, "40/60")
	})
}
