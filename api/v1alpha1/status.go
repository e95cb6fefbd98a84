package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WeightedRolloutStatus is the record of a rollout. The routes are its output:
// what is written there follows from what is written here.
type WeightedRolloutStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase sums up the status for people.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// revision is the revision under test.
	// +optional
	Revision string `json:"revision,omitempty"`

	// stableRevision is the revision that stable runs: what spec.stable.revision says, or
	// what a rollout has completed since, unless stable's pod template was changed again.
	// +optional
	StableRevision string `json:"stableRevision,omitempty"`

	// statedStableRevision is the spec.stable.revision that stableRevision was last taken
	// from.
	// +optional
	StatedStableRevision string `json:"statedStableRevision,omitempty"`

	// attempt counts the walks through the plan, from 1. A new revision and a retry
	// start a new one.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`

	// outcome says how far the attempt has come.
	// +optional
	Outcome Outcome `json:"outcome,omitempty"`

	// outcomeReason says why the attempt ended as it did.
	// +optional
	OutcomeReason string `json:"outcomeReason,omitempty"`

	// outcomeMessage says in words why the attempt ended as it did.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	OutcomeMessage string `json:"outcomeMessage,omitempty"`

	// startedAt is when the attempt began.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`

	// stage is the present stage of the plan.
	// +optional
	Stage *StageStatus `json:"stage,omitempty"`

	// share is the canary's part of the traffic.
	// +optional
	Share ShareStatus `json:"share,omitzero"`

	// warmup is set while the canary is cold: its share is limited by ramp.warmup.
	// +optional
	Warmup *WarmupStatus `json:"warmup,omitempty"`

	// breaker counts the breaks of the attempt, and is open while the canary cools down.
	// +optional
	Breaker *BreakerStatus `json:"breaker,omitempty"`

	// pause is set once onUnhealthy.action Pause has stopped the rollout, or an unhealthy
	// stable a return that began below 100 percent, until a person says resume.
	// +optional
	Pause *PauseStatus `json:"pause,omitempty"`

	// promote is true after the promote command: soaks, approvals and windows are over,
	// gates are not.
	// +optional
	Promote bool `json:"promote,omitempty"`

	// promoteGeneration is the generation of the spec that the promote command was given
	// for. A pause that was in it does not hold any more.
	// +optional
	PromoteGeneration int64 `json:"promoteGeneration,omitempty"`

	// progress is how far the attempt has come, and how long it has waited since for what
	// spec.progressDeadline counts.
	// +optional
	Progress *ProgressStatus `json:"progress,omitempty"`

	// contention is set while another writer keeps changing the weights.
	// +optional
	Contention *ContentionStatus `json:"contention,omitempty"`

	// capacity says how many replicas the traffic takes, and what was scaled for it.
	// +optional
	Capacity *CapacityStatus `json:"capacity,omitempty"`

	// warmPods are up to 16 pods of the canary, by the beginning of their uid, that have
	// had traffic. Once none of them is left, the canary is cold.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	WarmPods []string `json:"warmPods,omitempty"`

	// warmPodsDueAt is when warmPods are brought up to date, since half of them are gone or
	// as many again have joined.
	// +optional
	WarmPodsDueAt *metav1.MicroTime `json:"warmPodsDueAt,omitempty"`

	// stableUpdate is set once promotion.mode UpdateStable has set out to update stable, or
	// stable was seen with the canary's pod template.
	// +optional
	StableUpdate *StableUpdateStatus `json:"stableUpdate,omitempty"`

	// routes says what is known of each route.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Routes []RouteStatus `json:"routes,omitempty"`

	// verdict is the last verdict on the track under test, as of the last transition.
	// +optional
	Verdict *VerdictStatus `json:"verdict,omitempty"`

	// noDataSince is since when there has been no verdict, because the metrics cannot be
	// read, or with onNoData Rollback for want of requests as well. Absent otherwise.
	// +optional
	NoDataSince *metav1.MicroTime `json:"noDataSince,omitempty"`

	// comparison is what the earlier shares of this attempt have shown of the canary
	// beside stable. It is brought up to date with every change of the share.
	// +optional
	Comparison *ComparisonStatus `json:"comparison,omitempty"`

	// command is the last command that was read from the annotation.
	// +optional
	Command *CommandStatus `json:"command,omitempty"`

	// nextTransitionTime is the earliest time at which the share can change, when
	// only time is awaited.
	// +optional
	NextTransitionTime *metav1.Time `json:"nextTransitionTime,omitempty"`

	// conditions are Ready, Reconciling, Stalled, RouteAccepted, Healthy, Paused and
	// TrafficMatchesWeights.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// history holds the last 10 ended attempts, newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []AttemptRecord `json:"history,omitempty"`
}

