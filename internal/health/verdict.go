package health

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/traffic"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// Memory is how far back windows are summed.
const Memory = time.Hour

// maxMessage is the length of a message in bytes.
const maxMessage = 500

// Input is the evidence about one share.
type Input struct {
	// Config is the parsed health section.
	Config Config
	// Subject is the track that is judged.
	Subject Track
	// ConfirmedAt is when the gateway confirmed the share; zero: it has not yet.
	ConfirmedAt time.Time
	// Unopposed says that the subject has all traffic, so that there is nothing to
	// compare it with.
	Unopposed bool
	// ComparedFrom is when the canary's comparison with stable begins; Never: it does not.
	// Windows that begin before it are not compared: that a cold canary is slower for a
	// while is what the warm-up is for. Its limits hold.
	ComparedFrom time.Time
	// CanaryShare is what the weights give the canary, to compare the traffic with.
	CanaryShare weights.Share
	// Past is what earlier windows have shown: those of earlier shares of the attempt,
	// and those of this one that are not kept any more. See Config.Begin.
	Past Past
	// Windows are what was read at every interval, by rising End. Other orders,
	// repetitions and windows from before the confirmation do no harm.
	Windows []Window
	// Now is the time of the evaluation.
	Now time.Time
}

// Verdict is what the evidence says.
type Verdict struct {
	// State sums it up.
	State v1alpha1.VerdictState
	// Reason is one of the API's reasons of a verdict.
	Reason string
	// Check is the check that decided: requests, error-rate, latency, one of the
	// spec's own, or empty.
	Check string
	// Message says it in words, in at most 500 bytes, without times.
	Message string
	// RampReady says that the evidence allows a ramp step within a stage.
	RampReady bool
	// RampWait says what a ramp step awaits; empty when RampReady.
	RampWait string
	// StageReady says that the evidence allows a stage to end.
	StageReady bool
	// StageWait says what the end of a stage awaits; empty when StageReady.
	StageWait string
	// Requests is how many requests of the subject are evidence, over the disjoint
	// windows of the last hour.
	Requests int64
	// From and To bound the windows that Requests was counted in.
	From, To time.Time
	// Score is the health score, from 0.2 to 1; 0: nothing was measured.
	Score float64
	// ScaleBack says that a target has been missed, or the score been low, for
	// Config.For, so that the share is to be scaled back by the score.
	ScaleBack bool
	// Steady says that the newest three evaluations, or more, have passed every check,
	// on enough requests to end a stage.
	Steady bool
	// Compared is the comparison with stable over the whole attempt so far.
	Compared Comparison
	// BreachSince is the end of the window in which the present breach was first
	// seen; zero: there is none.
	BreachSince time.Time
	// Notes are remarks about the configuration that do not change the verdict.
	Notes []string
	// Traffic is how many requests each track has had at the present share. It has no
	// part in the verdict.
	Traffic Traffic
}

// Signal is the part of a verdict whose change matters to a rollout. It holds no
// numbers of requests, so that it changes seldom.
type Signal struct {
	State                 v1alpha1.VerdictState
	Reason, Check         string
	RampReady, StageReady bool
	ScaleBack, Steady     bool
	// ScaleTo is the score in whole twentieths while it scales the share back.
	ScaleTo int
	// Traffic says whether the traffic is divided as the weights say; empty: not known.
	Traffic traffic.State
	// Refused says why credentials cannot be used: who mends one fault is to see the
	// next.
	Refused string
}

// Signal returns the part of the verdict whose change matters to a rollout.
func (v Verdict) Signal() Signal {
	s := Signal{
		State: v.State, Reason: v.Reason, Check: v.Check, RampReady: v.RampReady, StageReady: v.StageReady,
		ScaleBack: v.ScaleBack, Steady: v.Steady, Traffic: v.Traffic.Finding.State,
	}
	if v.Reason == v1alpha1.ReasonProviderAuth {
		s.Refused = v.Message
	}
	if v.ScaleBack {
		s.ScaleTo = int(v.Score * 20)
	}
	return s
}

// Unknown returns a verdict that says that nothing can be said, and why.
func Unknown(reason, message string) Verdict {
	return Verdict{State: v1alpha1.VerdictUnknown, Traffic: uncounted(message)}.because(reason, "", message)
}

