package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// TestRetryWithoutAStable: a record that says Returning and no share, and a stable that
// cannot take the traffic: nothing begins, and the order is refused.
func TestRetryWithoutAStable(t *testing.T) {
	w := newWorld(t, smallSpec())
	w.object.status = v1alpha1.WeightedRolloutStatus{Attempt: 3, Outcome: v1alpha1.OutcomeReturning, Revision: "v2"}
	w.stableReady = false
	w.say(v1alpha1.VerbRetry)
	w.settle()
	w.wantRefused(t, `the stable Service "web-stable" has no ready endpoint`)
	if s := w.status(); s.Attempt != 3 || s.Outcome != v1alpha1.OutcomeReturning || s.Share.Desired != nil || s.Stage != nil {
		t.Errorf("half of an attempt has begun: %s", encoded(s))
	}
	w.stableReady = true
	w.say(v1alpha1.VerbRetry)
	w.until(time.Hour, "attempt 4 is under way", w.atShare("10"))
}

// TestDecisionsAreWhole: whatever the record says, a decision that changes the attempt,
// its outcome or its stage has a share for the routes, an order that is answered as
// carried out has had its effect, and one that is refused has had none.
func TestDecisionsAreWhole(t *testing.T) {
	var worlds []*world
	for _, spec := range []v1alpha1.WeightedRolloutSpec{smallSpec(), alsoRoute(smallSpec()), updating(derived(withWorkloads(smallSpec(), v1alpha1.CapacityScale)))} {
		w := newWorld(t, spec)
		w.runFor(time.Minute)
		worlds = append(worlds, w)
	}
	served := newWorld(t, smallSpec())
	rapid.Check(t, func(t *rapid.T) {
		obs, now := anyObservation(t, anyOf(t, "world", worlds...), served)
		d := rollout.Decide(obs, now)
		s := see(obs, now, d)
		for _, check := range []func(seen) string{wholeTransition, orderTookEffect} {
			if broken := check(s); broken != "" {
				t.Fatalf("%s\nfrom: %s\n  to: %s\nevents %v", broken, brief(s.was), brief(s.is), d.Events)
			}
		}
		if c := newOrder(s); c == nil || c.Accepted || s.overtaken() {
			return
		}
		without := obs
		without.Orders.Command = nil
		want := rollout.Decide(without, now)
		// What is known by now is told.
		want.Status.Command, want.Events = d.Status.Command, d.Events
		if is, as := encoded(d), encoded(want); is != as {
			t.Fatalf("the order is refused, and has changed something:\n     to: %s\nwithout: %s", is, as)
		}
	})
}

// wholeTransition: what begins or ends has a share that the routes are to have.
func wholeTransition(s seen) string {
	_, known := desiredOf(s.is)
	changed := s.is.Attempt != max(s.was.Attempt, 0) || s.is.Outcome != s.was.Outcome || stageIndex(s.is) != stageIndex(s.was)
	if changed && !known {
		return "the attempt, its outcome or its stage changes, and no share is recorded"
	}
	if began := s.is.Attempt > max(s.was.Attempt, 0); began && s.is.Outcome == v1alpha1.OutcomeInProgress && (s.has != 0 || s.planned && stageIndex(s.is) != 0) {
		return "an attempt begins, and not at 0 percent in the first stage"
	}
	return ""
}

// newOrder is the answer to an order that was read just now, or nil.
func newOrder(s seen) *v1alpha1.CommandStatus {
	if c := s.is.Command; c != nil && (s.was.Command == nil || s.was.Command.ID != c.ID) {
		return c
	}
	return nil
}

// overtaken reports whether the attempt or the stage that an order was for has ended at the
// same time for another reason.
func (s seen) overtaken() bool {
	return s.is.Attempt != s.was.Attempt || s.is.Outcome != s.was.Outcome || stageIndex(s.is) != stageIndex(s.was) || s.told(v1alpha1.ReasonPlanChanged)
}

