package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// ownership knows, for each route, which rollout comes first in each of its rules. It is
// found out once for each version of a route, and again once a rollout of the route makes
// other claims, not for each rollout that looks at it. Its zero value is ready to use.
type ownership struct {
	mu     sync.Mutex
	routes map[string]claimed
}

// claimed is what the rollouts of one version of a route claim.
type claimed struct {
	uid             types.UID
	resourceVersion string
	// first is the rollout that comes first, by the index of the rule. Only its metadata
	// is filled in.
	first map[int]*v1alpha1.WeightedRollout
}

// forget makes the next look at these routes find out who comes first there.
func (o *ownership) forget(wr *v1alpha1.WeightedRollout) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range routesOf(wr) {
		delete(o.routes, wr.Namespace+"/"+name)
	}
}

// disown takes the rules out of an observation that a rollout manages which comes before
// this one, by age and then by name. The order does not depend on who was reconciled when.
func (r *Reconciler) disown(ctx context.Context, wr *v1alpha1.WeightedRollout, obs *observation) error {
	owner, left := "", 0
	rest := make([]route.Inspection, len(obs.refs))
	for i := range obs.refs {
		rest[i] = obs.Routes[i].Inspection
		first, err := r.firstClaims(ctx, *obs, i)
		if err != nil {
			return err
		}
		var oldest *v1alpha1.WeightedRollout
		rest[i].Rules = slices.DeleteFunc(slices.Clone(rest[i].Rules), func(m route.ManagedRule) bool {
			other := first[m.Index]
			if other == nil || other.UID == wr.UID || !before(other, wr) {
				return false
			}
			if oldest == nil || before(other, oldest) {
				oldest = other
			}
			return true
		})
		if owner == "" && oldest != nil {
			owner = oldest.Name
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

// firstClaims returns which rollout comes first in each rule of the i-th observed route.
func (r *Reconciler) firstClaims(ctx context.Context, obs observation, i int) (map[int]*v1alpha1.WeightedRollout, error) {
	o := obs.routes[i]
	if o == nil {
		return nil, nil
	}
	key := keyOf(obs.refs[i])
	name := o.Namespace + "/" + key.String()
	// The lock is held while the cache is read: a change that comes in between is told of
	// afterwards, and forgets what was found.
	r.owners.mu.Lock()
	defer r.owners.mu.Unlock()
	if known, ok := r.owners.routes[name]; ok && known.uid == o.UID && known.resourceVersion == o.ResourceVersion {
		return known.first, nil
	}
	rollouts, err := r.rolloutsBy(ctx, o.Namespace, indexRoute, key.String())
	if err != nil {
		return nil, fmt.Errorf("list the rollouts of %s %s/%s: %w", key.kind, o.Namespace, key.name, err)
	}
	found := claimed{uid: o.UID, resourceVersion: o.ResourceVersion, first: map[int]*v1alpha1.WeightedRollout{}}
	for j := range rollouts {
		claimant := &v1alpha1.WeightedRollout{ObjectMeta: identity(&rollouts[j].ObjectMeta)}
		for _, rule := range claimsOf(&rollouts[j], o, key) {
			if first := found.first[rule.Index]; first == nil || before(claimant, first) {
				found.first[rule.Index] = claimant
			}
		}
	}
	if r.owners.routes == nil {
		r.owners.routes = map[string]claimed{}
	}
	r.owners.routes[name] = found
	return found.first, nil
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

// claimsOf are the rules of a route that a rollout would manage if it were the only one.
func claimsOf(wr *v1alpha1.WeightedRollout, o *route.Object, key routeKey) []route.ManagedRule {
	if wr.Spec.Mode == v1alpha1.ModeObserve || wr.Spec.Stable == nil || wr.Spec.Canary == nil {
		return nil
	}
	for _, ref := range wr.Spec.Routes {
		if keyOf(ref) == key {
			return route.Inspect(o, ref.RuleNames, pairOf(wr)).Rules
		}
	}
	return nil
}

// sameClaims reports whether two versions of a rollout make the same claims on routes.
func sameClaims(a, b *v1alpha1.WeightedRollout) bool {
	if a.Spec.Mode != b.Spec.Mode || !equality.Semantic.DeepEqual(a.Spec.Routes, b.Spec.Routes) {
		return false
	}
	whole := func(wr *v1alpha1.WeightedRollout) bool { return wr.Spec.Stable != nil && wr.Spec.Canary != nil }
	return whole(a) == whole(b) && (!whole(a) || pairOf(a) == pairOf(b))
}

// wakeSharers wakes the rollouts that may have to give way to a rollout, or may take over
// from it: the younger ones on its routes, and only if its claims have changed. was or is
// is nil where there was, or is, none.
func (r *Reconciler) wakeSharers(ctx context.Context, q requestQueue, was, is client.Object) {
	old, _ := was.(*v1alpha1.WeightedRollout)
	now, _ := is.(*v1alpha1.WeightedRollout)
	if old != nil && now != nil && old.UID == now.UID && sameClaims(old, now) {
		return
	}
	woken := map[string]bool{}
	for _, wr := range []*v1alpha1.WeightedRollout{old, now} {
		if wr == nil {
			continue
		}
		r.owners.forget(wr)
		for _, name := range routesOf(wr) {
			others, err := r.rolloutsBy(ctx, wr.Namespace, indexRoute, name)
			if err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "cannot find the rollouts that share a route", "route", name)
				continue
			}
			for i := range others {
				if other := &others[i]; other.UID != wr.UID && before(wr, other) && !woken[other.Name] {
					woken[other.Name] = true
					r.enqueue(q, priorityDue, requestFor(other))
				}
			}
		}
	}
}
