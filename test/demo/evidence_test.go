package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

// watched is an observation of a rollout at 20 percent, on the way to 50, and of the
// evidence about that.
func watched(t *testing.T) *observation {
	t.Helper()
	_, rollout, err := manifests(allScenarios[0])
	if err != nil {
		t.Fatal(err)
	}
	confirmed := metav1.NewMicroTime(time.Date(2026, time.March, 2, 9, 0, 0, 123456000, time.UTC))
	desired := v1alpha1.Percent("20")
	rollout.Status = v1alpha1.WeightedRolloutStatus{
		Phase: v1alpha1.PhaseProgressing, Attempt: 1,
		Share:   v1alpha1.ShareStatus{Desired: &desired, ConfirmedAt: &confirmed},
		Stage:   &v1alpha1.StageStatus{Index: 4, Position: "5/6", Weight: "50"},
		Verdict: &v1alpha1.VerdictStatus{State: v1alpha1.VerdictHealthy, Message: "as of the last transition"},
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAwaitingEvidence,
			Message: "at 20 percent, on the way to 50 in stage 5/6: waiting for 100 requests at this share (health.minRampRequests)",
		}},
	}
	seen := newObservation(allScenarios[0], &screen{})
	seen.rollout = rollout
	seen.evidence = &live.Document{
		Attempt: 1, ConfirmedAt: new(confirmed.Time),
		Verdict:    live.Verdict{State: "Unknown", Reason: v1alpha1.ReasonInsufficientRequests, Message: "60 of 100 requests"},
		Ramp:       live.Awaited{What: "about 40 more requests (60 of 100)", Requests: 40, AboutSeconds: 12},
		Stage:      live.Awaited{What: "about 440 more requests (60 of 500)", Requests: 440, AboutSeconds: 132},
		Comparison: &live.Comparison{Evidence: 2.25, Proof: 20, Through: new(confirmed.Time)},
		Evaluations: []live.Evaluation{
			{Stable: &live.Numbers{Requests: 1}, Canary: &live.Numbers{Requests: 2}},
			{
				Stable: &live.Numbers{Requests: 742, Slow: new(0.0), QuantileSeconds: new(0.005)},
				Canary: &live.Numbers{Requests: 8, Errors: 2, Slow: new(8.0), QuantileSeconds: new(2.97)},
			},
		},
	}
	return seen
}

func texts(o *observation) map[string]string {
	all := map[string]string{}
	for _, f := range o.facts(&screen{}) {
		all[f.label] = f.text
	}
	return all
}

func TestEvidenceIsShown(t *testing.T) {
	want := map[string]string{
		"gateway": "not measured yet",
		"stable":  " 742 requests in 3s,   0.0 % failed, p99    5 ms, 0 over 1.5s",
		"canary":  "   8 requests in 3s,  25.0 % failed, p99 2970 ms, 8 over 1.5s",
		"worse?":  "evidence of it is 2.2; it takes 20 or more",
		"verdict": "Unknown: 60 of 100 requests",
		"now":     "AwaitingEvidence: at 20 percent, on the way to 50 in stage 5/6: about 40 more requests (60 of 100), about 12s",
	}
	if diff := cmp.Diff(want, texts(watched(t))); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

// TestEvidenceOfAnotherShare: what was gathered at another share, or in another
// attempt, says nothing about this one.
func TestEvidenceOfAnotherShare(t *testing.T) {
	for name, change := range map[string]func(*observation){
		"none":            func(o *observation) { o.evidence = nil },
		"another share":   func(o *observation) { o.evidence.ConfirmedAt = new(o.evidence.ConfirmedAt.Add(-time.Second)) },
		"another attempt": func(o *observation) { o.evidence.Attempt = 2 },
		"not confirmed":   func(o *observation) { o.rollout.Status.Share.ConfirmedAt = nil },
	} {
		t.Run(name, func(t *testing.T) {
			seen := watched(t)
			change(seen)
			seen.quality[canary] = quality{errorPercent: 33.3, p99: 0.005}
			want := map[string]string{
				"gateway": "not measured yet",
				"stable":  " no requests",
				"canary":  " all requests in 5s,  33.3 % failed, p99    5 ms",
				"worse?":  "",
				"verdict": "Healthy: as of the last transition",
				"now":     "AwaitingEvidence: " + seen.rollout.Status.Conditions[0].Message,
			}
			if diff := cmp.Diff(want, texts(seen)); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDoing(t *testing.T) {
	const soaking = "at 50 percent in stage 5/6 for 8s"
	condition := func(o *observation) *metav1.Condition { return &o.rollout.Status.Conditions[0] }
	for name, test := range map[string]struct {
		change func(*observation)
		want   string
	}{
		"the stage's share": {func(o *observation) { o.rollout.Status.Stage.Weight = "20" },
			"AwaitingEvidence: at 20 percent in stage 5/6: about 440 more requests (60 of 500), about 132s"},
		"soaking, with time to go": {func(o *observation) {
			condition(o).Reason, condition(o).Message = v1alpha1.ReasonSoaking, soaking
			o.rollout.Status.NextTransitionTime = new(metav1.NewTime(o.rollout.Status.Share.ConfirmedAt.Add(8 * time.Second)))
		}, "Soaking: " + soaking + ", 3s to go; about 40 more requests (60 of 100), about 12s"},
		"soaking, on enough evidence": {func(o *observation) {
			condition(o).Reason, condition(o).Message = v1alpha1.ReasonSoaking, soaking
			o.evidence.Ramp = live.Awaited{Open: true}
		}, "Soaking: " + soaking},
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
	} {
		t.Run(name, func(t *testing.T) {
			seen := watched(t)
			test.change(seen)
			if got := seen.doing(seen.rollout.Status.Share.ConfirmedAt.Add(5 * time.Second)); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestLongTextsFit(t *testing.T) {
	seen := watched(t)
	height := len(seen.frame(&screen{}))
	seen.evidence.Verdict.Message = strings.Repeat("twelve words ", 40)
	seen.evidence.Ramp.What = strings.Repeat("and so on ", 40)
	frame := seen.frame(&screen{})
	if len(frame) != height {
		t.Errorf("the block has %d lines, and %d with long texts", height, len(frame))
	}
	if !strings.HasSuffix(frame[len(frame)-1], "…") {
		t.Errorf("the last line does not show that it is cut: %q", frame[len(frame)-1])
	}
	for _, line := range append(frame, seen.lines()...) {
		if n := utf8.RuneCountInString(line); n > defaultWidth {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}
