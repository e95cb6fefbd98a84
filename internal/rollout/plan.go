package rollout

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
	"github.com/weightedrollout/weightedrollout/internal/window"
)

// plan is the spec's plan and ramp in numbers. The step to 100 percent is always
// its last stage.
type plan struct {
	stages       []stage
	limits       weights.RampLimits
	interval     time.Duration
	warmup       weights.Warmup
	warmupSoak   time.Duration
	unhealthyFor time.Duration
	breaker      breaker
	// noDataTimeout is how long there may be no verdict.
	noDataTimeout time.Duration
	noDataText    string
	// windows are the times of the week in which the share may be raised.
	windows window.Schedule
	// deadline is how long the rollout may wait; degradedOnly, by default, that only the
	// time counts for which the canary is degraded.
	deadline     time.Duration
	deadlineText string
	degradedOnly bool
}

// breaker is what onUnhealthy.action Break means in numbers.
type breaker struct {
	cooldown time.Duration
	text     string // of the cooldown
	maxTrips int32
}

// The API's defaults, for fields that its schema leaves out.
const (
	defaultWarmupSoak = v1alpha1.Duration("10m")
	defaultCooldown   = v1alpha1.Duration("5m")
	defaultMaxTrips   = 3
	defaultNoData     = v1alpha1.Duration("1h")
)

type stage struct {
	share    weights.Share
	soak     time.Duration
	soakText string
	approval bool
}

func planFrom(spec *v1alpha1.WeightedRolloutSpec) (plan, error) {
	var p plan
	if len(spec.Plan.Stages) == 0 {
		return p, fmt.Errorf("spec.plan.stages is empty: give at least one stage")
	}
	last := weights.ShareNone
	for i, s := range spec.Plan.Stages {
		bp, err := s.Weight.BasisPoints()
		if err != nil {
			return p, fmt.Errorf("spec.plan.stages[%d].weight: %w", i, err)
		}
		share := weights.Share(bp)
		if share <= last {
			return p, fmt.Errorf("spec.plan.stages[%d].weight: weights must be above 0 and rise strictly from stage to stage", i)
		}
		soak, err := s.Soak.Parse()
		if err != nil {
			return p, fmt.Errorf("spec.plan.stages[%d].soak: %w", i, err)
		}
		if soak <= 0 {
			return p, fmt.Errorf("spec.plan.stages[%d].soak must be above 0", i)
		}
		p.stages = append(p.stages, stage{share: share, soak: soak, soakText: string(s.Soak), approval: s.Approval == v1alpha1.ApprovalRequired})
		last = share
	}
	if last < weights.ShareAll {
		p.stages = append(p.stages, stage{share: weights.ShareAll})
	}
	return p, p.readRamp(spec)
}

// readRamp fills in how fast the share may move, and what is done about an
// unhealthy canary.
func (p *plan) readRamp(spec *v1alpha1.WeightedRolloutSpec) (err error) {
	if p.limits, err = weights.RampLimitsFrom(spec.Ramp, spec.Plan.Stages); err != nil {
		return fmt.Errorf("spec.ramp: %w", err)
	}
	if p.warmup, err = weights.WarmupFrom(spec.Ramp.Warmup); err != nil {
		return fmt.Errorf("spec.%w", err)
	}
	cooldown := cmp.Or(spec.OnUnhealthy.Cooldown, defaultCooldown)
	p.breaker = breaker{text: string(cooldown), maxTrips: cmp.Or(spec.OnUnhealthy.MaxTrips, defaultMaxTrips)}
	timeout := defaultNoData
	if spec.Health != nil {
		timeout = cmp.Or(spec.Health.NoDataTimeout, defaultNoData)
	}
	p.noDataText = string(timeout)
	deadline := cmp.Or(spec.ProgressDeadline, v1alpha1.DefaultProgressDeadline)
	p.deadlineText, p.degradedOnly = string(deadline), spec.ProgressDeadline == ""
	if p.windows, err = window.Parse(spec.Plan.Windows); err != nil {
		return err
	}
	for _, field := range []struct {
		name string
		text v1alpha1.Duration
		into *time.Duration
	}{
		{"spec.ramp.interval", spec.Ramp.Interval, &p.interval},
		{"spec.ramp.warmup.soak", cmp.Or(spec.Ramp.Warmup.Soak, defaultWarmupSoak), &p.warmupSoak},
		{"spec.onUnhealthy.for", spec.OnUnhealthy.For, &p.unhealthyFor},
		{"spec.onUnhealthy.cooldown", cooldown, &p.breaker.cooldown},
		{"spec.health.noDataTimeout", timeout, &p.noDataTimeout},
		{"spec.progressDeadline", deadline, &p.deadline},
	} {
		if *field.into, err = field.text.Parse(); err != nil {
			return fmt.Errorf("%s: %w", field.name, err)
		}
	}
	return nil
}

// stageFor returns the index of the first stage whose share is at least the given one.
func (p plan) stageFor(share weights.Share) int {
	for i, s := range p.stages {
		if s.share >= share {
			return i
		}
	}
	return len(p.stages) - 1
}

func (p plan) last() int { return len(p.stages) - 1 }

func (p plan) position(i int) string { return fmt.Sprintf("%d/%d", i+1, len(p.stages)) }
