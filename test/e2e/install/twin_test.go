package install

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestChartHoldsWhatConfigHolds compares the chart's copies with their originals.
func TestChartHoldsWhatConfigHolds(t *testing.T) {
	for copied, original := range map[string]string{
		"weightedrollout.dev_weightedrollouts.yaml": "config/crd/bases/weightedrollout.dev_weightedrollouts.yaml",
		"role.yaml":      "config/rbac/role.yaml",
		"approvals.yaml": "config/approval/policy.yaml",
	} {
		if readFile(t, chart+"/files/"+copied) != readFile(t, filepath.Join(root, original)) {
			t.Errorf("charts/weightedrollout/files/%s is not %s: run hack/sync-chart.sh", copied, original)
		}
	}
}

// TestSyncChart runs the script on copies of what it reads.
func TestSyncChart(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{
		"hack/sync-chart.sh", "config/crd/bases/weightedrollout.dev_weightedrollouts.yaml", "config/rbac/role.yaml", "config/approval/policy.yaml",
	} {
		to := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(readFile(t, filepath.Join(root, path))), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	runIn(t, dir, "hack/sync-chart.sh")
	for _, file := range []string{"weightedrollout.dev_weightedrollouts.yaml", "role.yaml", "approvals.yaml"} {
		if readFile(t, filepath.Join(dir, "charts/weightedrollout/files", file)) != readFile(t, chart+"/files/"+file) {
			t.Errorf("hack/sync-chart.sh writes another %s than the chart has", file)
		}
	}
}

// TestDefinitionIsNotChanged: templating changes nothing in the CustomResourceDefinition
// but the annotation that keeps it.
func TestDefinitionIsNotChanged(t *testing.T) {
	want := readFile(t, root+"/config/crd/bases/weightedrollout.dev_weightedrollouts.yaml")
	const keep = "    helm.sh/resource-policy: keep\n"
	for name, kept := range map[string]bool{"kept": true, "not kept": false} {
		t.Run(name, func(t *testing.T) {
			text := render(t, map[string]any{"crds": map[string]any{"keep": kept}}, "--show-only", "templates/crd.yaml")
			if got := strings.Count(text, keep); got != map[bool]int{true: 1, false: 0}[kept] {
				t.Errorf("the annotation that keeps it is there %d times", got)
			}
			text = strings.Replace(text, keep, "", 1)
			text = strings.TrimPrefix(text, "---\n# Source: weightedrollout/templates/crd.yaml\n")
			if diff := cmp.Diff(strings.TrimSpace(strings.TrimPrefix(want, "---\n")), strings.TrimSpace(strings.TrimPrefix(text, "---\n"))); diff != "" {
				t.Errorf("it was changed (-want +got)\n%s", diff)
			}
		})
	}
}

// helmsLabels are those that Helm's habits add to every object.
var helmsLabels = []string{"app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"}

// sharedPart removes from an object of the chart what differs on purpose:
//   - Helm's labels;
//   - the annotation that keeps the CustomResourceDefinition;
//   - the image's tag, which is dev in config/ and the chart's appVersion there.
//
// The namespace is in config/ alone, since helm install --create-namespace makes it, and
// the hooks of helm uninstall are in the chart alone.
func sharedPart(u *unstructured.Unstructured) map[string]any {
	labels := u.GetLabels()
	for _, label := range helmsLabels {
		delete(labels, label)
	}
	u.SetLabels(labels)
	annotations := u.GetAnnotations()
	delete(annotations, "helm.sh/resource-policy")
	u.SetAnnotations(annotations)
	for _, path := range [][]string{{"metadata", "labels"}, {"metadata", "annotations"}} {
		if found, ok, _ := unstructured.NestedMap(u.Object, path...); ok && len(found) == 0 {
			unstructured.RemoveNestedField(u.Object, path...)
		}
	}
	if u.GetKind() == "Deployment" {
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			if c, ok := c.(map[string]any); ok {
				c["image"] = regexp.MustCompile(`:[^:/]+$`).ReplaceAllString(fmt.Sprint(c["image"]), "")
			}
		}
		_ = unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
	}
	return u.Object
}

// TestChartAndConfigAreTwins compares what the chart installs by default with
// config/default, object by object.
func TestChartAndConfigAreTwins(t *testing.T) {
	byName := func(text string) map[string]map[string]any {
		found := map[string]map[string]any{}
		for _, u := range objects(t, text) {
			// The labels of the namespaced and generated roles are not in their source.
			if name := u.GetName(); name == "weightedrollout-manager" && (u.GetKind() == "ClusterRole" || u.GetKind() == "Role") {
				u.SetLabels(map[string]string{"app.kubernetes.io/name": "weightedrollout"})
			}
			if u.GetKind() == "CustomResourceDefinition" {
				u.SetLabels(nil)
			}
			key := fmt.Sprintf("%s %s/%s", u.GetKind(), u.GetNamespace(), u.GetName())
			if found[key] != nil {
				t.Errorf("there are two of %s", key)
			}
			found[key] = sharedPart(u)
		}
		return found
	}
	want := byName(mustRun(t, nil, "kubectl", "kustomize", root+"/config/default"))
	got := byName(render(t, nil, "--no-hooks"))
	delete(want, "Namespace /"+system)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Fatalf("the objects differ (-config +chart)\n%s", diff)
	}
	if len(want) < 15 {
		t.Fatalf("there are %d objects, want more", len(want))
	}
	for name := range want {
		if diff := cmp.Diff(want[name], got[name]); diff != "" {
			t.Errorf("%s (-config +chart)\n%s", name, diff)
		}
	}
}

