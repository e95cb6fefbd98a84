// Package standdown leaves the traffic safe before the controller goes: what is under way
// is aborted, so that stable serves everything, or all rollouts are deleted. The controller
// does the work; this asks for it, and waits.
package standdown

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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

const (
	// poll is how often the rollouts are looked at, and looks how often in a row they must
	// be found to be safe.
	poll  = time.Second
	looks = 2
)

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

// Run asks for it and waits. It looks at every rollout again and again, so that what begins
// meanwhile is seen, and that it makes no difference whether it is run twice. The error names
// each rollout that is not safe yet, and says why.
func Run(ctx context.Context, c client.Client, o Options) error {
	all, err := list(ctx, c, o.Namespaces)
	if err != nil {
		return err
	}
	for _, namespace := range o.Namespaces {
		if !slices.ContainsFunc(all, func(wr v1alpha1.WeightedRollout) bool { return wr.Namespace == namespace }) {
			o.say("there is no rollout in the namespace %s", namespace)
		}
	}
	o.say("%d rollouts are looked at", len(all))
	return o.await(ctx, c)
}

// await waits until every rollout is safe, and still is at the next look. An API server that
// is away for a moment is asked again.
func (o Options) await(ctx context.Context, c client.Client) error {
	var unsafe []string
	var failed error
	calm := 0
	err := wait.PollUntilContextTimeout(ctx, poll, o.Timeout, true, func(ctx context.Context) (bool, error) {
		all, err := list(ctx, c, o.Namespaces)
		if err == nil {
			unsafe, err = o.ask(ctx, c, all)
		}
		if err != nil {
			if ctx.Err() == nil {
				failed = err
			}
			return false, nil
		}
		failed = nil
		if calm++; len(unsafe) > 0 {
			calm = 0
		}
		return calm == looks, nil
	})
	switch {
	case err == nil:
		o.say("no rollout is under way, and every gateway has taken that")
		return nil
	case failed != nil:
		return failed
	case !wait.Interrupted(err):
		return err
	}
	return errors.New("these rollouts are not safe yet; put right what they say, or see to their routes yourself and uninstall with --no-hooks:\n  " + strings.Join(unsafe, "\n  "))
}

// ask asks for what is still to be asked for, and says what is not safe yet.
func (o Options) ask(ctx context.Context, c client.Client, all []v1alpha1.WeightedRollout) (unsafe []string, err error) {
	for i := range all {
		wr := &all[i]
		key := client.ObjectKeyFromObject(wr)
		reason := hazard(wr)
		switch {
		case !wr.DeletionTimestamp.IsZero():
			reason = "it is being deleted: " + says(wr)
		case o.Delete:
			reason = "it is to be deleted"
			o.say("%s: deleted", key)
			if err := client.IgnoreNotFound(c.Delete(ctx, wr)); err != nil {
				return nil, fmt.Errorf("delete WeightedRollout %s: %w", key, err)
			}
		case underWay(wr) && wr.Annotations[v1alpha1.AbortAnnotation] != attempt(wr):
			o.say("%s: attempt %s is aborted at %s percent", key, attempt(wr), share(wr))
			if err := abort(ctx, c, wr); err != nil {
				return nil, err
			}
		}
		if reason != "" {
			unsafe = append(unsafe, fmt.Sprintf("%s: %s", key, reason))
		}
	}
	return unsafe, nil
}

// underWay tells whether an abort would give stable all traffic. A rollout that is Promoted,
// or on its way back to an updated stable, is left as it is, as a deletion would leave it.
func underWay(wr *v1alpha1.WeightedRollout) bool {
	return wr.Spec.Mode != v1alpha1.ModeObserve && wr.Status.Outcome == v1alpha1.OutcomeInProgress && !givesWay(wr)
}

// givesWay tells whether another rollout manages its rule: then it writes nothing, and the
// other one is what counts.
func givesWay(wr *v1alpha1.WeightedRollout) bool {
	c := meta.FindStatusCondition(wr.Status.Conditions, v1alpha1.ConditionStalled)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == v1alpha1.ReasonRouteConflict
}

// hazard says why a rollout is not safe without a controller; empty if it is.
func hazard(wr *v1alpha1.WeightedRollout) string {
	s := &wr.Status
	switch {
	case s.ObservedGeneration < wr.Generation:
		return "the controller has not looked at it as it is now: it does not run, or does not look after this namespace"
	case givesWay(wr):
		return ""
	case wr.Spec.Mode == v1alpha1.ModeObserve && s.Outcome == v1alpha1.OutcomeInProgress && share(wr) != "0":
		return "its mode is Observe, so that nobody changes the " + share(wr) + " percent that its canary has had: set the mode to Enforce"
	case s.Outcome == v1alpha1.OutcomeInProgress && wr.Spec.Mode != v1alpha1.ModeObserve:
		return says(wr)
	case s.Outcome == v1alpha1.OutcomeInProgress, s.Outcome == v1alpha1.OutcomePromoted, s.Outcome == v1alpha1.OutcomeReturning, s.Outcome == "":
		return ""
	case s.Share.ConfirmedAt == nil && !routesAreGone(s.Routes):
		return "stable has been given everything, but not every gateway has taken that: " + routesSay(s)
	}
	return ""
}

// routesAreGone tells whether there is no route that could give anybody traffic.
func routesAreGone(routes []v1alpha1.RouteStatus) bool {
	return len(routes) > 0 && !slices.ContainsFunc(routes, func(r v1alpha1.RouteStatus) bool { return r.Reason != v1alpha1.ReasonRouteMissing })
}

// routesSay is what is known of the routes.
func routesSay(s *v1alpha1.WeightedRolloutStatus) string {
	for _, r := range s.Routes {
		if r.Message != "" {
			return r.Message
		}
	}
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionRouteAccepted); c != nil {
		return c.Message
	}
	return "nothing is known of its routes"
}

func share(wr *v1alpha1.WeightedRollout) string {
	if wr.Status.Share.Desired == nil {
		return "0"
	}
	return string(*wr.Status.Share.Desired)
}

func attempt(wr *v1alpha1.WeightedRollout) string { return strconv.FormatInt(wr.Status.Attempt, 10) }

func abort(ctx context.Context, c client.Client, wr *v1alpha1.WeightedRollout) error {
	before := wr.DeepCopy()
	metav1.SetMetaDataAnnotation(&wr.ObjectMeta, v1alpha1.AbortAnnotation, attempt(wr))
	if err := client.IgnoreNotFound(c.Patch(ctx, wr, client.MergeFrom(before))); err != nil {
		return fmt.Errorf("abort WeightedRollout %s/%s: %w", wr.Namespace, wr.Name, err)
	}
	return nil
}

// says is what a rollout says of itself.
func says(wr *v1alpha1.WeightedRollout) string {
	if c := meta.FindStatusCondition(wr.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Message
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
		if !wr.DeletionTimestamp.IsZero() && share(wr) != "0" {
			o.say("%s/%s: its deletion ends without the controller, and its routes keep the canary at %s percent", wr.Namespace, wr.Name, share(wr))
		} else {
			o.say("%s/%s: can be deleted without a controller", wr.Namespace, wr.Name)
		}
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
