package v1alpha1

// DefaultProgressDeadline is for how long a canary may be degraded without coming further,
// where the spec has no progressDeadline: longer than most incidents that stable shares,
// and shorter than a night.
const DefaultProgressDeadline Duration = "4h"

// WeightedRolloutSpec says which two Services share which routes, by what plan
// the traffic moves from stable to canary, and what evidence each step needs.
//
// +kubebuilder:validation:XValidation:rule="(has(self.revision) && size(self.revision) > 0) || (has(self.canary) && has(self.canary.workload) && (!has(self.canary.workload.kind) || self.canary.workload.kind in ['Deployment', 'StatefulSet']))",message="spec.revision is required: name the version that the canary runs, such as \"2.4.1\"; changing it starts a rollout. Or name the canary's Deployment or StatefulSet in spec.canary.workload, and the revision follows from its pod template"
// +kubebuilder:validation:XValidation:rule="has(self.routes) && size(self.routes) > 0",message="spec.routes is required: name the HTTPRoute or GRPCRoute whose weights are to be managed, as in routes: [{name: checkout}]"
// +kubebuilder:validation:XValidation:rule="has(self.stable)",message="spec.stable is required: name the Service and port of the version that serves now"
// +kubebuilder:validation:XValidation:rule="has(self.canary)",message="spec.canary is required: name the Service and port of the version under test"
// +kubebuilder:validation:XValidation:rule="has(self.health)",message="spec.health is required: set health.errorRate, health.latency or health.checks, or say health.disabled: true to run without any check"
// +kubebuilder:validation:XValidation:rule="!has(self.stable) || !has(self.canary) || !has(self.stable.service) || !has(self.canary.service) || self.stable.service != self.canary.service || (has(self.stable.__namespace__) ? self.stable.__namespace__ : \"\") != (has(self.canary.__namespace__) ? self.canary.__namespace__ : \"\") || !has(self.stable.port) || !has(self.canary.port) || self.stable.port != self.canary.port",message="spec.stable and spec.canary name the same Service and port: traffic cannot be divided between a backend and itself; give one of them another Service or port"
// +kubebuilder:validation:XValidation:rule="!has(self.health) || (has(self.health.disabled) && self.health.disabled) || !has(self.health.interval) || !self.health.interval.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self.health.interval) > duration('1h') || !has(self.plan.stages) || self.plan.stages.all(s, !has(s.soak) || !s.soak.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(s.soak) < duration('1s') || duration(s.soak) >= duration(self.health.interval))",message="the soak of a stage is shorter than spec.health.interval, so the stage would end unmeasured: lengthen plan.stages[].soak or shorten health.interval"
// +kubebuilder:validation:XValidation:rule="!has(self.canary) || !has(self.canary.capacity) || self.canary.capacity != 'Scale' || (has(self.canary.workload) && has(self.stable) && has(self.stable.workload) && (!has(self.canary.workload.kind) || self.canary.workload.kind in ['Deployment', 'StatefulSet']))",message="canary.capacity Scale needs canary.workload, a Deployment or StatefulSet to be scaled, and stable.workload, whose replicas say how many a share takes: name both, or use capacity Check"
// +kubebuilder:validation:XValidation:rule="!has(self.promotion) || !has(self.promotion.mode) || self.promotion.mode != 'UpdateStable' || (has(self.canary) && has(self.canary.workload) && has(self.stable) && has(self.stable.workload) && (!has(self.canary.workload.kind) || self.canary.workload.kind in ['Deployment', 'StatefulSet']) && (!has(self.stable.workload.kind) || self.stable.workload.kind in ['Deployment', 'StatefulSet']) && (has(self.canary.workload.name) ? self.canary.workload.name : \"\") != (has(self.stable.workload.name) ? self.stable.workload.name : \"\"))",message="promotion.mode UpdateStable copies the canary's pod template to stable, so stable.workload and canary.workload must name two Deployments or StatefulSets: name both, or use mode Await"
type WeightedRolloutSpec struct {
	// revision is the version that the canary runs: an opaque text. Changing it
	// starts a rollout from the first stage. Setting it to what stable runs
	// returns all traffic to stable in one write. Default: a hash of the pod template
	// of canary.workload, without what the API server fills in and tools annotate.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`

	// mode is Enforce, or Observe to report what would be done without writing
	// any route.
	// +optional
	// +kubebuilder:default=Enforce
	Mode Mode `json:"mode,omitempty"`

	// paused holds the canary's share where it is. A breach of health still rolls
	// back.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// routes lists the 1 to 8 routes whose weights are managed. They move together.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.routes cannot be changed, since a route that is dropped would keep its weights: delete this WeightedRollout, which gives stable all traffic unless the canary is promoted, and create one for the other routes"
	Routes []RouteReference `json:"routes,omitempty"`

	// stable is the version that serves now, and gets all traffic back on a rollback.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(has(self.service) ? self.service : \"\") == (has(oldSelf.service) ? oldSelf.service : \"\") && (has(self.__namespace__) ? self.__namespace__ : \"\") == (has(oldSelf.__namespace__) ? oldSelf.__namespace__ : \"\") && (has(self.port) ? self.port : 0) == (has(oldSelf.port) ? oldSelf.port : 0)",message="service, namespace and port of spec.stable cannot be changed: delete this WeightedRollout, which gives stable all traffic unless the canary is promoted, and create one for the other Service"
	Stable *StableTrack `json:"stable,omitempty"`

	// canary is the version under test.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(has(self.service) ? self.service : \"\") == (has(oldSelf.service) ? oldSelf.service : \"\") && (has(self.__namespace__) ? self.__namespace__ : \"\") == (has(oldSelf.__namespace__) ? oldSelf.__namespace__ : \"\") && (has(self.port) ? self.port : 0) == (has(oldSelf.port) ? oldSelf.port : 0)",message="service, namespace and port of spec.canary cannot be changed: delete this WeightedRollout, which gives stable all traffic unless the canary is promoted, and create one for the other Service"
	Canary *CanaryTrack `json:"canary,omitempty"`

	// plan lists the stages. Default: 1, 5, 10, 20 and 50 percent for 30 minutes each.
	// +optional
	// +kubebuilder:default={}
	Plan Plan `json:"plan,omitempty"`

	// progressDeadline is how long a rollout may wait for something that should have come
	// by itself (a ready canary, capacity, a gateway's confirmation, requests, evidence)
	// without having come further than before: from 1s to 720h. It is then rolled back.
	// Soaks, pauses, approvals, windows and cool-downs do not count. Default: 4h, of which
	// only the time counts for which the canary is degraded.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('720h')",message="progressDeadline must be a duration from 1s to 720h, such as 24h"
	ProgressDeadline Duration `json:"progressDeadline,omitempty"`

	// ramp limits how fast the share may rise, within a stage and between stages.
	// +optional
	// +kubebuilder:default={}
	Ramp Ramp `json:"ramp,omitempty"`

	// health says what is measured and what its limits are.
	// +optional
	Health *Health `json:"health,omitempty"`

	// onUnhealthy says what happens when the canary is unhealthy.
	// +optional
	// +kubebuilder:default={}
	OnUnhealthy OnUnhealthy `json:"onUnhealthy,omitempty"`

	// promotion says what happens when the canary has passed the whole plan.
	// +optional
	// +kubebuilder:default={}
	Promotion Promotion `json:"promotion,omitempty"`

	// onDelete says what happens to the routes when this object is deleted before
	// the canary is promoted: Restore gives stable all traffic, Keep leaves the
	// weights as they are. After promotion they are always left as they are.
	// +optional
	// +kubebuilder:default=Restore
	OnDelete DeletionPolicy `json:"onDelete,omitempty"`
}