// orderTookEffect: an order that is answered as carried out has done what it says.
func orderTookEffect(s seen) string {
	c := newOrder(s)
	if c == nil {
		return ""
	}
	ignored := slices.ContainsFunc(s.d.Events, func(e rollout.Event) bool {
		return e.Reason == v1alpha1.ReasonCommandIgnored && strings.HasPrefix(e.Message, "command ")
	})
	if c.Message == "" || s.told(v1alpha1.ReasonCommandAccepted) != c.Accepted || ignored == c.Accepted {
		return "the answer to the order, and what people are told of it, do not agree: " + encoded(c)
	}
	if !c.Accepted {
		return ""
	}
	same := s.is.Attempt == s.was.Attempt
	promoted := s.is.Outcome == v1alpha1.OutcomePromoted
	left := promoted || stageIndex(s.is) == stageIndex(s.was)+1 && !s.told(v1alpha1.ReasonPlanChanged)
	done := false
	switch v1alpha1.Verb(c.Verb) {
	case v1alpha1.VerbApprove:
		done = same && (left || s.is.Stage != nil && s.is.Stage.Approved)
	case v1alpha1.VerbSkip:
		done = same && (left || s.is.Stage != nil && s.is.Stage.Skipped)
	case v1alpha1.VerbPromote:
		done = same && (promoted || s.is.Promote)
	case v1alpha1.VerbRetry:
		done = s.is.Attempt == max(s.was.Attempt, 0)+1 && s.is.Outcome == v1alpha1.OutcomeInProgress
	case v1alpha1.VerbFinish:
		done = s.is.Outcome == v1alpha1.OutcomeReturning
	case v1alpha1.VerbResume:
		done = s.is.Pause == nil && (s.is.Contention == nil || s.is.Contention.Count <= 5)
	}
	if !done {
		return "the order is carried out, and has no effect: " + encoded(c)
	}
	return ""
}

func anyOf[T any](t *rapid.T, label string, of ...T) T { return rapid.SampledFrom(of).Draw(t, label) }

// anyObservation draws a record, possible or not, an order, and what is the case.
func anyObservation(t *rapid.T, w, served *world) (rollout.Observation, time.Time) {
	obs, now := w.observe(), w.clock().Add(anyOf(t, "later", 0, 40*time.Second, time.Hour))
	yes := rapid.Bool()
	obs.Status = anyStatus(t, obs.Status, now)
	obs.StableReady, obs.CanaryReady = yes.Draw(t, "stable"), yes.Draw(t, "canary")
	obs.Deleting = anyOf(t, "deleting", false, false, false, true)
	obs.Owner = anyOf(t, "owner", "", "", "", "older")
	obs.Orders.Abort = anyOf(t, "abort", 0, 0, 0, obs.Status.Attempt)
	if yes.Draw(t, "ordered") {
		stage := anyOf(t, "stage", int32(stageIndex(obs.Status)), 0, 1)
		obs.Orders.Command = &v1alpha1.Command{
			ID:      "new",
			Verb:    anyOf(t, "verb", v1alpha1.VerbApprove, v1alpha1.VerbSkip, v1alpha1.VerbPromote, v1alpha1.VerbRetry, v1alpha1.VerbRetry, v1alpha1.VerbFinish, v1alpha1.VerbResume),
			Attempt: anyOf(t, "attempt of the order", obs.Status.Attempt, obs.Status.Attempt, 0), Stage: &stage,
		}
	}
	obs.Verdict = rollout.Admit(anyOf(t, "verdict",
		health.Unknown(v1alpha1.ReasonAwaitingWindow, "early"), health.Unknown(v1alpha1.ReasonProviderError, "blind"),
		health.Verdict{State: v1alpha1.VerdictHealthy, Reason: v1alpha1.ReasonChecksPassed, RampReady: true, StageReady: true},
		health.Verdict{State: v1alpha1.VerdictUnhealthy, Reason: v1alpha1.ReasonBreach, Message: "bad"},
		health.Verdict{State: v1alpha1.VerdictDegraded, Reason: v1alpha1.ReasonAboveTarget, ScaleBack: true},
	), obs.Status)
	for i := range obs.Routes {
		anyRoute(t, served, &obs.Routes[i], obs.Status)
	}
	spec := obs.Spec
	if spec.Revision != "" {
		spec.Revision = anyOf(t, "revision", "v2", "v2", "v2", "v3", "")
	}
	spec.Mode = anyOf(t, "mode", v1alpha1.ModeEnforce, v1alpha1.ModeEnforce, v1alpha1.ModeEnforce, v1alpha1.ModeObserve)
	spec.Paused = anyOf(t, "paused", false, false, true)
	spec.OnUnhealthy.Action = anyOf(t, "action", v1alpha1.UnhealthyRollback, v1alpha1.UnhealthyPause, v1alpha1.UnhealthyBreak)
	spec.Plan.Stages = anyOf(t, "plan", spec.Plan.Stages, spec.Plan.Stages, nil, []v1alpha1.Stage{stageOf("20", "1s")}, []v1alpha1.Stage{approvedAfter(stageOf("10", "4m")), stageOf("60", "1m")})
	return obs, now
}

