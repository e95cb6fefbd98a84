package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
)

// reconcilerWith reads these objects, by the same indexes as the manager's cache.
func reconcilerWith(t *testing.T, objects ...client.Object) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, gatewayv1.Install, discoveryv1.AddToScheme, autoscalingv2.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	if err := (&Reconciler{}).addIndexes(t.Context(), builderIndexer{b}); err != nil {
		t.Fatal(err)
	}
	c := b.Build()
	return &Reconciler{Client: c, Live: c, Clock: clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))}
}

// builderIndexer hands the indexes to the fake client.
type builderIndexer struct{ *fake.ClientBuilder }

func (b builderIndexer) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	b.WithIndex(o, field, values)
	return nil
}

// rolloutOf is a rollout of namespace shop over these routes.
func rolloutOf(name string, age time.Duration, routes ...v1alpha1.RouteReference) *v1alpha1.WeightedRollout {
	return &v1alpha1.WeightedRollout{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name),
			CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0).Add(-age)),
		},
		Spec: v1alpha1.WeightedRolloutSpec{
			Routes: routes,
			Stable: &v1alpha1.StableTrack{Track: v1alpha1.Track{Service: "web-stable", Port: 80}},
			Canary: &v1alpha1.CanaryTrack{Track: v1alpha1.Track{Service: "web-canary", Port: 80}},
		},
	}
}

func httpRef(name string, rules ...string) v1alpha1.RouteReference {
	return v1alpha1.RouteReference{Kind: v1alpha1.HTTPRouteKind, Name: name, RuleNames: rules}
}

func grpcRef(name string, rules ...string) v1alpha1.RouteReference {
	return v1alpha1.RouteReference{Kind: v1alpha1.GRPCRouteKind, Name: name, RuleNames: rules}
}

func backendRef(service string) gatewayv1.BackendRef {
	port := gatewayv1.PortNumber(80)
	return gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(service), Port: &port}}
}

// bothRoutes are an HTTPRoute and a GRPCRoute of one name, with the rules a and b.
func bothRoutes() []client.Object {
	h, g := &gatewayv1.HTTPRoute{}, &gatewayv1.GRPCRoute{}
	for _, o := range []client.Object{h, g} {
		o.SetNamespace("shop")
		o.SetName("web")
	}
	h.UID, g.UID = "http", "grpc"
	for _, name := range []gatewayv1.SectionName{"a", "b"} {
		stable, canary := backendRef("web-stable"), backendRef("web-canary")
		h.Spec.Rules = append(h.Spec.Rules, gatewayv1.HTTPRouteRule{Name: &name, BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: stable}, {BackendRef: canary}}})
		g.Spec.Rules = append(g.Spec.Rules, gatewayv1.GRPCRouteRule{Name: &name, BackendRefs: []gatewayv1.GRPCBackendRef{{BackendRef: stable}, {BackendRef: canary}}})
	}
	return []client.Object{h, g}
}

// observeRoutes reads the routes of a rollout as observe does.
func observeRoutes(t *testing.T, r *Reconciler, wr *v1alpha1.WeightedRollout) observation {
	t.Helper()
	var obs observation
	for _, ref := range wr.Spec.Routes {
		o, err := r.readRoute(t.Context(), wr.Namespace, keyOf(ref))
		if err != nil {
			t.Fatal(err)
		}
		obs.routes, obs.refs = append(obs.routes, o), append(obs.refs, ref)
		obs.Routes = append(obs.Routes, r.observeRoute(wr, ref, o))
	}
	return obs
}

