package controllers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// intercepted puts these functions between the Reconciler and its client.
func (r *Reconciler) intercepted(t *testing.T, funcs interceptor.Funcs) *Reconciler {
	t.Helper()
	c, ok := r.Client.(client.WithWatch)
	if !ok {
		t.Fatalf("%T cannot be intercepted", r.Client)
	}
	r.Client = interceptor.NewClient(c, funcs)
	return r
}

// refTo is a backend in a namespace, or in the route's own where that is empty.
func refTo(namespace gatewayv1.Namespace, service string, weight *int32) gatewayv1.BackendRef {
	ref := backendRef(service)
	ref.Weight = weight
	if namespace != "" {
		ref.Namespace = &namespace
	}
	return ref
}

// sending is a route with one rule for each backend.
func sending(kind v1alpha1.RouteKind, namespace, name string, refs ...gatewayv1.BackendRef) client.Object {
	o := metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(string(kind) + namespace + name)}
	if kind == v1alpha1.GRPCRouteKind {
		r := &gatewayv1.GRPCRoute{ObjectMeta: o}
		for _, ref := range refs {
			r.Spec.Rules = append(r.Spec.Rules, gatewayv1.GRPCRouteRule{BackendRefs: []gatewayv1.GRPCBackendRef{{BackendRef: ref}}})
		}
		return r
	}
	r := &gatewayv1.HTTPRoute{ObjectMeta: o}
	for _, ref := range refs {
		r.Spec.Rules = append(r.Spec.Rules, gatewayv1.HTTPRouteRule{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: ref}}})
	}
	return r
}

// A rule of any route that sends to either track is found, wherever the route is.
func TestCrossingIsFound(t *testing.T) {
	const httpRoute, grpcRoute = v1alpha1.HTTPRouteKind, v1alpha1.GRPCRouteKind
	both := []v1alpha1.RouteReference{httpRef("web"), grpcRef("web")}
	for _, tc := range []struct {
		name   string
		routes []v1alpha1.RouteReference
		others []client.Object
		canary string // its namespace
		want   string
	}{
		{"none", both, nil, "", ""},
		{"to the canary", both, []client.Object{sending(httpRoute, "shop", "x", refTo("", "other", nil), refTo("", "web-canary", nil))}, "", "rule 1 of HTTPRoute shop/x"},
		{"to stable", both, []client.Object{sending(httpRoute, "shop", "x", refTo("", "web-stable", nil))}, "", "rule 0 of HTTPRoute shop/x"},
		{"a GRPCRoute to stable", both, []client.Object{sending(grpcRoute, "shop", "x", refTo("", "web-stable", nil))}, "", "rule 0 of GRPCRoute shop/x"},
		{"from another namespace to stable", both, []client.Object{sending(httpRoute, "apps", "x", refTo("shop", "web-stable", nil))}, "", "rule 0 of HTTPRoute apps/x"},
		{"from another namespace to the canary", both, []client.Object{sending(grpcRoute, "apps", "x", refTo("shop", "web-canary", nil))}, "", "rule 0 of GRPCRoute apps/x"},
		{"to Services of the same names elsewhere", both, []client.Object{sending(httpRoute, "apps", "x", refTo("", "web-canary", nil), refTo("", "web-stable", nil))}, "", ""},
		{"without a weight", both, []client.Object{sending(httpRoute, "apps", "x", refTo("shop", "web-stable", new(int32)))}, "", ""},
		{"to a canary elsewhere", []v1alpha1.RouteReference{httpRef("gone")}, []client.Object{sending(httpRoute, "infra", "x", refTo("apps", "web-canary", nil))}, "apps", "rule 0 of HTTPRoute infra/x"},
		{"a rule that is not named", []v1alpha1.RouteReference{httpRef("web", "b"), grpcRef("web")}, nil, "", "rule 0 of HTTPRoute shop/web"},
		{"the same rule of the other kind", []v1alpha1.RouteReference{httpRef("web")}, nil, "", "rule 0 of GRPCRoute shop/web"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wr := rolloutOf("web", 0, tc.routes...)
			wr.Spec.Canary.Namespace = tc.canary
			objects := tc.others
			if tc.canary == "" {
				objects = append(bothRoutes(), tc.others...)
			}
			r := reconcilerWith(t, objects...)
			got, err := r.crossing(t.Context(), wr, observeRoutes(t, r, wr))
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// A kind that the cluster does not serve is not asked for, and routes that cannot be
// listed are not taken for none.
func TestCrossingWithoutAnAnswer(t *testing.T) {
	for _, tc := range []struct {
		unserved bool
		refuses  v1alpha1.RouteKind
		says     string
	}{
		{true, v1alpha1.GRPCRouteKind, ""},
		{false, v1alpha1.GRPCRouteKind, "list the GRPCRoutes that send to Service shop/web-stable: no answer"},
		{true, v1alpha1.HTTPRouteKind, "list the HTTPRoutes that send to Service shop/web-stable: no answer"},
	} {
		r := reconcilerWith(t, bothRoutes()...)
		wr := rolloutOf("web", 0, httpRef("web"))
		obs := observeRoutes(t, r, wr)
		r.unserved = map[v1alpha1.RouteKind]bool{v1alpha1.GRPCRouteKind: tc.unserved}
		r.intercepted(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			gvk, err := c.GroupVersionKindFor(list)
			if err != nil || strings.TrimSuffix(gvk.Kind, "List") == string(tc.refuses) {
				return errors.Join(err, errors.New("no answer"))
			}
			return c.List(ctx, list, opts...)
		}})
		got, err := r.crossing(t.Context(), wr, obs)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if got != "" || said != tc.says {
			t.Errorf("unserved %v, %s does not answer: %q, %q, want the error %q", tc.unserved, tc.refuses, got, said, tc.says)
		}
	}
}

// The index has each Service that a route sends to, with its namespace.
func TestBackendsOfRoute(t *testing.T) {
	for _, kind := range []v1alpha1.RouteKind{v1alpha1.HTTPRouteKind, v1alpha1.GRPCRouteKind} {
		got := backendsOf(sending(kind, "shop", "x", refTo("", "a", nil), refTo("apps", "a", new(int32)), refTo("shop", "a", nil)))
		if want := []string{"shop/a", "apps/a"}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
	if got := backendsOf(&gatewayv1.Gateway{}); got != nil {
		t.Errorf("no route: %v", got)
	}
}
