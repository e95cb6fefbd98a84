package workload

import autoscalingv1 "k8s.io/api/autoscaling/v1"

const scaleKind = "scale of"

// RaiseReplicas returns the JSON Patch for the scale subresource of a workload that has
// no autoscaler: it raises the replicas to those that are needed; nil if there are as
// many already, since they are never lowered.
func RaiseReplicas(s *autoscalingv1.Scale, needed int32) ([]byte, error) {
	if s == nil {
		return nil, errNothing("scale")
	}
	if needed <= s.Spec.Replicas {
		return nil, nil
	}
	return setReplicas(s, needed)
}

// RestoreReplicas returns the JSON Patch for the scale subresource that gives the
// replicas back: as many as there were before, if there still are as many as were set.
// It is nil if somebody has scaled the workload since, whose number then stays, and if
// there is nothing to change.
func RestoreReplicas(s *autoscalingv1.Scale, set, before int32) ([]byte, error) {
	if s == nil {
		return nil, errNothing("scale")
	}
	if s.Spec.Replicas != set || before >= set {
		return nil, nil
	}
	return setReplicas(s, before)
}

// setReplicas uses "add", which sets a member whether it is there or not: 0 replicas
// are not written out.
func setReplicas(s *autoscalingv1.Scale, replicas int32) ([]byte, error) {
	return guarded(scaleKind, s, operation{Op: "add", Path: "/spec/replicas", Value: replicas})
}
