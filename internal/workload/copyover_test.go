package workload

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// applied returns what the object is after a JSON Patch.
func applied[T any](t *testing.T, object *T, patch []byte) *T {
	t.Helper()
	before, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("%s is no JSON Patch: %v", patch, err)
	}
	after, err := steps.Apply(before)
	if err != nil {
		t.Fatalf("%s does not apply: %v", patch, err)
	}
	result := new(T)
	if err := json.Unmarshal(after, result); err != nil {
		t.Fatal(err)
	}
	return result
}

func deployment(t *testing.T, text string, annotations map[string]string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-stable", ResourceVersion: "7", Annotations: map[string]string{"team": "a"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(10)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "track": "stable"}},
			Template: *template(t, text),
		},
	}
	d.Spec.Template.Labels = map[string]string{"app": "web", "track": "stable"}
	d.Spec.Template.Annotations = annotations
	return d
}

// old is what stable runs: a container and a volume more, and another image.
const old = `
spec:
  containers:
  - {name: web, image: "registry.example/web:2.4.0", env: [{name: OLD, value: "1"}]}
  - {name: log, image: "registry.example/log:1"}
  volumes: [{name: logs, emptyDir: {}}]
`

func TestUpdateDeployment(t *testing.T) {
	for _, tt := range []struct {
		name              string
		present, expected map[string]string
	}{
		{"no annotations", nil, map[string]string{"checksum/config": "abc"}},
		{"other annotations", map[string]string{"checksum/config": "old", "gone": "1"}, map[string]string{"checksum/config": "abc"}},
		{"a restart of stable", map[string]string{"kubectl.kubernetes.io/restartedAt": "then"}, map[string]string{"checksum/config": "abc", "kubectl.kubernetes.io/restartedAt": "then"}},
		{"the same annotations", map[string]string{"checksum/config": "abc"}, map[string]string{"checksum/config": "abc"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			canary := template(t, stored) // restarted too, by two tools
			d := deployment(t, old, tt.present)
			patch, err := UpdateDeployment(d, canary)
			if err != nil {
				t.Fatal(err)
			}
			want := d.DeepCopy()
			want.Spec.Template.Spec = *canary.Spec.DeepCopy()
			want.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels["track"] = "stable"
			want.Spec.Template.Annotations = tt.expected
			got := applied(t, d, patch)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the Deployment (-want +got):\n%s", diff)
			}
			if patch, err := UpdateDeployment(got, canary); patch != nil || err != nil {
				t.Errorf("once more: %s, %v, want nothing to do", patch, err)
			}
		})
	}
}

func TestUpdateTakesTheLastAnnotationAway(t *testing.T) {
	canary := template(t, old)
	d := deployment(t, rich, map[string]string{"checksum/config": "abc"})
	patch, err := UpdateDeployment(d, canary)
	if err != nil {
		t.Fatal(err)
	}
	if got := applied(t, d, patch); len(got.Spec.Template.Annotations) != 0 || !SameSpec(&got.Spec.Template, canary) {
		t.Errorf("the template is %+v, want that of the canary", got.Spec.Template)
	}
}

func TestUpdateStatefulSet(t *testing.T) {
	d := deployment(t, old, nil)
	s := &appsv1.StatefulSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3)), Template: d.Spec.Template}}
	patch, err := UpdateStatefulSet(s, template(t, rich))
	if err != nil {
		t.Fatal(err)
	}
	got := applied(t, s, patch)
	if !SameSpec(&got.Spec.Template, template(t, rich)) || *got.Spec.Replicas != 3 {
		t.Errorf("the StatefulSet is %+v", got.Spec)
	}
	if !strings.HasPrefix(string(patch), `[{"op":"replace","path":"/metadata/resourceVersion","value":"7"},`) {
		t.Errorf("the patch does not begin with what it was computed from: %.100s", patch)
	}
}

