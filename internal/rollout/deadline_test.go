package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// dueSpec rolls back after an hour without progress.
func dueSpec() v1alpha1.WeightedRolloutSpec {
	spec := smallSpec()
	spec.ProgressDeadline = "1h"
	return spec
}

// dueAt20 is a world with a deadline of an hour that soaks at 20 percent.
func dueAt20(t *testing.T) *world {
	w := newWorld(t, dueSpec())
	w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
	return w
}

// TestProgressDeadlineCounts: every kind of waiting for what should come by itself ends
// at the deadline, and the message says what it was.
func TestProgressDeadlineCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		disturb func(*world)
		reason  string // why it waits
	}{
		"no metrics":            {func(w *world) { w.feel("canary", blind) }, v1alpha1.ReasonAwaitingEvidence},
		"no requests":           {func(w *world) { w.feel("canary", quiet) }, v1alpha1.ReasonAwaitingEvidence},
		"degraded":              {func(w *world) { w.feel("canary", degraded) }, v1alpha1.ReasonDegraded},
		"the canary is unready": {func(w *world) { w.canaryReady = false }, v1alpha1.ReasonCanaryNotReady},
		"a silent gateway":      {func(w *world) { w.gateway.silent = true; w.edit(0, weightsOf(90, 10), "") }, v1alpha1.ReasonRouteNotConfirmed},
		"too few replicas":      {func(w *world) { w.canary.scaleTo(2) }, v1alpha1.ReasonInsufficientCapacity},
		"the route is gone":     {func(w *world) { w.routes[0].stored = nil }, v1alpha1.ReasonRouteMissing},
		"a route not writable":  {func(w *world) { w.routes[0].denied = true }, v1alpha1.ReasonRouteWriteFailed},
		"a workload is gone":    {func(w *world) { w.stable.missing = true }, v1alpha1.ReasonWorkloadMissing},
		"a sync tool":           {func(w *world) { w.sync(2*time.Second, weightsOf(100, 0)) }, v1alpha1.ReasonWeightContention},
	} {
		t.Run(name, func(t *testing.T) {
			spec := withWorkloads(dueSpec(), v1alpha1.CapacityCheck)
			w := newWorld(t, spec)
			w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
			tc.disturb(w)
			w.until(time.Hour, "it waits", w.reason(tc.reason))
			waits := w.at
			w.until(3*time.Hour, "it is rolled back", func() bool { return w.status().Outcome == v1alpha1.OutcomeRolledBack })
			s := w.status()
			if s.OutcomeReason != v1alpha1.ReasonProgressDeadlineExceeded {
				t.Fatalf("rolled back for %s: %s", s.OutcomeReason, s.OutcomeMessage)
			}
			if took := w.at.Sub(waits); took > time.Hour+2*time.Minute || took < time.Hour-time.Minute {
				t.Errorf("rolled back after %s", took)
			}
			if !strings.HasPrefix(s.OutcomeMessage, "no progress for 1h (spec.progressDeadline); "+tc.reason+": ") {
				t.Errorf("message %q", s.OutcomeMessage)
			}
		})
	}
}

// TestProgressDeadlineDoesNotCount: soaks, pauses, approvals, windows and cool-downs are
// no lack of progress, nor is a canary that was stopped.
func TestProgressDeadlineDoesNotCount(t *testing.T) {
	for name, tc := range map[string]struct {
		edit   func(*v1alpha1.WeightedRolloutSpec)
		then   func(*world)
		reason string
	}{
		"a soak":   {func(s *v1alpha1.WeightedRolloutSpec) { s.Plan.Stages[1].Soak = "200h" }, nil, v1alpha1.ReasonSoaking},
		"a pause":  {func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true }, nil, v1alpha1.ReasonPaused},
		"approval": {func(s *v1alpha1.WeightedRolloutSpec) { s.Plan.Stages[1] = approvedAfter(s.Plan.Stages[1]) }, nil, v1alpha1.ReasonAwaitingApproval},
		"a window": {func(s *v1alpha1.WeightedRolloutSpec) {
			s.Plan.Windows = []v1alpha1.Window{{Days: []v1alpha1.Day{"Sun"}}}
		}, nil, v1alpha1.ReasonOutsideWindow},
		"the ramp": {func(s *v1alpha1.WeightedRolloutSpec) { s.Ramp.Interval = "200h" }, func(w *world) { w.say(v1alpha1.VerbPromote) }, v1alpha1.ReasonRamping},
		"a cooldown": {func(s *v1alpha1.WeightedRolloutSpec) {
			s.OnUnhealthy = v1alpha1.OnUnhealthy{Action: v1alpha1.UnhealthyBreak, For: "1m", Cooldown: "200h"}
		}, func(w *world) { w.feel("canary", bad) }, v1alpha1.ReasonBreakerOpen},
		"a stop":      {func(s *v1alpha1.WeightedRolloutSpec) { s.OnUnhealthy.Action = v1alpha1.UnhealthyPause }, func(w *world) { w.feel("canary", bad) }, v1alpha1.ReasonUnhealthy},
		"no stable":   {func(*v1alpha1.WeightedRolloutSpec) {}, func(w *world) { w.stableReady = false }, v1alpha1.ReasonStableUnavailable},
		"no deadline": {func(s *v1alpha1.WeightedRolloutSpec) { s.ProgressDeadline = "" }, func(w *world) { w.feel("canary", quiet) }, v1alpha1.ReasonAwaitingEvidence},
	} {
		t.Run(name, func(t *testing.T) {
			w := dueAt20(t)
			w.change(tc.edit)
			if tc.then != nil {
				tc.then(w)
			}
			w.until(2*time.Hour, "it waits", w.reason(tc.reason))
			writes := w.controller.writes
			w.runFor(100 * time.Hour)
			if got := conditionOf(w.status(), v1alpha1.ConditionReady).Reason; w.status().Outcome != v1alpha1.OutcomeInProgress || got != tc.reason {
				t.Errorf("%s: %s", got, w.summary())
			}
			if w.controller.writes > writes+2 {
				t.Errorf("%d writes while it waited", w.controller.writes-writes)
			}
		})
	}
}

