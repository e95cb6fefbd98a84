package health

import (
	"fmt"
	"math"

	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

// standing is how well one of the spec's own checks stands, for the score.
type standing struct {
	check Check
	// value is the smoothed value, and lowest and highest what it has been.
	value           score.EMA
	lowest, highest float64
}

func newStanding(k Check) standing {
	ema, _ := score.NewEMA(score.DefaultAlpha) // the default is a valid one
	return standing{check: k, value: ema, lowest: math.Inf(1), highest: math.Inf(-1)}
}

// take takes in the answer of a window, if it is one.
func (s *standing) take(c Config, w *Window) {
	value, p := c.valueOf(s.check, w)
	if p != nil {
		return
	}
	s.value = s.value.Add(value)
	now, _ := s.value.Value()
	s.lowest, s.highest = min(s.lowest, now), max(s.highest, now)
}

// score is 1 at the best value that was seen at this share, and 0 at the limit: the
// range is what is possible in practice, not in theory. With two limits the nearer one
// counts. It is not known before the first answer.
func (s *standing) score() (float64, bool) {
	now, known := s.value.Value()
	if !known {
		return 0, false
	}
	part := 1.0
	if s.check.Max != nil {
		part = min(part, between(now, *s.check.Max, s.lowest))
	}
	if s.check.Min != nil {
		part = min(part, between(now, *s.check.Min, s.highest))
	}
	return part, true
}

// between is where a value lies on the way from the limit, 0, to the best, 1.
func between(value, limit, best float64) float64 {
	if value == best {
		return 1
	}
	part := (value - limit) / (best - limit)
	if !(part >= 0) { // also where best is the limit itself
		return 0
	}
	return min(part, 1)
}

// withChecks returns the score: the requests' own, if there is one, and those of the
// checks, each by its importance. It is at least score.HealthFloor, or 0 where nothing
// is known.
func (s *signals) withChecks(own float64, known bool) float64 {
	if len(s.checks) == 0 {
		return own
	}
	sum, weights := 0.0, 0.0
	if known {
		sum, weights = own, 1
	}
	for i := range s.checks {
		if part, ok := s.checks[i].score(); ok {
			sum += part * s.checks[i].check.Importance
			weights += s.checks[i].check.Importance
		}
	}
	if !(weights > 0) {
		return 0
	}
	return max(sum/weights, score.HealthFloor)
}

// totalImportance is what the requests' own score is divided by.
func (s *signals) totalImportance() float64 {
	total := 1.0
	for i := range s.checks {
		if _, ok := s.checks[i].score(); ok {
			total += s.checks[i].check.Importance
		}
	}
	return total
}

// worstCheck names the check that stands worst, for messages.
func (s *signals) worstCheck() string {
	worst, name := 1.0, ""
	for i := range s.checks {
		if part, ok := s.checks[i].score(); ok && part < worst {
			worst, name = part, s.checks[i].check.Name
		}
	}
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" (check %s scores %s)", name, scoreText(worst))
}
