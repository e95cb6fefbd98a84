package played

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strconv"
)

func contextWith(hr *http.Request, r *request) context.Context {
	return context.WithValue(hr.Context(), requestKey{}, r)
}

// pair is the two weights of a rule.
type pair struct{ stable, canary int }

func (p pair) String() string { return fmt.Sprintf("%d/%d", p.stable, p.canary) }

// operation is a step of a JSON Patch. Value is nil where the body has none.
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// operations reads the body of a write to a route.
func (r *request) operations() ([]operation, error) {
	var ops []operation
	if err := json.Unmarshal(r.Body, &ops); err != nil {
		return nil, fmt.Errorf("request %d is no JSON Patch: %w", r.Number, err)
	}
	return ops, nil
}

var weightPath = regexp.MustCompile(`^/spec/rules/(\d+)/backendRefs/(\d+)/weight$`)

// weights returns the weights that a write sets, by rule and backendRef.
func (r *request) weights() (map[int]map[int]int, error) {
	ops, err := r.operations()
	if err != nil {
		return nil, err
	}
	set := map[int]map[int]int{}
	for _, op := range ops {
		match := weightPath.FindStringSubmatch(op.Path)
		if match == nil {
			continue
		}
		weight, err := strconv.Atoi(string(op.Value))
		if err != nil {
			return nil, fmt.Errorf("request %d sets %s to %q", r.Number, op.Path, op.Value)
		}
		rule, _ := strconv.Atoi(match[1])
		ref, _ := strconv.Atoi(match[2])
		if set[rule] == nil {
			set[rule] = map[int]int{}
		}
		set[rule][ref] = weight
	}
	return set, nil
}

// firstPair returns the weights that a write sets in the first rule, whose
// backendRefs are stable and canary, in this order. ok is false if it sets none.
func (r *request) firstPair() (p pair, ok bool) {
	set, err := r.weights()
	if err != nil || len(set[0]) != 2 {
		return pair{}, false
	}
	return pair{set[0][0], set[0][1]}, true
}

// merged applies a JSON merge patch (RFC 7396).
func merged(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	result := map[string]any{}
	if old, ok := target.(map[string]any); ok {
		maps.Copy(result, old)
	}
	for key, value := range changes {
		if value == nil {
			delete(result, key)
			continue
		}
		result[key] = merged(result[key], value)
	}
	return result
}

// at returns what is at a path of nested objects, or nil.
func at(object any, path ...string) any {
	for _, key := range path {
		m, ok := object.(map[string]any)
		if !ok {
			return nil
		}
		object = m[key]
	}
	return object
}

// has tells whether there is anything at a path of nested objects, even null.
func has(object any, path ...string) bool {
	m, ok := at(object, path[:len(path)-1]...).(map[string]any)
	if !ok {
		return false
	}
	_, ok = m[path[len(path)-1]]
	return ok
}

// number reads a percentage, which is a number or a decimal text; -1 if there is none.
func number(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case string:
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return f
		}
	}
	return -1
}

// patch reads the body of a write to a rollout.
func (r *request) patch() (map[string]any, error) {
	var body map[string]any
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return nil, fmt.Errorf("request %d is no merge patch: %w", r.Number, err)
	}
	return body, nil
}
