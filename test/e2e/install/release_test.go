package install

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

const definition = "weightedrollouts.weightedrollout.dev"

// emptyCluster is one that has a gateway, and nothing of this project.
func emptyCluster(t *testing.T) *testbed.Bed {
	t.Helper()
	bed, err := testbed.Start(t.Context(), testbed.Options{ManagerRBAC: noRoles, Gateway: true})
	if err != nil {
		t.Fatalf("run `make test-e2e`, which builds what is needed: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			bed.Keep()
			t.Log("the bed's logs are kept in", bed.LogDir())
		}
		if err := bed.Stop(); err != nil {
			t.Error(err)
		}
	})
	removeDefinition(t, bed)
	return bed
}

func removeDefinition(t *testing.T, bed *testbed.Bed) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definition}}
	if err := client.IgnoreNotFound(bed.Client.Delete(t.Context(), crd)); err != nil {
		t.Fatal(err)
	}
	wantDefinitionGone(t, bed)
}

// helm runs helm install or upgrade with some values.
func helm(t *testing.T, bed *testbed.Bed, verb string, values map[string]any) string {
	t.Helper()
	text, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{verb, release, chart, "--namespace", system, "--values", file}
	if verb == "install" {
		args = append(args, "--create-namespace")
	}
	return mustRun(t, bed, "helm", args...)
}

// deployedFlags are the controller's, as the cluster has them.
func deployedFlags(t *testing.T, bed *testbed.Bed) []string {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := bed.Client.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "weightedrollout-manager"}, d); err != nil {
		t.Fatal(err)
	}
	return d.Spec.Template.Spec.Containers[0].Args
}

// shop makes a route with two backends that are ready.
func shop(t *testing.T, bed *testbed.Bed, namespace string) {
	t.Helper()
	if err := bed.CreateNamespace(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	if err := bed.Gateway.Create(t.Context(), namespace, "public"); err != nil {
		t.Fatal(err)
	}
	r := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	r.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "public"}}
	r.Spec.Rules = []gatewayv1.HTTPRouteRule{{}}
	for name, weight := range map[string]int32{"web-canary": 0, "web-stable": 100} {
		if _, err := bed.CreateService(t.Context(), namespace, name); err != nil {
			t.Fatal(err)
		}
		port := gatewayv1.PortNumber(testbed.BackendPort)
		var ref gatewayv1.HTTPBackendRef
		ref.Name, ref.Port, ref.Weight = gatewayv1.ObjectName(name), &port, &weight
		r.Spec.Rules[0].BackendRefs = append(r.Spec.Rules[0].BackendRefs, ref)
	}
	if err := bed.Client.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// canaryWeight is what the route gives the canary.
func canaryWeight(t *testing.T, bed *testbed.Bed, namespace string) int32 {
	t.Helper()
	r := &gatewayv1.HTTPRoute{}
	if err := bed.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, r); err != nil {
		t.Fatal(err)
	}
	for _, ref := range r.Spec.Rules[0].BackendRefs {
		if ref.Name == "web-canary" {
			return *ref.Weight
		}
	}
	t.Fatal("the route has no canary")
	return 0
}

// reaches waits until a rollout says something.
func reaches(t *testing.T, bed *testbed.Bed, key client.ObjectKey, what string, check func(v1alpha1.WeightedRolloutStatus) bool) {
	t.Helper()
	eventually(t, key.String()+" is "+what, func() (bool, string) {
		wr := &v1alpha1.WeightedRollout{}
		if err := bed.Client.Get(t.Context(), key, wr); err != nil {
			return false, err.Error()
		}
		return check(wr.Status), fmt.Sprintf("%s: %v", wr.Status.Phase, wr.Status.Conditions)
	})
}

func awaitsApproval(st v1alpha1.WeightedRolloutStatus) bool {
	for _, c := range st.Conditions {
		if c.Type == v1alpha1.ConditionReconciling && c.Reason == v1alpha1.ReasonAwaitingApproval {
			return true
		}
	}
	return false
}

func uidOfDefinition(t *testing.T, bed *testbed.Bed) types.UID {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := bed.Client.Get(t.Context(), client.ObjectKey{Name: definition}, crd); err != nil {
		t.Fatal(err)
	}
	return crd.UID
}

// releaseObjects are those of the release that are still there.
func releaseObjects(t *testing.T, bed *testbed.Bed) []string {
	t.Helper()
	kinds := "deployments,services,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,poddisruptionbudgets,jobs,validatingadmissionpolicies,validatingadmissionpolicybindings"
	out := mustRun(t, bed, "kubectl", "get", kinds, "-A", "-o", "name", "-l", "app.kubernetes.io/instance="+release)
	return strings.Fields(out)
}

