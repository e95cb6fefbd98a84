package simulate

import (
	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// Scenario says what a simulated rollout meets. Its zero value is a quiet world:
// 100 requests per second, 0.1 percent of which fail on either track, at a median
// response time of 50ms. Times are counted from the start of the simulation.
type Scenario struct {
	// Start is the date and time at which the simulation begins, as in RFC 3339, from
	// 2000 to 2099: plan.windows are open or closed by it. Default: 2026-01-05T09:00:00Z,
	// a Monday.
	Start string `json:"start,omitempty"`
	// Duration is when to stop: above 0s, up to 72h. Default: when nothing can change
	// any more, after 72h at the latest.
	Duration v1alpha1.Duration `json:"duration,omitempty"`
	// Traffic is the number of requests per second over time. Default: 100.
	Traffic []RateStep `json:"traffic,omitempty"`
	// Gateway says how the gateway behaves.
	Gateway Gateway `json:"gateway,omitzero"`
	// Stable and Canary say how the two versions do.
	Stable Track `json:"stable,omitzero"`
	Canary Track `json:"canary,omitzero"`
	// Checks are the values of the spec's own checks over time, by name. A check that is
	// left out gives a value inside its limits.
	Checks map[string][]Step[v1alpha1.Decimal] `json:"checks,omitempty"`
	// Events happen at their times, whatever the rollout does.
	Events []Happening `json:"events,omitempty"`
}

// Step is a change of a value at a time. Steps are given in order of time, and one
// ends before the next begins. Before the first one the value is the default.
type Step[T ~string] struct {
	// At is when the change begins.
	At v1alpha1.Duration `json:"at"`
	// Value is the new value.
	Value T `json:"value"`
	// Over makes the change a straight slope of this length. Default: at once.
	Over v1alpha1.Duration `json:"over,omitempty"`
	// For makes it a spike: that long after At the value goes back to what it was, by
	// the same slope. Default: it stays.
	For v1alpha1.Duration `json:"for,omitempty"`
}

// RateStep is a change of the number of requests per second at a time. At, Over and
// For are those of a Step.
type RateStep struct {
	At v1alpha1.Duration `json:"at"`
	// RPS is the new number of requests per second: 0 to 1000000.
	RPS  v1alpha1.Decimal  `json:"rps"`
	Over v1alpha1.Duration `json:"over,omitempty"`
	For  v1alpha1.Duration `json:"for,omitempty"`
}

// Gateway says how the gateway behaves.
type Gateway struct {
	// Delay is the time from a write to a route until the gateway has taken it and says
	// so: 0s to 1h. Default: 2s.
	Delay v1alpha1.Duration `json:"delay,omitempty"`
}

// Track says how one version does.
type Track struct {
	// ErrorPercent is the part of the requests that fail, in percent. Default: 0.1.
	ErrorPercent []Step[v1alpha1.Percent] `json:"errorPercent,omitempty"`
	// Latency is the median response time: 1ms to 10m. Response times are log-normal
	// with a spread of 0.5, so that the 99th percentile is 3.2 times the median.
	// Default: 50ms.
	Latency []Step[v1alpha1.Duration] `json:"latency,omitempty"`
	// Cold says how pods do that have just got their first traffic. Only the canary can
	// be cold.
	Cold *Cold `json:"cold,omitempty"`
}

// Cold says how pods do from the moment at which the gateway first sends them
// traffic: caches are empty and code is not compiled yet.
type Cold struct {
	// For is how long that lasts: above 0s, up to 24h.
	For v1alpha1.Duration `json:"for"`
	// LatencyFactor multiplies the median response time: 1 to 100. Default: 1.
	LatencyFactor v1alpha1.Decimal `json:"latencyFactor,omitempty"`
	// ErrorPercent is added to the percentage of failures. Default: 0.
	ErrorPercent v1alpha1.Percent `json:"errorPercent,omitempty"`
}

// Readiness says whether a track has a ready endpoint.
type Readiness string

const (
	// Ready is how a track starts.
	Ready Readiness = "Ready"
	// Unready is a track without a ready endpoint. A request that the gateway still
	// sends to it fails.
	Unready Readiness = "Unready"
)

// Metrics says how the metrics server does.
type Metrics string

const (
	// MetricsFine is how it starts.
	MetricsFine Metrics = "Fine"
	// MetricsOutage fails every query. What was missed is read once it is over.
	MetricsOutage Metrics = "Outage"
	// MetricsNaN answers every query with a value that is no number.
	MetricsNaN Metrics = "NaN"
	// MetricsEmpty answers every query with no series.
	MetricsEmpty Metrics = "Empty"
)

// Command is what a person says to a rollout.
type Command string

const (
	// CommandAbort is the abort annotation for the present attempt. The commands that are
	// not listed here are the API's verbs; resume also ends a pause.
	CommandAbort Command = "abort"
	// CommandPause sets spec.paused.
	CommandPause Command = "pause"
)

// Happening is an event of a scenario. Apart from At and For, exactly one field is set.
type Happening struct {
	// At is when it happens.
	At v1alpha1.Duration `json:"at"`
	// For is how long it lasts, where the event is a state other than the usual one:
	// canary or stable Unready, or metrics that are not Fine. Default: until another
	// event.
	For v1alpha1.Duration `json:"for,omitempty"`
	// Canary and Stable set whether the track has a ready endpoint.
	Canary Readiness `json:"canary,omitempty"`
	Stable Readiness `json:"stable,omitempty"`
	// Metrics sets how the metrics server does.
	Metrics Metrics `json:"metrics,omitempty"`
	// Revision sets spec.revision.
	Revision string `json:"revision,omitempty"`
	// Command is given for the attempt and stage of that moment.
	Command Command `json:"command,omitempty"`
	// Paused sets spec.paused.
	Paused *bool `json:"paused,omitempty"`
	// RouteWeights is an edit of every route by another hand, as "stable/canary".
	RouteWeights string `json:"routeWeights,omitempty"`
}
