package route_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// said is a condition in YAML, in a few words: "True 3" or "False 3 Reason message".
func said(kind, words string) string {
	parts := append(strings.SplitN(words, " ", 4), "", "")
	return fmt.Sprintf(`{type: %s, status: "%s", observedGeneration: %s, reason: "%s", message: "%s"}`, kind, parts[0], parts[1], parts[2], parts[3])
}

// entry is an entry of status.parents.
func entry(ref, controller string, conditions ...string) string {
	return fmt.Sprintf("{parentRef: {%s}, controllerName: %s, conditions: [%s]}", ref, controller, strings.Join(conditions, ", "))
}

// reported is an entry with both conditions.
func reported(ref, controller, accepted, resolved string) string {
	return entry(ref, controller, said("Accepted", accepted), said("ResolvedRefs", resolved))
}

// attached is a route of generation 3 with these parentRefs and status.parents.
func attached(t *testing.T, refs string, parents ...string) *route.Object {
	t.Helper()
	return parse(t, fmt.Sprintf(`
metadata: {name: web, namespace: shop, generation: 3}
spec: {parentRefs: [%s]}
status: {parents: [%s]}
`, refs, strings.Join(parents, ", ")))
}

func TestAccepted(t *testing.T) {
	const gw, who = "name: gw", "Gateway shop/gw (controller c.io/x)"
	good := reported(gw, "c.io/x", "True 3", "True 3")
	for _, tc := range []struct {
		name    string
		refs    string
		parents []string
		state   route.AcceptanceState
		message string
	}{
		{"taken", "{name: gw}", []string{good}, route.Confirmed, "accepted by " + who},
		{"a later generation", "{name: gw}", []string{reported(gw, "c.io/x", "True 4", "True 5")}, route.Confirmed, "accepted by " + who},
		{"one behind", "{name: gw}", []string{reported(gw, "c.io/x", "True 2", "True 2")}, route.Pending, who + " has not seen the present generation of the route"},
		{"one condition behind", "{name: gw}", []string{reported(gw, "c.io/x", "True 3", "True 2")}, route.Pending, who + " has not seen the present generation of the route"},
		{"no generation", "{name: gw}", []string{reported(gw, "c.io/x", "True 0", "True 0")}, route.Pending, who + " reports no generation, so it is not known which one it speaks of"},
		{"no status", "{name: gw}", nil, route.Pending, "no controller reports on Gateway shop/gw"},
		{"no conditions", "{name: gw}", []string{entry(gw, "c.io/x")}, route.Pending, who + " does not report Accepted; " + who + " does not report ResolvedRefs"},
		{"no parents", "", []string{good}, route.Pending, "the route is attached to no gateway: spec.parentRefs is empty"},
		{
			"rejected", "{name: gw}", []string{reported(gw, "c.io/x", "False 3 NotAllowedByListeners not from this namespace", "True 3")},
			route.NotAccepted, who + " says: Accepted is False: NotAllowedByListeners: not from this namespace",
		},
		{
			"not resolved", "{name: gw}", []string{reported(gw, "c.io/x", "True 3", "False 3 BackendNotFound no Service web-canary")},
			route.NotResolved, who + " says: ResolvedRefs is False: BackendNotFound: no Service web-canary",
		},
		{
			"rejected outweighs not resolved", "{name: gw}, {name: b}",
			[]string{reported(gw, "c.io/x", "True 3", "False 3 BackendNotFound m"), reported("name: b", "c.io/x", "False 3 R m", "True 2")},
			route.NotAccepted, "Gateway shop/b (controller c.io/x) says: Accepted is False: R: m",
		},
		{
			"an older generation was rejected", "{name: gw}", []string{reported(gw, "c.io/x", "False 2 R m", "True 3")},
			route.Pending, who + " has not seen the present generation of the route: Accepted is False: R: m",
		},
		{
			"some generation was unresolved", "{name: gw}", []string{reported(gw, "c.io/x", "True 0", "False 0 R m")},
			route.Pending, who + " reports no generation, so it is not known which one it speaks of; " + who + " reports no generation, so it is not known which one it speaks of: ResolvedRefs is False: R: m",
		},
		{"not known to be accepted", "{name: gw}", []string{reported(gw, "c.io/x", "Unknown 3 R m", "True 3")}, route.NotAccepted, who + " says: Accepted is Unknown: R: m"},
		{"not looked at", "{name: gw}", []string{reported(gw, "c.io/x", "Unknown 3 Pending m", "True 3")}, route.Pending, who + " says: Accepted is Unknown: Pending: m"},
		{"not known whether it resolves", "{name: gw}", []string{reported(gw, "c.io/x", "True 3", "Unknown 3 R m")}, route.Pending, who + " says: ResolvedRefs is Unknown: R: m"},
		{
			"one of two parents", "{name: gw}, {name: gw, sectionName: https}", []string{good},
			route.Pending, `no controller reports on Gateway shop/gw section "https"`,
		},
		{
			"one of two controllers", "{name: gw}", []string{good, reported(gw, "c.io/a", "True 2", "True 3")},
			route.Pending, "Gateway shop/gw (controller c.io/a) has not seen the present generation of the route",
		},
		{
			"two controllers", "{name: gw}", []string{good, reported(gw, "c.io/a", "True 3", "True 3")},
			route.Confirmed, "accepted by Gateway shop/gw (controller c.io/a); " + who,
		},
		{
			"an entry that the spec does not name", "{name: gw}",
			[]string{good, reported("name: gone", "c.io/x", "False 3 R m", "False 3 R m"), reported("name: gw, port: 443", "c.io/x", "False 3 R m", "False 3 R m")},
			route.Confirmed, "accepted by " + who,
		},
		{
			"defaults spelled out in status", "{name: gw}",
			[]string{reported("group: gateway.networking.k8s.io, kind: Gateway, namespace: shop, name: gw", "c.io/x", "True 3", "True 3")},
			route.Confirmed, "accepted by " + who,
		},
		{
			"defaults spelled out in the spec", "{group: gateway.networking.k8s.io, kind: Gateway, namespace: shop, name: gw}", []string{good},
			route.Confirmed, "accepted by " + who,
		},
		{"another namespace", "{name: gw, namespace: infra}", []string{good}, route.Pending, "no controller reports on Gateway infra/gw"},
		{"another port", "{name: gw, port: 443}", []string{good}, route.Pending, "no controller reports on Gateway shop/gw port 443"},
		{"the core group is not the default one", `{group: "", kind: Service, name: gw}`, []string{good}, route.Pending, "no controller reports on Service shop/gw"},
		{"another group", "{group: x.io, kind: Mesh, name: gw}", []string{good}, route.Pending, "no controller reports on Mesh.x.io shop/gw"},
		{"the same parent twice", "{name: gw}, {name: gw, namespace: shop}", []string{good}, route.Confirmed, "accepted by " + who},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := route.Acceptance{State: tc.state, Message: tc.message, Unresolved: strings.Contains(tc.name, "not resolved"), Generation: 3}
			if diff := cmp.Diff(want, route.Accepted(attached(t, tc.refs, tc.parents...), route.ConfirmGeneration, nil)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAcceptedWhateverTheGeneration(t *testing.T) {
	const gw = "name: gw"
	for _, tc := range []struct {
		name               string
		accepted, resolved string
		state              route.AcceptanceState
	}{
		{"no generation", "True 0", "True 0", route.Confirmed},
		{"one behind", "True 2", "True 2", route.Confirmed},
		{"rejected", "False 0 R m", "True 0", route.NotAccepted},
		{"not resolved", "True 0", "False 0 R m", route.NotResolved},
		{"not looked at", "Unknown 0 Pending m", "True 0", route.Pending},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := route.Accepted(attached(t, "{name: gw}", reported(gw, "c.io/x", tc.accepted, tc.resolved)), route.ConfirmAccepted, nil)
			if got.State != tc.state {
				t.Errorf("%s (%s), want %s", got.State, got.Message, tc.state)
			}
		})
	}
	if got := route.Accepted(attached(t, "{name: gw}"), route.ConfirmAccepted, nil); got.State != route.Pending {
		t.Errorf("without a status: %s, want Pending", got.State)
	}
}

func TestAcceptedWithoutRoute(t *testing.T) {
	if got := route.Accepted(nil, route.ConfirmAccepted, nil); got.State != route.Pending || got.Message == "" {
		t.Errorf("got %+v, want Pending and a message", got)
	}
}

// The message does not depend on the order of the entries, and does not run on.
func TestAcceptedMessage(t *testing.T) {
	r := &route.Object{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Generation: 3}}
	for n := range 32 {
		ref := gatewayv1.ParentReference{Name: gatewayv1.ObjectName(fmt.Sprintf("gw-%02d", n))}
		r.ParentRefs = append(r.ParentRefs, ref)
		r.Parents = append(r.Parents, gatewayv1.RouteParentStatus{
			ParentRef: ref, ControllerName: "c.io/x", Conditions: []metav1.Condition{{
				Type: "Accepted", Status: metav1.ConditionFalse, ObservedGeneration: 3, Reason: "R",
				Message: strings.Repeat("täglich\n", 100),
			}},
		})
	}
	first := route.Accepted(r, route.ConfirmGeneration, nil)
	slices.Reverse(r.ParentRefs)
	slices.Reverse(r.Parents[3:])
	if diff := cmp.Diff(first, route.Accepted(r, route.ConfirmGeneration, nil)); diff != "" {
		t.Errorf("in another order (-first +second):\n%s", diff)
	}
	m := first.Message
	if len(m) > 500 || !utf8.ValidString(m) || strings.Contains(m, "\n") {
		t.Errorf("%d bytes: %q", len(m), m)
	}
	if !strings.HasPrefix(m, "Gateway shop/gw-00 ") || !strings.Contains(m, "; Gateway shop/gw-01 ") {
		t.Errorf("the first gateway crowds out the second: %q", m)
	}
}

func TestAcceptanceReason(t *testing.T) {
	for state, want := range map[route.AcceptanceState]string{
		route.Confirmed: v1alpha1.ReasonAccepted, route.Pending: v1alpha1.ReasonRouteNotConfirmed,
		route.NotAccepted: v1alpha1.ReasonNotAccepted, route.NotResolved: v1alpha1.ReasonNotResolved, "": v1alpha1.ReasonRouteNotConfirmed,
	} {
		if got := (route.Acceptance{State: state}).Reason(); got != want {
			t.Errorf("%q: %s, want %s", state, got, want)
		}
	}
}

func TestParseConfirmMode(t *testing.T) {
	for _, mode := range []route.ConfirmMode{route.ConfirmGeneration, route.ConfirmAccepted} {
		if got, err := route.ParseConfirmMode(mode.String()); got != mode || err != nil {
			t.Errorf("%s: %v, %v", mode, got, err)
		}
	}
	if got, err := route.ParseConfirmMode("Accepted "); err == nil {
		t.Errorf("got %v, want an error", got)
	}
}
