package workload

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CopyOver returns stable's template with the spec of the canary's, so that stable's
// workload runs the canary's version: SameSpec holds for the canary's template and the
// result. It is nil if either template is.
//
// The labels stay stable's own, since its workload and its Service select by them. So
// that the spec refers to stable's pods as it referred to the canary's, its label
// selectors (topology spread, affinity to pods) are translated: where one asks for a
// label with the value of the canary's template, and stable's template has that label
// too, it asks for stable's value. A label that stable's template does not have, and a
// selector for pods of other namespaces, cannot be translated and stay as they are.
//
// The annotations are the canary's where they count for a revision. Those that tools
// add, such as the time of a restart, belong to the workload that they were added to:
// stable keeps its own.
//
// The spec may name what only the canary's workload has, such as the claim templates
// of a StatefulSet. Those are no part of a pod template, and are not brought over.
func CopyOver(canary, stable *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	if canary == nil || stable == nil {
		return nil
	}
	result := stable.DeepCopy()
	result.Spec = *canary.Spec.DeepCopy()
	relabel(&result.Spec, translation(canary.Labels, stable.Labels))
	maps.DeleteFunc(result.Annotations, func(key, _ string) bool { return counts(key) })
	for key, value := range counting(canary.Annotations) {
		if result.Annotations == nil {
			result.Annotations = map[string]string{}
		}
		result.Annotations[key] = value
	}
	return result
}

// UpdateDeployment returns the JSON Patch that makes a Deployment run the version of
// the canary's template, as CopyOver brings it over; nil if it runs that already. It
// replaces the template's spec as a whole, so that a container or a variable that the
// canary's template does not have goes. Replicas, selector, strategy and labels are
// not touched.
//
// It fails without a Deployment or a template, and if the Deployment has no
// resourceVersion to be checked against.
func UpdateDeployment(d *appsv1.Deployment, canary *corev1.PodTemplateSpec) ([]byte, error) {
	if d == nil {
		return nil, errNothing("Deployment")
	}
	return update("Deployment", d, &d.Spec.Template, canary)
}

// UpdateStatefulSet is UpdateDeployment for a StatefulSet.
func UpdateStatefulSet(s *appsv1.StatefulSet, canary *corev1.PodTemplateSpec) ([]byte, error) {
	if s == nil {
		return nil, errNothing("StatefulSet")
	}
	return update("StatefulSet", s, &s.Spec.Template, canary)
}

func update(kind string, object metav1.Object, present, canary *corev1.PodTemplateSpec) ([]byte, error) {
	if canary == nil {
		return nil, errNothing("pod template of the canary")
	}
	if SameSpec(canary, present) {
		return nil, nil
	}
	wanted := CopyOver(canary, present)
	steps := []any{operation{Op: "replace", Path: "/spec/template/spec", Value: wanted.Spec}}
	const annotations = "/spec/template/metadata/annotations"
	switch {
	case maps.Equal(wanted.Annotations, present.Annotations):
	case len(wanted.Annotations) == 0:
		steps = append(steps, removal{Op: "remove", Path: annotations})
	default:
		// "add" sets a member of an object whether it is there or not.
		steps = append(steps, operation{Op: "add", Path: annotations, Value: wanted.Annotations})
	}
	return guarded(kind, object, steps...)
}
