package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// defaultWarmupSoak is the API's.
const defaultWarmupSoak = v1alpha1.Duration("10m")

// plan is a spec in numbers.
type plan struct {
	stages     []stage
	limits     weights.RampLimits
	interval   time.Duration
	warmup     weights.Warmup
	warmupSoak time.Duration
	health     health.Config
	routes     []managed
}

type stage struct {
	share    weights.Share
	soak     time.Duration
	approval bool
}

// managed is a route of the spec; its rules are known only where it could be read.
type managed struct {
	// name of the route, and title with its kind.
	name, title string
	found       *route.Inspection
}

// rule returns the rule that the route's weights are shown of.
func (m managed) rule() route.ManagedRule {
	if m.found != nil && len(m.found.Rules) > 0 {
		return m.found.Rules[0]
	}
	return route.ManagedRule{}
}

// planFrom reads a spec. It fails, naming the field, on what is no plan: on a spec
// that did not pass the API's own checks.
func planFrom(spec *v1alpha1.WeightedRolloutSpec, routes map[string]route.Inspection) (plan, error) {
	var p plan
	for i, s := range spec.Plan.Stages {
		share, err := weights.ShareFrom(s.Weight)
		if err != nil {
			return p, fmt.Errorf("spec.plan.stages[%d].weight: %w", i, err)
		}
		if share <= p.last() {
			return p, fmt.Errorf("spec.plan.stages[%d].weight: weights must be above 0 and rise strictly from stage to stage", i)
		}
		soak, err := s.Soak.Parse()
		if err != nil {
			return p, fmt.Errorf("spec.plan.stages[%d].soak: %w", i, err)
		}
		p.stages = append(p.stages, stage{share, soak, s.Approval == v1alpha1.ApprovalRequired})
	}
	if len(p.stages) == 0 {
		return p, errors.New("spec.plan.stages is empty: give at least one stage")
	}
	if p.last() < weights.ShareAll {
		p.stages = append(p.stages, stage{share: weights.ShareAll})
	}
	for _, ref := range spec.Routes {
		m := managed{name: ref.Name, title: fmt.Sprintf("%s %q", kindOf(ref), ref.Name)}
		if found, ok := routes[RouteKey(ref)]; ok {
			m.found = &found
		}
		p.routes = append(p.routes, m)
	}
	return p, p.readLimits(spec)
}

// RouteKey tells the routes of a spec apart.
func RouteKey(ref v1alpha1.RouteReference) string { return string(kindOf(ref)) + "/" + ref.Name }

func kindOf(ref v1alpha1.RouteReference) v1alpha1.RouteKind {
	return cmp.Or(ref.Kind, v1alpha1.HTTPRouteKind)
}

// last is the share of the last stage that was read.
func (p *plan) last() weights.Share {
	if len(p.stages) == 0 {
		return weights.ShareNone
	}
	return p.stages[len(p.stages)-1].share
}

// readLimits fills in how fast the share may rise, and what is measured.
func (p *plan) readLimits(spec *v1alpha1.WeightedRolloutSpec) (err error) {
	if p.limits, err = weights.RampLimitsFrom(spec.Ramp, spec.Plan.Stages); err != nil {
		return fmt.Errorf("spec.ramp: %w", err)
	}
	if p.warmup, err = weights.WarmupFrom(spec.Ramp.Warmup); err != nil {
		return fmt.Errorf("spec.%w", err)
	}
	if p.interval, err = spec.Ramp.Interval.Parse(); err != nil {
		return fmt.Errorf("spec.ramp.interval: %w", err)
	}
	if p.warmupSoak, err = cmp.Or(spec.Ramp.Warmup.Soak, defaultWarmupSoak).Parse(); err != nil {
		return fmt.Errorf("spec.ramp.warmup.soak: %w", err)
	}
	if p.health, err = health.ConfigFrom(spec.Health, spec.OnUnhealthy.For); err != nil {
		return fmt.Errorf("spec.%w", err)
	}
	return nil
}

// counted says whether requests are counted, so that minimums of them apply.
func (p *plan) counted() bool { return !p.health.Disabled && p.health.Preset != "" }

// warmsUp says whether the first share of the rollout is below the first stage's, to
// warm the canary up.
func (p *plan) warmsUp() bool {
	return p.warmup.Initial < weights.ShareAll && p.warmup.First(p.stages[0].share, p.limits) < p.stages[0].share
}
