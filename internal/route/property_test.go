package route_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// anyWeight is a weight as an API server may hold it, or none.
func anyWeight(t *rapid.T, label string) (weight any, given bool) {
	switch rapid.IntRange(0, 4).Draw(t, label+" kind") {
	case 0:
		return nil, false
	case 1:
		return 0, true
	case 2:
		return rapid.IntRange(0, route.MaxWeight).Draw(t, label), true
	default:
		return rapid.IntRange(0, 100).Draw(t, label), true
	}
}

// anyRef is a backendRef that is often one of the pair's.
func anyRef(t *rapid.T) map[string]any {
	ref := map[string]any{
		"name": rapid.SampledFrom([]string{"web-stable", "web-canary", "web-stable", "web-canary", "assets", "web"}).Draw(t, "name"),
		"port": rapid.SampledFrom([]int{80, 80, 80, 80, 8080}).Draw(t, "port"),
	}
	if weight, ok := anyWeight(t, "weight"); ok {
		ref["weight"] = weight
	}
	// In a fixed order, or a failure could not be replayed.
	for _, field := range []struct {
		key    string
		values []string
	}{
		{"kind", []string{"Service", "Bucket"}},
		{"namespace", []string{"shop", "other"}},
		{"x-test", []string{"keep"}},
	} {
		if value := rapid.SampledFrom(append([]string{"", "", "", ""}, field.values...)).Draw(t, field.key); value != "" {
			ref[field.key] = value
		}
	}
	return ref
}

// anyRoute is a document of a route with some rules, fields that this build does not
// know, and annotations.
func anyRoute(t *rapid.T) map[string]any {
	rules := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any {
		rule := map[string]any{"x-test": "keep"}
		if name := rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "rule"); name != "" {
			rule["name"] = name
		}
		refs := []any{}
		for range rapid.IntRange(0, 4).Draw(t, "refs") {
			refs = append(refs, anyRef(t))
		}
		rule["backendRefs"] = refs
		return rule
	}), 0, 5).Draw(t, "rules")
	metadata := map[string]any{"name": "web", "namespace": "shop", "resourceVersion": "7"}
	switch rapid.IntRange(0, 3).Draw(t, "annotations") {
	case 1:
		metadata["annotations"] = map[string]any{}
	case 2:
		metadata["annotations"] = map[string]any{"team": "x"}
	case 3:
		metadata["annotations"] = map[string]any{"team": "x", v1alpha1.ManagedByAnnotation: rapid.SampledFrom([]string{"", "web", "api", "a, web"}).Draw(t, "owners")}
	}
	kind := rapid.SampledFrom([]v1alpha1.RouteKind{v1alpha1.HTTPRouteKind, v1alpha1.GRPCRouteKind}).Draw(t, "kind")
	return map[string]any{"kind": kind, "metadata": metadata, "spec": map[string]any{"rules": rules, "x-test": "keep"}}
}

// From any route, for any share: one patch leads to the share, and a second is not
// needed; the canary never passes its share; no managed rule adds up to 0; a third
// backend keeps its share; and nothing else changes.
func TestPatchProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		doc, err := json.Marshal(anyRoute(rt))
		if err != nil {
			rt.Fatal(err)
		}
		names := rapid.SampledFrom([][]string{nil, nil, {"a"}, {"a", "b"}}).Draw(rt, "ruleNames")
		share := weights.Share(rapid.IntRange(0, int(weights.ShareAll)).Draw(rt, "share"))

		checkPatch(rt, doc, names, share)
	})
}

