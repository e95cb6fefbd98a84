package main

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// followRoute records every state of the route's weights. A watch misses none.
func followRoute(ctx context.Context, c client.WithWatch, s scenario, seen *observation) error {
	return follow(ctx, c, &gatewayv1.HTTPRouteList{}, s.objectKey(), func(version uint64, object client.Object) error {
		route, ok := object.(*gatewayv1.HTTPRoute)
		if !ok {
			return fmt.Errorf("the watch gave a %T", object)
		}
		seen.routeSeen(version, pairWeights(route, s))
		return nil
	})
}

// followRollout records every state of the rollout.
func followRollout(ctx context.Context, c client.WithWatch, s scenario, seen *observation) error {
	return follow(ctx, c, &v1alpha1.WeightedRolloutList{}, s.objectKey(), func(version uint64, object client.Object) error {
		rollout, ok := object.(*v1alpha1.WeightedRollout)
		if !ok {
			return fmt.Errorf("the watch gave a %T", object)
		}
		seen.rolloutSeen(version, rollout)
		return nil
	})
}

func pairWeights(route *gatewayv1.HTTPRoute, s scenario) [2]int32 {
	var weights [2]int32
	for _, rule := range route.Spec.Rules {
		for _, ref := range rule.BackendRefs {
			for _, t := range tracks {
				if string(ref.Name) == s.service(t) && ref.Port != nil && *ref.Port == testbed.BackendPort {
					weights[t] = 1 // what a missing weight means
					if ref.Weight != nil {
						weights[t] = *ref.Weight
					}
				}
			}
		}
	}
	return weights
}

// follow watches one object until ctx ends. It starts from the present state, and
// goes on where it was when the watch breaks off, so that nothing is missed.
func follow(ctx context.Context, c client.WithWatch, list client.ObjectList, key client.ObjectKey, each func(uint64, client.Object) error) error {
	since, failures := "", 0
	for ctx.Err() == nil {
		before := since
		err := followOnce(ctx, c, list, key, &since, each)
		if since != before {
			failures = 0
		}
		if err != nil {
			failures++
		}
		// Too old a version cannot be gone on from: what lay between is unknown.
		lost := apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
		if ctx.Err() == nil && (lost || failures == toleratedFailures) {
			return fmt.Errorf("watching %T of %s: %w", list, key, err)
		}
		// Whether the pause is cut short is for the loop to see.
		_ = pause(ctx, gaugeInterval)
	}
	return nil
}

func followOnce(ctx context.Context, c client.WithWatch, list client.ObjectList, key client.ObjectKey, since *string, each func(uint64, client.Object) error) error {
	w, err := c.Watch(ctx, list,
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: *since}},
		client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name})
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		object, ok := event.Object.(client.Object)
		if !ok || event.Type == watch.Deleted {
			return fmt.Errorf("%s is gone", key)
		}
		*since = object.GetResourceVersion()
		version, err := strconv.ParseUint(*since, 10, 64)
		if err != nil {
			return fmt.Errorf("reading a resource version: %w", err)
		}
		if err := each(version, object); err != nil {
			return err
		}
	}
	return nil
}