func TestRoutesOfBothKindsAreRead(t *testing.T) {
	r := reconcilerWith(t, bothRoutes()...)
	wr := rolloutOf("web", 0, httpRef("web"), grpcRef("web", "b"), grpcRef("gone"), v1alpha1.RouteReference{Name: "web"})
	r.writeErrors.set(client.ObjectKeyFromObject(wr), routeKey{v1alpha1.GRPCRouteKind, "web"}, errors.New("refused"))
	type seen struct {
		Kind       v1alpha1.RouteKind
		UID        types.UID
		Route      string
		Rules      int
		WriteError string
	}
	want := []seen{
		{Kind: v1alpha1.HTTPRouteKind, UID: "http", Route: "HTTPRoute shop/web", Rules: 2},
		{Kind: v1alpha1.GRPCRouteKind, UID: "grpc", Route: "GRPCRoute shop/web", Rules: 1, WriteError: "refused"},
		{Kind: v1alpha1.GRPCRouteKind},
		{Kind: v1alpha1.HTTPRouteKind, UID: "http", Route: "HTTPRoute shop/web", Rules: 2},
	}
	var got []seen
	for _, o := range observeRoutes(t, r, wr).Routes {
		got = append(got, seen{o.Kind, o.UID, o.Inspection.Route, len(o.Inspection.Rules), o.WriteError})
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
}

// Without GRPCRoutes in the cluster the controller works, never asks for one, and says
// what to do.
func TestClusterWithoutGRPCRoute(t *testing.T) {
	serving := func(version, kind string) meta.RESTMapper {
		m := meta.NewDefaultRESTMapper(nil)
		m.Add(schema.GroupVersionKind{Group: gatewayv1.GroupName, Version: version, Kind: kind}, meta.RESTScopeNamespace)
		return m
	}
	const missing = "the cluster does not serve GRPCRoute: install the Gateway API's standard channel, and restart the controller"
	wr := rolloutOf("web", 0, httpRef("web"), grpcRef("web"))
	for _, tc := range []struct {
		name    string
		mapper  meta.RESTMapper
		found   bool
		problem string
	}{
		{"served", serving("v1", "GRPCRoute"), true, ""},
		{"not served", serving("v1", "HTTPRoute"), false, missing},
		{"served in an older version", serving("v1alpha2", "GRPCRoute"), false, missing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := reconcilerWith(t, bothRoutes()...)
			if err := r.findServed(tc.mapper); err != nil {
				t.Fatal(err)
			}
			routes := observeRoutes(t, r, wr).Routes
			if !routes[0].Found || routes[1].Found != tc.found {
				t.Errorf("found %v and %v, want true and %v", routes[0].Found, routes[1].Found, tc.found)
			}
			message := ""
			if p := r.routeProblem(wr); p != nil {
				message = p.Message
			}
			if message != tc.problem {
				t.Errorf("problem %q, want %q", message, tc.problem)
			}
			if p := r.routeProblem(rolloutOf("web", 0, httpRef("web"))); p != nil {
				t.Errorf("a rollout without a GRPCRoute: %v", p)
			}
		})
	}
}

// A cluster that cannot be asked is not one without GRPCRoutes.
func TestClusterThatDoesNotAnswer(t *testing.T) {
	r := &Reconciler{}
	if err := r.findServed(brokenMapper{}); err == nil || len(r.unserved) > 0 {
		t.Errorf("error %v, unserved %v", err, r.unserved)
	}
}

type brokenMapper struct{ meta.RESTMapper }

func (brokenMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("no answer")
}