// anyRoute lets a route be another one, away, rejected, or give the canary anything.
func anyRoute(t *rapid.T, w *world, r *rollout.Route, s *v1alpha1.WeightedRolloutStatus) {
	p := weightsFrom(anyOf(t, "weights", "100/0", "80/20", "40/60", "0/100"))
	if share, ok := desiredOf(s); ok && rapid.Bool().Draw(t, "as recorded") {
		p = weightsOf(100-int32(share/100), int32(share/100))
	}
	w.edit(0, p, "")
	w.at = w.at.Add(time.Minute)
	w.gateway.rejects = anyOf(t, "rejects", "", "", "", "BackendNotFound")
	if rapid.Bool().Draw(t, "served") {
		w.serve()
	}
	is := w.observeRoute(v1alpha1.RouteReference{Kind: r.Kind, Name: "web"})
	is.Name, is.UID = r.Name, r.UID
	switch rapid.IntRange(0, 7).Draw(t, "route") {
	case 0:
		is.UID = "another"
	case 1:
		is = rollout.Route{Kind: r.Kind, Name: r.Name}
	case 2:
		is.WriteError = "forbidden"
	case 3:
		is.Inspection.Problem = &route.Problem{Reason: v1alpha1.ReasonNoMatchingRule, Message: "no rule"}
	}
	*r = is
}

// anyStatus draws a record whose fields need not fit together.
func anyStatus(t *rapid.T, was *v1alpha1.WeightedRolloutStatus, now time.Time) *v1alpha1.WeightedRolloutStatus {
	s := was.DeepCopy()
	ago := func(label string) *metav1.MicroTime {
		at := metav1.NewMicroTime(now.Add(anyOf(t, label, -time.Second, -5*time.Minute, -24*time.Hour, time.Hour)))
		return anyOf(t, label+" is known", &at, &at, nil)
	}
	percent := func(label string) *v1alpha1.Percent {
		p := anyOf[v1alpha1.Percent](t, label, "", "0", "10", "20", "60", "100", "abc")
		if p == "" {
			return nil
		}
		return &p
	}
	s.Attempt = anyOf[int64](t, "attempt", 3, 3, 3, 1, 0, -1)
	s.Outcome = anyOf(t, "outcome", append([]v1alpha1.Outcome{"", "Lost", v1alpha1.OutcomeReturning, v1alpha1.OutcomeInProgress, v1alpha1.OutcomePromoted}, outcomes...)...)
	s.OutcomeReason = anyOf(t, "outcome reason", "", v1alpha1.ReasonUnhealthy)
	s.Revision = anyOf(t, "recorded revision", s.Revision, s.Revision, s.Revision, "v1", "")
	s.StableRevision = anyOf(t, "stable revision", "", "", "v3")
	s.Share.Desired, s.Share.ChangedAt, s.Share.ConfirmedAt = percent("desired"), ago("changed"), ago("confirmed")
	s.Stage, s.Pause, s.Breaker, s.Warmup, s.Contention, s.Command = nil, nil, nil, nil, nil, nil
	if w := percent("weight"); w != nil {
		s.Stage = &v1alpha1.StageStatus{Index: anyOf[int32](t, "index", 0, 1, 3, 99, -1), Weight: *w, Soak: anyOf(t, "soak", "4m", "x"), StartedAt: ago("stage"), Approved: rapid.Bool().Draw(t, "approved")}
	}
	if rapid.IntRange(0, 2).Draw(t, "stopped") == 0 {
		s.Pause = &v1alpha1.PauseStatus{Message: "bad"}
	}
	if rapid.IntRange(0, 2).Draw(t, "broken") == 0 {
		s.Breaker = &v1alpha1.BreakerStatus{Trips: anyOf[int32](t, "trips", -5, 1, 99), OpenedAt: ago("opened")}
	}
	if rapid.IntRange(0, 2).Draw(t, "contended") == 0 {
		s.Contention = &v1alpha1.ContentionStatus{Count: anyOf[int32](t, "count", -3, 3, 99), At: ago("contention")}
	}
	s.Warmup = anyOf(t, "warmup", nil, &v1alpha1.WarmupStatus{}, &v1alpha1.WarmupStatus{Reason: v1alpha1.ColdBreak})
	if rapid.IntRange(0, 2).Draw(t, "stalled") == 0 {
		s.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: anyOf(t, "stalled on", v1alpha1.ReasonAdoptionAmbiguous, v1alpha1.ReasonInvalidStatus), LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
		}}
	}
	if rapid.IntRange(0, 2).Draw(t, "rejected") == 0 {
		s.Conditions = append(s.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionRouteAccepted, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotResolved, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
		})
	}
	return s
}
