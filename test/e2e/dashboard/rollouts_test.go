package dashboard

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

// evil is a text that does harm where it is taken for HTML.
const evil = `<img src=x onerror="document.title='harmed'"><script>document.title='harmed'</script>`

// newRollout has three stages and the implied one, of which the last awaits a person.
func newRollout(namespace, name, revision string) *v1alpha1.WeightedRollout {
	wr := &v1alpha1.WeightedRollout{}
	wr.Namespace, wr.Name = namespace, name
	wr.Spec.Revision = revision
	wr.Spec.Routes = []v1alpha1.RouteReference{{Kind: v1alpha1.HTTPRouteKind, Name: name}}
	wr.Spec.Stable = &v1alpha1.StableTrack{}
	wr.Spec.Stable.Service, wr.Spec.Stable.Port = name+"-stable", 8080
	wr.Spec.Canary = &v1alpha1.CanaryTrack{}
	wr.Spec.Canary.Service, wr.Spec.Canary.Port = name+"-canary", 8080
	wr.Spec.Plan.Stages = []v1alpha1.Stage{{Weight: "5", Soak: "10m"}, {Weight: "20", Soak: "20m"}, {Weight: "50", Soak: "30m", Approval: v1alpha1.ApprovalRequired}}
	wr.Spec.Health = &v1alpha1.Health{
		Preset: v1alpha1.PresetTraefik, ErrorRate: &v1alpha1.ErrorRate{MaxPercent: "1"},
		Latency: &v1alpha1.Latency{Percentile: "99", Max: "300ms"},
	}
	return wr
}

func micro(t time.Time) *metav1.MicroTime { return &metav1.MicroTime{Time: t} }

func is(kind string, status metav1.ConditionStatus, reason, message string, since time.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Time{Time: since}}
}

// begin puts a rollout at a stage of its first attempt.
func begin(wr *v1alpha1.WeightedRollout, index int32, position string, share v1alpha1.Percent, now time.Time) {
	st := &wr.Status
	st.ObservedGeneration, st.Revision, st.Attempt, st.Outcome = wr.Generation, wr.Spec.Revision, 1, v1alpha1.OutcomeInProgress
	st.Phase = v1alpha1.PhaseProgressing
	st.StartedAt = micro(now.Add(-40 * time.Minute))
	st.Stage = &v1alpha1.StageStatus{Index: index, Position: position, Weight: share, Soak: "20m", StartedAt: micro(now.Add(-15 * time.Minute))}
	st.Share = v1alpha1.ShareStatus{Desired: &share, Observed: &share, ObservedFrom: v1alpha1.ShareFromWeights, ChangedAt: micro(now.Add(-15 * time.Minute)), ConfirmedAt: micro(now.Add(-15 * time.Minute))}
	st.Routes = []v1alpha1.RouteStatus{{Kind: v1alpha1.HTTPRouteKind, Name: wr.Spec.Routes[0].Name, Written: &share, ConfirmedAt: micro(now.Add(-15 * time.Minute)), Generation: 7}}
	st.Verdict = &v1alpha1.VerdictStatus{State: v1alpha1.VerdictHealthy, Reason: v1alpha1.ReasonChecksPassed, Message: "every check passes on 812 requests", Score: "0.98", At: micro(now.Add(-12 * time.Minute))}
}

// create makes a rollout whose status write fills in.
func create(t *testing.T, wr *v1alpha1.WeightedRollout, write func(*v1alpha1.WeightedRollout, time.Time)) *v1alpha1.WeightedRollout {
	t.Helper()
	if err := bed.Client.Create(t.Context(), wr); err != nil {
		t.Fatal(err)
	}
	write(wr, time.Now())
	if err := bed.Client.Status().Update(t.Context(), wr); err != nil {
		t.Fatal(err)
	}
	return wr
}

