package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/weightedrollout/weightedrollout/internal/manifest/yamltext"
)

// ScenarioError says what is wrong with a scenario: the field, and what to change.
type ScenarioError struct{ problem error }

// Error says that it is about the scenario. Unwrap leaves that out.
func (e *ScenarioError) Error() string { return "scenario: " + e.problem.Error() }

// Unwrap returns what is wrong, beginning with the field.
func (e *ScenarioError) Unwrap() error { return e.problem }

// ParseScenario reads a scenario in YAML or JSON. A second document, fields that it does
// not know, and fields that are given twice, are errors: what is passed over would leave
// a test out. The error is a *ScenarioError; a long one is clipped.
func ParseScenario(text []byte) (*Scenario, error) {
	s, err := parse(text)
	if err == nil {
		return s, nil
	}
	if clipped := yamltext.Clip(err.Error()); clipped != err.Error() {
		err = errors.New(clipped)
	}
	return nil, &ScenarioError{err}
}

func parse(text []byte) (*Scenario, error) {
	found, err := yamltext.Documents(text)
	if err != nil {
		return nil, err
	}
	s := &Scenario{}
	switch len(found) {
	case 0:
		return s, nil
	case 1:
	default:
		return nil, fmt.Errorf("there are %d documents: a scenario is one, so leave the others out", len(found))
	}
	if repeated := found[0].Repeated; len(repeated) > 0 {
		return nil, fmt.Errorf("%s: give every field once", strings.Join(repeated, "; "))
	}
	unknown, err := kjson.UnmarshalStrict(found[0].JSON, s)
	if err != nil {
		return nil, ofType(found[0].JSON, err)
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("%s: correct its name or remove it", inOneLine(unknown))
	}
	if _, err := compile(s); err != nil {
		return nil, err
	}
	return s, nil
}

// inOneLine puts errors in one line.
func inOneLine(errs []error) string {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// ofType says in words that a field has a value of the wrong type.
func ofType(text []byte, err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	field := fieldAt(text, wrong.Offset)
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

// level is an object or a list that a reader is in.
type level struct {
	isList bool
	index  int    // of the next element
	key    string // of the present field
	isKey  bool   // the next token is a key
}

// fieldAt names the field whose value a reader had come to after so many bytes of a
// JSON text, with the indexes of lists: "events[2].paused". It is "" for the whole.
func fieldAt(text []byte, offset int64) string {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var levels []level
	for {
		token, err := decoder.Token()
		if err != nil {
			return ""
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if n := len(levels); n > 0 && levels[n-1].isKey {
			levels[n-1].key, levels[n-1].isKey = fmt.Sprint(token), false
			continue
		}
		if n := len(levels); n > 0 {
			levels[n-1].isKey = !levels[n-1].isList
			levels[n-1].index++
		}
		if decoder.InputOffset() >= offset {
			return path(levels)
		}
		if token == json.Delim('{') || token == json.Delim('[') {
			levels = append(levels, level{isList: token == json.Delim('['), isKey: token == json.Delim('{')})
		}
	}
}

// path writes the field that a reader is in.
func path(levels []level) string {
	var b strings.Builder
	for _, l := range levels {
		if l.isList {
			fmt.Fprintf(&b, "[%d]", l.index-1)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(l.key)
	}
	return b.String()
}