// rules returns the rules of a role, sorted, as YAML.
func rules(t *testing.T, roles ...*unstructured.Unstructured) []string {
	t.Helper()
	var all []string
	for _, role := range roles {
		list, _, err := unstructured.NestedSlice(role.Object, "rules")
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range list {
			text, err := yaml.Marshal(rule)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(text))
		}
	}
	slices.Sort(all)
	return all
}

// TestRightsOfTheController are those that its code is marked with, neither more nor
// less, whether they are given for the cluster or for namespaces.
func TestRightsOfTheController(t *testing.T) {
	generated := objects(t, readFile(t, root+"/config/rbac/role.yaml"))
	const name = "weightedrollout-manager"
	want := rules(t, find(t, generated, "ClusterRole", name))
	own := rules(t, find(t, generated, "Role", name))

	cluster := objects(t, render(t, nil))
	if diff := cmp.Diff(want, rules(t, find(t, cluster, "ClusterRole", name))); diff != "" {
		t.Errorf("for the cluster (-generated +chart)\n%s", diff)
	}
	if diff := cmp.Diff(own, rules(t, find(t, cluster, "Role", name))); diff != "" {
		t.Errorf("in its own namespace (-generated +chart)\n%s", diff)
	}

	some := objects(t, render(t, map[string]any{"namespaces": []any{"shop", system}}))
	// GatewayClasses are in no namespace, so that nobody may read them there.
	for i := range want {
		want[i] = strings.Replace(want[i], "- gatewayclasses\n", "", 1)
	}
	if diff := cmp.Diff(want, rules(t, find(t, some, "ClusterRole", name), find(t, some, "Role", name+"-rollouts"))); diff != "" {
		t.Errorf("for namespaces (-generated +chart)\n%s", diff)
	}
	if diff := cmp.Diff(own, rules(t, find(t, some, "Role", name))); diff != "" {
		t.Errorf("in its own namespace (-generated +chart)\n%s", diff)
	}
	if whole := strings.Join(rules(t, find(t, some, "ClusterRole", name)), ""); strings.Contains(whole, "rollouts") || strings.Contains(whole, "routes") {
		t.Errorf("the rights for the whole cluster go too far:\n%s", whole)
	}
}

// TestBindingsByValue counts what workloads.write and secrets.read bind.
func TestBindingsByValue(t *testing.T) {
	tests := map[string]struct {
		namespaces []any
		where      any
		want       []string
	}{
		"false":                 {nil, false, nil},
		"true":                  {nil, true, []string{"ClusterRoleBinding "}},
		"list":                  {nil, []any{"a", "b"}, []string{"RoleBinding a", "RoleBinding b"}},
		"empty list":            {nil, []any{}, nil},
		"true, for namespaces":  {[]any{"a", "c"}, true, []string{"RoleBinding a", "RoleBinding c"}},
		"false, for namespaces": {[]any{"a", "c"}, false, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{"workloads": map[string]any{"write": tc.where}, "secrets": map[string]any{"read": tc.where}}
			if tc.namespaces != nil {
				values["namespaces"] = tc.namespaces
			}
			all := objects(t, render(t, values))
			for _, role := range []string{"weightedrollout-workload-writer", "weightedrollout-metrics-secrets"} {
				find(t, all, "ClusterRole", role)
				var got []string
				for _, u := range all {
					if to, _, _ := unstructured.NestedString(u.Object, "roleRef", "name"); to == role {
						got = append(got, u.GetKind()+" "+u.GetNamespace())
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want +got)\n%s", role, diff)
				}
			}
		})
	}
}

// TestAppVersion is that of the newest release in the CHANGELOG, or dev before the first.
func TestAppVersion(t *testing.T) {
	want := "dev"
	if found := regexp.MustCompile(`(?m)^## \[?v?([0-9]+\.[0-9]+\.[0-9]+)`).FindStringSubmatch(readFile(t, root+"/CHANGELOG.md")); found != nil {
		want = found[1]
	}
	var about struct{ AppVersion string }
	if err := yaml.Unmarshal([]byte(readFile(t, chart+"/Chart.yaml")), &about); err != nil {
		t.Fatal(err)
	}
	if about.AppVersion != want {
		t.Errorf("the chart's appVersion is %q, and CHANGELOG.md has %q", about.AppVersion, want)
	}
}