// Phase sums up a rollout in one word.
type Phase string

const (
	// PhasePending has not begun: something must be put right first.
	PhasePending Phase = "Pending"
	// PhaseProgressing walks through the plan.
	PhaseProgressing Phase = "Progressing"
	// PhasePaused is held by spec.paused, or since the canary was unhealthy and
	// onUnhealthy.action is Pause.
	PhasePaused Phase = "Paused"
	// PhaseCoolingDown has given all traffic back to stable for onUnhealthy.cooldown.
	PhaseCoolingDown Phase = "CoolingDown"
	// PhaseAwaitingApproval waits for the approve command.
	PhaseAwaitingApproval Phase = "AwaitingApproval"
	// PhasePromoted has passed the plan; the canary serves everything.
	PhasePromoted Phase = "Promoted"
	// PhaseReturning moves the traffic back to the updated stable.
	PhaseReturning Phase = "Returning"
	// PhaseCompleted is over; stable runs the revision and serves everything.
	PhaseCompleted Phase = "Completed"
	// PhaseRolledBack has given all traffic back to stable.
	PhaseRolledBack Phase = "RolledBack"
	// PhaseIdle has nothing to do: stable runs the revision that the spec names.
	PhaseIdle Phase = "Idle"
)

// Outcome says how far an attempt has come.
// +kubebuilder:validation:Enum=InProgress;Promoted;Returning;Completed;RolledBack;Superseded
type Outcome string

const (
	// OutcomeInProgress walks through the plan.
	OutcomeInProgress Outcome = "InProgress"
	// OutcomePromoted has passed the plan; the canary serves everything.
	OutcomePromoted Outcome = "Promoted"
	// OutcomeReturning moves the traffic back to the updated stable.
	OutcomeReturning Outcome = "Returning"
	// OutcomeCompleted is over: stable runs the revision.
	OutcomeCompleted Outcome = "Completed"
	// OutcomeRolledBack gave all traffic back to stable. It is final until the
	// revision changes or a person says retry.
	OutcomeRolledBack Outcome = "RolledBack"
	// OutcomeSuperseded was ended by another revision.
	OutcomeSuperseded Outcome = "Superseded"
)

// StageStatus is the present place in the plan.
type StageStatus struct {
	// index of the stage in the plan, from 0. The implied last step to 100 percent
	// has the index after the last stage.
	Index int32 `json:"index"`

	// position is the stage among all, such as "3/6".
	// +optional
	Position string `json:"position,omitempty"`

	// weight is the canary's share in this stage. While the traffic returns to stable it is
	// the share that the return began at: the canary gets no more back.
	Weight Percent `json:"weight"`

	// soak is how long the share must hold in this stage.
	// +optional
	Soak string `json:"soak,omitempty"`

	// startedAt is when the stage began, or began anew after an edit of the plan.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`

	// skipped is true once a person has said skip in this stage.
	// +optional
	Skipped bool `json:"skipped,omitempty"`

	// approved is true once a person has approved leaving this stage.
	// +optional
	Approved bool `json:"approved,omitempty"`

	// scaledBack is true since a degraded canary was scaled back in this stage, until it
	// has the stage's share again. Each raise then needs as much evidence as the end of
	// a stage.
	// +optional
	ScaledBack bool `json:"scaledBack,omitempty"`

	// clockStoppedSince is when the soak's clock stopped, since the canary is degraded
	// or the metrics do not let it be judged. Absent while it runs.
	// +optional
	ClockStoppedSince *metav1.MicroTime `json:"clockStoppedSince,omitempty"`

	// clockStoppedFor is how long the soak's clock has stood still at the present share.
	// +optional
	ClockStoppedFor string `json:"clockStoppedFor,omitempty"`
}

// WarmupStatus says how far a cold canary has warmed up.
type WarmupStatus struct {
	// reason is why the canary is cold: Started, NotReady, NotResolved, PodsReplaced or Break.
	// +optional
	Reason ColdReason `json:"reason,omitempty"`

	// soaked is true once the first share has been held for ramp.warmup.soak.
	// +optional
	Soaked bool `json:"soaked,omitempty"`

	// recovered is true once three good evaluations in a row, after a break, have ended
	// the hold: the share then rises by the larger of what ramp and ramp.warmup allow.
	// +optional
	Recovered bool `json:"recovered,omitempty"`

	// heldSince is since when the canary has had its traffic. Once it has had it for
	// ramp.warmup.soak it is compared with stable, cold or not.
	// +optional
	HeldSince *metav1.MicroTime `json:"heldSince,omitempty"`

	// heldFor is how long the canary had its traffic before the warm-up was interrupted.
	// +optional
	HeldFor string `json:"heldFor,omitempty"`
}

