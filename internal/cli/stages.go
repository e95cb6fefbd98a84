package cli

import (
	"strconv"
	"strings"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// stop is a stage on the way, and how far the rollout is with it.
type stop struct {
	weight string
	done   bool
	here   bool
}

// stops lists the stages of the plan with the implied last one. None is passed before an
// attempt has begun, nor after it was given up.
func stops(wr *v1alpha1.WeightedRollout) []stop {
	var all []stop
	for _, s := range wr.Spec.Plan.Stages {
		all = append(all, stop{weight: string(s.Weight)})
	}
	if n := len(all); n == 0 || all[n-1].weight != "100" {
		all = append(all, stop{weight: "100"})
	}
	switch st := wr.Status; st.Outcome {
	case v1alpha1.OutcomePromoted, v1alpha1.OutcomeReturning, v1alpha1.OutcomeCompleted:
		for i := range all {
			all[i].done = true
		}
	case v1alpha1.OutcomeInProgress:
		if st.Stage == nil {
			break
		}
		for i := range all {
			all[i].done = i < int(st.Stage.Index)
			all[i].here = i == int(st.Stage.Index)
		}
	case v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeSuperseded:
	}
	return all
}

// text writes a stop with its mark.
func (s stop) text() string {
	switch {
	case s.here:
		return "[" + s.weight + "]"
	case s.done:
		return "✓" + s.weight
	}
	return s.weight
}

// stageBar writes the stages in a row, as far as the width goes: of a long plan the part
// around the present stage.
func stageBar(all []stop, width int) string {
	const between = " › "
	join := func(from, to int) string {
		parts := make([]string, 0, to-from)
		for _, s := range all[from:to] {
			parts = append(parts, s.text())
		}
		text := strings.Join(parts, between)
		if from > 0 {
			text = "…" + between + text
		}
		if to < len(all) {
			text += between + "…"
		}
		return text
	}
	here := 0
	for i, s := range all {
		if s.here || s.done {
			here = i
		}
	}
	from, to := 0, len(all)
	for cells(join(from, to)) > width && to-from > 1 {
		if here-from > to-1-here {
			from++
		} else {
			to--
		}
	}
	return cut(join(from, to), width)
}

// shareBar draws a percentage as a bar of a width.
func shareBar(percent float64, width int) string {
	if width <= 0 {
		return ""
	}
	filled := int(percent/100*float64(width) + 0.5)
	if percent > 0 {
		filled = max(filled, 1) // whatever is above 0 can be told from it
	}
	if percent < 100 {
		filled = min(filled, width-1)
	}
	filled = min(max(filled, 0), width)
	return strings.Repeat("█", filled) + strings.Repeat("░", width-filled)
}

// number reads a percentage; what is none is 0.
func number(p v1alpha1.Percent) float64 {
	f, err := strconv.ParseFloat(string(p), 64)
	if err != nil {
		return 0
	}
	return f
}
