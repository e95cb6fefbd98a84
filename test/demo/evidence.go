package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"

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
	if o.evidence == nil || o.rollout == nil || o.rollout.Spec.Health == nil {
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

// numbers describes a track by the newest evaluation, and by Prometheus until there is
// one. Of a canary that was rolled back it is the last evaluation that stays. The lock
// is held.
func (o *observation) numbers(s *screen, t track) string {
	if n := newest(o.present(), t); n != nil {
		lead := fmt.Sprintf("%4.0f requests in %s", n.Requests, o.rollout.Spec.Health.Window)
		return evaluated(s, lead, n, o.rollout.Spec.Health)
	}
	if n := newest(o.last, t); n != nil && t == canary && o.rolledBack() && o.rollout.Spec.Health != nil {
		lead := fmt.Sprintf("last %s: %.0f requests", o.rollout.Spec.Health.Window, n.Requests)
		return evaluated(s, lead, n, o.rollout.Spec.Health)
	}
	counted, ok := o.recently()
	switch q := o.quality[t]; {
	case q.known():
		return q.describe(s)
	case ok && counted.tracks[t].requests == 0:
		return s.dim(" no requests")
	}
	return s.dim(" not known yet")
}

// newest are the numbers of the newest evaluation, or nil.
func newest(d *live.Document, t track) *live.Numbers {
	if d == nil || len(d.Evaluations) == 0 {
		return nil
	}
	last := d.Evaluations[len(d.Evaluations)-1]
	return [2]*live.Numbers{last.Stable, last.Canary}[t]
}

func (o *observation) rolledBack() bool {
	return o.rollout != nil && o.rollout.Status.Phase == v1alpha1.PhaseRolledBack
}

// evaluated describes the requests of one window, after how many there were.
func evaluated(s *screen, lead string, n *live.Numbers, spec *v1alpha1.Health) string {
	if n.Requests == 0 {
		return s.dim(" no requests")
	}
	text := lead + ", " + s.failed(100*n.Errors/n.Requests)
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

// comparison says how much evidence there is that the canary is worse than stable, and
// what keeps a proof from being acted upon. The lock is held.
func (o *observation) comparison() string {
	d, is := o.present(), "is"
	if o.rolledBack() {
		if v := o.rollout.Status.Verdict; v != nil && v.Reason == v1alpha1.ReasonWorseThanStable {
			return "proven: that is why the canary was rolled back"
		}
		d, is = o.last, "was"
	}
	if d == nil || d.Comparison == nil || d.Comparison.Through == nil {
		return o.notCompared()
	}
	c := d.Comparison
	evidence := fmt.Sprintf("%.2g", c.Evidence)
	switch {
	case c.Evidence >= 100:
		evidence = "over 100"
	case c.Evidence >= 10:
		evidence = fmt.Sprintf("%.0f", math.Floor(c.Evidence)) // what is not proven must not look so
	}
	switch {
	case c.Evidence < c.Proof:
		return fmt.Sprintf("evidence of it %s %s; it takes %.0f or more", is, evidence, c.Proof)
	case c.Waits == "":
		return fmt.Sprintf("proven (%s of %.0f)", evidence, c.Proof)
	}
	return fmt.Sprintf("proven (%s of %.0f); awaits %s", evidence, c.Proof, c.Waits)
}

func (o *observation) notCompared() string {
	switch {
	case o.rolledBack():
		return "not compared"
	case o.rollout != nil && o.rollout.Status.Share.Desired != nil && points(*o.rollout.Status.Share.Desired) == 10000:
		return "not compared: the canary has all traffic"
	}
	return "not compared yet"
}
