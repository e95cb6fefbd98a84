package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// recordPatience is how long a lowering waits for its record, before the routes are
// written all the same.
const recordPatience = 500 * time.Millisecond

// record writes the finalizer and the status. recorded is true once the status says what
// was decided. A decision that raises nothing is recorded without the finalizer, too.
func (r *Reconciler) record(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, d rollout.Decision) (recorded bool, err error) {
	finalizer := r.ensureFinalizer(ctx, wr, d)
	if finalizer != nil && (d.Raises || overtaken(finalizer)) {
		return false, finalizer
	}
	if err := r.writeStatus(ctx, wr, obs, d); err != nil {
		return false, errors.Join(err, finalizer)
	}
	r.owed.forget(client.ObjectKeyFromObject(wr))
	return true, finalizer
}

// recordLowering records a decision that lowers. Another writer of the rollout who changes
// nothing that the decision depends on, as its labels, does not keep it from being recorded.
func (r *Reconciler) recordLowering(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, d rollout.Decision) (recorded bool, err error) {
	for read := 0; ; read++ {
		recorded, err = r.record(ctx, wr, obs, d)
		if !overtaken(err) {
			return recorded, err
		}
		live, readErr := r.readLive(ctx, wr)
		switch {
		case apierrors.IsNotFound(readErr), readErr == nil && !sameInput(live, wr, obs):
			return false, err
		case readErr != nil, read == conflictReads:
			// Not a conflict to the caller: there is nothing new to decide on.
			return false, fmt.Errorf("others write it all the time: %v (%v)", err, readErr) //nolint:errorlint // on purpose
		}
		*wr = *live
	}
}

// readLive reads the rollout from the API server. Another one of the same name is not it.
func (r *Reconciler) readLive(ctx context.Context, wr *v1alpha1.WeightedRollout) (*v1alpha1.WeightedRollout, error) {
	live := &v1alpha1.WeightedRollout{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(wr), live); err != nil {
		return nil, fmt.Errorf("read WeightedRollout %s/%s: %w", wr.Namespace, wr.Name, err)
	}
	if live.UID != wr.UID {
		return nil, apierrors.NewNotFound(rolloutResource, wr.Name)
	}
	return live, nil
}

var rolloutResource = v1alpha1.GroupVersion.WithResource("weightedrollouts").GroupResource()

// sameInput reports whether a rollout says all that a decision was based on.
func sameInput(live, wr *v1alpha1.WeightedRollout, obs observation) bool {
	return live.Generation == wr.Generation && live.DeletionTimestamp.IsZero() == wr.DeletionTimestamp.IsZero() &&
		equality.Semantic.DeepEqual(live.Status, obs.stored) &&
		equality.Semantic.DeepEqual(rollout.OrdersFrom(live.Annotations), obs.Orders)
}

// stillIntended returns nil if the rollout, read live, carries the intent that was recorded
// with a decision or, where the decision raises nothing and could not be recorded, what it
// was based on; and if it is not aborted, stopped, deleted or edited since. Else somebody has
// decided since: it is a conflict.
func (r *Reconciler) stillIntended(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, d rollout.Decision) error {
	live, err := r.readLive(ctx, wr)
	if err != nil {
		return err
	}
	is, was := live.Status, d.Status
	recorded := is.Attempt == was.Attempt && is.Outcome == was.Outcome && (is.Pause == nil) == (was.Pause == nil) &&
		equality.Semantic.DeepEqual(is.Share.Desired, was.Share.Desired) && is.Share.ChangedAt.Equal(was.Share.ChangedAt)
	unrecorded := !d.Raises && equality.Semantic.DeepEqual(is, obs.stored)
	same := live.Generation == wr.Generation && live.DeletionTimestamp.IsZero() == wr.DeletionTimestamp.IsZero() &&
		rollout.OrdersFrom(live.Annotations).Abort == obs.Orders.Abort
	if !same || !recorded && !unrecorded {
		return apierrors.NewConflict(rolloutResource, wr.Name, errors.New("it was decided on again in the meantime"))
	}
	return nil
}

