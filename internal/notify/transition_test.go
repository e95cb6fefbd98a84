package notify_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/notify"
)

var (
	now      = time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)
	checkout = types.NamespacedName{Namespace: "shop", Name: "checkout"}
)

// status is a status in a phase, Stalled for a reason or, with an empty one, not.
func status(p v1alpha1.Phase, attempt int64, stalled string) v1alpha1.WeightedRolloutStatus {
	s := v1alpha1.WeightedRolloutStatus{Phase: p, Attempt: attempt, Revision: "v2", Conditions: []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Soaking", Message: "at 5 percent"},
	}}
	s.Share.Desired = new(v1alpha1.Percent("5"))
	s.Stage = &v1alpha1.StageStatus{Index: 1, Position: "2/6"}
	if stalled != "" {
		s.Conditions = append(s.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: stalled})
	}
	return s
}

func TestBetween(t *testing.T) {
	progressing := status(v1alpha1.PhaseProgressing, 1, "")
	tests := map[string]struct {
		before, after v1alpha1.WeightedRolloutStatus
		level         notify.Level // empty: no transition
	}{
		"nothing yet":                 {v1alpha1.WeightedRolloutStatus{}, v1alpha1.WeightedRolloutStatus{}, ""},
		"first":                       {v1alpha1.WeightedRolloutStatus{}, progressing, notify.LevelInfo},
		"the same":                    {progressing, progressing, ""},
		"rolled back":                 {progressing, status(v1alpha1.PhaseRolledBack, 1, "Unhealthy"), notify.LevelWarning},
		"waits for a person":          {progressing, status(v1alpha1.PhaseAwaitingApproval, 1, ""), notify.LevelAction},
		"promoted":                    {progressing, status(v1alpha1.PhasePromoted, 1, ""), notify.LevelInfo},
		"cools down":                  {progressing, status(v1alpha1.PhaseCoolingDown, 1, ""), notify.LevelWarning},
		"stalled":                     {progressing, status(v1alpha1.PhaseProgressing, 1, "RouteMissing"), notify.LevelWarning},
		"stalled for another reason":  {status(v1alpha1.PhaseProgressing, 1, "RouteMissing"), status(v1alpha1.PhaseProgressing, 1, "RouteConflict"), notify.LevelWarning},
		"stalled for the same reason": {status(v1alpha1.PhaseProgressing, 1, "RouteMissing"), status(v1alpha1.PhaseProgressing, 1, "RouteMissing"), ""},
		"goes on":                     {status(v1alpha1.PhaseProgressing, 1, "RouteMissing"), progressing, ""},
		"another attempt":             {progressing, status(v1alpha1.PhaseProgressing, 2, ""), notify.LevelInfo},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := notify.Between(checkout, tc.before, tc.after, now)
			if !ok {
				if tc.level != "" {
					t.Fatal("no transition")
				}
				return
			}
			want := notify.Transition{
				Namespace: "shop", Name: "checkout", Phase: string(tc.after.Phase), From: string(tc.before.Phase), Reason: "Soaking", Message: "at 5 percent",
				Level: tc.level, Revision: "v2", Attempt: tc.after.Attempt, Stage: "2/6", Share: "5", At: now,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestText(t *testing.T) {
	got, _ := notify.Between(checkout, v1alpha1.WeightedRolloutStatus{}, status(v1alpha1.PhaseProgressing, 3, ""), now)
	if want := "shop/checkout Progressing at 5 % (revision v2, attempt 3): at 5 percent"; got.Text() != want {
		t.Errorf("%q, want %q", got.Text(), want)
	}
}
