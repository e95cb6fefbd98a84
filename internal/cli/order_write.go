package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

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
			return nil, o.refused(err, wr)
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

// refusedError says in words why the API server does not take an order.
type refusedError struct {
	says string
	err  error
}

func (e *refusedError) Error() string { return e.says }
func (e *refusedError) Unwrap() error { return e.err }

// refused says in words why the API server does not take an order, and what to do.
func (o *OrderOptions) refused(err error, wr *v1alpha1.WeightedRollout) error {
	if who, sentence := policyIn(err); who != "" {
		return &refusedError{fmt.Sprintf("%s refuses %s: %s", who, o.order.verb, sentence), err}
	}
	switch {
	case apierrors.IsNotFound(err):
		return &missingError{wr.Namespace, wr.Name}
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you may not %s: have %s bound to you in the namespace %q: %w", o.order.verb, o.order.role(wr), wr.Namespace, err)
	}
	return fmt.Errorf("write %s onto the WeightedRollout %q in the namespace %q: %w", o.order.verb, wr.Name, wr.Namespace, err)
}

// role is what it takes to give the order. The policy for approvals keeps those that end
// one, or take the place of one, from people who may only edit.
func (o *order) role(wr *v1alpha1.WeightedRollout) string {
	const approver, editor = "weightedrollout-approver", "weightedrollout-editor"
	switch o.verb {
	case string(v1alpha1.VerbFinish):
		if wr.Status.Outcome != v1alpha1.OutcomePromoted {
			return "the role " + approver
		}
	case string(v1alpha1.VerbApprove), string(v1alpha1.VerbSkip), string(v1alpha1.VerbPromote):
		if slices.ContainsFunc(wr.Spec.Plan.Stages, func(s v1alpha1.Stage) bool { return s.Approval == v1alpha1.ApprovalRequired }) {
			return "the role " + approver
		}
		return "the role " + approver + " or " + editor
	}
	return "the role " + editor
}

// aPolicy finds in an API server's answer who has refused, and the sentence that says why.
var aPolicy = regexp.MustCompile(`(?s)(?:ValidatingAdmissionPolicy '([^']+)'|admission webhook "([^"]+)").*? denied (?:the )?request:?\s*(.*)$`)

// policyIn is the policy that has refused a write, and why it says it has; who is empty
// if none has.
func policyIn(err error) (who, sentence string) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return "", ""
	}
	m := aPolicy.FindStringSubmatch(status.ErrStatus.Message)
	switch {
	case m == nil:
		return "", ""
	case m[1] != "":
		who = fmt.Sprintf("the policy %q", m[1])
	default:
		who = fmt.Sprintf("the admission webhook %q", m[2])
	}
	return who, cmp.Or(m[3], "it does not say why")
}
