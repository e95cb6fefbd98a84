package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ShareStatus is the canary's part of the traffic of the two tracks.
type ShareStatus struct {
	// desired is the share that the routes are to have.
	// +optional
	Desired *Percent `json:"desired,omitempty"`

	// observed is the share that the canary had when this status was written: of the
	// requests since the confirmation, where the gateway counts enough of them, and else
	// by the weights in the routes; the highest, where routes differ. A share that the
	// controller writes itself shows here once it is confirmed.
	// +optional
	Observed *Percent `json:"observed,omitempty"`

	// observedFrom says where observed comes from: Requests or Weights.
	// +optional
	ObservedFrom ShareSource `json:"observedFrom,omitempty"`

	// changedAt is when the desired share was last changed.
	// +optional
	ChangedAt *metav1.MicroTime `json:"changedAt,omitempty"`

	// confirmedAt is when the gateways were seen to have taken the desired share in
	// every route. Soaks and evidence count from here. Absent while unconfirmed.
	// +optional
	ConfirmedAt *metav1.MicroTime `json:"confirmedAt,omitempty"`
}

// ShareSource says where an observed share comes from.
// +kubebuilder:validation:Enum=Requests;Weights
type ShareSource string

const (
	// ShareFromRequests is a part of the requests that the gateway has counted.
	ShareFromRequests ShareSource = "Requests"
	// ShareFromWeights is what the weights in the routes stand for.
	ShareFromWeights ShareSource = "Weights"
)

// ProgressStatus says how far an attempt has come, and how long it has waited since for
// what should have come by itself.
type ProgressStatus struct {
	// highest is the highest share that the track under test has had.
	// +optional
	Highest *Percent `json:"highest,omitempty"`

	// waitingSince is since when the deadline runs. Absent while it stands still.
	// +optional
	WaitingSince *metav1.MicroTime `json:"waitingSince,omitempty"`

	// waitedFor is how long it has run before.
	// +optional
	WaitedFor string `json:"waitedFor,omitempty"`
}

// ContentionStatus says who else writes the weights.
type ContentionStatus struct {
	// manager is the field manager of the other writer, as far as the route names one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Manager string `json:"manager,omitempty"`

	// count is how often the other writer has changed the weights.
	Count int32 `json:"count"`

	// generation is the sum of the routes' generations at that time.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// at is when it did so last.
	// +optional
	At *metav1.MicroTime `json:"at,omitempty"`
}

// CapacityStatus says how many replicas the traffic takes, and what was scaled for it.
type CapacityStatus struct {
	// replicas is the most that the track that serves now has been asked to have, in this
	// attempt: what all of the traffic takes.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// scaled lists what canary.capacity Scale has raised and not yet given back.
	// +optional
	// +listType=map
	// +listMapKey=track
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=4
	Scaled []ScaledStatus `json:"scaled,omitempty"`
}

// TrackName is one of the two tracks.
// +kubebuilder:validation:Enum=Stable;Canary
type TrackName string

const (
	// TrackStable is the version that serves now.
	TrackStable TrackName = "Stable"
	// TrackCanary is the version under test.
	TrackCanary TrackName = "Canary"
)

// ScaledStatus is what was raised for a track.
type ScaledStatus struct {
	// track whose workload was scaled.
	Track TrackName `json:"track"`

	// kind is that of the workload, whose replicas were raised, or
	// HorizontalPodAutoscaler, whose minReplicas were.
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// name of the workload or autoscaler.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// from is what it had before.
	From int32 `json:"from"`

	// to is what it was set to.
	To int32 `json:"to"`
}

// StableUpdateStatus is how stable comes to run the revision, or is to.
type StableUpdateStatus struct {
	// before is the revision of stable's pod template from before.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Before string `json:"before,omitempty"`

	// seen is true once stable's workload was seen with the canary's pod template.
	// +optional
	Seen bool `json:"seen,omitempty"`

	// at is when it was decided, or seen.
	At metav1.MicroTime `json:"at"`
}

// RouteStatus is what is known of a route.
type RouteStatus struct {
	// kind of the route.
	Kind RouteKind `json:"kind"`

	// name of the route.
	Name string `json:"name"`

	// uid of the route. Another uid is another route: the plan starts again.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// generation of the route that carries the written share.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// written is the share that was last confirmed in this route.
	// +optional
	Written *Percent `json:"written,omitempty"`

	// confirmedAt is when the gateways were seen to have taken it.
	// +optional
	ConfirmedAt *metav1.MicroTime `json:"confirmedAt,omitempty"`

	// reason names what is wrong with the route, if anything.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message says what is wrong with the route, and what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}