// createAll makes rollouts in every state that the page sorts by.
func createAll(t *testing.T) {
	t.Helper()
	for _, namespace := range []string{"shop", "blog"} {
		if err := bed.CreateNamespace(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
	}
	checkout := create(t, newRollout("shop", "checkout", "2.4.1"), func(wr *v1alpha1.WeightedRollout, now time.Time) {
		begin(wr, 1, "2/4", "20", now)
		wr.Status.Attempt = 3
		wr.Status.NextTransitionTime = &metav1.Time{Time: now.Add(5 * time.Minute)}
		wr.Status.Conditions = []metav1.Condition{
			is(v1alpha1.ConditionReconciling, metav1.ConditionTrue, v1alpha1.ReasonSoaking, "20 percent is held for 20m", now.Add(-15*time.Minute)),
			is(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSoaking, "20 percent is held for 20m", now.Add(-15*time.Minute)),
			is(v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonChecksPassed, evil, now.Add(-12*time.Minute)),
		}
		zero, twenty := v1alpha1.Percent("0"), v1alpha1.Percent("12.5")
		wr.Status.History = []v1alpha1.AttemptRecord{
			{Attempt: 2, Revision: "2.4.0", Outcome: v1alpha1.OutcomeRolledBack, Reason: v1alpha1.ReasonUnhealthy, Message: "error-rate: 3.1 percent of 940 requests, limit 1 percent", Weight: &twenty, StartedAt: micro(now.Add(-5 * time.Hour)), EndedAt: *micro(now.Add(-4 * time.Hour))},
			{Attempt: 1, Revision: "2.4.0", Outcome: v1alpha1.OutcomeRolledBack, Reason: v1alpha1.ReasonAborted, Message: "a person aborted it", Weight: &zero, StartedAt: micro(now.Add(-7 * time.Hour)), EndedAt: *micro(now.Add(-6 * time.Hour))},
		}
	})
	tell(t, checkout)
	create(t, newRollout("shop", "payments", "3.0.0"), func(wr *v1alpha1.WeightedRollout, now time.Time) {
		begin(wr, 2, "3/4", "50", now)
		wr.Status.Phase = v1alpha1.PhaseAwaitingApproval
		wr.Status.Conditions = []metav1.Condition{is(v1alpha1.ConditionReconciling, metav1.ConditionTrue, v1alpha1.ReasonAwaitingApproval, "stage 3/4 awaits approval", now)}
	})
	create(t, newRollout("shop", "search", "1.9.0"), func(wr *v1alpha1.WeightedRollout, now time.Time) {
		zero := v1alpha1.Percent("0")
		begin(wr, 1, "2/4", "0", now)
		st := &wr.Status
		st.Phase, st.Outcome, st.Share.Desired = v1alpha1.PhaseRolledBack, v1alpha1.OutcomeRolledBack, &zero
		st.OutcomeReason, st.OutcomeMessage = v1alpha1.ReasonUnhealthy, "latency: p99 is 612ms, limit 300ms"
		st.Verdict = &v1alpha1.VerdictStatus{State: v1alpha1.VerdictUnhealthy, Reason: v1alpha1.ReasonBreach, Check: "latency", Message: st.OutcomeMessage, At: micro(now)}
		st.Conditions = []metav1.Condition{is(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonUnhealthy, "rolled back: "+st.OutcomeMessage+". Set another revision, or give the retry command", now)}
	})
	create(t, newRollout("shop", "basket", "0.3.0"), func(wr *v1alpha1.WeightedRollout, now time.Time) {
		wr.Status.ObservedGeneration, wr.Status.Phase = wr.Generation, v1alpha1.PhasePending
		wr.Status.Conditions = []metav1.Condition{is(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRouteMissing, `there is no HTTPRoute "basket"`, now)}
	})
	create(t, newRollout("blog", "front", "77"), func(wr *v1alpha1.WeightedRollout, now time.Time) {
		begin(wr, 3, "4/4", "100", now)
		wr.Status.Phase, wr.Status.Outcome, wr.Status.StableRevision = v1alpha1.PhaseCompleted, v1alpha1.OutcomeCompleted, "77"
		wr.Status.Conditions = []metav1.Condition{is(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonCompleted, `revision "77" is completed: stable runs it and serves everything`, now)}
	})
}

// tell writes the events of a rollout that went to 20 percent.
func tell(t *testing.T, wr *v1alpha1.WeightedRollout) {
	t.Helper()
	for _, e := range []struct {
		before          time.Duration
		kind            string
		reason, message string
	}{
		{40 * time.Minute, "Normal", v1alpha1.ReasonAttemptStarted, `attempt 3 of revision "2.4.1" starts at 0 percent`},
		{39 * time.Minute, "Normal", v1alpha1.ReasonShareRaised, "the canary's share goes from 0 to 5 percent in stage 1/4"},
		{28 * time.Minute, "Normal", v1alpha1.ReasonShareRaised, "the canary's share goes from 5 to 12.5 percent in stage 2/4"},
		{15 * time.Minute, "Normal", v1alpha1.ReasonShareRaised, "the canary's share goes from 12.5 to 20 percent in stage 2/4"},
		{12 * time.Minute, "Warning", v1alpha1.ReasonVerdictChanged, "verdict Degraded (AboveTarget): " + evil},
	} {
		event := &eventsv1.Event{
			EventTime: metav1.NewMicroTime(time.Now().Add(-e.before)), ReportingController: "weightedrollout", ReportingInstance: "test",
			Action: "Rollout", Reason: e.reason, Note: e.message, Type: e.kind,
			Regarding: corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "WeightedRollout", Namespace: wr.Namespace, Name: wr.Name, UID: wr.UID},
		}
		event.Namespace, event.GenerateName = wr.Namespace, wr.Name+"-"
		if err := bed.Client.Create(t.Context(), event); err != nil {
			t.Fatal(err)
		}
	}
}

