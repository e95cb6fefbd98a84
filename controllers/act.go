package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
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

// act carries out a decision. What raises is recorded first: status, then the routes, and
// last the finalizer, so that a crash in between leaves a state from which the next pass
// does the same again. What lowers waits for nothing: where the record is refused, or takes
// long, the routes are written all the same. People are told once the decision stands.
func (r *Reconciler) act(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, d rollout.Decision) error {
	lowers := slices.ContainsFunc(obs.Routes, d.Lowers)
	if err := r.takeBack(ctx, wr, obs, d, lowers); err != nil {
		// Not recorded before it is done: nobody would think of it again.
		return errors.Join(err, r.lowerRoutes(ctx, wr, obs, d, d.Mark))
	}
	recorded, lowered, err := r.recordOrLower(ctx, wr, obs, d, lowers)
	switch {
	case err == nil:
	case !wr.DeletionTimestamp.IsZero() && !overtaken(err):
		// Nobody will read the record of an object that goes.
		ctrl.LoggerFrom(ctx).Error(err, "the status of a rollout that is being deleted cannot be written")
		r.owed.owe(client.ObjectKeyFromObject(wr), wr.UID, obs.stored, d)
	case recorded:
		defer r.report(wr, obs.Status, d)
		return errors.Join(err, r.lowerRoutes(ctx, wr, obs, d, nil))
	case overtaken(err):
		return err
	case d.Raises && !lowers:
		r.Metrics.Unrecorded(client.ObjectKeyFromObject(wr))
		return err
	default:
		return r.carryOn(ctx, wr, obs, d, err)
	}
	// Once it is done, and refused or not: it is recorded.
	defer r.report(wr, obs.Status, d)
	if lowered {
		// What was written early is read before the rest is.
		return r.writeWorkloads(ctx, wr, obs, d)
	}
	if err := errors.Join(r.writeRoutes(ctx, wr, obs, d), r.writeWorkloads(ctx, wr, obs, d)); err != nil {
		return err
	}
	if d.Release {
		return r.removeFinalizer(ctx, wr)
	}
	return nil
}

// recordOrLower records a decision. One that lowers does not wait long for that: lowered is
// true if the routes were written before the answer came.
func (r *Reconciler) recordOrLower(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, d rollout.Decision, lowers bool) (recorded, lowered bool, err error) {
	if !lowers {
		recorded, err = r.record(ctx, wr, obs, d)
		return recorded, false, err
	}
	written := wr.DeepCopy()
	answer := make(chan error, 1)
	go func() {
		var err error
		recorded, err = r.recordLowering(ctx, written, obs, d)
		answer <- err
	}()
	select {
	case err = <-answer:
	case <-time.After(recordPatience):
		ctrl.LoggerFrom(ctx).Info("the API server takes its time to store the status: the routes are lowered first")
		mark := r.owed.mark(client.ObjectKeyFromObject(wr), wr.UID, &obs.stored, d)
		if err := r.lowerRoutes(ctx, wr, obs, d, mark); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "lower the share before the status is written")
		}
		err, lowered = <-answer, true
		if overtaken(err) && mark != nil {
			// It was decided on something that has changed, and may not stand.
			_ = r.markRoutes(ctx, wr, obs, mark.Plain(), d.Lowers)
		}
	}
	if err == nil {
		*wr = *written
	}
	return recorded, lowered, err
}

// takeBack writes to the routes whose raise by an earlier decision may still be under way,
// from this controller or from one that was stopped meanwhile and has lost its lease: its
// write meets a conflict then. Nothing that is to be lowered waits long for it.
func (r *Reconciler) takeBack(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, d rollout.Decision, lowers bool) error {
	if d.Mark == nil {
		return nil
	}
	if lowers {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, recordPatience)
		defer cancel()
	}
	err := r.markRoutes(ctx, wr, obs, d.Mark.Plain(), d.TakesBack)
	if forGood(err) {
		ctrl.LoggerFrom(ctx).Error(err, "a raise that was taken back cannot be marked on its route")
		return nil
	}
	return err
}

// markRoutes leaves a mark on the routes that are picked, and changes nothing else in them.
func (r *Reconciler) markRoutes(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, mark *route.Mark, picked func(rollout.Route) bool) error {
	var errs []error
	for i, o := range obs.Routes {
		if picked(o) {
			errs = append(errs, r.markRoute(ctx, wr, obs, mark, i))
		}
	}
	return errors.Join(errs...)
}

