package install

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// The people of a shop, by the roles that they have there.
const (
	editor   = "eve"   // weightedrollout-editor
	approver = "anton" // weightedrollout-approver
	lead     = "lena"  // both
)

// people gives the three their roles in a namespace.
func people(t *testing.T, bed *testbed.Bed, namespace string) {
	t.Helper()
	if err := bed.CreateNamespace(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	for user, roles := range map[string][]string{editor: {"editor"}, approver: {"approver"}, lead: {"editor", "approver"}} {
		for _, role := range roles {
			binding := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user + "-" + role},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "weightedrollout-" + role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			}
			if err := bed.Client.Create(t.Context(), binding); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The API server learns of a binding a moment later, and of the policy too.
	probe := plan("probe", namespace, required("10")...)
	order("probe")(probe)
	eventually(t, "the roles are known and the policy is enforced", func() (bool, string) {
		refused := as(t, bed, editor).Create(t.Context(), probe.DeepCopy(), client.DryRunAll)
		allowed := as(t, bed, lead).Create(t.Context(), probe.DeepCopy(), client.DryRunAll)
		listed := as(t, bed, approver).List(t.Context(), &v1alpha1.WeightedRolloutList{}, client.InNamespace(namespace))
		return refused != nil && strings.Contains(refused.Error(), mayNotApprove) && allowed == nil && listed == nil,
			fmt.Sprintf("%s: %v; %s: %v; %s: %v", editor, refused, lead, allowed, approver, listed)
	})
}

// plan is a rollout with some stages, whose routes nobody has made.
func plan(name, namespace string, stages ...v1alpha1.Stage) *v1alpha1.WeightedRollout {
	wr := &v1alpha1.WeightedRollout{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for i := range stages {
		if stages[i].Soak == "" {
			stages[i].Soak = "1s"
		}
	}
	wr.Spec = v1alpha1.WeightedRolloutSpec{
		Revision: "v2",
		Routes:   []v1alpha1.RouteReference{{Name: "web"}},
		Stable:   &v1alpha1.StableTrack{Track: v1alpha1.Track{Service: "web-stable", Port: testbed.BackendPort}},
		Canary:   &v1alpha1.CanaryTrack{Track: v1alpha1.Track{Service: "web-canary", Port: testbed.BackendPort}},
		Plan:     v1alpha1.Plan{Stages: stages},
		Ramp:     v1alpha1.Ramp{MinIncrease: "50", MaxIncrease: "100", MaxChangePercent: "100", Interval: "1s"},
		Health:   &v1alpha1.Health{Disabled: true},
	}
	return wr
}

func required(weights ...v1alpha1.Percent) []v1alpha1.Stage {
	var stages []v1alpha1.Stage
	for _, w := range weights {
		stages = append(stages, v1alpha1.Stage{Weight: w, Approval: v1alpha1.ApprovalRequired})
	}
	return stages
}

// create makes a rollout as an administrator, with an outcome in its status.
func create(t *testing.T, bed *testbed.Bed, wr *v1alpha1.WeightedRollout, outcome v1alpha1.Outcome) {
	t.Helper()
	if err := bed.Client.Create(t.Context(), wr); err != nil {
		t.Fatal(err)
	}
	if outcome == "" {
		return
	}
	wr.Status.Outcome, wr.Status.Attempt = outcome, 1
	if err := bed.Client.Status().Update(t.Context(), wr); err != nil {
		t.Fatal(err)
	}
}

// change tries an edit as somebody, by a merge patch as kubectl annotate and kubectl
// patch send, or else by a whole update as kubectl edit and replace do.
func change(ctx context.Context, c client.Client, key client.ObjectKey, patch bool, edit func(*v1alpha1.WeightedRollout)) error {
	wr := &v1alpha1.WeightedRollout{}
	if err := c.Get(ctx, key, wr); err != nil {
		return err
	}
	before := wr.DeepCopy()
	edit(wr)
	if patch {
		return c.Patch(ctx, wr, client.MergeFrom(before))
	}
	return c.Update(ctx, wr)
}

func commandText(verb v1alpha1.Verb) string {
	return fmt.Sprintf(`{"id":"%s-1","verb":"%s","attempt":1,"stage":0}`, verb, verb)
}

func annotate(key, text string) func(*v1alpha1.WeightedRollout) {
	return func(wr *v1alpha1.WeightedRollout) { metav1.SetMetaDataAnnotation(&wr.ObjectMeta, key, text) }
}

func order(text string) func(*v1alpha1.WeightedRollout) {
	return annotate(v1alpha1.CommandAnnotation, text)
}

// expect checks that an edit went through, where refusal is empty, or was forbidden with
// words for a person.
func expect(t *testing.T, err error, refusal string) {
	t.Helper()
	switch {
	case refusal == "" && err != nil:
		t.Errorf("refused: %v", err)
	case refusal != "" && err == nil:
		t.Errorf("it went through, want a refusal with %q", refusal)
	case refusal != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refusal)):
		t.Errorf("%v, want it forbidden with %q", err, refusal)
	}
}
