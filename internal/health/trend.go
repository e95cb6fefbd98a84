package health

import (
	"time"

	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

const (
	// trendWindows is the number of newest disjoint windows that a trend is read
	// from, and minTrendWindows the least.
	trendWindows, minTrendWindows = 10, 5
	// trendMemory is how many windows a trend is remembered for, with the newest.
	trendMemory = 3
	// trendConfidence is how sure a predicted breach must be.
	trendConfidence = 0.95
)

// risesTo returns the response time, in seconds, that the newest windows foretell
// for the time of the next step, if it is above the limit beyond doubt; 0 otherwise.
// By then the share that could be raised now would have evidence of its own.
//
// What was foretold a few windows ago still counts, so that one faster window does
// not let a raise through.
//
// What is older than so many windows before now is no trend of today.
func (s *signals) risesTo(now time.Time) float64 {
	points := s.trend
	for len(points) > 0 && points[0].At.Before(now.Add(-(trendWindows+trendMemory)*s.config.Window)) {
		points = points[1:]
	}
	for ago := range min(trendMemory, len(points)) {
		if to := s.config.foretold(points[:len(points)-ago]); to > 0 {
			return to
		}
	}
	return 0
}

// foretold fits a line to the newest of the points.
func (c Config) foretold(points []score.Point) float64 {
	if c.Latency == nil || len(points) < minTrendWindows {
		return 0
	}
	line, err := score.Trend(points[max(0, len(points)-trendWindows):])
	if err != nil {
		return 0 // no line is no news, and the other checks decide
	}
	// A raise is followed by the delay, a window that is cut off, and a full one; the
	// newest point can be a window old by now.
	next := points[len(points)-1].At.Add(c.SampleDelay + 3*c.Window)
	limit := c.Latency.Max.Seconds()
	// The line itself is looked at first, since it settles nearly every case.
	if line.Slope() <= 0 || line.At(next) <= limit {
		return 0
	}
	if rising, err := line.Rising(trendConfidence); err != nil || !rising {
		return 0
	}
	if exceeds, err := line.Exceeds(next, limit, trendConfidence); err != nil || !exceeds {
		return 0
	}
	return line.At(next)
}
