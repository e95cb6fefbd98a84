package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/health/compare"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
)

// silentSpec rolls back after two hours without a verdict.
func silentSpec() v1alpha1.WeightedRolloutSpec {
	spec := defaultSpec()
	spec.Health.OnNoData, spec.Health.NoDataTimeout = v1alpha1.NoDataRollback, "2h"
	return spec
}

// TestSilenceRollsBackWhereTheSpecSaysSo: the reason is that of the silence, and not
// that the canary was unhealthy.
func TestSilenceRollsBackWhereTheSpecSaysSo(t *testing.T) {
	for name, tc := range map[string]struct {
		mood   mood
		reason string
	}{
		"too few requests": {quiet, v1alpha1.ReasonInsufficientRequests},
		"no metrics":       {blind, v1alpha1.ReasonProviderError},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, silentSpec())
			w.feel("canary", tc.mood)
			w.until(time.Hour, "it has 1 percent", w.atShare("1"))
			w.runFor(115 * time.Minute)
			if w.status().Outcome != v1alpha1.OutcomeInProgress || w.wire() != "99/1" {
				t.Fatalf("before the time is up: %s", w.summary())
			}
			w.runFor(10 * time.Minute)
			w.expect(v1alpha1.OutcomeRolledBack, tc.reason, "100/0")
			if !strings.Contains(w.status().OutcomeMessage, "no verdict for 2h (health.onNoData): ") {
				t.Errorf("message %q", w.status().OutcomeMessage)
			}
		})
	}
}

// TestSilenceIsCountedFromTheLastVerdict, also while the rollout is paused, and over
// changing reasons.
func TestSilenceIsCountedFromTheLastVerdict(t *testing.T) {
	w := newWorld(t, silentSpec())
	w.until(time.Hour, "it has 1 percent", w.atShare("1"))
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true })
	w.runFor(5 * time.Hour)
	w.feel("canary", blind)
	w.runFor(90 * time.Minute)
	if w.status().Outcome != v1alpha1.OutcomeInProgress || w.status().NoDataSince == nil {
		t.Fatalf("after an hour and a half: %s", w.summary())
	}
	w.feel("canary", good)
	w.runFor(10 * time.Minute)
	if w.status().NoDataSince != nil {
		t.Fatal("the silence is over, and its record is not")
	}
	w.feel("canary", blind)
	w.runFor(115 * time.Minute)
	if w.status().Outcome != v1alpha1.OutcomeInProgress {
		t.Fatalf("two silences were added up: %s", w.summary())
	}
	w.runFor(10 * time.Minute)
	w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonProviderError, "100/0")
}

// TestADipIsNoLongSilence: that requests become too few after a good time is counted from
// then on, and not from the confirmation.
func TestADipIsNoLongSilence(t *testing.T) {
	for name, share := range map[string]v1alpha1.Percent{"at a stage": "1", "on the ramp": "2"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, silentSpec())
			w.until(3*time.Hour, "it has its share", w.atShare(share))
			w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true })
			w.runFor(5 * time.Hour)
			for range 2 {
				w.feel("canary", quiet)
				w.runFor(110 * time.Minute)
				if w.status().Outcome != v1alpha1.OutcomeInProgress {
					t.Fatalf("after a dip: %s", w.summary())
				}
				w.feel("canary", good)
				w.runFor(10 * time.Minute)
			}
			w.feel("canary", quiet)
			w.runFor(130 * time.Minute)
			w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonInsufficientRequests, "100/0")
		})
	}
}

// TestSoakIsWatched: while stable is gone and nothing is seen of the canary, its soak
// does not go on.
func TestSoakIsWatched(t *testing.T) {
	w := newWorld(t, defaultSpec())
	w.until(time.Hour, "it soaks at 1 percent", w.atShare("1"))
	began := w.at
	w.runFor(5 * time.Minute)
	w.stableReady = false
	w.feel("canary", blind)
	w.runFor(40 * time.Minute)
	w.stableReady = true
	w.feel("canary", good)
	w.until(2*time.Hour, "the next stage begins", w.atShare("2"))
	if soaked := w.at.Sub(began) - 40*time.Minute; soaked < 28*time.Minute {
		t.Errorf("watched for %s", soaked)
	}
}

