package controllers

import (
	"cmp"
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

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
	// no such route. refs are those of the spec that they were read by.
	routes []*route.Object
	refs   []v1alpha1.RouteReference
	// stored is the status as the API server has it. Observation.Status differs from it
	// where what was decided could not be recorded yet.
	stored v1alpha1.WeightedRolloutStatus
	// tracks are the workloads as they were read.
	tracks tracks
	// awaitsScale is true while the scale of a workload is being read.
	awaitsScale bool
}

// observe reads everything that a decision needs, from the cache. fresh is false
// if the cache has not yet seen our own last write to one of the objects.
func (r *Reconciler) observe(ctx context.Context, wr *v1alpha1.WeightedRollout) (obs observation, fresh bool, err error) {
	key := client.ObjectKeyFromObject(wr)
	if !r.writes.seen(key, wr) {
		return obs, false, nil
	}
	obs.Observation = rollout.Observation{
		Name: wr.Name, Generation: wr.Generation, Spec: &wr.Spec, Status: wr.Status.DeepCopy(),
		Deleting: !wr.DeletionTimestamp.IsZero(), Orders: rollout.OrdersFrom(wr.Annotations),
	}
	for _, ref := range wr.Spec.Routes {
		o, err := r.readRoute(ctx, wr.Namespace, keyOf(ref))
		if err != nil {
			return obs, false, err
		}
		if o != nil && !r.writes.seen(key, o) {
			return obs, false, nil
		}
		obs.routes, obs.refs = append(obs.routes, o), append(obs.refs, ref)
		observed := r.observeRoute(wr, ref, o)
		if o != nil {
			if observed.Acceptance, err = r.accepted(ctx, o); err != nil {
				return obs, false, err
			}
		}
		obs.Routes = append(obs.Routes, observed)
	}
	if err := r.disown(ctx, wr, &obs); err != nil {
		return obs, false, err
	}
	if err := r.observeEndpoints(ctx, wr, &obs); err != nil {
		return obs, false, err
	}
	if fresh, err := r.observeWorkloads(ctx, wr, &obs); err != nil || !fresh {
		return obs, false, err
	}
	if obs.Crossing, err = r.crossing(ctx, wr, obs); err != nil {
		return obs, false, err
	}
	obs.SpecProblem = r.specProblem(wr)
	r.observeHealth(wr, &obs)
	return obs, true, nil
}

// observeRoute says all of a route but what its gateways say.
func (r *Reconciler) observeRoute(wr *v1alpha1.WeightedRollout, ref v1alpha1.RouteReference, o *route.Object) rollout.Route {
	key := keyOf(ref)
	observed := rollout.Route{Kind: key.kind, Name: key.name}
	if o == nil {
		return observed
	}
	observed.Found, observed.UID, observed.Generation = true, o.UID, o.Generation
	observed.Inspection = route.Inspect(o, ref.RuleNames, pairOf(wr))
	observed.Writer = lastWriter(o)
	observed.Mark = route.MarkOf(o, wr.UID)
	observed.WriteError = r.writeErrors.of(client.ObjectKeyFromObject(wr), key)
	observed.Overtaken = r.writeErrors.isOvertaken(client.ObjectKeyFromObject(wr), key)
	return observed
}

func pairOf(wr *v1alpha1.WeightedRollout) route.Pair {
	return route.Pair{Stable: backendOf(wr.Namespace, &wr.Spec.Stable.Track), Canary: backendOf(wr.Namespace, &wr.Spec.Canary.Track)}
}

// backendOf is a track of a rollout in the given namespace.
func backendOf(namespace string, t *v1alpha1.Track) route.Backend {
	return route.Backend{Namespace: cmp.Or(t.Namespace, namespace), Service: t.Service, Port: t.Port}
}

// lastWriter names the field manager, other than us, that wrote the route's spec
// last, or is empty.
func lastWriter(o *route.Object) string {
	if last := lastWrite(o.ManagedFields); last != nil {
		return last.Manager
	}
	return ""
}

// specProblem says what in the spec cannot be carried out, as far as health and the
// kinds of the routes go.
func (r *Reconciler) specProblem(wr *v1alpha1.WeightedRollout) *route.Problem {
	if _, err := health.ConfigFrom(wr.Spec.Health, wr.Spec.OnUnhealthy.For); err != nil {
		return &route.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()}
	}
	if p := r.Evidence.Problem(wr.Spec.Health); p != nil {
		return &route.Problem{Reason: p.Reason, Message: p.Message}
	}
	if p := r.namespaceProblem(wr); p != nil {
		return p
	}
	return r.routeProblem(wr)
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
		Stable: wr.Spec.Stable.Track, Canary: wr.Spec.Canary.Track, Health: wr.Spec.Health, For: wr.Spec.OnUnhealthy.For,
		Subject: rollout.Subject(&wr.Status), ConfirmedAt: rollout.MeasuredFrom(&wr.Status),
		Unopposed: rollout.Unopposed(&wr.Status), CanaryShare: rollout.CanaryShare(&wr.Status), ComparedFrom: rollout.ComparedFrom(&wr.Spec, &wr.Status), Compared: rollout.Compared(&wr.Status),
	})
	obs.Verdict = rollout.Admit(r.Evidence.Verdict(key), &wr.Status)
}
