package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/metrics"
	"github.com/weightedrollout/weightedrollout/internal/notify"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// conflictReads is how often a route is read live and patched again, in one pass,
// after somebody else's write came in between.
const conflictReads = 3

// act carries out a decision, the intent first: status, then the routes, and last
// the finalizer. A crash in between leaves a state from which the next pass does
// the same again. recorded is true once the intent is in status: from then on the
// decision is taken, and people are to be told.
func (r *Reconciler) act(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, d rollout.Decision) (recorded bool, err error) {
	if err := r.ensureFinalizer(ctx, wr, d); err != nil {
		return false, err
	}
	if err := r.writeStatus(ctx, wr, d); err != nil {
		return false, err
	}
	if err := errors.Join(r.writeRoutes(ctx, wr, obs, d), r.writeWorkloads(ctx, wr, obs, d)); err != nil {
		return true, err
	}
	if d.Release {
		return true, r.removeFinalizer(ctx, wr)
	}
	return true, nil
}

// ensureFinalizer makes sure, before the first route is written, that a deletion
// waits for us.
func (r *Reconciler) ensureFinalizer(ctx context.Context, wr *v1alpha1.WeightedRollout, d rollout.Decision) error {
	if controllerutil.ContainsFinalizer(wr, v1alpha1.Finalizer) || !wr.DeletionTimestamp.IsZero() || d.Writes == rollout.WriteNone {
		return nil
	}
	before := wr.DeepCopy()
	controllerutil.AddFinalizer(wr, v1alpha1.Finalizer)
	return r.patchRollout(ctx, wr, before, "add the finalizer to")
}

func (r *Reconciler) removeFinalizer(ctx context.Context, wr *v1alpha1.WeightedRollout) error {
	if wr.DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(wr, v1alpha1.Finalizer) {
		return nil
	}
	before := wr.DeepCopy()
	controllerutil.RemoveFinalizer(wr, v1alpha1.Finalizer)
	return client.IgnoreNotFound(r.patchRollout(ctx, wr, before, "remove the finalizer from"))
}

// patchRollout writes the difference, if the object is still the one that was read.
func (r *Reconciler) patchRollout(ctx context.Context, wr, before *v1alpha1.WeightedRollout, what string) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, wr, patch, client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("%s WeightedRollout %s/%s: %w", what, wr.Namespace, wr.Name, err)
	}
	r.writes.wrote(client.ObjectKeyFromObject(wr), wr)
	return nil
}

// writeStatus records the intent, if it differs from what is recorded. The write
// carries the resourceVersion that was read, so that a stale leader cannot
// overwrite a newer intent.
func (r *Reconciler) writeStatus(ctx context.Context, wr *v1alpha1.WeightedRollout, d rollout.Decision) error {
	if equality.Semantic.DeepEqual(wr.Status, d.Status) {
		return nil
	}
	before := wr.DeepCopy()
	wr.Status = d.Status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, wr, patch, client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("write the status of WeightedRollout %s/%s: %w", wr.Namespace, wr.Name, err)
	}
	r.writes.wrote(client.ObjectKeyFromObject(wr), wr)
	return nil
}

// writeRoutes brings the routes to the decided share. One that cannot be written
// does not keep another from being lowered.
func (r *Reconciler) writeRoutes(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, d rollout.Decision) error {
	var errs []error
	for i, o := range obs.Routes {
		if !o.Found {
			continue
		}
		err := r.writeRoute(ctx, wr, obs, d, i)
		r.writeErrors.set(client.ObjectKeyFromObject(wr), routeKey{o.Kind, o.Name}, err)
		if err != nil && (d.Writes != rollout.WriteForget || !gone(err)) {
			errs = append(errs, fmt.Errorf("write %s %s/%s: %w", o.Kind, wr.Namespace, o.Name, err))
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// gone tells whether a route that is only to be forgotten is out of our reach.
// A policy that refuses the write may say Forbidden or Invalid.
func gone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
}

func (r *Reconciler) writeRoute(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, d rollout.Decision, i int) error {
	at, o := obs.routes[i], obs.Routes[i]
	patch, err := patchFor(at, o, d, wr.Name)
	for read := 0; err == nil && patch != nil; read++ {
		written, _ := newRoute(o.Kind)
		written.SetNamespace(wr.Namespace)
		written.SetName(o.Name)
		err = r.Client.Patch(ctx, written, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldOwner))
		r.Metrics.RouteWrite(client.ObjectKeyFromObject(wr), routeResult(err))
		if err == nil {
			r.writes.wrote(client.ObjectKeyFromObject(wr), written)
			return nil
		}
		if !apierrors.IsConflict(err) || read == conflictReads {
			return err
		}
		if at, o, err = r.readAgain(ctx, wr, obs, i); err == nil {
			patch, err = patchFor(at, o, d, wr.Name)
		}
	}
	return err
}

// readAgain reads a route live after a conflict. If it no longer says what the
// decision was based on, that is a conflict too: decide again. Which of its rules are
// another rollout's has to be found out anew in any case.
func (r *Reconciler) readAgain(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, i int) (*route.Object, rollout.Route, error) {
	was := obs.Routes[i]
	key := routeKey{was.Kind, was.Name}
	now, err := getRoute(ctx, r.Live, wr.Namespace, key)
	if err != nil {
		return nil, was, err
	}
	is := r.observeRoute(wr, obs.refs[i], now)
	wasLow, wasHigh := was.Inspection.Observed()
	isLow, isHigh := is.Inspection.Observed()
	same := !was.Partly && now.UID == was.UID && wasLow == isLow && wasHigh == isHigh &&
		slices.EqualFunc(was.Inspection.Rules, is.Inspection.Rules, func(a, b route.ManagedRule) bool { return a.Name == b.Name })
	if !same {
		return nil, is, apierrors.NewConflict(key.resource(), was.Name, errors.New("the weights were changed in the meantime"))
	}
	return now, is, nil
}

// patchFor computes the patch for one route, or nil if it needs none.
func patchFor(at *route.Object, o rollout.Route, d rollout.Decision, owner string) ([]byte, error) {
	switch {
	case d.Writes == rollout.WriteForget:
		return o.Inspection.Release(at, nil, owner)
	case d.Writes == rollout.WriteRelease:
		return o.Inspection.Release(at, &d.Share, owner)
	case d.NeedsWrite(o):
		return o.Inspection.Patch(at, d.Share, owner)
	}
	return nil, nil //nolint:nilnil // no patch is a normal answer
}

// routeResult says how a write to a route ended.
func routeResult(err error) string {
	switch {
	case err == nil:
		return metrics.RouteWritten
	case apierrors.IsConflict(err):
		return metrics.RouteConflict
	}
	return metrics.RouteFailed
}

// report tells people what was done, once it is done.
func (r *Reconciler) report(wr *v1alpha1.WeightedRollout, before v1alpha1.WeightedRolloutStatus, d rollout.Decision) {
	for _, e := range d.Events {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(wr, nil, kind, e.Reason, "Reconcile", "%s", e.Message)
		r.Metrics.Transition(client.ObjectKeyFromObject(wr), e.Reason)
	}
	if r.Announce == nil {
		return
	}
	if t, ok := notify.Between(client.ObjectKeyFromObject(wr), before, d.Status, r.Clock.Now()); ok {
		r.Announce(t)
	}
}
