package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		"  gateway  " + o.measuredShare(),
	}
	for _, t := range tracks {
		lines = append(lines, fmt.Sprintf("  %-8s %s", t, o.quality[t].describe(s)))
	}
	width, _ := s.size()
	lines = append(lines, block("  verdict  ", o.verdict(s), width)...)
	return append(lines, block("  now      ", waitingFor(o.rollout), width)...)
}

// block writes a text beside its label in always the same number of lines, so
// that what is below does not jump.
func block(label, text string, width int) []string {
	const height = 2
	lines := wrap(text, width-len(label))
	lines = append(lines, make([]string, height)...)[:height]
	for i := range lines {
		lines[i] = label + lines[i]
		label = strings.Repeat(" ", len(label))
	}
	return lines
}

// line is the same in one line, for where nothing can be redrawn.
func (o *observation) line() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	plain := &screen{}
	return o.changeLine(fmt.Sprintf("       %s; canary %s; %s; %s",
		o.measuredShare(), o.quality[canary].describe(plain), o.verdict(plain), orNone(waitingFor(o.rollout))))
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
	n := len(o.samples)
	if n == 0 {
		return "not measured yet"
	}
	last := o.samples[n-1]
	counted, ok := between(o.samples, last.at.Add(-recent), last.at)
	total := counted.tracks[stable].requests + counted.tracks[canary].requests
	if !ok || total == 0 {
		return "not measured yet"
	}
	return fmt.Sprintf("%.1f %% of %.0f requests went to the canary", counted.share(), total)
}

func (q quality) describe(s *screen) string {
	if math.IsNaN(q.errorPercent) {
		return s.dim("no requests")
	}
	errors := fmt.Sprintf("%.1f %% errors", q.errorPercent)
	if q.errorPercent > 0 {
		errors = s.red(errors)
	}
	if math.IsNaN(q.p99) {
		return errors
	}
	return fmt.Sprintf("%s, p99 %.0f ms", errors, 1000*q.p99)
}

func (o *observation) verdict(s *screen) string {
	if o.rollout == nil || o.rollout.Status.Verdict == nil {
		return "none yet"
	}
	verdict := o.rollout.Status.Verdict
	text := string(verdict.State)
	switch verdict.State {
	case v1alpha1.VerdictHealthy:
		text = s.green(text)
	case v1alpha1.VerdictUnhealthy:
		text = s.red(text)
	case v1alpha1.VerdictDegraded:
		text = s.yellow(text)
	case v1alpha1.VerdictUnknown:
	}
	if verdict.Message == "" {
		return text
	}
	return text + ": " + verdict.Message
}

// waitingFor is what the rollout itself says of what it does or needs.
func waitingFor(rollout *v1alpha1.WeightedRollout) string {
	if rollout == nil {
		return ""
	}
	conditions := rollout.Status.Conditions
	for _, kind := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionReconciling, v1alpha1.ConditionReady} {
		c := meta.FindStatusCondition(conditions, kind)
		if c != nil && c.Status == metav1.ConditionTrue {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}
