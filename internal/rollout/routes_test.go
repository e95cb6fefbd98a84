package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestHandEdit: an edit never advances the plan. Upwards it is healed at once,
// downwards it is taken over and ramps back up, and the soak starts again.
func TestHandEdit(t *testing.T) {
	for _, tc := range []struct {
		edit string
		wire string // after one settling
		then []string
	}{
		{"20/80", "80/20", nil},
		{"0/100", "80/20", nil},
		{"-/-", "80/20", nil},
		{"79/21", "80/20", nil},
		{"8/2", "80/20", nil},
		{"8000/2000", "80/20", nil},
		{"100/0", "100/0", []string{"web 90/10", "web 80/20"}},
		{"0/0", "100/0", []string{"web 90/10", "web 80/20"}},
		{"99/1", "99/1", []string{"web 89/11", "web 80/20"}},
		{"2000/13", "100/0", []string{"web 90/10", "web 80/20"}},
		{"81/19", "81/19", []string{"web 80/20"}},
	} {
		t.Run(tc.edit, func(t *testing.T) {
			w := at20(t)
			w.runFor(4 * time.Minute)
			w.edit(0, weightsFrom(tc.edit), "kubectl-edit")
			before := len(w.journal.told)
			w.settle()
			if w.wire() != tc.wire || stageIndex(w.status()) != 1 || w.status().Outcome != v1alpha1.OutcomeInProgress {
				t.Fatal(w.summary())
			}
			if got := w.journal.told[before:]; len(got) != 1 || got[0] != v1alpha1.ReasonDrift {
				t.Errorf("events %v, want one %s", got, v1alpha1.ReasonDrift)
			}
			wires := len(w.journal.wires)
			w.until(time.Hour, "it has 20 percent again", w.atShare("20"))
			if got := w.journal.wires[wires:]; len(tc.then)+len(got) > 0 && cmp.Diff(tc.then, got) != "" {
				t.Errorf("then %v, want %v", got, tc.then)
			}
			again := w.at
			w.until(time.Hour, "the stage is over", func() bool { return stageIndex(w.status()) == 2 })
			if soaked := w.at.Sub(again); soaked != 5*time.Minute {
				t.Errorf("the stage ends %s after it has 20 percent again, want 5m", soaked)
			}
		})
	}
	t.Run("after promotion", func(t *testing.T) {
		w := promotedWorld(t)
		w.edit(0, weightsOf(60, 40), "kubectl-edit")
		w.settle()
		if w.status().Outcome != v1alpha1.OutcomeInProgress || w.wire() != "60/40" {
			t.Fatal(w.summary())
		}
		w.until(time.Hour, "it is promoted again", w.reason(v1alpha1.ReasonPromoted))
	})
	t.Run("after completion", func(t *testing.T) {
		w := promotedWorld(t)
		w.say(v1alpha1.VerbFinish)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
		w.edit(0, weightsOf(60, 40), "kubectl-edit")
		w.runFor(time.Minute)
		w.expect(v1alpha1.OutcomeCompleted, v1alpha1.ReasonCompleted, "100/0")
	})
	t.Run("of one route of two", func(t *testing.T) {
		w := newWorld(t, alsoRoute(smallSpec()))
		w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
		w.edit(1, weightsOf(95, 5), "kubectl-edit")
		w.settle()
		if w.wire() != "95/5 95/5" {
			t.Error(w.summary())
		}
	})
	t.Run("while the intent is not written yet", func(t *testing.T) {
		w := at20(t)
		w.routes[0].denied = true
		w.until(time.Hour, "the write of 40 percent is refused", w.reason(v1alpha1.ReasonRouteWriteFailed))
		w.routes[0].denied = false
		w.edit(0, weightsOf(85, 15), "kubectl-edit")
		w.settle()
		if w.wire() != "85/15" {
			t.Error(w.summary())
		}
	})
}

