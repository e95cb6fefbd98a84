package controllers

import (
	"context"
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/telemetry"
)

// observation is what Decide sees, and the routes as they were read for it.
type observation struct {
	rollout.Observation
	// routes has an entry for each entry of Observation.Routes; nil where there is
	// no such route.
	routes []*gatewayv1.HTTPRoute
}

// observe reads everything that a decision needs, from the cache. fresh is false
// if the cache has not yet seen our own last write to one of the objects.
func (r *Reconciler) observe(ctx context.Context, wr *v1alpha1.WeightedRollout) (obs observation, fresh bool, err error) {
	key := client.ObjectKeyFromObject(wr)
	if !r.writes.seen(key, wr) {
		return obs, false, nil
	}
	obs.Observation = rollout.Observation{
		Name: wr.Name, Generation: wr.Generation, Spec: &wr.Spec, Status: &wr.Status,
		Deleting: !wr.DeletionTimestamp.IsZero(), Orders: rollout.OrdersFrom(wr.Annotations),
	}
	for _, ref := range wr.Spec.Routes {
		hr, err := r.readRoute(ctx, wr.Namespace, ref.Name)
		if err != nil {
			return obs, false, err
		}
		if hr != nil && !r.writes.seen(key, hr) {
			return obs, false, nil
		}
		obs.routes = append(obs.routes, hr)
		obs.Routes = append(obs.Routes, r.observeRoute(key, wr, ref, hr))
	}
	if obs.Owner, err = r.olderOwner(ctx, wr, obs); err != nil {
		return obs, false, err
	}
	if obs.StableReady, err = r.ready(ctx, wr.Namespace, wr.Spec.Stable.Service); err != nil {
		return obs, false, err
	}
	if obs.CanaryReady, err = r.ready(ctx, wr.Namespace, wr.Spec.Canary.Service); err != nil {
		return obs, false, err
	}
	obs.SpecProblem = r.specProblem(wr)
	r.observeHealth(wr, &obs)
	return obs, true, nil
}

func (r *Reconciler) readRoute(ctx context.Context, namespace, name string) (*gatewayv1.HTTPRoute, error) {
	hr := &gatewayv1.HTTPRoute{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, hr); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // no such route is a normal answer
		}
		return nil, fmt.Errorf("read HTTPRoute %s/%s: %w", namespace, name, err)
	}
	return hr, nil
}

func (r *Reconciler) observeRoute(key types.NamespacedName, wr *v1alpha1.WeightedRollout, ref v1alpha1.RouteReference, hr *gatewayv1.HTTPRoute) rollout.Route {
	o := rollout.Route{Kind: v1alpha1.HTTPRouteKind, Name: ref.Name}
	if hr == nil {
		return o
	}
	o.Found, o.UID, o.Generation = true, hr.UID, hr.Generation
	o.Inspection = route.Inspect(hr, ref.RuleNames, pairOf(wr))
	o.Acceptance = route.Accepted(hr, r.Confirm)
	o.Writer = lastWriter(hr)
	o.WriteError = r.writeErrors.of(key, ref.Name)
	return o
}

func pairOf(wr *v1alpha1.WeightedRollout) route.Pair {
	return route.Pair{Stable: backendOf(wr.Namespace, wr.Spec.Stable), Canary: backendOf(wr.Namespace, wr.Spec.Canary)}
}

func backendOf(namespace string, t *v1alpha1.Track) route.Backend {
	return route.Backend{Namespace: namespace, Service: t.Service, Port: t.Port}
}

// lastWriter names the field manager, other than us, that wrote the route's spec
// last, or is empty.
func lastWriter(hr *gatewayv1.HTTPRoute) string {
	var name string
	var last metav1.Time
	for _, f := range hr.ManagedFields {
		if f.Manager == FieldOwner || f.Subresource != "" || f.Time == nil || f.Time.Before(&last) {
			continue
		}
		name, last = f.Manager, *f.Time
	}
	return name
}

// ready tells whether a Service has a ready endpoint. One that is being shut down
// does not count.
func (r *Reconciler) ready(ctx context.Context, namespace, service string) (bool, error) {
	var slices discoveryv1.EndpointSliceList
	if err := r.Client.List(ctx, &slices, client.InNamespace(namespace), client.MatchingFields{indexSliceService: service}); err != nil {
		return false, fmt.Errorf("list the EndpointSlices of Service %s/%s: %w", namespace, service, err)
	}
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			ready := e.Conditions.Ready == nil || *e.Conditions.Ready
			terminating := e.Conditions.Terminating != nil && *e.Conditions.Terminating
			if ready && !terminating {
				return true, nil
			}
		}
	}
	return false, nil
}

// specProblem says what in the spec cannot be carried out, as far as health goes.
func (r *Reconciler) specProblem(wr *v1alpha1.WeightedRollout) *route.Problem {
	if _, err := health.ConfigFrom(wr.Spec.Health, wr.Spec.OnUnhealthy.For); err != nil {
		return &route.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()}
	}
	if p := r.Evidence.Problem(wr.Spec.Health); p != nil {
		return &route.Problem{Reason: p.Reason, Message: p.Message}
	}
	return nil
}

// observeHealth says what to measure, and reads the verdict.
func (r *Reconciler) observeHealth(wr *v1alpha1.WeightedRollout, obs *observation) {
	key := client.ObjectKeyFromObject(wr)
	if obs.Owner != "" || obs.Deleting {
		r.Evidence.Forget(key)
		return
	}
	r.Evidence.Track(telemetry.Target{
		Key: key, UID: wr.UID, Attempt: wr.Status.Attempt, Route: wr.Spec.Routes[0].Name,
		Stable: *wr.Spec.Stable, Canary: *wr.Spec.Canary, Health: wr.Spec.Health, For: wr.Spec.OnUnhealthy.For,
		Subject: rollout.Subject(&wr.Status), ConfirmedAt: rollout.MeasuredFrom(&wr.Status),
		Unopposed: rollout.Unopposed(&wr.Status), Cold: rollout.Cold(&wr.Status), Compared: rollout.Compared(&wr.Status),
	})
	obs.Verdict = rollout.Admit(r.Evidence.Verdict(key), &wr.Status)
}
