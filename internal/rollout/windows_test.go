package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// friday is half an hour before the offices of Berlin close for a weekend.
var friday = time.Date(2026, time.March, 6, 15, 30, 0, 0, time.UTC)

// monday is when they open again.
var monday = time.Date(2026, time.March, 9, 8, 0, 0, 0, time.UTC)

// inOffice returns a world that begins on a Friday afternoon, and raises in office hours
// only.
func inOffice(t *testing.T, spec v1alpha1.WeightedRolloutSpec) *world {
	spec.Plan.Windows = officeHours()
	w := newWorld(t, spec)
	w.at = friday
	return w
}

// afterHours returns a world that waits over the weekend at 20 percent.
func afterHours(t *testing.T) *world {
	spec := smallSpec()
	spec.Plan.Stages[1].Soak = "25m"
	w := inOffice(t, spec)
	w.until(24*time.Hour, "it waits for a window", w.reason(v1alpha1.ReasonOutsideWindow))
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonOutsideWindow, "80/20")
	return w
}

// TestWindowsOverTheWeekend: the share stays from Friday to Monday, to the second, and
// the status says until when.
func TestWindowsOverTheWeekend(t *testing.T) {
	w := afterHours(t)
	if w.at.Before(friday.Add(30 * time.Minute)) {
		t.Errorf("it waits since %s, while the window is open", w.at)
	}
	if next := w.status().NextTransitionTime; next == nil || !next.Time.Equal(monday) {
		t.Errorf("the next transition is at %v, want %v", next, monday)
	}
	writes := w.controller.writes
	w.runFor(monday.Sub(w.at) - time.Second)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonOutsideWindow, "80/20")
	if w.controller.writes != writes {
		t.Errorf("%d writes while it waited", w.controller.writes-writes)
	}
	w.runFor(2 * time.Second)
	if w.wire() != "60/40" {
		t.Errorf("the window is open: %s", w.summary())
	}
}

// TestWindowsWithinARamp: a raise within a stage needs a window as much as one between
// two.
func TestWindowsWithinARamp(t *testing.T) {
	spec := coldSpec()
	w := inOffice(t, spec)
	w.at = friday.Add(20 * time.Minute)
	w.until(time.Hour, "it waits for a window", w.reason(v1alpha1.ReasonOutsideWindow))
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonOutsideWindow, "94/6")
	w = inOffice(t, spec)
	w.at = friday.Add(time.Hour)
	w.runFor(10 * time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonOutsideWindow, "100/0")
}

// TestWindowsKeepNothingElse: outside of them a rollback, an abort and a return to what
// stable runs happen at once.
func TestWindowsKeepNothingElse(t *testing.T) {
	t.Run("unhealthy", func(t *testing.T) {
		w := afterHours(t)
		w.feel("canary", bad)
		w.runFor(5 * time.Minute)
		w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy, "100/0")
	})
	t.Run("abort", func(t *testing.T) {
		w := afterHours(t)
		w.abort(1)
		w.settle()
		w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonAborted, "100/0")
	})
	t.Run("another revision", func(t *testing.T) {
		w := afterHours(t)
		w.revise("v3")
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonOutsideWindow, "100/0")
	})
}

// TestWindowsAreSkipped: a person who does not want to wait says skip, for this stage,
// or promote, for all.
func TestWindowsAreSkipped(t *testing.T) {
	t.Run("skip", func(t *testing.T) {
		w := afterHours(t)
		w.say(v1alpha1.VerbSkip)
		w.runFor(time.Minute)
		if w.wire() != "60/40" || stageIndex(w.status()) != 2 {
			t.Fatalf("skip does not raise: %s", w.summary())
		}
		w.runFor(10 * time.Hour)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonOutsideWindow, "60/40")
		w.say(v1alpha1.VerbSkip)
		w.runFor(10 * time.Minute)
		if w.wire() != "30/70" || stageIndex(w.status()) != 3 {
			t.Errorf("skip does not last for its stage: %s", w.summary())
		}
	})
	t.Run("skip without evidence", func(t *testing.T) {
		w := afterHours(t)
		w.feel("canary", blind)
		w.say(v1alpha1.VerbSkip)
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonAwaitingEvidence, "80/20")
	})
	t.Run("promote", func(t *testing.T) {
		w := afterHours(t)
		w.say(v1alpha1.VerbPromote)
		w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
		if w.at.After(monday) {
			t.Errorf("promoted at %s", w.at)
		}
	})
}

// TestWindowsOfTheEnd: the return to stable and the update of stable keep to the
// windows, whatever was skipped before.
func TestWindowsOfTheEnd(t *testing.T) {
	t.Run("finish", func(t *testing.T) {
		w := afterHours(t)
		w.say(v1alpha1.VerbPromote)
		w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
		w.say(v1alpha1.VerbFinish)
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeReturning, v1alpha1.ReasonOutsideWindow, "0/100")
		w.until(100*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
		if w.at.Before(monday) {
			t.Errorf("completed at %s", w.at)
		}
	})
	for _, verb := range []v1alpha1.Verb{v1alpha1.VerbPromote, v1alpha1.VerbSkip} {
		t.Run("update of stable after "+string(verb), func(t *testing.T) {
			w := inOffice(t, updating(derived(withWorkloads(smallSpec(), v1alpha1.CapacityCheck))))
			w.at = friday.Add(20 * time.Minute)
			w.until(24*time.Hour, "it waits for a window", w.reason(v1alpha1.ReasonOutsideWindow))
			for w.status().Outcome == v1alpha1.OutcomeInProgress && w.at.Before(monday) {
				w.say(verb)
				w.runFor(10 * time.Minute)
			}
			w.runFor(time.Hour)
			w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonOutsideWindow, "0/100")
			if w.stable.template != 1 {
				t.Error("stable was updated")
			}
			w.until(100*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
			if w.at.Before(monday) {
				t.Errorf("completed at %s", w.at)
			}
		})
	}
}

// TestWindowsThatCannotBeRead hold the share, and say which field is wrong.
func TestWindowsThatCannotBeRead(t *testing.T) {
	for name, window := range map[string]v1alpha1.Window{
		"zone": {TimeZone: "Europe/Atlantis"}, "time": {From: "25:00"}, "day": {Days: []v1alpha1.Day{"Someday"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := at20(t)
			w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Plan.Windows = []v1alpha1.Window{window} })
			w.runFor(time.Hour)
			w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonInvalidSpec, "80/20")
			if !strings.Contains(w.message(), "plan.windows[0]") {
				t.Errorf("message %q", w.message())
			}
		})
	}
}