// Mode says whether routes are written.
// +kubebuilder:validation:Enum=Enforce;Observe
type Mode string

const (
	// ModeEnforce writes routes.
	ModeEnforce Mode = "Enforce"
	// ModeObserve reports what would be done, advances nothing and writes no route.
	ModeObserve Mode = "Observe"
)

// DeletionPolicy says what becomes of the routes when a rollout is deleted.
// +kubebuilder:validation:Enum=Restore;Keep
type DeletionPolicy string

const (
	// DeletionRestore gives stable all traffic.
	DeletionRestore DeletionPolicy = "Restore"
	// DeletionKeep leaves the weights as they are.
	DeletionKeep DeletionPolicy = "Keep"
)

// RouteKind is a kind of Gateway API route.
// +kubebuilder:validation:Enum=HTTPRoute;GRPCRoute
type RouteKind string

const (
	// HTTPRouteKind is the kind of gateway.networking.k8s.io/v1 HTTPRoute.
	HTTPRouteKind RouteKind = "HTTPRoute"
	// GRPCRouteKind is the kind of gateway.networking.k8s.io/v1 GRPCRoute.
	GRPCRouteKind RouteKind = "GRPCRoute"
)

// RouteReference names a route in the rollout's own namespace.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) && size(self.name) > 0",message="name is required: name the route whose weights are to be managed"
type RouteReference struct {
	// kind of the route: HTTPRoute or GRPCRoute. Default: HTTPRoute.
	// +optional
	// +kubebuilder:default=HTTPRoute
	Kind RouteKind `json:"kind,omitempty"`

	// name of the route, in the namespace of the rollout.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// ruleNames lists up to 16 names of the route's rules to manage. Default:
	// every rule that holds both backends.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	RuleNames []string `json:"ruleNames,omitempty"`
}

