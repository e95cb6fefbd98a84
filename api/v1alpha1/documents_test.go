package v1alpha1_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// root is the repository's.
const root = "../.."

// TestSamples applies every object in config/samples.
func TestSamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "config", "samples", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("config/samples holds no YAML: %v", err)
	}
	rollouts := 0
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		for _, u := range objects(t, file, readFile(t, file)) {
			u.SetNamespace(metav1.NamespaceDefault)
			apply(t, u)
			if u.GetKind() == "WeightedRollout" {
				rollouts++
			}
		}
	}
	if rollouts < 3 {
		t.Errorf("config/samples has %d WeightedRollouts, want at least 3", rollouts)
	}
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// TestDocumentedRollouts applies every complete WeightedRollout that the
// documentation shows.
func TestDocumentedRollouts(t *testing.T) {
	rollouts := 0
	for _, file := range documents(t) {
		for _, block := range yamlBlock.FindAllStringSubmatch(readFile(t, file), -1) {
			for _, u := range objects(t, file, block[1]) {
				if u.GetKind() != "WeightedRollout" {
					continue
				}
				u.SetNamespace(metav1.NamespaceDefault)
				apply(t, u)
				rollouts++
			}
		}
	}
	if rollouts == 0 {
		t.Error("the documentation shows no WeightedRollout")
	}
}

// TestEveryFieldIsDocumented compares docs/api.md with the CRD: each field has a
// row of its own, and the row of a field with a default names it.
func TestEveryFieldIsDocumented(t *testing.T) {
	var crd apiextensionsv1.CustomResourceDefinition
	file := filepath.Join(root, "config", "crd", "bases", "weightedrollout.dev_weightedrollouts.yaml")
	if err := yaml.UnmarshalStrict([]byte(readFile(t, file)), &crd); err != nil {
		t.Fatalf("read %s: %v", file, err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(readFile(t, filepath.Join(root, "docs", "api.md"))) {
		if path, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "`"); ok && strings.HasPrefix(line, "| `") {
			rows[path] = line
		}
	}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	fields := map[string]apiextensionsv1.JSONSchemaProps{}
	collect(fields, "spec", schema.Properties["spec"])
	collect(fields, "status", schema.Properties["status"])
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		row, ok := rows[path]
		if !ok {
			t.Errorf("docs/api.md has no row for `%s`", path)
			continue
		}
		delete(rows, path)
		// The defaults of sections and lists are those of their fields.
		if d := fields[path].Default; d != nil && !strings.ContainsAny(string(d.Raw), "{[") {
			if value := strings.Trim(string(d.Raw), `"`); value != "" && !strings.Contains(row, "`"+value+"`") {
				t.Errorf("docs/api.md: the row of `%s` does not name its default `%s`", path, value)
			}
		}
	}
	for path := range rows {
		if strings.HasPrefix(path, "spec.") || strings.HasPrefix(path, "status.") {
			t.Errorf("docs/api.md has a row for `%s`, which is no field", path)
		}
	}
}

// collect lists the fields below a schema by their paths. The fields of a
// condition are Kubernetes' own.
func collect(into map[string]apiextensionsv1.JSONSchemaProps, path string, s apiextensionsv1.JSONSchemaProps) {
	if path == "status.conditions[]" {
		return
	}
	for name, property := range s.Properties {
		into[path+"."+name] = property
		collect(into, path+"."+name, property)
		if property.Items != nil && property.Items.Schema != nil {
			collect(into, path+"."+name+"[]", *property.Items.Schema)
		}
	}
}

// TestEveryReasonIsDocumented looks for each condition and reason of the API in
// docs/operations.md, which tells people what to do about it.
func TestEveryReasonIsDocumented(t *testing.T) {
	text := readFile(t, filepath.Join(root, "docs", "operations.md"))
	f, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, 0)
	if err != nil {
		t.Fatalf("parse the constants: %v", err)
	}
	found := 0
	ast.Inspect(f, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatalf("read the constant %s: %v", literal.Value, err)
		}
		found++
		if !strings.Contains(text, "`"+value+"`") {
			t.Errorf("docs/operations.md does not mention `%s`", value)
		}
		return true
	})
	if found < 40 {
		t.Errorf("conditions.go has %d constants, want more: is this test looking at the right file?", found)
	}
}

// TestEveryEventIsDocumented looks for the reason of each event that a decision can
// have in the table of events of docs/operations.md.
func TestEveryEventIsDocumented(t *testing.T) {
	constants := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\t(Reason\w+) = "(\w+)"$`).FindAllStringSubmatch(readFile(t, "conditions.go"), -1) {
		constants[m[1]] = m[2]
	}
	_, table, _ := strings.Cut(readFile(t, filepath.Join(root, "docs", "operations.md")), "\n### Events\n")
	table, _, _ = strings.Cut(table, "\n## ")
	files, err := filepath.Glob(filepath.Join(root, "internal", "rollout", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		for _, m := range regexp.MustCompile(`\.event\([^,]+, v1alpha1\.(Reason\w+)`).FindAllStringSubmatch(readFile(t, file), -1) {
			found++
			if !strings.Contains(table, "`"+constants[m[1]]+"`") {
				t.Errorf("docs/operations.md does not list the event `%s` (%s)", constants[m[1]], m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("%d events were found, want more: is this test looking at the right files?", found)
	}
}

// documents lists the pages of the documentation.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	return append(pages, filepath.Join(root, "README.md"))
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// objects reads the objects of a YAML text; what is no object is left out.
func objects(t *testing.T, from, text string) []*unstructured.Unstructured {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	var all []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		if u.GetKind() != "" && u.GetAPIVersion() != "" {
			all = append(all, u)
		}
	}
}
