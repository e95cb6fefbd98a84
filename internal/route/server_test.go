package route_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/internal/route"
)

const (
	traefik = "traefik.io/gateway-controller"
	other   = "example.com/other"
)

// named is the server of a parent whose class names a controller.
func named(class string, controller gatewayv1.GatewayController) route.Server {
	return route.Server{Controllers: []gatewayv1.GatewayController{controller}, Source: `GatewayClass "` + class + `"`}
}

// TestReportsThatCount: a report counts only if it is by the controller that serves the
// parent. Traefik reports on every parentRef of a route once one of them is its own.
func TestReportsThatCount(t *testing.T) {
	const good, bad = "True 3", "False 3 R m"
	both := func(controller string) []string {
		return []string{reported("name: gw", controller, good, good), reported("name: b", controller, good, good)}
	}
	mine, nobody := named("traefik", traefik), route.Server{}
	gone := route.Server{Problem: "Gateway shop/b does not exist: create it"}
	doubt := route.Server{Doubt: "it is not known who serves shop/gw"}
	flag := route.Server{Controllers: []gatewayv1.GatewayController{traefik, "a.io/x"}, Source: "--gateway-controllers"}
	const by = " (controller traefik.io/gateway-controller)"
	for _, tc := range []struct {
		name    string
		refs    string
		servers []route.Server
		parents []string
		state   route.AcceptanceState
		message string
		note    string
	}{
		{
			"its own, and one that does not exist", "{name: gw}, {name: b}", []route.Server{mine, gone}, both(traefik),
			route.Pending, gone.Problem, "",
		},
		{
			"its own, and one of a class that nobody serves", "{name: gw}, {name: b}", []route.Server{mine, named("idle", other)}, both(traefik),
			route.Pending, `controller example.com/other, which GatewayClass "idle" names, does not report on Gateway shop/b: see that it runs and serves it (a report by traefik.io/gateway-controller does not count)`, "",
		},
		{
			"its own, and one of a controller that has written nothing", "{name: gw}, {name: b}", []route.Server{mine, named("o", other)}, both(traefik)[:1],
			route.Pending, `controller example.com/other, which GatewayClass "o" names, does not report on Gateway shop/b: see that it runs and serves it`, "",
		},
		{
			"its own, and one of another controller that reports too", "{name: gw}, {name: b}", []route.Server{mine, named("o", other)},
			append(both(traefik), reported("name: b", other, good, good)),
			route.Confirmed, "accepted by Gateway shop/b (controller example.com/other); Gateway shop/gw" + by,
			`what controller traefik.io/gateway-controller reports on Gateway shop/b does not count: GatewayClass "o" names another`,
		},
		{
			"its own, and another controller refuses its part", "{name: gw}, {name: b}", []route.Server{mine, named("o", other)},
			append(both(traefik), reported("name: b", other, bad, good)),
			route.NotAccepted, "Gateway shop/b (controller example.com/other) says: Accepted is False: R: m",
			`what controller traefik.io/gateway-controller reports on Gateway shop/b does not count: GatewayClass "o" names another`,
		},
		{
			"the class has changed, and the old report is still there", "{name: gw}", []route.Server{mine},
			[]string{reported("name: gw", other, "False 2 R m", bad), reported("name: gw", traefik, good, good)},
			route.Confirmed, "accepted by Gateway shop/gw" + by,
			`what controller example.com/other reports on Gateway shop/gw does not count: GatewayClass "traefik" names another`,
		},
		{
			"the class has changed, and only the old report is there", "{name: gw}", []route.Server{mine}, []string{reported("name: gw", other, good, good)},
			route.Pending, `controller traefik.io/gateway-controller, which GatewayClass "traefik" names, does not report on Gateway shop/gw: see that it runs and serves it (a report by example.com/other does not count)`, "",
		},
		{
			"a section, and a report on the whole Gateway", "{name: gw, sectionName: https}", []route.Server{mine}, []string{reported("name: gw", traefik, good, good)},
			route.Pending, `controller traefik.io/gateway-controller, which GatewayClass "traefik" names, does not report on Gateway shop/gw section "https": see that it runs and serves it`, "",
		},
		{
			"two sections of a Gateway, one reported by another", "{name: gw, sectionName: a}, {name: gw, sectionName: b}", []route.Server{mine, mine},
			[]string{reported("name: gw, sectionName: a", traefik, good, good), reported("name: gw, sectionName: b", other, good, good)},
			route.Pending, `controller traefik.io/gateway-controller, which GatewayClass "traefik" names, does not report on Gateway shop/gw section "b": see that it runs and serves it (a report by example.com/other does not count)`, "",
		},
		{
			"a section and a port", "{name: gw, sectionName: a, port: 443}", []route.Server{mine}, []string{reported("name: gw, sectionName: a, port: 443, namespace: shop", traefik, good, good)},
			route.Confirmed, `accepted by Gateway shop/gw section "a" port 443` + by, "",
		},
		{
			"a Service", `{group: "", kind: Service, name: web}`, []route.Server{nobody}, []string{reported(`group: "", kind: Service, name: web`, other, good, good)},
			route.Confirmed, "accepted by Service shop/web (controller example.com/other)", "",
		},
		{
			"a Service beside a Gateway that does not exist", `{group: "", kind: Service, name: web}, {name: b}`, []route.Server{nobody, gone},
			append(both(traefik), reported(`group: "", kind: Service, name: web`, other, good, good)),
			route.Pending, gone.Problem, "",
		},
		{
			"not known who serves it", "{name: gw}", []route.Server{doubt}, both(other)[:1],
			route.Confirmed, "accepted by Gateway shop/gw (controller example.com/other)", doubt.Doubt,
		},
		{
			"not known who serves it, and nobody reports", "{name: gw}", []route.Server{doubt}, nil,
			route.Pending, "no controller reports on Gateway shop/gw", "",
		},
		{
			"named by the flag", "{name: gw}", []route.Server{flag}, both(traefik)[:1],
			route.Confirmed, "accepted by Gateway shop/gw" + by, "",
		},
		{
			"not named by the flag", "{name: gw}", []route.Server{flag}, both(other)[:1],
			route.Pending, "controller traefik.io/gateway-controller or a.io/x, which --gateway-controllers names, does not report on Gateway shop/gw: see that it runs and serves it (a report by example.com/other does not count)", "",
		},
		{
			"fewer servers than parents", "{name: gw}, {name: b}", []route.Server{mine}, both(traefik),
			route.Confirmed, "accepted by Gateway shop/b" + by + "; Gateway shop/gw" + by, "",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := route.Acceptance{State: tc.state, Message: tc.message, Note: tc.note, Generation: 3}
			if diff := cmp.Diff(want, route.Accepted(attached(t, tc.refs, tc.parents...), route.ConfirmGeneration, tc.servers)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOnlyCountedReportsResolve: what a controller that does not serve the parent says of
// the backends takes no traffic away.
func TestOnlyCountedReportsResolve(t *testing.T) {
	const good, bad = "True 3", "False 3 R m"
	for _, tc := range []struct {
		name    string
		parents []string
		want    bool
	}{
		{"by its own", []string{reported("name: gw", traefik, good, bad)}, true},
		{"by its own, which does not accept the route either", []string{reported("name: gw", traefik, bad, bad)}, true},
		{"by another", []string{reported("name: gw", traefik, good, good), reported("name: gw", other, good, bad)}, false},
		{"of an older generation", []string{reported("name: gw", traefik, good, "False 2 R m")}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := route.Accepted(attached(t, "{name: gw}", tc.parents...), route.ConfirmGeneration, []route.Server{named("traefik", traefik)})
			if got.Unresolved != tc.want {
				t.Errorf("%+v, want unresolved %t", got, tc.want)
			}
		})
	}
}

func TestGatewayOf(t *testing.T) {
	for refs, want := range map[string]string{
		"{name: gw}":                   "shop/gw",
		"{name: gw, namespace: infra}": "infra/gw",
		`{name: gw, namespace: ""}`:    "shop/gw",
		"{group: gateway.networking.k8s.io, kind: Gateway, name: gw}":     "shop/gw",
		"{name: gw, sectionName: https, port: 443}":                       "shop/gw",
		`{group: "", kind: Service, name: gw}`:                            "",
		`{group: "", name: gw}`:                                           "",
		"{kind: Service, name: gw}":                                       "",
		"{kind: ListenerSet, name: gw}":                                   "",
		"{group: example.com, kind: Gateway, name: gw, namespace: infra}": "",
	} {
		r := attached(t, refs)
		got := ""
		if key, ok := route.GatewayOf(r.ParentRefs[0], r.Namespace); ok {
			got = key.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", refs, got, want)
		}
	}
}

// TestNotesAreBounded: the note does not run on, and does not depend on the order.
func TestNotesAreBounded(t *testing.T) {
	var parents []string
	for _, name := range []string{"b", "a", "c", "d", "e", "f"} {
		parents = append(parents, reported("name: gw", "example.com/"+strings.Repeat(name, 120), "True 3", "True 3"))
	}
	parents = append(parents, reported("name: gw", traefik, "True 3", "True 3"))
	got := route.Accepted(attached(t, "{name: gw}", parents...), route.ConfirmGeneration, []route.Server{named("traefik", traefik)})
	if len(got.Note) > 500 || !strings.HasPrefix(got.Note, "what controller example.com/aaa") {
		t.Errorf("%d bytes: %s", len(got.Note), got.Note)
	}
}
