package rollout_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestClock: no jump of the clock skips a gate, and none makes a wait endless.
func TestClock(t *testing.T) {
	for _, tc := range []struct {
		name string
		jump time.Duration
		// the stage ends between these times after the jump, in true time
		earliest, latest time.Duration
	}{
		{"none", 0, 2 * time.Minute, 2 * time.Minute},
		{"back 90 s", -90 * time.Second, 2 * time.Minute, 6 * time.Minute},
		{"back a year", -365 * 24 * time.Hour, 2 * time.Minute, 6 * time.Minute},
		{"forward 10 years", 10 * 365 * 24 * time.Hour, 0, 2 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := at20(t)
			w.runFor(3 * time.Minute)
			jumped := w.at
			w.skew, w.laws.disturbed = tc.jump, w.at
			w.restart()
			w.runFor(time.Second)
			if tc.jump < 0 {
				// The metrics are stamped with the same clock again.
				w.at, w.skew = w.at.Add(tc.jump), 0
				jumped = jumped.Add(tc.jump)
				w.feel("canary", good)
			}
			w.until(time.Hour, "the stage is over", func() bool { return stageIndex(w.status()) == 2 })
			if took := w.at.Sub(jumped); took < tc.earliest || took > tc.latest {
				t.Errorf("the stage ends %s after the jump, want %s to %s", took, tc.earliest, tc.latest)
			}
		})
	}
	t.Run("forward, without evidence", func(t *testing.T) {
		w := at20(t)
		w.feel("canary", blind)
		w.skew, w.laws.disturbed = 24*time.Hour, w.at
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonAwaitingEvidence, "80/20")
	})
	t.Run("back right after the soak was started again", func(t *testing.T) {
		w := at20(t)
		w.runFor(4 * time.Minute)
		w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Plan.Stages[1].Soak = "3m" })
		w.settle()
		began := w.at
		w.skew, w.laws.disturbed = -time.Second, w.at
		w.until(time.Hour, "the stage is over", func() bool { return stageIndex(w.status()) == 2 })
		if soaked := w.at.Sub(began); soaked < 3*time.Minute {
			t.Errorf("the soak of 3m took %s", soaked)
		}
	})
	t.Run("back while the route is rejected", func(t *testing.T) {
		w := at20(t)
		w.gateway.rejects = "BackendNotFound"
		w.runFor(10 * time.Second)
		w.skew, w.laws.disturbed = -24*time.Hour, w.at
		w.runFor(3 * time.Minute)
		if w.status().OutcomeReason != v1alpha1.ReasonRouteNotResolved {
			t.Error(w.summary())
		}
	})
}

// TestTamperedStatus: a record that makes no sense is never acted upon upwards.
func TestTamperedStatus(t *testing.T) {
	percent := func(p v1alpha1.Percent) *v1alpha1.Percent { return &p }
	for _, tc := range []struct {
		name    string
		tamper  func(*v1alpha1.WeightedRolloutStatus)
		outcome v1alpha1.Outcome
		stage   int
		reason  string
	}{
		{"stage 99 at 73 percent", func(s *v1alpha1.WeightedRolloutStatus) { s.Stage.Index, s.Share.Desired = 99, percent("73") }, v1alpha1.OutcomeInProgress, 1, ""},
		{"73 percent, unconfirmed", func(s *v1alpha1.WeightedRolloutStatus) { s.Share.Desired, s.Share.ConfirmedAt = percent("73"), nil }, v1alpha1.OutcomeInProgress, 1, ""},
		{"stage -1", func(s *v1alpha1.WeightedRolloutStatus) { s.Stage.Index = -1 }, v1alpha1.OutcomeInProgress, 1, ""},
		{"no stage", func(s *v1alpha1.WeightedRolloutStatus) { s.Stage = nil }, v1alpha1.OutcomeInProgress, 1, ""},
		{"promoted at 20 percent", func(s *v1alpha1.WeightedRolloutStatus) { s.Outcome = v1alpha1.OutcomePromoted }, v1alpha1.OutcomeInProgress, 3, ""},
		{"no number", func(s *v1alpha1.WeightedRolloutStatus) { s.Share.Desired = percent("abc") }, v1alpha1.OutcomeInProgress, 1, v1alpha1.ReasonInvalidStatus},
		{"no share", func(s *v1alpha1.WeightedRolloutStatus) { s.Share.Desired = nil }, v1alpha1.OutcomeInProgress, 1, v1alpha1.ReasonInvalidStatus},
		{"no such outcome", func(s *v1alpha1.WeightedRolloutStatus) { s.Outcome = "Lost" }, "Lost", 1, v1alpha1.ReasonInvalidStatus},
		{"no outcome", func(s *v1alpha1.WeightedRolloutStatus) { s.Outcome = "" }, "", 1, v1alpha1.ReasonInvalidStatus},
		{"attempt -1", func(s *v1alpha1.WeightedRolloutStatus) { s.Attempt = -1 }, v1alpha1.OutcomeInProgress, 0, ""},
		{"nothing is left", func(s *v1alpha1.WeightedRolloutStatus) { *s = v1alpha1.WeightedRolloutStatus{} }, v1alpha1.OutcomeInProgress, 0, ""},
		{"confirmed in the future", func(s *v1alpha1.WeightedRolloutStatus) {
			s.Share.ConfirmedAt = &metav1.MicroTime{Time: start.Add(100 * time.Hour)}
		}, v1alpha1.OutcomeInProgress, 1, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := at20(t)
			tc.tamper(w.status())
			w.laws.disturbed = w.at
			before := len(w.journal.wires)
			w.settle()
			got := conditionOf(w.status(), v1alpha1.ConditionStalled)
			if w.status().Outcome != tc.outcome || stageIndex(w.status()) != tc.stage || tc.reason != "" && got.Reason != tc.reason {
				t.Errorf("%s, stage %d, %s: %s", w.summary(), stageIndex(w.status()), got.Reason, got.Message)
			}
			for _, wire := range w.journal.wires[before:] {
				if wire != "web 100/0" {
					t.Errorf("written: %s", wire)
				}
			}
			if tc.reason == "" {
				w.until(100*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
				return
			}
			w.runFor(100 * time.Hour)
			if w.wire() != "80/20" {
				t.Errorf("the weights were moved: %s", w.summary())
			}
			w.say(v1alpha1.VerbFinish)
			w.settle()
			if w.status().Command.Accepted {
				t.Error("finish is said to be carried out")
			}
			if !strings.Contains(got.Message, "retry") {
				t.Errorf("message %q", got.Message)
			}
			w.say(v1alpha1.VerbRetry)
			w.settle()
			if w.wire() != "100/0" || w.status().Outcome != v1alpha1.OutcomeInProgress {
				t.Errorf("after retry: %s", w.summary())
			}
		})
	}
}

// TestHistoryIsKept: a rollback that has to wait for stable loses no record.
func TestHistoryIsKept(t *testing.T) {
	w := newWorld(t, smallSpec())
	w.settle()
	for i := range 15 {
		w.revise(string(rune('a' + i)))
		w.settle()
	}
	if got := len(w.status().History); got != 10 {
		t.Fatalf("%d records, want the last 10", got)
	}
	w.until(24*time.Hour, "the revision is promoted", w.reason(v1alpha1.ReasonPromoted))
	w.stableReady = false
	w.gateway.rejects = "BackendNotFound"
	w.runFor(10 * time.Minute)
	w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonStableUnavailable, "0/100")
	if got := len(w.status().History); got != 10 {
		t.Errorf("%d records are left of 10", got)
	}
}
