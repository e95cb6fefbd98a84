package workload

import (
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// autoscalerKind names an autoscaler in messages.
	autoscalerKind = "HorizontalPodAutoscaler"
	// defaultMinReplicas is the minimum of an autoscaler that names none.
	defaultMinReplicas = 1
)

// Reference names a workload.
type Reference struct {
	// APIVersion is a group and version such as apps/v1. The version is not compared.
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
}

// String names the workload in messages: "Deployment shop/web".
func (r Reference) String() string { return fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name) }

// Autoscaler returns the HorizontalPodAutoscaler that scales a workload; nil if none
// does. An autoscaler finds its workload by group, kind and name, in its own namespace,
// and in whichever version it likes.
//
// It fails if several scale the workload, since none of them does then: the autoscaler's
// controller refuses to act on an ambiguous target.
func Autoscaler(among []autoscalingv2.HorizontalPodAutoscaler, of Reference) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	group := groupOf(of.APIVersion)
	var found []*autoscalingv2.HorizontalPodAutoscaler
	for i := range among {
		h := &among[i]
		target := h.Spec.ScaleTargetRef
		if h.Namespace == of.Namespace && target.Kind == of.Kind && target.Name == of.Name && groupOf(target.APIVersion) == group {
			found = append(found, h)
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	default:
		var names []string
		for _, h := range found {
			names = append(names, h.Name)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("%d HorizontalPodAutoscalers scale %s (%s and %s): remove all but one", len(found), of, names[0], names[1])
	}
}

// groupOf returns the group of an apiVersion; empty for the core group, and for a text
// that is none.
func groupOf(apiVersion string) string {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return ""
	}
	return gv.Group
}

// MinReplicas returns an autoscaler's minimum, 1 if it names none.
func MinReplicas(h *autoscalingv2.HorizontalPodAutoscaler) int32 {
	if h == nil || h.Spec.MinReplicas == nil {
		return defaultMinReplicas
	}
	return *h.Spec.MinReplicas
}

// RaiseMinimum returns the JSON Patch that raises an autoscaler's minimum to the
// replicas that are needed; nil if it is as high already, since it is never lowered.
// The autoscaler then raises the replicas at once, whatever its metrics say, and stays
// free to go above. Only a workload of 0 replicas is out of its reach: it takes 0 as
// being switched off, and RaiseReplicas has to start the first one.
//
// It fails if more replicas are needed than the autoscaler's maximum, and if the
// autoscaler belongs to another object, such as a ScaledObject of KEDA, whose controller
// would undo the raise.
func RaiseMinimum(h *autoscalingv2.HorizontalPodAutoscaler, needed int32) ([]byte, error) {
	if h == nil {
		return nil, errNothing(autoscalerKind)
	}
	if needed > h.Spec.MaxReplicas {
		return nil, fmt.Errorf("%s allows at most %d replicas, and %d are needed: raise its spec.maxReplicas to %d", title(autoscalerKind, h), h.Spec.MaxReplicas, needed, needed)
	}
	if needed <= MinReplicas(h) {
		return nil, nil
	}
	if owner := metav1.GetControllerOf(h); owner != nil {
		return nil, fmt.Errorf("%s has a minimum of %d replicas, and %d are needed: it belongs to %s %s, so raise the minimum there", title(autoscalerKind, h), MinReplicas(h), needed, owner.Kind, owner.Name)
	}
	return guarded(autoscalerKind, h, operation{Op: "add", Path: "/spec/minReplicas", Value: needed})
}

// RestoreMinimum returns the JSON Patch that gives an autoscaler's minimum back: what
// it was before, if it still is what was set. It is nil if somebody has set another one
// since, which then stays, and if there is nothing to change.
func RestoreMinimum(h *autoscalingv2.HorizontalPodAutoscaler, set, before int32) ([]byte, error) {
	if h == nil {
		return nil, errNothing(autoscalerKind)
	}
	if MinReplicas(h) != set || before >= set {
		return nil, nil
	}
	return guarded(autoscalerKind, h, operation{Op: "add", Path: "/spec/minReplicas", Value: before})
}
