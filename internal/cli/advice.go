package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/diagnose"
)

// situate says what a rollout waits for and what to do. Where one reason stands for two
// cases, of which one is stopped and the other at its end, the advice is for the one that
// it is in.
func situate(wr *v1alpha1.WeightedRollout, now time.Time) diagnose.Situation {
	s := diagnose.Situate(wr, now)
	stopped := wr.Status.Pause != nil
	switch {
	case s.Do == "" || s.Do != diagnose.Advice(s.Reason):
	case s.Reason == v1alpha1.ReasonUnhealthy && stopped && wr.Status.Outcome == v1alpha1.OutcomeReturning:
		s.Do = "repair stable; then give the command resume"
	case s.Reason == v1alpha1.ReasonUnhealthy && stopped:
		s.Do = "repair the canary, or find that the cause was elsewhere; then give the command resume"
	case s.Reason == v1alpha1.ReasonUnhealthy:
		s.Do = "repair the canary and set a new revision; or, if the cause was elsewhere, give the command retry"
	case stopped:
		s.Do = strings.ReplaceAll(s.Do, "the command retry", "the command resume")
	}
	return s
}

// asCommand adds to an advice the command that it speaks of. One for a stage names it, so
// that the line, given again later, ends no other.
func asCommand(advice string, wr *v1alpha1.WeightedRollout) string {
	for _, o := range orders() {
		if !strings.Contains(advice, "the command "+o.verb) || o.refusal(wr) != "" {
			continue
		}
		line := fmt.Sprintf("%s: kubectl weightedrollout %s %s -n %s", advice, o.verb, wr.Name, wr.Namespace)
		if at := positionOf(wr); o.binds == toStage && aPosition.MatchString(at) {
			line += " --stage " + at
		}
		return line
	}
	return advice
}