func TestUpdateFails(t *testing.T) {
	unread := deployment(t, old, nil)
	unread.ResourceVersion = ""
	for _, tt := range []struct {
		name   string
		update func() ([]byte, error)
		says   string
	}{
		{"no Deployment", func() ([]byte, error) { return UpdateDeployment(nil, template(t, rich)) }, "no Deployment"},
		{"no StatefulSet", func() ([]byte, error) { return UpdateStatefulSet(nil, template(t, rich)) }, "no StatefulSet"},
		{"no template", func() ([]byte, error) { return UpdateDeployment(deployment(t, old, nil), nil) }, "no pod template"},
		{"no resourceVersion", func() ([]byte, error) { return UpdateDeployment(unread, template(t, rich)) }, "Deployment shop/web-stable has no resourceVersion"},
	} {
		patch, err := tt.update()
		if err == nil || !strings.Contains(err.Error(), tt.says) || patch != nil {
			t.Errorf("%s: %s, %v, want an error that says %q", tt.name, patch, err, tt.says)
		}
	}
	if got := CopyOver(nil, template(t, rich)); got != nil {
		t.Errorf("CopyOver of nothing = %v", got)
	}
}

// A spec refers to pods by labels in several places, and each label has its own reason
// to be translated or not.
func TestCopyOverTranslatesSelectors(t *testing.T) {
	canary, stable := template(t, rich), template(t, old)
	canary.Labels = map[string]string{"app": "web", "track": "canary", "only": "canary"}
	stable.Labels = map[string]string{"app": "web", "track": "stable"}
	matching := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	in := func(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "track", Operator: operator, Values: values}}}
	}
	for _, tt := range []struct {
		name       string
		given      *metav1.LabelSelector
		want       *metav1.LabelSelector
		namespaces []string
	}{
		{"its own value", matching("track", "canary"), matching("track", "stable"), nil},
		{"a value that both have", matching("app", "web"), matching("app", "web"), nil},
		{"another workload", matching("track", "cache"), matching("track", "cache"), nil},
		{"a label that stable does not have", matching("only", "canary"), matching("only", "canary"), nil},
		{"In its own", in("In", "canary"), in("In", "stable"), nil},
		{"NotIn its own", in("NotIn", "cache", "canary"), in("NotIn", "cache", "stable"), nil},
		{"In both versions", in("In", "stable", "canary"), in("In", "stable", "canary"), nil},
		{"Exists", in("Exists"), in("Exists"), nil},
		{"pods of another namespace", matching("track", "canary"), matching("track", "canary"), []string{"other"}},
		{"no selector", nil, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			canary := canary.DeepCopy()
			term := corev1.PodAffinityTerm{LabelSelector: tt.given, Namespaces: tt.namespaces}
			canary.Spec.Affinity = &corev1.Affinity{
				PodAffinity:     &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: term}}},
				PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}},
			}
			got := CopyOver(canary, stable)
			a := got.Spec.Affinity
			for place, s := range map[string]*metav1.LabelSelector{
				"preferred": a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.LabelSelector,
				"required":  a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector,
			} {
				if diff := cmp.Diff(tt.want, s); diff != "" {
					t.Errorf("%s (-want +got):\n%s", place, diff)
				}
			}
			if !SameSpec(canary, got) || !SameSpec(got, canary) {
				t.Error("what was copied is not the same")
			}
		})
	}
}

// Who copies the canary's spec to stable by hand may or may not translate it.
func TestSameSpecTakesEitherLabel(t *testing.T) {
	canary, stable := template(t, rich), template(t, rich)
	stable.Labels["track"] = "stable"
	if !SameSpec(canary, stable) {
		t.Error("a spec that was copied word for word is told apart")
	}
	stable.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels["track"] = "stable"
	if !SameSpec(canary, stable) {
		t.Error("a spec whose selector was translated is told apart")
	}
	stable.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels["track"] = "cache"
	if SameSpec(canary, stable) {
		t.Error("a spec that refers to other pods is not told apart")
	}
}
