package manifest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/manifest/yamltext"
)

const kind = "WeightedRollout"

// document is one object of a stream.
type document struct {
	content map[string]any
	// number counts the documents of the stream from 1. The items of a list have the
	// list's.
	number int
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
	return yamltext.Clip(fmt.Sprintf("%s (%s)", named, version))
}

// documents reads the objects of a stream, those within a List as well. What is
// empty is left out.
func documents(data []byte) ([]document, error) {
	found, err := yamltext.Documents(data)
	if err != nil {
		return nil, err
	}
	var all []document
	for i, f := range found {
		d, err := parse(f.JSON, i+1)
		if err != nil {
			return nil, err
		}
		d.repeated = append(d.repeated, f.Repeated...)
		all = append(all, unpacked(d)...)
	}
	return all, nil
}

// parse reads one JSON object, which is the document with the number. Whole numbers stay
// whole.
func parse(data []byte, number int) (document, error) {
	var content any
	repeated, err := kjson.UnmarshalStrict(data, &content)
	if err != nil {
		return document{}, fmt.Errorf("document %d: no valid JSON: %w", number, err)
	}
	fields, ok := content.(map[string]any)
	if !ok {
		return document{}, fmt.Errorf("document %d is no object: it must have apiVersion, kind, metadata and spec", number)
	}
	d := document{content: fields, number: number}
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
			all = append(all, document{content: fields, number: d.number, repeated: d.repeated})
		}
	}
	return all
}
