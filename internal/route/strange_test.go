package route_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// fields are the members of a JSON object.
type fields = map[string]any

// strangeFields adds fields to an object that no type of this build knows, some of them
// much like those that matter.
func strangeFields(t *rapid.T, object fields) fields {
	for range rapid.IntRange(0, 2).Draw(t, "strange fields") {
		key := rapid.SampledFrom([]string{"x-test", "Weight", "weights", "backendrefs", "subset", "x/y~z", "é"}).Draw(t, "strange field")
		object[key] = rapid.SampledFrom([]any{
			nil, true, 0, 1e20, 2.5, "", "keep", []any{}, fields{},
			json.Number("18446744073709551616"), []any{nil, fields{"weight": 1}},
			fields{"backendRefs": []any{fields{"name": "web-canary", "port": 80, "weight": 7}}},
		}).Draw(t, "strange value")
	}
	return object
}

// trackRef is a reference to a backend of the pair, its defaults left out or spelled out.
func trackRef(t *rapid.T, service string) fields {
	ref := fields{"name": service, "port": 80}
	for _, field := range []struct{ key, value string }{{"group", ""}, {"kind", "Service"}, {"namespace", "shop"}} {
		if rapid.Bool().Draw(t, field.key) {
			ref[field.key] = field.value
		}
	}
	return ref
}

// otherRef is a reference to anything else, however alike.
func otherRef(t *rapid.T) fields {
	ref := fields{"name": rapid.SampledFrom([]string{"web-stable", "web-canary"}).Draw(t, "name"), "port": 80}
	switch rapid.IntRange(0, 5).Draw(t, "difference") {
	case 0:
		ref["name"] = "web"
	case 1:
		ref["port"] = 81
	case 2:
		delete(ref, "port")
	case 3:
		ref["namespace"] = "attic"
	case 4:
		ref["kind"] = "ServiceImport"
	case 5:
		ref["group"] = "example.com"
	}
	return ref
}

// strangeFilters are filters that are valid for every kind of route, and mention the
// pair's Services.
func strangeFilters(t *rapid.T) []any {
	filters := []any{}
	for range rapid.IntRange(0, 2).Draw(t, "filters") {
		filters = append(filters, strangeFields(t, rapid.SampledFrom([]func() fields{
			func() fields {
				return fields{"type": "RequestMirror", "requestMirror": fields{"backendRef": trackRef(t, "web-canary"), "percent": 10}}
			},
			func() fields {
				return fields{"type": "RequestHeaderModifier", "requestHeaderModifier": fields{"remove": []any{"x-a"}}}
			},
			func() fields {
				return fields{"type": "ExtensionRef", "extensionRef": fields{"group": "example.com", "kind": "Quota", "name": "web-canary"}}
			},
			func() fields { return fields{"type": "x-Later"} },
		}).Draw(t, "filter")()))
	}
	return filters
}

// finish gives a reference a weight, or none, filters and strange fields.
func finish(t *rapid.T, ref fields) fields {
	if weight, given := anyWeight(t, "weight"); given {
		ref["weight"] = weight
	}
	if rapid.Bool().Draw(t, "filtered") {
		ref["filters"] = strangeFilters(t)
	}
	return strangeFields(t, ref)
}

// strangeRule is a rule with up to three other backends, and the pair among them if held.
func strangeRule(t *rapid.T, index int) (rule fields, held *holding) {
	var refs []fields
	for range rapid.IntRange(0, 3).Draw(t, "others") {
		refs = append(refs, otherRef(t))
	}
	switch rapid.SampledFrom([]string{"both", "both", "stable", "canary", "neither"}).Draw(t, "holds") {
	case "both":
		refs = append(refs, trackRef(t, "web-stable"), trackRef(t, "web-canary"))
		held = &holding{Rule: index, Stable: len(refs) - 2, Canary: len(refs) - 1}
	case "stable":
		refs = append(refs, trackRef(t, "web-stable"))
	case "canary":
		refs = append(refs, trackRef(t, "web-canary"))
	}
	list := make([]any, len(refs))
	places := make([]int, len(refs))
	for i := range places {
		places[i] = i
	}
	if len(refs) > 1 {
		places = rapid.Permutation(places).Draw(t, "order")
	}
	for i, ref := range refs {
		list[places[i]] = finish(t, ref)
	}
	if held != nil {
		held.Stable, held.Canary = places[held.Stable], places[held.Canary]
	}
	rule = strangeFields(t, fields{"backendRefs": list, "filters": strangeFilters(t)})
	if len(list) == 0 && rapid.Bool().Draw(t, "no backendRefs") {
		delete(rule, "backendRefs")
	}
	return rule, held
}

