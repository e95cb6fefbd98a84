// Package standdown leaves the traffic safe before the controller goes: what is under way
// is aborted, so that stable serves everything, or all rollouts are deleted. The controller
// does the work; this asks for it, and waits.
package standdown

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// Options say what is to be left.
type Options struct {
	// Namespaces to look at; empty for all.
	Namespaces []string
	// Delete deletes every rollout instead of aborting those under way.
	Delete bool
	// Timeout is how long all of it may take, however slow the API server and the
	// controller are.
	Timeout time.Duration
	// Out gets a line about each rollout.
	Out io.Writer
}

// Run asks for it and waits. It looks at every rollout again and again, so that what begins
// meanwhile is seen, and that it makes no difference whether it is run twice. The error names
// each rollout that is not safe yet, and says why.
func Run(ctx context.Context, c client.Client, o Options) error {
	w := watch{
		Options: o, client: c, visit: o.abort,
		done: "no rollout is under way, and every gateway has taken that",
		left: "these rollouts are not safe yet; put right what they say, or see to their routes yourself and uninstall with --no-hooks",
	}
	if o.Delete {
		w.visit, w.done = o.delete, "no rollout is left"
	}
	return w.run(ctx)
}

// Finalizers takes the controller's finalizer from every rollout, once the controller is
// gone: whoever deletes one later must not wait for it. It goes on until none has it, since
// a rollout may come, or a controller may still run, meanwhile.
func Finalizers(ctx context.Context, c client.Client, o Options) error {
	w := watch{
		Options: o, client: c, visit: o.letGo,
		done: "no rollout has the controller's finalizer",
		left: "these rollouts still have the finalizer " + v1alpha1.Finalizer + ", which a controller that runs puts there again; end it, and repeat this",
	}
	return w.run(ctx)
}

// abort has a rollout aborted that is under way, and says why it is not safe yet. The line
// is for people, and empty if nothing was done.
func (o Options) abort(ctx context.Context, c client.Client, wr *v1alpha1.WeightedRollout) (reason, line string, err error) {
	if !wr.DeletionTimestamp.IsZero() {
		if !controllerutil.ContainsFinalizer(wr, v1alpha1.Finalizer) {
			// The controller has made its routes safe, and let go of it.
			return "", "", nil
		}
		return "it is being deleted: " + says(wr), "", nil
	}
	reason = hazard(wr)
	if !underWay(wr) || wr.Annotations[v1alpha1.AbortAnnotation] == attempt(wr) {
		return reason, "", nil
	}
	line = fmt.Sprintf("attempt %s is aborted at %s percent", attempt(wr), share(wr))
	before := wr.DeepCopy()
	metav1.SetMetaDataAnnotation(&wr.ObjectMeta, v1alpha1.AbortAnnotation, attempt(wr))
	switch err := c.Patch(ctx, wr, client.MergeFrom(before)); {
	case apierrors.IsNotFound(err):
		return "", "", nil
	case err != nil:
		return "", "", fmt.Errorf("it cannot be aborted: %w", err)
	}
	return reason, line, nil
}

// delete deletes a rollout, unless that would leave traffic on a canary that nobody wants
// there.
func (o Options) delete(ctx context.Context, c client.Client, wr *v1alpha1.WeightedRollout) (reason, line string, err error) {
	if !wr.DeletionTimestamp.IsZero() {
		if controllerutil.ContainsFinalizer(wr, v1alpha1.Finalizer) {
			return "it is being deleted: " + says(wr), "", nil
		}
		return "it is being deleted, and the controller has let go of it; what holds it are the finalizers of others: " + strings.Join(wr.Finalizers, ", "), "", nil
	}
	if reason := leaves(wr); reason != "" {
		return reason, "", nil
	}
	if err := client.IgnoreNotFound(c.Delete(ctx, wr)); err != nil {
		return "", "", fmt.Errorf("it cannot be deleted: %w", err)
	}
	return "it is to be deleted", "deleted", nil
}

// letGo takes the controller's finalizer from a rollout. The others stay, those that came
// since the rollout was read as well: then the patch is refused, and it is read again.
func (o Options) letGo(ctx context.Context, c client.Client, wr *v1alpha1.WeightedRollout) (reason, line string, err error) {
	before := wr.DeepCopy()
	if !controllerutil.RemoveFinalizer(wr, v1alpha1.Finalizer) {
		return "", "", nil
	}
	line = "can be deleted without a controller"
	if !wr.DeletionTimestamp.IsZero() && share(wr) != "0" {
		line = fmt.Sprintf("its deletion ends without the controller, and its routes keep the canary at %s percent", share(wr))
	}
	switch err := c.Patch(ctx, wr, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); {
	case apierrors.IsNotFound(err):
		return "", "", nil
	case apierrors.IsConflict(err):
		return "it was changed at the same moment", "", nil
	case err != nil:
		return "", "", fmt.Errorf("the finalizer cannot be taken from it: %w", err)
	}
	return "it had the finalizer until now", line, nil
}

// withoutRollouts are those of the namespaces that have none.
func withoutRollouts(namespaces []string, all []v1alpha1.WeightedRollout) []string {
	return slices.DeleteFunc(slices.Clone(namespaces), func(namespace string) bool {
		return slices.ContainsFunc(all, func(wr v1alpha1.WeightedRollout) bool { return wr.Namespace == namespace })
	})
}
