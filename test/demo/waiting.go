package main

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// doing says what the rollout does or waits for, and about how much of it is left. The
// lock is held.
func (o *observation) doing(now time.Time) string {
	if o.rollout == nil {
		return ""
	}
	status := &o.rollout.Status
	if o.rolledBack() {
		return toDo(o.rollout)
	}
	if o.proofWaits() {
		return provenAt(status)
	}
	gate := o.gate()
	if waitsFor(status, v1alpha1.ReasonAwaitingEvidence) && status.Stage.ClockStoppedSince == nil && gate != "" {
		return v1alpha1.ReasonAwaitingEvidence + ": " + place(status) + ": " + gate
	}
	text := soaking(status, now)
	if text == "" {
		text = waitingFor(o.rollout)
		if left := timeLeft(status, now); left > 0 {
			text += fmt.Sprintf(", %s to go", left)
		}
	}
	if gate != "" {
		text += "; " + gate
	}
	return text
}

// waitsFor says that the rollout waits for this, at some place of its plan.
func waitsFor(status *v1alpha1.WeightedRolloutStatus, reason string) bool {
	c := reconciling(status)
	return c != nil && c.Reason == reason && status.Share.Desired != nil && status.Stage != nil
}

func reconciling(status *v1alpha1.WeightedRolloutStatus) *metav1.Condition {
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReconciling) {
		return meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReconciling)
	}
	return nil
}

// timeLeft is the time until the next transition, if one is due at a known time.
func timeLeft(status *v1alpha1.WeightedRolloutStatus, now time.Time) time.Duration {
	if status.NextTransitionTime == nil {
		return 0
	}
	return max(status.NextTransitionTime.Sub(now).Round(time.Second), 0)
}

// soaking says how much of the soak is left; empty if the rollout does not soak. The
// next transition's time is in whole seconds, and can be a little beyond the soak.
func soaking(status *v1alpha1.WeightedRolloutStatus, now time.Time) string {
	if !waitsFor(status, v1alpha1.ReasonSoaking) {
		return ""
	}
	soak, err := v1alpha1.Duration(status.Stage.Soak).Parse()
	rest, ok := strings.CutPrefix(reconciling(status).Message, place(status)+" for "+status.Stage.Soak)
	if err != nil || !ok {
		return ""
	}
	text := v1alpha1.ReasonSoaking + ": " + place(status)
	switch left := min(timeLeft(status, now), soak); {
	case left <= 0:
		text += fmt.Sprintf(": the %s soak is over", soak)
	case left == time.Second:
		text += fmt.Sprintf(": of the %s soak 1s is left", soak)
	default:
		text += fmt.Sprintf(": of the %s soak %s are left", soak, left)
	}
	return text + rest
}

// proofWaits says that the canary is proven to be worse, that something keeps it from
// being rolled back, and that good requests are what the rollout waits for meanwhile.
func (o *observation) proofWaits() bool {
	d, status := o.present(), &o.rollout.Status
	return d != nil && d.Comparison != nil && d.Comparison.Evidence >= d.Comparison.Proof && d.Comparison.Waits != "" &&
		d.Verdict.Reason == v1alpha1.ReasonAboveLimit && reconciling(status) != nil && status.Stage != nil && status.Share.Desired != nil
}

// provenAt is what there is to say while a proof waits: more good requests are not what
// decides then.
func provenAt(status *v1alpha1.WeightedRolloutStatus) string {
	text := reconciling(status).Reason + ": " + place(status)
	if status.Stage.ClockStoppedSince != nil {
		text += ", the soak's clock stands still"
	}
	return text + `: the canary is proven to be worse; its rollback awaits what "worse?" says`
}

// toDo is what the rollout asks for after a rollback, without the reason for that, which
// is shown as the verdict.
func toDo(rollout *v1alpha1.WeightedRollout) string {
	text := waitingFor(rollout)
	if because, action, ok := strings.Cut(text, ": "+rollout.Status.OutcomeMessage+". "); ok {
		return because + ". " + action
	}
	return text
}

// place says where in its plan a rollout is.
func place(status *v1alpha1.WeightedRolloutStatus) string {
	text := fmt.Sprintf("at %s percent", *status.Share.Desired)
	if *status.Share.Desired != status.Stage.Weight {
		text += fmt.Sprintf(", on the way to %s", status.Stage.Weight)
	}
	return text + " in stage " + status.Stage.Position
}

// gate says what the next raise lacks of evidence, and about how much of it; empty if
// it lacks nothing or that is not known. The lock is held.
func (o *observation) gate() string {
	d := o.present()
	if d == nil {
		return ""
	}
	gate, status := d.Stage, &o.rollout.Status
	if status.Stage != nil && status.Share.Desired != nil && *status.Share.Desired != status.Stage.Weight {
		gate = d.Ramp
	}
	if gate.Open || d.Verdict.Reason == v1alpha1.ReasonBreach {
		// The rollout says itself that it waits for the end of a breach.
		return ""
	}
	text := strings.TrimSuffix(gate.What, " since the share was confirmed")
	if gate.AboutSeconds > 0 {
		text += fmt.Sprintf(", about %.0fs", gate.AboutSeconds)
	}
	return text
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
