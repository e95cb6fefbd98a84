package manifest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxShown is how many fields of an object a cure shows.
const maxShown = 6

// cure says how a field is written whose value has the wrong type, since the API server
// says no more than which types they are. It is empty for all other errors.
func (def *definition) cure(e *field.Error, content map[string]any) string {
	if e.Type != field.ErrorTypeTypeInvalid {
		return ""
	}
	if strings.HasSuffix(e.Detail, `must be of type integer,string: "number"`) {
		return `write decimals in quotes, as in "0.5"`
	}
	s, value := follow(def.structural, content, e.Field)
	if s == nil {
		return ""
	}
	switch s.Type {
	case "object", "array":
		return "write it as " + shape(s, value)
	case "string":
		switch value := value.(type) {
		case int64:
			return fmt.Sprintf("it was read as the number %d: write the text that is meant in quotes", value)
		case float64:
			return fmt.Sprintf("it was read as the number %s: write the text that is meant in quotes", strconv.FormatFloat(value, 'f', -1, 64))
		case bool:
			return fmt.Sprintf("it was read as the boolean %t: write the text that is meant in quotes", value)
		}
	}
	return ""
}

// follow returns the schema and the value of a field by its path, such as
// spec.routes[0].kind; nil where the path leads out of one of them.
func follow(s *schema.Structural, value any, path string) (*schema.Structural, any) {
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		switch at := value.(type) {
		case map[string]any:
			property, known := s.Properties[step]
			if !known {
				return nil, nil
			}
			s, value = &property, at[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) || s.Items == nil {
				return nil, nil
			}
			s, value = s.Items, at[i]
		default:
			return nil, nil
		}
	}
	return s, value
}

// shape shows how an object or a list is written. A text that was given in its place is
// put where it belongs: into the field that takes it as one of its values, or else into
// the name.
func shape(s *schema.Structural, given any) string {
	if s.Type == "array" && s.Items != nil {
		return "[" + shape(s.Items, given) + "]"
	}
	names := slices.Sorted(maps.Keys(s.Properties))
	if text, ok := given.(string); ok {
		belongs := func(name string) bool {
			property := s.Properties[name]
			return slices.Contains(choices(&property), text)
		}
		if i := slices.IndexFunc(names, belongs); i >= 0 {
			return fmt.Sprintf("{%s: %s}", names[i], scalar(text))
		}
		if _, named := s.Properties["name"]; named {
			return fmt.Sprintf("{name: %s}", scalar(text))
		}
	}
	if len(names) == 0 {
		return "…"
	}
	var fields []string
	for _, name := range names[:min(len(names), maxShown)] {
		property := s.Properties[name]
		fields = append(fields, name+": "+usual(&property))
	}
	if len(names) > maxShown {
		fields = append(fields, "…")
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// usual is what stands for a field's value in a shape: its default, or the choices that
// there are.
func usual(s *schema.Structural) string {
	switch value := s.Default.Object.(type) {
	case string:
		return scalar(value)
	case int64, float64, bool:
		return fmt.Sprint(value)
	}
	if all := choices(s); len(all) > 0 {
		return strings.Join(all, " or ")
	}
	return "…"
}

// choices are the texts that a field takes, where they are listed.
func choices(s *schema.Structural) []string {
	var all []string
	if s.ValueValidation != nil {
		for _, choice := range s.ValueValidation.Enum {
			if text, ok := choice.Object.(string); ok {
				all = append(all, text)
			}
		}
	}
	return all
}

// plain is a text that YAML takes for one without quotes.
var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)

func scalar(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}
