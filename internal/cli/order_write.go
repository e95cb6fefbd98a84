package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

const (
	// fieldManager is whom the API server notes as the writer.
	fieldManager = "kubectl-weightedrollout"
	// writeTries is how often an order is written, where the controller writes the same
	// object at the same time.
	writeTries = 5
)

// give writes the order onto the object that was seen. If that has changed since, it is
// read again: the order is written as long as attempt and stage are the same, and it
// still makes sense.
func (o *OrderOptions) give(ctx context.Context, c *cluster, seen *v1alpha1.WeightedRollout, id string) (*v1alpha1.WeightedRollout, error) {
	wr := seen
	for range writeTries {
		written, err := c.patch(ctx, wr, o.order.write(wr, id).patch(wr))
		switch {
		case err == nil:
			return written, nil
		case !apierrors.IsConflict(err):
			return nil, o.refused(err, c)
		}
		if wr, err = c.rollout(ctx, o.name); err != nil {
			return nil, err
		}
		if !sameStand(seen, wr) {
			return nil, fmt.Errorf("the rollout has moved on meanwhile, to attempt %d, stage %s, so nothing was written: look at it again", wr.Status.Attempt, positionOf(wr))
		}
		if err := o.check(wr); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("somebody else keeps writing WeightedRollout %s/%s, so nothing was written: try again", seen.Namespace, seen.Name)
}

// sameStand tells whether two sights of a rollout are of the same attempt and stage.
func sameStand(a, b *v1alpha1.WeightedRollout) bool {
	index := func(wr *v1alpha1.WeightedRollout) int32 {
		if wr.Status.Stage == nil {
			return -1
		}
		return wr.Status.Stage.Index
	}
	return a.UID == b.UID && a.Status.Attempt == b.Status.Attempt && a.Status.Revision == b.Status.Revision && index(a) == index(b)
}

// patch is the edit as a JSON merge patch that is refused if the object has changed.
func (e edit) patch(wr *v1alpha1.WeightedRollout) map[string]any {
	metadata := map[string]any{"resourceVersion": wr.ResourceVersion, "uid": wr.UID}
	patch := map[string]any{"metadata": metadata}
	if e.annotation != "" {
		metadata["annotations"] = map[string]string{e.annotation: e.value}
	}
	if e.paused != nil {
		patch["spec"] = map[string]any{"paused": *e.paused}
	}
	return patch
}

// patch writes a merge patch.
func (c *cluster) patch(ctx context.Context, wr *v1alpha1.WeightedRollout, patch map[string]any) (*v1alpha1.WeightedRollout, error) {
	request := c.aim(c.client.Patch(types.MergePatchType), v1alpha1.GroupVersion.String(), "weightedrollouts").
		Name(wr.Name).Param("fieldManager", fieldManager).Body([]byte(jsonText(patch)))
	written := &v1alpha1.WeightedRollout{}
	return written, answer(ctx, request, written)
}

// refused says in words why the API server does not take an order.
func (o *OrderOptions) refused(err error, c *cluster) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	message := ""
	if ok {
		message = status.ErrStatus.Message
	}
	switch {
	case strings.Contains(message, "ValidatingAdmissionPolicy") || strings.Contains(message, "admission webhook"):
		return fmt.Errorf("a policy of the cluster does not let you %s; for approvals it takes the role weightedrollout-approver in the namespace %q: %w", o.order.verb, c.namespace, err)
	case !apierrors.IsForbidden(err):
		return c.explain(o.name, err)
	case o.order.edits:
		return fmt.Errorf("you may not %s: have the role weightedrollout-editor bound to you in the namespace %q: %w", o.order.verb, c.namespace, err)
	}
	return fmt.Errorf("you may not %s: have the role weightedrollout-approver or weightedrollout-editor bound to you in the namespace %q: %w", o.order.verb, c.namespace, err)
}
