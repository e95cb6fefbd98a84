package manifest_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/manifest"
)

const root = "../.."

// object is the least that is accepted, without plan, ramp and onUnhealthy.
const object = `apiVersion: weightedrollout.dev/v1alpha1
kind: WeightedRollout
metadata: {name: checkout}
spec:
  revision: "2.4.1"
  routes: [{name: checkout}]
  stable: {service: checkout-stable, port: 8080}
  canary: {service: checkout-canary, port: 8080}
`

// health is what each object needs as well.
const health = "  health: {preset: Traefik, errorRate: {maxPercent: 1}}\n"

const otherObjects = `# A comment alone.
---
apiVersion: v1
kind: Service
metadata: {name: checkout-stable}
---
`

func TestDecodeFillsInDefaults(t *testing.T) {
	got := decode(t, object+health)
	spec := got.Spec
	if got.Name != "checkout" || spec.Mode != v1alpha1.ModeEnforce || spec.OnDelete != v1alpha1.DeletionRestore {
		t.Errorf("name %q, mode %q, onDelete %q", got.Name, spec.Mode, spec.OnDelete)
	}
	want := []v1alpha1.Stage{}
	for _, weight := range []v1alpha1.Percent{"1", "5", "10", "20", "50"} {
		want = append(want, v1alpha1.Stage{Weight: weight, Soak: "30m", Approval: v1alpha1.ApprovalNone})
	}
	if diff := cmp.Diff(want, spec.Plan.Stages); diff != "" {
		t.Errorf("plan.stages (-want +got):\n%s", diff)
	}
	ramp := [4]string{string(spec.Ramp.MinIncrease), string(spec.Ramp.MaxIncrease), string(spec.Ramp.MaxChangePercent), string(spec.Ramp.Interval)}
	if diff := cmp.Diff([4]string{"1", "10", "20", "1m"}, ramp); diff != "" {
		t.Errorf("ramp (-want +got):\n%s", diff)
	}
	measured := [3]string{string(spec.Health.Window), string(spec.Health.Interval), string(spec.Health.SampleDelay)}
	if diff := cmp.Diff([3]string{"1m", "15s", "15s"}, measured); diff != "" {
		t.Errorf("health (-want +got):\n%s", diff)
	}
	if spec.Health.MinRequests != 100 || spec.Health.MinRampRequests != 20 {
		t.Errorf("minRequests %d and minRampRequests %d, want 100 and 20", spec.Health.MinRequests, spec.Health.MinRampRequests)
	}
}

// TestDecodeIsStable shows that a decoded object, written and read again, is the
// same, with and without the rest of what a cluster adds to it.
func TestDecodeIsStable(t *testing.T) {
	first := decode(t, object+health)
	data, err := yaml.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, decode(t, string(data))); diff != "" {
		t.Errorf("decoded twice (-once +twice):\n%s", diff)
	}
	fromCluster := strings.Replace(object+health, "{name: checkout}", `{name: checkout, uid: a, resourceVersion: "7", generation: 3, managedFields: [{manager: kubectl}]}`, 1) +
		"status: {phase: Progressing, unknownToThisBuild: 1}\n"
	got := decode(t, fromCluster)
	if diff := cmp.Diff(first.Spec, got.Spec); diff != "" {
		t.Errorf("read back from a cluster (-file +cluster):\n%s", diff)
	}
	if got.Status.Phase != "" {
		t.Errorf("the status was kept: %q", got.Status.Phase)
	}
}

func TestDecodeFindsTheObject(t *testing.T) {
	second := strings.Replace(object+health, "{name: checkout}", "{name: cart}", 1)
	asJSON := func(text string) string {
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	item := "- " + strings.ReplaceAll(strings.TrimSpace(object+health), "\n", "\n  ") + "\n"
	for _, test := range []struct{ name, text, choose, want string }{
		{"alone", object + health, "", "checkout"},
		{"alone and by name", object + health, "checkout", "checkout"},
		{"after others", otherObjects + object + health, "", "checkout"},
		{"before others", object + health + "---\n" + otherObjects, "", "checkout"},
		{"one of two", object + health + "---\n" + second, "cart", "cart"},
		{"in a list", "apiVersion: v1\nkind: List\nitems:\n" + item, "", "checkout"},
		{"in a typed list", "apiVersion: weightedrollout.dev/v1alpha1\nkind: WeightedRolloutList\nitems:\n" + item, "", "checkout"},
		{"JSON", asJSON(object + health), "", "checkout"},
		{"JSON, indented by tabs", strings.ReplaceAll(asJSON(object+health), ",", ",\n\t"), "", "checkout"},
		{"two JSON objects", asJSON(object+health) + "\n" + asJSON(second), "cart", "cart"},
		{"JSON objects, separated like YAML", "{}\n---\n" + asJSON(object+health) + "\n---\n" + asJSON(second), "cart", "cart"},
		{"a flow mapping that is no JSON", "{" + strings.Join([]string{
			"apiVersion: weightedrollout.dev/v1alpha1", "kind: WeightedRollout", "metadata: {name: checkout}",
			"spec: {revision: a, routes: [{name: a}], stable: {service: a, port: 1}, canary: {service: b, port: 1}, health: {disabled: true}}",
		}, ", ") + "}", "", "checkout"},
		{"Windows line ends and a byte order mark", "\ufeff" + strings.ReplaceAll(otherObjects+object+health, "\n", "\r\n"), "", "checkout"},
		{"on the line of the dashes", "--- # the rollout\n" + object + health, "", "checkout"},
		{"after the end of another document", "kind: A\n...\n" + object + health, "", "checkout"},
		{"by generateName", strings.Replace(object+health, "{name: checkout}", "{generateName: checkout-}", 1), "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := manifest.Decode(strings.NewReader(test.text), test.choose)
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != test.want {
				t.Errorf("got %q, want %q", got.Name, test.want)
			}
		})
	}
}

