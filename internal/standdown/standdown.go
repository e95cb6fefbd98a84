// Package standdown leaves the traffic safe before the controller goes: what is under way
// is aborted, so that stable serves everything, or all rollouts are deleted. The controller
// does the work; this asks for it, and waits.
package standdown

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// poll is how often the rollouts are looked at.
const poll = time.Second

// Options say what is to be left.
type Options struct {
	// Namespaces to look at; empty for all.
	Namespaces []string
	// Delete deletes every rollout instead of aborting those under way.
	Delete bool
	// Timeout is how long is waited for the controller.
	Timeout time.Duration
	// Out gets a line about each rollout.
	Out io.Writer
}

// Run asks for it and waits. The error names each rollout that is not safe yet, and what it
// says of itself.
func Run(ctx context.Context, c client.Client, o Options) error {
	all, err := list(ctx, c, o.Namespaces)
	if err != nil {
		return err
	}
	asked := map[client.ObjectKey]bool{}
	for i := range all {
		wr := &all[i]
		key := client.ObjectKeyFromObject(wr)
		switch {
		case o.Delete:
			o.say("%s: deleted", key)
			if err := client.IgnoreNotFound(c.Delete(ctx, wr)); err != nil {
				return fmt.Errorf("delete WeightedRollout %s: %w", key, err)
			}
			asked[key] = true
		case underWay(wr):
			o.say("%s: attempt %d is aborted at %s percent", key, wr.Status.Attempt, share(wr))
			if err := abort(ctx, c, wr); err != nil {
				return err
			}
			asked[key] = true
		}
	}
	o.say("%d of %d rollouts are under way or to be deleted", len(asked), len(all))
	return o.await(ctx, c, asked)
}

// underWay tells whether a rollout gives its canary a share that nobody would watch any
// more. One that is Promoted, or on its way back to an updated stable, is left as it is,
// as a deletion would leave it.
func underWay(wr *v1alpha1.WeightedRollout) bool {
	return wr.Spec.Mode != v1alpha1.ModeObserve && wr.Status.Outcome == v1alpha1.OutcomeInProgress && wr.DeletionTimestamp.IsZero()
}

func share(wr *v1alpha1.WeightedRollout) string {
	if wr.Status.Share.Desired == nil {
		return "0"
	}
	return string(*wr.Status.Share.Desired)
}

func abort(ctx context.Context, c client.Client, wr *v1alpha1.WeightedRollout) error {
	before := wr.DeepCopy()
	metav1.SetMetaDataAnnotation(&wr.ObjectMeta, v1alpha1.AbortAnnotation, strconv.FormatInt(wr.Status.Attempt, 10))
	if err := client.IgnoreNotFound(c.Patch(ctx, wr, client.MergeFrom(before))); err != nil {
		return fmt.Errorf("abort WeightedRollout %s/%s: %w", wr.Namespace, wr.Name, err)
	}
	return nil
}

// await waits until every one of the rollouts is gone, or gives its canary nothing.
func (o Options) await(ctx context.Context, c client.Client, asked map[client.ObjectKey]bool) error {
	var unsafe []string
	var failed error
	err := wait.PollUntilContextTimeout(ctx, poll, o.Timeout, true, func(ctx context.Context) (bool, error) {
		all, err := list(ctx, c, o.Namespaces)
		if err != nil {
			// An API server that is away for a moment is asked again.
			if ctx.Err() == nil {
				failed = err
			}
			return false, nil
		}
		unsafe, failed = nil, nil
		for i := range all {
			if key := client.ObjectKeyFromObject(&all[i]); asked[key] && (o.Delete || !safe(&all[i])) {
				unsafe = append(unsafe, fmt.Sprintf("%s: %s", key, says(&all[i])))
			}
		}
		return len(unsafe) == 0, nil
	})
	switch {
	case err == nil:
		o.say("all traffic is safe")
		return nil
	case failed != nil:
		return failed
	case !wait.Interrupted(err):
		return err
	}
	return errors.New("these rollouts are not safe yet; put right what they say, or see to their routes yourself and uninstall with --no-hooks:\n  " + strings.Join(unsafe, "\n  "))
}

// safe tells whether an aborted rollout has ended, and every gateway has taken that.
func safe(wr *v1alpha1.WeightedRollout) bool {
	return !underWay(wr) && (wr.Status.Outcome != v1alpha1.OutcomeRolledBack || wr.Status.Share.ConfirmedAt != nil)
}

// says is what a rollout says of itself.
func says(wr *v1alpha1.WeightedRollout) string {
	for _, c := range wr.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			return c.Message
		}
	}
	return "it has no status: the controller does not run, or does not look after its namespace"
}

// Finalizers takes the controller's finalizer from every rollout, once the controller is
// gone: whoever deletes one later must not wait for it.
func Finalizers(ctx context.Context, c client.Client, o Options) error {
	all, err := list(ctx, c, o.Namespaces)
	if err != nil {
		return err
	}
	var errs []error
	for i := range all {
		wr := &all[i]
		before := wr.DeepCopy()
		if !controllerutil.RemoveFinalizer(wr, v1alpha1.Finalizer) {
			continue
		}
		o.say("%s/%s: can be deleted without a controller", wr.Namespace, wr.Name)
		if err := client.IgnoreNotFound(c.Patch(ctx, wr, client.MergeFrom(before))); err != nil {
			errs = append(errs, fmt.Errorf("take the finalizer from WeightedRollout %s/%s: %w", wr.Namespace, wr.Name, err))
		}
	}
	return errors.Join(errs...)
}

// list reads the rollouts of the namespaces. Where the kind is gone there are none.
func list(ctx context.Context, c client.Client, namespaces []string) ([]v1alpha1.WeightedRollout, error) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var all []v1alpha1.WeightedRollout
	for _, namespace := range namespaces {
		var some v1alpha1.WeightedRolloutList
		if err := c.List(ctx, &some, client.InNamespace(namespace)); err != nil {
			if gone(err) {
				continue
			}
			return nil, fmt.Errorf("list the WeightedRollouts: %w", err)
		}
		all = append(all, some.Items...)
	}
	return all, nil
}

// gone tells whether the cluster has no WeightedRollouts at all.
func gone(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

func (o Options) say(format string, args ...any) {
	_, _ = fmt.Fprintf(o.Out, format+"\n", args...)
}
