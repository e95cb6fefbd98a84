package played

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestC10PauseIsNoShelter: a breach rolls a paused rollout back, and so does one while
// an approval is awaited.
func TestC10PauseIsNoShelter(t *testing.T) {
	w := newWorld(t)
	w.goodQueries()
	w.rollout("paused", ownChecks, soak(1, "10m"))
	w.rollout("approval", ownChecks, func(wr *v1alpha1.WeightedRollout) { wr.Spec.Plan.Stages[1].Approval = v1alpha1.ApprovalRequired })
	w.startManager()
	w.awaitShare("paused", "5")
	w.edit("paused", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Paused = true })
	w.awaitPhase("paused", v1alpha1.PhasePaused)
	w.awaitPhase("approval", v1alpha1.PhaseAwaitingApproval)
	w.mustHold("paused", errorRateMetric, "100/0", "99/1", "95/5")
	for _, name := range []string{"paused", "approval"} {
		w.prom.answer(metricOf(errorRateMetric, name), vector("0.25"))
	}
	for _, name := range []string{"paused", "approval"} {
		wr := w.awaitPhase(name, v1alpha1.PhaseRolledBack)
		if wr.Status.OutcomeReason != v1alpha1.ReasonUnhealthy {
			t.Errorf("%s: %s", name, summary(wr))
		}
		w.wantWeights(name, "100/0", "99/1", "95/5", "100/0")
	}
}

// TestC10PauseIsNoFailure: a healthy rollout is Paused for as long as it is paused, and
// then goes on.
func TestC10PauseIsNoFailure(t *testing.T) {
	w := newWorld(t)
	w.goodQueries()
	w.rollout("web", ownChecks, soak(1, "10m"))
	w.startManager()
	w.awaitShare("web", "5")
	w.edit("web", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Paused = true })
	w.awaitPhase("web", v1alpha1.PhasePaused)
	for range 3 {
		w.mustHold("web", errorRateMetric, "100/0", "99/1", "95/5")
		if wr := w.get("web"); wr.Status.Phase != v1alpha1.PhasePaused {
			t.Fatalf("while it is paused: %s", summary(wr))
		}
	}
	w.edit("web", func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Paused = false
		wr.Spec.Plan.Stages[1].Soak = "1s"
	})
	w.awaitPhase("web", v1alpha1.PhasePromoted)
}

// TestC11OneCheckHasNotSpoken: while one of two checks is silent nothing is raised,
// however good the other is; then there is exactly one raise.
func TestC11OneCheckHasNotSpoken(t *testing.T) {
	w := newWorld(t)
	w.goodQueries()
	w.rollout("web", ownChecks, soak(1, "10m"))
	w.prom.answer(metricOf(latencyMetric, "web"), vector())
	w.startManager()
	wr := w.awaitVerdict("web", v1alpha1.VerdictUnknown, v1alpha1.ReasonNoData)
	if wr.Status.Verdict.Check != "p99-query" {
		t.Errorf("the status names the check %q", wr.Status.Verdict.Check)
	}
	w.mustHold("web", latencyMetric, "100/0", "99/1")
	w.prom.answer(metricOf(latencyMetric, "web"), vector("0.1"))
	w.awaitShare("web", "5")
	w.mustHold("web", latencyMetric, "100/0", "99/1", "95/5")
}

