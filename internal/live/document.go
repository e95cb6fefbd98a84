// Package live serves the evidence of rollouts while it is being gathered: numbers that
// change all the time, and so are no status.
package live

import (
	"math"
	"strconv"
	"time"

	"github.com/weightedrollout/weightedrollout/internal/health"
)

// Document is the evidence about a rollout at its present share.
type Document struct {
	// Namespace and Name of the rollout.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// At is when the verdict was given.
	At time.Time `json:"at"`
	// Attempt, Subject (canary or stable) and ConfirmedAt say what the evidence is about.
	Attempt     int64      `json:"attempt"`
	Subject     string     `json:"subject"`
	ConfirmedAt *time.Time `json:"confirmedAt,omitempty"`
	// Verdict is what it says.
	Verdict Verdict `json:"verdict"`
	// Ramp and Stage say what the next ramp step and the end of the stage await.
	Ramp  Awaited `json:"ramp"`
	Stage Awaited `json:"stage"`
	// Comparison is the comparison with stable, if there is one.
	Comparison *Comparison `json:"comparison,omitempty"`
	// Traffic is how many requests the gateway sent to each track at the present share.
	Traffic *Traffic `json:"traffic,omitempty"`
	// Evaluations are the newest ones, at most 60, by rising time.
	Evaluations []Evaluation `json:"evaluations"`
}

// Verdict is a verdict in words.
type Verdict struct {
	State   string `json:"state"`
	Reason  string `json:"reason"`
	Check   string `json:"check,omitempty"`
	Message string `json:"message"`
	// Score is the health score, from 0.2 to 1.
	Score *float64 `json:"score,omitempty"`
	// Requests are those of the subject that count, since From up to To.
	Requests int64      `json:"requests"`
	From     *time.Time `json:"from,omitempty"`
	To       *time.Time `json:"to,omitempty"`
	Notes    []string   `json:"notes,omitempty"`
}

// Awaited is what a gate waits for.
type Awaited struct {
	// Open says that it waits for nothing.
	Open bool `json:"open"`
	// What says in words what it waits for.
	What string `json:"what,omitempty"`
	// Requests is about how many more of them that takes, and AboutSeconds how long.
	Requests     int64   `json:"requests,omitempty"`
	AboutSeconds float64 `json:"aboutSeconds,omitempty"`
}

// Comparison is how far the comparison with stable has come.
type Comparison struct {
	// Evidence that the canary is worse: 1 at the start. It is proven at Proof; for a
	// rollback the difference must also matter at the present share.
	Evidence float64 `json:"evidence"`
	Proof    float64 `json:"proof"`
	// NotWorse says that it is proven that the canary is not worse.
	NotWorse bool `json:"notWorse"`
	// Waits says what keeps a proof from being acted upon.
	Waits   string     `json:"waits,omitempty"`
	Through *time.Time `json:"through,omitempty"`
}

// Traffic is how many requests the gateway sent to each track since the confirmation: in
// windows side by side, one hour at most.
type Traffic struct {
	Canary int64 `json:"canary"`
	Stable int64 `json:"stable"`
	// NotCounted says why the requests are not known.
	NotCounted string `json:"notCounted,omitempty"`
}

// Evaluation is what one window said.
type Evaluation struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Outcome is Passed, Missed (a target), Unknown or Breached (a limit).
	Outcome string `json:"outcome"`
	Check   string `json:"check,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Stable and Canary are the requests; absent where they could not be told.
	Stable *Numbers `json:"stable,omitempty"`
	Canary *Numbers `json:"canary,omitempty"`
	// Checks are the values of the spec's own checks, by name.
	Checks map[string]float64 `json:"checks,omitempty"`
}

// Numbers are the requests of a track in a window.
type Numbers struct {
	Requests float64 `json:"requests"`
	Errors   float64 `json:"errors"`
	// Slow is the number of those that took longer than latency.max, and
	// QuantileSeconds the response time at the percentile.
	Slow            *float64 `json:"slow,omitempty"`
	QuantileSeconds *float64 `json:"quantileSeconds,omitempty"`
}

// document writes a report down.
func document(k key, e Evidence, now time.Time) Document {
	r, v := e.Report, e.Report.Verdict
	d := Document{
		Namespace: k.Namespace, Name: k.Name, At: now.UTC(), Attempt: e.Attempt, Subject: string(e.Subject), ConfirmedAt: known(e.ConfirmedAt),
		Verdict: Verdict{
			State: string(v.State), Reason: v.Reason, Check: v.Check, Message: v.Message, Requests: v.Requests,
			Score: positive(v.Score), From: known(v.From), To: known(v.To), Notes: v.Notes,
		},
		Ramp: awaited(r.Ramp), Stage: awaited(r.Stage), Traffic: traffic(v.Traffic), Evaluations: []Evaluation{},
	}
	if c := r.Comparison; c != nil {
		d.Comparison = &Comparison{Evidence: rounded(c.Evidence), Proof: rounded(c.Proof), NotWorse: c.NotWorse, Waits: c.Waits, Through: known(c.Through)}
	}
	for _, e := range r.Evaluations {
		is := Evaluation{
			Start: e.Start.UTC(), End: e.End.UTC(), Outcome: e.Outcome, Check: e.Check, Reason: e.Reason, Message: e.Message,
			Stable: numbers(e.Stable), Canary: numbers(e.Canary),
		}
		for _, c := range e.Checks {
			if is.Checks == nil {
				is.Checks = make(map[string]float64, len(e.Checks))
			}
			is.Checks[c.Name] = finite(c.Value)
		}
		d.Evaluations = append(d.Evaluations, is)
	}
	return d
}

// traffic is absent where a verdict says nothing of it.
func traffic(t health.Traffic) *Traffic {
	if !t.Counted && t.NotCounted == "" {
		return nil
	}
	return &Traffic{Canary: t.Canary, Stable: t.Stable, NotCounted: t.NotCounted}
}

func awaited(a health.Awaited) Awaited {
	return Awaited{Open: a.What == "", What: a.What, Requests: a.Requests, AboutSeconds: a.About.Seconds()}
}

func numbers(n *health.Numbers) *Numbers {
	if n == nil {
		return nil
	}
	is := &Numbers{Requests: finite(n.Requests), Errors: finite(n.Errors), QuantileSeconds: positive(n.Quantile)}
	if n.Bound > 0 {
		is.Slow = new(finite(n.Slow))
	}
	return is
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

func positive(f float64) *float64 {
	if !(f > 0) {
		return nil
	}
	return new(finite(f))
}

// rounded keeps four significant digits, which is more than anybody needs of evidence.
func rounded(f float64) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(finite(f), 'g', 4, 64), 64)
	if err != nil {
		return finite(f)
	}
	return short
}

// finite keeps a number within what JSON can write.
func finite(f float64) float64 {
	switch {
	case math.IsNaN(f):
		return 0
	case math.IsInf(f, 1):
		return math.MaxFloat64
	case math.IsInf(f, -1):
		return -math.MaxFloat64
	}
	return f
}
