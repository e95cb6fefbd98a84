package cli

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// order is what a person can tell the controller to do with a rollout.
type order struct {
	verb, short, long string
	// binds is what --stage and --attempt can bind it to.
	binds binding
	// grave says that it is asked back before it is given.
	grave bool
	// asksBack says why it is asked back where it is not grave; empty: it is not. nil is
	// never.
	asksBack func(*v1alpha1.WeightedRollout) string
	// refusal says why it makes no sense now; empty: it does.
	refusal func(*v1alpha1.WeightedRollout) string
	// effect says what will happen, once the order is taken.
	effect func(*v1alpha1.WeightedRollout) string
	// write says what to write; id is that of the command, where it is one.
	write func(wr *v1alpha1.WeightedRollout, id string) edit
	// taken says what came of it; ok is false as long as the controller has not taken it.
	// given is the object as it was written.
	taken func(wr, given *v1alpha1.WeightedRollout, id string) (r result, ok bool)
}

// edit is what an order changes in a rollout.
type edit struct {
	annotation, value string // none if empty
	paused            *bool
}

// result is what came of an order.
type result struct {
	accepted bool
	says     string
}

// orders lists all of them, in the order of the help.
func orders() []order {
	return []order{
		{
			verb: "pause", short: "Hold the canary's share where it is",
			long:    "Hold the canary's share where it is, by spec.paused. A breach of health still rolls back.\nWhere the rollout comes from git, set the field there as well: otherwise it is set back.",
			refusal: refusePause, effect: func(wr *v1alpha1.WeightedRollout) string {
				if !underWay(wr) {
					return "nothing is under way; the next attempt will be held from its start"
				}
				return fmt.Sprintf("the canary will stay at %s percent; a breach will still roll it back", desiredShare(wr))
			},
			write: func(*v1alpha1.WeightedRollout, string) edit { return edit{paused: new(true)} }, taken: pausedTaken,
		},
		{
			verb: "resume", short: "Go on after a pause", binds: toAttempt,
			long:    "Go on after a pause: of spec.paused, of onUnhealthy.action Pause, or since another writer\nkept changing the weights.",
			refusal: refuseResume, effect: resumeEffect,
			write: writeResume, taken: resumeTaken,
		},
		{
			verb: "approve", short: "Let a stage with approval Required end", binds: toStage, asksBack: tooEarly,
			long:    "Let a stage with approval Required end, once its soak is over and its gate passes. It may be\ngiven before it is asked for, in the stage itself: then it is asked back, unless you say --yes,\nor with --stage which stage you mean.",
			refusal: refuse(v1alpha1.VerbApprove), effect: func(wr *v1alpha1.WeightedRollout) string {
				over := "its soak is over"
				if by := heldBy(wr); by != "" {
					over = by + " is over, " + over
				}
				return fmt.Sprintf("stage %s of attempt %d will end, once %s and its gate passes", positionOf(wr), wr.Status.Attempt, over)
			},
			write: command(v1alpha1.VerbApprove), taken: commandTaken,
		},
		{
			verb: "promote", short: "End all soaks and approvals of this attempt", binds: toAttempt, grave: true,
			long:    "End the soaks, approvals and waits for a window of this attempt. The ramp and every gate\nstay: without evidence nothing is raised. It overrules a pause that is there already.",
			refusal: refuse(v1alpha1.VerbPromote), effect: func(wr *v1alpha1.WeightedRollout) string {
				return fmt.Sprintf("attempt %d of revision %q will go to 100 percent as fast as ramp and gates allow, without soaks, approvals and windows", wr.Status.Attempt, wr.Status.Revision)
			},
			write: command(v1alpha1.VerbPromote), taken: commandTaken,
		},
		{
			verb: "abort", short: "Roll back at once", binds: toAttempt, grave: true,
			long:    "Roll back at once, whatever the numbers say. It is final until the revision changes or you\nsay retry.",
			refusal: refuseAbort, effect: func(wr *v1alpha1.WeightedRollout) string {
				return fmt.Sprintf("attempt %d of revision %q will be rolled back from %s percent: stable will get all traffic, until the revision changes or you say retry", wr.Status.Attempt, wr.Status.Revision, desiredShare(wr))
			},
			write: func(wr *v1alpha1.WeightedRollout, _ string) edit {
				return edit{annotation: v1alpha1.AbortAnnotation, value: strconv.FormatInt(wr.Status.Attempt, 10)}
			},
			taken: abortTaken,
		},
		{
			verb: "retry", short: "Start a rolled back revision again", binds: toAttempt,
			long:    "Start a rolled back revision again, from 0 percent and the first stage. It is also the answer\nto AdoptionAmbiguous and InvalidStatus.",
			refusal: refuse(v1alpha1.VerbRetry), effect: func(wr *v1alpha1.WeightedRollout) string {
				return fmt.Sprintf("a new attempt will start at 0 percent, after attempt %d", wr.Status.Attempt)
			},
			write: command(v1alpha1.VerbRetry), taken: commandTaken,
		},
		{
			verb: "skip", short: "End the soak, approval or window of the present stage", binds: toStage,
			long:    "End the soak, the approval and the wait for a window of the present stage. The ramp and its\ngate stay.",
			refusal: refuse(v1alpha1.VerbSkip), effect: func(wr *v1alpha1.WeightedRollout) string {
				when := "as soon as its gate passes"
				if by := heldBy(wr); by != "" {
					when += ", once " + by + " is over"
				}
				return fmt.Sprintf("stage %s of attempt %d will end %s", positionOf(wr), wr.Status.Attempt, when)
			},
			write: command(v1alpha1.VerbSkip), taken: commandTaken,
		},
		{
			verb: "finish", short: "Return the traffic to stable, which runs the promoted version", binds: toAttempt, grave: true,
			long:    "Return the traffic to stable, which must run the promoted version by now: by the ramp's limits\nand on evidence. It is also an answer to AdoptionAmbiguous, where every rule gives the canary\nmore than 50 percent.",
			refusal: refuseFinish, effect: func(wr *v1alpha1.WeightedRollout) string {
				return fmt.Sprintf("the traffic will return to stable step by step: be sure that it runs revision %q", revisionOf(wr))
			},
			write: command(v1alpha1.VerbFinish), taken: commandTaken,
		},
	}
}

