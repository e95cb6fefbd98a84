package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/diagnose"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

// view is what is known of a rollout at one time.
type view struct {
	rollout *v1alpha1.WeightedRollout
	// events are the controller's, the oldest first; eventsErr says why there are none.
	events    []eventsv1.Event
	eventsErr error
	// document is the live evidence; documentErr says why there is none.
	document    *live.Document
	documentErr error
	// trouble says why nothing new comes; nil: it does.
	trouble error
}

// source says where the numbers come from.
func (v *view) source() Source {
	if v.document != nil {
		return Source{Live: true, At: &v.document.At}
	}
	return statusSource(v.rollout)
}

// sourceLine says where the numbers come from, how old they are, and why they are not
// live.
func (v *view) sourceLine(now time.Time) string {
	s := v.source()
	text := "numbers of the status"
	if s.Live {
		text = "live numbers"
	}
	if s.At != nil {
		text += ", " + human(now.Sub(*s.At)) + " old"
	}
	if !s.Live && v.documentErr != nil {
		text += ": " + v.documentErr.Error()
	}
	return text
}

// human writes a length of time in at most two units.
func human(d time.Duration) string { return duration.HumanDuration(max(d, 0)) }

// title names a rollout.
func title(wr *v1alpha1.WeightedRollout) string {
	text := fmt.Sprintf("WeightedRollout %s/%s", wr.Namespace, wr.Name)
	if st := wr.Status; st.Revision != "" {
		text += fmt.Sprintf(", revision %q, attempt %d", st.Revision, st.Attempt)
	}
	return text
}

func phaseOf(wr *v1alpha1.WeightedRollout) v1alpha1.Phase {
	return cmp.Or(wr.Status.Phase, v1alpha1.PhasePending)
}

// shownPhase is the phase for a screen: any text, if a later version wrote it.
func shownPhase(wr *v1alpha1.WeightedRollout) string {
	const widest = 24
	return cut(clean(string(phaseOf(wr))), widest)
}

// colorOf is the colour of a phase.
func colorOf(p v1alpha1.Phase) string {
	switch p {
	case v1alpha1.PhaseRolledBack:
		return red
	case v1alpha1.PhasePending, v1alpha1.PhasePaused, v1alpha1.PhaseCoolingDown, v1alpha1.PhaseAwaitingApproval:
		return yellow
	case v1alpha1.PhasePromoted, v1alpha1.PhaseCompleted, v1alpha1.PhaseIdle:
		return green
	case v1alpha1.PhaseProgressing, v1alpha1.PhaseReturning:
	}
	return cyan
}

// desiredShare is the share that the routes are to have, in percent.
func desiredShare(wr *v1alpha1.WeightedRollout) v1alpha1.Percent {
	if d := wr.Status.Share.Desired; d != nil {
		return *d
	}
	return "–"
}

// shareText says what share the canary is to have, and has.
func shareText(wr *v1alpha1.WeightedRollout, now time.Time) string {
	sh := wr.Status.Share
	if sh.Desired == nil {
		return "none yet"
	}
	text := fmt.Sprintf("%s percent", *sh.Desired)
	if sh.ConfirmedAt != nil {
		text += ", confirmed " + human(now.Sub(sh.ConfirmedAt.Time)) + " ago"
	} else {
		text += ", not confirmed by the gateways yet"
	}
	if sh.Observed != nil && sh.ObservedFrom == v1alpha1.ShareFromRequests {
		text += fmt.Sprintf("; the canary had %s percent of the requests", *sh.Observed)
	}
	return text
}

// measured is the canary's part of the requests that the gateway has counted, in percent.
func (v *view) measured() (percent float64, requests int64, ok bool) {
	if v.document == nil || v.document.Traffic == nil {
		return 0, 0, false
	}
	t := v.document.Traffic
	requests = t.Canary + t.Stable
	if t.NotCounted != "" || requests <= 0 {
		return 0, 0, false
	}
	return 100 * float64(t.Canary) / float64(requests), requests, true
}

