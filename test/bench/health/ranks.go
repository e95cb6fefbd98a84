package main

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/weightedrollout/weightedrollout/internal/health/compare"
)

// ranks judges like Kayenta, the canary analysis of Spinnaker: it compares the two
// series of error rates, a value a minute, by the test of Mann and Whitney, over all
// minutes so far. Taken over from Kayenta's classifier: the 98 % confidence interval of
// the shift between the series, by the normal approximation with the corrections for
// ties and for continuity; the canary is High, and fails, if the lower end is above a
// quarter of the estimated shift. Series without any difference pass. Not taken over:
// the removal of outliers, which is off unless asked for, and the score over several
// metrics.
type ranks struct {
	stable, canary []float64 // sorted
	critical       float64
}

const (
	ranksConfidence = 0.98
	ranksTolerance  = 0.25
)

func newRanks() *ranks {
	return &ranks{critical: distuv.UnitNormal.Quantile(1 - (1-ranksConfidence)/2)}
}

func (r *ranks) worse(b compare.Block) bool {
	if b.Canary.Total < 1 || b.Stable.Total < 1 {
		return false
	}
	r.stable = insert(r.stable, b.Stable.Bad/b.Stable.Total)
	r.canary = insert(r.canary, b.Canary.Bad/b.Canary.Total)
	// The lower end of the interval is above a shift if the test still finds the
	// canary higher when that is taken off. The first question settles nearly every
	// case, since the second needs the estimate.
	if !(statistic(r.canary, r.stable, 0) > r.critical) {
		return false
	}
	return statistic(r.canary, r.stable, ranksTolerance*shift(r.canary, r.stable)) > r.critical
}

func insert(sorted []float64, x float64) []float64 {
	at, _ := slices.BinarySearch(sorted, x)
	return slices.Insert(sorted, at, x)
}

// statistic returns the standardised U of Mann and Whitney for x less a shift against
// y, both sorted: about normal if they come from one distribution, and high if x is
// higher. It is 0 if all values are the same.
func statistic(x, y []float64, shift float64) float64 {
	above, ties := excess(x, y, shift)
	n, m := float64(len(x)), float64(len(y))
	deviation := math.Sqrt(n * m / 12 * (n + m + 1 - ties/((n+m)*(n+m-1))))
	if !(deviation > 0) {
		return 0
	}
	switch {
	case above > 0:
		above -= 0.5
	case above < 0:
		above += 0.5
	}
	return above / deviation
}

// excess returns how far U is above its mean, and the sum of t³-t over the groups of t
// equal values.
func excess(x, y []float64, shift float64) (above, ties float64) {
	n, m := float64(len(x)), float64(len(y))
	rankSum, rank := 0.0, 0.0
	for i, j := 0, 0; i < len(x) || j < len(y); {
		value := math.Inf(1)
		if i < len(x) {
			value = x[i] - shift
		}
		if j < len(y) {
			value = min(value, y[j])
		}
		fromX, fromY := i, j
		for i < len(x) && x[i]-shift == value {
			i++
		}
		for j < len(y) && y[j] == value {
			j++
		}
		tied := float64(i - fromX + j - fromY)
		rankSum += float64(i-fromX) * (rank + (tied+1)/2)
		ties += tied*tied*tied - tied
		rank += tied
	}
	return rankSum - n*(n+1)/2 - n*m/2, ties
}

// shift estimates by how much x is higher than y: the shift that makes them alike
// (J. L. Hodges, E. L. Lehmann, 1963). Both are sorted.
func shift(x, y []float64) float64 {
	low, high := x[0]-y[len(y)-1], x[len(x)-1]-y[0]
	for range 60 {
		middle := low + (high-low)/2
		if above, _ := excess(x, y, middle); above > 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