// StableTrack is the version that serves now.
//
// +kubebuilder:validation:XValidation:rule="has(self.service) && size(self.service) > 0",message="service is required: name the Service that the route's backendRefs refer to"
// +kubebuilder:validation:XValidation:rule="has(self.port)",message="port is required: give the Service port that the route's backendRefs refer to, such as 8080"
// +kubebuilder:validation:XValidation:rule="!has(self.workload) || !has(self.__namespace__)",message="workload is looked for in the rollout's own namespace only: remove workload, or namespace"
type StableTrack struct {
	Track `json:",inline"`

	// revision is what stable runs, so that going back to it is known as such. Default:
	// what the last completed rollout left there, or, where both workloads are named,
	// whatever has the same pod template.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`
}

// CanaryTrack is the version under test.
//
// +kubebuilder:validation:XValidation:rule="has(self.service) && size(self.service) > 0",message="service is required: name the Service that the route's backendRefs refer to"
// +kubebuilder:validation:XValidation:rule="has(self.port)",message="port is required: give the Service port that the route's backendRefs refer to, such as 8080"
// +kubebuilder:validation:XValidation:rule="!has(self.workload) || !has(self.__namespace__)",message="workload is looked for in the rollout's own namespace only: remove workload, or namespace"
type CanaryTrack struct {
	Track `json:",inline"`

	// capacity says what is done before a raise about the replicas that it takes, where
	// both workloads are named. Check waits until the track whose share rises has as
	// many ready replicas as its next share needs of the replicas that serve all traffic.
	// Scale sees to it as well: it raises the replicas, or the minReplicas of a
	// HorizontalPodAutoscaler, and gives back what it took once they are not needed.
	// Ignore asks for one ready endpoint only. Default: Check.
	// +optional
	// +kubebuilder:default=Check
	Capacity CapacityMode `json:"capacity,omitempty"`
}

// CapacityMode says what is done about replicas before a raise.
// +kubebuilder:validation:Enum=Check;Scale;Ignore
type CapacityMode string

const (
	// CapacityCheck waits for enough ready replicas.
	CapacityCheck CapacityMode = "Check"
	// CapacityScale raises the replicas, and waits for them.
	CapacityScale CapacityMode = "Scale"
	// CapacityIgnore asks for one ready endpoint only.
	CapacityIgnore CapacityMode = "Ignore"
)

// Track is one of the two versions: a Service, and the port by which the routes
// refer to it.
type Track struct {
	// service is the name of the Service.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Service string `json:"service,omitempty"`

	// namespace of the Service, as the routes' backendRefs have it. In another namespace
	// than the rollout's a ReferenceGrant must allow the route to refer to the Service:
	// when it goes, the gateway does not resolve the route, which holds the rollout and
	// after onUnhealthy.for rolls it back. Default: the namespace of the rollout.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// port of the Service, 1 to 65535, as the routes' backendRefs have it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// workload runs the pods behind the Service, in the namespace of the rollout. Where
	// both tracks name one, their replicas are compared before each raise (canary.capacity).
	// +optional
	Workload *WorkloadReference `json:"workload,omitempty"`
}