func TestRouteMissingAndMadeAgain(t *testing.T) {
	w := at20(t)
	w.routes[0].stored = nil
	w.runFor(time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonRouteMissing, "none")
	w.createRoute(0, weightsOf(50, 50))
	w.settle()
	if s := w.status(); s.Attempt != 2 || w.wire() != "100/0" || s.Stage.Index != 0 || s.History[0].Reason != v1alpha1.ReasonRouteReplaced {
		t.Error(w.summary())
	}
	w.until(24*time.Hour, "the revision is promoted", w.reason(v1alpha1.ReasonPromoted))
}

func TestRouteProblems(t *testing.T) {
	none := int32(0)
	some := int32(60)
	for _, tc := range []struct {
		name   string
		make   func(*world)
		reason string
		text   string
	}{
		{"duplicates", func(w *world) { w.createRoute(0, weightsOf(100, 0), backendRef("web-canary", &none)) }, v1alpha1.ReasonDuplicateBackendRef, "rule 1"},
		{"too small a sum for the stage", func(w *world) { w.createRoute(0, weightsOf(8, 0), backendRef("web-other", &some)) }, v1alpha1.ReasonWeightResolution, "sum of at least 10"},
		{"no rule", func(w *world) {
			w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Routes[0].RuleNames = []string{"main"} })
		}, v1alpha1.ReasonNoMatchingRule, `no rule named "main"`},
		{"no route", func(w *world) { w.routes[0].stored = nil }, v1alpha1.ReasonRouteMissing, "create it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, smallSpec())
			tc.make(w)
			w.runFor(time.Hour)
			c := conditionOf(w.status(), v1alpha1.ConditionStalled)
			if c.Reason != tc.reason || c.Status != "True" || !strings.Contains(c.Message, tc.text) || len(w.journal.wires) > 0 {
				t.Errorf("%s %s: %s; written %v", c.Status, c.Reason, c.Message, w.journal.wires)
			}
		})
	}
}

// TestFirstRampStepNeedsResolution: the stage's share could be expressed, but the
// first step to it would be a weight of 0, which never gets a request.
func TestFirstRampStepNeedsResolution(t *testing.T) {
	spec := defaultSpec()
	spec.Plan.Stages = []v1alpha1.Stage{stageOf("10", "30m")}
	w := newWorld(t, spec)
	other := int32(60)
	w.createRoute(0, weightsOf(40, 0), backendRef("web-other", &other))
	w.runFor(time.Hour)
	w.expect("", v1alpha1.ReasonWeightResolution, "40/0")
	w.edit(0, weightsOf(400, 0), "kubectl-edit")
	w.until(time.Hour, "it soaks at 10 percent", w.atShare("10"))
	if w.wire() != "360/40" {
		t.Error(w.summary())
	}
}

func TestRouteWriteFailed(t *testing.T) {
	w := at20(t)
	w.routes[0].denied = true
	w.runFor(10 * time.Minute)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonRouteWriteFailed, "80/20")
	w.feel("canary", bad)
	w.runFor(10 * time.Minute)
	w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonRouteWriteFailed, "80/20")
	if w.status().Phase != v1alpha1.PhaseRolledBack {
		t.Errorf("phase %s", w.status().Phase)
	}
	w.routes[0].denied = false
	w.runFor(time.Minute)
	w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy, "100/0")
	t.Run("one of two does not keep the other from being lowered", func(t *testing.T) {
		w := newWorld(t, alsoRoute(smallSpec()))
		w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
		w.routes[0].denied = true
		w.abort(1)
		w.settle()
		if w.wire() != "80/20 100/0" {
			t.Error(w.summary())
		}
	})
}

