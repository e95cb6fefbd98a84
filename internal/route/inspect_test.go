package route_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

func TestIdentification(t *testing.T) {
	const stable = "{name: web-stable, port: 80, weight: 90}"
	for _, tc := range []struct {
		name   string
		canary string
		ours   bool
	}{
		{"as the API server stores it", `{group: "", kind: Service, name: web-canary, port: 80, weight: 10}`, true},
		{"with defaults left out", `{name: web-canary, port: 80, weight: 10}`, true},
		{"with its own namespace", `{name: web-canary, namespace: shop, port: 80, weight: 10}`, true},
		{"another namespace", `{name: web-canary, namespace: other, port: 80, weight: 10}`, false},
		{"another port", `{name: web-canary, port: 8080, weight: 10}`, false},
		{"no port", `{name: web-canary, weight: 10}`, false},
		{"another name", `{name: web-canary-2, port: 80, weight: 10}`, false},
		{"another kind", `{kind: ServiceImport, name: web-canary, port: 80, weight: 10}`, false},
		{"another group", `{group: example.com, kind: Service, name: web-canary, port: 80, weight: 10}`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := parse(t, withRules("\n  - backendRefs: ["+stable+", "+tc.canary+"]\n"))
			i := route.Inspect(r, nil, pair)
			var want []route.ManagedRule
			if tc.ours {
				want = []route.ManagedRule{{StableRef: 0, CanaryRef: 1, StableWeight: 90, CanaryWeight: 10}}
			}
			if diff := cmp.Diff(want, i.Rules); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			if (i.Problem == nil) != tc.ours {
				t.Errorf("problem %v", i.Problem)
			}
		})
	}
}

