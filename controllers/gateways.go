package controllers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// indexGateway is the cache's index of routes by the Gateways that they name.
const indexGateway = "spec.parentRefs"

// controllersFlag names the controllers where Gateways and GatewayClasses cannot be read.
const controllersFlag = "--gateway-controllers"

// readable says what of the gateways the controller may read: found out once, at the
// start. Nothing is asked of a cache that would wait for a right.
type readable struct{ gateways, classes bool }

// findReadable tries to list Gateways and GatewayClasses. Without the right, or where the
// cluster does not serve them, they are left alone.
func (r *Reconciler) findReadable(ctx context.Context) (err error) {
	namespaces := r.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	r.readable.gateways = true
	for _, namespace := range namespaces {
		if r.readable.gateways, err = r.mayList(ctx, &gatewayv1.GatewayList{}, "Gateways", namespace); err != nil || !r.readable.gateways {
			return err
		}
	}
	r.readable.classes, err = r.mayList(ctx, &gatewayv1.GatewayClassList{}, "GatewayClasses", metav1.NamespaceAll)
	return err
}

func (r *Reconciler) mayList(ctx context.Context, list client.ObjectList, what, namespace string) (bool, error) {
	err := r.Live.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		ctrl.Log.Info("cannot read "+what+", so that "+controllersFlag+" has to say whose confirmation of a route counts",
			"namespace", namespace, "reason", err.Error(), "controllers", r.GatewayControllers)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find out whether %s may be read: %w", what, err)
	}
	return true, nil
}

// accepted reads what the gateways that serve a route say of it.
func (r *Reconciler) accepted(ctx context.Context, o *route.Object) (route.Acceptance, error) {
	servers := make([]route.Server, len(o.ParentRefs))
	for i, ref := range o.ParentRefs {
		key, ok := route.GatewayOf(ref, o.Namespace)
		if !ok {
			continue
		}
		var err error
		if servers[i], err = r.serverOf(ctx, key); err != nil {
			return route.Acceptance{}, err
		}
	}
	return route.Accepted(o, r.Confirm, servers), nil
}

// serverOf says who serves a Gateway.
func (r *Reconciler) serverOf(ctx context.Context, key types.NamespacedName) (route.Server, error) {
	if !r.readable.gateways || !r.watches(key.Namespace) {
		return r.serverByFlag(key), nil
	}
	gateway := &gatewayv1.Gateway{}
	if err := r.Client.Get(ctx, key, gateway); apierrors.IsNotFound(err) {
		return route.Server{Problem: fmt.Sprintf("Gateway %s does not exist: create it, or take it out of the route's parentRefs", key)}, nil
	} else if err != nil {
		return route.Server{}, fmt.Errorf("read Gateway %s: %w", key, err)
	}
	if !r.readable.classes {
		return r.serverByFlag(key), nil
	}
	class := &gatewayv1.GatewayClass{}
	name := string(gateway.Spec.GatewayClassName)
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, class); apierrors.IsNotFound(err) {
		return route.Server{Problem: fmt.Sprintf("Gateway %s has the GatewayClass %q, which does not exist: install the gateway that it stands for, or correct the Gateway's gatewayClassName", key, name)}, nil
	} else if err != nil {
		return route.Server{}, fmt.Errorf("read GatewayClass %s: %w", name, err)
	}
	return route.Server{Controllers: []gatewayv1.GatewayController{class.Spec.ControllerName}, Source: fmt.Sprintf("GatewayClass %q", name)}, nil
}

// serverByFlag says who serves a Gateway of which that cannot be read.
func (r *Reconciler) serverByFlag(key types.NamespacedName) route.Server {
	if len(r.GatewayControllers) > 0 {
		return route.Server{Controllers: r.GatewayControllers, Source: controllersFlag}
	}
	return route.Server{Doubt: fmt.Sprintf("the controller cannot read who serves Gateway %s, so any report on it counts: name the gateway's controller in %s", key, controllersFlag)}
}

// watchGateways wakes the rollouts whose routes name a Gateway that comes, goes, or gets
// another class, or whose class changes.
func (r *Reconciler) watchGateways(b *builder.Builder) *builder.Builder {
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	if r.readable.gateways {
		b = b.Watches(&gatewayv1.Gateway{}, r.relatedEvents(r.rolloutsOfGateway, neverLowers), changed)
	}
	if r.readable.classes {
		b = b.Watches(&gatewayv1.GatewayClass{}, r.relatedEvents(r.rolloutsOfClass, neverLowers), changed)
	}
	return b
}

func (r *Reconciler) rolloutsOfGateway(ctx context.Context, o client.Object) []v1alpha1.WeightedRollout {
	var all []v1alpha1.WeightedRollout
	for _, kind := range []v1alpha1.RouteKind{v1alpha1.HTTPRouteKind, v1alpha1.GRPCRouteKind} {
		if r.unserved[kind] {
			continue
		}
		routes, err := r.routesBy(ctx, kind, indexGateway, client.ObjectKeyFromObject(o).String())
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot find the rollouts to wake", "gateway", client.ObjectKeyFromObject(o))
		}
		for _, named := range routes {
			all = append(all, r.rolloutsToWake(ctx, named.Namespace, indexRoute, routeKey{kind, named.Name}.String())...)
		}
	}
	return all
}

// rolloutsOfClass looks at every Gateway in the cache: classes hardly ever change.
func (r *Reconciler) rolloutsOfClass(ctx context.Context, o client.Object) []v1alpha1.WeightedRollout {
	var gateways gatewayv1.GatewayList
	if err := r.Client.List(ctx, &gateways); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot find the rollouts to wake", "gatewayClass", o.GetName())
	}
	var all []v1alpha1.WeightedRollout
	for i := range gateways.Items {
		if string(gateways.Items[i].Spec.GatewayClassName) == o.GetName() {
			all = append(all, r.rolloutsOfGateway(ctx, &gateways.Items[i])...)
		}
	}
	return all
}

// gatewaysOf is the value of the index: every Gateway that a route names.
func gatewaysOf(o client.Object) []string {
	shown := shownRoute(o)
	var gateways []string
	for _, ref := range shown.ParentRefs {
		if key, ok := route.GatewayOf(ref, shown.Namespace); ok {
			gateways = append(gateways, key.String())
		}
	}
	return gateways
}
