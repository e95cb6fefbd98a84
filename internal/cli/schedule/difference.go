package schedule

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// Confidence is that of the test that SmallestDifference asks about: the chance
	// that two equal versions are taken for equal.
	Confidence = 0.95
	// Power is the chance that a difference of that size is found.
	Power = 0.8
)

// SmallestDifference returns the smallest d by which the canary's error rate must
// be above stable's, which is base, so that a one-sided test of two proportions with
// Confidence finds it with the chance Power. Rates are parts of the requests, 0 to 1.
// It is the d at which
//
//	d = z(Confidence) √(p (1-p) (1/n₁ + 1/n₂)) + z(Power) √(p₁ (1-p₁) / n₁ + p₂ (1-p₂) / n₂)
//
// with p₁ = base of n₁ requests to stable, p₂ = base + d of n₂ to the canary, and p
// the rate of both together (Fleiss, Statistical Methods for Rates and Proportions).
//
// ok is false if there is no such d: one of the tracks has too few requests.
func SmallestDifference(base, stable, canary float64) (d float64, ok bool) {
	if !(base > 0 && base < 1 && stable > 0 && canary > 0) || math.IsInf(stable+canary, 0) {
		return 0, false
	}
	noise := func(d float64) float64 {
		p2 := base + d
		p := (base*stable + p2*canary) / (stable + canary)
		equal := p * (1 - p) * (1/stable + 1/canary)
		unequal := base*(1-base)/stable + p2*(1-p2)/canary
		return distuv.UnitNormal.Quantile(Confidence)*math.Sqrt(equal) + distuv.UnitNormal.Quantile(Power)*math.Sqrt(max(unequal, 0))
	}
	low, high := 0.0, 1-base
	if noise(high) > high {
		return 0, false
	}
	// At low the noise is larger than d, at high it is not: halve the span.
	const halvings = 60
	for range halvings {
		if mid := (low + high) / 2; noise(mid) > mid {
			low = mid
		} else {
			high = mid
		}
	}
	return high, true
}
