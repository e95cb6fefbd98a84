package health

import (
	"math"
	"strings"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

// steadyStreak is how many good evaluations in a row make a recovery.
const steadyStreak = 3

// signals follows what moves from window to window: the smoothed response time, the
// score, and how long a target has been missed.
type signals struct {
	config Config
	// ema is the smoothed response time.
	ema score.EMA
	// score is the newest one; 0: nothing has been measured.
	score float64
	// good counts the newest evaluations that passed, one after the other.
	good int
	miss misses
	// trend holds the response times of the disjoint windows.
	trend []score.Point
	// checks are the spec's own checks that weigh in the score.
	checks []standing
}

// misses follows how long a target is missed, and when that is over.
type misses struct {
	// last says what was missed last, while that is not over.
	last finding
	// lasted is how long it has been seen, and before the previous evaluation, if that
	// saw it.
	lasted time.Duration
	before *Window
	// well counts the evaluations since then that passed, and their requests; quiet
	// those, one after the other, that had too few to tell.
	well, quiet int
	requests    float64
}

func newSignals(c Config) signals {
	s := signals{config: c}
	if c.Latency != nil {
		// ConfigFrom has checked the smoothing. What was built otherwise has the default.
		s.ema, _ = score.NewEMA(c.Latency.Smoothing)
	}
	for _, k := range c.Checks {
		if k.Importance > 0 {
			s.checks = append(s.checks, newStanding(k))
		}
	}
	return s
}

// measured takes in what a window says. A window without requests says nothing.
func (s *signals) measured(w *Window, m measurement, sum func() tally) {
	if s.config.onGrid(w.End) {
		s.smooth(w, m)
	}
	if s.config.Preset == "" {
		s.score = s.withChecks(0, false)
		return
	}
	if !m.readable || m.silent() {
		return
	}
	s.score = s.scoreAt(provenRate(m.counts, sum))
}

// smooth takes a window of the grid into the moving averages and the trend. The windows
// between overlap it: with them a slow minute would count once per evaluation.
func (s *signals) smooth(w *Window, m measurement) {
	for i := range s.checks {
		s.checks[i].take(s.config, w)
	}
	if !m.readable || m.silent() || m.quantile == 0 {
		return
	}
	s.ema = s.ema.Add(m.quantile)
	s.trend = append(s.trend, score.Point{At: w.End, Value: m.quantile})
}

// scoreAt is the score at an error rate and the present response time; 0 if there is
// none.
func (s *signals) scoreAt(rate float64) float64 {
	penalties, threshold := s.config.penalties(), 1.0
	responseTime, known := s.ema.Value()
	if s.config.Latency == nil || !known {
		penalties.Latency = 0
	} else {
		threshold = s.config.Latency.threshold()
	}
	now, err := score.Health(rate, responseTime, threshold, penalties)
	if err != nil {
		return 0
	}
	return s.withChecks(now, s.config.Preset != "")
}

func (c Config) penalties() score.Penalties {
	if c.Penalties == (score.Penalties{}) {
		return score.DefaultPenalties()
	}
	return c.Penalties
}

// provenRate is the error rate that the score is made of: that of the window, if it
// has enough bad requests to mean something. Slow traffic spreads them over many
// windows; then it is the lower one of the window's and of all. As with a breach,
// fewer than five bad requests prove nothing.
func provenRate(t tally, sum func() tally) float64 {
	if t.errors < 1-slack {
		return 0
	}
	own := min(t.errors/t.requests, 1)
	if t.errors >= minBad-slack {
		return own
	}
	all := sum()
	if all.errors < minBad-slack {
		return 0
	}
	return min(own, all.errors/all.requests)
}

// judge says whether a window that exceeds no limit misses a target or has a low
// score.
func (s *signals) judge(m measurement, sum func() tally) finding {
	c := s.config
	if !m.readable {
		return finding{}
	}
	if c.Preset == "" {
		return s.judgeScore(m, sum)
	}
	if f := c.judgeErrorTarget(m.counts, sum); f.outcome != passed {
		return f
	}
	now, known := s.ema.Value()
	if l := c.Latency; known && l != nil && l.Target > 0 && m.quantile > 0 && now > l.Target.Seconds() {
		return miss(CheckLatency, v1alpha1.ReasonAboveTarget, "the smoothed response time at the percentile %s is %s; the target is %s",
			number(l.Percentile*100), seconds(now), seconds(l.Target.Seconds()))
	}
	return s.judgeScore(m, sum)
}

func (s *signals) judgeScore(m measurement, sum func() tally) finding {
	c := s.config
	if s.score > 0 && s.score < c.DegradedBelow && !c.quiet(m) && s.scoreIsLow(m.counts, sum) {
		return miss("", v1alpha1.ReasonLowScore, "the health score is %s%s; health.degradedBelow is %s", scoreText(s.score), s.worstCheck(), number(c.DegradedBelow))
	}
	return finding{}
}

// scoreIsLow says whether a score under degradedBelow is so beyond doubt: because of
// the response time, which is smoothed, or because the error rate is above that at
// which the score falls under it.
func (s *signals) scoreIsLow(t tally, sum func() tally) bool {
	withoutErrors := s.scoreAt(0)
	if withoutErrors < s.config.DegradedBelow {
		return true
	}
	c := s.config
	limit := (withoutErrors - c.DegradedBelow) / c.penalties().Error * s.totalImportance()
	if c.exceeds(t.errors, t.requests, limit) {
		return true
	}
	all := sum()
	return c.exceeds(all.errors, all.requests, limit)
}

// silent says that a window had no request.
func (m measurement) silent() bool { return m.counts.requests < 1-slack }

// quiet says that a window had no request, or too few to tell a response time where
// one is looked at. It is no sign of anything.
func (c Config) quiet(m measurement) bool {
	return c.Preset != "" && m.readable && (m.silent() || c.Latency != nil && m.quantile == 0)
}

func (c Config) judgeErrorTarget(t tally, sum func() tally) finding {
	if c.ErrorRate == nil || c.ErrorRate.Target == nil {
		return finding{}
	}
	target := *c.ErrorRate.Target
	if !above(t.errors, t.requests, target) {
		return finding{}
	}
	span := "in one window"
	if !c.exceeds(t.errors, t.requests, target) {
		if t = sum(); !c.exceeds(t.errors, t.requests, target) {
			return finding{}
		}
		span = "since the share was confirmed"
	}
	return miss(CheckErrorRate, v1alpha1.ReasonAboveTarget, "%s of %s requests failed %s (%s); the target is %s",
		about(t.errors), about(t.requests), span, rate(t.errors, t.requests), percent(target))
}

// count takes in the finding about a window, and returns what it comes to: after a
// miss the canary is well again once it has been so for three evaluations and for a
// whole window, on enough requests for a ramp step. Silence does not make it so.
//
// What exceeds a limit most often misses a target as well, and is not well again before
// that is over.
func (s *signals) count(w *Window, m measurement, f, target finding) finding {
	c, x := s.config, &s.miss
	switch f.outcome {
	case missed, breached:
		s.good = 0
		if target.outcome == missed {
			x.last = target
		}
		x.lasted += since(x.before, w)
		x.before, x.well, x.quiet, x.requests = w, 0, 0, 0
		return f
	case unknown: // neither ends a miss nor lengthens it
		s.good, x.before = 0, nil
		return f
	case passed:
	}
	x.before = nil
	over := x.last.outcome != missed
	switch {
	case c.quiet(m) && over:
		return f
	case c.quiet(m):
		if x.quiet++; time.Duration(x.quiet)*c.Interval < c.Window {
			return x.last
		}
		return finding{outcome: unknown, check: CheckRequests, reason: v1alpha1.ReasonInsufficientRequests,
			message: "too few requests to tell whether this is over: " + x.last.message}
	}
	s.good++
	x.quiet = 0
	if over {
		x.lasted = 0
		return f
	}
	x.well++
	x.requests += m.counts.requests * float64(c.Interval) / float64(c.Window)
	if x.well < steadyStreak || time.Duration(x.well)*c.Interval < c.Window || x.requests < float64(c.MinRampRequests)-slack {
		x.last.message = "well again, though not for long: before, " + strings.TrimPrefix(x.last.message, "well again, though not for long: before, ")
		return x.last
	}
	*x = misses{}
	return f
}

// steady says whether the canary has been well for several evaluations in a row.
func (s *signals) steady() bool { return s.good >= steadyStreak }

// scoreText writes a score with two decimals, rounded down, so that a score below 1
// never reads as 1.
func scoreText(s float64) string { return number(math.Floor(s*100+slack) / 100) }

// ScoreText writes the score for people: "0.98"; empty where nothing was measured.
func (v Verdict) ScoreText() string {
	if v.Score <= 0 {
		return ""
	}
	return scoreText(v.Score)
}
