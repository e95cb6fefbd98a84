package simulate

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// Elapsed is the time since the start of a simulation. In JSON it is a number of
// seconds.
type Elapsed time.Duration

// String writes hours, minutes and seconds: "1:02:03", or "1:02:03.500".
func (e Elapsed) String() string {
	d := time.Duration(e)
	text := fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
	if rest := d % time.Second; rest != 0 {
		text += fmt.Sprintf(".%03d", rest.Milliseconds())
	}
	return text
}

// Seconds returns the time in seconds.
func (e Elapsed) Seconds() float64 { return time.Duration(e).Seconds() }

// MarshalJSON writes the time in seconds.
func (e Elapsed) MarshalJSON() ([]byte, error) { return json.Marshal(e.Seconds()) }

// Result is what happened in a simulation. It is plain data. Shares and rates are in
// percent, 0 to 100; numbers of requests are whole, except in an exact simulation,
// where they are expected values.
type Result struct {
	// Name of the rollout.
	Name string `json:"name"`
	// Start is the date and time at which the simulation begins, in UTC.
	Start time.Time `json:"start"`
	// Mode is spec.mode. In mode Observe the controller writes nothing, and the
	// simulation runs as Enforce would.
	Mode v1alpha1.Mode `json:"mode,omitempty"`
	// Picker chose the backend of each request; empty in an exact simulation.
	Picker string `json:"picker,omitempty"`
	// Seed of the randomness.
	Seed uint64 `json:"seed"`
	// Exact says that nothing was drawn: requests and failures are expected values.
	Exact bool `json:"exact"`
	// Outcome is how it ended.
	Outcome Outcome `json:"outcome"`
	// Stages are the stages that were begun, in order of time.
	Stages []Stage `json:"stages"`
	// Adjustments are the changes of the canary's share, in order of time.
	Adjustments []Adjustment `json:"adjustments"`
	// Events are what the controller told and what the scenario did, in order of time.
	Events []Event `json:"events"`
	// Samples are the traffic and the verdict, one for each health.interval; the first
	// and the last can be about a shorter time.
	Samples []Sample `json:"samples"`
	// Pickers compares the ways to choose a backend on this run's traffic; nil in an
	// exact simulation, and if the canary held no share between 0 and 100 percent.
	Pickers *PickerComparison `json:"pickers,omitempty"`
	// Notes say what the simulation took for granted.
	Notes []string `json:"notes,omitempty"`
}

// Ending says why a simulation stopped.
type Ending string

const (
	// EndSettled says that nothing could change any more: the revision was promoted or
	// rolled back, or only a person could go on.
	EndSettled Ending = "Settled"
	// EndDuration says that the scenario's duration was over.
	EndDuration Ending = "Duration"
	// EndLimit says that the longest time of a simulation, 72h, was over.
	EndLimit Ending = "Limit"
)

// Outcome is how a simulation ended, and what it took.
type Outcome struct {
	// Ending says why the simulation stopped.
	Ending Ending `json:"ending"`
	// Phase, State and Revision are those of the rollout's status, and Attempt counts
	// the walks through the plan.
	Phase    v1alpha1.Phase   `json:"phase"`
	State    v1alpha1.Outcome `json:"state"`
	Revision string           `json:"revision"`
	Attempt  int64            `json:"attempt"`
	// ReachedAt is when the rollout came into the phase. What could still change after
	// that lets the simulation go on.
	ReachedAt Elapsed `json:"reachedAt"`
	// Share is the canary's share at the end, in percent.
	Share float64 `json:"share"`
	// Reason and Message are those of the condition Ready.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Duration of the simulation.
	Duration Elapsed `json:"duration"`
	// Stable and Canary are what the two tracks were asked. The requests that met a
	// canary are Canary.Requests.
	Stable Traffic `json:"stable"`
	Canary Traffic `json:"canary"`
	// Wakeups counts the moments at which the controller had to look, and Passes how
	// often it decided.
	Wakeups int `json:"wakeups"`
	Passes  int `json:"passes"`
	// StatusWrites and RouteWrites count its writes to the API server.
	StatusWrites int `json:"statusWrites"`
	RouteWrites  int `json:"routeWrites"`
}

// Traffic counts requests.
type Traffic struct {
	// Requests of all kinds, and those of them that failed.
	Requests float64 `json:"requests"`
	Failed   float64 `json:"failed"`
}

// FailedPercent is the part of the requests that failed, in percent; 0 without a
// request.
func (t Traffic) FailedPercent() float64 {
	if t.Requests == 0 {
		return 0
	}
	return t.Failed / t.Requests * 100
}

// Total returns what both tracks were asked.
func (o Outcome) Total() Traffic {
	return Traffic{Requests: o.Stable.Requests + o.Canary.Requests, Failed: o.Stable.Failed + o.Canary.Failed}
}

// Cause is why a share was changed at this moment and not before: for a raise, what
// was waited for last.
type Cause string

const (
	// CauseStart is the end of ramp.interval at 0 percent, from which a canary starts.
	CauseStart Cause = "Start"
	// CauseSoak is the end of a stage's soak.
	CauseSoak Cause = "Soak"
	// CauseInterval is the end of ramp.interval.
	CauseInterval Cause = "Interval"
	// CauseEvidence is a verdict on enough requests.
	CauseEvidence Cause = "Evidence"
	// CauseWarmup is the end of ramp.warmup.soak.
	CauseWarmup Cause = "Warmup"
	// CauseApproval is a person's approval.
	CauseApproval Cause = "Approval"
	// CauseCooldown is the end of the cool-down after a break.
	CauseCooldown Cause = "Cooldown"
	// CauseResume is the end of a pause.
	CauseResume Cause = "Resume"
	// CauseReady is a track's first ready endpoint.
	CauseReady Cause = "Ready"
	// CauseCommand is a person's command, such as promote or finish.
	CauseCommand Cause = "Command"
)