// checkPatch applies the patch for a share to a document and checks everything that
// must hold afterwards.
func checkPatch(f fataler, doc []byte, names []string, share weights.Share) {
	f.Helper()
	r := decode(f, doc)
	before := route.Inspect(r, names, pair)
	patch, err := before.Patch(r, share, owner)
	if err != nil {
		f.Fatalf("patch: %v", err)
	}
	after := doc
	if patch != nil {
		after = apply(f, doc, patch)
	}
	now := decode(f, after)
	then := route.Inspect(now, names, pair)

	if len(before.Rules) != len(then.Rules) || (before.Problem == nil) != (then.Problem == nil) {
		f.Fatalf("other rules are managed: %v, then %v", before.Rules, then.Rules)
	}
	if len(before.Rules) == 0 {
		if patch != nil {
			f.Fatalf("a patch without a managed rule: %s", patch)
		}
		return
	}
	if !then.Matches(share) {
		f.Fatalf("%s does not lead to %s: %+v", patch, share, then.Rules)
	}
	if again, err := then.Patch(now, share, owner); again != nil || err != nil {
		f.Fatalf("a second patch: %s, %v", again, err)
	}
	if before.Matches(share) && before.Problem == nil {
		if low, high := before.Observed(); high > share {
			f.Fatalf("%s matches, but %s to %s is observed", share, low, high)
		}
	}
	if _, high := then.Observed(); high > share {
		f.Fatalf("the canary has %s, above %s", high, share)
	}
	if share > 0 && then.Express(share) == nil {
		for _, m := range then.Rules {
			if m.CanaryWeight == 0 {
				f.Fatalf("%s can be expressed, but the canary has nothing: %+v", share, m)
			}
		}
	}
	checkRules(f, before.Rules, then.Rules)
	checkPaths(f, r, before.Rules, changes(f, doc, after))
}

// checkRules checks sums and third backends.
func checkRules(f fataler, before, after []route.ManagedRule) {
	f.Helper()
	for n, m := range after {
		old := before[n]
		sum := int64(m.StableWeight) + int64(m.CanaryWeight)
		if m.StableWeight < 0 || m.CanaryWeight < 0 || m.StableWeight > route.MaxWeight || m.CanaryWeight > route.MaxWeight || sum+m.OthersWeight == 0 {
			f.Fatalf("rule %d has the weights %d and %d", m.Index, m.StableWeight, m.CanaryWeight)
		}
		if m.OthersWeight != old.OthersWeight {
			f.Fatalf("rule %d: the others had %d, now %d", m.Index, old.OthersWeight, m.OthersWeight)
		}
		oldSum := int64(max(old.StableWeight, 0)) + int64(max(old.CanaryWeight, 0))
		if m.Others && oldSum > 0 && oldSum <= route.MaxWeight && sum != oldSum {
			f.Fatalf("rule %d: beside another backend the pair had %d, now %d", m.Index, oldSum, sum)
		}
		if !m.Others && sum != 100 && sum != 10_000 {
			f.Fatalf("rule %d: the pair has %d", m.Index, sum)
		}
	}
}

// checkPaths checks that nothing but the pair's weights and our annotation differs.
func checkPaths(f fataler, r *route.Object, rules []route.ManagedRule, differences []string) {
	f.Helper()
	allowed := map[string]bool{"/metadata/annotations/" + v1alpha1.ManagedByAnnotation: true}
	if len(r.Annotations) == 0 {
		allowed["/metadata/annotations"] = true
	}
	for _, m := range rules {
		allowed[weightPath(m.Index, m.StableRef)] = true
		allowed[weightPath(m.Index, m.CanaryRef)] = true
	}
	for _, difference := range differences {
		if path := pathOf(difference); !allowed[path] {
			f.Fatalf("%s changed: %s", path, difference)
		}
	}
}

// Releasing gives the route back: as it was, but for the weights.
func TestReleaseProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		doc, err := json.Marshal(anyRoute(rt))
		if err != nil {
			rt.Fatal(err)
		}
		share := weights.Share(rapid.IntRange(0, int(weights.ShareAll)).Draw(rt, "share"))
		written, _ := write(t, doc, nil, share)
		r := decode(t, written)
		var restore *weights.Share
		if rapid.Bool().Draw(rt, "restore") {
			none := weights.ShareNone
			restore = &none
		}
		patch, err := route.Inspect(r, nil, pair).Release(r, restore, owner)
		if err != nil {
			rt.Fatal(err)
		}
		released := written
		if patch != nil {
			released = apply(t, written, patch)
		}
		now := decode(t, released)
		for _, name := range route.Owners(now) {
			if name == owner {
				rt.Fatalf("still managed by %v", route.Owners(now))
			}
		}
		want := share
		if restore != nil {
			want = *restore
		}
		i := route.Inspect(now, nil, pair)
		if len(i.Rules) > 0 && !i.Matches(want) {
			rt.Fatalf("released at %s: %+v", want, i.Rules)
		}
		if again, err := i.Release(now, restore, owner); again != nil || err != nil {
			rt.Fatalf("a second patch: %s, %v", again, err)
		}
	})
}
