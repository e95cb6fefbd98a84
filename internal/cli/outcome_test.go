package cli

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestSaidOnce: a line says no word twice in a row.
func TestSaidOnce(t *testing.T) {
	for _, test := range [][3]string{
		{"", "slow", "slow"},
		{"Unhealthy", "", "Unhealthy"},
		{"Unhealthy", "slow", "Unhealthy: slow"},
		{"Aborted", "aborted by somebody", "Aborted by somebody"},
		{"Unhealthy", "Un", "Unhealthy: Un"},
	} {
		if got := reasoned(test[0], test[1]); got != test[2] {
			t.Errorf("of %q and %q it makes %q, want %q", test[0], test[1], got, test[2])
		}
	}
	wr := &v1alpha1.WeightedRollout{}
	wr.Status.Phase, wr.Status.Share.Desired = v1alpha1.PhaseRolledBack, new(v1alpha1.Percent("0"))
	for _, test := range []struct{ reason, message, want string }{
		{"Unhealthy", "rolled back: slow", "RolledBack, 0 percent (not confirmed), Unhealthy: rolled back: slow"},
		{"Unhealthy", "", "RolledBack, 0 percent (not confirmed), Unhealthy: Unhealthy"},
		{"Aborted", "rolled back: slow", "RolledBack, 0 percent (not confirmed), Unhealthy: Aborted: rolled back: slow"},
	} {
		wr.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: test.reason, Message: test.message}}
		if got := changeLine(wr, "Unhealthy"); got != test.want {
			t.Errorf("of %q it says %q, want %q", test.reason, got, test.want)
		}
	}
}
