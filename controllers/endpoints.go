package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// observeEndpoints says what is behind the two Services.
func (r *Reconciler) observeEndpoints(ctx context.Context, wr *v1alpha1.WeightedRollout, obs *observation) (err error) {
	pair := pairOf(wr)
	if obs.StablePods, err = r.readyPods(ctx, pair.Stable); err != nil {
		return err
	}
	if obs.CanaryPods, err = r.readyPods(ctx, pair.Canary); err != nil {
		return err
	}
	obs.StableReady, obs.CanaryReady = len(obs.StablePods) > 0, len(obs.CanaryPods) > 0
	obs.StableElsewhere, obs.CanaryElsewhere = pair.Stable.Namespace != wr.Namespace, pair.Canary.Namespace != wr.Namespace
	return nil
}

// readyPods names what is behind the ready endpoints of a Service, each pod once: by its
// uid, or by the address of what is no pod. One that is being shut down does not count, nor
// do those of a slice without ports: nothing can be sent there, as when no container has
// the name of the Service's targetPort.
func (r *Reconciler) readyPods(ctx context.Context, b route.Backend) ([]string, error) {
	if !r.watches(b.Namespace) {
		// The spec's problem is told elsewhere.
		return nil, nil
	}
	var list discoveryv1.EndpointSliceList
	if err := r.Client.List(ctx, &list, client.InNamespace(b.Namespace), client.MatchingFields{indexSliceService: b.Service}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the EndpointSlices of Service %s/%s: %w", b.Namespace, b.Service, err)
	}
	var pods []string
	nameless := map[discoveryv1.AddressType][]string{}
	for _, s := range list.Items {
		if len(s.Ports) == 0 {
			continue
		}
		for _, e := range s.Endpoints {
			switch pod := podOf(e); {
			case !ready(e):
			case pod != "":
				pods = append(pods, pod)
			case len(e.Addresses) > 0:
				nameless[s.AddressType] = append(nameless[s.AddressType], e.Addresses[0])
			}
		}
	}
	// What is no pod has an address of each family, and counts once.
	pods = append(pods, slices.MaxFunc([][]string{nameless[discoveryv1.AddressTypeIPv4], nameless[discoveryv1.AddressTypeIPv6], nameless[discoveryv1.AddressTypeFQDN]},
		func(a, b []string) int { return len(a) - len(b) })...)
	slices.Sort(pods)
	return slices.Compact(pods), nil
}

// ready reports whether an endpoint takes requests, and goes on to.
func ready(e discoveryv1.Endpoint) bool {
	terminating := e.Conditions.Terminating != nil && *e.Conditions.Terminating
	return (e.Conditions.Ready == nil || *e.Conditions.Ready) && !terminating
}

func podOf(e discoveryv1.Endpoint) string {
	if e.TargetRef == nil {
		return ""
	}
	return cmp.Or(string(e.TargetRef.UID), e.TargetRef.Name)
}

// watches tells whether the controller was started to look at a namespace.
func (r *Reconciler) watches(namespace string) bool {
	return len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, namespace)
}

// namespaceProblem says which track is in a namespace that the controller was not
// started to look at; nil if none is.
func (r *Reconciler) namespaceProblem(wr *v1alpha1.WeightedRollout) *route.Problem {
	pair := pairOf(wr)
	for _, track := range []struct {
		field string
		route.Backend
	}{{"spec.stable.namespace", pair.Stable}, {"spec.canary.namespace", pair.Canary}} {
		if !r.watches(track.Namespace) {
			return &route.Problem{
				Reason:  v1alpha1.ReasonInvalidSpec,
				Message: fmt.Sprintf("%s is %q, and the controller does not look there: add it to --namespaces", track.field, track.Namespace),
			}
		}
	}
	return nil
}