// WorkloadReference names what runs the pods of a track.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) && size(self.name) > 0",message="name is required: name the Deployment, StatefulSet or other scalable object that runs the pods"
// +kubebuilder:validation:XValidation:rule="!has(self.kind) || !(self.kind in ['Deployment', 'StatefulSet']) || !has(self.apiVersion) || self.apiVersion == 'apps/v1'",message="a Deployment or StatefulSet has apiVersion apps/v1: leave apiVersion out"
type WorkloadReference struct {
	// apiVersion of the workload. Default: apps/v1.
	// +optional
	// +kubebuilder:default="apps/v1"
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9][a-z0-9]*$')",message="apiVersion must be a group and version, such as apps/v1"
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is Deployment, StatefulSet, or any kind with a scale subresource, whose
	// replicas can then be read, but neither its pod template nor be changed.
	// Default: Deployment.
	// +optional
	// +kubebuilder:default=Deployment
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="kind must be the name of a kind, such as Deployment"
	Kind string `json:"kind,omitempty"`

	// name of the workload.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// Plan lists the stages of a rollout.
type Plan struct {
	// stages lists 1 to 20 stages with strictly rising weights. A final step to
	// 100 percent is implied.
	// +optional
	// +listType=atomic
	// +kubebuilder:default={{weight: 1}, {weight: 5}, {weight: 10}, {weight: 20}, {weight: 50}}
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="plan.stages is empty: give at least one stage, as in [{weight: 10, soak: 30m}], or leave it out for the default plan of 1, 5, 10, 20 and 50 percent"
	// +kubebuilder:validation:XValidation:rule="self.exists(s, !has(s.weight) || (type(s.weight) == string && !s.weight.matches('^(100([.]0{1,2})?|[0-9]{1,2}([.][0-9]{1,2})?)$'))) || (self.map(s, double(s.weight)).isSorted() && self.all(s, self.exists_one(t, double(t.weight) == double(s.weight))))",message="the weights of plan.stages must rise strictly from stage to stage: put them in rising order and remove repeated ones"
	Stages []Stage `json:"stages,omitempty"`

	// windows lists up to 16 times of the week in which the canary's share may be raised.
	// Outside of them it is held, and a rollback still happens. Default: any time.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Windows []Window `json:"windows,omitempty"`
}

// Window is a time of the week, by the clock on the wall of a time zone. It belongs to
// the day on which it begins: a window from 22:00 to 06:00 ends on the next day.
//
// +kubebuilder:validation:XValidation:rule="(has(self.from) ? self.from : '00:00') != (has(self.to) ? self.to : '24:00') || (has(self.from) && self.from == '24:00')",message="from and to of a window are the same, which leaves no time in it: leave both out for the whole day"
type Window struct {
	// days of the week on which the window begins: Mon, Tue, Wed, Thu, Fri, Sat, Sun.
	// Default: every day.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	Days []Day `json:"days,omitempty"`

	// from is when the window begins, from "00:00" to "23:59". A time that the clock
	// skips in spring is taken as the moment of the change. Default: "00:00".
	// +optional
	// +kubebuilder:default="00:00"
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="from must be a time of day from \"00:00\" to \"23:59\", such as \"09:00\""
	From string `json:"from,omitempty"`

	// to is when the window ends, from "00:00" to "24:00"; before from, it is on the next
	// day. Default: "24:00".
	// +optional
	// +kubebuilder:default="24:00"
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$')",message="to must be a time of day from \"00:00\" to \"24:00\", such as \"17:00\""
	To string `json:"to,omitempty"`

	// timeZone is a name of the IANA time zone database, such as Europe/Berlin.
	// Default: UTC.
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",message="timeZone must be a name of the IANA time zone database, such as Europe/Berlin or UTC"
	TimeZone string `json:"timeZone,omitempty"`
}

// Day is a day of the week.
// +kubebuilder:validation:Enum=Mon;Tue;Wed;Thu;Fri;Sat;Sun
type Day string

