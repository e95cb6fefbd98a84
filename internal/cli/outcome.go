package cli

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// Exit codes of the commands that wait.
const (
	exitFailed  = 1
	exitTimeout = 2
	exitGivenUp = 3
)

// The goals of a wait.
const (
	goalPromoted  = "promoted"
	goalCompleted = "completed"
)

var goals = []string{goalPromoted, goalCompleted}

// ending is how a rollout has come to an end, as far as a wait is concerned.
type ending struct {
	// code is the exit code that stands for it.
	code int
	says string
	// stalled says that it is no end: a person has to do something first.
	stalled bool
}

// ended tells whether a rollout has reached a goal, or was rolled back, or, if stalled
// counts, waits for a person; nil: it goes on. A status that is not about the present
// spec says nothing.
func ended(wr *v1alpha1.WeightedRollout, goal string, stalled bool) *ending {
	st := &wr.Status
	if st.ObservedGeneration != wr.Generation {
		return nil
	}
	left := stalledOn(wr) == v1alpha1.ReasonStableChanged // what stable ran at the end
	switch st.Outcome {
	case v1alpha1.OutcomeRolledBack:
		return &ending{code: exitGivenUp, says: fmt.Sprintf("revision %q was rolled back: %s", st.Revision, reasoned(st.OutcomeReason, st.OutcomeMessage))}
	case v1alpha1.OutcomeCompleted:
		if !left {
			return &ending{code: 0, says: fmt.Sprintf("revision %q is completed: stable runs it", st.Revision)}
		}
	case v1alpha1.OutcomeSuperseded:
		if st.OutcomeReason == v1alpha1.ReasonStableRevision && !left {
			return &ending{code: 0, says: fmt.Sprintf("there is nothing to roll out: stable runs revision %q", st.Revision)}
		}
	case v1alpha1.OutcomePromoted, v1alpha1.OutcomeReturning:
		if goal == goalPromoted {
			return &ending{code: 0, says: fmt.Sprintf("revision %q is promoted", st.Revision)}
		}
	case v1alpha1.OutcomeInProgress:
	}
	if c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionStalled); stalled && c != nil && c.Status == metav1.ConditionTrue {
		// A promoted rollout that awaits its stable is no dead end: the goal is further on.
		return &ending{code: exitGivenUp, says: "a person has to do something: " + reasoned(c.Reason, c.Message), stalled: true}
	}
	return nil
}

// changeLine is a rollout in one line, without anything that changes by itself.
func changeLine(wr *v1alpha1.WeightedRollout, s string) string {
	st := &wr.Status
	text := shownPhase(wr)
	if st.Stage != nil && st.Stage.Position != "" {
		text += " " + st.Stage.Position
	}
	text += fmt.Sprintf(", %s percent", desiredShare(wr))
	if st.Share.Desired != nil && st.Share.ConfirmedAt == nil {
		text += " (not confirmed)"
	}
	text += ", " + s
	c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionReady)
	if stalledOn := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionStalled); stalledOn != nil && stalledOn.Status == metav1.ConditionTrue {
		c = stalledOn
	}
	if c != nil {
		reason := c.Reason
		if reason == s && c.Message != "" {
			reason = "" // it has been told
		}
		text += ": " + reasoned(reason, c.Message)
	}
	return text
}

// statusVerdict is the state of the verdict in the status.
func statusVerdict(wr *v1alpha1.WeightedRollout) string {
	if v := wr.Status.Verdict; v != nil {
		return string(v.State)
	}
	return string(v1alpha1.VerdictUnknown)
}
