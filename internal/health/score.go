package health

import (
	"math"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

const (
	// steadyStreak is how many good evaluations in a row make a recovery.
	steadyStreak = 3
	// Once a target is missed, the response time must fall to this part of it, and the
	// score rise above its limit by so much, to be well again: what trembles about its
	// limit is not news every time.
	wellBelow, wellAbove = 0.95, 0.02
)

// signals follows what moves from window to window: the smoothed response time, the
// score, and how long a target has been missed.
type signals struct {
	config Config
	ema    score.EMA
	// score is the newest one; 0: nothing has been measured.
	score float64
	// missedFor is how long the targets have been missed, without a hole.
	missedFor time.Duration
	missed    *Window // the previous evaluation, if it missed a target
	// good counts the newest evaluations that passed, one after the other.
	good int
	// trend holds the response times of the disjoint windows.
	trend []score.Point
}

func newSignals(c Config) signals {
	s := signals{config: c}
	if c.Latency != nil {
		// ConfigFrom has checked the smoothing. What was built otherwise has the default.
		s.ema, _ = score.NewEMA(c.Latency.Smoothing)
	}
	return s
}

// measured takes in what a window says.
func (s *signals) measured(w *Window, m measurement) {
	if !m.readable || s.config.Preset == "" {
		return
	}
	if m.quantile > 0 {
		s.ema = s.ema.Add(m.quantile)
		if s.config.onGrid(w.End) {
			s.trend = append(s.trend, score.Point{At: w.End, Value: m.quantile})
		}
	}
	// As with a breach, a few bad requests prove nothing.
	rate := 0.0
	if m.counts.errors >= minBad-slack {
		rate = min(m.counts.errors/m.counts.requests, 1)
	}
	penalties, threshold := s.config.Penalties, 1.0
	if penalties == (score.Penalties{}) {
		penalties = score.DefaultPenalties()
	}
	responseTime, known := s.ema.Value()
	switch {
	case s.config.Latency == nil || !known:
		penalties.Latency = 0
	default:
		threshold = s.config.Latency.threshold()
	}
	if now, err := score.Health(rate, responseTime, threshold, penalties); err == nil {
		s.score = now
	}
}

// judge says whether a window that exceeds no limit misses a target or has a low
// score.
func (s *signals) judge(m measurement, sum func() tally) finding {
	c := s.config
	if !m.readable || c.Preset == "" {
		return finding{}
	}
	if f := c.judgeErrorTarget(m.counts, sum); f.outcome != passed {
		return f
	}
	target, lowest := 0.0, c.DegradedBelow
	if c.Latency != nil {
		target = c.Latency.Target.Seconds()
	}
	if s.missed != nil {
		target, lowest = target*wellBelow, min(lowest+wellAbove, score.HealthFull)
	}
	if now, known := s.ema.Value(); known && target > 0 && now > target {
		return c.slowerThanTarget(now, target)
	}
	if s.score > 0 && c.DegradedBelow > 0 && s.score < lowest {
		if s.score >= c.DegradedBelow {
			return miss("", v1alpha1.ReasonLowScore, "the health score is %s; it must be %s to be well again", scoreText(s.score), number(lowest))
		}
		return miss("", v1alpha1.ReasonLowScore, "the health score is %s; health.degradedBelow is %s", scoreText(s.score), number(c.DegradedBelow))
	}
	return finding{}
}

func (c Config) slowerThanTarget(now, mustBe float64) finding {
	limit := "the target is " + seconds(c.Latency.Target.Seconds())
	if now <= c.Latency.Target.Seconds() {
		limit = "it must be at most " + seconds(mustBe) + " to be well again"
	}
	return miss(CheckLatency, v1alpha1.ReasonAboveTarget, "the smoothed response time at the percentile %s is %s; %s",
		number(c.Latency.Percentile*100), seconds(now), limit)
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
	if !exceeds(t.errors, t.requests, target) {
		if t = sum(); !exceeds(t.errors, t.requests, target) {
			return finding{}
		}
		span = "since the share was confirmed"
	}
	return miss(CheckErrorRate, v1alpha1.ReasonAboveTarget, "%s of %s requests failed %s (%s); the target is %s",
		about(t.errors), about(t.requests), span, rate(t.errors, t.requests), percent(target))
}

// count takes in the finding about a window.
func (s *signals) count(w *Window, f finding) {
	switch f.outcome {
	case passed:
		s.good++
	case missed, unknown, breached:
		s.good = 0
	}
	switch f.outcome {
	case missed, breached:
		s.missedFor += since(s.missed, w)
		s.missed = w
	case unknown: // neither ends a miss nor lengthens it
		s.missed = nil
	case passed:
		s.missedFor, s.missed = 0, nil
	}
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
