package workload

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// drawVersion makes any of the known edits of the rich template, in any order.
func drawVersion(t *rapid.T, base *corev1.PodTemplateSpec, label string) *corev1.PodTemplateSpec {
	result := base.DeepCopy()
	for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(versions)-1), 0, 4).Draw(t, label) {
		// An edit may need what another one took away.
		if result.Annotations == nil {
			result.Annotations = map[string]string{}
		}
		if web(result).Name != "web" {
			slices.Reverse(result.Spec.Containers)
		}
		if web(result).ReadinessProbe == nil {
			web(result).ReadinessProbe = base.Spec.Containers[0].ReadinessProbe.DeepCopy()
		}
		if len(result.Spec.Containers) == 1 {
			result.Spec.Containers = append(result.Spec.Containers, *base.Spec.Containers[1].DeepCopy())
		}
		versions[i].edit(result)
	}
	return result
}

// fillIn gives any of the fields that are not set the value that the API server would,
// and adds what tools add.
func fillIn(t *rapid.T, template *corev1.PodTemplateSpec) {
	coin := func() bool { return rapid.Bool().Draw(t, "filled in") }
	spec := &template.Spec
	if coin() && spec.RestartPolicy == "" {
		spec.RestartPolicy = "Always"
	}
	if coin() && spec.DNSPolicy == "" {
		spec.DNSPolicy = "ClusterFirst"
	}
	if coin() && spec.SchedulerName == "" {
		spec.SchedulerName = "default-scheduler"
	}
	if coin() && spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = new(int64(30))
	}
	if coin() && spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if coin() {
		spec.DeprecatedServiceAccount = spec.ServiceAccountName
	}
	if coin() {
		metav1.SetMetaDataAnnotation(&template.ObjectMeta, "kubectl.kubernetes.io/restartedAt", "now")
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		if coin() && c.ImagePullPolicy == "" {
			c.ImagePullPolicy = "IfNotPresent" // all have a tag or a digest
		}
		if coin() && c.TerminationMessagePath == "" {
			c.TerminationMessagePath = "/dev/termination-log"
		}
		if coin() && c.ReadinessProbe != nil && c.ReadinessProbe.PeriodSeconds == 0 {
			c.ReadinessProbe.PeriodSeconds = 10
		}
		for j := range c.Ports {
			if coin() && c.Ports[j].Protocol == "" {
				c.Ports[j].Protocol = "TCP"
			}
		}
	}
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; coin() && v.VolumeSource == (corev1.VolumeSource{}) {
			v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
	}
}

func drawLabels(t *rapid.T, name string) map[string]string {
	return rapid.MapOf(rapid.SampledFrom([]string{"app", "track", "version"}), rapid.SampledFrom([]string{"", "web", "canary", "stable"})).Draw(t, name)
}

func TestPropertyWhatIsFilledInDoesNotCount(t *testing.T) {
	base := template(t, rich)
	rapid.Check(t, func(t *rapid.T) {
		version := drawVersion(t, base, "edits")
		filled := version.DeepCopy()
		fillIn(t, filled)
		if a, b := Revision(version), Revision(filled); a == "" || a != b {
			t.Fatalf("as written %q, filled in %q:\n%s", a, b, cmp.Diff(version, filled))
		}
	})
}

func TestPropertyCopyOver(t *testing.T) {
	base := template(t, rich)
	rapid.Check(t, func(t *rapid.T) {
		canary, stable := drawVersion(t, base, "canary's edits"), drawVersion(t, base, "stable's edits")
		canary.Labels, stable.Labels = drawLabels(t, "canary's labels"), drawLabels(t, "stable's labels")
		canary.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: drawSelector(t)}},
		}}
		canaryBefore, stableBefore := canary.DeepCopy(), stable.DeepCopy()
		got := CopyOver(canary, stable)
		if !SameSpec(canary, got) || !SameSpec(got, canary) {
			t.Fatalf("what was copied is not the same:\n%s", cmp.Diff(canary, got))
		}
		if !maps.Equal(got.Labels, stable.Labels) {
			t.Fatalf("stable's labels are %v, want %v", got.Labels, stable.Labels)
		}
		if again := CopyOver(canary, got); !cmp.Equal(got, again) {
			t.Fatalf("copying again changes it:\n%s", cmp.Diff(got, again))
		}
		if diff := cmp.Diff([]any{canaryBefore, stableBefore}, []any{canary, stable}); diff != "" {
			t.Fatalf("the templates were changed (-before +after):\n%s", diff)
		}
	})
}

func drawSelector(t *rapid.T) *metav1.LabelSelector {
	values := rapid.SampledFrom([]string{"", "web", "canary", "stable"})
	s := &metav1.LabelSelector{MatchLabels: drawLabels(t, "matchLabels")}
	for range rapid.IntRange(0, 2).Draw(t, "expressions") {
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{
			Key:      rapid.SampledFrom([]string{"app", "track"}).Draw(t, "key"),
			Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn}).Draw(t, "operator"),
			Values:   rapid.SliceOfN(values, 1, 3).Draw(t, "values"),
		})
	}
	return s
}
