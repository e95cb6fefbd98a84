// Package schedule computes the earliest course of a rollout from its spec alone:
// every change of the canary's share, when it can happen at the earliest, what
// bounds it and what it waits for.
//
// It takes for granted that gateways confirm at once, that every check passes, and
// that people approve at once. All times are counted from the moment at which the
// gateways have confirmed a share of 0, and that moment is taken to lie on the grid
// of health.window. It is pure: it has no clock and no randomness.
package schedule

import (
	"github.com/weightedrollout/weightedrollout/internal/simulate"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// Schedule is the earliest course of a rollout. Shares are in percent, 0 to 100;
// times are in seconds in JSON.
type Schedule struct {
	// Name and Revision are those of the rollout.
	Name     string `json:"name"`
	Revision string `json:"revision"`
	// RequestsPerSecond is the traffic of both tracks together; 0: it is not known, and
	// every wait for a number of requests is taken to end with the first full window.
	RequestsPerSecond float64 `json:"requestsPerSecond,omitempty"`
	// ErrorPercent is the error rate of stable that differences are measured against;
	// absent without RequestsPerSecond.
	ErrorPercent *float64 `json:"errorPercent,omitempty"`
	// Stages are those of the plan, with the last step to 100 percent.
	Stages []Stage `json:"stages"`
	// Adjustments are the changes of the canary's share, in order of time.
	Adjustments []Adjustment `json:"adjustments"`
	// Duration is the time until the canary is promoted, or, with Stuck, until nothing
	// can happen any more.
	Duration simulate.Elapsed `json:"duration"`
	// Windows say when raises may happen; empty: at any time. The course is that of a
	// window that never closes.
	Windows string `json:"windows,omitempty"`
	// Approvals counts the stages that wait for a person.
	Approvals int `json:"approvals"`
	// Stalled says why the rollout never starts; nil if it does. All else is then what
	// would happen without that.
	Stalled *Stall `json:"stalled,omitempty"`
	// Stuck says why the rollout is never promoted; empty if it is.
	Stuck string `json:"stuck,omitempty"`
	// stuckBy is the field that asks for more requests than there are.
	stuckBy string
	// Return is the way back to stable after the promotion; nil with Stuck.
	Return *Return `json:"return,omitempty"`
	// Unmeasured says that health.disabled is set, so that no stage proves anything.
	Unmeasured bool `json:"unmeasured,omitempty"`
	// Warnings say what is doubtful about the plan.
	Warnings []Warning `json:"warnings,omitempty"`
}

// Stage is one stage of the plan.
type Stage struct {
	// Position names it: "2/6".
	Position string `json:"position"`
	// Weight is the canary's share of the stage.
	Weight float64 `json:"weight"`
	// Soak is how long the share is held at least, and Approval says that a person must
	// agree as well.
	Soak     simulate.Elapsed `json:"soak"`
	Approval bool             `json:"approval,omitempty"`
	// Steps is the number of adjustments that lead to the share.
	Steps int `json:"steps"`
	// BeginsAt is when the first of them happens, ReachedAt when the share is reached,
	// and EndsAt when the stage can be left; absent if that is never so.
	BeginsAt  *simulate.Elapsed `json:"beginsAt,omitempty"`
	ReachedAt *simulate.Elapsed `json:"reachedAt,omitempty"`
	EndsAt    *simulate.Elapsed `json:"endsAt,omitempty"`
	// Traffic tells what the stage can prove; absent if the traffic is not known, or
	// nothing is measured.
	Traffic *Traffic `json:"traffic,omitempty"`
}

// Stall is a fault of a route that a person has to put right before anything rises.
type Stall struct {
	// Reason and Message are those of the condition Stalled.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Return is how stable gets all traffic back after the finish command, or by itself, by
// the limits of the ramp and on evidence about stable.
type Return struct {
	// ByItself says that the return begins without a command once stable's workload has
	// the canary's pod template, from a person or by promotion.mode UpdateStable.
	ByItself bool `json:"byItself,omitempty"`
	// Steps is the number of changes of the share.
	Steps int `json:"steps"`
	// Duration is the time from the beginning of the return until the rollout is
	// completed, or, with Stuck, until nothing can happen any more. It is taken to begin
	// on the grid of health.window, and at least ramp.interval after the last raise.
	Duration simulate.Elapsed `json:"duration"`
	// Stuck says why that is never so; empty if it is.
	Stuck string `json:"stuck,omitempty"`
	// stuckBy is the field that asks for more requests than there are.
	stuckBy string
}

// Traffic is what a stage gets to see while it holds its share.
type Traffic struct {
	// CanaryRequests and StableRequests are the requests from ReachedAt to EndsAt, of
	// which only those of the last hour count: older ones are forgotten.
	CanaryRequests float64 `json:"canaryRequests"`
	StableRequests float64 `json:"stableRequests"`
	// MinRequestsAfter is how long it takes until the canary has had health.minRequests
	// at the stage's share; absent if requests are not counted.
	MinRequestsAfter *simulate.Elapsed `json:"minRequestsAfter,omitempty"`
	// SmallestDifference is the smallest difference between the two tracks' error
	// rates, in points, that the stage can tell from noise; absent if there is none.
	// See SmallestDifference.
	SmallestDifference *float64 `json:"smallestDifference,omitempty"`
}

// Adjustment is a raise of the canary's share.
type Adjustment struct {
	// At is when it happens at the earliest.
	At simulate.Elapsed `json:"at"`
	// Stage names the stage: "2/6".
	Stage string `json:"stage"`
	// From and To are the canary's share.
	From float64 `json:"from"`
	To   float64 `json:"to"`
	// Weights are what the routes carry then, in the order of the spec.
	Weights []simulate.RouteWeights `json:"weights"`
	// Bound names what keeps the raise from being larger.
	Bound weights.Bound `json:"bound"`
	// Waits are what had to pass since the adjustment before, the longest first.
	Waits []Wait `json:"waits"`
}

// Wait is something that a raise waits for.
type Wait struct {
	// For says what it is.
	For simulate.Cause `json:"for"`
	// Lasts is the time that it takes, counted from the adjustment before. It is 0 for
	// an approval, which takes as long as a person takes.
	Lasts simulate.Elapsed `json:"lasts"`
}

// Warning is a doubt about a plan.
type Warning struct {
	// Field is what it is about: a path in the spec, or a route.
	Field string `json:"field"`
	// Message says what is wrong, and the cure.
	Message string `json:"message"`
}

// String writes the warning in one line.
func (w Warning) String() string { return w.Field + ": " + w.Message }
