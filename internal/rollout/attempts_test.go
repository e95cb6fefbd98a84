package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
)

// at20 is a world with the small plan that soaks at 20 percent in stage 2/4.
func at20(t *testing.T) *world {
	w := newWorld(t, smallSpec())
	w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
	return w
}

// promotedWorld is a world whose canary has passed the small plan.
func promotedWorld(t *testing.T) *world {
	w := newWorld(t, smallSpec())
	w.until(24*time.Hour, "the revision is promoted", w.reason(v1alpha1.ReasonPromoted))
	return w
}

func (w *world) revise(revision string) {
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Revision = revision })
}

func TestAdoption(t *testing.T) {
	for _, tc := range []struct {
		name    string
		verb    v1alpha1.Verb
		outcome v1alpha1.Outcome
		wire    string
		attempt int64
	}{
		{"nobody says anything", "", "", "40/60", 0},
		{"promote does not help", v1alpha1.VerbPromote, "", "40/60", 0},
		{"retry starts at 0", v1alpha1.VerbRetry, v1alpha1.OutcomeInProgress, "100/0", 1},
		{"finish returns to stable", v1alpha1.VerbFinish, v1alpha1.OutcomeReturning, "40/60", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, smallSpec())
			w.edit(0, weightsOf(40, 60), "helm")
			w.settle()
			w.expect("", v1alpha1.ReasonAdoptionAmbiguous, "40/60")
			if len(w.journal.wires) > 0 {
				t.Fatalf("written: %v", w.journal.wires)
			}
			if tc.verb != "" {
				w.say(tc.verb)
				w.settle()
			}
			if s := w.status(); s.Outcome != tc.outcome || s.Attempt != tc.attempt || w.wire() != tc.wire {
				t.Errorf("%s, want attempt %d, %s, %s", w.summary(), tc.attempt, tc.outcome, tc.wire)
			}
			if tc.verb == v1alpha1.VerbFinish {
				w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
				w.expect(v1alpha1.OutcomeCompleted, v1alpha1.ReasonCompleted, "100/0")
			}
		})
	}
}

func TestNewRevision(t *testing.T) {
	w := at20(t)
	w.feel("canary", degraded)
	w.runFor(2 * time.Minute)
	w.feel("canary", good)
	w.revise("v3")
	w.settle()
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonRouteNotConfirmed, "100/0")
	s := w.status()
	if s.Attempt != 2 || s.Revision != "v3" || s.Stage.Index != 0 || s.Verdict != nil || s.History[0].Outcome != v1alpha1.OutcomeSuperseded || *s.History[0].Weight != "20" {
		t.Errorf("something of the old revision is left: %s", encoded(s))
	}
	w.until(24*time.Hour, "v3 is promoted", w.reason(v1alpha1.ReasonPromoted))
	want := []string{"10", "20", "0", "10", "20", "40", "50", "70", "90", "100"}
	if diff := cmp.Diff(want, w.journal.shares("web")); diff != "" {
		t.Errorf("weights of the canary (-want +got):\n%s", diff)
	}
}

func TestBackToStable(t *testing.T) {
	w := promotedWorld(t)
	w.say(v1alpha1.VerbFinish)
	w.until(24*time.Hour, "v2 is completed", w.reason(v1alpha1.ReasonCompleted))
	if w.status().StableRevision != "v2" {
		t.Fatalf("stable runs %q", w.status().StableRevision)
	}
	w.revise("v3")
	w.until(24*time.Hour, "v3 soaks at 20 percent", w.atShare("20"))
	before := len(w.journal.wires)
	w.revise("v2")
	w.runFor(24 * time.Hour)
	w.expect(v1alpha1.OutcomeSuperseded, v1alpha1.ReasonStableRevision, "100/0")
	if diff := cmp.Diff([]string{"web 100/0"}, w.journal.wires[before:]); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if w.status().Phase != v1alpha1.PhaseIdle {
		t.Errorf("phase %s", w.status().Phase)
	}
}

func TestNewRevisionWhilePromoted(t *testing.T) {
	w := promotedWorld(t)
	w.revise("v3")
	w.settle()
	if w.status().Attempt != 2 || w.wire() != "100/0" {
		t.Fatal(w.summary())
	}
	if !strings.Contains(strings.Join(w.journal.told, " "), v1alpha1.ReasonSuperseded) {
		t.Errorf("nobody is told: %v", w.journal.told)
	}
}

