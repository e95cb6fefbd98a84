package health

import (
	"math"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health/compare"
)

// MaxEvaluations is how many evaluations a report has at most.
const MaxEvaluations = 60

// Report is a verdict with the numbers that it was made of.
type Report struct {
	// Verdict is the same that Evaluate gives.
	Verdict Verdict
	// Ramp and Stage say what a ramp step and the end of the stage await.
	Ramp, Stage Awaited
	// Comparison is the comparison with stable; nil where there is none.
	Comparison *ComparisonReport
	// Evaluations are the newest ones, by rising time.
	Evaluations []Evaluation
}

// Awaited is what a gate waits for.
type Awaited struct {
	// What says it in words; empty: the gate is open.
	What string
	// Requests is about how many more requests of the subject that takes, where that
	// can be told; 0 otherwise.
	Requests int64
	// About is about how long that takes at the present rate of requests, or until
	// the next full window; 0: not known.
	About time.Duration
}

// ComparisonReport is how far the comparison with stable has come.
type ComparisonReport struct {
	// Evidence that the canary is worse: 1 at the start, and proven at Proof. The verdict
	// also needs a difference that matters at the present share.
	Evidence, Proof float64
	// NotWorse says that it is proven that the canary is not worse by more than the
	// margin. It is looked at only where the spec requires it.
	NotWorse bool
	// Waits says what keeps a proof from being acted upon; empty: nothing, or there is
	// no proof.
	Waits string
	// Through is the end of the newest window that is in it.
	Through time.Time
}

// Evaluation is what one window said.
type Evaluation struct {
	// Start and End bound the window.
	Start, End time.Time
	// Outcome is Passed, Missed (a target), Unknown or Breached (a limit).
	Outcome string
	// Check, Reason and Message say why, unless it passed.
	Check, Reason, Message string
	// Stable and Canary are the requests; nil: they could not be told.
	Stable, Canary *Numbers
	// Checks are the values of the spec's own checks that could be told.
	Checks []CheckValue
}

// Numbers are the requests of a track in a window.
type Numbers struct {
	// Requests is all of them, and Errors those that failed.
	Requests, Errors float64
	// Slow is the number of those that took longer than Bound, which stands for
	// latency.max, and Quantile the response time at the percentile, both in seconds;
	// 0: not known.
	Slow, Bound, Quantile float64
}

// CheckValue is the value of one of the spec's own checks.
type CheckValue struct {
	Name  string
	Value float64
}

// String names the outcome.
func (o outcome) String() string {
	switch o {
	case passed:
		return "Passed"
	case missed:
		return "Missed"
	case unknown:
		return "Unknown"
	case breached:
		return "Breached"
	}
	return "Unknown"
}

// ReportOn judges the evidence, as Evaluate does, and shows its numbers.
func ReportOn(in Input) Report {
	r := Report{Verdict: Evaluate(in)}
	r.Ramp.What, r.Stage.What = r.Verdict.RampWait, r.Verdict.StageWait
	if in.Config.Disabled || in.Config.Window < time.Millisecond || in.Config.Interval <= 0 || in.ConfirmedAt.IsZero() {
		return r
	}
	h := in.reviewing(in.counted(), func(w *Window, f finding) {
		r.Evaluations = append(r.Evaluations, in.evaluation(w, f))
	})
	if extra := len(r.Evaluations) - MaxEvaluations; extra > 0 {
		r.Evaluations = append([]Evaluation(nil), r.Evaluations[extra:]...)
	}
	if in.compared() {
		r.Comparison = &ComparisonReport{
			Evidence: in.Config.wealth(h.past.Comparison), Proof: 1 / in.Config.doubt(), Through: h.past.Comparison.Through,
		}
		check, _, _ := in.Config.notProven(h.past)
		r.Comparison.NotWorse = in.Config.NotWorse && check == ""
		r.Comparison.Waits = in.Config.proofWaits(h.past.Comparison, h.here)
	}
	in.estimate(&r, h)
	return r
}

