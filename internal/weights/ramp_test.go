package weights_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

var defaults = weights.RampLimits{MinIncrease: 100, MaxIncrease: 1000, MaxChange: 2000, WholePoints: true}

func TestNextRaiseWalks(t *testing.T) {
	fine := defaults
	fine.WholePoints = false
	for _, tc := range []struct {
		name        string
		from, stage weights.Share
		limits      weights.RampLimits
		want        []weights.Share
	}{
		{"1 to 5", 100, 500, defaults, []weights.Share{200, 300, 400, 500}},
		{"5 to 10", 500, 1000, defaults, []weights.Share{600, 700, 800, 900, 1000}},
		{"10 to 20", 1000, 2000, defaults, []weights.Share{1200, 1400, 1600, 1900, 2000}},
		{"20 to 50", 2000, 5000, defaults, []weights.Share{2400, 2800, 3300, 3900, 4600, 5000}},
		{"50 to 100", 5000, 10000, defaults, []weights.Share{6000, 7000, 8000, 9000, 10000}},
		{"in basis points", 2000, 3000, fine, []weights.Share{2400, 2880, 3000}},
		{"from a share between points", 1437, 2000, defaults, []weights.Share{1700, 2000}},
		{"half a point at a time", 1000, 1200, weights.RampLimits{MinIncrease: 50, MaxIncrease: 50, MaxChange: 1, WholePoints: true}, []weights.Share{1050, 1100, 1150, 1200}},
		{"a fraction of a point", 0, 150, weights.RampLimits{MinIncrease: 30, MaxIncrease: 100, MaxChange: 1, WholePoints: true}, []weights.Share{30, 60, 90, 100, 130, 150}},
		{"no limits at all", 9998, 10000, weights.RampLimits{}, []weights.Share{9999, 10000}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []weights.Share
			for at := tc.from; at < tc.stage && len(got) <= len(tc.want); {
				at = weights.NextRaise(at, tc.stage, tc.limits)
				got = append(got, at)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ramp from %s to %s (-want +got):\n%s", tc.from, tc.stage, diff)
			}
		})
	}
}

func TestNextRaiseLowersAtOnce(t *testing.T) {
	for _, present := range []weights.Share{1000, 1001, 5000, weights.ShareAll, weights.ShareAll + 5} {
		if got := weights.NextRaise(present, 1000, defaults); got != 1000 {
			t.Errorf("NextRaise(%d, 1000) = %d, want 1000", present, got)
		}
	}
}

func TestNextRaiseProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stage := weights.Share(rapid.IntRange(1, int(weights.ShareAll)).Draw(t, "stage"))
		present := weights.Share(rapid.IntRange(0, int(stage)-1).Draw(t, "present"))
		limits := weights.RampLimits{
			MinIncrease: weights.Share(rapid.IntRange(1, int(weights.ShareAll)).Draw(t, "min")),
			MaxIncrease: weights.Share(rapid.IntRange(1, int(weights.ShareAll)).Draw(t, "max")),
			MaxChange:   weights.Share(rapid.IntRange(0, int(weights.ShareAll)).Draw(t, "change")),
			WholePoints: rapid.Bool().Draw(t, "whole"),
		}
		next := weights.NextRaise(present, stage, limits)
		if next <= present {
			t.Fatalf("no raise: %d to %d", present, next)
		}
		if next > stage {
			t.Fatalf("%d passes the stage %d", next, stage)
		}
		change := present * limits.MaxChange / weights.ShareAll
		if limit := max(limits.MinIncrease, min(limits.MaxIncrease, change)); next-present > limit {
			t.Fatalf("a raise from %d to %d is above %d", present, next, limit)
		}
		if limits.WholePoints && limits.MinIncrease >= weights.SharePoint && next != stage && !next.Whole() {
			t.Fatalf("%s is not in whole points", next)
		}
		exact := limits
		exact.WholePoints = false
		if unrounded := weights.NextRaise(present, stage, exact); next > unrounded {
			t.Fatalf("rounding raised %d to %d", unrounded, next)
		}
	})
}

// A ramp ends: from any share, any stage is reached in a number of steps that the
// smallest raise bounds.
func TestNextRaiseArrives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := weights.RampLimits{
			MinIncrease: weights.Share(rapid.IntRange(25, 1000).Draw(t, "min")),
			MaxIncrease: 1000,
			MaxChange:   weights.Share(rapid.IntRange(0, int(weights.ShareAll)).Draw(t, "change")),
			WholePoints: rapid.Bool().Draw(t, "whole"),
		}
		at := weights.Share(rapid.IntRange(0, int(weights.ShareAll)-1).Draw(t, "from"))
		for range 2 * int(weights.ShareAll) / int(limits.MinIncrease) {
			if at = weights.NextRaise(at, weights.ShareAll, limits); at == weights.ShareAll {
				return
			}
		}
		t.Fatalf("stuck at %d", at)
	})
}

func TestRampLimitsFrom(t *testing.T) {
	stages := func(weights ...v1alpha1.Percent) (s []v1alpha1.Stage) {
		for _, w := range weights {
			s = append(s, v1alpha1.Stage{Weight: w})
		}
		return s
	}
	for _, tc := range []struct {
		name   string
		ramp   v1alpha1.Ramp
		stages []v1alpha1.Stage
		want   weights.RampLimits
		err    string
	}{
		{name: "empty is the API's default", stages: stages("1", "5"), want: defaults},
		{name: "as the API fills it in", ramp: v1alpha1.Ramp{MinIncrease: "1", MaxIncrease: "10", MaxChangePercent: "20"}, want: defaults},
		{name: "a stage with a fraction", stages: stages("0.5", "5"), want: weights.RampLimits{100, 1000, 2000, false}},
		{name: "whole points with a point", stages: stages("1.00", "5.0"), want: defaults},
		{name: "a smallest raise with a fraction", ramp: v1alpha1.Ramp{MinIncrease: "0.5"}, stages: stages("5"), want: weights.RampLimits{50, 1000, 2000, false}},
		{name: "a largest raise with a fraction", ramp: v1alpha1.Ramp{MaxIncrease: "1.5"}, stages: stages("5"), want: weights.RampLimits{100, 150, 2000, true}},
		{name: "no percentage", ramp: v1alpha1.Ramp{MaxChangePercent: "20%"}, err: "ramp.maxChangePercent: "},
		{name: "no raise", ramp: v1alpha1.Ramp{MinIncrease: "0"}, err: "ramp.minIncrease must be above 0"},
		{name: "crossed", ramp: v1alpha1.Ramp{MinIncrease: "5", MaxIncrease: "4"}, err: "ramp.minIncrease (5%) is above ramp.maxIncrease (4%)"},
		{name: "a stage that is no percentage", stages: stages("1", "x"), err: "plan.stages[1].weight: "},
		{name: "a stage without a weight", stages: stages(""), err: "plan.stages[0].weight: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := weights.RampLimitsFrom(tc.ramp, tc.stages)
			if tc.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.err) {
					t.Fatalf("error %v, want one that starts with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func BenchmarkNextRaise(b *testing.B) {
	b.ReportAllocs()
	at := weights.ShareNone
	for b.Loop() {
		if at = weights.NextRaise(at, weights.ShareAll, defaults); at == weights.ShareAll {
			at = weights.ShareNone
		}
	}
}
