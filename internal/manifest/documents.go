package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

const kind = "WeightedRollout"

// document is one object of a stream.
type document struct {
	content map[string]any
	// repeated says which fields are given more than once.
	repeated []string
}

// text returns a field that holds a text, or "" where it holds none.
func (d document) text(path ...string) string {
	var at any = d.content
	for _, key := range path {
		fields, ok := at.(map[string]any)
		if !ok {
			return ""
		}
		at = fields[key]
	}
	s, _ := at.(string)
	return s
}

func (d document) kind() string       { return d.text("kind") }
func (d document) apiVersion() string { return d.text("apiVersion") }

// name is the object's name, or what the API server would make one from.
func (d document) name() string {
	if name := d.text("metadata", "name"); name != "" {
		return name
	}
	return d.text("metadata", "generateName")
}

func (d document) isRollout() bool {
	gv, err := schema.ParseGroupVersion(d.apiVersion())
	return err == nil && gv.Group == v1alpha1.GroupVersion.Group && d.kind() == kind
}

// String names the document for people.
func (d document) String() string {
	named, version := d.kind(), d.apiVersion()
	if named == "" {
		named = "an object without kind"
	}
	if name := d.name(); name != "" {
		named += fmt.Sprintf(" %q", name)
	}
	if version == "" {
		version = "without apiVersion"
	}
	return fmt.Sprintf("%s (%s)", named, version)
}

// documents reads the objects of a stream, those within a List as well. What is
// empty is left out.
func documents(data []byte) ([]document, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	parts := split(data)
	read := fromYAML
	if len(parts) == 1 && isJSON(data) {
		// Several JSON objects are no YAML, and JSON may be indented by tabs.
		read = fromJSON
	}
	found, err := read(parts)
	if err != nil {
		return nil, err
	}
	var all []document
	for _, d := range found {
		all = append(all, unpacked(d)...)
	}
	return all, nil
}

// isJSON says whether a text begins with a JSON object. A flow mapping of YAML
// begins with a brace as well.
func isJSON(data []byte) bool {
	var first json.RawMessage
	err := json.NewDecoder(bytes.NewReader(data)).Decode(&first)
	return err == nil && bytes.HasPrefix(first, []byte("{"))
}

func fromJSON(parts [][]byte) ([]document, error) {
	decoder := json.NewDecoder(bytes.NewReader(parts[0]))
	var all []document
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("no valid JSON after byte %d: %w", decoder.InputOffset(), err)
		}
		d, err := parse(raw)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
}

func fromYAML(parts [][]byte) ([]document, error) {
	var all []document
	for _, text := range parts {
		asJSON, err := yaml.YAMLToJSON(text)
		if err != nil {
			return nil, fmt.Errorf("no valid YAML: %s", plain(err))
		}
		if bytes.Equal(asJSON, []byte("null")) {
			continue
		}
		d, err := parse(asJSON)
		if err != nil {
			return nil, err
		}
		if _, err := yaml.YAMLToJSONStrict(text); err != nil {
			d.repeated = append(d.repeated, plain(err))
		}
		all = append(all, d)
	}
	return all, nil
}

// split cuts a stream at the lines that begin or end documents, since the parser
// reads one and passes over the rest. Each part begins with an empty line for every
// line before it, so that the parser's line numbers are those of the file.
func split(data []byte) [][]byte {
	var parts [][]byte
	var part []byte
	lines := 0
	for line := range bytes.Lines(data) {
		lines++
		if separates(line) {
			parts = append(parts, part)
			// What follows the dashes is part of the document.
			part = append(bytes.Repeat([]byte("\n"), lines-1), bytes.TrimLeft(line[len("---"):], " \t")...)
			continue
		}
		part = append(part, line...)
	}
	return append(parts, part)
}

// separates says whether a line is the mark of a document's begin or end.
func separates(line []byte) bool {
	return (bytes.HasPrefix(line, []byte("---")) || bytes.HasPrefix(line, []byte("..."))) && (len(line) == 3 || strings.ContainsRune(" \t\r\n", rune(line[3])))
}

// plain takes the parser's own preamble from an error.
func plain(err error) string {
	text := err.Error()
	for _, preamble := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:\n"} {
		text = strings.TrimPrefix(text, preamble)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}

// parse reads one JSON object. Whole numbers stay whole.
func parse(data []byte) (document, error) {
	var content any
	repeated, err := kjson.UnmarshalStrict(data, &content)
	if err != nil {
		return document{}, fmt.Errorf("no valid JSON: %w", err)
	}
	fields, ok := content.(map[string]any)
	if !ok {
		return document{}, fmt.Errorf("a document is no object: it must have apiVersion, kind, metadata and spec")
	}
	d := document{content: fields}
	for _, r := range repeated {
		d.repeated = append(d.repeated, r.Error())
	}
	return d, nil
}

// unpacked returns the items of a list, and any other object as it is.
func unpacked(d document) []document {
	items, ok := d.content["items"].([]any)
	if !ok || !strings.HasSuffix(d.kind(), "List") {
		return []document{d}
	}
	var all []document
	for _, item := range items {
		if fields, ok := item.(map[string]any); ok {
			all = append(all, document{content: fields, repeated: d.repeated})
		}
	}
	return all
}
