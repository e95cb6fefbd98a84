package v1alpha1

const (
	// Finalizer keeps a deleted rollout until its routes are safe.
	Finalizer = "weightedrollout.dev/routes"

	// ManagedByAnnotation is set on a managed route. Its
	// value is the name of the rollout; of several, for different rules, their names
	// with commas in between.
	ManagedByAnnotation = "weightedrollout.dev/managed-by"

	// LoweredAnnotation on a managed route says that a rollout lowered its share before, or
	// without, a record of that in its status. It is there in times of trouble only.
	LoweredAnnotation = "weightedrollout.dev/lowered"

	// CommandAnnotation on a rollout carries one Command as JSON.
	CommandAnnotation = "weightedrollout.dev/command"

	// AbortAnnotation on a rollout carries the number of the attempt to abort. It
	// holds for as long as it is there, so nothing can overwrite it unseen.
	AbortAnnotation = "weightedrollout.dev/abort"
)

// OwnAnnotations are the keys of all annotations that the controller reads or writes.
func OwnAnnotations() []string {
	return []string{ManagedByAnnotation, LoweredAnnotation, CommandAnnotation, AbortAnnotation}
}

// Verb is what a command asks for.
type Verb string

const (
	// VerbApprove lets an attempt leave the stage that awaits approval.
	VerbApprove Verb = "approve"
	// VerbPromote ends the soaks and approvals of an attempt, but skips no gate.
	VerbPromote Verb = "promote"
	// VerbSkip ends the present soak, approval or window of a stage, but skips no gate. It
	// is bound to the stage.
	VerbSkip Verb = "skip"
	// VerbRetry starts a new attempt after a rollback.
	VerbRetry Verb = "retry"
	// VerbFinish says that stable has been updated: the share ramps back to it.
	VerbFinish Verb = "finish"
	// VerbResume goes on after onUnhealthy.action Pause has stopped the rollout. Soak
	// and evidence start again at the share where it was stopped. After another writer of
	// the weights has been put right, it goes on as well.
	VerbResume Verb = "resume"
)

// Command is an order to a rollout, written as JSON into CommandAnnotation. Each
// new id is one order. It is bound to an attempt, and approve and skip to a stage,
// so that an old order never opens a later gate.
type Command struct {
	// ID tells two orders apart: any text that has not been used before.
	ID string `json:"id"`
	// Verb is what is asked for.
	Verb Verb `json:"verb"`
	// Attempt is the value of status.attempt that the order is meant for.
	Attempt int64 `json:"attempt"`
	// Stage is the value of status.stage.index that an approve or skip is meant for.
	Stage *int32 `json:"stage,omitempty"`
}
