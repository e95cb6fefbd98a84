package workload

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Another revision for the same template would look like a new version to every rollout
// under way, so a build that gives one has to say so.
func TestRevisionIsPinned(t *testing.T) {
	if got, want := Revision(template(t, rich)), "vvqxbpq5qgby"; got != want {
		t.Errorf("Revision = %q, want %q as ever", got, want)
	}
}

func TestRevisionOfWhatTheAPIServerStores(t *testing.T) {
	written, read := template(t, rich), template(t, stored)
	if a, b := Revision(written), Revision(read); a != b {
		t.Errorf("as written %s, as stored %s", a, b)
	}
	if !SameSpec(written, read) {
		t.Error("SameSpec tells the template as written from the one as stored")
	}
}

func TestRevisionFitsALabel(t *testing.T) {
	got := Revision(template(t, rich))
	if !regexp.MustCompile(`^[a-z2-7]{12}$`).MatchString(got) {
		t.Errorf("Revision = %q, want 12 letters and digits", got)
	}
}

func TestRevisionOfNothing(t *testing.T) {
	broken := template(t, rich)
	broken.Spec.Containers[0].ReadinessProbe.HTTPGet.Port = intstr.IntOrString{Type: 7}
	for name, template := range map[string]*corev1.PodTemplateSpec{"nil": nil, "not JSON": broken} {
		if got := Revision(template); got != "" {
			t.Errorf("%s: Revision = %q, want none", name, got)
		}
		if SameSpec(template, template) {
			t.Errorf("%s: SameSpec holds", name)
		}
	}
}

// change is one edit of the rich template.
type change struct {
	name string
	edit func(*corev1.PodTemplateSpec)
}

func web(t *corev1.PodTemplateSpec) *corev1.Container { return &t.Spec.Containers[0] }

// versions are edits after which the template is another version, whatever its labels.
var versions = []change{
	{"another image", func(t *corev1.PodTemplateSpec) { web(t).Image = "registry.example/web:2.4.2" }},
	{"a pull policy", func(t *corev1.PodTemplateSpec) { web(t).ImagePullPolicy = corev1.PullAlways }},
	{"another value of a variable", func(t *corev1.PodTemplateSpec) { web(t).Env[0].Value = "2" }},
	{"variables in another order", func(t *corev1.PodTemplateSpec) { web(t).Env[0], web(t).Env[1] = web(t).Env[1], web(t).Env[0] }},
	{"arguments in another order", func(t *corev1.PodTemplateSpec) { web(t).Args = []string{"--fast", "serve"} }},
	{"an empty argument", func(t *corev1.PodTemplateSpec) { web(t).Args = []string{"serve", "--fast", ""} }},
	{"containers in another order", func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0], t.Spec.Containers[1] = t.Spec.Containers[1], t.Spec.Containers[0]
	}},
	{"a container less", func(t *corev1.PodTemplateSpec) { t.Spec.Containers = t.Spec.Containers[:1] }},
	{"another port", func(t *corev1.PodTemplateSpec) { web(t).Ports[0].ContainerPort = 8081 }},
	{"a port of UDP", func(t *corev1.PodTemplateSpec) { web(t).Ports[0].Protocol = corev1.ProtocolUDP }},
	{"another path of a probe", func(t *corev1.PodTemplateSpec) { web(t).ReadinessProbe.HTTPGet.Path = "/ready" }},
	{"another threshold of a probe", func(t *corev1.PodTemplateSpec) { web(t).ReadinessProbe.FailureThreshold = 4 }},
	{"no probe", func(t *corev1.PodTemplateSpec) { web(t).ReadinessProbe = nil }},
	{"another limit", func(t *corev1.PodTemplateSpec) {
		web(t).Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1001m")
	}},
	{"an annotation of the configuration", func(t *corev1.PodTemplateSpec) { t.Annotations["checksum/config"] = "abd" }},
	{"an annotation without a value", func(t *corev1.PodTemplateSpec) { t.Annotations["sidecar.istio.io/inject"] = "" }},
	{"no annotation", func(t *corev1.PodTemplateSpec) { t.Annotations = nil }},
	{"another service account", func(t *corev1.PodTemplateSpec) { t.Spec.ServiceAccountName = "other" }},
	{"no service links", func(t *corev1.PodTemplateSpec) { t.Spec.EnableServiceLinks = new(false) }},
	{"no grace", func(t *corev1.PodTemplateSpec) { t.Spec.TerminationGracePeriodSeconds = new(int64(0)) }},
	{"a node selector without a value", func(t *corev1.PodTemplateSpec) { t.Spec.NodeSelector = map[string]string{"gpu": ""} }},
	{"a selector of everything", func(t *corev1.PodTemplateSpec) {
		t.Spec.TopologySpreadConstraints[0].LabelSelector = &metav1.LabelSelector{}
	}},
	{"a selector of nothing", func(t *corev1.PodTemplateSpec) { t.Spec.TopologySpreadConstraints[0].LabelSelector = nil }},
	{"a toleration of everything", func(t *corev1.PodTemplateSpec) {
		t.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}},
	{"a volume in memory", func(t *corev1.PodTemplateSpec) {
		t.Spec.Volumes[1].EmptyDir = &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}
	}},
	{"a volume of no sources", func(t *corev1.PodTemplateSpec) { t.Spec.Volumes[1].Projected = &corev1.ProjectedVolumeSource{} }},
	{"another mode of files", func(t *corev1.PodTemplateSpec) { t.Spec.Volumes[0].ConfigMap.DefaultMode = new(int32(0o600)) }},
}

