package dashboard_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/dashboard"
)

// TestUrgency: what needs a person comes first, and what is over last.
func TestUrgency(t *testing.T) {
	stalled := metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRouteMissing, Message: "there is no route"}
	unwell := metav1.Condition{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonBreach, Message: "errors"}
	// From the most urgent on; those with the same number are equal.
	for _, test := range []struct {
		name   string
		phase  v1alpha1.Phase
		change func(*v1alpha1.WeightedRollout)
		rank   int
		person bool
		tone   dashboard.Tone
	}{
		{"stalled before it began", v1alpha1.PhasePending, func(wr *v1alpha1.WeightedRollout) { wr.Status.Conditions = []metav1.Condition{stalled} }, 0, true, dashboard.ToneWarn},
		{"stalled in mid-way", v1alpha1.PhaseProgressing, func(wr *v1alpha1.WeightedRollout) { wr.Status.Conditions = []metav1.Condition{stalled} }, 0, true, dashboard.ToneActive},
		{"awaits approval", v1alpha1.PhaseAwaitingApproval, nil, 1, true, dashboard.ToneWarn},
		{"rolled back", v1alpha1.PhaseRolledBack, func(wr *v1alpha1.WeightedRollout) { wr.Status.Conditions = []metav1.Condition{stalled} }, 2, true, dashboard.ToneBad},
		{"unhealthy", v1alpha1.PhaseProgressing, func(wr *v1alpha1.WeightedRollout) { wr.Status.Conditions = []metav1.Condition{unwell} }, 3, false, dashboard.ToneActive},
		{"degraded", v1alpha1.PhaseProgressing, func(wr *v1alpha1.WeightedRollout) {
			wr.Status.Verdict = &v1alpha1.VerdictStatus{State: v1alpha1.VerdictDegraded}
		}, 3, false, dashboard.ToneActive},
		{"cooling down", v1alpha1.PhaseCoolingDown, nil, 3, false, dashboard.ToneWarn},
		{"paused", v1alpha1.PhasePaused, nil, 4, true, dashboard.ToneWarn},
		{"promoted, and stable is for a person to update", v1alpha1.PhasePromoted, nil, 5, true, dashboard.ToneGood},
		{"promoted, and stable is updated", v1alpha1.PhasePromoted, func(wr *v1alpha1.WeightedRollout) { wr.Spec.Promotion.Mode = v1alpha1.PromotionUpdateStable }, 5, false, dashboard.ToneGood},
		{"under way", v1alpha1.PhaseProgressing, nil, 6, false, dashboard.ToneActive},
		{"returning", v1alpha1.PhaseReturning, nil, 6, false, dashboard.ToneActive},
		{"not seen by the controller", "", nil, 6, false, dashboard.ToneWarn},
		{"completed", v1alpha1.PhaseCompleted, nil, 7, false, dashboard.ToneGood},
		{"idle", v1alpha1.PhaseIdle, nil, 7, false, dashboard.ToneQuiet},
	} {
		t.Run(test.name, func(t *testing.T) {
			wr := checkout(t)
			wr.Status.Phase = test.phase
			if test.change != nil {
				test.change(wr)
			}
			r := dashboard.RowOf(wr, time.Now())
			if r.Urgency != test.rank || r.NeedsPerson != test.person || r.Tone != test.tone {
				t.Errorf("urgency %d, person %t, tone %s; want %d, %t, %s", r.Urgency, r.NeedsPerson, r.Tone, test.rank, test.person, test.tone)
			}
		})
	}
}

// TestStages: how far a rollout is with each stage of its plan.
func TestStages(t *testing.T) {
	for name, test := range map[string]struct {
		outcome v1alpha1.Outcome
		index   int32
		last    v1alpha1.Percent
		want    []string
	}{
		"in mid-way":           {v1alpha1.OutcomeInProgress, 1, "50", []string{"done", "here", "ahead", "ahead"}},
		"on the way to all":    {v1alpha1.OutcomeInProgress, 3, "50", []string{"done", "done", "done", "here"}},
		"a last stage of 100":  {v1alpha1.OutcomeInProgress, 2, "100", []string{"done", "done", "here"}},
		"an index out of it":   {v1alpha1.OutcomeInProgress, -1, "50", []string{"ahead", "ahead", "ahead", "ahead"}},
		"promoted":             {v1alpha1.OutcomePromoted, 3, "50", []string{"done", "done", "done", "done"}},
		"rolled back":          {v1alpha1.OutcomeRolledBack, 1, "50", []string{"ahead", "ahead", "ahead", "ahead"}},
		"no attempt has begun": {"", 0, "50", []string{"ahead", "ahead", "ahead", "ahead"}},
	} {
		t.Run(name, func(t *testing.T) {
			wr := checkout(t)
			wr.Status.Outcome, wr.Status.Stage.Index, wr.Spec.Plan.Stages[2].Weight = test.outcome, test.index, test.last
			var got []string
			for _, s := range dashboard.RowOf(wr, time.Now()).Stages {
				got = append(got, s.State)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("stages (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSeen: the share over time is remembered where it changes, and not without end.
func TestSeen(t *testing.T) {
	from := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	var states []*v1alpha1.WeightedRollout
	for i := range 2 * dashboard.MostPoints {
		wr := checkout(t)
		share := v1alpha1.Percent(strconv.Itoa(i / 2 % 100)) // each is seen twice
		wr.Status.Share.Desired = &share
		states = append(states, wr)
	}
	since, points := dashboard.Seen(from, states)
	if len(points) != dashboard.MostPoints || !since.Equal(from) || !points[1].At.Equal(from.Add(2*time.Second)) || *points[1].Desired != 1 {
		t.Errorf("%d points since %s, the second %+v", len(points), since, points[1])
	}
	another := checkout(t)
	since, points = dashboard.Seen(from, append(states, another))
	if len(points) != dashboard.MostPoints || !since.Equal(from.Add(2*time.Second)) || *points[len(points)-1].Desired != 20 {
		t.Errorf("%d points since %s: the oldest has to go", len(points), since)
	}
	another.Status = v1alpha1.WeightedRolloutStatus{}
	bad := v1alpha1.Percent("many")
	another.Status.Share.Desired = &bad
	if _, points = dashboard.Seen(from, []*v1alpha1.WeightedRollout{another}); points[0].Desired != nil || points[0].Written != nil {
		t.Errorf("of a status without shares: %+v", points)
	}
}
