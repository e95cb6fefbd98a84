package health

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

// Defaults of the API, for objects that were built without the API server.
const (
	defaultWindow            = v1alpha1.Duration("1m")
	defaultInterval          = v1alpha1.Duration("15s")
	defaultSampleDelay       = v1alpha1.Duration("15s")
	defaultFor               = v1alpha1.Duration("1m")
	defaultPercentile        = v1alpha1.Percent("99")
	defaultConfidencePercent = v1alpha1.Percent("95")
	defaultDegradedBelow     = v1alpha1.Decimal("0.9")
	defaultMinRequests       = 100
	defaultMinRampRequests   = 20
)

// Config is the parsed form of the spec's health section.
type Config struct {
	// Disabled means that nothing is measured and everything passes.
	Disabled bool
	// Window is the span of one evaluation, 1s to 1h, a whole multiple of Interval.
	Window time.Duration
	// Interval is the time between two evaluations, 1s to 1h.
	Interval time.Duration
	// SampleDelay is how long a request takes to show up in the metrics, 0 to 10m.
	SampleDelay time.Duration
	// For is how long a breach must last to be Unhealthy, 0 to 24h.
	For time.Duration
	// Preset names the gateway's metrics; empty: none are read.
	Preset v1alpha1.Preset
	// MinRequests is needed to end a stage, and MinRampRequests for a ramp step. Both
	// are at least 1, and apply only with a preset.
	MinRequests, MinRampRequests int64
	// Confidence is how sure bad news must be, above 0 and below 1; 0: 0.95.
	Confidence float64
	// NotWorse says that a stage needs the proof that the canary is not worse.
	NotWorse bool
	// DegradedBelow is the score below which the subject is degraded, 0.2 to 1.
	DegradedBelow float64
	// Penalties say how much errors and slowness take off the score.
	Penalties score.Penalties
	// ErrorRate limits failed requests; nil: it is not checked.
	ErrorRate *ErrorRate
	// Latency limits slow requests; nil: it is not checked.
	Latency *Latency
	// Checks are the spec's own checks in their order.
	Checks []Check
}

// ErrorRate is a limit on the part of requests that fail.
type ErrorRate struct {
	// Max is the highest acceptable part, 0 to 1.
	Max float64
	// Target is the part above which the subject is degraded, 0 to Max; nil: there is
	// none.
	Target *float64
	// MaxAboveStable is by how much the part may be above that of stable; 0: by any.
	MaxAboveStable float64
}

// Latency is a limit on the part of requests that are slow.
type Latency struct {
	// Percentile that is compared with Max, as a part: 0.5 up to 0.9999.
	Percentile float64
	// Max is the longest acceptable response time at the percentile.
	Max time.Duration
	// Target is the smoothed response time at the percentile above which the subject
	// is degraded, up to Max; 0: there is none.
	Target time.Duration
	// Smoothing is the part of the newest window in the moving average of the response
	// time, 0.1 to 0.3.
	Smoothing float64
	// MaxRatio is how many times as long as that of stable the response time at the
	// percentile may be, above 1; 0: any number.
	MaxRatio float64
}

// threshold is the response time in seconds from which the score falls.
func (l Latency) threshold() float64 {
	if l.Target > 0 {
		return l.Target.Seconds()
	}
	return l.Max.Seconds()
}

// maxSlow is the highest acceptable part of requests slower than Max.
func (l Latency) maxSlow() float64 { return 1 - l.Percentile }

// Check holds the limits of one of the spec's own checks.
type Check struct {
	// Name of the check.
	Name string
	// Min and Max are the limits, themselves acceptable; nil: unlimited.
	Min, Max *float64
	// Importance is the weight in the score, where that of the requests is 1; 0: none.
	Importance float64
}

// Signed reports whether the value can be below 0: where a limit says so. That of a check with
// max alone is taken for a count, a rate or a time, which can not.
func (k Check) Signed() bool { return k.Min != nil || k.Max != nil && *k.Max < 0 }

// Measures reports whether anything is to be read from a metrics server.
func (c Config) Measures() bool { return !c.Disabled }