// Evaluate judges the evidence. It never panics, whatever the input.
func Evaluate(in Input) Verdict {
	switch {
	case in.Config.Disabled:
		return Verdict{
			State: v1alpha1.VerdictHealthy, Reason: v1alpha1.ReasonChecksDisabled,
			Message:   "health.disabled is true, so nothing is checked",
			RampReady: true, StageReady: true, Traffic: uncounted("health.disabled is true, so nothing is counted"),
		}
	case in.Config.Window < time.Millisecond || in.Config.Interval <= 0:
		return Unknown(v1alpha1.ReasonInvalidSpec, "health.window and health.interval are not known")
	case in.ConfirmedAt.IsZero():
		return Unknown(v1alpha1.ReasonAwaitingWindow, "nothing is measured: the version under test has no traffic, or its share is not confirmed yet")
	}
	windows := in.counted()
	v := in.judge(windows)
	v.Traffic = in.traffic(windows)
	return v
}

// judge judges the windows that are evidence.
func (in *Input) judge(windows []Window) Verdict {
	if len(windows) == 0 {
		return Unknown(v1alpha1.ReasonAwaitingWindow, in.awaitingWindow())
	}
	h := in.review(windows)
	v := in.conclude(h)
	v.Score = h.signals.score
	v.Compared = h.past.Comparison
	v.Requests = whole(h.have(in.Config))
	v.From, v.To, v.Notes = h.from, h.to, in.notes(h)
	return v
}

func (in *Input) awaitingWindow() string {
	return fmt.Sprintf("waiting for the first full window of %s since the share was confirmed", in.Config.Window)
}

func (in *Input) conclude(h history) Verdict {
	c := in.Config
	if f := h.worse; f.outcome == breached {
		v := Verdict{State: v1alpha1.VerdictUnhealthy, BreachSince: h.to}.because(f.reason, f.check, f.message)
		return v.waitingFor("another attempt: the comparison is one test, and it is decided")
	}
	if in.Now.Sub(h.latest.End) > c.Window+c.SampleDelay+2*c.Interval {
		return Unknown(v1alpha1.ReasonStale, "the metrics have not been read for several intervals")
	}
	f := h.finding
	switch f.outcome {
	case breached:
		state := v1alpha1.VerdictDegraded
		if h.lasted >= c.For {
			state = v1alpha1.VerdictUnhealthy
		}
		v := Verdict{State: state, BreachSince: h.since}.because(f.reason, f.check, f.message)
		return v.waitingFor("the breach to end")
	case unknown:
		return Verdict{State: v1alpha1.VerdictUnknown, BreachSince: h.since}.because(f.reason, f.check, f.message)
	case passed, missed:
	}
	if !h.full {
		return Unknown(v1alpha1.ReasonAwaitingWindow, in.awaitingWindow())
	}
	if f.outcome == missed {
		return c.belowTarget(h)
	}
	v := in.gate(h)
	if to := h.signals.risesTo(h.latest.End); to > 0 && v.State != v1alpha1.VerdictDegraded {
		return Unknown(v1alpha1.ReasonTrendingUp, fmt.Sprintf("the response times rise: at the percentile %s about %s are to be expected by the next step; the limit is %s",
			number(c.Latency.Percentile*100), seconds(to), seconds(c.Latency.Max.Seconds()))).about(CheckLatency)
	}
	v.Steady = h.signals.steady() && v.StageReady
	return v
}

// belowTarget judges evidence whose latest window misses a target, or has a low
// score. For a while that only holds the share where it is.
func (c Config) belowTarget(h history) Verdict {
	f := h.finding
	v := Verdict{State: v1alpha1.VerdictDegraded, ScaleBack: h.signals.miss.before != nil && h.signals.miss.lasted >= c.For}.because(f.reason, f.check, f.message)
	return v.waitingFor("the canary to reach its targets again")
}

// about names the check that a verdict is about.
func (v Verdict) about(check string) Verdict {
	v.Check = check
	return v
}

