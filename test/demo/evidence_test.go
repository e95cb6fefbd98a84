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
			seen.quality[canary] = quality{requests: 12, errorPercent: 33.3, p99: 0.005}
			want := map[string]string{
				"gateway": "not measured yet",
				"stable":  " not known yet",
				"canary":  "  12 requests in 5s,  33.3 % failed, p99    5 ms (Prometheus)",
				"worse?":  "not compared yet",
				"verdict": "Healthy: as of the last transition",
				"now":     "AwaitingEvidence: " + seen.rollout.Status.Conditions[0].Message,
			}
			if diff := cmp.Diff(want, texts(seen)); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

// counted adds what the gateway had counted a second before now, and now.
func counted(o *observation, requests [2]float64) {
	now := time.Now()
	o.samples = []sample{{at: now.Add(-time.Second)}, {at: now, tracks: [2]count{{requests: requests[stable]}, {requests: requests[canary]}}}}
}

// TestNotKnownIsNotNothing: that Prometheus has nothing to say does not mean that there
// were no requests, and the gateway knows better.
func TestNotKnownIsNotNothing(t *testing.T) {
	seen := watched(t)
	seen.evidence = nil
	counted(seen, [2]float64{247, 0})
	got := [2]string{seen.numbers(&screen{}, stable), seen.numbers(&screen{}, canary)}
	if want := [2]string{" not known yet", " no requests"}; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestComparison(t *testing.T) {
	desired := func(o *observation, weight v1alpha1.Percent) { o.rollout.Status.Share.Desired = &weight }
	for name, test := range map[string]struct {
		change func(*observation)
		want   string
	}{
		"almost proven": {func(o *observation) { o.evidence.Comparison.Evidence = 19.99 },
			"evidence of it is 19; it takes 20 or more"},
		"proven": {func(o *observation) { o.evidence.Comparison.Evidence = 20 },
			"proven (20 of 20)"},
		"far beyond": {func(o *observation) { o.evidence.Comparison.Evidence = 1e9 },
			"proven (over 100 of 20)"},
		"waits": {func(o *observation) {
			o.evidence.Comparison.Evidence = 92.4
			o.evidence.Comparison.Waits = "5 bad requests of the canary at this share; there have been 4"
		}, "proven (92 of 20); awaits 5 bad requests of the canary at this share; there have been 4"},
		"before the first window": {func(o *observation) { o.evidence.Comparison.Through = nil },
			"not compared yet"},
		"the canary has all traffic": {func(o *observation) {
			o.evidence.Comparison = nil
			desired(o, "100")
		}, "not compared: the canary has all traffic"},
		"before the rollout": {func(o *observation) { o.rollout = nil },
			"not compared yet"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := watched(t)
			test.change(seen)
			if got := seen.comparison(); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// TestAfterARollback: the canary has no traffic then, and what was seen of it stays.
func TestAfterARollback(t *testing.T) {
	const why = "latency: 5 of 5 requests took longer than 1.5s"
	seen := watched(t)
	seen.evidenceSeen(seen.evidence)
	seen.evidenceSeen(&live.Document{Attempt: 1})
	seen.quality = [2]quality{{requests: 1240, p99: 0.005}, {requests: 4, p99: 0.005}}
	status := &seen.rollout.Status
	status.Phase, status.OutcomeMessage = v1alpha1.PhaseRolledBack, why
	status.Share, status.Stage = v1alpha1.ShareStatus{Desired: new(v1alpha1.Percent("0"))}, nil
	status.Verdict = &v1alpha1.VerdictStatus{State: v1alpha1.VerdictUnhealthy, Reason: v1alpha1.ReasonBreach, Message: "5 of 5 requests took longer than 1.5s"}
	status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUnhealthy,
		Message: "rolled back: " + why + ". Set another revision, or give the retry command",
	}}
	want := map[string]string{
		"gateway": "not measured yet",
		"stable":  "1240 requests in 5s,   0.0 % failed, p99    5 ms (Prometheus)",
		"canary":  "last 3s: 8 requests,  25.0 % failed, p99 2970 ms, 8 over 1.5s",
		"worse?":  "evidence of it was 2.2; it takes 20 or more",
		"verdict": "Unhealthy: 5 of 5 requests took longer than 1.5s",
		"now":     "Unhealthy: rolled back. Set another revision, or give the retry command",
	}
	if diff := cmp.Diff(want, texts(seen)); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	status.Verdict.Reason = v1alpha1.ReasonWorseThanStable
	if got, want := seen.comparison(), "proven: that is why the canary was rolled back"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	seen.last, status.Verdict = nil, nil
	if got, want := seen.comparison(), "not compared"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := seen.numbers(&screen{}, canary), "   4 requests in 5s,   0.0 % failed, p99    5 ms (Prometheus)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLongTextsFit(t *testing.T) {
	seen := watched(t)
	height := len(seen.frame(&screen{}))
	seen.evidence.Verdict.Message = strings.Repeat("twelve words ", 40)
	seen.evidence.Ramp.What = strings.Repeat("and so on ", 40)
	seen.evidence.Comparison.Evidence, seen.evidence.Comparison.Waits = 1000, strings.Repeat("more and more ", 20)
	many := &live.Numbers{Requests: 123456, Errors: 123456, Slow: new(123456.0), QuantileSeconds: new(1234.5)}
	seen.evidence.Evaluations = append(seen.evidence.Evaluations, live.Evaluation{Stable: many, Canary: many})
	frame := seen.frame(&screen{})
	if len(frame) != height {
		t.Errorf("the block has %d lines, and %d with long texts", height, len(frame))
	}
	if !strings.HasSuffix(frame[len(frame)-1], "…") {
		t.Errorf("the last line does not show that it is cut: %q", frame[len(frame)-1])
	}
	width, _ := (&screen{}).size()
	for i, line := range frame {
		frame[i] = cut(line, width) // as it is drawn
	}
	for _, line := range append(frame, seen.lines()...) {
		if n := utf8.RuneCountInString(line); n > defaultWidth {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}
