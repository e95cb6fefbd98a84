package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// ParseScenario reads a scenario in YAML or JSON. Fields that it does not know, and
// fields that are given twice, are errors: a misspelt one would leave a test out. The
// error names the field and says what to change.
func ParseScenario(text []byte) (*Scenario, error) {
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("scenario: this is no YAML: %w", err)
	}
	s := &Scenario{}
	unknown, err := kjson.UnmarshalStrict(asJSON, s)
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", ofType(err))
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("scenario: %w: correct its name or remove it", errors.Join(unknown...))
	}
	if _, err := compile(s); err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	return s, nil
}

// ofType says in words that a field has a value of the wrong type.
func ofType(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	field := wrong.Field
	if field == "" {
		field = "the whole"
	}
	want := "a text"
	switch wrong.Type.Kind() {
	case reflect.Slice:
		want = "a list"
	case reflect.Struct, reflect.Map:
		want = "a mapping of names to values"
	case reflect.Bool:
		want = "true or false"
	default:
	}
	return fmt.Errorf("%s is of the wrong kind (%s): it must be %s", field, strings.TrimSuffix(wrong.Value, " "), want)
}