// gate judges evidence whose latest window passes every check.
func (in *Input) gate(h history) Verdict {
	c := in.Config
	if p := h.stableProblem; p != nil && in.compared() && c.relative() {
		return Verdict{State: v1alpha1.VerdictUnknown}.because(p.Reason, CheckRequests, "stable cannot be compared with: "+p.Message)
	}
	have := h.have(c)
	v := Verdict{State: v1alpha1.VerdictHealthy, Reason: v1alpha1.ReasonChecksPassed, RampReady: true, StageReady: true}
	if c.Preset == "" {
		v.Message = "every check passes"
		return v
	}
	v.Message = fmt.Sprintf("every check passes on %s requests", count(have))
	if short := float64(c.MinRampRequests) - have; short > slack {
		v.RampReady = false
		v.RampWait = fmt.Sprintf("about %s more requests (%s of %d)", count(math.Ceil(short)), count(have), c.MinRampRequests)
	}
	if short := float64(c.MinRequests) - have; short > slack {
		v.State, v.StageReady = v1alpha1.VerdictUnknown, false
		v.StageWait = fmt.Sprintf("about %s more requests (%s of %d)", count(math.Ceil(short)), count(have), c.MinRequests)
		if h.remembersAll(c) {
			v.StageWait = fmt.Sprintf("more traffic: %s requests came in the last hour, and health.minRequests is %d; give the stage more weight, or lower it", count(have), c.MinRequests)
		}
		v.Reason, v.Check = v1alpha1.ReasonInsufficientRequests, CheckRequests
		v.Message = fmt.Sprintf("%s of %d requests", count(have), c.MinRequests)
		if _, message, _ := c.aboveLimit(h.sum); message != "" {
			v.Message += "; " + message
		}
		return v
	}
	if check, message, wait := c.aboveLimit(h.sum); check != "" {
		return Verdict{State: v1alpha1.VerdictDegraded}.because(v1alpha1.ReasonAboveLimit, check, message).waitingFor(wait)
	}
	return in.gateBeside(h, v)
}

// gateBeside judges the comparison with stable, where the spec asks for it.
func (in *Input) gateBeside(h history, v Verdict) Verdict {
	c := in.Config
	if !in.compared() || !c.NotWorse && !c.relative() {
		return v
	}
	if p := c.stableWanting(&h); p != nil {
		v.State, v.Reason, v.Check, v.Message = v1alpha1.VerdictUnknown, p.Reason, CheckRequests, cut(p.Message)
		v.StageReady, v.StageWait = false, v.Message
		return v
	}
	if !c.NotWorse {
		return v
	}
	if check, message, wait := c.notProven(h.past); check != "" {
		v.State, v.StageReady, v.StageWait = v1alpha1.VerdictUnknown, false, cut(wait)
		v.Reason, v.Check, v.Message = v1alpha1.ReasonNotProven, check, cut(message+"; awaited: "+wait)
	}
	return v
}

// aboveLimit finds a check whose limit is exceeded by the plain quotient, though
// the latest window is no breach: the evidence is thin, or the newest is clean.
func (c Config) aboveLimit(s tally) (check, message, wait string) {
	if c.ErrorRate != nil {
		if message, wait := c.aboveRate("failed", s.errors, s.requests, c.ErrorRate.Max); message != "" {
			return CheckErrorRate, message, wait
		}
	}
	if c.Latency != nil {
		if message, wait := c.aboveRate("were slow", s.slow, s.timed, c.Latency.maxSlow()); message != "" {
			return CheckLatency, message, wait
		}
	}
	return "", "", ""
}

func (c Config) aboveRate(what string, bad, total, limit float64) (message, wait string) {
	if !(bad > limit*total*(1+slack)+slack) {
		return "", ""
	}
	but := "but not yet beyond doubt"
	if c.exceeds(bad, total, limit) {
		but = "but not in the newest window"
	}
	return fmt.Sprintf("%s of %s requests %s since the share was confirmed (%s), above the limit of %s, %s",
		about(bad), about(total), what, rate(bad, total), percent(limit), but), moreGood(bad, total, limit)
}

// moreGood says how many good requests bring a rate back under its limit.
func moreGood(bad, total, limit float64) string {
	if !(limit > 0) {
		return "an hour without a bad request"
	}
	return fmt.Sprintf("about %s more good requests", count(math.Ceil(bad/limit-total)))
}

// because fills in why, and lets both gates await the same.
func (v Verdict) because(reason, check, message string) Verdict {
	v.Reason, v.Check, v.Message = reason, check, cut(message)
	return v.waitingFor(v.Message)
}

func (v Verdict) waitingFor(what string) Verdict {
	v.RampWait, v.StageWait = cut(what), cut(what)
	return v
}

// notes remarks that latency.max is no bucket bound, so that another one is used.
func (in *Input) notes(h history) []string {
	l := in.Config.Latency
	if l == nil || h.bound == 0 || math.Abs(h.bound-l.Max.Seconds()) < 1e-9 {
		return nil
	}
	return []string{fmt.Sprintf("health.latency.max of %s is no bucket bound of the gateway's histogram; the next lower one, %s, is used instead",
		seconds(l.Max.Seconds()), seconds(h.bound))}
}

// cut shortens a text to what a status message may hold, at a character's border.
func cut(s string) string {
	const mark = "…"
	if len(s) <= maxMessage {
		return s
	}
	end := maxMessage - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}
