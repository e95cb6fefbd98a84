package controllers

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// routeKey names a route within a namespace.
type routeKey struct {
	kind v1alpha1.RouteKind
	name string
}

func keyOf(ref v1alpha1.RouteReference) routeKey {
	return routeKey{kind: cmp.Or(ref.Kind, v1alpha1.HTTPRouteKind), name: ref.Name}
}

// String is the route's value in the cache's index: "GRPCRoute/web".
func (k routeKey) String() string { return string(k.kind) + "/" + k.name }

// resource is the route's kind as the API server names it in errors.
func (k routeKey) resource() schema.GroupResource {
	return gatewayv1.Resource(strings.ToLower(string(k.kind)) + "s")
}

// newRoute returns an empty route of a kind to be read into, and what shows it
// afterwards. This is all that is done for each kind by itself.
func newRoute(kind v1alpha1.RouteKind) (into client.Object, show func() *route.Object) {
	if kind == v1alpha1.GRPCRouteKind {
		r := &gatewayv1.GRPCRoute{}
		return r, func() *route.Object { return route.FromGRPCRoute(r) }
	}
	r := &gatewayv1.HTTPRoute{}
	return r, func() *route.Object { return route.FromHTTPRoute(r) }
}

// readRoute reads a route; nil if there is none, or if the cluster did not serve its
// kind when the controller started: nothing reads such a kind from the cache.
func (r *Reconciler) readRoute(ctx context.Context, namespace string, key routeKey) (*route.Object, error) {
	if r.unserved[key.kind] {
		return nil, nil //nolint:nilnil // no such route is a normal answer
	}
	o, err := getRoute(ctx, r.Client, namespace, key)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no such route is a normal answer
	}
	return o, err
}

func getRoute(ctx context.Context, from client.Reader, namespace string, key routeKey) (*route.Object, error) {
	into, show := newRoute(key.kind)
	if err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: key.name}, into); err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", key.kind, namespace, key.name, err)
	}
	return show(), nil
}

// findServed asks which kinds of routes the cluster serves. Without HTTPRoutes the
// controller has nothing to do, and waiting for them says so; GRPCRoutes are younger,
// and may be missing.
func (r *Reconciler) findServed(mapper meta.RESTMapper) error {
	kind := schema.GroupKind{Group: gatewayv1.GroupName, Kind: string(v1alpha1.GRPCRouteKind)}
	_, err := mapper.RESTMapping(kind, gatewayv1.GroupVersion.Version)
	if err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("ask whether the cluster serves %s: %w", kind.Kind, err)
	}
	if err != nil {
		r.unserved = map[v1alpha1.RouteKind]bool{v1alpha1.GRPCRouteKind: true}
		ctrl.Log.Info("the cluster does not serve GRPCRoute, so none can be managed", "apiVersion", gatewayv1.GroupVersion.String())
	}
	return nil
}

// routeProblem says which route of the spec cannot be read, and why; nil if all can.
func (r *Reconciler) routeProblem(wr *v1alpha1.WeightedRollout) *route.Problem {
	for _, ref := range wr.Spec.Routes {
		if kind := keyOf(ref).kind; r.unserved[kind] {
			return &route.Problem{
				Reason:  v1alpha1.ReasonRouteMissing,
				Message: fmt.Sprintf("the cluster does not serve %s: install the Gateway API's standard channel, and restart the controller", kind),
			}
		}
	}
	return nil
}