// TestC12TooFewRequests: without requests, or with a few lucky ones, the share is held
// for want of them; with enough it goes on. Where the spec says so a long silence rolls
// back, and is not called unhealthy.
func TestC12TooFewRequests(t *testing.T) {
	w := newWorld(t)
	w.rollout("silent", soak(1, "10m"))
	w.rollout("lucky", soak(1, "10m"))
	w.rollout("gives-up", soak(1, "10m"), func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Health.OnNoData, wr.Spec.Health.NoDataTimeout = v1alpha1.NoDataRollback, "5s"
	})
	for name, perSecond := range map[string]float64{"silent": 0, "lucky": 0.1, "gives-up": 0} {
		w.prom.set(w.namespace, canaryOf(name), traffic{perSecond: perSecond})
	}
	w.startManager()
	for _, name := range []string{"silent", "lucky"} {
		wr := w.awaitVerdict(name, v1alpha1.VerdictUnknown, v1alpha1.ReasonInsufficientRequests)
		if c := condition(wr, v1alpha1.ConditionHealthy); c.Reason != v1alpha1.ReasonInsufficientRequests || !strings.Contains(c.Message, "requests") {
			t.Errorf("%s: the condition says %s: %s", name, c.Reason, c.Message)
		}
	}
	wr := w.awaitPhase("gives-up", v1alpha1.PhaseRolledBack)
	if wr.Status.OutcomeReason != v1alpha1.ReasonInsufficientRequests || !strings.Contains(wr.Status.OutcomeMessage, "health.onNoData") {
		t.Errorf("gives-up: %s: %s", wr.Status.OutcomeReason, wr.Status.OutcomeMessage)
	}
	for _, name := range []string{"silent", "lucky"} {
		w.wantWeights(name, "100/0", "99/1")
		w.prom.set(w.namespace, canaryOf(name), fine)
	}
	for _, name := range []string{"silent", "lucky"} {
		w.awaitShare(name, "5")
	}
}

// TestC28SamplesOfTheFuture are not used, and the clocks are named as the cause.
func TestC28SamplesOfTheFuture(t *testing.T) {
	w := newWorld(t)
	w.goodQueries()
	w.rollout("web", ownChecks, soak(1, "10m"))
	w.prom.answer(metricOf(errorRateMetric, "web"), func(at string) string {
		seconds, err := strconv.ParseFloat(at, 64)
		if err != nil {
			t.Errorf("the time of a query is %q", at)
		}
		return vector("0.001")(strconv.FormatFloat(seconds+300, 'f', 3, 64))
	})
	w.startManager()
	wr := w.awaitVerdict("web", v1alpha1.VerdictUnknown, v1alpha1.ReasonStale)
	if !strings.Contains(wr.Status.Verdict.Message, "clock") {
		t.Errorf("message %q", wr.Status.Verdict.Message)
	}
	w.mustHold("web", errorRateMetric, "100/0", "99/1")
	w.prom.answer(metricOf(errorRateMetric, "web"), vector("0.001"))
	w.awaitShare("web", "5")
}

// TestC42StatusDoesNotGrow: errors and silences in turn, each with a long text, under
// the most checks that there can be, leave the object small, and the newest verdict in
// it.
func TestC42StatusDoesNotGrow(t *testing.T) {
	const limit = 32 << 10
	w := newWorld(t)
	w.goodQueries()
	w.rollout("web", ownChecks, soak(1, "10m"), func(wr *v1alpha1.WeightedRollout) {
		checks := &wr.Spec.Health.Checks
		for i := len(*checks); i < 20; i++ {
			*checks = append(*checks, v1alpha1.Check{
				Name: "check-" + strconv.Itoa(i), Query: templateOf(errorRateMetric), Max: new(v1alpha1.Decimal("0.02")),
			})
		}
	})
	long := strings.Repeat("x", 4<<10)
	var turn atomic.Int64
	w.prom.answer(metricOf(errorRateMetric, "web"), func(at string) string {
		switch turn.Add(1) / 20 % 4 {
		case 0:
			return `{"status":"error","errorType":"execution","error":"` + long + `"}`
		case 1:
			return vector()(at)
		case 2:
			return vector("NaN", long)(at)
		}
		return raw("string", `[AT,"`+long+`"]`)(at)
	})
	w.startManager()
	w.awaitShare("web", "1")
	largest := 0
	for range 20 {
		w.awaitQuestions(40, metricOf(errorRateMetric, "web"))
		wr := w.get("web")
		text, err := json.Marshal(wr)
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, len(text))
		if strings.Contains(string(text), "xxxxxxxx") {
			t.Fatal("a text of the metrics server is in the object")
		}
	}
	if largest > limit {
		t.Errorf("the object has %d bytes", largest)
	}
	w.wantWeights("web", "100/0", "99/1")
	w.prom.answer(metricOf(errorRateMetric, "web"), vector("0.001"))
	w.awaitVerdict("web", v1alpha1.VerdictHealthy, v1alpha1.ReasonChecksPassed)
}
