package simulate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// raises are the times of the raises of a run.
func raises(r *simulate.Result) []simulate.Elapsed {
	var all []simulate.Elapsed
	for _, a := range r.Adjustments {
		if a.Raise() {
			all = append(all, a.At)
		}
	}
	return all
}

// told tells whether an event of a run has the text.
func told(r *simulate.Result, text string) bool {
	return slices.ContainsFunc(r.Events, func(e simulate.Event) bool { return strings.Contains(e.Message, text) })
}

// TestCommands shows that a scenario can give every command that a person can give, and
// that the rollout takes it.
func TestCommands(t *testing.T) {
	fails := simulate.Track{ErrorPercent: []simulateStep[v1alpha1.Percent]{{At: "0s", Value: "40"}, {At: "10m", Value: "0"}}}
	for command, test := range map[simulate.Command]struct {
		at     v1alpha1.Duration
		canary simulate.Track
		phase  v1alpha1.Phase
	}{
		"approve": {at: "1m", phase: v1alpha1.PhaseProgressing},
		"skip":    {at: "2m", phase: v1alpha1.PhaseProgressing},
		"promote": {at: "2m", phase: v1alpha1.PhasePromoted},
		"abort":   {at: "2m", phase: v1alpha1.PhaseRolledBack},
		"retry":   {at: "20m", canary: fails, phase: v1alpha1.PhaseAwaitingApproval},
		"resume":  {at: "20m", canary: fails, phase: v1alpha1.PhaseAwaitingApproval},
		"finish":  {at: "3h", phase: v1alpha1.PhaseCompleted},
	} {
		t.Run(string(command), func(t *testing.T) {
			spec := quickSpec()
			spec.Plan.Stages[0].Approval, spec.Plan.Stages[1].Soak = v1alpha1.ApprovalRequired, "1h"
			scenario := &simulate.Scenario{Canary: test.canary, Duration: "30m", Events: []simulate.Happening{{At: test.at, Command: command}}}
			if command == "resume" {
				spec.OnUnhealthy.Action = v1alpha1.UnhealthyPause
			}
			if command == "finish" {
				scenario.Duration = "4h"
				scenario.Events = append(scenario.Events, simulate.Happening{At: "2m", Command: "promote"})
			}
			r := run(t, spec, scenario, simulate.Options{})
			if command != "abort" && !told(r, "command "+string(command)+" is carried out") {
				t.Errorf("it is not carried out: %v", r.Events)
			}
			if r.Outcome.Phase != test.phase {
				t.Errorf("it ended as %+v, want %s", r.Outcome, test.phase)
			}
		})
	}
}

// TestSkip shows that the command ends the soak of the present stage and of no other.
func TestSkip(t *testing.T) {
	spec := quickSpec()
	spec.Plan.Stages[0].Soak, spec.Plan.Stages[1].Soak = "1h", "1h"
	r := run(t, spec, &simulate.Scenario{Events: []simulate.Happening{{At: "5m", Command: "skip"}}}, simulate.Options{})
	for _, s := range r.Stages[:2] {
		held := time.Duration(*s.EndedAt - *s.ReachedAt)
		if skipped := s.Position == "1/3"; skipped != (*s.EndedAt == at(5*time.Minute)) || skipped == (held >= time.Hour) {
			t.Errorf("stage %s was held for %s, until %s", s.Position, held, *s.EndedAt)
		}
	}
	if i := slices.IndexFunc(r.Adjustments, func(a simulate.Adjustment) bool { return a.At == at(5*time.Minute) }); i < 0 || r.Adjustments[i].Cause != simulate.CauseCommand {
		t.Errorf("nothing rises by the command: %+v", r.Adjustments)
	}
}

// TestPauseAndResume shows that the command pause holds the share as spec.paused does,
// and that resume ends it, and a stop that came meanwhile.
func TestPauseAndResume(t *testing.T) {
	r := run(t, quickSpec(), &simulate.Scenario{Events: []simulate.Happening{{At: "2m", Command: "pause"}, {At: "1h", Command: "resume"}}}, simulate.Options{})
	for _, a := range raises(r) {
		if a > at(2*time.Minute) && a < at(time.Hour) {
			t.Errorf("the share rises at %s: %v", a, r.Adjustments)
		}
	}
	if r.Outcome.Phase != v1alpha1.PhasePromoted || told(r, "is ignored") {
		t.Errorf("it ended as %+v, with the events %v", r.Outcome, r.Events)
	}
	fields := run(t, quickSpec(), &simulate.Scenario{Events: []simulate.Happening{{At: "2m", Paused: new(true)}, {At: "1h", Paused: new(false)}}}, simulate.Options{})
	if diff := cmp.Diff(fields.Adjustments, r.Adjustments); diff != "" {
		t.Errorf("spec.paused does otherwise (-field +command):\n%s", diff)
	}

	spec := quickSpec()
	spec.OnUnhealthy.Action = v1alpha1.UnhealthyPause
	r = run(t, spec, &simulate.Scenario{
		Canary: simulate.Track{ErrorPercent: []simulateStep[v1alpha1.Percent]{{At: "0s", Value: "40"}, {At: "10m", Value: "0"}}},
		Events: []simulate.Happening{{At: "15m", Command: "pause"}, {At: "20m", Command: "resume"}},
	}, simulate.Options{})
	if !told(r, "until a person says resume or abort") || !told(r, "command resume is carried out") || r.Outcome.Phase != v1alpha1.PhasePromoted {
		t.Errorf("paused and stopped, it ended as %+v, with the events %v", r.Outcome, r.Events)
	}
}

// TestStart shows that windows are open or closed by the date and time at which a
// simulation begins.
func TestStart(t *testing.T) {
	spec := quickSpec()
	spec.Plan.Stages[0].Soak = "40m"
	spec.Plan.Windows = []v1alpha1.Window{{Days: []v1alpha1.Day{"Mon", "Tue", "Wed", "Thu", "Fri"}, From: "09:00", To: "17:00", TimeZone: "America/New_York"}}
	for name, test := range map[string]struct {
		start       string
		first, last time.Duration // the first raise, and when the weekend is over
		note        string
	}{
		"a Friday afternoon": {"2026-01-09T16:30:00-05:00", 30 * time.Second, 64*time.Hour + 30*time.Minute, "begins on Friday, 9 January 2026, at 21:30 UTC"},
		"a Saturday":         {"2026-01-10T09:00:00Z", 53 * time.Hour, 53 * time.Hour, "begins on Saturday, 10 January 2026, at 09:00 UTC"},
		"no start":           {"", 5 * time.Hour, 5 * time.Hour, "begins on Monday, 5 January 2026, at 09:00 UTC"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, spec, &simulate.Scenario{Start: test.start}, simulate.Options{Exact: true})
			all := raises(r)
			if len(all) == 0 || all[0] != at(test.first) || r.Outcome.Phase != v1alpha1.PhasePromoted {
				t.Fatalf("it rises at %v, and ended as %+v", all, r.Outcome)
			}
			closed := slices.ContainsFunc(all, func(e simulate.Elapsed) bool { return e > at(30*time.Minute) && e < at(test.last) })
			if closed || !slices.Contains(all, at(test.last)) {
				t.Errorf("it rises at %v, and the window is closed until %s", all, at(test.last))
			}
			if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, test.note) }) {
				t.Errorf("the notes are %q", r.Notes)
			}
			if test.start != "" {
				if want, err := time.Parse(time.RFC3339, test.start); err != nil || !r.Start.Equal(want) {
					t.Errorf("the result says it began at %s (%v)", r.Start, err)
				}
			}
		})
	}
}
