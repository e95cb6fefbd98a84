// Package notify tells a webhook of the turning points of rollouts.
package notify

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// Level says how much a transition concerns a person.
type Level string

const (
	// LevelInfo is good to know.
	LevelInfo Level = "Info"
	// LevelAction waits for a person.
	LevelAction Level = "Action"
	// LevelWarning went wrong.
	LevelWarning Level = "Warning"
)

// Transition is a turning point of a rollout: its phase has changed, or it is Stalled for
// another reason. Templates see its fields.
type Transition struct {
	Namespace, Name string
	// Phase is the new phase, and From the one before (empty at the first).
	Phase, From string
	// Reason is that of the condition Ready, and Message its sentence.
	Reason, Message string
	Level           Level
	Revision        string
	Attempt         int64
	// Stage is the stage among all, such as 3/6, and Share the canary's share, in percent,
	// that the routes are to have; both may be empty.
	Stage, Share string
	At           time.Time
	// Late says that it is told some time after it happened.
	Late bool
}

// Rest is what there is to say after the phase: the revision, the share and the message.
func (t Transition) Rest() string {
	text := ""
	if t.Share != "" {
		text += " at " + t.Share + " %"
	}
	if t.Revision != "" {
		text += fmt.Sprintf(" (revision %s, attempt %d)", t.Revision, t.Attempt)
	}
	if t.Late {
		text += " since " + t.At.UTC().Format(time.TimeOnly) + " UTC"
	}
	if t.Message != "" {
		text += ": " + t.Message
	}
	return text
}

// Text is the transition as a line for people.
func (t Transition) Text() string {
	return fmt.Sprintf("%s/%s %s%s", t.Namespace, t.Name, t.Phase, t.Rest())
}

// Between finds the transition between two states of a status, if there is one. Changes of
// the share within a phase, and of what is waited for, are none.
func Between(k types.NamespacedName, before, after v1alpha1.WeightedRolloutStatus, now time.Time) (Transition, bool) {
	was, is := stalledFor(before.Conditions), stalledFor(after.Conditions)
	if after.Phase == "" || before.Phase == after.Phase && before.Attempt == after.Attempt && (was == is || is == "") {
		return Transition{}, false
	}
	t := Transition{
		Namespace: k.Namespace, Name: k.Name, Phase: string(after.Phase), From: string(before.Phase), Level: levelOf(after.Phase, is),
		Revision: after.Revision, Attempt: after.Attempt, At: now.UTC(),
	}
	if c := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady); c != nil {
		t.Reason, t.Message = c.Reason, c.Message
	}
	if after.Stage != nil {
		t.Stage = after.Stage.Position
	}
	if after.Share.Desired != nil {
		t.Share = string(*after.Share.Desired)
	}
	return t, true
}

// stalledFor is the reason why a rollout is Stalled; empty if it is not.
func stalledFor(all []metav1.Condition) string {
	if c := meta.FindStatusCondition(all, v1alpha1.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

func levelOf(p v1alpha1.Phase, stalled string) Level {
	switch {
	case p == v1alpha1.PhaseRolledBack, p == v1alpha1.PhaseCoolingDown, stalled != "":
		return LevelWarning
	case p == v1alpha1.PhaseAwaitingApproval:
		return LevelAction
	}
	return LevelInfo
}