// overtaken reports whether a write was refused since the object has changed, or is gone:
// the decision has to be taken again.
func overtaken(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// forGood reports whether a refusal is not one of the moment.
func forGood(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsUnauthorized(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// carryOn does what a decision asks for although it could not be recorded: what lowers is
// written, and that the attempt has ended is kept where it can be. A decision that raises
// nothing stands, and is kept in memory until it is recorded.
func (r *Reconciler) carryOn(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, d rollout.Decision, refused error) error {
	key := client.ObjectKeyFromObject(wr)
	r.Metrics.Unrecorded(key)
	if forGood(refused) {
		obs.Unrecorded = true
		d = rollout.Decide(obs.Observation, r.Clock.Now())
	}
	var mark *route.Mark
	if !d.Raises {
		mark = r.owed.owe(key, wr.UID, obs.stored, d)
		defer r.report(wr, obs.Status, d)
	}
	errs := []error{fmt.Errorf("what was decided cannot be recorded, and only what lowers the share is done: %w", refused)}
	ended := mark != nil && mark.Ended && obs.stored.Attempt == mark.Attempt
	ordered := make(chan error, 1)
	if ended && obs.Orders.Abort < mark.Attempt {
		go func() { ordered <- r.orderAbort(ctx, wr, mark.Attempt) }()
	} else {
		ordered <- nil
	}
	// The order comes first, unless it takes long.
	var err error
	select {
	case err = <-ordered:
		ordered <- err
	case <-time.After(recordPatience):
	}
	errs = append(errs, r.lowerRoutes(ctx, wr, obs, d, mark))
	if ended {
		errs = append(errs, r.markRoutes(ctx, wr, obs, mark, func(o rollout.Route) bool { return o.Found && !d.Lowers(o) }))
	}
	return errors.Join(append(errs, <-ordered)...)
}

// orderAbort writes the abort order for an attempt that is over and cannot be recorded as
// such. It asks for no version: nobody who writes the object keeps it from being written.
func (r *Reconciler) orderAbort(ctx context.Context, wr *v1alpha1.WeightedRollout, attempt int64) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": wr.UID, "annotations": map[string]string{v1alpha1.AbortAnnotation: strconv.FormatInt(attempt, 10)},
	}})
	if err == nil {
		into := &v1alpha1.WeightedRollout{}
		into.Namespace, into.Name = wr.Namespace, wr.Name
		err = r.Client.Patch(ctx, into, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldOwner))
	}
	if err != nil {
		return fmt.Errorf("write the abort order of attempt %d to WeightedRollout %s/%s: %w", attempt, wr.Namespace, wr.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("the attempt has ended and its status cannot be written: it was given the abort order", "attempt", attempt)
	return nil
}

// owedLog keeps what was decided and could not be recorded, by the rollout. Its zero value
// is ready to use.
type owedLog struct {
	mu   sync.Mutex
	owed map[types.NamespacedName]owedStatus
}

type owedStatus struct {
	uid types.UID
	// stored is the status in whose place the owed one is to be written.
	stored, status v1alpha1.WeightedRolloutStatus
	mark           *route.Mark
}

// owe keeps a decision. It returns the mark that goes with what is owed.
func (l *owedLog) owe(key types.NamespacedName, uid types.UID, stored v1alpha1.WeightedRolloutStatus, d rollout.Decision) *route.Mark {
	mark := l.mark(key, uid, &stored, d)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owed == nil {
		l.owed = map[types.NamespacedName]owedStatus{}
	}
	l.owed[key] = owedStatus{uid: uid, stored: *stored.DeepCopy(), status: *d.Status.DeepCopy(), mark: mark}
	return mark
}

// mark is what a decision leaves on the routes as long as it is not stored: its own mark, or
// the owed one if that says more.
func (l *owedLog) mark(key types.NamespacedName, uid types.UID, stored *v1alpha1.WeightedRolloutStatus, d rollout.Decision) *route.Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	mark := d.Mark
	if mark != nil {
		mark = mark.Instead(stored)
	}
	if was, ok := l.owed[key]; ok && was.uid == uid && was.mark != nil && was.mark.Outlasts(mark) {
		return was.mark
	}
	return mark
}

// statusOf returns the status of a rollout that is to be decided on: the owed one, as
// long as nobody has written another one since.
func (l *owedLog) statusOf(wr *v1alpha1.WeightedRollout) v1alpha1.WeightedRolloutStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := client.ObjectKeyFromObject(wr)
	is, ok := l.owed[key]
	if !ok {
		return wr.Status
	}
	if is.uid != wr.UID || !equality.Semantic.DeepEqual(is.stored, wr.Status) {
		delete(l.owed, key)
		return wr.Status
	}
	return *is.status.DeepCopy()
}

func (l *owedLog) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.owed, key)
}
