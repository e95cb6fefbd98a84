// Package diagnose asks three questions about a running rollout: does each backend get
// the requests that its weight stands for, do they come in bursts, and does the weight
// swing. It also says what the rollout waits for. It is pure: what it needs is handed to
// it.
package diagnose

import (
	"time"

	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// Input is what is known of a rollout and of its surroundings.
type Input struct {
	// Desired is the canary's share that the routes are to have. Begun says that there is
	// one, and Confirmed that the gateways have taken it.
	Desired          weights.Share
	Begun, Confirmed bool
	// Rules are the rules that the rollout manages.
	Rules []Rule
	// Elsewhere are other rules that send requests to the same Services.
	Elsewhere []Elsewhere
	// Traffic is what the gateway has counted since the share was confirmed.
	Traffic Traffic
	// Windows are disjoint spans of time at the present share, by rising time. NoWindows
	// says why there are none.
	Windows   []Window
	NoWindows string
	// Reported is what the rollout's status says of its traffic.
	Reported Reported
	// Changes are those of the canary's share, as far as they are remembered, by rising
	// time.
	Changes []Change
	// Outcome is the reason for which the last attempt ended, if it did.
	Outcome string
}

// Rule is a rule that a rollout manages.
type Rule struct {
	// Where names the rule for people: `HTTPRoute shop/web, rule 0`.
	Where string `json:"where"`
	// Stable and Canary are the weights in it, 0 or more.
	Stable int64 `json:"stable"`
	Canary int64 `json:"canary"`
	// AsDesired says that they are the weights for the desired share.
	AsDesired bool `json:"asDesired"`
	// Sticky says that the rule keeps a client on the backend that it had before.
	Sticky bool `json:"sticky,omitempty"`
}

// Elsewhere is a rule that sends requests to the Services of a rollout, and is not
// managed by it.
type Elsewhere struct {
	// Where names the rule for people.
	Where string
	// Stable and Canary are the weights of the two Services in it; 0 where it has none.
	Stable, Canary int64
}

// Traffic is a number of requests.
type Traffic struct {
	// Counted says that the requests are known.
	Counted bool
	// Canary and Stable are the requests of the two tracks, 0 or more.
	Canary, Stable int64
	// Why says why they are not known.
	Why string
}

// Window is what the gateway has counted in a span of time.
type Window struct {
	Start, End     time.Time
	Canary, Stable float64
}

// Reported is what the status of a rollout says of its traffic.
type Reported struct {
	// Status is that of the condition TrafficMatchesWeights: True, False or Unknown; empty
	// if there is none. Message goes with it.
	Status, Message string
	// Observed is the share that it observed, of requests if FromRequests.
	Observed     weights.Share
	FromRequests bool
}

// Change is one of the canary's share.
type Change struct {
	At       time.Time
	From, To weights.Share
	// Why is the reason that the controller gave.
	Why string
	// Started says that an attempt began with it.
	Started bool
}
