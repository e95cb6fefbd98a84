package played

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// newRule returns a rule for a path.
func newRule(path string, refs ...gatewayv1.HTTPBackendRef) gatewayv1.HTTPRouteRule {
	return gatewayv1.HTTPRouteRule{
		Matches:     []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: ptr.To(gatewayv1.PathMatchPathPrefix), Value: &path}}},
		BackendRefs: refs,
	}
}

// pairOfRefs returns references to the Services of a rollout, at 100/0.
func pairOfRefs(name string) (stable, canary gatewayv1.HTTPBackendRef) {
	return newBackendRef(stableOf(name), ptr.To[int32](100)), newBackendRef(canaryOf(name), ptr.To[int32](0))
}

// TestC04RulesWithAndWithoutThePair: every rule that holds both backends moves, in
// one write and whatever the order of its backends; no other rule is ever touched.
func TestC04RulesWithAndWithoutThePair(t *testing.T) {
	w := newWorld(t)
	w.loose = true // they are read off below: in the last rule the canary comes first
	for _, name := range []string{"promoted", "rolled-back"} {
		stable, canary := pairOfRefs(name)
		route := newRoute(w.namespace, name, nil, nil)
		route.Spec.Rules = []gatewayv1.HTTPRouteRule{
			newRule("/a", stable, canary),
			newRule("/b", stable, canary),
			newRule("/legacy", newBackendRef(stableOf(name), nil)),
			newRule("/static", newBackendRef("assets", ptr.To[int32](7))),
			newRule("/c", canary, stable),
		}
		w.create(route)
	}
	w.rolloutFor("promoted")
	w.rolloutFor("rolled-back", soak(2, "10m"))

	stable, canary := pairOfRefs("apart")
	apart := newRoute(w.namespace, "apart", nil, nil)
	apart.Spec.Rules = []gatewayv1.HTTPRouteRule{newRule("/old", stable), newRule("/new", canary)}
	w.create(apart)
	w.rolloutFor("apart")

	w.startManager()
	w.awaitShare("rolled-back", "10")
	w.prom.set(w.namespace, canaryOf("rolled-back"), traffic{perSecond: 50, failed: 0.25})
	w.awaitPhase("rolled-back", v1alpha1.PhaseRolledBack)
	w.awaitPhase("promoted", v1alpha1.PhasePromoted)
	for name, want := range map[string][]string{
		"promoted":    {"99/1", "95/5", "90/10", "80/20", "50/50", "20/80", "0/100"},
		"rolled-back": {"99/1", "95/5", "90/10", "100/0"},
	} {
		if diff := cmp.Diff(want, w.splitsOfThreeRules(name)); diff != "" {
			t.Errorf("%s: the writes give other splits (-want +got):\n%s", name, diff)
		}
		w.wantWeights(name, append([]string{"100/0"}, want...)...)
		w.onlyWeightsChange(name, 0, 1, 4)
	}
	w.awaitStalled("apart", v1alpha1.ReasonNoMatchingRule, "holds both")
	if writes := w.routeWrites("apart", 0); len(writes) > 0 {
		t.Errorf("no rule holds the pair, and yet the route is written: %v", writes)
	}
}

// splitsOfThreeRules returns the split of every write, which must be the same in the
// rules 0, 1 and 4, the last of which has the canary first.
func (w *world) splitsOfThreeRules(name string) (splits []string) {
	w.t.Helper()
	for _, r := range w.routeWrites(name, 0) {
		w.checkRouteWrite(r)
		set, err := r.weights()
		if err != nil {
			w.t.Fatal(err)
		}
		p := pair{set[0][0], set[0][1]}
		want := map[int]map[int]int{0: {0: p.stable, 1: p.canary}, 1: {0: p.stable, 1: p.canary}, 4: {0: p.canary, 1: p.stable}}
		if diff := cmp.Diff(want, set); diff != "" {
			w.t.Errorf("request %d does not give every managed rule the same split (-want +got):\n%s", r.Number, diff)
		}
		splits = append(splits, p.String())
	}
	return splits
}

