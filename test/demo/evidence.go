package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/live"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

const evidenceInterval = 500 * time.Millisecond

// readEvidence asks the manager for the evidence that it is gathering, as a person
// with the right to it does. No answer is no evidence: Prometheus is shown then.
func readEvidence(ctx context.Context, manager *testbed.Manager, token string, s scenario, seen *observation) error {
	for {
		seen.evidenceSeen(askEvidence(ctx, manager, token, s))
		if !rest(ctx, evidenceInterval) {
			return nil
		}
	}
}

// askEvidence returns nil if there is no evidence.
func askEvidence(ctx context.Context, manager *testbed.Manager, token string, s scenario) *live.Document {
	status, body, err := manager.Ask(ctx, live.Prefix+namespace+"/"+s.name, token)
	if err != nil || status != http.StatusOK {
		return nil
	}
	document := &live.Document{}
	if json.Unmarshal(body, document) != nil {
		return nil
	}
	return document
}

// present returns the evidence about the present share, or nil. The lock is held.
func (o *observation) present() *live.Document {
	if o.evidence == nil || o.rollout == nil {
		return nil
	}
	confirmed := o.rollout.Status.Share.ConfirmedAt
	about := o.evidence.ConfirmedAt
	if confirmed == nil || about == nil || o.evidence.Attempt != o.rollout.Status.Attempt ||
		!about.Truncate(time.Microsecond).Equal(confirmed.Truncate(time.Microsecond)) {
		return nil
	}
	return o.evidence
}

// numbers describes a track by the last evaluation, or by Prometheus until there is
// one. The lock is held.
func (o *observation) numbers(s *screen, t track) string {
	if d := o.present(); d != nil && len(d.Evaluations) > 0 {
		last := d.Evaluations[len(d.Evaluations)-1]
		n := [2]*live.Numbers{last.Stable, last.Canary}[t]
		if n != nil && o.rollout.Spec.Health != nil {
			return evaluated(s, n, o.rollout.Spec.Health)
		}
	}
	return o.quality[t].describe(s)
}

// evaluated describes the requests of one window.
func evaluated(s *screen, n *live.Numbers, spec *v1alpha1.Health) string {
	if n.Requests == 0 {
		return s.dim(" no requests")
	}
	text := fmt.Sprintf("%4.0f requests in %s, %s", n.Requests, spec.Window, s.failed(100*n.Errors/n.Requests))
	if spec.Latency == nil {
		return text
	}
	quantile := "-"
	if n.QuantileSeconds != nil {
		quantile = fmt.Sprintf("%.0f ms", 1000**n.QuantileSeconds)
	}
	text += fmt.Sprintf(", p%s %7s", spec.Latency.Percentile, quantile)
	limit, err := spec.Latency.Max.Parse()
	if n.Slow == nil || err != nil {
		return text
	}
	slow := fmt.Sprintf("%.0f over %s", *n.Slow, limit)
	if *n.Slow > 0 {
		slow = s.red(slow)
	}
	return text + ", " + slow
}

// failed writes the part of failed requests.
func (s *screen) failed(percent float64) string {
	text := fmt.Sprintf("%5.1f %% failed", percent)
	if percent > 0 {
		return s.red(text)
	}
	return text
}

// verdict is the newest one: that of the evidence, or the snapshot in the status. The
// lock is held.
func (o *observation) verdict(s *screen) string {
	state, message := v1alpha1.VerdictState(""), ""
	switch d := o.present(); {
	case d != nil:
		state, message = v1alpha1.VerdictState(d.Verdict.State), d.Verdict.Message
	case o.rollout != nil && o.rollout.Status.Verdict != nil:
		state, message = o.rollout.Status.Verdict.State, o.rollout.Status.Verdict.Message
	default:
		return "none yet"
	}
	text := string(state)
	switch state {
	case v1alpha1.VerdictHealthy:
		text = s.green(text)
	case v1alpha1.VerdictUnhealthy:
		text = s.red(text)
	case v1alpha1.VerdictDegraded:
		text = s.yellow(text)
	case v1alpha1.VerdictUnknown:
	}
	if message == "" {
		return text
	}
	return text + ": " + message
}

// comparison says how much evidence there is that the canary is worse than stable. The
// lock is held.
func (o *observation) comparison() string {
	d := o.present()
	if d == nil || d.Comparison == nil || d.Comparison.Through == nil {
		return ""
	}
	evidence := fmt.Sprintf("%.2g", d.Comparison.Evidence)
	if d.Comparison.Evidence >= 100 {
		evidence = "over 100"
	}
	return fmt.Sprintf("evidence of it is %s; it takes %.0f or more", evidence, d.Comparison.Proof)
}

// doing says what the rollout does or waits for, and about how much of it is left. The
// lock is held.
func (o *observation) doing(now time.Time) string {
	if o.rollout == nil {
		return ""
	}
	status := &o.rollout.Status
	gate := o.gate()
	if waitsForEvidence(status) && gate != "" {
		return v1alpha1.ReasonAwaitingEvidence + ": " + place(status) + ": " + gate
	}
	text := waitingFor(o.rollout)
	if next := status.NextTransitionTime; next != nil {
		if left := next.Sub(now).Round(time.Second); left > 0 {
			text += fmt.Sprintf(", %s to go", left)
		}
	}
	if gate != "" {
		text += "; " + gate
	}
	return text
}

// waitsForEvidence says that it is for evidence alone that the rollout waits.
func waitsForEvidence(status *v1alpha1.WeightedRolloutStatus) bool {
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReconciling)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == v1alpha1.ReasonAwaitingEvidence &&
		status.Share.Desired != nil && status.Stage != nil && status.Stage.ClockStoppedSince == nil
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
