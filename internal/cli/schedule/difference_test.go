package schedule_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/cli/schedule"
)

func TestSmallestDifference(t *testing.T) {
	for _, test := range []struct {
		name                 string
		base, stable, canary float64
		want, within         float64
	}{
		// Sample sizes worked out by hand for p₁ and p₂, with z of 1.645 and 0.842.
		{"half against 60 percent", 0.5, 305, 305, 0.1, 0.0005},
		{"10 against 20 percent", 0.1, 157, 157, 0.1, 0.001},
		{"1 against 2 percent", 0.01, 1826, 1826, 0.01, 0.0001},
		{"four times as many to stable", 0.01, 5*1056 - 1056, 1056, 0.01, 0.0003},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := schedule.SmallestDifference(test.base, test.stable, test.canary)
			if !ok || math.Abs(got-test.want) > test.within {
				t.Errorf("SmallestDifference(%g, %g, %g) = %g, %v, want %g", test.base, test.stable, test.canary, got, ok, test.want)
			}
		})
	}
	for _, none := range [][3]float64{
		{0.1, 0, 100}, {0.1, 100, 0}, {0.1, 1, 1}, {0, 100, 100}, {1, 100, 100}, {-1, 100, 100},
		{math.NaN(), 100, 100}, {0.1, math.NaN(), 100}, {0.1, 100, math.Inf(1)}, {0.1, -5, 100},
	} {
		if got, ok := schedule.SmallestDifference(none[0], none[1], none[2]); ok {
			t.Errorf("SmallestDifference(%v) = %g, want none", none, got)
		}
	}
}

// TestSmallestDifferenceHasItsPower works out the chance that the test finds the
// difference, from the two normal distributions, and shows that more requests never
// make it larger.
func TestSmallestDifferenceHasItsPower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Float64Range(0.0001, 0.5).Draw(t, "base")
		stable := rapid.Float64Range(10, 1e7).Draw(t, "stable")
		canary := rapid.Float64Range(10, 1e7).Draw(t, "canary")
		d, ok := schedule.SmallestDifference(base, stable, canary)
		if !ok {
			t.Skip("too few requests for any difference")
		}
		pooled := (base*stable + (base+d)*canary) / (stable + canary)
		null := distuv.Normal{Mu: 0, Sigma: math.Sqrt(pooled * (1 - pooled) * (1/stable + 1/canary))}
		unequal := (base+d)*(1-base-d)/canary + base*(1-base)/stable
		if unequal < 1e-15 {
			t.Skip("the canary fails for every request")
		}
		alternative := distuv.Normal{Mu: d, Sigma: math.Sqrt(unequal)}
		if power := 1 - alternative.CDF(null.Quantile(schedule.Confidence)); math.Abs(power-schedule.Power) > 1e-6 {
			t.Errorf("a difference of %g is found in %g of all cases, want %g", d, power, schedule.Power)
		}
		factor := rapid.Float64Range(1, 10).Draw(t, "factor")
		if more, ok := schedule.SmallestDifference(base, stable*factor, canary*factor); !ok || more > d*(1+1e-9) {
			t.Errorf("with %g times the requests it is %g, %v, after %g", factor, more, ok, d)
		}
	})
}
