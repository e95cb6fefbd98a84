package simulate

import (
	"fmt"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// Defaults of a scenario.
const (
	defaultRPS     = 100
	defaultErrors  = 0.001
	defaultLatency = 50 * time.Millisecond
	defaultDelay   = 2 * time.Second
)

// Limits of a scenario.
const (
	maxRPS     = 1_000_000
	maxDelay   = time.Hour
	minLatency = time.Millisecond
	maxLatency = 10 * time.Minute
	maxWeight  = 1_000_000
	maxCold    = 24 * time.Hour
	maxFactor  = 100
	firstYear  = 2000
	lastYear   = 2099
)

// script is a scenario in numbers.
type script struct {
	start          time.Time
	duration       time.Duration // 0: until nothing can change any more
	rps            timeline
	delay          time.Duration
	stable, canary profile
	checks         map[string]timeline
	incidents      []incident
}

// profile is how a track does.
type profile struct {
	errors  timeline // part of the requests, 0 to 1
	latency timeline // median, in seconds
	cold    cold
}

// cold is how pods do that have just got their first traffic.
type cold struct {
	lasts  time.Duration
	factor float64
	errors float64
}

// compile reads a scenario; nil is the quiet world. The error names the field that is
// wrong and says what to change.
func compile(s *Scenario) (script, error) {
	if s == nil {
		s = &Scenario{}
	}
	c := script{start: DefaultStart, delay: defaultDelay, checks: map[string]timeline{}}
	var err error
	if s.Start != "" {
		if c.start, err = startOf(s.Start); err != nil {
			return c, err
		}
	}
	if s.Duration != "" {
		if c.duration, err = spanOf("duration", s.Duration, time.Millisecond, longest); err != nil {
			return c, err
		}
	}
	if c.rps, err = rateLine(s.Traffic); err != nil {
		return c, err
	}
	if s.Gateway.Delay != "" {
		if c.delay, err = spanOf("gateway.delay", s.Gateway.Delay, 0, maxDelay); err != nil {
			return c, err
		}
	}
	if s.Stable.Cold != nil {
		return c, fmt.Errorf("stable.cold: only the canary gets its first traffic during a rollout: move it to canary.cold")
	}
	if c.stable, err = profileOf("stable", s.Stable); err != nil {
		return c, err
	}
	if c.canary, err = profileOf("canary", s.Canary); err != nil {
		return c, err
	}
	for name, steps := range s.Checks {
		if len(steps) == 0 {
			continue
		}
		if c.checks[name], err = line("checks."+name, 0, steps, decimal); err != nil {
			return c, err
		}
	}
	c.incidents, err = incidentsOf(s.Events)
	return c, err
}

// startOf reads the date and time of the start.
func startOf(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil:
		return at, fmt.Errorf("start is %q: write a date and a time with its offset from UTC, such as 2026-01-09T15:30:00-05:00, or with a Z for UTC", text)
	case at.UTC().Year() < firstYear || at.UTC().Year() > lastYear || at.Nanosecond() != 0:
		return at, fmt.Errorf("start is %q: it must be a whole second of the years from %d to %d", text, firstYear, lastYear)
	}
	return at.UTC(), nil
}

func decimal(field string, v v1alpha1.Decimal) (float64, error) {
	return numberOf(field, v, -1e15, 1e15)
}

// numberOf reads a number between two limits.
func numberOf(field string, v v1alpha1.Decimal, lowest, highest float64) (float64, error) {
	if v == "" {
		return 0, fmt.Errorf("%s is missing: give a number", field)
	}
	f, err := v.Float64()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", field, err)
	}
	if !(f >= lowest && f <= highest) {
		return 0, fmt.Errorf("%s is %s: it must be from %g to %g", field, string(v), lowest, highest)
	}
	return f, nil
}

func failures(field string, v v1alpha1.Percent) (float64, error) {
	if v == "" {
		return 0, fmt.Errorf("%s is missing: give a percentage", field)
	}
	bp, err := v.BasisPoints()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", field, err)
	}
	return float64(bp) / 10000, nil
}

func median(field string, v v1alpha1.Duration) (float64, error) {
	d, err := spanOf(field, v, minLatency, maxLatency)
	return d.Seconds(), err
}

// rateLine reads the traffic.
func rateLine(steps []RateStep) (timeline, error) {
	same := make([]Step[v1alpha1.Decimal], len(steps))
	for i, s := range steps {
		same[i] = Step[v1alpha1.Decimal]{At: s.At, Value: s.RPS, Over: s.Over, For: s.For}
	}
	return lineOf("traffic", "rps", defaultRPS, same, func(field string, v v1alpha1.Decimal) (float64, error) {
		return numberOf(field, v, 0, maxRPS)
	})
}

func line[T ~string](field string, start float64, steps []Step[T], read func(string, T) (float64, error)) (timeline, error) {
	return lineOf(field, "value", start, steps, read)
}

// lineOf reads the steps of a field whose values have the given name.
func lineOf[T ~string](field, name string, start float64, steps []Step[T], read func(string, T) (float64, error)) (timeline, error) {
	changes := make([]change, len(steps))
	for i, s := range steps {
		at := fmt.Sprintf("%s[%d]", field, i)
		c, err := timesOf(at, s.At, s.Over, s.For)
		if err != nil {
			return nil, err
		}
		if c.value, err = read(at+"."+name, s.Value); err != nil {
			return nil, err
		}
		changes[i] = c
	}
	if len(changes) > 0 && changes[0].at == 0 && changes[0].over == 0 && changes[0].lasts == 0 {
		start = changes[0].value
	}
	return newTimeline(field, start, changes)
}

func profileOf(field string, t Track) (profile, error) {
	var p profile
	var err error
	if p.errors, err = line(field+".errorPercent", defaultErrors, t.ErrorPercent, failures); err != nil {
		return p, err
	}
	if p.latency, err = line(field+".latency", defaultLatency.Seconds(), t.Latency, median); err != nil {
		return p, err
	}
	if t.Cold != nil {
		p.cold, err = coldOf(field+".cold", *t.Cold)
	}
	return p, err
}

func coldOf(field string, t Cold) (cold, error) {
	c := cold{factor: 1}
	var err error
	if c.lasts, err = spanOf(field+".for", t.For, time.Millisecond, maxCold); err != nil {
		return c, err
	}
	if t.LatencyFactor != "" {
		if c.factor, err = numberOf(field+".latencyFactor", t.LatencyFactor, 1, maxFactor); err != nil {
			return c, err
		}
	}
	if t.ErrorPercent != "" {
		c.errors, err = failures(field+".errorPercent", t.ErrorPercent)
	}
	return c, err
}