// ColdReason says why a canary is cold.
type ColdReason string

const (
	// ColdStarted is the first traffic of an attempt.
	ColdStarted ColdReason = "Started"
	// ColdNotReady is the first traffic after the canary was not ready.
	ColdNotReady ColdReason = "NotReady"
	// ColdNotResolved is the first traffic after a gateway could not resolve it.
	ColdNotResolved ColdReason = "NotResolved"
	// ColdPodsReplaced is the first traffic after every pod of the canary was replaced.
	ColdPodsReplaced ColdReason = "PodsReplaced"
	// ColdBreak is the first traffic after a break.
	ColdBreak ColdReason = "Break"
)

// BreakerStatus is what the breaker has done in this attempt.
type BreakerStatus struct {
	// trips counts the breaks of this attempt.
	Trips int32 `json:"trips"`

	// openedAt is when the last break began. Absent once the canary is tried again.
	// +optional
	OpenedAt *metav1.MicroTime `json:"openedAt,omitempty"`

	// message says why: the check, the value, the limit.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// PauseStatus says why a rollout was stopped.
type PauseStatus struct {
	// message says why: the check, the value, the limit.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// at is when it was stopped.
	At metav1.MicroTime `json:"at"`
}

// VerdictState is what the evidence says.
// +kubebuilder:validation:Enum=Healthy;Degraded;Unhealthy;Unknown
type VerdictState string

const (
	// VerdictHealthy says that every check has passed on enough requests.
	VerdictHealthy VerdictState = "Healthy"
	// VerdictDegraded says that a limit is exceeded, but not yet for long enough to act,
	// or that a target is missed, or that the health score is low.
	VerdictDegraded VerdictState = "Degraded"
	// VerdictUnhealthy says that a limit has been exceeded for onUnhealthy.for, or that
	// the canary is proven to be worse than stable.
	VerdictUnhealthy VerdictState = "Unhealthy"
	// VerdictUnknown says that nothing can be said, and why.
	VerdictUnknown VerdictState = "Unknown"
)

// VerdictStatus is a verdict at the time of a transition.
type VerdictStatus struct {
	// state is what the evidence says.
	State VerdictState `json:"state"`

	// reason is why.
	// +optional
	Reason string `json:"reason,omitempty"`

	// check names the check that decided: error-rate, latency, requests, or one of
	// the spec's own.
	// +optional
	Check string `json:"check,omitempty"`

	// message says it in words.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// score is the health score, from 0.2 to 1. Absent where nothing was measured.
	// +optional
	Score string `json:"score,omitempty"`

	// at is when the verdict was first this one.
	// +optional
	At *metav1.MicroTime `json:"at,omitempty"`
}

// ComparisonStatus is the record of the comparison with stable, which is one test
// over the whole attempt. The texts are the controller's own: natural logarithms of
// the parts of the test's wealth, separated by blanks.
type ComparisonStatus struct {
	// errors compares failed requests.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Errors string `json:"errors,omitempty"`

	// slow compares requests that took longer than latency.max.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Slow string `json:"slow,omitempty"`

	// through is the end of the evidence that is in it.
	// +optional
	Through *metav1.MicroTime `json:"through,omitempty"`
}

// CommandStatus is the last command that was read.
type CommandStatus struct {
	// id of the command.
	// +kubebuilder:validation:MaxLength=253
	ID string `json:"id"`

	// verb of the command.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Verb string `json:"verb,omitempty"`

	// accepted is true if the command was carried out.
	Accepted bool `json:"accepted"`

	// message says what became of it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// AttemptRecord is an ended attempt.
type AttemptRecord struct {
	// attempt is its number.
	Attempt int64 `json:"attempt"`

	// revision that was under test.
	Revision string `json:"revision"`

	// outcome is how it ended.
	Outcome Outcome `json:"outcome"`

	// reason is why.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message says it in words: the check, the value, the limit.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// weight is the canary's share when it ended.
	// +optional
	Weight *Percent `json:"weight,omitempty"`

	// startedAt is when it began.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`

	// endedAt is when it ended.
	EndedAt metav1.MicroTime `json:"endedAt"`
}