// ConfigFrom parses the health section and onUnhealthy.for. Fields that are left
// out get the API's defaults. The error names the field that is wrong.
func ConfigFrom(h *v1alpha1.Health, onUnhealthyFor v1alpha1.Duration) (Config, error) {
	if h == nil {
		return Config{}, errors.New("health is missing")
	}
	c := Config{
		Disabled:        h.Disabled,
		Preset:          h.Preset,
		MinRequests:     orDefault(h.MinRequests, defaultMinRequests),
		MinRampRequests: orDefault(h.MinRampRequests, defaultMinRampRequests),
	}
	if err := c.parseTimes(h, onUnhealthyFor); err != nil {
		return Config{}, err
	}
	if h.Disabled {
		return c, nil
	}
	if c.MinRequests < 1 || c.MinRampRequests < 1 {
		return Config{}, errors.New("health.minRequests and health.minRampRequests must be at least 1")
	}
	if err := c.parseComparison(h); err != nil {
		return Config{}, err
	}
	if err := c.parsePreset(h); err != nil {
		return Config{}, err
	}
	if err := c.parseScore(h); err != nil {
		return Config{}, err
	}
	if err := c.parseChecks(h.Checks); err != nil {
		return Config{}, err
	}
	if c.ErrorRate == nil && c.Latency == nil && len(c.Checks) == 0 {
		return Config{}, errors.New("health has no check: set health.errorRate, health.latency or health.checks, or health.disabled: true")
	}
	return c, nil
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

func (c *Config) parseTimes(h *v1alpha1.Health, onUnhealthyFor v1alpha1.Duration) error {
	for _, f := range []struct {
		name     string
		text     v1alpha1.Duration
		min, max time.Duration
		into     *time.Duration
	}{
		{"health.window", orDefault(h.Window, defaultWindow), time.Second, time.Hour, &c.Window},
		{"health.interval", orDefault(h.Interval, defaultInterval), time.Second, time.Hour, &c.Interval},
		{"health.sampleDelay", orDefault(h.SampleDelay, defaultSampleDelay), 0, 10 * time.Minute, &c.SampleDelay},
		{"onUnhealthy.for", orDefault(onUnhealthyFor, defaultFor), 0, 24 * time.Hour, &c.For},
	} {
		d, err := parseDuration(f.name, f.text, f.min, f.max)
		if err != nil {
			return err
		}
		*f.into = d
	}
	if c.Window%c.Interval != 0 {
		return errors.New("health.window must be a whole multiple of health.interval")
	}
	return nil
}

func parseDuration(name string, text v1alpha1.Duration, lowest, highest time.Duration) (time.Duration, error) {
	d, err := text.Parse()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	// The API's finest unit is a millisecond, and so is that of the metrics' clock.
	if d < lowest || d > highest || d%time.Millisecond != 0 {
		return 0, fmt.Errorf("%s must be from %s to %s in whole milliseconds", name, lowest, highest)
	}
	return d, nil
}

func (c *Config) parsePreset(h *v1alpha1.Health) error {
	switch h.Preset {
	case v1alpha1.PresetTraefik, v1alpha1.PresetIstio, v1alpha1.PresetLinkerd, v1alpha1.PresetPods:
	case "":
		if h.ErrorRate != nil || h.Latency != nil {
			return errors.New("health.preset is required by health.errorRate and health.latency")
		}
	default:
		return fmt.Errorf("health.preset: %q is not known; use Traefik, Istio, Linkerd or Pods", string(h.Preset))
	}
	if err := c.parseErrorRate(h.ErrorRate); err != nil {
		return err
	}
	return c.parseLatency(h.Latency)
}

func (c *Config) parseChecks(checks []v1alpha1.Check) error {
	seen := make(map[string]bool, len(checks))
	for i, k := range checks {
		switch {
		case k.Name == "":
			return fmt.Errorf("health.checks[%d].name is missing", i)
		case seen[k.Name]:
			return fmt.Errorf("health.checks[%s] is given twice", k.Name)
		case k.Query == "":
			return fmt.Errorf("health.checks[%s].query is missing", k.Name)
		case k.Min == nil && k.Max == nil:
			return fmt.Errorf("health.checks[%s] has no limit: set min, max or both", k.Name)
		}
		seen[k.Name] = true
		lowest, err := parseLimit(k.Min)
		if err != nil {
			return fmt.Errorf("health.checks[%s].min: %w", k.Name, err)
		}
		highest, err := parseLimit(k.Max)
		if err != nil {
			return fmt.Errorf("health.checks[%s].max: %w", k.Name, err)
		}
		if lowest != nil && highest != nil && *lowest > *highest {
			return fmt.Errorf("health.checks[%s]: min is above max", k.Name)
		}
		importance, err := parseImportance(k.Importance)
		if err != nil {
			return fmt.Errorf("health.checks[%s].importance %w", k.Name, err)
		}
		c.Checks = append(c.Checks, Check{Name: k.Name, Min: lowest, Max: highest, Importance: importance})
	}
	return nil
}

func parseImportance(d v1alpha1.Decimal) (float64, error) {
	f, err := orDefault(d, "0").Float64()
	if err != nil || !(f >= 0 && f <= 100) {
		return 0, errors.New("must be from 0 to 100")
	}
	return f, nil
}

func parseLimit(d *v1alpha1.Decimal) (*float64, error) {
	if d == nil {
		return nil, nil
	}
	f, err := d.Float64()
	if err != nil {
		return nil, err
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%q is no limit that a value can be compared with", string(*d))
	}
	return &f, nil
}