// Stage is one entry of the plan: a share of the traffic for the canary, and how
// long it must hold.
//
// +kubebuilder:validation:XValidation:rule="has(self.weight)",message="weight is required: give the canary's share of the traffic in percent, such as 5"
type Stage struct {
	// weight is the canary's share of the traffic in percent, above 0 and at most 100.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self != 0 : (!self.matches('^(100([.]0{1,2})?|[0-9]{1,2}([.][0-9]{1,2})?)$') || double(self) > 0.0)",message="the weight of a stage must be above 0, since a canary without traffic proves nothing: raise the weight or remove the stage"
	Weight Percent `json:"weight,omitempty"`

	// soak is how long the share must be held, counted from the moment the gateway
	// has confirmed it: from 1s to 720h. Default: 30m.
	// +optional
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('720h')",message="soak must be a duration from 1s to 720h, such as 30m or 1h30m"
	Soak Duration `json:"soak,omitempty"`

	// approval is Required to wait, after the soak, for the approve command.
	// +optional
	// +kubebuilder:default=None
	Approval Approval `json:"approval,omitempty"`
}

// Approval says whether a person must agree before a stage is left.
// +kubebuilder:validation:Enum=None;Required
type Approval string

const (
	// ApprovalNone leaves a stage as soon as its soak and its gate allow.
	ApprovalNone Approval = "None"
	// ApprovalRequired waits for the approve command as well.
	ApprovalRequired Approval = "Required"
)

// Ramp limits how fast the canary's share may rise. The next raise is at most
// the present share times maxChangePercent, but no less than minIncrease and no
// more than maxIncrease, and never passes the stage's weight.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minIncrease) || !has(self.maxIncrease) || (type(self.minIncrease) == string && !self.minIncrease.matches('^[0-9]{1,3}([.][0-9]{1,2})?$')) || (type(self.maxIncrease) == string && !self.maxIncrease.matches('^[0-9]{1,3}([.][0-9]{1,2})?$')) || double(self.maxIncrease) <= 0.0 || double(self.minIncrease) <= double(self.maxIncrease)",message="ramp.minIncrease (default 1) is above ramp.maxIncrease (default 10): lower minIncrease or raise maxIncrease"
type Ramp struct {
	// minIncrease is the raise, in points, that is always allowed. Above 0. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self != 0 : (!self.matches('^[0-9]{1,3}([.][0-9]{1,2})?$') || double(self) > 0.0)",message="ramp.minIncrease must be above 0, or the share would never rise: raise it, or leave it out for 1"
	MinIncrease Percent `json:"minIncrease,omitempty"`

	// maxIncrease is the largest raise, in points, per adjustment. Above 0. Default: 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self != 0 : (!self.matches('^[0-9]{1,3}([.][0-9]{1,2})?$') || double(self) > 0.0)",message="ramp.maxIncrease must be above 0, or the share would never rise: raise it, or leave it out for 10"
	MaxIncrease Percent `json:"maxIncrease,omitempty"`

	// maxChangePercent is the largest raise per adjustment in percent of the present
	// share. Above 0. Default: 20.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self != 0 : (!self.matches('^[0-9]{1,3}([.][0-9]{1,2})?$') || double(self) > 0.0)",message="ramp.maxChangePercent must be above 0: raise it, or leave it out for 20"
	MaxChangePercent Percent `json:"maxChangePercent,omitempty"`

	// interval is the shortest time from the confirmation of one share to the next
	// raise: from 1s to 24h. Default: 1m.
	// +optional
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="ramp.interval must be a duration from 1s to 24h, such as 1m"
	Interval Duration `json:"interval,omitempty"`

	// warmup limits the first traffic of a canary that had none: caches are cold and
	// code is not compiled yet.
	// +optional
	// +kubebuilder:default={}
	Warmup Warmup `json:"warmup,omitempty"`
}

