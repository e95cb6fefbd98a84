package route_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// fataler is what rapid and testing have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// pair is the one of the examples; the namespaces are the route's own.
var pair = route.Pair{
	Stable: route.Backend{Service: "web-stable", Port: 80},
	Canary: route.Backend{Service: "web-canary", Port: 80},
}

const owner = "web"

// percent is a share in whole points.
func percent(points int) weights.Share { return weights.Share(points) * weights.SharePoint }

// withRules is the document of a route in YAML, with the given spec.rules.
func withRules(rules string) string {
	return `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop, resourceVersion: "7", generation: 3}
spec:
  parentRefs: [{name: gw}]
  rules:
` + strings.TrimPrefix(rules, "\n")
}

// plain is a route whose only rule divides between the two, by these weights.
func plain(stable, canary int) string {
	return withRules(fmt.Sprintf(`
  - backendRefs:
    - {name: web-stable, port: 80, weight: %d}
    - {name: web-canary, port: 80, weight: %d}
`, stable, canary))
}

// document turns YAML into the JSON that an API server would store.
func document(t *testing.T, text string) []byte {
	t.Helper()
	doc, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// typed decodes a document as a client does, into the type of its kind. One without a
// kind is an HTTPRoute.
func typed(doc []byte) (*route.Object, error) {
	var named struct {
		Kind v1alpha1.RouteKind `json:"kind"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(doc, &named); err != nil {
		return nil, err
	}
	if named.Kind == v1alpha1.GRPCRouteKind {
		r := &gatewayv1.GRPCRoute{}
		err := kjson.UnmarshalCaseSensitivePreserveInts(doc, r)
		return route.FromGRPCRoute(r), err
	}
	r := &gatewayv1.HTTPRoute{}
	err := kjson.UnmarshalCaseSensitivePreserveInts(doc, r)
	return route.FromHTTPRoute(r), err
}

func decode(t fataler, doc []byte) *route.Object {
	t.Helper()
	r, err := typed(doc)
	if err != nil {
		t.Fatalf("decode %s: %v", doc, err)
	}
	return r
}

func parse(t *testing.T, text string) *route.Object {
	t.Helper()
	return decode(t, document(t, text))
}

// apply does what the API server does with a patch.
func apply(t fataler, doc, patch []byte) []byte {
	t.Helper()
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("decode %s: %v", patch, err)
	}
	after, err := decoded.Apply(doc)
	if err != nil {
		t.Fatalf("apply %s: %v", patch, err)
	}
	return after
}

// write sets the share in a document and returns the document after it, and the patch.
func write(t *testing.T, doc []byte, ruleNames []string, share weights.Share) (after, patch []byte) {
	t.Helper()
	r := decode(t, doc)
	patch, err := route.Inspect(r, ruleNames, pair).Patch(r, share, owner)
	if err != nil {
		t.Fatal(err)
	}
	if patch == nil {
		return doc, nil
	}
	return apply(t, doc, patch), patch
}

// changes lists, sorted by path, what differs between two documents, as
// "/a/JSON/pointer: old -> new".
func changes(t fataler, before, after []byte) []string {
	t.Helper()
	return difference("", tree(t, before), tree(t, after))
}

// tree reads a document, its numbers as they are written.
func tree(t fataler, doc []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("decode %s: %v", doc, err)
	}
	return v
}

func difference(path string, a, b any) []string {
	var found []string
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			break
		}
		keys := slices.Collect(maps.Keys(a))
		for key := range b {
			if _, ok := a[key]; !ok {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			old, before := a[key]
			now, after := b[key]
			at := path + "/" + key
			if !before || !after {
				found = append(found, change(at, old, before, now, after))
				continue
			}
			found = append(found, difference(at, old, now)...)
		}
		return found
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			break
		}
		for i := range a {
			found = append(found, difference(fmt.Sprintf("%s/%d", path, i), a[i], b[i])...)
		}
		return found
	}
	if reflect.DeepEqual(a, b) {
		return nil
	}
	return []string{change(path, a, true, b, true)}
}

func change(path string, old any, before bool, now any, after bool) string {
	text := func(v any, present bool) string {
		if !present {
			return "absent"
		}
		encoded, _ := json.Marshal(v)
		return string(encoded)
	}
	return fmt.Sprintf("%s: %s -> %s", path, text(old, before), text(now, after))
}

// annotated is the change by which the annotation appears on a route without any.
const annotated = `/metadata/annotations: absent -> {"` + v1alpha1.ManagedByAnnotation + `":"` + owner + `"}`

// weightPath is the JSON pointer to a weight.
func weightPath(rule, ref int) string {
	return fmt.Sprintf("/spec/rules/%d/backendRefs/%d/weight", rule, ref)
}

// pathOf is the path of one of the changes.
func pathOf(change string) string {
	path, _, _ := strings.Cut(change, ": ")
	return path
}