func TestDecodeFailsToFind(t *testing.T) {
	valid := object + health
	second := strings.Replace(valid, "{name: checkout}", "{name: cart}", 1)
	for _, test := range []struct{ name, text, choose, want string }{
		{"empty", "", "", "the manifest is empty: it must hold a WeightedRollout"},
		{"comments only", "# nothing\n---\n# here\n", "", "the manifest is empty"},
		{"other kinds only", otherObjects, "", `the manifest holds no WeightedRollout with apiVersion weightedrollout.dev/v1alpha1: it has Service "checkout-stable" (v1)`},
		{"another group", strings.Replace(valid, "weightedrollout.dev/", "example.com/", 1), "", `it has WeightedRollout "checkout" (example.com/v1alpha1)`},
		{"no apiVersion", "kind: WeightedRollout", "", "it has WeightedRollout (without apiVersion)"},
		{"no kind", "a: 1", "", "it has an object without kind (without apiVersion)"},
		{"kind that is no text", "kind: [1]", "", "it has an object without kind (without apiVersion)"},
		{"many others", strings.Repeat("kind: A\n---\n", 7), "", "A (without apiVersion), 2 more"},
		{"another version", strings.Replace(valid, "v1alpha1", "v9", 1), "", `WeightedRollout "checkout" (weightedrollout.dev/v9): this program knows only apiVersion weightedrollout.dev/v1alpha1`},
		{"two without a choice", valid + "---\n" + second, "", `the manifest holds several WeightedRollouts, "cart", "checkout": choose one by name`},
		{"none with the name", valid + "---\n" + second, "search", `the manifest holds no WeightedRollout "search", but "cart", "checkout"`},
		{"two with the name", valid + "---\n" + valid, "checkout", `the manifest holds 2 WeightedRollouts with the name "checkout" (document 1, document 2): leave one of them`},
		{"a list", "a: 1\n---\n- 1", "", "document 2 is no object: it must have apiVersion, kind, metadata and spec"},
		{"a text", "hello", "", "document 1 is no object"},
		{"no YAML", otherObjects + "a: [1\nb: 2\n", "", "no valid YAML: line 7: did not find expected ',' or ']'"},
		{"JSON that ends too early", `{"kind":"A"} {"kind":`, "", "no valid JSON after byte 12: unexpected EOF"},
		{"names that are too long", strings.Repeat("kind: "+strings.Repeat("A", 2000)+"\n---\n", 100), "", "95 more"},
		{"many without a choice", strings.Join(numbered(7, valid), "---\n"), "", `"c0", "c1", "c2", "c3", "c4", 2 more: choose one by name`},
		{"20,000 separators", strings.Repeat("---\n", 20_000), "", "there are more than 1000 documents: give only the file that is meant"},
		{"nothing but separators", strings.Repeat("---\n", manifest.MaxBytes/4), "", "there are more than 1000 documents"},
		{"a long text, used often", "a: &a " + strings.Repeat("a", 1000) + "\nb: [" + strings.Repeat("*a,", 100_000) + "]", "", "with its aliases followed the text is longer than 3 MiB: write fewer aliases, or shorter anchors"},
		{"too long", strings.Repeat("# long\n", manifest.MaxBytes/7+1), "", "the manifest is longer than 3 MiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := manifest.Decode(strings.NewReader(test.text), test.choose)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, error %v, want an error with %q", got, err, test.want)
			}
			if n := len(err.Error()); n > 5000 {
				t.Errorf("the error has %d bytes", n)
			}
		})
	}
	failing := errors.New("the disk is on fire")
	if _, err := manifest.Decode(failingReader{failing}, ""); !errors.Is(err, failing) {
		t.Errorf("error %v, want %v", err, failing)
	}
}

