package cli

import (
	"fmt"
	"strings"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// drawSimulation shows what happened in a simulation.
func drawSimulation(s *screen, r *simulate.Result, l limits) {
	s.line(bold, fmt.Sprintf("Simulation of rollout %q", r.Name))
	if note := modeNote(r); note != "" {
		s.prose(0, "%s", note)
	}
	drawOutcome(s, r)
	s.gap()
	events := marked(r)
	drawChart(s, r, l, events)
	s.head("Events")
	drawEvents(s, r, events)
	s.head("Stages")
	drawRunStages(s, r)
	s.head("Requests")
	drawTraffic(s, r)
	if r.Pickers != nil {
		s.head("Ways to choose a backend")
		drawPickers(s, r)
	}
	s.gap()
	s.prose(0, "%s", runNote(r))
	for _, note := range r.Notes {
		s.prose(0, "Taken for granted: %s.", note)
	}
}

// modeNote says that a rollout in mode Observe does none of what is shown; empty
// otherwise.
func modeNote(r *simulate.Result) string {
	if r.Mode != v1alpha1.ModeObserve {
		return ""
	}
	return "spec.mode is Observe, in which the controller writes nothing. The simulation runs as Enforce would."
}

// drawOutcome says in a sentence how it ended, and why.
func drawOutcome(s *screen, r *simulate.Result) {
	color, verb, rest := outcomeOf(r)
	lines := wrap(clean(verb+" "+rest), s.width, 0)
	if after, ok := strings.CutPrefix(lines[0], verb); ok {
		lines[0] = s.paint(color, verb) + after
	}
	for _, l := range lines {
		s.raw(l)
	}
}

// outcomeOf puts the outcome in a sentence: its first words, with their colour, and
// the rest.
func outcomeOf(r *simulate.Result) (color, verb, rest string) {
	o := r.Outcome
	met := fmt.Sprintf("%s requests met the canary, of which %s failed (%s %%).", count(o.Canary.Requests), count(o.Canary.Failed), significantUpTo(o.Canary.FailedPercent()))
	switch o.Phase {
	case v1alpha1.PhasePromoted:
		return green, "Promoted", fmt.Sprintf("after %s: revision %q serves everything. %s", clock(o.ReachedAt), o.Revision, met)
	case v1alpha1.PhaseCompleted:
		return green, "Completed", fmt.Sprintf("after %s: stable runs revision %q. %s", clock(o.ReachedAt), o.Revision, met)
	case v1alpha1.PhaseRolledBack:
		return red, "Rolled back", fmt.Sprintf("after %s: %s. %s", clock(o.ReachedAt), sentence(strings.TrimPrefix(o.Message, "rolled back: ")), met)
	default:
		return yellow, string(o.Phase), fmt.Sprintf("at %s %% %s (%s): %s. %s", points(o.Share), stopped(o), o.Reason, sentence(o.Message), met)
	}
}

// stopped says why the simulation ended there.
func stopped(o simulate.Outcome) string {
	switch o.Ending {
	case simulate.EndDuration:
		return "when the scenario was over, after " + clock(o.Duration)
	case simulate.EndLimit:
		return "when the longest time of a simulation was over, after " + clock(o.Duration)
	default:
		return "after " + clock(o.Duration) + ", where nothing changes by itself any more"
	}
}

// sentence prepares a message to end with a full stop of its own.
func sentence(message string) string { return strings.TrimRight(message, ". ") }

func drawRunStages(s *screen, r *simulate.Result) {
	attempts := false
	for _, st := range r.Stages {
		attempts = attempts || st.Attempt > 1
	}
	columns := []column{{"STAGE", false}, {"CANARY %", true}, {"BEGAN", true}, {"REACHED", true}, {"ENDED", true}, {"LASTED", true}, {"CANARY REQUESTS", true}}
	if attempts {
		columns = append([]column{{"ATTEMPT", true}}, columns...)
	}
	var rows [][]string
	for _, st := range r.Stages {
		row := []string{
			st.Position, points(st.Weight), clock(st.BeganAt), clockOr(st.ReachedAt), clockOr(st.EndedAt), clock(st.Lasted), count(st.CanaryRequests),
		}
		if attempts {
			row = append([]string{fmt.Sprint(st.Attempt)}, row...)
		}
		rows = append(rows, row)
	}
	s.table(columns, rows)
}

func drawTraffic(s *screen, r *simulate.Result) {
	columns := []column{{"TRACK", false}, {"REQUESTS", true}, {"FAILED", true}, {"FAILED %", true}}
	var rows [][]string
	for _, t := range []struct {
		name string
		of   simulate.Traffic
	}{{"stable", r.Outcome.Stable}, {"canary", r.Outcome.Canary}, {"both", r.Outcome.Total()}} {
		rows = append(rows, []string{t.name, count(t.of.Requests), count(t.of.Failed), rate(t.of.FailedPercent())})
	}
	s.table(columns, rows)
}

func drawPickers(s *screen, r *simulate.Result) {
	s.prose(0, "%s.", r.Pickers.Sample)
	columns := []column{{"CANARY %", true}, {"PICKER", false}, {"REQUESTS", true}, {"LONGEST RUN", true}, {"MOST/s", true}, {"OFF, points", true}}
	var rows [][]string
	share := -1.0
	for _, row := range r.Pickers.Rows {
		at := ""
		if row.Share != share {
			share, at = row.Share, points(row.Share)
		}
		name := row.Picker
		if name == r.Picker {
			name += " *"
		}
		rows = append(rows, []string{at, name, count(float64(row.Canary)), count(float64(row.LongestRun)), count(float64(row.LargestBurst)), rate(row.Deviation)})
	}
	s.table(columns, rows)
	text := "REQUESTS met the canary; LONGEST RUN counts those in a row, MOST/s those in the busiest second; OFF is the distance from the exact share."
	if r.Picker != "" {
		text += " * chose the backends in this simulation."
	}
	s.prose(0, "%s", text)
}

// runNote says what it cost, and how to have the same again.
func runNote(r *simulate.Result) string {
	o := r.Outcome
	text := fmt.Sprintf("The controller decided %s and wrote the routes %s and its status %s.", times(o.Passes), times(o.RouteWrites), times(o.StatusWrites))
	if r.Exact {
		return text + " Nothing was drawn: numbers are expected values."
	}
	return text + fmt.Sprintf(" Seed %d gives the same run again.", r.Seed)
}

func times(n int) string { return plural(n, "time", "times") }
