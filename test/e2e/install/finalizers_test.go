package install

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// held is a deleted rollout that the controller's finalizer still holds.
func held(t *testing.T, bed *testbed.Bed, name, namespace string) client.ObjectKey {
	t.Helper()
	wr := plan(name, namespace, required("10")...)
	wr.Finalizers = []string{v1alpha1.Finalizer}
	create(t, bed, wr, v1alpha1.OutcomeInProgress)
	if err := bed.Client.Delete(t.Context(), wr.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	return client.ObjectKeyFromObject(wr)
}

// TestWhoMayRemoveTheFinalizer that keeps a deleted rollout until its routes are safe.
func TestWhoMayRemoveTheFinalizer(t *testing.T) {
	bed := cluster(t)
	people(t, bed, "held")
	controller := "system:serviceaccount:" + system + ":weightedrollout-manager"
	none := func(wr *v1alpha1.WeightedRollout) { wr.Finalizers = nil }
	for name, tc := range map[string]struct {
		user    string
		edit    func(*v1alpha1.WeightedRollout)
		refusal string
	}{
		"approver": {approver, none, mayNotLetGo},
		"approver-order": {approver, func(wr *v1alpha1.WeightedRollout) {
			none(wr)
			order(commandText(v1alpha1.VerbApprove))(wr)
		}, mayNotLetGo},
		"approver-keeps": {approver, annotate(v1alpha1.AbortAnnotation, "1"), ""},
		"editor":         {editor, none, ""},
		"lead":           {lead, none, ""},
		"controller":     {controller, none, ""},
	} {
		t.Run(name, func(t *testing.T) {
			key := held(t, bed, name, "held")
			c := as(t, bed, tc.user)
			if tc.user == controller { // it lists, and need not get
				c = getter{Client: c, reads: bed.Client}
			}
			expect(t, change(t.Context(), c, key, true, tc.edit), tc.refusal)
		})
	}
	t.Run("before a deletion", func(t *testing.T) {
		wr := plan("alive", "held", required("10")...)
		wr.Finalizers = []string{v1alpha1.Finalizer}
		create(t, bed, wr, v1alpha1.OutcomeInProgress)
		key, c := client.ObjectKeyFromObject(wr), as(t, bed, approver)
		expect(t, change(t.Context(), c, key, true, none), mayNotLetGo)
		expect(t, change(t.Context(), c, key, true, func(wr *v1alpha1.WeightedRollout) { wr.Finalizers = []string{"example.com/x"} }), mayNotLetGo)
	})
}

// getter reads as somebody else.
type getter struct {
	client.Client
	reads client.Reader
}

func (g getter) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return g.reads.Get(ctx, key, obj, opts...)
}

// TestFinalizersGoWithTheRelease: the Job that takes them may do so under a policy that the
// API server still knows, or that another release has.
func TestFinalizersGoWithTheRelease(t *testing.T) {
	bed := cluster(t)
	people(t, bed, "leaving")
	key := held(t, bed, "web", "leaving")
	const account = "weightedrollout-stand-down"
	for _, u := range objects(t, render(t, nil, "--show-only", "templates/uninstall.yaml")) {
		if u.GetKind() == "Job" {
			continue
		}
		if err := bed.Client.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := bed.Client.Delete(context.WithoutCancel(t.Context()), u); err != nil {
				t.Error(err)
			}
		})
	}
	kubeconfig, err := kubeconfigOf(t.Context(), bed, system, account)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the account may list and edit the rollouts", func() (bool, string) {
		out, err := command(t.Context(), nil, "kubectl", "--kubeconfig="+kubeconfig, "auth", "can-i", "patch", "weightedrollouts", "-n", "leaving")
		return strings.HasPrefix(out, "yes"), fmt.Sprint(out, err)
	})
	out := mustRun(t, nil, "manager", "stand-down", "--finalizers", "--namespaces=leaving", "--kubeconfig="+kubeconfig)
	if !strings.Contains(out, key.String()) {
		t.Errorf("it says nothing of %s:\n%s", key, out)
	}
	if err := bed.Client.Get(t.Context(), key, &v1alpha1.WeightedRollout{}); !apierrors.IsNotFound(err) {
		t.Errorf("the rollout is held on: %v", err)
	}
}