// evidenceOf is what the controller would have gathered about a rollout: as many
// evaluations as it keeps, of which one saw no request of the canary.
func evidenceOf(namespace, name string, attempt int64) *live.Document {
	now := time.Now().Truncate(time.Second).UTC()
	confirmed := now.Add(-15 * time.Minute)
	d := &live.Document{
		Namespace: namespace, Name: name, At: now, Attempt: attempt, Subject: "canary", ConfirmedAt: &confirmed,
		Verdict:    live.Verdict{State: "Healthy", Reason: v1alpha1.ReasonChecksPassed, Message: "every check passes on 1834 requests", Score: new(0.964), Requests: 1834, From: &confirmed, To: &now},
		Ramp:       live.Awaited{Open: true},
		Stage:      live.Awaited{What: "about 166 more requests (1834 of 2000)", Requests: 166, AboutSeconds: 94},
		Comparison: &live.Comparison{Evidence: 0.8312, Proof: 20, Through: &now},
		Traffic:    &live.Traffic{Canary: 1834, Stable: 7411},
	}
	for i := range health.MaxEvaluations {
		end := now.Add(time.Duration(i-health.MaxEvaluations+1) * 15 * time.Second)
		wave := math.Sin(float64(i) / 4)
		e := live.Evaluation{
			Start: end.Add(-time.Minute), End: end, Outcome: "Passed",
			Stable: &live.Numbers{Requests: 490 + math.Round(20*wave), Errors: float64(i % 3), Slow: new(0.0), QuantileSeconds: new(0.082 + 0.008*wave)},
			Canary: &live.Numbers{Requests: 121 + math.Round(9*wave), Errors: float64(i % 2), Slow: new(0.0), QuantileSeconds: new(0.094 + 0.02*wave)},
		}
		if i == 20 {
			e.Outcome, e.Reason, e.Message = "Unknown", v1alpha1.ReasonNoData, "the metrics have no sample of the canary"
			e.Canary = nil
		}
		d.Evaluations = append(d.Evaluations, e)
	}
	return d
}