// TestARelease is the life of one: installed, at work, upgraded, and uninstalled while a
// rollout is under way.
func TestARelease(t *testing.T) {
	bed := emptyCluster(t)
	shop(t, bed, "shop")
	mustRun(t, bed, "kubectl", "create", "serviceaccount", "scraper", "-n", "shop")
	mustRun(t, bed, "kubectl", "create", "serviceaccount", "visitor", "-n", "shop")
	helm(t, bed, "install", map[string]any{"metrics": map[string]any{"readers": []any{map[string]any{"namespace": "shop", "name": "scraper"}}}})
	people(t, bed, "shop")
	m := startManager(t, bed, deployedFlags(t, bed), "weightedrollout-manager")

	wr := plan("web", "shop", required("10", "50")...)
	key := client.ObjectKeyFromObject(wr)
	if err := as(t, bed, editor).Create(t.Context(), wr); err != nil {
		t.Fatalf("an editor creates a rollout: %v", err)
	}
	reaches(t, bed, key, "waiting for an approval at the first stage", awaitsApproval)
	approve := order(commandText(v1alpha1.VerbApprove))
	expect(t, change(t.Context(), as(t, bed, editor), key, true, approve), mayNotApprove)
	expect(t, change(t.Context(), as(t, bed, approver), key, true, approve), "")
	reaches(t, bed, key, "waiting for an approval at the second stage", func(st v1alpha1.WeightedRolloutStatus) bool {
		return awaitsApproval(st) && st.Stage != nil && st.Stage.Index == 1
	})
	if weight := canaryWeight(t, bed, "shop"); weight != 50 {
		t.Errorf("the canary has weight %d, want 50", weight)
	}

	eventually(t, "the metrics say who works, and in which phase the rollout is", func() (bool, string) {
		text, err := scrape(t, bed, m, "shop", "scraper")
		return err == nil && strings.Contains(text, `leader_election_master_status{name="weightedrollout.dev"} 1`) &&
			strings.Contains(text, `weightedrollout_phase{name="web",namespace="shop",phase="AwaitingApproval"} 1`), fmt.Sprint(text, err)
	})
	if text, err := scrape(t, bed, m, "shop", "visitor"); err == nil {
		t.Errorf("somebody without the right reads the metrics:\n%.300s", text)
	}

	uid := uidOfDefinition(t, bed)
	helm(t, bed, "upgrade", map[string]any{"workers": 3, "replicas": 1})
	if flags := deployedFlags(t, bed); !slices.Contains(flags, "--workers=3") {
		t.Errorf("after the upgrade the flags are %v", flags)
	}
	if now := uidOfDefinition(t, bed); now != uid {
		t.Errorf("the upgrade made another definition: %s, was %s", now, uid)
	}

	played := playJobs(t, bed)
	mustRun(t, bed, "helm", "uninstall", release, "--namespace", system, "--timeout", "10m")
	if weight := canaryWeight(t, bed, "shop"); weight != 0 {
		t.Errorf("after the uninstallation the canary has weight %d, want 0", weight)
	}
	if err := m.Stop(); err != nil {
		t.Error(err)
	}
	if now := uidOfDefinition(t, bed); now != uid {
		t.Errorf("the uninstallation did not keep the definition: %s, was %s", now, uid)
	}
	if left := releaseObjects(t, bed); len(left) > 0 {
		t.Errorf("the uninstallation leaves %v", left)
	}
	if out := played.output("weightedrollout-stand-down"); !strings.Contains(out, "shop/web") {
		t.Errorf("the hook before says nothing of the rollout:\n%s", out)
	}
	deletes(t, bed, key)
}

// deletes removes a rollout that no controller looks after any more.
func deletes(t *testing.T, bed *testbed.Bed, key client.ObjectKey) {
	t.Helper()
	wr := &v1alpha1.WeightedRollout{}
	if err := bed.Client.Get(t.Context(), key, wr); err != nil {
		t.Fatalf("the rollout was not kept: %v", err)
	}
	if slices.Contains(wr.Finalizers, v1alpha1.Finalizer) {
		t.Errorf("the rollout still has the controller's finalizer %v", wr.Finalizers)
	}
	if err := bed.Client.Delete(t.Context(), wr); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rollout is deleted without a controller", func() (bool, string) {
		err := bed.Client.Get(t.Context(), key, wr)
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// TestAReleaseForNamespaces has rights in one namespace only, and takes the definition
// with it when it goes.
func TestAReleaseForNamespaces(t *testing.T) {
	bed := emptyCluster(t)
	for _, namespace := range []string{"inside", "outside"} {
		shop(t, bed, namespace)
	}
	helm(t, bed, "install", map[string]any{"namespaces": []any{"inside"}, "crds": map[string]any{"keep": false}})
	m := startManager(t, bed, deployedFlags(t, bed), "weightedrollout-manager")
	for _, namespace := range []string{"inside", "outside"} {
		create(t, bed, plan("web", namespace, required("10")...), "")
	}
	inside := client.ObjectKey{Namespace: "inside", Name: "web"}
	reaches(t, bed, inside, "waiting for an approval", awaitsApproval)
	reaches(t, bed, inside, "confirmed by anybody", func(st v1alpha1.WeightedRolloutStatus) bool {
		c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionRouteAccepted)
		return c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, "name the gateway's controller in --gateway-controllers")
	})
	if weight := canaryWeight(t, bed, "inside"); weight != 10 {
		t.Errorf("the canary has weight %d, want 10", weight)
	}
	wr := &v1alpha1.WeightedRollout{}
	if err := bed.Client.Get(t.Context(), client.ObjectKey{Namespace: "outside", Name: "web"}, wr); err != nil || wr.Status.Phase != "" {
		t.Errorf("the rollout outside has phase %q (%v)", wr.Status.Phase, err)
	}

	playJobs(t, bed)
	mustRun(t, bed, "helm", "uninstall", release, "--namespace", system, "--timeout", "10m")
	if weight := canaryWeight(t, bed, "inside"); weight != 0 {
		t.Errorf("after the uninstallation the canary has weight %d, want 0", weight)
	}
	wantDefinitionGone(t, bed)
	if left := releaseObjects(t, bed); len(left) > 0 {
		t.Errorf("the uninstallation leaves %v", left)
	}
	if err := m.Stop(); err != nil {
		t.Error(err)
	}
}