// revisionOf is the revision under test, or the one that the spec names.
func revisionOf(wr *v1alpha1.WeightedRollout) string {
	if wr.Status.Revision != "" {
		return wr.Status.Revision
	}
	return wr.Spec.Revision
}

// heldBy says what holds the share, whatever the stage's gate says: a pause, that of the
// spec or one that onUnhealthy.action has made, or a conflict; empty: nothing.
func heldBy(wr *v1alpha1.WeightedRollout) string {
	switch {
	case wr.Spec.Paused || wr.Status.Pause != nil:
		return "the pause"
	case stalledOn(wr) == v1alpha1.ReasonPartialRouteConflict:
		return "the conflict with an older rollout"
	}
	return ""
}

// resumeEffect says what a resume will do.
func resumeEffect(wr *v1alpha1.WeightedRollout) string {
	switch {
	case !underWay(wr) && mustResume(wr):
		return "the controller will set the weights in the routes again"
	case !underWay(wr):
		return "nothing is under way; the next attempt will not be held"
	case mustResume(wr):
		return fmt.Sprintf("attempt %d will go on from %s percent; soak and evidence start again", wr.Status.Attempt, desiredShare(wr))
	}
	return fmt.Sprintf("attempt %d will go on from %s percent", wr.Status.Attempt, desiredShare(wr))
}

// tooEarly says that a stage does not ask for the approval yet.
func tooEarly(wr *v1alpha1.WeightedRollout) string {
	if phaseOf(wr) == v1alpha1.PhaseAwaitingApproval {
		return ""
	}
	return fmt.Sprintf("stage %s does not ask for approval yet: the rollout is %s", positionOf(wr), phaseOf(wr))
}

func positionOf(wr *v1alpha1.WeightedRollout) string {
	if s := wr.Status.Stage; s != nil && s.Position != "" {
		return s.Position
	}
	return "?"
}

// command writes a command for the present attempt and stage.
func command(verb v1alpha1.Verb) func(*v1alpha1.WeightedRollout, string) edit {
	return func(wr *v1alpha1.WeightedRollout, id string) edit {
		return edit{annotation: v1alpha1.CommandAnnotation, value: jsonText(commandFor(verb, wr, id))}
	}
}

func commandFor(verb v1alpha1.Verb, wr *v1alpha1.WeightedRollout, id string) v1alpha1.Command {
	c := v1alpha1.Command{ID: id, Verb: verb, Attempt: wr.Status.Attempt}
	if s := wr.Status.Stage; s != nil && (verb == v1alpha1.VerbApprove || verb == v1alpha1.VerbSkip) {
		c.Stage = new(s.Index)
	}
	return c
}

func writeResume(wr *v1alpha1.WeightedRollout, id string) edit {
	var e edit
	if mustResume(wr) {
		e = command(v1alpha1.VerbResume)(wr, id)
	}
	if wr.Spec.Paused {
		e.paused = new(false)
	}
	return e
}

// stalledOn is the reason for which a rollout is Stalled, or empty.
func stalledOn(wr *v1alpha1.WeightedRollout) string {
	c := meta.FindStatusCondition(wr.Status.Conditions, v1alpha1.ConditionStalled)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Reason
}

// orderPatience is how long the controller is waited for, unless told otherwise.
const orderPatience = 30 * time.Second
