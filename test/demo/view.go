package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

const (
	// recent is the span of time that the measured share is over.
	recent   = 5 * time.Second
	barWidth = 40
)

// frame is the live block.
func (o *observation) frame(s *screen) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := []string{
		"",
		fmt.Sprintf("  %s  %s  %s", s.bold(o.scenario.name+" "+o.scenario.revision), o.phase(s), s.dim(clock(time.Since(o.began)))),
		"  stages   " + o.stageBar(s),
		"  route    " + o.weightBar(s),
	}
	width, _ := s.size()
	for _, f := range o.facts(s) {
		label := fmt.Sprintf("  %-9s", f.label)
		if f.height == 1 {
			lines = append(lines, label+f.text)
			continue
		}
		lines = append(lines, block(label, f.text, f.height, width)...)
	}
	return lines
}

// fact is one labelled text of the view.
type fact struct {
	label, text string
	// height is the number of lines that it has in the live block. What has one is in
	// columns, and is not wrapped.
	height int
}

// facts say what is known of the rollout besides its weights. The lock is held.
func (o *observation) facts(s *screen) []fact {
	return []fact{
		{"gateway", o.measuredShare(), 1},
		{"stable", o.numbers(s, stable), 1},
		{"canary", o.numbers(s, canary), 1},
		{"worse?", o.comparison(), 2},
		{"verdict", o.verdict(s), 3},
		{"now", o.doing(time.Now()), 3},
	}
}

// beside writes a text beside its label, in as many lines as it takes.
func beside(label, text string, width int) []string {
	lines := wrap(text, width-len(label))
	for i := range lines {
		lines[i] = label + lines[i]
		label = strings.Repeat(" ", len(label))
	}
	return lines
}

// block writes a text beside its label in always the same number of lines, so
// that what is below does not jump. A text that is longer ends in an ellipsis.
func block(label, text string, height, width int) []string {
	lines := beside(label, text, width)
	if len(lines) > height {
		lines[height-1] = cut(lines[height-1], width-1) + "…"
	}
	for len(lines) < height {
		lines = append(lines, strings.Repeat(" ", len(label)))
	}
	return lines[:height]
}

// lines is the same for where nothing can be redrawn.
func (o *observation) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	const indent = "         " // below the rollout's name
	facts := o.facts(&screen{})
	lines := []string{o.changeLine(facts[0].text)}
	for _, f := range facts[1:] {
		if f.text == "" {
			continue
		}
		label := fmt.Sprintf("%s%-9s", indent, f.label)
		if f.height == 1 && utf8.RuneCountInString(label+f.text) <= defaultWidth {
			lines = append(lines, label+f.text)
			continue
		}
		lines = append(lines, beside(label, f.text, defaultWidth)...)
	}
	return lines
}

func (o *observation) phase(s *screen) string {
	if o.rollout == nil {
		return ""
	}
	switch phase := o.rollout.Status.Phase; phase {
	case v1alpha1.PhasePromoted, v1alpha1.PhaseCompleted:
		return s.green(string(phase))
	case v1alpha1.PhaseRolledBack:
		return s.red(string(phase))
	default:
		return string(phase)
	}
}

// stageBar shows the plan: what is done, what runs, what is to come.
func (o *observation) stageBar(s *screen) string {
	if o.rollout == nil {
		return ""
	}
	present := -1
	if stage := o.rollout.Status.Stage; stage != nil {
		present = int(stage.Index)
	}
	var parts []string
	for i, stage := range append(slices.Clone(o.rollout.Spec.Plan.Stages), v1alpha1.Stage{Weight: "100"}) {
		text := string(stage.Weight) + "%"
		switch {
		case i < present || o.rollout.Status.Phase == v1alpha1.PhasePromoted:
			parts = append(parts, s.green(text))
		case i == present:
			parts = append(parts, s.bold("["+text+"]"))
		default:
			parts = append(parts, s.dim(text))
		}
	}
	return strings.Join(parts, s.dim(" > "))
}

func (o *observation) weightBar(s *screen) string {
	if len(o.steps) == 0 {
		return ""
	}
	now := o.steps[len(o.steps)-1]
	filled := (now.basisPoints()*barWidth + 9999) / 10000
	return fmt.Sprintf("stable %3d %s%s %3d canary", now.weights[stable],
		s.dim(strings.Repeat("-", barWidth-filled)), s.yellow(strings.Repeat("#", filled)), now.weights[canary])
}

func (o *observation) measuredShare() string {
	counted, ok := o.recently()
	total := counted.tracks[stable].requests + counted.tracks[canary].requests
	if !ok || total == 0 {
		return "not measured yet"
	}
	return fmt.Sprintf("%.1f %% of %.0f requests went to the canary", counted.share(), total)
}

// recently is what the gateway counted just before. It is false if that is not known.
func (o *observation) recently() (sample, bool) {
	n := len(o.samples)
	if n == 0 {
		return sample{}, false
	}
	last := o.samples[n-1]
	return between(o.samples, last.at.Add(-recent), last.at)
}

// known says that Prometheus has counted requests.
func (q quality) known() bool { return !math.IsNaN(q.errorPercent) }

// describe is what Prometheus says, in the words for an evaluation, which it is none of.
func (q quality) describe(s *screen) string {
	text := fmt.Sprintf("%4.0f requests in %s, %s", q.requests, qualityWindow, s.failed(q.errorPercent))
	if !math.IsNaN(q.p99) {
		text += fmt.Sprintf(", p99 %7s", fmt.Sprintf("%.0f ms", 1000*q.p99))
	}
	return text + " (Prometheus)"
}