// TestSilenceHoldsByDefault, and is no soak.
func TestSilenceHoldsByDefault(t *testing.T) {
	w := newWorld(t, defaultSpec())
	w.until(time.Hour, "it has 1 percent", w.atShare("1"))
	began := w.at
	w.runFor(10 * time.Minute)
	w.feel("canary", blind)
	w.runFor(48 * time.Hour)
	w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonAwaitingEvidence, "99/1")
	if w.status().Stage.ClockStoppedSince == nil {
		t.Fatal("the soak's clock runs while nothing is seen")
	}
	w.feel("canary", good)
	w.until(time.Hour, "the next stage begins", w.atShare("2"))
	if soaked := w.at.Sub(began) - 48*time.Hour; soaked < 30*time.Minute {
		t.Errorf("soaked for %s", soaked)
	}
}

// TestAWaitForAProofIsNoSilence.
func TestAWaitForAProofIsNoSilence(t *testing.T) {
	w := newWorld(t, silentSpec())
	w.feel("canary", rising)
	w.runFor(10 * time.Hour)
	if w.status().Outcome != v1alpha1.OutcomeInProgress {
		t.Errorf("rolled back: %s", w.summary())
	}
}

// TestComparisonIsKeptOverShares: what was seen at one share is recorded with the change
// to the next, given to the next evidence, and dropped with the attempt.
func TestComparisonIsKeptOverShares(t *testing.T) {
	block := compare.Block{Stable: compare.Counts{Bad: 10, Total: 1000}, Canary: compare.Counts{Bad: 3, Total: 100}}
	w := newWorld(t, defaultSpec())
	w.until(time.Hour, "it soaks at 1 percent", w.atShare("1"))
	w.runFor(20 * time.Minute)
	seen := health.Comparison{Errors: compare.Inferiority{}.Add(block), Through: w.at}
	obs := w.observe()
	obs.Verdict.Compared = seen
	d := rollout.Decide(obs, w.at.Add(2*time.Hour))
	if d.Share == 100 || d.Status.Comparison == nil {
		t.Fatalf("share %v, comparison %v", d.Share, d.Status.Comparison)
	}
	got := rollout.Compared(&d.Status)
	if !got.Through.Equal(seen.Through) || got.Errors.String() != seen.Errors.String() {
		t.Errorf("got %+v, want %+v", got, seen)
	}
	kept := *obs.Status
	kept.Comparison = seen.Status()
	obs.Status = &kept
	spec := *obs.Spec
	spec.Revision = "v3"
	obs.Spec = &spec
	if again := rollout.Decide(obs, w.at.Add(2*time.Hour)); again.Status.Comparison != nil {
		t.Errorf("another revision begins with %+v", again.Status.Comparison)
	}
	spec.Revision = "v2"
	obs.Verdict = health.Verdict{State: v1alpha1.VerdictUnhealthy, Reason: v1alpha1.ReasonWorseThanStable, Check: "error-rate", Message: "worse", Compared: seen}
	back := rollout.Decide(obs, w.at.Add(2*time.Hour))
	if back.Status.Outcome != v1alpha1.OutcomeRolledBack || back.Status.Comparison != nil || back.Share != 0 {
		t.Errorf("one that is worse: %+v", back.Status)
	}
	spec.OnUnhealthy.Action = v1alpha1.UnhealthyBreak
	if broken := rollout.Decide(obs, w.at.Add(2*time.Hour)); broken.Status.Comparison != nil || broken.Status.Breaker == nil {
		t.Errorf("after a break: %+v", broken.Status)
	}
}

// TestUnverifiedMetricsAreToldOf with every attempt.
func TestUnverifiedMetricsAreToldOf(t *testing.T) {
	spec := defaultSpec()
	spec.Health.Prometheus = &v1alpha1.Prometheus{TLS: &v1alpha1.TLS{InsecureSkipVerify: true}}
	w := newWorld(t, spec)
	w.runFor(time.Minute)
	told := 0
	for _, reason := range w.journal.told {
		if reason == v1alpha1.ReasonMetricsNotVerified {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times: %v", told, w.journal.told)
	}
}
