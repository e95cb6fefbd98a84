package install

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// TestHooksComeInOrder looks at what helm runs when the release is uninstalled.
func TestHooksComeInOrder(t *testing.T) {
	// To take a finalizer away is an edit for the policy on approvals, of which another
	// release may be the owner.
	const name, verbs = "weightedrollout-stand-down", "list patch update"
	for keep, want := range map[bool]map[string]string{
		true:  {name: "stand-down --timeout=5m", name + "-finalizers": "stand-down --timeout=5m --finalizers", "verbs": verbs},
		false: {name: "stand-down --timeout=5m --delete", name + "-finalizers": "stand-down --timeout=5m --finalizers", "verbs": verbs + " delete"},
	} {
		all := objects(t, render(t, map[string]any{"crds": map[string]any{"keep": keep}}, "--show-only", "templates/uninstall.yaml"))
		got, weights := map[string]string{}, map[string]string{}
		for _, u := range all {
			a := u.GetAnnotations()
			if a["helm.sh/hook"] == "" || a["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" {
				t.Errorf("%s %s has the annotations %v", u.GetKind(), u.GetName(), a)
			}
			weights[u.GetKind()] = a["helm.sh/hook-weight"]
			switch u.GetKind() {
			case "Job":
				checkNoSidecar(t, u)
				got[u.GetName()] = strings.Join(args(t, u), " ")
			case "ClusterRole":
				got["verbs"] = hookVerbs(t, u)
				fallthrough
			default:
				if a["helm.sh/hook"] != "pre-delete,post-delete" {
					t.Errorf("keep %t: %s is there for %s alone", keep, u.GetKind(), a["helm.sh/hook"])
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("keep %t: the Jobs and their role are %v, want %v", keep, got, want)
		}
		if want := (map[string]string{"ServiceAccount": "-10", "ClusterRole": "-10", "ClusterRoleBinding": "-5", "Job": "0"}); !maps.Equal(weights, want) {
			t.Errorf("keep %t: the weights are %v, want %v", keep, weights, want)
		}
	}
}

// hookVerbs are what the Jobs may do, with rollouts and nothing else.
func hookVerbs(t *testing.T, role *unstructured.Unstructured) string {
	t.Helper()
	all := rules(t, role)
	if len(all) != 1 {
		t.Fatalf("the role has %d rules, want 1", len(all))
	}
	var rule rbacv1.PolicyRule
	if err := yaml.UnmarshalStrict([]byte(all[0]), &rule); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rule.APIGroups, []string{"weightedrollout.dev"}) || !slices.Equal(rule.Resources, []string{"weightedrollouts"}) {
		t.Errorf("the role is about %v of %v", rule.Resources, rule.APIGroups)
	}
	return strings.Join(rule.Verbs, " ")
}

// TestJobsEnd: a Job that hangs ends two minutes after the command should have.
func TestJobsEnd(t *testing.T) {
	for timeout, want := range map[string]float64{"5m": 420, "1h30m": 5520, "0090s": 210, "1500ms": 122, "1h1m1s1ms": 3782} {
		found := 0
		for _, u := range objects(t, render(t, map[string]any{"uninstall": map[string]any{"timeout": timeout}}, "--show-only", "templates/uninstall.yaml")) {
			if u.GetKind() != "Job" {
				continue
			}
			found++
			if got, _, err := unstructured.NestedFloat64(u.Object, "spec", "activeDeadlineSeconds"); err != nil || got != want {
				t.Errorf("%s: %s ends after %v seconds, want %v (%v)", timeout, u.GetName(), got, want, err)
			}
		}
		if found != 2 {
			t.Errorf("%s: there are %d Jobs", timeout, found)
		}
	}
}

// checkNoSidecar: with a sidecar beside it a Job's pod never ends, and the uninstallation
// waits for the Job.
func checkNoSidecar(t *testing.T, job *unstructured.Unstructured) {
	t.Helper()
	istio, _, _ := unstructured.NestedString(job.Object, "spec", "template", "metadata", "labels", "sidecar.istio.io/inject")
	linkerd, _, _ := unstructured.NestedString(job.Object, "spec", "template", "metadata", "annotations", "linkerd.io/inject")
	if istio != "false" || linkerd != "disabled" {
		t.Errorf("Job %s: Istio is told %q and Linkerd %q, want false and disabled", job.GetName(), istio, linkerd)
	}
}

// TestARolloutThatComesLate: one that is made anew after all were deleted, and that the
// controller has taken up before it went, does not hold the definition.
func TestARolloutThatComesLate(t *testing.T) {
	bed := emptyCluster(t)
	shop(t, bed, "shop")
	helm(t, bed, "install", map[string]any{"crds": map[string]any{"keep": false}})
	m := startManager(t, bed, deployedFlags(t, bed), "weightedrollout-manager")
	late := plan("web", "shop", required("10")...)
	key := client.ObjectKeyFromObject(late)
	played := playJobs(t, bed, func(job string) error {
		if job != "weightedrollout-stand-down" {
			return nil
		}
		// No test function may be called here: this is not the test's goroutine.
		if err := bed.Client.Create(t.Context(), late); err != nil {
			return err
		}
		for ctx := t.Context(); ctx.Err() == nil && !slices.Contains(late.Finalizers, v1alpha1.Finalizer); {
			if err := bed.Client.Get(ctx, key, late); err != nil {
				return err
			}
		}
		return m.Kill()
	})
	mustRun(t, bed, "helm", "uninstall", release, "--namespace", system, "--timeout", "10m")
	wantDefinitionGone(t, bed)
	if out := played.output("weightedrollout-stand-down-finalizers"); !strings.Contains(out, "shop/web: ") {
		t.Errorf("the hook after says nothing of the rollout:\n%s", out)
	}
	if left := releaseObjects(t, bed); len(left) > 0 {
		t.Errorf("the uninstallation leaves %v", left)
	}
}

// wantDefinitionGone waits until the definition is gone.
func wantDefinitionGone(t *testing.T, bed *testbed.Bed) {
	t.Helper()
	eventually(t, "the definition is gone", func() (bool, string) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := bed.Client.Get(t.Context(), client.ObjectKey{Name: definition}, crd)
		return apierrors.IsNotFound(err), fmt.Sprint(err, crd.Status.Conditions)
	})
}

// TestANamespaceIsGone: a release for namespaces can be uninstalled when one of them was
// deleted before.
func TestANamespaceIsGone(t *testing.T) {
	bed := emptyCluster(t)
	for _, namespace := range []string{"shop", "gone"} {
		if err := bed.CreateNamespace(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
	}
	helm(t, bed, "install", map[string]any{"namespaces": []any{"shop", "gone"}})
	gone := &corev1.Namespace{}
	gone.Name = "gone"
	if err := bed.Client.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	// Nobody here empties the namespace and lets go of it.
	if err := bed.Client.Get(t.Context(), client.ObjectKeyFromObject(gone), gone); err != nil {
		t.Fatal(err)
	}
	gone.Spec.Finalizers = nil
	if err := bed.Client.SubResource("finalize").Update(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func() (bool, string) {
		err := bed.Client.Get(t.Context(), client.ObjectKeyFromObject(gone), gone)
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	played := playJobs(t, bed)
	mustRun(t, bed, "helm", "uninstall", release, "--namespace", system, "--timeout", "10m")
	if out := played.output("weightedrollout-stand-down"); !strings.Contains(out, "there is no rollout in the namespace gone") {
		t.Errorf("the hook before says\n%s", out)
	}
	var roles rbacv1.ClusterRoleList
	if err := bed.Client.List(t.Context(), &roles); err != nil {
		t.Fatal(err)
	}
	for _, role := range roles.Items {
		if strings.HasPrefix(role.Name, "weightedrollout-stand-down") {
			t.Errorf("the right of the Jobs is left: ClusterRole %s", role.Name)
		}
	}
}
