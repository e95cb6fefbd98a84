package weights

import (
	"fmt"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// The API's defaults, for objects that never passed through its schema.
const (
	defaultMinIncrease      = SharePoint
	defaultMaxIncrease      = 10 * SharePoint
	defaultMaxChangePercent = 20 * SharePoint
)

// RampLimits bound a single raise of the canary's share.
type RampLimits struct {
	// MinIncrease is the raise that is always allowed, at least 1 basis point.
	MinIncrease Share
	// MaxIncrease is the largest raise, at least MinIncrease.
	MaxIncrease Share
	// MaxChange is the largest raise as a part of the present share: 2000 is a raise
	// by a fifth.
	MaxChange Share
	// WholePoints rounds the share that a raise leads to down to whole points.
	WholePoints bool
}

// RampLimitsFrom reads the limits from a spec. Fields that are empty have the
// API's default. WholePoints is set when every stage's weight and minIncrease are
// whole points: a plan that is written in whole points then never shows another
// weight. It fails, naming the field, on a text that is no percentage, on a
// minIncrease of 0 (the share would never rise) and on one above maxIncrease.
func RampLimitsFrom(ramp v1alpha1.Ramp, stages []v1alpha1.Stage) (RampLimits, error) {
	limits := RampLimits{
		MinIncrease: defaultMinIncrease,
		MaxIncrease: defaultMaxIncrease,
		MaxChange:   defaultMaxChangePercent,
	}
	if err := readShares(
		shareField{"ramp.minIncrease", ramp.MinIncrease, &limits.MinIncrease},
		shareField{"ramp.maxIncrease", ramp.MaxIncrease, &limits.MaxIncrease},
		shareField{"ramp.maxChangePercent", ramp.MaxChangePercent, &limits.MaxChange},
	); err != nil {
		return RampLimits{}, err
	}
	if limits.MinIncrease <= ShareNone {
		return RampLimits{}, fmt.Errorf("ramp.minIncrease must be above 0, or the share would never rise")
	}
	if limits.MinIncrease > limits.MaxIncrease {
		return RampLimits{}, fmt.Errorf("ramp.minIncrease (%s) is above ramp.maxIncrease (%s)", limits.MinIncrease, limits.MaxIncrease)
	}

	limits.WholePoints = limits.MinIncrease.Whole()
	for i, stage := range stages {
		share, err := ShareFrom(stage.Weight)
		if err != nil {
			return RampLimits{}, fmt.Errorf("plan.stages[%d].weight: %w", i, err)
		}
		limits.WholePoints = limits.WholePoints && share.Whole()
	}
	return limits, nil
}

// shareField is a percentage of the spec by its name, and where its value goes.
type shareField struct {
	name string
	text v1alpha1.Percent
	into *Share
}

// readShares reads the fields that are not empty.
func readShares(fields ...shareField) error {
	for _, f := range fields {
		if f.text == "" {
			continue
		}
		share, err := ShareFrom(f.text)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		*f.into = share
	}
	return nil
}

// Cap returns the largest raise from present: MaxChange of it, no more than
// MaxIncrease, but no less than MinIncrease, and never less than 1 basis point.
func (r RampLimits) Cap(present Share) Share {
	change := present.Clamp() * r.MaxChange.Clamp() / ShareAll
	return max(r.MinIncrease, min(r.MaxIncrease, change), 1)
}

// Bound names what kept a raise from being larger: a field of the spec.
type Bound string

const (
	// BoundStage is the weight of the present stage.
	BoundStage Bound = "stage"
	// BoundMinIncrease is ramp.minIncrease, where maxChangePercent would allow less.
	BoundMinIncrease Bound = "minIncrease"
	// BoundMaxIncrease is ramp.maxIncrease.
	BoundMaxIncrease Bound = "maxIncrease"
	// BoundMaxChange is ramp.maxChangePercent.
	BoundMaxChange Bound = "maxChangePercent"
	// BoundWarmup is ramp.warmup.
	BoundWarmup Bound = "warmup"
)

// Bound returns what keeps NextRaise from going further.
func (r RampLimits) Bound(present, stage Share) Bound {
	change := present.Clamp() * r.MaxChange.Clamp() / ShareAll
	limit := r.Cap(present)
	switch {
	case present.Clamp()+limit >= stage.Clamp():
		return BoundStage
	case change >= r.MaxIncrease:
		return BoundMaxIncrease
	case change < limit:
		return BoundMinIncrease
	}
	return BoundMaxChange
}

// NextRaise returns the share that follows present on the way up to stage. It
// rises strictly, by no more than r.Cap(present), and never passes stage. From a
// present share at or above stage it returns stage: lowering has no cap.
//
// Rounding to whole points only ever makes a raise smaller. Where it would undo
// the raise (a MinIncrease below one point), the unrounded share is taken, so that
// a ramp never stands still and the cap still holds. With a MinIncrease of a point
// or more that does not happen: the next whole point is always within reach. The
// stage itself is never rounded.
func NextRaise(present, stage Share, r RampLimits) Share {
	present, stage = present.Clamp(), stage.Clamp()
	next := present + r.Cap(present)
	if next >= stage {
		return stage
	}
	if r.WholePoints {
		if whole := next - next%SharePoint; whole > present {
			return whole
		}
	}
	return next
}
