package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weightedrollout/weightedrollout/internal/cli/schedule"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// drawPlan shows a schedule as tables.
func drawPlan(s *screen, p *schedule.Schedule) {
	s.line(bold, fmt.Sprintf("Rollout %q of revision %q", p.Name, p.Revision))
	course := planCourse(p)
	if p.Stalled != nil {
		s.prose(0, "It never starts: Stalled with %s: %s.", p.Stalled.Reason, sentence(p.Stalled.Message))
		course = "Without that: " + course
	}
	s.prose(0, "%s", course)
	if p.Windows != "" {
		s.prose(0, "Raises happen only in plan.windows: %s. The times here are those of a window that never closes.", p.Windows)
	}
	if p.Return != nil {
		s.prose(0, "%s", returnText(p.Return))
	}

	s.head("Steps")
	drawSteps(s, p)
	s.head("Stages")
	drawStages(s, p)
	switch {
	case p.RequestsPerSecond == 0:
	case p.Unmeasured:
		s.gap()
		s.prose(0, "No stage proves anything: health.disabled is set, so nothing is measured.")
	default:
		s.head(fmt.Sprintf("What each stage can prove at %s requests/s", points(p.RequestsPerSecond)))
		drawProof(s, p)
	}
	s.gap()
	s.prose(0, "%s", planNote(p))
}

// returnText says how long the return to stable takes.
func returnText(r *schedule.Return) string {
	if r.Stuck != "" {
		return fmt.Sprintf("The traffic never returns to stable after %s: %s.", r.Begins(), r.Stuck)
	}
	return fmt.Sprintf("Back on stable %s after %s at the earliest, in %s.", span(r.Duration), r.Begins(), plural(r.Steps, "step", "steps"))
}

// planCourse says how the canary gets on.
func planCourse(p *schedule.Schedule) string {
	steps := plural(len(p.Adjustments), "step", "steps")
	if p.Stuck != "" {
		return fmt.Sprintf("It is never promoted: after %s and %s, %s.", steps, span(p.Duration), p.Stuck)
	}
	text := fmt.Sprintf("Promoted after %s at the earliest, in %s", span(p.Duration), steps)
	var soaks simulate.Elapsed
	for _, st := range p.Stages {
		soaks += st.Soak
	}
	text += fmt.Sprintf(": %s of soaks and %s of ramps", span(soaks), span(p.Duration-soaks))
	if p.Duration < soaks {
		text = strings.TrimSuffix(text, fmt.Sprintf(": %s of soaks and %s of ramps", span(soaks), span(p.Duration-soaks)))
	}
	if p.Approvals > 0 {
		text += fmt.Sprintf(", and the time that people take for %s", plural(p.Approvals, "approval", "approvals"))
	}
	return text + "."
}

func drawSteps(s *screen, p *schedule.Schedule) {
	columns := []column{
		{"STAGE", false}, {"h:mm:ss", true}, {"FROM %", true}, {"TO %", true}, {"WEIGHTS", true}, {"BOUND BY", false}, {"AFTER", false},
	}
	var rows [][]string
	stage := ""
	for _, a := range p.Adjustments {
		position := ""
		if a.Stage != stage {
			stage, position = a.Stage, a.Stage
		}
		rows = append(rows, []string{position, clock(a.At), points(a.From), points(a.To), weightsText(a.Weights), boundText(a.Bound), waitsText(a.Waits)})
	}
	s.table(columns, rows)
}

// weightsText writes the weights of all routes; routes with the same ones once.
func weightsText(all []simulate.RouteWeights) string {
	var texts []string
	for _, w := range all {
		if text := w.String(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, " ")
}

// boundText names the field that bounds a raise.
func boundText(b weights.Bound) string {
	if b == weights.BoundStage {
		return "stage weight"
	}
	return string(b)
}

// waitsText names the longest wait, and an approval beside it.
func waitsText(waits []schedule.Wait) string {
	var texts []string
	for i, w := range waits {
		switch {
		case w.For == simulate.CauseApproval:
			texts = append(texts, "approval")
		case i == 0:
			texts = append(texts, waitName(w.For)+" "+span(w.Lasts))
		}
	}
	return strings.Join(texts, " + ")
}

func waitName(c simulate.Cause) string {
	if c == simulate.CauseWarmup {
		return "warm-up"
	}
	return strings.ToLower(string(c))
}

func drawStages(s *screen, p *schedule.Schedule) {
	columns := []column{
		{"STAGE", false}, {"CANARY %", true}, {"STEPS", true}, {"BEGINS", true}, {"REACHED", true}, {"SOAK", true}, {"ENDS", true}, {"APPROVAL", false},
	}
	var rows [][]string
	for _, st := range p.Stages {
		soak, approval := "–", "–"
		if st.Soak > 0 {
			soak = span(st.Soak)
		}
		if st.Approval {
			approval = "Required"
		}
		rows = append(rows, []string{
			st.Position, points(st.Weight), fmt.Sprint(st.Steps), clockOr(st.BeginsAt), clockOr(st.ReachedAt), soak, clockOr(st.EndsAt), approval,
		})
	}
	s.table(columns, rows)
}

func drawProof(s *screen, p *schedule.Schedule) {
	columns := []column{
		{"STAGE", false}, {"CANARY %", true}, {"CANARY REQUESTS", true}, {"STABLE REQUESTS", true}, {"minRequests IN", true}, {"RISE, points", true},
	}
	var rows [][]string
	for _, st := range p.Stages {
		row := []string{st.Position, points(st.Weight), "–", "–", "–", "–"}
		if t := st.Traffic; t != nil {
			if st.EndsAt != nil {
				row[2], row[3] = count(t.CanaryRequests), count(t.StableRequests)
			}
			if t.MinRequestsAfter != nil {
				row[4] = roughly(*t.MinRequestsAfter)
			}
			if t.SmallestDifference != nil {
				row[5] = significant(*t.SmallestDifference, 3)
			}
		}
		rows = append(rows, row)
	}
	s.table(columns, rows)
}

// roughly writes a length of time that is only an expectation: to a tenth of a
// second, from ten seconds on to the second.
func roughly(e simulate.Elapsed) string {
	if e.Seconds() < 10 {
		return fmt.Sprintf("%.1fs", e.Seconds())
	}
	return span(simulate.Elapsed(float64(int64(e.Seconds()+0.5)) * 1e9))
}

func planNote(p *schedule.Schedule) string {
	note := "WEIGHTS are those of stable and canary. Times count from the moment at which the gateways have confirmed 0 %. They are the earliest: gateways confirm at once, checks pass, and people approve at once."
	if p.Unmeasured {
		return note
	}
	note += " Evidence is the first full health.window of the grid that begins at least health.sampleDelay after a share is confirmed"
	if p.RequestsPerSecond == 0 {
		return note + "; give --rps to see how long enough requests take."
	}
	return note + fmt.Sprintf(", and as many more as the requests take. REQUESTS are those during the stage, the last hour at most: older ones are forgotten. RISE is the smallest rise of the error rate above stable's %s %% that the stage tells from noise: "+
		"a one-sided test of two proportions at %.0f %% confidence finds it in %.0f %% of all cases.", points(*p.ErrorPercent), schedule.Confidence*100, schedule.Power*100)
}
