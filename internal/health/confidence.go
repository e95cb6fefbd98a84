package health

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

const (
	// minBad is the number of bad requests without which no rate is called a breach.
	minBad = 5
	// slack absorbs the rounding of summed fractions.
	slack = 1e-6
)

// exceeds says whether bad out of total is more than limit beyond doubt: whether
// the one-sided lower confidence bound of the proportion lies above the limit
// (C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits
// illustrated in the case of the binomial", Biometrika 26, 1934), with at least
// five bad ones. Counts may be fractions.
//
// Doubt is the chance, per evaluation, that a rate at its limit is called a breach:
// 0.05 for a bound of 95 %. The bound is the proportion at which so many bad ones, or
// more, would be seen in that part of cases. That chance rises with the proportion, so instead of solving for
// the bound it is enough to ask for the chance at the limit itself, which takes
// one evaluation of a function that always ends.
func exceeds(bad, total, limit, doubt float64) bool {
	bad = math.Min(bad, total)
	// The quotient is tried first, since it settles nearly every case.
	if !(bad >= minBad-slack) || !(bad > limit*total) || math.IsInf(total, 0) {
		return false
	}
	return atLeast(bad, total, limit) < doubt
}

// atLeast returns the chance of at least k successes in n trials with success
// probability p, continued to fractions: the binomial distribution's upper tail is
// the regularised incomplete beta function I(p; k, n-k+1) (M. Abramowitz, I. A.
// Stegun, Handbook of Mathematical Functions, 26.5.24). It needs 0 < k <= n.
func atLeast(k, n, p float64) float64 {
	switch {
	case !(p > 0):
		return 0
	case p >= 1:
		return 1
	}
	return mathext.RegIncBeta(k, n-k+1, p)
}
