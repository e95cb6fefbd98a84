package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// disown takes the rules out of an observation that a rollout manages which comes before
// this one, by age and then by name. The order does not depend on who was reconciled when.
func (r *Reconciler) disown(ctx context.Context, wr *v1alpha1.WeightedRollout, obs *observation) error {
	owner, left := "", 0
	rest := make([]route.Inspection, len(obs.refs))
	for i := range obs.refs {
		rest[i] = obs.Routes[i].Inspection
		others, err := r.olderRollouts(ctx, wr, *obs, i)
		if err != nil {
			return err
		}
		for j := range others {
			theirs := inspectFor(&others[j], *obs, i)
			without := rest[i].Without(theirs)
			if owner == "" && len(without.Rules) < len(rest[i].Rules) {
				owner = others[j].Name
			}
			rest[i] = without
		}
		left += len(rest[i].Rules)
	}
	switch {
	case owner == "":
	case left == 0:
		obs.Owner = owner
	default:
		obs.PartOwner = owner
		obs.keep(rest)
	}
	return nil
}

// olderRollouts are those that have to do with the i-th observed route, may write it, and
// come before this one.
func (r *Reconciler) olderRollouts(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, i int) ([]v1alpha1.WeightedRollout, error) {
	if obs.routes[i] == nil {
		return nil, nil
	}
	key := keyOf(obs.refs[i])
	var others v1alpha1.WeightedRolloutList
	if err := r.Client.List(ctx, &others, client.InNamespace(wr.Namespace), client.MatchingFields{indexRoute: key.String()}); err != nil {
		return nil, fmt.Errorf("list the rollouts of %s %s/%s: %w", key.kind, wr.Namespace, key.name, err)
	}
	return slices.DeleteFunc(others.Items, func(other v1alpha1.WeightedRollout) bool {
		return other.UID == wr.UID || other.Spec.Mode == v1alpha1.ModeObserve || !before(&other, wr)
	}), nil
}

// keep leaves an observation with the rules that are the rollout's own. A route of which
// all were taken goes; one that has a problem, or is not there, stays to be told of.
func (o *observation) keep(rest []route.Inspection) {
	var kept observation
	var taken []string
	for i, r := range o.Routes {
		if len(rest[i].Rules) < len(r.Inspection.Rules) {
			taken = append(taken, fmt.Sprintf("%s %q", r.Kind, r.Name))
		}
		if len(r.Inspection.Rules) > 0 && len(rest[i].Rules) == 0 {
			continue
		}
		r.Partly = len(rest[i].Rules) < len(r.Inspection.Rules)
		r.Inspection = rest[i]
		kept.Routes = append(kept.Routes, r)
		kept.routes, kept.refs = append(kept.routes, o.routes[i]), append(kept.refs, o.refs[i])
	}
	o.Routes, o.routes, o.refs = kept.Routes, kept.routes, kept.refs
	o.Taken = strings.Join(taken, " and ")
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
