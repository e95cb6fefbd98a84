package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// rereadEvery is the pause between two looks at a rollout that cannot be watched, or
// whose watch has ended.
const rereadEvery = 2 * time.Second

// follow tells of a rollout as it is and of every change of it, until each says stop. A
// trouble that may pass is told to trouble, as nil once it has, and waited out: before
// the first answer fewer do, since the address may be wrong. It fails with a *missingError
// once the rollout is gone, and with the context.
func (c *cluster) follow(ctx context.Context, name string, each func(*v1alpha1.WeightedRollout) (stop bool), trouble func(error)) error {
	troubled, answered := false, false
	for {
		wr, err := c.rollout(ctx, name)
		switch {
		case err == nil && troubled:
			troubled = false
			trouble(nil)
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && hopeless(err, answered):
			return err
		case err != nil:
			troubled = true
			trouble(err)
		}
		if err == nil {
			answered = true
			stop, err := c.changes(ctx, wr, each)
			if stop || err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(rereadEvery):
		}
	}
}

// changes tells of a rollout and then of its changes, for as long as the API server goes
// on. Without the right to watch, it is done after the first.
func (c *cluster) changes(ctx context.Context, wr *v1alpha1.WeightedRollout, each func(*v1alpha1.WeightedRollout) (stop bool)) (stopped bool, failed error) {
	if each(wr) {
		return true, nil
	}
	err := c.watch(ctx, v1alpha1.GroupVersion.String(), "weightedrollouts", "metadata.name="+wr.Name, wr.ResourceVersion, func(next change) bool {
		if next.Type == "DELETED" {
			failed = &missingError{c.namespace, wr.Name}
			return true
		}
		changed := &v1alpha1.WeightedRollout{}
		if err := json.Unmarshal(next.Object, changed); err != nil {
			return true // it is read again
		}
		stopped = each(changed)
		return stopped
	})
	if failed == nil && err != nil && !apierrors.IsForbidden(err) && !passes(err) && !errors.Is(err, errNoSuchKind) {
		failed = err
	}
	return stopped, failed
}
