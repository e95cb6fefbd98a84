package health

import (
	"errors"
	"fmt"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

func (c *Config) parseErrorRate(e *v1alpha1.ErrorRate) error {
	if e == nil {
		return nil
	}
	bp, err := e.MaxPercent.BasisPoints()
	if err != nil {
		return fmt.Errorf("health.errorRate.maxPercent: %w", err)
	}
	c.ErrorRate = &ErrorRate{Max: float64(bp) / 10000}
	if e.MaxAboveStablePercent != "" {
		margin, err := e.MaxAboveStablePercent.BasisPoints()
		if err != nil || margin == 0 {
			return errors.New("health.errorRate.maxAboveStablePercent must be a percentage above 0")
		}
		c.ErrorRate.MaxAboveStable = float64(margin) / 10000
	}
	if e.TargetPercent == "" {
		return nil
	}
	target, err := e.TargetPercent.BasisPoints()
	if err != nil {
		return fmt.Errorf("health.errorRate.targetPercent: %w", err)
	}
	if target > bp {
		return errors.New("health.errorRate.targetPercent is above health.errorRate.maxPercent")
	}
	part := float64(target) / 10000
	c.ErrorRate.Target = &part
	return nil
}

func (c *Config) parseLatency(l *v1alpha1.Latency) error {
	if l == nil {
		return nil
	}
	bp, err := orDefault(l.Percentile, defaultPercentile).BasisPoints()
	if err != nil {
		return fmt.Errorf("health.latency.percentile: %w", err)
	}
	if bp < 5000 || bp >= 10000 {
		return errors.New("health.latency.percentile must be at least 50 and below 100")
	}
	const shortest, longest = time.Millisecond, 10 * time.Minute
	limit, err := parseDuration("health.latency.max", l.Max, shortest, longest)
	if err != nil {
		return err
	}
	parsed := Latency{Percentile: float64(bp) / 10000, Max: limit, Smoothing: score.DefaultAlpha}
	if l.Target != "" {
		if parsed.Target, err = parseDuration("health.latency.target", l.Target, shortest, longest); err != nil {
			return err
		}
		if parsed.Target > limit {
			return errors.New("health.latency.target is above health.latency.max")
		}
	}
	if l.Smoothing != "" {
		if parsed.Smoothing, err = l.Smoothing.Float64(); err != nil {
			return fmt.Errorf("health.latency.smoothing: %w", err)
		}
	}
	if _, err := score.NewEMA(parsed.Smoothing); err != nil {
		return fmt.Errorf("health.latency.smoothing: %w", err)
	}
	c.Latency = &parsed
	return c.Latency.parseRatio(l)
}

func (l *Latency) parseRatio(from *v1alpha1.Latency) (err error) {
	if from.MaxRatioToStable == "" {
		return nil
	}
	if l.MaxRatio, err = from.MaxRatioToStable.Float64(); err != nil || !(l.MaxRatio > 1 && l.MaxRatio <= 100) {
		return errors.New("health.latency.maxRatioToStable must be above 1 and at most 100")
	}
	return nil
}

// parseComparison reads how sure bad news must be, and what a stage needs.
func (c *Config) parseComparison(h *v1alpha1.Health) error {
	bp, err := orDefault(h.Confidence, defaultConfidencePercent).BasisPoints()
	if err != nil || bp < 8000 || bp > 9990 {
		return errors.New("health.confidence must be from 80 to 99.9 percent")
	}
	c.Confidence = float64(bp) / 10000
	switch h.Require {
	case v1alpha1.RequireNoBreach, "":
	case v1alpha1.RequireNotWorse:
		c.NotWorse = true
		if h.ErrorRate == nil && h.Latency == nil {
			return errors.New("health.require NotWorse needs health.errorRate or health.latency")
		}
	default:
		return fmt.Errorf("health.require: %q is not known; use NoBreach or NotWorse", string(h.Require))
	}
	return nil
}

// parseScore reads what the score is made of.
func (c *Config) parseScore(h *v1alpha1.Health) error {
	var err error
	if c.DegradedBelow, err = orDefault(h.DegradedBelow, defaultDegradedBelow).Float64(); err != nil {
		return fmt.Errorf("health.degradedBelow: %w", err)
	}
	if !(c.DegradedBelow >= score.HealthFloor && c.DegradedBelow <= score.HealthFull) {
		return fmt.Errorf("health.degradedBelow must be from %v to %v", score.HealthFloor, score.HealthFull)
	}
	c.Penalties = score.DefaultPenalties()
	if h.ErrorRate != nil && h.ErrorRate.Penalty != "" {
		if c.Penalties.Error, err = h.ErrorRate.Penalty.Float64(); err != nil {
			return fmt.Errorf("health.errorRate.penalty: %w", err)
		}
	}
	if h.Latency != nil && h.Latency.Penalty != "" {
		if c.Penalties.Latency, err = h.Latency.Penalty.Float64(); err != nil {
			return fmt.Errorf("health.latency.penalty: %w", err)
		}
	}
	if _, err := score.Health(0, 0, 1, c.Penalties); err != nil {
		return fmt.Errorf("health.errorRate.penalty and health.latency.penalty: %w", err)
	}
	return nil
}