func TestRollbackIsFinal(t *testing.T) {
	w := at20(t)
	w.feel("canary", bad)
	w.until(time.Hour, "it is rolled back", w.reason(v1alpha1.ReasonUnhealthy))
	w.feel("canary", good)
	for name, what := range map[string]func(){
		"time":              func() { w.runFor(100 * time.Hour) },
		"a restart":         func() { w.restart() },
		"the same spec":     func() { w.change(func(*v1alpha1.WeightedRolloutSpec) {}) },
		"approve":           func() { w.say(v1alpha1.VerbApprove) },
		"promote":           func() { w.say(v1alpha1.VerbPromote) },
		"finish":            func() { w.say(v1alpha1.VerbFinish) },
		"an old retry":      func() { w.command(v1alpha1.Command{ID: "old", Verb: v1alpha1.VerbRetry, Attempt: 0}) },
		"unready and ready": func() { w.canaryReady = false; w.settle(); w.canaryReady = true },
		"another route":     func() { w.createRoute(0, weightsOf(100, 0)) },
		"edited weights":    func() { w.edit(0, weightsOf(50, 50), "") },
	} {
		what()
		w.runFor(time.Hour)
		if w.status().Outcome != v1alpha1.OutcomeRolledBack || w.wire() != "100/0" {
			t.Fatalf("after %s: %s", name, w.summary())
		}
	}
	w.say(v1alpha1.VerbRetry)
	w.settle()
	s := w.status()
	if s.Attempt != 2 || s.Outcome != v1alpha1.OutcomeInProgress || s.Stage.Index != 0 || s.Verdict != nil || s.OutcomeReason != "" {
		t.Fatalf("retry: %s", encoded(s))
	}
	w.runFor(2 * time.Minute)
	if w.wire() != "90/10" {
		t.Errorf("after retry: %s", w.summary())
	}
}

// TestRevisionReturns: a revision that failed runs again only as a new start.
func TestRevisionReturns(t *testing.T) {
	w := at20(t)
	w.feel("canary", bad)
	w.until(time.Hour, "it is rolled back", w.reason(v1alpha1.ReasonUnhealthy))
	w.feel("canary", good)
	w.revise("v3")
	w.settle()
	w.revise("v2")
	w.settle()
	if s := w.status(); s.Attempt != 3 || s.Stage.Index != 0 || w.wire() != "100/0" {
		t.Error(w.summary())
	}
}

func TestAbort(t *testing.T) {
	for _, tc := range []struct {
		name    string
		disturb func(*world)
	}{
		{"in mid-way", func(*world) {}},
		{"paused", func(w *world) { w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true }); w.settle() }},
		{"canary not ready", func(w *world) { w.canaryReady = false; w.settle() }},
		{"the gateway is silent", func(w *world) { w.gateway.silent = true; w.edit(0, weightsOf(81, 19), "") }},
		{"promote at the same time", func(w *world) { w.say(v1alpha1.VerbPromote) }},
		{"no metrics", func(w *world) { w.feel("canary", blind); w.runFor(time.Hour) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := at20(t)
			tc.disturb(w)
			w.abort(1)
			w.settle()
			w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonAborted, "100/0")
			w.say(v1alpha1.VerbPromote)
			w.runFor(time.Hour)
			if c := w.status().Command; c.Accepted || w.wire() != "100/0" {
				t.Errorf("promote after abort: %s, %s", encoded(c), w.summary())
			}
		})
	}
	t.Run("an attempt that is over", func(t *testing.T) {
		w := at20(t)
		w.revise("v3")
		w.abort(1)
		w.until(time.Hour, "attempt 2 soaks at 10 percent", w.atShare("10"))
	})
	t.Run("then retry", func(t *testing.T) {
		w := at20(t)
		w.abort(1)
		w.settle()
		w.say(v1alpha1.VerbRetry)
		w.until(time.Hour, "attempt 2 soaks at 10 percent", w.atShare("10"))
	})
}

