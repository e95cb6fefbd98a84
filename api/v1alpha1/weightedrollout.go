package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WeightedRollout moves traffic from one version of a service to the next in
// small, checked steps, by the weights of two backends in the user's own routes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=weightedrollouts,singular=weightedrollout,shortName=wr,categories=rollouts
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.status.stage.position`
// +kubebuilder:printcolumn:name="Weight",type=string,JSONPath=`.status.share.desired`,description="Canary's share of the traffic in percent"
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.verdict.state`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextTransitionTime`,description="Earliest time of the next change, when only time is awaited"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Revision",type=string,priority=1,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Attempt",type=integer,priority=1,JSONPath=`.status.attempt`
// +kubebuilder:printcolumn:name="Status",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="has(self.spec)",message="spec is required"
type WeightedRollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec WeightedRolloutSpec `json:"spec,omitempty"`

	// status is what has been done, and why.
	// +optional
	Status WeightedRolloutStatus `json:"status,omitzero"`
}

// WeightedRolloutList is a list of WeightedRollouts.
//
// +kubebuilder:object:root=true
type WeightedRolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WeightedRollout `json:"items"`
}