func TestBackendInAnotherNamespace(t *testing.T) {
	r := parse(t, withRules(`
  - backendRefs:
    - {name: web-stable, namespace: apps, port: 80, weight: 60}
    - {name: web-canary, port: 80, weight: 40}
`))
	across := route.Pair{Stable: route.Backend{Namespace: "apps", Service: "web-stable", Port: 80}, Canary: pair.Canary}
	i := route.Inspect(r, nil, across)
	if diff := cmp.Diff([]route.ManagedRule{{StableRef: 0, CanaryRef: 1, StableWeight: 60, CanaryWeight: 40}}, i.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if i.Pair.Canary.Namespace != "shop" {
		t.Errorf("the canary's namespace is %q, want the route's", i.Pair.Canary.Namespace)
	}
}

func TestThirdBackend(t *testing.T) {
	r := parse(t, withRules(`
  - name: main
    backendRefs:
    - {name: other, port: 80}
    - {name: web-stable, port: 80, weight: 3}
    - {name: web-canary, port: 80, weight: 1}
    - {group: example.com, kind: Bucket, name: web-stable, port: 80, weight: 5}
`))
	want := []route.ManagedRule{{Name: "main", StableRef: 1, CanaryRef: 2, StableWeight: 3, CanaryWeight: 1, Others: true, OthersWeight: 6}}
	i := route.Inspect(r, nil, pair)
	if diff := cmp.Diff(want, i.Rules); diff != "" || i.Problem != nil {
		t.Errorf("problem %v, rules (-want +got):\n%s", i.Problem, diff)
	}
}

func TestProblems(t *testing.T) {
	const both = "[{name: web-stable, port: 80}, {name: web-canary, port: 80}]"
	const twice = "[{name: web-stable, port: 80}, {name: web-canary, port: 80}, {name: web-stable, port: 80}, {name: web-canary, port: 80}]"
	for _, tc := range []struct {
		name    string
		rules   string
		only    []string
		managed []int
		reason  string
		message string
	}{
		{
			name: "no rule holds both", rules: "\n  - backendRefs: [{name: web-stable, port: 80}]\n  - backendRefs: [{name: web-canary, port: 80}]\n",
			reason: v1alpha1.ReasonNoMatchingRule, message: "no rule of HTTPRoute shop/web holds both shop/web-stable:80 and shop/web-canary:80",
		},
		{
			name: "another port", rules: "\n  - backendRefs: [{name: web-stable, port: 80}, {name: web-canary, port: 8080}]\n",
			reason: v1alpha1.ReasonNoMatchingRule, message: "no rule of HTTPRoute shop/web holds both shop/web-stable:80 and shop/web-canary:80; the route has shop/web-canary:8080",
		},
		{
			name: "a named rule", rules: "\n  - {name: a, backendRefs: " + both + "}\n  - {name: b, backendRefs: " + both + "}\n",
			only: []string{"b"}, managed: []int{1},
		},
		{
			name: "an unnamed rule is not meant", rules: "\n  - {backendRefs: " + both + "}\n  - {name: b, backendRefs: " + both + "}\n",
			only: []string{"b", "b"}, managed: []int{1},
		},
		{
			name: "a name that is not there", rules: "\n  - {name: a, backendRefs: " + both + "}\n",
			only: []string{"z", "a", "y"}, managed: []int{0},
			reason: v1alpha1.ReasonNoMatchingRule, message: `HTTPRoute shop/web: there is no rule named "y" or "z"`,
		},
		{
			name: "a named rule without the pair", rules: "\n  - {name: a, backendRefs: " + both + "}\n  - {name: b, backendRefs: [{name: web-stable, port: 80}]}\n",
			only:   []string{"b", "c"},
			reason: v1alpha1.ReasonNoMatchingRule, message: `HTTPRoute shop/web: there is no rule named "c"; the rule named "b" does not hold both shop/web-stable:80 and shop/web-canary:80`,
		},
		{
			name: "a duplicate", rules: "\n  - {name: a, backendRefs: " + both + "}\n  - {name: b, backendRefs: " + twice + "}\n",
			managed: []int{0},
			reason:  v1alpha1.ReasonDuplicateBackendRef, message: `HTTPRoute shop/web: rule 1 ("b") lists shop/web-stable:80 2 times and shop/web-canary:80 2 times: keep one entry of each backend per rule`,
		},
		{
			name: "a duplicate in a rule that is not meant", rules: "\n  - {name: a, backendRefs: " + both + "}\n  - {name: b, backendRefs: " + twice + "}\n",
			only: []string{"a"}, managed: []int{0},
		},
		{
			name: "a duplicate of one without the other", rules: "\n  - {backendRefs: " + both + "}\n  - {backendRefs: [{name: web-canary, port: 80}, {name: web-canary, port: 80}]}\n",
			managed: []int{0},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			i := route.Inspect(parse(t, withRules(tc.rules)), tc.only, pair)
			var managed []int
			for _, m := range i.Rules {
				managed = append(managed, m.Index)
			}
			if diff := cmp.Diff(tc.managed, managed); diff != "" {
				t.Errorf("managed rules (-want +got):\n%s", diff)
			}
			var want *route.Problem
			if tc.reason != "" {
				want = &route.Problem{Reason: tc.reason, Message: tc.message}
			}
			if diff := cmp.Diff(want, i.Problem); diff != "" {
				t.Errorf("problem (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoRoute(t *testing.T) {
	i := route.Inspect(nil, nil, pair)
	if i.Problem == nil || i.Problem.Reason != v1alpha1.ReasonRouteMissing {
		t.Errorf("problem %v, want %s", i.Problem, v1alpha1.ReasonRouteMissing)
	}
	if low, high := i.Observed(); low != 0 || high != 0 || i.Matches(0) || i.Express(percent(1)) != nil {
		t.Errorf("observed %s to %s, matches 0: %v, express: %v", low, high, i.Matches(0), i.Express(percent(1)))
	}
	if patch, err := i.Patch(nil, 0, owner); patch != nil || err != nil {
		t.Errorf("Patch = %s, %v, want none", patch, err)
	}
	if patch, err := i.Release(nil, nil, owner); patch != nil || err != nil {
		t.Errorf("Release = %s, %v, want none", patch, err)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	names := make([]string, 16)
	for n := range names {
		names[n] = strings.Repeat("ü", 100) + string(rune('a'+n)) + "\n"
	}
	i := route.Inspect(parse(t, plain(1, 1)), names, pair)
	if i.Problem == nil {
		t.Fatal("no problem")
	}
	message := i.Problem.Message
	if len(message) > 500 || !utf8.ValidString(message) || strings.Contains(message, "\n") || !strings.HasSuffix(message, "…") {
		t.Errorf("%d bytes: %q", len(message), message)
	}
}