// A rollout manages what no older one does.
func TestDisown(t *testing.T) {
	const all, part = "all", "part"
	for _, tc := range []struct {
		name        string
		mine, other []v1alpha1.RouteReference
		mode        v1alpha1.Mode
		age         time.Duration
		want        string
		left        []string
	}{
		{name: "the same route", mine: routeRefs(grpcRef("web")), other: routeRefs(grpcRef("web")), want: all, left: []string{"GRPCRoute web a b"}},
		{name: "the same rule", mine: routeRefs(grpcRef("web", "a")), other: routeRefs(grpcRef("web", "b", "a")), want: all, left: []string{"GRPCRoute web a"}},
		{name: "another rule", mine: routeRefs(grpcRef("web", "a")), other: routeRefs(grpcRef("web", "b")), left: []string{"GRPCRoute web a"}},
		{name: "another kind", mine: routeRefs(grpcRef("web")), other: routeRefs(httpRef("web")), left: []string{"GRPCRoute web a b"}},
		{name: "another kind, the other way", mine: routeRefs(httpRef("web")), other: routeRefs(grpcRef("web")), left: []string{"HTTPRoute web a b"}},
		{name: "the default kind", mine: routeRefs(httpRef("web")), other: routeRefs(v1alpha1.RouteReference{Name: "web"}), want: all, left: []string{"HTTPRoute web a b"}},
		{name: "one of two rules", mine: routeRefs(grpcRef("web")), other: routeRefs(grpcRef("web", "b")), want: part, left: []string{"GRPCRoute web a"}},
		{name: "one of two routes", mine: routeRefs(grpcRef("web"), httpRef("web")), other: routeRefs(grpcRef("web")), want: part, left: []string{"HTTPRoute web a b"}},
		{name: "a rule of each", mine: routeRefs(grpcRef("web"), httpRef("web")), other: routeRefs(grpcRef("web", "a"), httpRef("web", "b")), want: part, left: []string{"GRPCRoute web b", "HTTPRoute web a"}},
		{name: "one, and one is gone", mine: routeRefs(grpcRef("web"), httpRef("web"), httpRef("gone")), other: routeRefs(grpcRef("web")), want: part, left: []string{"HTTPRoute web a b", "HTTPRoute gone"}},
		{name: "all that are there", mine: routeRefs(grpcRef("web"), httpRef("gone")), other: routeRefs(grpcRef("web")), want: all, left: []string{"GRPCRoute web a b", "HTTPRoute gone"}},
		{name: "an observer", mine: routeRefs(grpcRef("web")), other: routeRefs(grpcRef("web")), mode: v1alpha1.ModeObserve, left: []string{"GRPCRoute web a b"}},
		{name: "a younger one", mine: routeRefs(grpcRef("web")), other: routeRefs(grpcRef("web")), age: -time.Hour, left: []string{"GRPCRoute web a b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mine, other := rolloutOf("mine", 0, tc.mine...), rolloutOf("other", cmp.Or(tc.age, time.Hour), tc.other...)
			other.Spec.Mode = tc.mode
			r := reconcilerWith(t, append(bothRoutes(), mine, other)...)
			obs := observeRoutes(t, r, mine)
			if err := r.disown(t.Context(), mine, &obs); err != nil {
				t.Fatal(err)
			}
			if want := map[string][2]string{"": {}, all: {"other", ""}, part: {"", "other"}}[tc.want]; want != [2]string{obs.Owner, obs.PartOwner} {
				t.Errorf("owner %q, of some %q, want %q", obs.Owner, obs.PartOwner, want)
			}
			var left []string
			for i, o := range obs.Routes {
				text := fmt.Sprintf("%s %s", o.Kind, o.Name)
				for _, rule := range o.Inspection.Rules {
					text += " " + rule.Name
				}
				left = append(left, text)
				if (obs.routes[i] != nil) != o.Found || keyOf(obs.refs[i]) != (routeKey{o.Kind, o.Name}) {
					t.Errorf("route %d is out of step with its object or its reference", i)
				}
			}
			if diff := gocmp.Diff(tc.left, left); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

func routeRefs(refs ...v1alpha1.RouteReference) []v1alpha1.RouteReference { return refs }

// What wakes a rollout: the routes of its kind and name, and the endpoints of its
// Services, wherever they are.
func TestWhoIsWoken(t *testing.T) {
	afar := rolloutOf("afar", 0, grpcRef("web"))
	afar.Spec.Canary.Namespace = "apps"
	r := reconcilerWith(t, rolloutOf("near", 0, httpRef("web")), afar)
	slice := func(namespace, service string) client.Object {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s", Labels: map[string]string{discoveryv1.LabelServiceName: service}}}
	}
	routes := bothRoutes()
	elsewhere := &gatewayv1.GRPCRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "web"}}
	for _, tc := range []struct {
		name string
		got  []v1alpha1.WeightedRollout
		want string
	}{
		{"the HTTPRoute", r.rolloutsOfRoute(v1alpha1.HTTPRouteKind)(t.Context(), routes[0]), "near"},
		{"the GRPCRoute", r.rolloutsOfRoute(v1alpha1.GRPCRouteKind)(t.Context(), routes[1]), "afar"},
		{"a route in another namespace", r.rolloutsOfRoute(v1alpha1.GRPCRouteKind)(t.Context(), elsewhere), ""},
		{"endpoints of both", r.rolloutsOfSlice(t.Context(), slice("shop", "web-stable")), "afar,near"},
		{"endpoints of one", r.rolloutsOfSlice(t.Context(), slice("shop", "web-canary")), "near"},
		{"endpoints in another namespace", r.rolloutsOfSlice(t.Context(), slice("apps", "web-canary")), "afar"},
		{"endpoints of nobody", r.rolloutsOfSlice(t.Context(), slice("apps", "web-stable")), ""},
	} {
		var names []string
		for i := range tc.got {
			req := &tc.got[i]
			names = append(names, req.Name)
			if req.Namespace != "shop" {
				t.Errorf("%s: woken %s/%s", tc.name, req.Namespace, req.Name)
			}
		}
		if got := strings.Join(names, ","); got != tc.want {
			t.Errorf("%s: woken %q, want %q", tc.name, got, tc.want)
		}
	}
}

// A track's endpoints are those in its own namespace.
func TestReadyInAnotherNamespace(t *testing.T) {
	yes, no := true, false
	slice := func(namespace string, ready *bool) client.Object {
		return &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "s", Labels: map[string]string{discoveryv1.LabelServiceName: "web-canary"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}},
			Ports:       []discoveryv1.EndpointPort{{Port: new(int32(8080))}},
		}
	}
	for _, tc := range []struct {
		name       string
		here, afar *bool
		namespace  string
		want       bool
	}{
		{"ready here", &yes, &no, "", true},
		{"not ready here", &no, &yes, "", false},
		{"ready there", &no, &yes, "apps", true},
		{"not ready there", &yes, &no, "apps", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wr := rolloutOf("web", 0)
			wr.Spec.Canary.Namespace = tc.namespace
			r := reconcilerWith(t, slice("shop", tc.here), slice("apps", tc.afar))
			got, err := r.readyPods(t.Context(), pairOf(wr).Canary)
			if err != nil || len(got) > 0 != tc.want {
				t.Errorf("got %v, %v, want a pod: %v", got, err, tc.want)
			}
		})
	}
}

