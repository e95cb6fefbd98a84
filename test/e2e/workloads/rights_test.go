package workloads

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/auditlog"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// auditPolicy writes down every request of the manager, and nobody else's.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [` + testbed.ManagerUser + `]
- level: None
`

// optionalRoles are those that nobody has bound to the manager by default.
var optionalRoles = []string{"weightedrollout-workload-writer", "weightedrollout-metrics-secrets"}

// TestRights has the manager use every right that its roles grant, and none besides. A
// right that is taken away is denied to one of its requests; one that is added is not
// used: the test fails either way.
//
// The API server does not stream lists, which is left to each cluster, so that the
// manager asks for every list before it watches.
func TestRights(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	s, manager := startAudited(t, "--audit-policy-file="+policy, "--audit-log-path="+log, "--feature-gates=WatchList=false")

	read := func() *auditlog.Log {
		read, err := auditlog.ReadFile(log, testbed.ManagerUser)
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	t.Run("Deployments", func(t *testing.T) { s.newWorld(t).updateStable(false) })
	t.Run("Autoscaler", func(t *testing.T) { s.newWorld(t).updateStable(true) })
	t.Run("StatefulSets", func(t *testing.T) { s.newWorld(t).updateStatefulSets() })
	t.Run("AnyKind", func(t *testing.T) { s.newWorld(t).scaleOfAnyKind() })
	t.Run("Credentials", func(t *testing.T) { s.newWorld(t).useSecret(read) })
	for _, kind := range []v1alpha1.RouteKind{v1alpha1.HTTPRouteKind, v1alpha1.GRPCRouteKind} {
		t.Run(string(kind), func(t *testing.T) { s.newWorld(t).conflicts(kind, read) })
	}
	t.Run("RepeatedEvents", func(t *testing.T) { s.newWorld(t).repeatEvents(read) })
	t.Run("Metrics", func(t *testing.T) { s.readMetrics(t, manager) })

	grants := auditlog.Grants(s.rules(t)...)
	found := read()
	for _, use := range found.Sorted() {
		t.Logf("%6d  %s", found.Uses[use], use)
	}
	for _, line := range found.Denied {
		t.Errorf("denied: %s", line)
	}
	for _, grant := range found.Unused(grants) {
		t.Errorf("granted, and never used: %s", grant)
	}
	for _, use := range found.Uncovered(grants) {
		t.Errorf("used without a role that grants it: %s", use)
	}
}

// startAudited starts a bed of its own, with a manager that has the optional roles too.
func startAudited(t *testing.T, apiServerArgs ...string) (*shared, *testbed.Manager) {
	t.Helper()
	bed, err := testbed.Start(t.Context(), testbed.Options{
		BinDir: os.Getenv("WEIGHTEDROLLOUT_BIN"), Gateway: true, APIServerArgs: apiServerArgs,
	})
	if err != nil {
		t.Fatalf("starting the bed: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			bed.Keep()
			t.Log("the bed's logs are kept in", bed.LogDir())
		}
		if err := bed.Stop(); err != nil {
			t.Errorf("stopping the bed: %v", err)
		}
	})
	s := &shared{Bed: bed}
	for _, role := range optionalRoles {
		binding := &rbacv1.ClusterRoleBinding{
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: testbed.ManagerUser}},
		}
		binding.Name = role
		if err := bed.Client.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
	if s.kubelet, err = bed.StartKubelet(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err = bed.StartControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	manager, err := bed.StartManager(t.Context(), testbed.ManagerOptions{
		Metrics: true,
		Args:    []string{"--leader-elect=true", "--leader-election-namespace=" + ownNamespace},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, manager
}

// ownNamespace is where the manager has its lease.
const ownNamespace = "weightedrollout-system"

// rules are those of every role that is bound to the manager.
func (s *shared) rules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, name := range append([]string{testbed.ManagerUser}, optionalRoles...) {
		role := &rbacv1.ClusterRole{}
		if err := s.Client.Get(t.Context(), client.ObjectKey{Name: name}, role); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, role.Rules...)
	}
	own := &rbacv1.Role{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: ownNamespace, Name: testbed.ManagerUser}, own); err != nil {
		t.Fatal(err)
	}
	return append(rules, own.Rules...)
}

// updateStable has the canary scaled, stable updated, and the rollout deleted.
func (w *world) updateStable(autoscaled bool) {
	w.shop("web:2")
	if autoscaled {
		w.create(newAutoscaler(canary, 1, 8))
	}
	w.rollout(func(s *v1alpha1.WeightedRolloutSpec) {
		s.Canary.Capacity = v1alpha1.CapacityScale
		s.Promotion.Mode = v1alpha1.PromotionUpdateStable
	})
	w.awaitPhase(v1alpha1.PhaseCompleted)
}

func (w *world) updateStatefulSets() {
	w.t.Helper()
	w.create(newStatefulSet(stable, 2, template(stable, "web:1")))
	w.create(newStatefulSet(canary, 1, template(canary, "web:2")))
	w.front(httpRoute())
	w.awaitEndpoints(stable, 2)
	w.rollout(func(s *v1alpha1.WeightedRolloutSpec) {
		s.Stable.Workload.Kind, s.Canary.Workload.Kind = "StatefulSet", "StatefulSet"
		s.Canary.Capacity = v1alpha1.CapacityScale
		s.Promotion.Mode = v1alpha1.PromotionUpdateStable
	})
	w.awaitPhase(v1alpha1.PhaseCompleted)
}

func (w *world) scaleOfAnyKind() {
	w.t.Helper()
	w.shop("web:2")
	w.mergePatch(canary, `{"spec":{"replicas":4}}`)
	set := w.replicaSetOf(canary)
	w.rollout(func(s *v1alpha1.WeightedRolloutSpec) {
		s.Revision = "2"
		s.Canary.Workload = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set}
	})
	w.awaitPhase(v1alpha1.PhasePromoted)
}

// useSecret has the manager read a token for a metrics server, which is nowhere.
func (w *world) useSecret(read func() *auditlog.Log) {
	w.t.Helper()
	w.shop("web:2")
	secret := &corev1.Secret{StringData: map[string]string{"token": "anything"}}
	secret.Name = "prometheus"
	w.create(secret)
	w.rollout(func(s *v1alpha1.WeightedRolloutSpec) {
		s.Plan.Stages[0].Soak, s.Plan.Stages[1].Soak = "1h", "1h"
		s.Health = &v1alpha1.Health{
			Preset:    v1alpha1.PresetTraefik,
			ErrorRate: &v1alpha1.ErrorRate{MaxPercent: "1"},
			Prometheus: &v1alpha1.Prometheus{
				Address:     "http://127.0.0.1:1",
				BearerToken: &v1alpha1.SecretKeyReference{Name: "prometheus", Key: "token"},
			},
		}
	})
	w.eventually("the Secret is watched", func() (bool, string) {
		return read().Uses[auditlog.Use{Verb: "watch", Resource: "secrets"}] > 0, "it is not"
	})
}

// repeatEvents has a policy refuse that a deleted rollout goes, so that the manager tells
// of the same again and again: the API server then counts, instead of keeping each event.
func (w *world) repeatEvents(read func() *auditlog.Log) {
	w.t.Helper()
	w.shop("web:2")
	w.rollout(longSoak)
	w.awaitShare("25")
	w.refuseReleases()
	w.mergePatch(stable, `{"spec":{"replicas":0}}`)
	w.awaitEndpoints(stable, 0)
	wr := &v1alpha1.WeightedRollout{}
	w.read("web", wr)
	if err := w.Client.Delete(w.t.Context(), wr); err != nil {
		w.t.Fatal(err)
	}
	counted := auditlog.Use{Verb: "patch", Group: "events.k8s.io", Resource: "events"}
	w.eventually("an event is counted", func() (bool, string) {
		return read().Uses[counted] > 0, "it is not"
	})
}

// refuseReleases keeps the finalizers of this namespace's rollouts.
func (w *world) refuseReleases() {
	w.t.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	policy.Name = "keep-finalizers"
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"weightedrollouts"},
			},
		}}},
	}
	policy.Spec.Validations = []admissionregistrationv1.Validation{{
		Expression: "!has(oldObject.metadata.finalizers) || has(object.metadata.finalizers)", Message: "finalizers stay",
	}}
	if err := w.Client.Create(w.t.Context(), policy); err != nil {
		w.t.Fatal(err)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	binding.Name = policy.Name
	binding.Spec.PolicyName = policy.Name
	binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	if err := w.Client.Create(w.t.Context(), binding); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("the policy is in force", func() (bool, string) {
		wr := &v1alpha1.WeightedRollout{}
		w.read("web", wr)
		without := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		return w.Client.Patch(w.t.Context(), wr, without, client.DryRunAll) != nil, "it is not"
	})
}

// conflicts changes a route without a pause while its weights go up and down, until the
// manager has had to read it once more before a write, and the rollout before a raise.
func (w *world) conflicts(kind v1alpha1.RouteKind, read func() *auditlog.Log) {
	w.t.Helper()
	var route client.Object = httpRoute()
	if kind == v1alpha1.GRPCRouteKind {
		route = grpcRoute()
	}
	w.create(newDeployment(stable, 1, template(stable, "web:1")))
	w.create(newDeployment(canary, 1, template(canary, "web:2")))
	w.front(route)
	w.awaitEndpoints(canary, 1)
	w.rollout(func(s *v1alpha1.WeightedRolloutSpec) {
		s.Revision = "1"
		s.Routes[0].Kind = kind
		s.Stable.Workload, s.Canary.Workload = nil, nil
	})
	resource := map[v1alpha1.RouteKind]string{v1alpha1.HTTPRouteKind: "httproutes", v1alpha1.GRPCRouteKind: "grpcroutes"}[kind]
	reads := []auditlog.Use{
		{Verb: "get", Group: gatewayv1.GroupName, Resource: resource},
		{Verb: "get", Group: v1alpha1.GroupVersion.Group, Resource: "weightedrollouts"},
	}
	edits := 0
	w.eventually("a conflict over the route", func() (bool, string) {
		for range 50 {
			edits++
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/edit":"%d"}}}`, edits)
			if err := w.Client.Patch(w.t.Context(), route, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				w.t.Fatal(err)
			}
		}
		wr := &v1alpha1.WeightedRollout{}
		w.read("web", wr)
		if wr.Status.Phase == v1alpha1.PhasePromoted {
			// Another revision begins at 0 percent.
			w.edit(func(s *v1alpha1.WeightedRolloutSpec) { s.Revision += "1" })
		}
		uses := read().Uses
		return uses[reads[0]] > 0 && uses[reads[1]] > 0, describe(wr.Status)
	})
	w.t.Logf("after %d edits", edits)
}

// readMetrics asks for the metrics as somebody who may read them.
func (s *shared) readMetrics(t *testing.T, manager *testbed.Manager) {
	t.Helper()
	status, _, err := manager.Ask(t.Context(), "/metrics", s.EvidenceToken())
	if err != nil || status != http.StatusForbidden {
		t.Errorf("somebody without the role was answered %d (%v), want 403", status, err)
	}
}
