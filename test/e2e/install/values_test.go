package install

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the table of values into the chart's README.md")

// value is one that values.yaml documents.
type value struct {
	path        string // metrics.podMonitor.enabled
	standard    any
	description string
}

// documentedValues reads values.yaml. Everything in it must be below a comment that
// begins with "# --".
func documentedValues(t *testing.T) []value {
	t.Helper()
	var doc yamlv3.Node
	if err := yamlv3.Unmarshal([]byte(readFile(t, chart+"/values.yaml")), &doc); err != nil {
		t.Fatal(err)
	}
	return collectValues(t, nil, "", doc.Content[0])
}

func collectValues(t *testing.T, into []value, path string, node *yamlv3.Node) []value {
	t.Helper()
	for i := 0; i < len(node.Content); i += 2 {
		key, content := node.Content[i], node.Content[i+1]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		description, documented := strings.CutPrefix(key.HeadComment, "# -- ")
		switch {
		case documented:
			v := value{path: at, description: strings.ReplaceAll(description, "\n# ", " ")}
			if err := content.Decode(&v.standard); err != nil {
				t.Fatal(err)
			}
			into = append(into, v)
		case content.Kind == yamlv3.MappingNode && len(content.Content) > 0:
			into = collectValues(t, into, at, content)
		default:
			t.Errorf("values.yaml: %s has no comment that begins with \"# --\"", at)
		}
	}
	return into
}

// schema is a part of values.schema.json.
type schema map[string]any

func readSchema(t *testing.T) schema {
	t.Helper()
	var s schema
	if err := json.Unmarshal([]byte(readFile(t, chart+"/values.schema.json")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s schema) properties() map[string]schema {
	found := map[string]schema{}
	properties, _ := s["properties"].(map[string]any)
	for name, property := range properties {
		if of, ok := property.(map[string]any); ok {
			found[name] = of
		}
	}
	return found
}

// kind is the type of a value, for people.
func (s schema) kind() string {
	if branches, ok := s["oneOf"].([]any); ok {
		var kinds []string
		for _, branch := range branches {
			if of, ok := branch.(map[string]any); ok {
				kinds = append(kinds, schema(of).kind())
			}
		}
		return strings.Join(kinds, " or ")
	}
	if _, ok := s["enum"]; ok {
		return "string"
	}
	names := map[string]string{"boolean": "bool", "integer": "int", "array": "list"}
	kind, _ := s["type"].(string)
	if name, ok := names[kind]; ok {
		return name
	}
	return kind
}

// TestValuesSchemaAndTable holds the three together: what values.yaml documents, what the
// schema lets through, and the table in the chart's README.md.
func TestValuesSchemaAndTable(t *testing.T) {
	values := documentedValues(t)
	if len(values) < 50 {
		t.Fatalf("values.yaml documents %d values, want more: is this test reading it rightly?", len(values))
	}
	paths := map[string]bool{}
	root := readSchema(t)
	var table strings.Builder
	table.WriteString("| value | type | default | |\n|---|---|---|---|\n")
	for _, v := range values {
		paths[v.path] = true
		at := root
		for part := range strings.SplitSeq(v.path, ".") {
			at = at.properties()[part]
		}
		if at == nil {
			t.Errorf("values.schema.json has no property for %s", v.path)
			continue
		}
		standard, err := json.Marshal(v.standard)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&table, "| `%s` | %s | `%s` | %s |\n", v.path, at.kind(), standard, v.description)
	}
	undocumented(t, root, "", paths)

	const begin, end = "<!-- values:begin -->\n", "<!-- values:end -->"
	page := chart + "/README.md"
	text := readFile(t, page)
	before, rest, ok := strings.Cut(text, begin)
	is, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no %s … %s", page, strings.TrimSpace(begin), end)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table.String(), is); diff != "" {
		t.Errorf("the table in %s is not that of values.yaml: run go test ./test/e2e/install -run %s -update (-want +got)\n%s", page, t.Name(), diff)
	}
}

// undocumented complains about properties that no documented value covers, and about
// those that may be taken away by null, which templates do not expect.
func undocumented(t *testing.T, s schema, path string, documented map[string]bool) {
	t.Helper()
	properties := s.properties()
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		if at == "global" { // Helm's own, for charts of charts
			continue
		}
		if required, _ := s["required"].([]any); !slices.Contains(required, any(name)) {
			t.Errorf("values.schema.json does not require %s", at)
		}
		switch {
		case documented[at]:
		case len(properties[name].properties()) > 0:
			undocumented(t, properties[name], at, documented)
		default:
			t.Errorf("values.schema.json allows %s, which values.yaml does not document", at)
		}
	}
}

// TestSchemaIsStrict looks for objects of the schema that take any key without saying why.
func TestSchemaIsStrict(t *testing.T) {
	objects := 0
	var look func(path string, node any)
	look = func(path string, node any) {
		switch node := node.(type) {
		case map[string]any:
			if node["type"] == "object" {
				objects++
				more, said := node["additionalProperties"]
				if _, why := node["$comment"]; !said || more == true && !why {
					t.Errorf("values.schema.json: %s takes any key: set additionalProperties to false, to a schema, or to true with a $comment that says why", path)
				}
			}
			for key, child := range node {
				look(path+"/"+key, child)
			}
		case []any:
			for i, child := range node {
				look(fmt.Sprintf("%s/%d", path, i), child)
			}
		}
	}
	look("", map[string]any(readSchema(t)))
	if objects < 20 {
		t.Errorf("the schema has %d objects, want more", objects)
	}
}

// valueCases are the sets of values that the templates are rendered with, by name.
func valueCases(t *testing.T) map[string]map[string]any {
	t.Helper()
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata/values holds no YAML: %v", err)
	}
	cases := map[string]map[string]any{}
	for _, file := range files {
		var values map[string]any
		if err := yaml.UnmarshalStrict([]byte(readFile(t, file)), &values); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		cases[strings.TrimSuffix(filepath.Base(file), ".yaml")] = values
	}
	return cases
}

// without returns the values without the one at a path, and whether it was there.
func without(values map[string]any, path string) (map[string]any, bool) {
	first, rest, deeper := strings.Cut(path, ".")
	child, there := values[first]
	if !there {
		return values, false
	}
	changed := maps.Clone(values)
	if !deeper {
		delete(changed, first)
		return changed, true
	}
	below, ok := child.(map[string]any)
	if !ok {
		return values, false
	}
	changed[first], there = without(below, rest)
	return changed, there
}