// Warmup limits the share of a cold canary: one that had no traffic, since the
// attempt began, after it was not ready, or after a break. Its first share is
// initialPercent of the stage's weight, within ramp.minIncrease and ramp.maxIncrease.
// It is held for soak, and then rises by incrementPercent of the stage's weight per
// ramp.interval up to the stage's weight. A canary whose first share is the stage's
// weight is watched by the stage itself.
type Warmup struct {
	// initialPercent is the first share in percent of the stage's weight. Above 0. Default: 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self != 0 : (!self.matches('^[0-9]{1,3}([.][0-9]{1,2})?$') || double(self) > 0.0)",message="ramp.warmup.initialPercent must be above 0, since a canary without traffic never warms up: raise it, or leave it out for 30; 100 switches the warm-up off"
	InitialPercent Percent `json:"initialPercent,omitempty"`

	// soak is how long the first share is held, and for how long at most a cold canary is
	// not compared with stable: from 0s to 24h. Default: 10m.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) <= duration('24h')",message="ramp.warmup.soak must be a duration from 0s to 24h, such as 10m"
	Soak Duration `json:"soak,omitempty"`

	// incrementPercent is a later raise in percent of the stage's weight. Above 0. Default: 20.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self != 0 : (!self.matches('^[0-9]{1,3}([.][0-9]{1,2})?$') || double(self) > 0.0)",message="ramp.warmup.incrementPercent must be above 0, or the canary would never warm up: raise it, or leave it out for 20"
	IncrementPercent Percent `json:"incrementPercent,omitempty"`
}

// OnUnhealthy says what happens when the canary is unhealthy.
//
// +kubebuilder:validation:XValidation:rule="(!has(self.cooldown) && !has(self.maxTrips)) || (has(self.action) && self.action == 'Break')",message="onUnhealthy.cooldown and onUnhealthy.maxTrips belong to action Break: set action: Break, or remove them"
type OnUnhealthy struct {
	// action is Rollback, Pause or Break. Rollback gives stable all traffic, until the
	// revision changes or a person says retry. Pause holds the canary's share until
	// a person says resume or abort. Break gives stable all traffic for the time of
	// cooldown, after which the canary is tried again with half of the stage's weight.
	// +optional
	// +kubebuilder:default=Rollback
	Action UnhealthyAction `json:"action,omitempty"`

	// for is how long a breach of health must last before the action is taken: from
	// 0s to 24h. Default: 1m.
	// +optional
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) <= duration('24h')",message="onUnhealthy.for must be a duration from 0s to 24h, such as 1m"
	For Duration `json:"for,omitempty"`

	// cooldown is how long stable keeps all traffic after a break: from 1s to 24h.
	// Only with action Break. Default: 5m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="onUnhealthy.cooldown must be a duration from 1s to 24h, such as 5m"
	Cooldown Duration `json:"cooldown,omitempty"`

	// maxTrips is how many breaks an attempt may have: 1 to 20. The canary that is
	// unhealthy once more is rolled back. Only with action Break. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	MaxTrips int32 `json:"maxTrips,omitempty"`
}

// UnhealthyAction is what is done about an unhealthy canary.
// +kubebuilder:validation:Enum=Rollback;Pause;Break
type UnhealthyAction string

const (
	// UnhealthyRollback gives stable all traffic, for good.
	UnhealthyRollback UnhealthyAction = "Rollback"
	// UnhealthyPause holds the share until a person says resume or abort.
	UnhealthyPause UnhealthyAction = "Pause"
	// UnhealthyBreak gives stable all traffic for a while, and then tries again.
	UnhealthyBreak UnhealthyAction = "Break"
)

// Promotion says what happens when the canary has passed the whole plan.
type Promotion struct {
	// mode is Await or UpdateStable. With Await the canary serves everything until stable
	// has been updated: once its workload has the canary's pod template (apart from
	// labels) and is rolled out, or a person says finish, the share ramps back to stable.
	// With UpdateStable the controller copies the pod template's spec and annotations to
	// stable's workload itself. Default: Await.
	// +optional
	// +kubebuilder:default=Await
	Mode PromotionMode `json:"mode,omitempty"`
}

// PromotionMode is what happens after the last stage.
// +kubebuilder:validation:Enum=Await;UpdateStable
type PromotionMode string

const (
	// PromotionAwait waits until stable has been updated.
	PromotionAwait PromotionMode = "Await"
	// PromotionUpdateStable updates stable.
	PromotionUpdateStable PromotionMode = "UpdateStable"
)
