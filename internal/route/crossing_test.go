package route_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// bothKinds runs a test over a document as an HTTPRoute, and as a GRPCRoute.
func bothKinds(t *testing.T, text string, check func(*testing.T, *route.Object)) {
	t.Helper()
	for _, kind := range []v1alpha1.RouteKind{v1alpha1.HTTPRouteKind, v1alpha1.GRPCRouteKind} {
		t.Run(string(kind), func(t *testing.T) {
			o := parse(t, strings.Replace(text, "kind: HTTPRoute", "kind: "+string(kind), 1))
			if o.Kind != kind {
				t.Fatalf("kind %q", o.Kind)
			}
			check(t, o)
		})
	}
}

// managed is a rule named main that divides between the two.
const managed = "  - {name: main, backendRefs: [{name: web-stable, port: 80}, {name: web-canary, port: 80}]}\n"

func TestCrossing(t *testing.T) {
	for _, tc := range []struct {
		name  string
		rules string
		// only are the names of the rules that are managed; every fitting one if empty.
		only []string
		want int
	}{
		{"the managed rule alone", managed, nil, -1},
		{"to the canary", managed + "  - {backendRefs: [{name: web-canary, port: 80, weight: 1}]}", nil, 1},
		{"to stable", managed + "  - {backendRefs: [{name: web-stable, port: 80, weight: 1}]}", nil, 1},
		{"a weight that is left out counts", managed + "  - {backendRefs: [{name: web-canary, port: 80}]}", nil, 1},
		{"a weight of 0 does not", managed + "  - {backendRefs: [{name: web-canary, port: 80, weight: 0}, {name: web-stable, port: 80, weight: 0}]}", nil, -1},
		{"one weight of two is 0", managed + "  - {backendRefs: [{name: web-stable, port: 80, weight: 0}, {name: other, port: 80}, {name: web-canary, port: 80, weight: 3}]}", []string{"main"}, 1},
		{"before the managed rule", "  - {backendRefs: [{name: web-canary, port: 80}]}\n" + managed, nil, 0},
		{"the first of several", managed + "  - {backendRefs: [{name: other, port: 80}]}\n  - {backendRefs: [{name: web-stable, port: 80}]}\n  - {backendRefs: [{name: web-canary, port: 80}]}", nil, 2},
		{"the name of a managed rule is not enough", managed + "  - {name: main, backendRefs: [{name: web-canary, port: 80}]}", []string{"main"}, 1},
		{"a fitting rule that is not named", managed + "  - {name: side, backendRefs: [{name: web-stable, port: 80}, {name: web-canary, port: 80}]}", []string{"main"}, 1},
		{"every fitting rule is managed", managed + "  - {name: side, backendRefs: [{name: web-stable, port: 80}, {name: web-canary, port: 80}]}", nil, -1},
		{"the route's namespace, spelled out", managed + "  - {backendRefs: [{name: web-canary, namespace: shop, port: 80}]}", nil, 1},
		{"another namespace", managed + "  - {backendRefs: [{name: web-canary, namespace: apps, port: 80}]}", nil, -1},
		{"another port", managed + "  - {backendRefs: [{name: web-canary, port: 81}]}", nil, -1},
		{"no port", managed + "  - {backendRefs: [{name: web-canary}]}", nil, -1},
		{"another kind", managed + "  - {backendRefs: [{kind: ServiceImport, name: web-canary, port: 80}]}", nil, -1},
		{"another group", managed + "  - {backendRefs: [{group: example.com, name: web-canary, port: 80}]}", nil, -1},
		{"another Service", managed + "  - {backendRefs: [{name: other, port: 80}]}", nil, -1},
		{"a rule without backends", managed + "  - {name: none}", nil, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bothKinds(t, withRules(tc.rules), func(t *testing.T, o *route.Object) {
				if got := o.Crossing(pair, route.Inspect(o, tc.only, pair).Rules); got != tc.want {
					t.Errorf("rule %d, want %d", got, tc.want)
				}
			})
		})
	}
}

// A route of another rollout, or of another namespace, has no rule that is managed.
func TestCrossingOfAnotherRoute(t *testing.T) {
	there := route.Pair{
		Stable: route.Backend{Namespace: "apps", Service: "web-stable", Port: 80},
		Canary: route.Backend{Namespace: "infra", Service: "web-canary", Port: 80},
	}
	const rules = `
  - {backendRefs: [{name: web-stable, port: 80}, {name: web-canary, port: 80}]}
  - {backendRefs: [{name: web-canary, namespace: infra, port: 80}]}
  - {backendRefs: [{name: web-stable, namespace: apps, port: 80}]}
`
	bothKinds(t, withRules(rules), func(t *testing.T, o *route.Object) {
		if got := o.Crossing(pair, nil); got != 0 {
			t.Errorf("the Services of the route's namespace: rule %d, want 0", got)
		}
		if got := o.Crossing(there, nil); got != 1 {
			t.Errorf("the Services of other namespaces: rule %d, want 1", got)
		}
		if got := o.Crossing(there, []route.ManagedRule{{Index: 1}}); got != 2 {
			t.Errorf("with rule 1 managed: rule %d, want 2", got)
		}
	})
	var none *route.Object
	if got := none.Crossing(pair, nil); got != -1 {
		t.Errorf("no route: rule %d, want -1", got)
	}
}

func TestBackends(t *testing.T) {
	const rules = managed + `
  - backendRefs:
    - {name: web-canary, namespace: shop, port: 80, weight: 0}
    - {name: web-canary, port: 81}
    - {name: web-canary, namespace: apps, port: 80}
    - {name: no-port}
    - {kind: ServiceImport, name: other-kind, port: 80}
    - {group: example.com, name: other-group, port: 80}
    - {group: "", kind: Service, name: spelled-out, port: 80}
`
	want := []string{"shop/web-stable:80", "shop/web-canary:80", "shop/web-canary:81", "apps/web-canary:80", "shop/spelled-out:80"}
	bothKinds(t, withRules(rules), func(t *testing.T, o *route.Object) {
		var got []string
		for _, b := range o.Backends() {
			got = append(got, b.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("backends (-want +got):\n%s", diff)
		}
	})
	var none *route.Object
	if got := none.Backends(); got != nil {
		t.Errorf("no route: %v", got)
	}
}

// What a gateway says of a route is read from a GRPCRoute as from an HTTPRoute.
func TestAcceptedOfBothKinds(t *testing.T) {
	const gw = "name: gw"
	for _, tc := range []struct {
		name    string
		parents string
		want    route.AcceptanceState
	}{
		{"taken", reported(gw, "c.io/x", "True 3", "True 3"), route.Confirmed},
		{"an older generation", reported(gw, "c.io/x", "True 2", "True 3"), route.Pending},
		{"rejected", reported(gw, "c.io/x", "False 3 UnsupportedProtocol no HTTP/2", "True 3"), route.NotAccepted},
		{"not resolved", reported(gw, "c.io/x", "True 3", "False 3 BackendNotFound no Service web-canary"), route.NotResolved},
		{"another gateway", reported("name: other", "c.io/x", "True 3", "True 3"), route.Pending},
		{"nothing said", "", route.Pending},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bothKinds(t, fmt.Sprintf("%sstatus: {parents: [%s]}\n", withRules(managed), tc.parents), func(t *testing.T, o *route.Object) {
				got := route.Accepted(o, route.ConfirmGeneration, nil)
				if got.State != tc.want || got.Generation != 3 {
					t.Errorf("%s (%s) of generation %d, want %s of 3", got.State, got.Message, got.Generation, tc.want)
				}
			})
		})
	}
}
