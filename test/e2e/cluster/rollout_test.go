package cluster

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/auditlog"
)

// testRollouts has a good canary promoted, a bad one rolled back, and one whose workloads
// the controller scales and updates, at the same time.
func testRollouts(t *testing.T) {
	t.Run("Good", testGood)
	t.Run("Bad", testBad)
	t.Run("Workloads", testWorkloads)
}

func testGood(t *testing.T) {
	t.Parallel()
	s := newShop(t, plan{Namespace: "e2e-good", Stages: []int{10, 50}, Soak: "3s", MinIncrease: 10, MaxIncrease: 30}, 60)
	s.begin()
	s.wants(0, 10, 20, 40, 50, 80, 100)
	s.wantPhase(v1alpha1.PhasePromoted)
	s.wantNoServerError()
}

// testBad has a canary that fails a third of all requests.
func testBad(t *testing.T) {
	t.Parallel()
	s := newShop(t, plan{Namespace: "e2e-bad", Stages: []int{20, 50}, Soak: "30s", MinIncrease: 20, MaxIncrease: 20}, 60, "--random-error=true")
	s.begin()
	st := s.wantPhase(v1alpha1.PhaseRolledBack)
	s.wants(0, 20, 0)
	if st.Verdict == nil || st.Verdict.State != v1alpha1.VerdictUnhealthy {
		t.Errorf("it was rolled back, but not for its errors: %s", describe(st))
	}
}

// testWorkloads uses every right that the controller does not have by default: it reads
// a Secret, scales the canary to the traffic, and updates stable.
func testWorkloads(t *testing.T) {
	t.Parallel()
	s := newShop(t, plan{
		Namespace: "e2e-workloads", Stages: []int{50}, Soak: "3s", MinIncrease: 50, MaxIncrease: 50,
		Workloads: true, Secret: "prometheus",
	}, 60)
	must(t, cluster.Client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "prometheus"},
		StringData: map[string]string{"token": "anything"},
	}), "create the Secret")
	kubectl(t, "scale", "--namespace="+s.namespace, "--replicas=2", "deployment/checkout-stable")
	kubectl(t, "rollout", "status", "--namespace="+s.namespace, "--timeout=5m", "deployment/checkout-stable")
	s.begin()
	s.wantPhase(v1alpha1.PhaseCompleted)
	s.wants(0, 50, 100, 50, 0)
	stable, canary := s.deployment("checkout-stable"), s.deployment("checkout-canary")
	if got, want := stable.Spec.Template.Spec.Containers[0].Command[1], "--ui-message=canary"; got != want {
		t.Errorf("stable runs %q, want the canary's %q", got, want)
	}
	s.say("replicas at the end: stable %d, canary %d", *stable.Spec.Replicas, *canary.Spec.Replicas)
	if cluster.own == nil {
		return // there is no audit log
	}
	audit, err := cluster.own.Audit(systemNamespace, serviceAccount)
	must(t, err, "read the audit log")
	for _, use := range []auditlog.Use{
		{Verb: "watch", Resource: "secrets"},
		{Verb: "patch", Group: "apps", Resource: "deployments", Subresource: "scale"},
		{Verb: "patch", Group: "apps", Resource: "deployments"},
	} {
		if audit.Uses[use] == 0 {
			t.Errorf("the audit log does not have: %s", use)
		}
	}
}

func (s *shop) deployment(name string) *appsv1.Deployment {
	s.t.Helper()
	d := &appsv1.Deployment{}
	must(s.t, cluster.Client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, d), "read "+name)
	return d
}