func TestApproval(t *testing.T) {
	spec := smallSpec()
	for i := range spec.Plan.Stages {
		spec.Plan.Stages[i] = approvedAfter(spec.Plan.Stages[i])
	}
	w := newWorld(t, spec)
	w.until(time.Hour, "it waits", w.reason(v1alpha1.ReasonAwaitingApproval))
	first := *w.status()
	w.runFor(100 * time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonAwaitingApproval, "90/10")
	w.say(v1alpha1.VerbApprove)
	w.until(time.Hour, "it waits at 20 percent", func() bool { return w.reason(v1alpha1.ReasonAwaitingApproval)() && w.wire() == "80/20" })
	for name, c := range map[string]v1alpha1.Command{
		"the same again":                *rollout.OrdersFrom(w.object.annotations).Command,
		"an earlier stage":              {ID: "x", Verb: v1alpha1.VerbApprove, Attempt: 1, Stage: &first.Stage.Index},
		"no stage":                      {ID: "y", Verb: v1alpha1.VerbApprove, Attempt: 1},
		"another attempt":               {ID: "z", Verb: v1alpha1.VerbApprove, Attempt: 2, Stage: &w.status().Stage.Index},
		"an unknown verb":               {ID: "u", Verb: "skip the gate", Attempt: 1},
		"an unknown stage":              {ID: "v", Verb: v1alpha1.VerbApprove, Attempt: 1, Stage: new(int32(99))},
		"finish is too soon":            {ID: "f", Verb: v1alpha1.VerbFinish, Attempt: 1},
		"retry is for rolled back ones": {ID: "r", Verb: v1alpha1.VerbRetry, Attempt: 1},
	} {
		w.command(c)
		w.runFor(time.Hour)
		if w.wire() != "80/20" || w.status().Outcome != v1alpha1.OutcomeInProgress {
			t.Fatalf("%s: %s", name, w.summary())
		}
		if name != "the same again" && (w.status().Command.Accepted || w.status().Command.Message == "") {
			t.Errorf("%s: %s", name, encoded(w.status().Command))
		}
	}
}

// TestPromote: it ends soaks and approvals, and skips neither gates nor the ramp.
func TestPromote(t *testing.T) {
	spec := smallSpec()
	spec.Plan.Stages[1] = approvedAfter(spec.Plan.Stages[1])
	w := newWorld(t, spec)
	w.until(time.Hour, "it soaks at 10 percent", w.atShare("10"))
	w.feel("canary", blind)
	w.say(v1alpha1.VerbPromote)
	w.runFor(10 * time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonAwaitingEvidence, "90/10")
	w.feel("canary", good)
	began := w.at
	w.until(time.Hour, "the revision is promoted", w.reason(v1alpha1.ReasonPromoted))
	want := []string{"10", "20", "40", "50", "70", "90", "100"}
	if diff := cmp.Diff(want, w.journal.shares("web")); diff != "" {
		t.Errorf("weights of the canary (-want +got):\n%s", diff)
	}
	if took := w.at.Sub(began); took < 4*w.windows.stage+3*w.windows.ramp {
		t.Errorf("promoted after %s: a gate was skipped", took)
	}
	if w.status().Promote {
		t.Error("the order outlives the attempt")
	}
}

func TestOrdersFrom(t *testing.T) {
	for _, tc := range []struct {
		name, abort, command string
		want                 rollout.Orders
		problem              string
	}{
		{name: "an abort", abort: " 3 ", want: rollout.Orders{Abort: 3}},
		{name: "an abort of nothing", abort: "0", problem: "must be the number of the attempt"},
		{name: "an abort in words", abort: "now", problem: "must be the number of the attempt"},
		{name: "a command", command: `{"id":"1","verb":"retry","attempt":2}`, want: rollout.Orders{Command: &v1alpha1.Command{ID: "1", Verb: "retry", Attempt: 2}}},
		{name: "no id", command: `{"verb":"retry"}`, problem: "must be JSON such as"},
		{name: "no JSON", command: `retry`, problem: "must be JSON such as"},
		{name: "two objects", command: `{"id":"1"}{"id":"2"}`, problem: "must be JSON such as"},
		{name: "a long id", command: `{"id":"` + strings.Repeat("x", 254) + `"}`, problem: "must be JSON such as"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			annotations := map[string]string{}
			if tc.abort != "" {
				annotations[v1alpha1.AbortAnnotation] = tc.abort
			}
			if tc.command != "" {
				annotations[v1alpha1.CommandAnnotation] = tc.command
			}
			got := rollout.OrdersFrom(annotations)
			if !strings.Contains(got.Problem, tc.problem) || (got.Problem == "") != (tc.problem == "") {
				t.Errorf("problem %q, want %q", got.Problem, tc.problem)
			}
			got.Problem = ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
