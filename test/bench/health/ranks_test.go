package main

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/weightedrollout/weightedrollout/internal/health/compare"
)

// The p-values that others publish for these series: the example in the documentation
// of scipy.stats.mannwhitneyu (method asymptotic), and a test of ClickHouse's
// mannWhitneyUTest, which has ties.
func TestStatisticOfPublishedExamples(t *testing.T) {
	for name, tc := range map[string]struct {
		x, y []float64
		want float64
	}{
		"SciPy": {[]float64{19, 22, 16, 29, 24}, []float64{20, 11, 17, 12}, 0.11134688653314041},
		"ClickHouse": {
			[]float64{310, 195, 530, 155, 530, 245, 385, 450, 465, 545, 170, 180, 125, 180, 230, 75, 430, 480, 495, 295},
			[]float64{116, 171, 176, 421, 111, 326, 481, 111, 346, 441, 261, 411, 206, 521, 456, 446, 296, 51, 426, 261},
			0.5426959774289482,
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, y := slices.Sorted(slices.Values(tc.x)), slices.Sorted(slices.Values(tc.y))
			for _, z := range []float64{statistic(x, y, 0), -statistic(y, x, 0), statistic(shifted(x, 7), y, 7)} {
				if got := 2 * distuv.UnitNormal.Survival(z); math.Abs(got-tc.want) > 1e-12 {
					t.Errorf("p is %v, want %v", got, tc.want)
				}
			}
		})
	}
}

func shifted(x []float64, by float64) []float64 {
	y := slices.Clone(x)
	for k := range y {
		y[k] += by
	}
	return y
}

func TestStatisticOfTiesOnly(t *testing.T) {
	if got := statistic([]float64{1, 1}, []float64{1, 1, 1}, 0); got != 0 {
		t.Errorf("%v, want 0", got)
	}
}

// The estimate of Hodges and Lehmann is the median of all differences.
func TestShift(t *testing.T) {
	x, y := []float64{3, 5, 8, 13, 21}, []float64{1, 2, 4}
	var all []float64
	for _, a := range x {
		for _, b := range y {
			all = append(all, a-b)
		}
	}
	slices.Sort(all)
	if got, want := shift(x, y), all[len(all)/2]; math.Abs(got-want) > 1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
}

func minute(stableBad, canaryBad float64) compare.Block {
	return compare.Block{Stable: compare.Counts{Bad: stableBad, Total: 1000}, Canary: compare.Counts{Bad: canaryBad, Total: 1000}}
}

func TestRanks(t *testing.T) {
	tests := map[string]struct {
		stable, canary []float64
		want           int // the minute in which it is worse; 0: never
	}{
		// With four minutes the lower end cannot be above 0 at 98 %, with five it can.
		"clearly worse":            {[]float64{1, 2, 3, 4, 5, 6}, []float64{101, 102, 103, 104, 105, 106}, 5},
		"better":                   {[]float64{101, 102, 103, 104, 105, 106}, []float64{1, 2, 3, 4, 5, 6}, 0},
		"the same":                 {[]float64{1, 1, 1, 1, 1, 1}, []float64{1, 1, 1, 1, 1, 1}, 0},
		"mixed":                    {[]float64{1, 9, 2, 8, 3, 7}, []float64{9, 1, 8, 2, 7, 3}, 0},
		"the lower end is too low": {[]float64{0, 100, 0, 100, 0}, []float64{101, 301, 101, 301, 101}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, got := newRanks(), 0
			for k := range tc.stable {
				if r.worse(minute(tc.stable[k], tc.canary[k])) {
					got = k + 1
					break
				}
			}
			if got != tc.want {
				t.Errorf("worse in minute %d, want %d", got, tc.want)
			}
		})
	}
}
