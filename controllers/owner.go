package controllers

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// olderOwner returns the name of a rollout that manages one of our rules and comes
// before us, by age and then by name; empty if the rules are ours. The order does
// not depend on who was reconciled when.
func (r *Reconciler) olderOwner(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation) (string, error) {
	for i, ref := range wr.Spec.Routes {
		if obs.routes[i] == nil {
			continue
		}
		key := keyOf(ref)
		var others v1alpha1.WeightedRolloutList
		if err := r.Client.List(ctx, &others, client.InNamespace(wr.Namespace), client.MatchingFields{indexRoute: key.String()}); err != nil {
			return "", fmt.Errorf("list the rollouts of %s %s/%s: %w", key.kind, wr.Namespace, key.name, err)
		}
		for j := range others.Items {
			other := &others.Items[j]
			if other.UID == wr.UID || other.Spec.Mode == v1alpha1.ModeObserve || !before(other, wr) {
				continue
			}
			if overlap(obs.Routes[i].Inspection, inspectFor(other, obs, i)) {
				return other.Name, nil
			}
		}
	}
	return "", nil
}

func before(a, b *v1alpha1.WeightedRollout) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// inspectFor looks at the i-th observed route through another rollout's eyes.
func inspectFor(other *v1alpha1.WeightedRollout, obs observation, i int) route.Inspection {
	if other.Spec.Stable == nil || other.Spec.Canary == nil {
		return route.Inspection{}
	}
	for _, ref := range other.Spec.Routes {
		if keyOf(ref) == (routeKey{obs.Routes[i].Kind, obs.Routes[i].Name}) {
			return route.Inspect(obs.routes[i], ref.RuleNames, pairOf(other))
		}
	}
	return route.Inspection{}
}

// overlap tells whether two rollouts manage the same rule.
func overlap(a, b route.Inspection) bool {
	for _, x := range a.Rules {
		for _, y := range b.Rules {
			if x.Index == y.Index {
				return true
			}
		}
	}
	return false
}