// verdictWords are the newest verdict: its state, and why.
func (v *view) verdictWords() (state, words string) {
	// What is gathered after the end says nothing about it.
	if d := v.document; d != nil && !v.over() {
		return d.Verdict.State, reasoned(d.Verdict.Reason, d.Verdict.Message)
	}
	if s := v.rollout.Status.Verdict; s != nil {
		return string(s.State), reasoned(s.Reason, s.Message)
	}
	return string(v1alpha1.VerdictUnknown), "there is none yet"
}

// over tells whether the attempt has ended, with a verdict on record.
func (v *view) over() bool {
	st := &v.rollout.Status
	return st.Outcome != "" && !unended(st.Outcome) && st.Verdict != nil
}

// reasoned puts a reason before its message, unless the message begins with the same word.
func reasoned(reason, message string) string {
	switch {
	case reason == "":
		return message
	case message == "":
		return reason
	case len(message) >= len(reason) && strings.EqualFold(message[:len(reason)], reason):
		return reason + message[len(reason):]
	}
	return reason + ": " + message
}

func verdictColor(state string) string {
	switch v1alpha1.VerdictState(state) {
	case v1alpha1.VerdictHealthy:
		return green
	case v1alpha1.VerdictDegraded:
		return yellow
	case v1alpha1.VerdictUnhealthy:
		return red
	case v1alpha1.VerdictUnknown:
	}
	return plain
}

// lasting says for how long a rollout has been waiting for what a reason says; empty: it
// cannot be told.
func lasting(wr *v1alpha1.WeightedRollout, reason string, now time.Time) string {
	st := &wr.Status
	since := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return "for " + human(now.Sub(at))
	}
	switch reason {
	case v1alpha1.ReasonBreakerOpen:
		if b := st.Breaker; b != nil && b.OpenedAt != nil {
			return since(b.OpenedAt.Time)
		}
	case v1alpha1.ReasonPaused:
		if c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionPaused); c != nil {
			return since(c.LastTransitionTime.Time)
		}
	case v1alpha1.ReasonRouteNotConfirmed, v1alpha1.ReasonStarting:
		var at time.Time
		if st.Share.ChangedAt != nil {
			at = st.Share.ChangedAt.Time
		}
		// An attempt that begins at the share of the one before does not change it.
		if st.StartedAt != nil && st.StartedAt.After(at) {
			at = st.StartedAt.Time
		}
		return since(at)
	}
	switch {
	case st.Pause != nil:
		return since(st.Pause.At.Time)
	case len(st.History) > 0 && st.History[0].Attempt == st.Attempt:
		return since(st.History[0].EndedAt.Time)
	case st.Share.ConfirmedAt != nil:
		return "at this share " + since(st.Share.ConfirmedAt.Time)
	}
	return ""
}

// waits says in sentences what a rollout waits for, and for how long.
func (v *view) waits(s diagnose.Situation, now time.Time) string {
	text := reasoned(s.Reason, s.Says)
	if d := lasting(v.rollout, s.Reason, now); d != "" {
		text = strings.TrimSuffix(text, ".") + ". " + capital(d) + "."
	}
	return text
}

// next says when the share can change at the earliest, where that is known.
func (v *view) next(now time.Time) string {
	if at := v.rollout.Status.NextTransitionTime; at != nil && at.After(now) {
		return fmt.Sprintf("not before %s, in %s", at.UTC().Format("15:04:05 MST"), at.Sub(now).Round(time.Second))
	}
	if v.document == nil || v.rollout.Status.Outcome != v1alpha1.OutcomeInProgress {
		return ""
	}
	for _, gate := range []live.Awaited{v.document.Ramp, v.document.Stage} {
		if gate.Open || gate.What == "" {
			continue
		}
		text := gate.What
		if gate.AboutSeconds > 0 {
			text += ", about " + time.Duration(gate.AboutSeconds*float64(time.Second)).Round(time.Second).String()
		}
		return text
	}
	return ""
}

// mayAsk tells whether it is worth while to ask for the evidence again soon.
func mayAsk(err error) bool { return !errors.Is(err, errNoRight) }
