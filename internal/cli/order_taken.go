package cli

import (
	"fmt"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// commandTaken looks for the command in the status.
func commandTaken(wr, _ *v1alpha1.WeightedRollout, id string) (result, bool) {
	c := wr.Status.Command
	if c == nil || c.ID != id {
		return result{}, false
	}
	if !c.Accepted {
		return result{false, "the controller has ignored it: " + c.Message}, true
	}
	return result{true, "the controller has taken it; now: " + changeLine(wr, statusVerdict(wr))}, true
}

// pausedTaken looks for the condition.
func pausedTaken(wr, given *v1alpha1.WeightedRollout, _ string) (result, bool) {
	if wr.Status.ObservedGeneration < given.Generation {
		return result{}, false
	}
	return result{true, "the controller has taken it; now: " + changeLine(wr, statusVerdict(wr))}, true
}

func resumeTaken(wr, given *v1alpha1.WeightedRollout, id string) (result, bool) {
	if mustResume(given) {
		return commandTaken(wr, given, id)
	}
	return pausedTaken(wr, given, id)
}

// abortTaken looks for the end of the attempt.
func abortTaken(wr, given *v1alpha1.WeightedRollout, _ string) (result, bool) {
	st := &wr.Status
	switch {
	case st.Attempt != given.Status.Attempt:
		return result{false, fmt.Sprintf("attempt %d has ended by itself before: this is attempt %d", given.Status.Attempt, st.Attempt)}, true
	case st.Outcome == v1alpha1.OutcomeRolledBack:
		return result{true, "rolled back: " + reasoned(st.OutcomeReason, st.OutcomeMessage)}, true
	case !unended(st.Outcome):
		return result{false, "the attempt has ended before: " + string(st.Outcome)}, true
	}
	return result{}, false
}
