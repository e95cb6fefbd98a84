package main

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

// after is a time after the share of watched was confirmed.
func after(o *observation, d time.Duration) *metav1.Time {
	return new(metav1.NewTime(o.rollout.Status.Share.ConfirmedAt.Add(d)))
}

func TestDoing(t *testing.T) {
	condition := func(o *observation) *metav1.Condition { return &o.rollout.Status.Conditions[0] }
	soaks := func(o *observation, next time.Duration) {
		status := &o.rollout.Status
		status.Stage.Weight, status.Stage.Soak = "20", "8s"
		condition(o).Reason, condition(o).Message = v1alpha1.ReasonSoaking, "at 20 percent in stage 5/6 for 8s"
		status.NextTransitionTime = after(o, next)
		o.evidence.Stage = live.Awaited{Open: true}
	}
	for name, test := range map[string]struct {
		change func(*observation)
		want   string
	}{
		"the stage's share": {func(o *observation) { o.rollout.Status.Stage.Weight = "20" },
			"AwaitingEvidence: at 20 percent in stage 5/6: about 440 more requests (60 of 500), about 132s"},
		"soaking, without enough evidence": {func(o *observation) {
			soaks(o, 8*time.Second)
			o.evidence.Stage = live.Awaited{What: "about 5 more requests (15 of 20)", AboutSeconds: 2}
		}, "Soaking: at 20 percent in stage 5/6: of the 8s soak 3s are left; about 5 more requests (15 of 20), about 2s"},
		"soaking, the next time is rounded up": {func(o *observation) { soaks(o, 14*time.Second) },
			"Soaking: at 20 percent in stage 5/6: of the 8s soak 8s are left"},
		"soaking, almost over": {func(o *observation) { soaks(o, 6*time.Second) },
			"Soaking: at 20 percent in stage 5/6: of the 8s soak 1s is left"},
		"soaking, over": {func(o *observation) { soaks(o, 4*time.Second) },
			"Soaking: at 20 percent in stage 5/6: the 8s soak is over"},
		"soaking, with a remark": {func(o *observation) {
			soaks(o, 8*time.Second)
			condition(o).Message += "; the command is ignored"
		}, "Soaking: at 20 percent in stage 5/6: of the 8s soak 3s are left; the command is ignored"},
		"soaking, in words that are not known": {func(o *observation) {
			soaks(o, 8*time.Second)
			condition(o).Message = "otherwise"
		}, "Soaking: otherwise, 3s to go"},
		"no time is known": {func(o *observation) {
			o.evidence.Ramp = live.Awaited{What: "the response times rise"}
		}, "AwaitingEvidence: at 20 percent, on the way to 50 in stage 5/6: the response times rise"},
		"a breach": {func(o *observation) {
			condition(o).Reason, condition(o).Message = v1alpha1.ReasonDegraded, "waiting for the breach of latency to end"
			o.evidence.Verdict.Reason, o.evidence.Ramp.What = v1alpha1.ReasonBreach, "the breach to end"
		}, "Degraded: waiting for the breach of latency to end"},
		"nothing is left to do": {func(o *observation) {
			o.evidence = nil
			condition(o).Type, condition(o).Reason, condition(o).Message = v1alpha1.ConditionReady, v1alpha1.ReasonPromoted, "done"
		}, "Promoted: done"},
		"rolled back, in words that are not known": {func(o *observation) {
			o.rollout.Status.Phase, o.rollout.Status.OutcomeMessage = v1alpha1.PhaseRolledBack, "too slow"
			condition(o).Type, condition(o).Reason, condition(o).Message = v1alpha1.ConditionStalled, v1alpha1.ReasonRouteWriteFailed, "no right"
		}, "RouteWriteFailed: no right"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := watched(t)
			test.change(seen)
			if got := seen.doing(after(seen, 5*time.Second).Time); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// TestDoingWhileAProofWaits: more good requests are not what it is about then.
func TestDoingWhileAProofWaits(t *testing.T) {
	seen := watched(t)
	status := &seen.rollout.Status
	status.Stage.ClockStoppedSince = status.Share.ConfirmedAt
	status.Conditions[0].Reason = v1alpha1.ReasonDegraded
	status.Conditions[0].Message = "the soak's clock stands still: waiting for more good requests"
	seen.evidence.Verdict.Reason = v1alpha1.ReasonAboveLimit
	seen.evidence.Ramp.What = "about 62 more good requests"
	const good = "Degraded: the soak's clock stands still: waiting for more good requests; about 62 more good requests, about 12s"
	if got := seen.doing(time.Now()); got != good {
		t.Errorf("got  %q\nwant %q", got, good)
	}
	seen.evidence.Comparison.Evidence, seen.evidence.Comparison.Waits = 92, "5 bad requests"
	const want = "Degraded: at 20 percent, on the way to 50 in stage 5/6, the soak's clock stands still: the canary is proven to be worse; its rollback awaits what \"worse?\" says"
	if got := seen.doing(time.Now()); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
