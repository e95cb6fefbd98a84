package install

import (
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// render renders the chart with some values.
func render(t *testing.T, values map[string]any, args ...string) string {
	t.Helper()
	text, err := tryRender(t, values, args...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func tryRender(t *testing.T, values map[string]any, args ...string) (string, error) {
	t.Helper()
	text, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"template", release, chart, "--namespace", system, "--values", "-"}, args...)
	return commandWith(t.Context(), nil, string(text), "helm", args...)
}

// objects reads the objects of a YAML text.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	var all []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if u.GetKind() != "" {
			all = append(all, u)
		}
	}
}

// find returns the object of a kind and name, which has to be there.
func find(t *testing.T, all []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, u := range all {
		if u.GetKind() == kind && u.GetName() == name {
			return u
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

// container returns the first container of a Deployment or a Job.
func container(t *testing.T, u *unstructured.Unstructured) map[string]any {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		t.Fatalf("%s %s has %d containers, want 1 (%v)", u.GetKind(), u.GetName(), len(containers), err)
	}
	first, _ := containers[0].(map[string]any)
	return first
}

func args(t *testing.T, u *unstructured.Unstructured) []string {
	t.Helper()
	list, _, err := unstructured.NestedStringSlice(container(t, u), "args")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestLint(t *testing.T) {
	mustRun(t, nil, "helm", "lint", "--strict", chart)
	for name := range valueCases(t) {
		mustRun(t, nil, "helm", "lint", "--strict", chart, "--values", "testdata/values/"+name+".yaml")
	}
}

// TestRenderedObjectsAreAccepted has the API server check what the chart makes of each
// set of values, without a warning: the namespace asks for the standard "restricted" of
// pods. The manager's own program checks its flags.
func TestRenderedObjectsAreAccepted(t *testing.T) {
	bed := cluster(t)
	for _, namespace := range []string{"shop", "checkout", "payments"} {
		if err := bed.CreateNamespace(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
	}
	cases := valueCases(t)
	cases["standard"] = map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			text := render(t, cases[name])
			out, err := commandWith(t.Context(), bed, text, "kubectl", "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "--warnings-as-errors", "-f", "-")
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			all := objects(t, text)
			for _, u := range all {
				if u.GetKind() == "Deployment" {
					mustRun(t, nil, "manager", append(args(t, u), "--version")...)
				}
			}
			if got := strings.Count(out, "(server dry run)"); got != len(all) {
				t.Errorf("the API server took %d objects of %d:\n%s", got, len(all), out)
			}
		})
	}
}

// TestEveryValueMatters changes each documented value in at least one set of values, and
// in one of them it makes a difference.
func TestEveryValueMatters(t *testing.T) {
	cases := valueCases(t)
	rendered := map[string]string{}
	for name, values := range cases {
		rendered[name] = render(t, values)
	}
	for _, v := range documentedValues(t) {
		changed, matters := false, false
		for name, values := range cases {
			standard, there := without(values, v.path)
			if !there || matters {
				continue
			}
			changed = true
			// Without this value the others may be wrong; then it matters.
			text, err := tryRender(t, standard)
			matters = err != nil || text != rendered[name]
		}
		switch {
		case !changed:
			t.Errorf("no file in testdata/values changes %s", v.path)
		case !matters:
			t.Errorf("%s makes no difference in any file of testdata/values", v.path)
		}
	}
}

// TestUnknownValuesAreRefused puts an unknown key wherever the schema has keys.
func TestUnknownValuesAreRefused(t *testing.T) {
	levels := []string{""}
	var look func(s schema, path string)
	look = func(s schema, path string) {
		for name, property := range s.properties() {
			at := strings.TrimPrefix(path+"."+name, ".")
			if property["additionalProperties"] == false {
				levels = append(levels, at+".")
				look(property, at)
			}
		}
	}
	look(readSchema(t), "")
	if len(levels) < 20 {
		t.Fatalf("the schema has %d levels, want more", len(levels))
	}
	slices.Sort(levels)
	for _, level := range levels {
		_, err := command(t.Context(), nil, "helm", "template", release, chart, "--set", level+"unknownKey=1")
		if err == nil || !strings.Contains(err.Error(), "unknownKey") {
			t.Errorf("%sunknownKey: %v, want an error that names it", level, err)
		}
	}
}

// TestWrongValuesAreRefused says which value is wrong, before anything reaches a cluster.
func TestWrongValuesAreRefused(t *testing.T) {
	tests := map[string]struct {
		set  []string
		want string
	}{
		"a word for a number":         {[]string{"replicas=many"}, "replicas"},
		"confirm":                     {[]string{"confirm=perhaps"}, "confirm"},
		"a controller without a name": {[]string{"gatewayControllers={traefik.io}"}, "gatewayControllers"},
		"no worker":                   {[]string{"workers=0"}, "workers"},
		"address without scheme":      {[]string{"prometheus.address=prometheus:9090"}, "prometheus/address"},
		"address with a password":     {[]string{"prometheus.address=http://user:secret@prometheus"}, "prometheus/address"},
		"address with a comma":        {[]string{`metricsAddressAllow={http://a\,b}`}, "metricsAddressAllow"},
		"address with a query":        {[]string{"prometheus.address=http://prometheus:9090/graph?x=1"}, "prometheus/address"},
		"allowed path with dots":      {[]string{"metricsAddressAllow={http://prometheus/..}"}, "metricsAddressAllow: http://prometheus/.. has . or .. in its path"},
		"names below an IP address":   {[]string{"metricsAddressAllow={http://*.10.0.0.1}"}, "a * before an IP address"},
		"a port too high":             {[]string{"metricsAddressAllow={http://prometheus:65536}"}, "a port that is not from 1 to 65535"},
		"no time for an answer":       {[]string{"prometheus.timeout=0s"}, "prometheus/timeout"},
		"no time to stand down":       {[]string{"uninstall.timeout=0m0s"}, "uninstall/timeout"},
		"a time beyond all bounds":    {[]string{"uninstall.timeout=99999999999h"}, "uninstall/timeout"},
		"an answer after that":        {[]string{"prometheus.timeout=99999999999h"}, "prometheus/timeout"},
		"workloads somewhere else":    {[]string{"namespaces={shop}", "workloads.write={shop,other}"}, "workloads.write: other is not in namespaces"},
		"Secrets somewhere else":      {[]string{"namespaces={shop}", "secrets.read={other}"}, "secrets.read: other is not in namespaces"},
		"token for nobody":            {[]string{"prometheus.bearerTokenSecret.name=metrics"}, "set that too"},
		"authorities over http":       {[]string{"prometheus.caSecret.name=ca", "prometheus.address=http://prometheus:9090"}, "https address"},
		"token for no webhook":        {[]string{"notifications.tokenKey=token"}, "set that too"},
		"namespaces with a capital":   {[]string{"namespaces={Shop}"}, "namespaces"},
		"PodMonitor without a token":  {[]string{"podMonitor.enabled=true"}, "podMonitor.bearerTokenSecret.name"},
		"flag without a dash":         {[]string{"extraArgs={workers=3}"}, "extraArgs"},
		"label that finds the pods":   {[]string{`podLabels.app\.kubernetes\.io/name=other`}, "podLabels"},
		"a section of nothing":        {[]string{"uninstall=null"}, "uninstall"},
		"a value of nothing":          {[]string{"podLabels=null"}, "podLabels"},
		"digest":                      {[]string{"image.digest=sha256:abc"}, "image/digest"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			args := []string{"template", release, chart}
			for _, set := range tc.set {
				args = append(args, "--set", set)
			}
			out, err := command(t.Context(), nil, "helm", args...)
			if err == nil {
				t.Fatalf("it was rendered:\n%.500s", out)
			}
			if !strings.Contains(strings.ReplaceAll(err.Error(), ".", "/"), strings.ReplaceAll(tc.want, ".", "/")) {
				t.Errorf("%v\nwant it to say %q", err, tc.want)
			}
		})
	}
}

// TestGlobalValuesOfAParentChart are Helm's own, and no reason to refuse the chart.
func TestGlobalValuesOfAParentChart(t *testing.T) {
	render(t, map[string]any{"global": map[string]any{"imageRegistry": "registry.example"}})
}

// TestNamesFollowTheRelease renders another release; nothing may keep the first one's names.
func TestNamesFollowTheRelease(t *testing.T) {
	text := mustRun(t, nil, "helm", "template", "canary", chart, "--namespace", "canaries")
	for _, u := range objects(t, text) {
		if u.GetKind() == "CustomResourceDefinition" {
			continue
		}
		if !strings.HasPrefix(u.GetName(), "canary-weightedrollout-") {
			t.Errorf("%s %s does not begin with the release's name", u.GetKind(), u.GetName())
		}
		if ns := u.GetNamespace(); ns != "" && ns != "canaries" {
			t.Errorf("%s %s is in namespace %s", u.GetKind(), u.GetName(), ns)
		}
	}
	if found := regexp.MustCompile(`weightedrollout-system|(name:|role|https:) ?weightedrollout-`).FindString(text); found != "" {
		t.Errorf("%q is left of another release", found)
	}
}