// evaluation writes down what one window said.
func (in *Input) evaluation(w *Window, f finding) Evaluation {
	e := Evaluation{Start: w.Start, End: w.End, Outcome: f.outcome.String(), Check: f.check, Reason: f.reason, Message: f.message}
	if in.Config.Preset != "" {
		if m := in.Config.measure(w, in.Subject); f.outcome == passed && m.readable && m.silent() {
			e.Outcome, e.Check, e.Reason, e.Message = unknown.String(), CheckRequests, v1alpha1.ReasonInsufficientRequests, "no request in this window"
		}
		e.Stable, e.Canary = in.Config.numbers(w, TrackStable), in.Config.numbers(w, TrackCanary)
	}
	for _, k := range in.Config.Checks {
		if a := w.answer(k.Name); a != nil && a.Problem == nil && !math.IsNaN(a.Value) && !math.IsInf(a.Value, 0) {
			e.Checks = append(e.Checks, CheckValue{Name: k.Name, Value: a.Value})
		}
	}
	return e
}

func (c Config) numbers(w *Window, t Track) *Numbers {
	m := c.measure(w, t)
	if !m.readable && m.missing.check != CheckLatency {
		return nil
	}
	return &Numbers{Requests: m.counts.requests, Errors: m.counts.errors, Slow: m.counts.slow, Bound: m.bound, Quantile: m.quantile}
}

// estimate says about how many requests, and how much time, the gates still need.
func (in *Input) estimate(r *Report, h history) {
	c := in.Config
	if !h.full {
		first := Ceil(in.ConfirmedAt.Add(c.SampleDelay), c.Window).Add(c.Window)
		r.Ramp.About = max(first.Sub(in.Now), 0)
		r.Stage.About = r.Ramp.About
		return
	}
	reason := r.Verdict.Reason
	if c.Preset == "" || h.remembersAll(c) || reason != v1alpha1.ReasonInsufficientRequests && reason != v1alpha1.ReasonNotProven {
		return // it is not requests that are lacking
	}
	have := h.have(c)
	missing := func(least int64) float64 { return max(float64(least)-have, 0) }
	if r.Ramp.What != "" {
		r.Ramp.Requests = whole(math.Ceil(missing(c.MinRampRequests)))
	}
	if r.Stage.What != "" {
		more := missing(c.MinRequests)
		if in.compared() && c.NotWorse {
			more = max(more, c.moreForProof(h.past))
		}
		if !math.IsInf(more, 1) {
			r.Stage.Requests = whole(math.Ceil(more))
		}
	}
	newest := r.Evaluations[len(r.Evaluations)-1].track(in.Subject)
	if newest == nil || !(newest.Requests > 0) {
		return
	}
	perRequest := float64(c.Window) / newest.Requests
	r.Ramp.About, r.Stage.About = timeFor(r.Ramp.Requests, perRequest), timeFor(r.Stage.Requests, perRequest)
}

// moreForProof is about how many more requests the proof takes that the canary is not
// worse than stable.
func (c Config) moreForProof(p Past) float64 {
	more := 0.0
	for _, proof := range []struct {
		wanted bool
		of     compare.NotWorse
	}{{c.ErrorRate != nil, p.NotWorseErrors}, {c.Latency != nil, p.NotWorseSlow}} {
		if proof.wanted && !proof.of.Proven(c.doubt()) {
			more = max(more, proof.of.MoreRequests(c.doubt()))
		}
	}
	return more
}

// timeFor is how long so many requests take, up to a day.
func timeFor(requests int64, each float64) time.Duration {
	return time.Duration(min(float64(requests)*each, float64(24*time.Hour))).Round(time.Second)
}

func (e Evaluation) track(t Track) *Numbers {
	if t == TrackStable {
		return e.Stable
	}
	return e.Canary
}