// numbered returns an object under several names.
func numbered(n int, object string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.Replace(object, "{name: checkout}", fmt.Sprintf("{name: c%d}", i), 1)
	}
	return all
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// TestSamples decodes every WeightedRollout in config/samples.
func TestSamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "config", "samples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text := readFile(t, file)
		if !strings.Contains(text, "kind: WeightedRollout") {
			continue
		}
		found++
		if _, err := manifest.Decode(strings.NewReader(text), ""); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if found < 3 {
		t.Errorf("config/samples has %d WeightedRollouts, want at least 3", found)
	}
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// TestDocumented decodes every complete WeightedRollout of the documentation.
func TestDocumented(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		for _, block := range yamlBlock.FindAllStringSubmatch(readFile(t, page), -1) {
			// What only refers to one is indented.
			if !strings.Contains("\n"+block[1], "\nkind: WeightedRollout") || !strings.Contains("\n"+block[1], "\napiVersion: "+v1alpha1.GroupVersion.String()) {
				continue
			}
			found++
			if _, err := manifest.Decode(strings.NewReader(block[1]), ""); err != nil {
				t.Errorf("%s: %v in\n%s", page, err, block[1])
			}
		}
	}
	if found == 0 {
		t.Error("the documentation shows no WeightedRollout")
	}
}

// FuzzDecode shows that no text makes Decode panic, and that what it returns can be
// decoded again.
func FuzzDecode(f *testing.F) {
	f.Add(object+health, "")
	f.Add(otherObjects+object, "checkout")
	f.Add(`{"apiVersion":"weightedrollout.dev/v1alpha1","kind":"WeightedRollout","spec":{"plan":{"stages":[{"weight":1e400}]}}}`, "")
	f.Add("kind: List\nitems: [1, {}, null]", "")
	f.Add("--- a\n---\n... \n--- !!binary x", "")
	f.Add(object+"  plan: {stages: [{weight: &a [*a]}]}\n", "")
	f.Add(strings.Replace(object, "{name: checkout}", "7", 1), "")
	f.Fuzz(func(t *testing.T, text, name string) {
		got, err := manifest.Decode(strings.NewReader(text), name)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a text")
			}
			return
		}
		data, err := yaml.Marshal(got)
		if err != nil {
			t.Fatalf("write %v: %v", got, err)
		}
		again, err := manifest.Decode(strings.NewReader(string(data)), "")
		if err != nil {
			t.Fatalf("decoded once, but not twice: %v\n%s", err, data)
		}
		if diff := cmp.Diff(got.Spec, again.Spec); diff != "" {
			t.Errorf("decoded twice (-once +twice):\n%s", diff)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	text := otherObjects + object + health
	b.ReportAllocs()
	for b.Loop() {
		if _, err := manifest.Decode(strings.NewReader(text), ""); err != nil {
			b.Fatal(err)
		}
	}
}

func decode(t *testing.T, text string) *v1alpha1.WeightedRollout {
	t.Helper()
	got, err := manifest.Decode(strings.NewReader(text), "")
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return got
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// problems returns what an object is refused for.
func problems(t *testing.T, text string) []string {
	t.Helper()
	got, err := manifest.Decode(strings.NewReader(text), "")
	var invalid *manifest.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v, error %v, want it to be found invalid:\n%s", got, err, text)
	}
	for _, p := range invalid.Problems {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error %q does not say %q", err, p)
		}
	}
	if !strings.HasPrefix(err.Error(), fmt.Sprintf("WeightedRollout %q is invalid: ", invalid.Name)) && len(invalid.Problems) == 1 && invalid.Name != "" {
		t.Errorf("the error %q does not name the object %q", err, invalid.Name)
	}
	return invalid.Problems
}

// TestHTTPRoute shows which route of a file is found.
func TestHTTPRoute(t *testing.T) {
	f, err := manifest.Read(strings.NewReader(otherObjects + `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: checkout}
spec: {rules: [{backendRefs: [{name: checkout-stable, port: 8080, weight: 9}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart, namespace: shop}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: odd}
spec: 7
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: search}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		namespace, name string
		found           bool
	}{
		{"", "checkout", true},
		{"shop", "checkout", true},
		{"shop", "cart", true},
		{"", "cart", true},
		{"other", "cart", false},
		{"", "odd", false},
		{"", "search", false},
		{"", "missing", false},
	} {
		if got := f.HTTPRoute(test.namespace, test.name); (got != nil) != test.found {
			t.Errorf("HTTPRoute(%q, %q) = %v, found should be %v", test.namespace, test.name, got, test.found)
		}
	}
	for namespace, want := range map[string]int{"": 2, "shop": 2, "other": 1} {
		if got := f.HTTPRoutes(namespace); len(got) != want {
			t.Errorf("%d HTTPRoutes in %q, want %d", len(got), namespace, want)
		}
	}
	if got := f.GRPCRoutes(""); len(got) != 1 || got[0].Name != "search" {
		t.Errorf("the GRPCRoutes are %+v", got)
	}
	refs := f.HTTPRoute("", "checkout").Spec.Rules[0].BackendRefs
	if len(refs) != 1 || refs[0].Name != "checkout-stable" || *refs[0].Weight != 9 {
		t.Errorf("the route's backends are %+v", refs)
	}
}
