// Package v1alpha1 holds the WeightedRollout API: its types, the rules that the
// API server enforces on them, and the names of the conditions and reasons that
// its status speaks in. It has no logic beyond reading its own values.
//
// +kubebuilder:object:generate=true
// +groupName=weightedrollout.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of every type in this package.
	GroupVersion = schema.GroupVersion{Group: "weightedrollout.dev", Version: "v1alpha1"}

	// SchemeBuilder collects the functions that add these types to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds these types to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &WeightedRollout{}, &WeightedRolloutList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
