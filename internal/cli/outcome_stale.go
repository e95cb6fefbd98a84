package cli

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/workload"
)

// workloads are the kinds that the revision can follow from, and their resources.
var workloads = map[string]string{"": "deployments", "Deployment": "deployments", "StatefulSet": "statefulsets"}

// overtaken says why an outcome is not that of the version which the canary runs by now;
// it is empty if it is. Where the revision follows from the canary's pod template a new
// image changes nothing in the rollout, so that its status alone does not show its age.
// Without the right to read the workload it is taken for that of the present one, and
// doubt says so.
func (c *cluster) overtaken(ctx context.Context, wr *v1alpha1.WeightedRollout) (why string, doubt error) {
	if wr.Spec.Revision != "" || wr.Spec.Canary == nil || wr.Spec.Canary.Workload == nil {
		return "", nil
	}
	ref := wr.Spec.Canary.Workload
	resource, follows := workloads[ref.Kind]
	if !follows {
		return "", nil
	}
	var runs struct {
		Spec struct {
			Template *corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := c.within(wr.Namespace).read(ctx, "apps/v1", resource, ref.Name, "", &runs); err != nil {
		return "", fmt.Errorf("whether this is about the version that the canary runs by now is not known: %s %s cannot be read: %w", resource, ref.Name, err)
	}
	if now := workload.Revision(runs.Spec.Template); now != wr.Status.Revision {
		return fmt.Sprintf("the canary runs revision %q by now, and the status is about %q: waiting for the controller", now, wr.Status.Revision), nil
	}
	return "", nil
}