// TestC05HeaderRuleOfTesters: a rule that sends testers to the canary, and has no
// other backend, is left as it is by a whole run, a rollback and a deletion.
func TestC05HeaderRuleOfTesters(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"completed", "rolled-back", "deleted"} {
		route := newRoute(w.namespace, name, ptr.To[int32](100), ptr.To[int32](0))
		route.Spec.Rules = append(route.Spec.Rules, gatewayv1.HTTPRouteRule{
			Matches:     []gatewayv1.HTTPRouteMatch{{Headers: []gatewayv1.HTTPHeaderMatch{{Name: "x-canary", Value: "yes"}}}},
			BackendRefs: []gatewayv1.HTTPBackendRef{newBackendRef(canaryOf(name), nil)},
		})
		w.create(route)
	}
	w.rolloutFor("completed", stages("1s", "10", "50"))
	w.rolloutFor("rolled-back", stages("1s", "10"))
	w.rolloutFor("deleted", stages("10m", "10"))
	w.prom.set(w.namespace, canaryOf("rolled-back"), traffic{perSecond: 50, failed: 0.25})
	w.startManager()
	w.awaitPhase("rolled-back", v1alpha1.PhaseRolledBack)
	w.awaitShare("deleted", "10")
	w.remove("deleted")
	w.awaitGone("deleted")
	w.awaitPhase("completed", v1alpha1.PhasePromoted)
	w.command("completed", v1alpha1.VerbFinish)
	w.awaitPhase("completed", v1alpha1.PhaseCompleted)
	w.wantWeights("completed", "100/0", "90/10", "60/40", "50/50", "20/80", "0/100", "30/70", "60/40", "90/10", "100/0")
	w.wantWeights("rolled-back", "100/0", "90/10", "100/0")
	w.wantWeights("deleted", "100/0", "90/10", "100/0")
	for _, name := range []string{"completed", "rolled-back", "deleted"} {
		w.onlyWeightsChange(name)
		for _, r := range w.routeWrites(name, 0) {
			if set, err := r.weights(); err != nil || len(set[0]) != 2 || len(set) != 1 {
				t.Errorf("%s: request %d sets the weights %v, want those of rule 0 (%v)", name, r.Number, set, err)
			}
		}
	}
}

// TestC06DuplicateBackend: a rule that lists a backend twice is refused before any
// write, and the rule is named. Once the second entry is gone the rollout goes on.
func TestC06DuplicateBackend(t *testing.T) {
	w := newWorld(t)
	stable, canary := pairOfRefs("canary-twice")
	again := canary
	again.Filters = []gatewayv1.HTTPRouteFilter{{
		Type:                  gatewayv1.HTTPRouteFilterRequestHeaderModifier,
		RequestHeaderModifier: &gatewayv1.HTTPHeaderFilter{Set: []gatewayv1.HTTPHeader{{Name: "x-track", Value: "canary"}}},
	}}
	route := newRoute(w.namespace, "canary-twice", nil, nil)
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{newRule("/", stable, canary, again)}
	w.create(route)
	w.rolloutFor("canary-twice", stages("10m", "10"))

	stable, canary = pairOfRefs("stable-twice")
	route = newRoute(w.namespace, "stable-twice", nil, nil)
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{newRule("/", stable, canary), newRule("/api", stable, canary, stable)}
	route.Spec.Rules[1].Name = ptr.To[gatewayv1.SectionName]("api")
	w.create(route)
	w.rolloutFor("stable-twice", stages("10m", "10"))

	w.rollout("sound", stages("1s", "50"))
	w.startManager()
	w.awaitStalled("canary-twice", v1alpha1.ReasonDuplicateBackendRef, "rule 0 lists")
	w.awaitStalled("stable-twice", v1alpha1.ReasonDuplicateBackendRef, `rule 1 ("api") lists`)
	w.awaitPhase("sound", v1alpha1.PhasePromoted)
	for _, name := range []string{"canary-twice", "stable-twice"} {
		if writes := w.routeWrites(name, 0); len(writes) > 0 {
			t.Errorf("%s: the route is written: %v", name, writes)
		}
		w.editRoute(name, func(route *gatewayv1.HTTPRoute) {
			rule := &route.Spec.Rules[len(route.Spec.Rules)-1]
			rule.BackendRefs = rule.BackendRefs[:2]
		})
		w.awaitShare(name, "10")
	}
}

// editRoute changes a route as another person would.
func (w *world) editRoute(name string, c func(*gatewayv1.HTTPRoute)) {
	w.t.Helper()
	route := w.route(name)
	before := route.DeepCopy()
	c(route)
	if err := w.client.Patch(w.t.Context(), route, client.MergeFrom(before), client.FieldOwner("by-hand")); err != nil {
		w.t.Fatalf("editing HTTPRoute %s: %v", name, err)
	}
}

// routeWrites returns the accepted writes to a route since the given request.
func (w *world) routeWrites(name string, from int) []*request {
	return w.api.since(from, func(r *request) bool { return r.isRouteWrite() && r.Name == name && r.accepted() })
}

// awaitStalled waits until a rollout says that a person has to do something.
func (w *world) awaitStalled(name, reason, text string) *v1alpha1.WeightedRollout {
	w.t.Helper()
	return w.await(name, fmt.Sprintf("stalled with %s: %q", reason, text), func(wr *v1alpha1.WeightedRollout) bool {
		return isStalled(wr, reason, text)
	})
}