// strangeSample is a route of either kind that is full of strange things, with what is
// known of it.
func strangeSample(t *rapid.T) sample {
	s := sample{pair: pair}
	rules, named := []any{}, rapid.Bool().Draw(t, "named")
	for index := range rapid.IntRange(0, 4).Draw(t, "rules") {
		rule, held := strangeRule(t, index)
		name := fmt.Sprintf("r%d", index)
		if rapid.Bool().Draw(t, "name") {
			rule["name"] = name
		}
		switch {
		case held == nil:
		case !named:
			s.managed = append(s.managed, *held)
		case rule["name"] != nil && rapid.Bool().Draw(t, "meant"):
			s.managed, s.ruleNames = append(s.managed, *held), append(s.ruleNames, name)
		}
		rules = append(rules, rule)
	}
	if named && len(s.ruleNames) == 0 {
		s.ruleNames = []string{"absent"}
	}
	if len(s.managed) == 0 {
		s.refused = v1alpha1.ReasonNoMatchingRule
	}
	metadata := fields{"name": "web", "namespace": "shop", "resourceVersion": "7", "generation": 3}
	if annotations := rapid.SampledFrom([]func() any{
		func() any { return nil },
		func() any { return fields{} },
		func() any { return fields{"team": "x"} },
		func() any { return fields{v1alpha1.ManagedByAnnotation: "api, " + owner, "team": "x"} },
		func() any { return fields{v1alpha1.ManagedByAnnotation: "api"} },
	}).Draw(t, "annotations")(); annotations != nil || rapid.Bool().Draw(t, "null") {
		metadata["annotations"] = annotations
	}
	doc, err := json.Marshal(strangeFields(t, fields{
		"apiVersion": "gateway.networking.k8s.io/v1",
		"kind":       rapid.SampledFrom([]v1alpha1.RouteKind{v1alpha1.HTTPRouteKind, v1alpha1.GRPCRouteKind}).Draw(t, "kind"),
		"metadata":   strangeFields(t, metadata),
		"spec":       strangeFields(t, fields{"parentRefs": []any{strangeFields(t, fields{"name": "public"})}, "rules": rules}),
		"status":     strangeFields(t, fields{"parents": []any{}}),
	}))
	if err != nil {
		t.Fatal(err)
	}
	s.doc = doc
	return s
}

func walkStrangeRoute(t *rapid.T) {
	s := strangeSample(t)
	shares := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) weights.Share {
		return weights.Share(rapid.IntRange(1, int(weights.ShareAll)).Draw(t, "share"))
	}), 1, 3).Draw(t, "shares")
	s.walk(t, shares)
}

// Whatever a route is like, only the pair's weights and our annotation change.
func TestStrangeRoutes(t *testing.T) { rapid.Check(t, walkStrangeRoute) }

func FuzzStrangeRoutes(f *testing.F) { f.Fuzz(rapid.MakeFuzz(walkStrangeRoute)) }

// A route of one kind is treated as one of the other kind: only the messages differ.
func TestKindsAreTreatedAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strangeSample(t)
		patches := map[v1alpha1.RouteKind]string{}
		share := weights.Share(rapid.IntRange(0, int(weights.ShareAll)).Draw(t, "share"))
		for _, kind := range []v1alpha1.RouteKind{v1alpha1.HTTPRouteKind, v1alpha1.GRPCRouteKind} {
			top, _ := tree(t, s.doc).(fields)
			top["kind"] = kind
			doc, err := json.Marshal(top)
			if err != nil {
				t.Fatal(err)
			}
			r := decode(t, doc)
			patch, err := route.Inspect(r, s.ruleNames, s.pair).Patch(r, share, owner)
			if err != nil || r.Kind != kind {
				t.Fatalf("%s: %v", r.Kind, err)
			}
			patches[kind] = string(patch)
		}
		if patches[v1alpha1.HTTPRouteKind] != patches[v1alpha1.GRPCRouteKind] {
			t.Fatalf("the patches differ: %v", patches)
		}
	})
}
