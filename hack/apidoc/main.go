// Command apidoc writes the reference of the API from its CustomResourceDefinition:
//
//	apidoc config/crd/bases/weightedrollout.dev_weightedrollouts.yaml docs/reference.md
package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const head = `# API reference

<!-- Generated from the CustomResourceDefinition by make manifests. -->

Every field of a %s (%s/%s), as the API server checks it. [api.md](api.md) explains the parts together, with a complete example.
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "apidoc:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: apidoc CRD.yaml REFERENCE.md")
	}
	text, err := os.ReadFile(args[0]) //nolint:gosec // the file that the user names
	if err != nil {
		return err
	}
	page, err := reference(text)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return os.WriteFile(args[1], []byte(page), 0o644) //nolint:gosec // documentation is read by all
}

// reference is the page about a CustomResourceDefinition.
func reference(crd []byte) (string, error) {
	var d apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(crd, &d); err != nil {
		return "", err
	}
	if len(d.Spec.Versions) != 1 || d.Spec.Versions[0].Schema == nil {
		return "", errors.New("want one version, with a schema")
	}
	v := d.Spec.Versions[0]
	var p page
	fmt.Fprintf(&p, head, d.Spec.Names.Kind, d.Spec.Group, v.Name)
	root := v.Schema.OpenAPIV3Schema
	for _, name := range []string{"spec", "status"} {
		schema, ok := root.Properties[name]
		if !ok {
			return "", fmt.Errorf("there is no %s", name)
		}
		p.object(name, &schema)
	}
	return p.String(), nil
}

// page is what has been written.
type page struct{ strings.Builder }

// object writes a table of an object's fields, its rules, and the objects in it.
func (p *page) object(path string, s *apiextensionsv1.JSONSchemaProps) {
	fmt.Fprintf(p, "\n## %s\n\n%s\n\n", path, oneLine(s.Description))
	fmt.Fprint(p, "| field | type | default | limits | |\n|---|---|---|---|---|\n")
	names := slices.Sorted(maps.Keys(s.Properties))
	for _, name := range names {
		f := s.Properties[name]
		required := ""
		if slices.Contains(s.Required, name) {
			required = " (required)"
		}
		fmt.Fprintf(p, "| `%s`%s | %s | %s | %s | %s |\n", name, required, kind(path+"."+name, &f), value(f.Default), cell(limits(&f)), cell(oneLine(f.Description)))
	}
	for i, r := range s.XValidations {
		if i == 0 {
			fmt.Fprint(p, "\nRules of the whole:\n\n")
		}
		fmt.Fprintf(p, "- %s\n", oneLine(cmp.Or(r.Message, r.Rule)))
	}
	for _, name := range names {
		f := s.Properties[name]
		if inner, at := nested(path+"."+name, &f); inner != nil {
			p.object(at, inner)
		}
	}
}

// nested is the object that a field holds, one or many of it, and its path; nil if it
// holds none.
func nested(path string, s *apiextensionsv1.JSONSchemaProps) (*apiextensionsv1.JSONSchemaProps, string) {
	switch {
	case len(s.Properties) > 0:
		return s, path
	case s.Items != nil && s.Items.Schema != nil:
		return nested(path+"[]", s.Items.Schema)
	}
	return nil, ""
}

// kind names a field's type, with a link where that is an object.
func kind(path string, s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "integer or string"
	case s.Items != nil && s.Items.Schema != nil:
		return "list of " + kind(path+"[]", s.Items.Schema)
	case len(s.Properties) > 0:
		return "[object](#" + anchor(path) + ")"
	case s.Format != "":
		return s.Type + " (" + s.Format + ")"
	}
	return s.Type
}

// anchor is what a heading is called in a link.
func anchor(heading string) string {
	return strings.NewReplacer(".", "", "[", "", "]", "").Replace(strings.ToLower(heading))
}

func value(j *apiextensionsv1.JSON) string {
	if j == nil {
		return ""
	}
	return "`" + strings.ReplaceAll(string(j.Raw), "|", `\|`) + "`"
}

// limits are those of a field, in words.
func limits(s *apiextensionsv1.JSONSchemaProps) string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if len(s.Enum) > 0 {
		var values []string
		for _, e := range s.Enum {
			values = append(values, "`"+strings.Trim(string(e.Raw), `"`)+"`")
		}
		add("%s", strings.Join(values, ", "))
	}
	bound := func(what string, least, most *int64) {
		switch {
		case least != nil && most != nil:
			add("%d to %d %s", *least, *most, what)
		case least != nil:
			add("%d %s at least", *least, what)
		case most != nil:
			add("%d %s at most", *most, what)
		}
	}
	bound("items", s.MinItems, s.MaxItems)
	bound("characters", s.MinLength, s.MaxLength)
	if s.Minimum != nil {
		add("%v at least", *s.Minimum)
	}
	if s.Maximum != nil {
		add("%v at most", *s.Maximum)
	}
	for _, r := range s.XValidations {
		if len(s.Properties) == 0 { // those of an object stand below its table
			add("%s", oneLine(cmp.Or(r.Message, r.Rule)))
		}
	}
	return strings.Join(all, "; ")
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// cell keeps a text within its cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