func (r *Reconciler) markRoute(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, mark *route.Mark, i int) error {
	at, o := obs.routes[i], obs.Routes[i]
	for read := 0; ; read++ {
		patch, err := o.Inspection.Change(at, route.Change{Owner: wr.Name, UID: wr.UID, Mark: mark})
		if err == nil && patch != nil {
			err = r.patchRoute(ctx, wr, o, patch)
		}
		if !apierrors.IsConflict(err) || read == conflictReads {
			return client.IgnoreNotFound(err)
		}
		// The other one may have seen what this one has not.
		if at, err = getRoute(ctx, r.Live, wr.Namespace, routeKey{o.Kind, o.Name}); err != nil {
			return client.IgnoreNotFound(err)
		}
		if at.UID != o.UID {
			return nil
		}
		o = r.observeRoute(wr, obs.refs[i], at)
	}
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
func (r *Reconciler) writeStatus(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, d rollout.Decision) error {
	if equality.Semantic.DeepEqual(obs.stored, d.Status) {
		return nil
	}
	before := wr.DeepCopy()
	before.Status = obs.stored
	wr.Status = *d.Status.DeepCopy()
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
	return r.eachRoute(ctx, wr, obs, d, nil, func(o rollout.Route) bool { return o.Found })
}

// lowerRoutes writes the routes that a decision takes traffic off, and leaves its mark.
func (r *Reconciler) lowerRoutes(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, d rollout.Decision, mark *route.Mark) error {
	return r.eachRoute(ctx, wr, obs, d, mark, d.Lowers)
}

// eachRoute writes those routes that are picked: one after another, and those that are
// lowered at the same time, so that none of them waits for another.
func (r *Reconciler) eachRoute(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, d rollout.Decision, mark *route.Mark, picked func(rollout.Route) bool) error {
	errs := make([]error, len(obs.Routes))
	write := func(i int) {
		o := obs.Routes[i]
		err := r.writeRoute(ctx, wr, obs, d, i, mark)
		r.writeErrors.set(client.ObjectKeyFromObject(wr), routeKey{o.Kind, o.Name}, err)
		if err != nil && (d.Writes != rollout.WriteForget && !d.Release || !gone(err)) {
			errs[i] = fmt.Errorf("write %s %s/%s: %w", o.Kind, wr.Namespace, o.Name, err)
		}
	}
	var all sync.WaitGroup
	var rest []int
	for i, o := range obs.Routes {
		switch {
		case !picked(o):
		case len(obs.Routes) > 1 && d.Lowers(o):
			all.Go(func() { write(i) })
		default:
			rest = append(rest, i)
		}
	}
	for _, i := range rest {
		write(i)
	}
	all.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// gone reports whether a route that is only to be forgotten is out of our reach.
// A policy that refuses the write may say Forbidden or Invalid.
func gone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
}

func (r *Reconciler) writeRoute(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, d rollout.Decision, i int, mark *route.Mark) error {
	at, o := obs.routes[i], obs.Routes[i]
	weightsOnly := false
	for read := 0; ; {
		change, wanted := changeFor(o, d, wr, mark)
		if !wanted {
			return nil
		}
		change.WeightsOnly = weightsOnly
		patch, err := o.Inspection.Change(at, change)
		if err != nil || patch == nil {
			return err
		}
		err = r.patchRoute(ctx, wr, o, patch)
		switch {
		case err == nil:
			return nil
		case forGood(err) && d.Lowers(o) && !weightsOnly:
			// Our annotation may be what is too much: the weights are what matters.
			weightsOnly = true
			continue
		case !apierrors.IsConflict(err) || read == conflictReads:
			return err
		}
		read++
		if at, o, err = r.readAgain(ctx, wr, obs, d, i); err != nil {
			return err
		}
	}
}

func (r *Reconciler) patchRoute(ctx context.Context, wr *v1alpha1.WeightedRollout, o rollout.Route, patch []byte) error {
	written, _ := newRoute(o.Kind)
	written.SetNamespace(wr.Namespace)
	written.SetName(o.Name)
	err := r.Client.Patch(ctx, written, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldOwner))
	r.Metrics.RouteWrite(client.ObjectKeyFromObject(wr), routeResult(err))
	if err == nil {
		r.writes.wrote(client.ObjectKeyFromObject(wr), written)
	}
	return err
}

// readAgain reads a route live after a conflict. What gives the canary less is written
// whatever the route says by now. What gives it more, or stable on the return, is written
// only if the route still says what the decision was based on, and nobody has decided since,
// which the rollout, read after it, tells: else that is a conflict too. Which of its rules
// are another rollout's has to be found out again in any case.
func (r *Reconciler) readAgain(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, d rollout.Decision, i int) (*route.Object, rollout.Route, error) {
	was := obs.Routes[i]
	key := routeKey{was.Kind, was.Name}
	now, err := getRoute(ctx, r.Live, wr.Namespace, key)
	if err != nil {
		return nil, was, err
	}
	is := r.observeRoute(wr, obs.refs[i], now)
	climbs := d.Climbs(is)
	if was.Partly || now.UID != was.UID || climbs && !sameWeights(was, is) {
		return nil, is, apierrors.NewConflict(key.resource(), was.Name, errors.New("the weights were changed in the meantime"))
	}
	if climbs {
		if err := r.stillIntended(ctx, wr, obs, d); err != nil {
			return nil, is, err
		}
	}
	return now, is, nil
}

// sameWeights reports whether two readings of a route say the same of its managed rules.
func sameWeights(was, is rollout.Route) bool {
	wasLow, wasHigh := was.Inspection.Observed()
	isLow, isHigh := is.Inspection.Observed()
	return wasLow == isLow && wasHigh == isHigh &&
		slices.EqualFunc(was.Inspection.Rules, is.Inspection.Rules, func(a, b route.ManagedRule) bool { return a.Name == b.Name })
}

// changeFor says what a decision makes of a route, if anything.
func changeFor(o rollout.Route, d rollout.Decision, wr *v1alpha1.WeightedRollout, mark *route.Mark) (c route.Change, wanted bool) {
	c = route.Change{Owner: wr.Name, UID: wr.UID}
	switch {
	case d.Writes == rollout.WriteForget:
		c.Release = true
	case d.Writes == rollout.WriteRelease:
		c.Release, c.Share = true, &d.Share
	case d.NeedsWrite(o):
		c.Share, c.Mark = &d.Share, mark
	default:
		return c, false
	}
	return c, true
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
func (r *Reconciler) report(wr *v1alpha1.WeightedRollout, before *v1alpha1.WeightedRolloutStatus, d rollout.Decision) {
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
	if t, ok := notify.Between(client.ObjectKeyFromObject(wr), *before, d.Status, r.Clock.Now()); ok {
		r.Announce(t)
	}
}
