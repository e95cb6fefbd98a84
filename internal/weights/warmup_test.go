package weights_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

func TestWarmupWalks(t *testing.T) {
	usual := weights.Warmup{Initial: 3000, Increment: 2000}
	fine := defaults
	fine.WholePoints = false
	for _, tc := range []struct {
		name   string
		warmup weights.Warmup
		stage  weights.Share
		limits weights.RampLimits
		want   []weights.Share
	}{
		{"20 percent", usual, 2000, defaults, []weights.Share{600, 1000, 1400, 1800, 2000}},
		{"50 percent", usual, 5000, defaults, []weights.Share{1000, 2000, 3000, 4000, 5000}},
		{"5 percent", usual, 500, defaults, []weights.Share{100, 200, 300, 400, 500}},
		{"1 percent is the smallest step", usual, 100, defaults, []weights.Share{100}},
		{"after a break", usual.AfterBreak(), 1600, defaults, []weights.Share{800, 1100, 1400, 1600}},
		{"in basis points", usual, 333, weights.RampLimits{MinIncrease: 1, MaxIncrease: 1000, MaxChange: 2000}, []weights.Share{99, 165, 231, 297, 333}},
		{"whole points are rounded down", usual, 1100, defaults, []weights.Share{300, 500, 700, 900, 1100}},
		{"all at once", weights.Warmup{Initial: weights.ShareAll, Increment: 1}, 900, fine, []weights.Share{900}},
		{"nothing asked for", weights.Warmup{}, 250, fine, []weights.Share{100, 200, 250}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := []weights.Share{tc.warmup.First(tc.stage, tc.limits)}
			for at := got[0]; at < tc.stage && len(got) <= len(tc.want); {
				at = tc.warmup.Next(at, tc.stage, tc.limits)
				got = append(got, at)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("warm-up to %s (-want +got):\n%s", tc.stage, diff)
			}
		})
	}
}

// drawLimits draws limits as a spec can have them.
func drawLimits(t *rapid.T) weights.RampLimits {
	lowest := rapid.IntRange(1, int(weights.ShareAll)).Draw(t, "min")
	return weights.RampLimits{
		MinIncrease: weights.Share(lowest),
		MaxIncrease: weights.Share(rapid.IntRange(lowest, int(weights.ShareAll)).Draw(t, "max")),
		MaxChange:   weights.Share(rapid.IntRange(0, int(weights.ShareAll)).Draw(t, "change")),
		WholePoints: rapid.Bool().Draw(t, "whole"),
	}
}

// A warm-up always rises, never above its stage, and never by more than both its part
// and the ramp allow.
func TestWarmupProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := drawLimits(t)
		stage := weights.Share(rapid.IntRange(1, int(weights.ShareAll)).Draw(t, "stage"))
		present := weights.Share(rapid.IntRange(0, int(stage)-1).Draw(t, "present"))
		w := weights.Warmup{
			Initial:   weights.Share(rapid.IntRange(1, int(weights.ShareAll)).Draw(t, "initial")),
			Increment: weights.Share(rapid.IntRange(1, int(weights.ShareAll)).Draw(t, "increment")),
		}
		if first := w.First(stage, limits); first <= 0 || first > stage || first > limits.MaxIncrease || first > limits.MinIncrease && first*weights.ShareAll > stage*w.Initial {
			t.Fatalf("the first share of stage %d is %d", stage, first)
		}
		next := w.Next(present, stage, limits)
		rise := next - present
		if rise <= 0 || next > stage || rise > limits.MaxIncrease || rise > limits.MinIncrease && rise*weights.ShareAll > stage*w.Increment {
			t.Fatalf("%d is followed by %d on the way to %d", present, next, stage)
		}
	})
}

func TestWarmupFrom(t *testing.T) {
	for _, tc := range []struct {
		name string
		spec v1alpha1.Warmup
		want weights.Warmup
		err  string
	}{
		{"empty is the API's default", v1alpha1.Warmup{}, weights.Warmup{Initial: 3000, Increment: 2000}, ""},
		{"given", v1alpha1.Warmup{InitialPercent: "12.5", IncrementPercent: "100"}, weights.Warmup{Initial: 1250, Increment: 10000}, ""},
		{"no percentage", v1alpha1.Warmup{InitialPercent: "30%"}, weights.Warmup{}, "ramp.warmup.initialPercent: "},
		{"zero", v1alpha1.Warmup{IncrementPercent: "0"}, weights.Warmup{}, "ramp.warmup.incrementPercent must be above 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := weights.WarmupFrom(tc.spec)
			if (err != nil) != (tc.err != "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Fatalf("error %v, want one that starts with %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarmupBound(t *testing.T) {
	usual := weights.Warmup{Initial: 3000, Increment: 2000}
	for _, tc := range []struct {
		present, stage weights.Share
		want           weights.Bound
	}{
		{0, 100, weights.BoundStage},
		{0, 200, weights.BoundMinIncrease},
		{0, 2000, weights.BoundWarmup},
		{0, 5000, weights.BoundMaxIncrease},
		{600, 2000, weights.BoundWarmup},
		{1800, 2000, weights.BoundStage},
		{1000, 5000, weights.BoundMaxIncrease},
		{300, 450, weights.BoundMinIncrease},
	} {
		if got := usual.Bound(tc.present, tc.stage, defaults); got != tc.want {
			t.Errorf("from %s to %s: %q, want %q", tc.present, tc.stage, got, tc.want)
		}
	}
}

// The bound that is named is the one that binds: without it the raise would be larger.
func TestBound(t *testing.T) {
	for _, tc := range []struct {
		present, stage weights.Share
		want           weights.Bound
	}{
		{0, 100, weights.BoundStage},
		{100, 500, weights.BoundMinIncrease},
		{2000, 5000, weights.BoundMaxChange},
		{4600, 5000, weights.BoundStage},
		{5000, 10000, weights.BoundMaxIncrease},
		{7000, 10000, weights.BoundMaxIncrease},
	} {
		if got := defaults.Bound(tc.present, tc.stage); got != tc.want {
			t.Errorf("from %s to %s: %q, want %q", tc.present, tc.stage, got, tc.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		limits := drawLimits(t)
		limits.WholePoints = false
		stage := weights.Share(rapid.IntRange(1, int(weights.ShareAll)).Draw(t, "stage"))
		present := weights.Share(rapid.IntRange(0, int(stage)-1).Draw(t, "present"))
		next := weights.NextRaise(present, stage, limits)
		wider := limits
		switch limits.Bound(present, stage) {
		case weights.BoundStage:
			if next != stage {
				t.Fatalf("the stage does not bind %d", next)
			}
			return
		case weights.BoundMinIncrease:
			wider.MinIncrease++
			wider.MaxIncrease++
		case weights.BoundMaxIncrease:
			wider.MaxIncrease++
			wider.MaxChange += weights.ShareAll
		case weights.BoundMaxChange:
			wider.MaxChange += weights.ShareAll
		default:
			t.Fatalf("bound %q", limits.Bound(present, stage))
		}
		if weights.NextRaise(present, stage, wider) <= next && limits.MaxIncrease < weights.ShareAll && wider.MaxChange <= weights.ShareAll {
			t.Fatalf("from %d to %d %q does not bind %d", present, stage, limits.Bound(present, stage), next)
		}
	})
}