// A GRPCRoute is patched as one, and read again as one after a conflict.
func TestGRPCRouteIsWritten(t *testing.T) {
	wr := rolloutOf("web", 0, grpcRef("web", "b"))
	r := reconcilerWith(t, append(bothRoutes(), wr)...)
	obs := observeRoutes(t, r, wr)
	later := &gatewayv1.GRPCRoute{}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, later); err != nil {
		t.Fatal(err)
	}
	later.Labels = map[string]string{"team": "shop"}
	if err := r.Client.Update(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	obs.Spec, obs.Status = &wr.Spec, &wr.Status
	if err := r.writeRoute(t.Context(), wr, obs, rollout.Decision{Writes: rollout.WriteRelease}, 0, nil); err != nil {
		t.Fatal(err)
	}
	now := &gatewayv1.GRPCRoute{}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, now); err != nil {
		t.Fatal(err)
	}
	want := later.DeepCopy()
	hundred, none := int32(100), int32(0)
	want.Spec.Rules[1].BackendRefs[0].Weight, want.Spec.Rules[1].BackendRefs[1].Weight = &hundred, &none
	if diff := gocmp.Diff(want.Spec, now.Spec); diff != "" || now.Labels["team"] != "shop" {
		t.Errorf("labels %v, spec (-want +got):\n%s", now.Labels, diff)
	}
	if !r.writes.seen(client.ObjectKeyFromObject(wr), now) {
		t.Error("the write was not noted")
	}
	if r.writes.seen(client.ObjectKeyFromObject(wr), later) {
		t.Error("a version before the write counts as fresh")
	}
}
