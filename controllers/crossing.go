package controllers

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// indexBackend is the cache's index of routes by the Services that they send to.
const indexBackend = "spec.rules.backendRefs"

// crossing names a rule that sends to one of the rollout's Services and is not one of
// those that it manages; empty if there is none. A gateway counts by Service, so that
// the traffic of such a rule cannot be told from the rollout's.
func (r *Reconciler) crossing(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation) (string, error) {
	pair := pairOf(wr)
	for _, kind := range []v1alpha1.RouteKind{v1alpha1.HTTPRouteKind, v1alpha1.GRPCRouteKind} {
		if r.unserved[kind] {
			continue
		}
		for _, b := range []route.Backend{pair.Stable, pair.Canary} {
			routes, err := r.routesBy(ctx, kind, indexBackend, serviceKey(b))
			if err != nil {
				return "", fmt.Errorf("list the %ss that send to Service %s: %w", kind, serviceKey(b), err)
			}
			for _, o := range routes {
				if i := o.Crossing(pair, managedRules(obs, o)); i >= 0 {
					return fmt.Sprintf("rule %d of %s", i, o), nil
				}
			}
		}
	}
	return "", nil
}

// managedRules are the rules of a route that the rollout manages.
func managedRules(obs observation, o *route.Object) []route.ManagedRule {
	for i, own := range obs.routes {
		if own != nil && own.UID == o.UID {
			return obs.Routes[i].Inspection.Rules
		}
	}
	return nil
}

// routesBy are the routes of a kind that have the value in an index of the cache. They
// share its memory, so they are not to be changed.
func (r *Reconciler) routesBy(ctx context.Context, kind v1alpha1.RouteKind, index, value string) ([]*route.Object, error) {
	var objects []*route.Object
	match := client.MatchingFields{index: value}
	if kind == v1alpha1.GRPCRouteKind {
		var list gatewayv1.GRPCRouteList
		if err := r.Client.List(ctx, &list, match, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		for i := range list.Items {
			objects = append(objects, route.FromGRPCRoute(&list.Items[i]))
		}
		return objects, nil
	}
	var list gatewayv1.HTTPRouteList
	if err := r.Client.List(ctx, &list, match, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range list.Items {
		objects = append(objects, route.FromHTTPRoute(&list.Items[i]))
	}
	return objects, nil
}

// backendsOf is the value of the index: every Service that a route sends to.
func backendsOf(o client.Object) []string {
	var services []string
	for _, b := range shownRoute(o).Backends() {
		services = append(services, serviceKey(b))
	}
	return services
}

// shownRoute shows a route of either kind; of anything else, an empty one.
func shownRoute(o client.Object) *route.Object {
	switch r := o.(type) {
	case *gatewayv1.HTTPRoute:
		return route.FromHTTPRoute(r)
	case *gatewayv1.GRPCRoute:
		return route.FromGRPCRoute(r)
	}
	return &route.Object{}
}