// TestC10ProgressDeadlineHasItsFullTimeAfterAPause: a pause of three deadlines brings no
// rollback, and the time that was left before is left after it.
func TestC10ProgressDeadlineHasItsFullTimeAfterAPause(t *testing.T) {
	w := dueAt20(t)
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true })
	w.runFor(3 * time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonPaused, "80/20")
	w.feel("canary", quiet)
	w.runFor(3 * time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonPaused, "80/20")
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = false })
	w.settle()
	w.until(time.Hour, "it waits for requests", w.reason(v1alpha1.ReasonAwaitingEvidence))
	w.runFor(40 * time.Minute)
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true })
	w.runFor(3 * time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonPaused, "80/20")
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = false })
	w.runFor(19 * time.Minute)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonAwaitingEvidence, "80/20")
	w.runFor(70 * time.Second)
	w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonProgressDeadlineExceeded, "100/0")
}

// TestProgressDeadlineOfACrashLoop: a canary that dies and comes back again and again
// comes no further, and is rolled back.
func TestProgressDeadlineOfACrashLoop(t *testing.T) {
	w := newWorld(t, dueSpec())
	w.until(24*time.Hour, "it soaks at 50 percent", w.atShare("50"))
	began := w.at
	for w.status().Outcome == v1alpha1.OutcomeInProgress && w.at.Sub(began) < 24*time.Hour {
		w.canaryReady = false
		w.runFor(4 * time.Minute)
		w.canaryReady = true
		w.runFor(3 * time.Minute)
	}
	w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonProgressDeadlineExceeded, "100/0")
	if took := w.at.Sub(began); took > 2*time.Hour {
		t.Errorf("rolled back after %s", took)
	}
}

// TestProgressDeadlineRestarts: a share that is higher than ever before has the whole
// time again.
func TestProgressDeadlineRestarts(t *testing.T) {
	w := newWorld(t, dueSpec())
	w.feel("canary", quiet)
	for _, percent := range []v1alpha1.Percent{"10", "20", "40", "50", "70", "90", "100"} {
		w.until(time.Hour, "it is at "+string(percent), w.atShare(percent))
		w.feel("canary", quiet)
		w.runFor(50 * time.Minute)
		w.feel("canary", good)
	}
	w.until(time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
	w.feel("canary", quiet)
	w.runFor(100 * time.Hour)
	w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonPromoted, "0/100")
}

// TestProgressDeadlineFromTheStart: a rollout that never begins has a deadline, too.
func TestProgressDeadlineFromTheStart(t *testing.T) {
	w := newWorld(t, dueSpec())
	w.canaryReady = false
	w.runFor(59 * time.Minute)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonCanaryNotReady, "100/0")
	w.runFor(2 * time.Minute)
	w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonProgressDeadlineExceeded, "100/0")
}

// TestProgressDeadlineSurvivesARestart: a controller that starts anew, again and again,
// gives no more time.
func TestProgressDeadlineSurvivesARestart(t *testing.T) {
	w := dueAt20(t)
	w.feel("canary", blind)
	w.until(time.Hour, "it waits", w.reason(v1alpha1.ReasonAwaitingEvidence))
	for range 61 {
		w.runFor(time.Minute)
		w.restart()
	}
	w.settle()
	w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonProgressDeadlineExceeded, "100/0")
}

// TestProgressDeadlineIsEdited: a longer one gives more time at once, and none gives all.
func TestProgressDeadlineIsEdited(t *testing.T) {
	w := dueAt20(t)
	w.laws.edited = true
	w.feel("canary", blind)
	w.runFor(50 * time.Minute)
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.ProgressDeadline = "3h" })
	w.runFor(2 * time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonAwaitingEvidence, "80/20")
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.ProgressDeadline = "" })
	w.runFor(100 * time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonAwaitingEvidence, "80/20")
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.ProgressDeadline = "soon" })
	w.runFor(time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonInvalidSpec, "80/20")
}
