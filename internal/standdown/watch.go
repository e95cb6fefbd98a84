package standdown

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

const (
	// poll is how often the rollouts are looked at, and looks how often in a row nothing
	// must be left to do.
	poll  = time.Second
	looks = 2
	// refusals is how often in a row everything that is left must have been refused. Rights
	// and policies take a moment to be known to every API server.
	refusals = 5
)

// errNoKind says that the cluster has no WeightedRollouts at all.
var errNoKind = errors.New("the cluster does not know WeightedRollouts")

// watch looks at the rollouts until nothing is left to do.
type watch struct {
	Options
	client client.Client
	// visit does what is to be done with a rollout. It returns what is left to do, and a
	// line for people.
	visit func(context.Context, client.Client, *v1alpha1.WeightedRollout) (reason, line string, err error)
	// done is what is said at the end, and left the heading of what is left.
	done, left string

	// looked is true once the API server has listed the rollouts.
	looked bool
	// unsafe is what was left at the last whole look, and failed why the last request was
	// not answered.
	unsafe []string
	failed error
	// calm and stuck count the looks in a row at which nothing was left, and at which all
	// that was left was refused.
	calm, stuck int
	said        map[string]bool
}

// run looks until nothing is left, the time is over, or what is left cannot pass.
func (w *watch) run(parent context.Context) error {
	w.said = map[string]bool{}
	ctx, cancel := context.WithTimeout(parent, w.Timeout)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, poll, true, w.look)
	switch {
	case err == nil:
		w.say("%s", w.done)
		return nil
	case !wait.Interrupted(err):
		return err
	case parent.Err() != nil:
		return w.unfinished("it was ended before it was done")
	}
	return w.unfinished(fmt.Sprintf("the %s of --timeout are over", w.Timeout))
}

// look looks at every rollout once. The error is one that cannot pass.
func (w *watch) look(ctx context.Context) (done bool, err error) {
	all, err := w.list(ctx)
	switch {
	case errors.Is(err, errNoKind):
		w.say("%v: there is nothing to do", err)
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return false, fmt.Errorf("%w: give the one who runs this the right to list and patch weightedrollouts, and to delete them with --delete", err)
	case err != nil:
		if ctx.Err() == nil {
			w.failed = err
		}
		w.calm = 0
		return false, nil
	case !w.looked:
		for _, namespace := range withoutRollouts(w.Namespaces, all) {
			w.say("there is no rollout in the namespace %s", namespace)
		}
		w.say("%d rollouts are looked at", len(all))
	}
	unsafe, refused := w.visitAll(ctx, all)
	if ctx.Err() != nil && w.looked {
		return false, nil // What was known before says more.
	}
	w.looked, w.unsafe, w.failed = true, unsafe, nil
	if w.calm++; len(unsafe) > 0 {
		w.calm = 0
	}
	if w.stuck++; refused == 0 || refused < len(unsafe) {
		w.stuck = 0
	}
	if w.stuck == refusals {
		return false, w.unfinished("the API server refuses what is left to do")
	}
	return w.calm == looks, nil
}

// visitAll goes through all rollouts: one that cannot be changed keeps no other from being
// asked. It returns what is left, and how much of that was refused for good.
func (w *watch) visitAll(ctx context.Context, all []v1alpha1.WeightedRollout) (unsafe []string, refused int) {
	for i := range all {
		wr := &all[i]
		key := client.ObjectKeyFromObject(wr)
		reason, line, err := w.visit(ctx, w.client, wr)
		if err != nil {
			reason = err.Error()
		}
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			refused++
		}
		if line != "" {
			w.say("%s: %s", key, line)
		}
		if reason != "" {
			unsafe = append(unsafe, fmt.Sprintf("%s: %s", key, reason))
		}
	}
	return unsafe, refused
}

// unfinished is the error about what is left.
func (w *watch) unfinished(why string) error {
	last := ""
	if w.failed != nil {
		last = ": " + w.failed.Error()
	}
	switch {
	case !w.looked:
		return fmt.Errorf("%s, and the API server has not answered, so that nothing is known of the rollouts%s", why, last)
	case len(w.unsafe) == 0:
		return fmt.Errorf("%s: nothing was left to do when the rollouts were looked at last, but that has to be seen %d times in a row: give it more time%s", why, looks, last)
	case last != "":
		last = "\nthe API server has not answered since" + last
	}
	return fmt.Errorf("%s, and %s:\n  %s%s", why, w.left, strings.Join(w.unsafe, "\n  "), last)
}

// list reads the rollouts of the namespaces.
func (w *watch) list(ctx context.Context) ([]v1alpha1.WeightedRollout, error) {
	namespaces := w.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var all []v1alpha1.WeightedRollout
	for _, namespace := range namespaces {
		var some v1alpha1.WeightedRolloutList
		err := w.client.List(ctx, &some, client.InNamespace(namespace))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, errNoKind
		}
		if err != nil {
			return nil, fmt.Errorf("list the WeightedRollouts: %w", err)
		}
		all = append(all, some.Items...)
	}
	return all, nil
}

// say prints a line, once.
func (w *watch) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if w.said[line] {
		return
	}
	w.said[line] = true
	_, _ = fmt.Fprintln(w.Out, line)
}