// ways are edits after which the template says the same in another way.
var ways = []change{
	{"the tag's pull policy", func(t *corev1.PodTemplateSpec) { web(t).ImagePullPolicy = corev1.PullIfNotPresent }},
	{"empty lists", func(t *corev1.PodTemplateSpec) {
		web(t).Command, t.Spec.Tolerations = []string{}, []corev1.Toleration{}
	}},
	{"empty maps", func(t *corev1.PodTemplateSpec) {
		t.Spec.NodeSelector, web(t).SecurityContext, t.Spec.Affinity = map[string]string{}, &corev1.SecurityContext{}, &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}
	}},
	{"the old name of the service account", func(t *corev1.PodTemplateSpec) {
		t.Spec.DeprecatedServiceAccount, t.Spec.ServiceAccountName = "web", ""
	}},
	{"a quantity in other units", func(t *corev1.PodTemplateSpec) {
		web(t).Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m"), corev1.ResourceMemory: resource.MustParse("1024Mi")}
	}},
	{"a quantity finer than is stored", func(t *corev1.PodTemplateSpec) {
		web(t).Resources.Requests[corev1.ResourceCPU] = resource.MustParse("499999u")
	}},
	{"a restart", func(t *corev1.PodTemplateSpec) { t.Annotations["kubectl.kubernetes.io/restartedAt"] = "now" }},
	{"a restart by Rancher", func(t *corev1.PodTemplateSpec) { t.Annotations["cattle.io/timestamp"] = "now" }},
	{"an annotation of the Deployment's controller", func(t *corev1.PodTemplateSpec) { t.Annotations["deployment.kubernetes.io/revision"] = "7" }},
	{"service links", func(t *corev1.PodTemplateSpec) { t.Spec.EnableServiceLinks = new(true) }},
	{"a name and a time in its metadata", func(t *corev1.PodTemplateSpec) { t.Name, t.CreationTimestamp = "web", metav1.Unix(1, 0) }},
}

func TestRevisionOfAnotherVersion(t *testing.T) {
	before := Revision(template(t, rich))
	seen := map[string]string{before: "the template itself"}
	for _, c := range versions {
		edited := template(t, rich)
		c.edit(edited)
		got := Revision(edited)
		if other, ok := seen[got]; ok {
			t.Errorf("%s: the revision is that of %s", c.name, other)
		}
		seen[got] = c.name
		if SameSpec(template(t, rich), edited) || SameSpec(edited, template(t, rich)) {
			t.Errorf("%s: SameSpec does not tell it", c.name)
		}
	}
}

func TestRevisionOfTheSameVersion(t *testing.T) {
	for _, c := range ways {
		edited := template(t, rich)
		c.edit(edited)
		if got, want := Revision(edited), Revision(template(t, rich)); got != want {
			t.Errorf("%s: the revision changed from %s to %s", c.name, want, got)
		}
		if !SameSpec(template(t, rich), edited) {
			t.Errorf("%s: SameSpec tells it", c.name)
		}
	}
}

func TestRevisionCountsLabels(t *testing.T) {
	edited := template(t, rich)
	edited.Labels["version"] = ""
	if Revision(edited) == Revision(template(t, rich)) {
		t.Error("a label did not change the revision")
	}
	if !SameSpec(edited, template(t, rich)) {
		t.Error("SameSpec looks at a label that no selector asks for")
	}
}

func TestRevisionLeavesItsInput(t *testing.T) {
	for _, text := range []string{rich, stored} {
		given := template(t, text)
		Revision(given)
		SameSpec(given, template(t, rich))
		if diff := cmp.Diff(template(t, text), given); diff != "" {
			t.Errorf("the template was changed (-before +after):\n%s", diff)
		}
	}
}

func TestStandardPullPolicy(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"":                                    corev1.PullAlways,
		"web":                                 corev1.PullAlways,
		"web:latest":                          corev1.PullAlways,
		"registry.example:5000/web":           corev1.PullAlways,
		"web:latest@sha256:00":                corev1.PullAlways,
		"web:v1":                              corev1.PullIfNotPresent,
		"registry.example:5000/a/web:v1":      corev1.PullIfNotPresent,
		"web@sha256:00":                       corev1.PullIfNotPresent,
		"registry.example:5000/web@sha256:00": corev1.PullIfNotPresent,
	} {
		if got := standardPullPolicy(image); got != want {
			t.Errorf("%q: %s, want %s", image, got, want)
		}
	}
}
