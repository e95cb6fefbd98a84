package health

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

const (
	// doubt is the chance, per evaluation, that a rate at its limit is called a
	// breach: the bound is a one-sided 95 % one.
	doubt = 0.05
	// minBad is the number of bad requests without which no rate is called a breach.
	minBad = 5
	// slack absorbs the rounding of summed fractions.
	slack = 1e-6
)

// LowerBound returns the one-sided lower 95 % confidence bound of a proportion of
// which bad out of total were seen: the p for which as many as bad or more would
// be seen in 5 % of cases (C. J. Clopper, E. S. Pearson, "The use of confidence
// or fiducial limits illustrated in the case of the binomial", Biometrika 26,
// 1934), which is the 5 % quantile of the beta distribution with parameters bad
// and total - bad + 1. Counts may be fractions. It is 0 when nothing bad was seen
// or the counts make no sense.
func LowerBound(bad, total float64) float64 {
	if !(bad > 0) || !(total > 0) || math.IsInf(bad, 0) || math.IsInf(total, 0) {
		return 0
	}
	bad = math.Min(bad, total)
	bound := mathext.InvRegIncBeta(bad, total-bad+1, doubt)
	if math.IsNaN(bound) {
		return 0
	}
	return math.Min(math.Max(bound, 0), 1)
}

// exceeds says whether bad out of total is more than limit beyond doubt.
func exceeds(bad, total, limit float64) bool {
	// The quotient is tried first: the bound lies below it, and costs far more.
	return bad >= minBad-slack && bad > limit*total && LowerBound(bad, total) > limit
}