func TestDeletion(t *testing.T) {
	for _, tc := range []struct {
		name    string
		prepare func(*world)
		wire    string
		stays   string // the reason for which the object stays, if it does
	}{
		{"at 20 percent", func(*world) {}, "100/0", ""},
		{"onDelete: Keep", func(w *world) { w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.OnDelete = v1alpha1.DeletionKeep }) }, "80/20", ""},
		{"promoted", func(w *world) { w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted)) }, "0/100", ""},
		{"returning", func(w *world) {
			w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
			w.say(v1alpha1.VerbFinish)
			w.until(time.Hour, "stable has 40 percent", w.atShare("60"))
		}, "40/60", ""},
		{"rolled back", func(w *world) { w.abort(1); w.settle() }, "100/0", ""},
		{"route gone", func(w *world) { w.routes[0].stored = nil }, "none", ""},
		{"paused, unready and unhealthy", func(w *world) {
			w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true })
			w.canaryReady = false
			w.feel("canary", bad)
		}, "100/0", ""},
		{"stable unavailable", func(w *world) { w.stableReady = false }, "80/20", ""},
		{"edited meanwhile", func(w *world) { w.edit(0, weightsOf(1, 99), "") }, "100/0", ""},
		{"the gateway is silent", func(w *world) { w.gateway.silent = true }, "100/0", ""},
		{"writes are refused", func(w *world) { w.routes[0].denied = true }, "80/20", v1alpha1.ReasonRouteWriteFailed},
		{"Observe", func(w *world) { w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Mode = v1alpha1.ModeObserve }) }, "80/20", ""},
		{"another's rule", func(w *world) { w.owner = "older" }, "80/20", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := at20(t)
			tc.prepare(w)
			w.remove()
			w.runFor(time.Hour)
			if w.object.gone == (tc.stays != "") || w.wire() != tc.wire {
				t.Errorf("gone %v, %s, want %s", w.object.gone, w.summary(), tc.wire)
			}
			if c := conditionOf(w.status(), v1alpha1.ConditionStalled); tc.stays != "" && (c.Reason != tc.stays || !strings.Contains(c.Message, v1alpha1.Finalizer)) {
				t.Errorf("%s: %s", c.Reason, c.Message)
			}
			if hr := w.routes[0].stored; hr != nil && w.owner == "" && tc.stays == "" && tc.name != "Observe" && hr.Annotations[v1alpha1.ManagedByAnnotation] != "" {
				t.Errorf("annotation left: %v", hr.Annotations)
			}
		})
	}
	t.Run("before anything was done", func(t *testing.T) {
		w := newWorld(t, smallSpec())
		w.remove()
		if !w.object.gone {
			t.Error("there was nothing to wait for")
		}
	})
}

func TestObserve(t *testing.T) {
	spec := smallSpec()
	spec.Mode = v1alpha1.ModeObserve
	w := newWorld(t, spec)
	w.edit(0, weightsOf(8, 2), "helm")
	w.runFor(100 * time.Hour)
	w.expect("", v1alpha1.ReasonObserving, "8/2")
	if c := conditionOf(w.status(), v1alpha1.ConditionReady); !strings.Contains(c.Message, "set the canary's share to 0 percent") {
		t.Errorf("message %q", c.Message)
	}
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Mode = v1alpha1.ModeEnforce })
	w.until(24*time.Hour, "it soaks at 20 percent", w.atShare("20"))
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Mode = v1alpha1.ModeObserve })
	w.feel("canary", bad)
	w.runFor(10 * time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonObserving, "80/20")
}

// TestConflict: two rollouts, one rule.
func TestConflict(t *testing.T) {
	w := newWorld(t, smallSpec())
	w.owner = "older"
	w.edit(0, weightsOf(70, 30), "weightedrollout")
	w.runFor(time.Hour)
	w.expect("", v1alpha1.ReasonRouteConflict, "70/30")
	if c := conditionOf(w.status(), v1alpha1.ConditionStalled); !strings.Contains(c.Message, `"older"`) {
		t.Errorf("message %q", c.Message)
	}
	w.owner = ""
	w.settle()
	if w.wire() != "100/0" {
		t.Error(w.summary())
	}
}
