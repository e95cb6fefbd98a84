package balance

import (
	"fmt"

	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

// Settings say how a Group follows its response times. Smoothing, dead band and step
// cap belong together: each stops an oscillation that the other two do not.
type Settings struct {
	// Baseline is the response time that changes nothing, in seconds, from
	// MinResponseTime to 1000.
	Baseline float64
	// Gain is the change for a smoothed response time that is off by a whole Baseline, as
	// a part of the present weight, from 0.05 to 1. The later a weight shows in the
	// response times, and the more they depend on it, the smaller the gain must be.
	Gain float64
	// Alpha is the part of an observation in the smoothed response time, from 0.1 to
	// 0.3, or 1 for no smoothing.
	Alpha float64
	// DeadBand is the least change, as a part of the present weight, that is made at
	// all. From 0 to below Step.
	DeadBand float64
	// Step is the largest change per observation, as a part of the present weight, above
	// 0 and at most 1, which is no cap.
	Step float64
	// Floor is the part of the largest weight that no backend goes under, from 0.1 to
	// 0.2.
	Floor float64
	// Headroom is how many times its configured weight a backend that is faster than
	// Baseline may get, from 1 to 10.
	Headroom float64
	// Good is the part of Baseline at or under which an observation is a good check,
	// above 0 and at most 1.
	Good float64
	// Recovery is the number of good checks in a row that restore a configured weight,
	// from 1 to 1000.
	Recovery int
}

// DefaultSettings returns a baseline of 50 ms, a gain of 0.2, smoothing by 0.2, a dead
// band of 2 %, steps of at most 20 %, a floor of 10 %, a headroom of 2, and a recovery
// after 3 checks at or under 80 % of the baseline. A weight then moves once its
// smoothed response time is 10 % off the baseline, and by a whole step at twice the
// baseline.
func DefaultSettings() Settings {
	return Settings{
		Baseline: 0.05,
		Gain:     0.2,
		Alpha:    score.DefaultAlpha,
		DeadBand: 0.02,
		Step:     0.2,
		Floor:    0.1,
		Headroom: 2,
		Good:     0.8,
		Recovery: 3,
	}
}

// noSmoothing is the Alpha at which an observation counts as it is.
const noSmoothing = 1

// average returns the average that a backend starts with, which has not started.
func (s Settings) average() (score.EMA, error) {
	if s.Alpha == noSmoothing {
		return score.EMA{}, nil // It is started anew by each observation.
	}
	return score.NewEMA(s.Alpha)
}

// validate refuses settings outside their ranges. The comparisons are written so that NaN is
// outside.
func (s Settings) validate() error {
	for _, check := range []struct {
		ok    bool
		name  string
		value any
		want  string
	}{
		{s.Baseline >= MinResponseTime && s.Baseline <= 1000, "Baseline", s.Baseline, "a time from 0.001 to 1000 s"},
		{s.Gain >= 0.05 && s.Gain <= 1, "Gain", s.Gain, "a part from 0.05 to 1"},
		{s.Step > 0 && s.Step <= 1, "Step", s.Step, "a part above 0 and at most 1"},
		{s.DeadBand >= 0 && s.DeadBand < s.Step, "DeadBand", s.DeadBand, "a part from 0 to below Step, or no weight would ever change"},
		{s.Floor >= 0.1 && s.Floor <= 0.2, "Floor", s.Floor, "a part from 0.1 to 0.2"},
		{s.Headroom >= 1 && s.Headroom <= 10, "Headroom", s.Headroom, "a factor from 1 to 10"},
		{s.Good > 0 && s.Good <= 1, "Good", s.Good, "a part above 0 and at most 1"},
		{s.Recovery >= 1 && s.Recovery <= 1000, "Recovery", s.Recovery, "a number from 1 to 1000"},
	} {
		if !check.ok {
			return fmt.Errorf("%s is %v; take %s", check.name, check.value, check.want)
		}
	}
	return nil
}