// Adjustment is a change of the canary's share.
type Adjustment struct {
	// At is when it was decided and written.
	At Elapsed `json:"at"`
	// ConfirmedAt is when every gateway had taken it; absent if that was never so.
	ConfirmedAt *Elapsed `json:"confirmedAt,omitempty"`
	// From and To are the canary's share in percent.
	From float64 `json:"from"`
	To   float64 `json:"to"`
	// Weights are what the routes carry then, in the order of the spec.
	Weights []RouteWeights `json:"weights"`
	// Attempt and Stage ("2/6") say where in the plan the rollout is then.
	Attempt int64  `json:"attempt"`
	Stage   string `json:"stage,omitempty"`
	// Cause says why the share was changed now. For a raise it is what was waited for
	// last; for a lowering it is the reason of the condition Ready or of the event,
	// such as Unhealthy.
	Cause Cause `json:"cause"`
	// Bound says what kept a raise from being larger; empty for a lowering.
	Bound string `json:"bound,omitempty"`
}

// Raise tells whether the canary's share rises.
func (a Adjustment) Raise() bool { return a.To > a.From }

// RouteWeights are the pair's weights in a route.
type RouteWeights struct {
	// Route is its name.
	Route string `json:"route"`
	// Stable and Canary are the two weights.
	Stable int32 `json:"stable"`
	Canary int32 `json:"canary"`
}

// String writes the weights: "95/5".
func (w RouteWeights) String() string { return fmt.Sprintf("%d/%d", w.Stable, w.Canary) }

// Stage is a stage of the plan that was begun.
type Stage struct {
	// Attempt and Position ("2/6") name it.
	Attempt  int64  `json:"attempt"`
	Position string `json:"position"`
	// Weight is the canary's share of the stage, in percent.
	Weight float64 `json:"weight"`
	// BeganAt is when the stage began.
	BeganAt Elapsed `json:"beganAt"`
	// ReachedAt is when the gateways first had the stage's whole share; absent if that
	// was never so.
	ReachedAt *Elapsed `json:"reachedAt,omitempty"`
	// EndedAt is when the stage was left, for the next one or for the attempt's end;
	// absent if it was the present one when the simulation stopped.
	EndedAt *Elapsed `json:"endedAt,omitempty"`
	// Lasted is the time from BeganAt to EndedAt, or to the end of the simulation.
	Lasted Elapsed `json:"lasted"`
	// CanaryRequests is how many requests met the canary in that time.
	CanaryRequests float64 `json:"canaryRequests"`
}

// Source says who caused an event.
type Source string

const (
	// FromController marks what the controller tells people.
	FromController Source = "Controller"
	// FromScenario marks what the scenario does to the rollout.
	FromScenario Source = "Scenario"
)

// Event is something that happened.
type Event struct {
	// At is when.
	At Elapsed `json:"at"`
	// Source says who caused it.
	Source Source `json:"source"`
	// Warning tells a warning from a normal event.
	Warning bool `json:"warning,omitempty"`
	// Reason is one of the API's reasons; empty for an event of the scenario.
	Reason string `json:"reason,omitempty"`
	// Message is a sentence.
	Message string `json:"message"`
}

// Sample is the traffic of one health.interval, and the state of the rollout after it.
type Sample struct {
	// At is the end of the interval.
	At Elapsed `json:"at"`
	// Phase of the rollout.
	Phase v1alpha1.Phase `json:"phase"`
	// Desired is the canary's share that the status asks for, in percent.
	Desired float64 `json:"desired"`
	// Share is the canary's part of the requests of the interval, in percent; 0 without
	// a request.
	Share float64 `json:"share"`
	// Stable and Canary are what the two tracks did.
	Stable TrackSample `json:"stable"`
	Canary TrackSample `json:"canary"`
	// Verdict is what the evidence says.
	Verdict Verdict `json:"verdict"`
}

// TrackSample is what one track did in one interval.
type TrackSample struct {
	Traffic
	// FailedPercent is the part of the requests that failed, in percent.
	FailedPercent float64 `json:"failedPercent"`
	// Latency is the response time at health.latency.percentile (99 without one), in
	// seconds, as a histogram of the gateway's buckets shows it; 0 without a request.
	Latency float64 `json:"latency"`
}

// Verdict is what the evidence said at the end of an interval.
type Verdict struct {
	// State, Reason and Check are those of the verdict.
	State  v1alpha1.VerdictState `json:"state"`
	Reason string                `json:"reason,omitempty"`
	Check  string                `json:"check,omitempty"`
	// Score is the health score, 0.2 to 1; 0: there is none.
	Score float64 `json:"score,omitempty"`
}

// PickerComparison shows how evenly the ways to choose a backend spread the canary's
// requests, on one sample of this run's traffic.
type PickerComparison struct {
	// Sample says in words which traffic was used.
	Sample string `json:"sample"`
	// Rows has one entry for each picker and share.
	Rows []PickerRow `json:"rows"`
}

// PickerRow is what one picker did at one share.
type PickerRow struct {
	// Picker is its name.
	Picker string `json:"picker"`
	// Share is the canary's share by weight, in percent.
	Share float64 `json:"share"`
	// Requests is the size of the sample, and Canary how many of it met the canary.
	Requests int `json:"requests"`
	Canary   int `json:"canary"`
	// LongestRun is the largest number of requests in a row that met the canary.
	LongestRun int `json:"longestRun"`
	// LargestBurst is the largest number of requests that met the canary in any second.
	LargestBurst int `json:"largestBurst"`
	// Deviation is how far the canary's part is off its share, in points, 0 or more.
	Deviation float64 `json:"deviation"`
}
