package weights

import (
	"fmt"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// The API's defaults, for objects that never passed through its schema.
const (
	defaultInitial   = 30 * SharePoint
	defaultIncrement = 20 * SharePoint
	// afterBreak is the first part of the stage's share after a break.
	afterBreak = 50 * SharePoint
)

// Warmup bounds the share of a cold canary, whose present share says nothing about
// what it can take: its caches are empty and its code is not compiled yet.
type Warmup struct {
	// Initial is the first share as a part of the stage's: 3000 is 30 percent of it.
	Initial Share
	// Increment is each later raise as a part of the stage's share.
	Increment Share
}

// WarmupFrom reads the warm-up from a spec. Fields that are empty have the API's
// default. It fails, naming the field, on a text that is no percentage and on 0.
func WarmupFrom(spec v1alpha1.Warmup) (Warmup, error) {
	w := Warmup{Initial: defaultInitial, Increment: defaultIncrement}
	if err := readShares(
		shareField{"ramp.warmup.initialPercent", spec.InitialPercent, &w.Initial},
		shareField{"ramp.warmup.incrementPercent", spec.IncrementPercent, &w.Increment},
	); err != nil {
		return Warmup{}, err
	}
	switch {
	case w.Initial <= ShareNone:
		return Warmup{}, fmt.Errorf("ramp.warmup.initialPercent must be above 0, or the canary would never warm up")
	case w.Increment <= ShareNone:
		return Warmup{}, fmt.Errorf("ramp.warmup.incrementPercent must be above 0, or the canary would never warm up")
	}
	return w, nil
}

// AfterBreak returns the warm-up of a canary that comes back from a break: it
// starts at half of the stage's share.
func (w Warmup) AfterBreak() Warmup {
	w.Initial = afterBreak
	return w
}

// First returns the first share of a cold canary: Initial of the stage's share, at
// least r.MinIncrease, at most r.MaxIncrease, and never above the stage.
func (w Warmup) First(stage Share, r RampLimits) Share {
	return w.raise(ShareNone, stage, w.Initial, r)
}

// Next returns the share that follows present while the canary warms up: more by
// Increment of the stage's share, at least by r.MinIncrease, at most by
// r.MaxIncrease, and never above the stage.
func (w Warmup) Next(present, stage Share, r RampLimits) Share {
	return w.raise(present, stage, w.Increment, r)
}

// Bound returns what keeps First (from a present share of 0) or Next from going
// further.
func (w Warmup) Bound(present, stage Share, r RampLimits) Bound {
	part, next := w.Increment, w.Next(present, stage, r)
	if present <= ShareNone {
		part, next = w.Initial, w.First(stage, r)
	}
	switch allowed := stage.Clamp() * part.Clamp() / ShareAll; {
	case next >= stage.Clamp():
		return BoundStage
	case allowed >= r.MaxIncrease:
		return BoundMaxIncrease
	case allowed < r.MinIncrease:
		return BoundMinIncrease
	}
	return BoundWarmup
}

// raise goes from present towards stage by a part of the stage's share. Rounding to
// whole points only ever makes the raise smaller, and never undoes it.
func (w Warmup) raise(present, stage, part Share, r RampLimits) Share {
	present, stage = present.Clamp(), stage.Clamp()
	step := max(r.MinIncrease, min(r.MaxIncrease, stage*part.Clamp()/ShareAll), 1)
	next := present + step
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
