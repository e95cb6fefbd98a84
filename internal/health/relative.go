package health

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health/compare"
)

// defaultConfidence is how sure bad news must be.
const defaultConfidence = 0.95

// confidence is how sure bad news must be, as a part.
func (c Config) confidence() float64 {
	if c.Confidence > 0 && c.Confidence < 1 {
		return c.Confidence
	}
	return defaultConfidence
}

// doubt is what confidence leaves.
func (c Config) doubt() float64 { return 1 - c.confidence() }

// exceeds says whether bad out of total is more than limit beyond doubt.
func (c Config) exceeds(bad, total, limit float64) bool {
	return exceeds(bad, total, limit, c.doubt())
}

// relative says whether a limit depends on what stable does.
func (c Config) relative() bool {
	return c.ErrorRate != nil && c.ErrorRate.MaxAboveStable > 0 || c.Latency != nil && c.Latency.MaxRatio > 0
}

// judgeBeside compares a window with the limits that are relative to stable.
func (c Config) judgeBeside(b beside, sum func() beside) finding {
	f := finding{}
	if c.ErrorRate != nil && c.ErrorRate.MaxAboveStable > 0 {
		f = f.worse(c.judgeAboveStable(b, sum))
	}
	if c.Latency != nil && c.Latency.MaxRatio > 0 && b.limit > 0 {
		f = f.worse(c.judgeRatio(b, sum))
	}
	return f
}

func (c Config) judgeAboveStable(b beside, sum func() beside) finding {
	const text = "%s of %s requests failed %s (%s), and %s of stable's; the limit is %s points above stable"
	margin := c.ErrorRate.MaxAboveStable
	errors := b.errors()
	if !errors.above(margin) {
		return finding{}
	}
	span := "in one window"
	if !c.provenAbove(errors, margin) {
		if errors = sum().errors(); !c.provenAbove(errors, margin) {
			return finding{}
		}
		span = "since the share was confirmed"
	}
	return breach(CheckErrorRate, text, about(errors.Canary.Bad), about(errors.Canary.Total), span, rate(errors.Canary.Bad, errors.Canary.Total),
		rate(errors.Stable.Bad, errors.Stable.Total), number(margin*100))
}

// pair is what both tracks have counted.
type pair struct{ compare.Block }

// above says whether the canary's rate of bad requests is above that of stable by more
// than a margin, by the plain quotients.
func (b pair) above(margin float64) bool {
	return b.Canary.Total > 0 && b.Stable.Total > 0 && b.Canary.Bad/b.Canary.Total > b.Stable.Bad/b.Stable.Total+margin
}

// provenAbove says so beyond doubt, with at least five bad requests: the lower end of
// the hybrid score interval of the difference lies above the margin (R. G. Newcombe,
// "Interval estimation for the difference between independent proportions", Statistics
// in Medicine 17, 1998, method 10).
func (c Config) provenAbove(b pair, margin float64) bool {
	if !(b.Canary.Bad >= minBad-slack) || !b.above(margin) {
		return false
	}
	z := distuv.UnitNormal.Quantile(c.confidence())
	canary, lower, _ := wilson(b.Canary.Bad, b.Canary.Total, z)
	stable, _, upper := wilson(b.Stable.Bad, b.Stable.Total, z)
	return canary-stable-math.Hypot(canary-lower, upper-stable) > margin
}

// wilson returns a proportion with the ends of its score interval (E. B. Wilson,
// "Probable inference, the law of succession, and statistical inference", JASA 22,
// 1927). It needs a total above 0.
func wilson(bad, total, z float64) (p, lower, upper float64) {
	p = min(bad/total, 1)
	centre := p + z*z/(2*total)
	spread := z * math.Sqrt(p*(1-p)/total+z*z/(4*total*total))
	scale := 1 + z*z/total
	return p, max((centre-spread)/scale, 0), min((centre+spread)/scale, 1)
}

func (c Config) judgeRatio(b beside, sum func() beside) finding {
	const text = "%s of %s requests took longer %s than %s times the response time of stable at the percentile %s (%s); at most %s may"
	limit := c.Latency.maxSlow()
	if !above(b.beyond, b.canary.timed, limit) {
		return finding{}
	}
	span := "in one window"
	if !c.exceeds(b.beyond, b.canary.timed, limit) {
		if b = sum(); !c.exceeds(b.beyond, b.canary.timed, limit) {
			return finding{}
		}
		span = "since the share was confirmed"
	}
	return breach(CheckLatency, text, about(b.beyond), about(b.canary.timed), span, number(c.Latency.MaxRatio), number(c.Latency.Percentile*100),
		rate(b.beyond, b.canary.timed), percent(limit))
}

// beyond returns the response time in seconds that latency.maxRatioToStable allows in
// a window, and how many of the canary's requests took longer. Both are 0 where that
// cannot be told. Doubt is in the canary's favour: of stable's percentile the upper end
// of its confidence interval counts, or with few requests the slowest of them, and of the canary's requests only those in buckets
// that lie wholly above the limit.
func (c Config) beyond(w *Window) (limit, count float64) {
	if w.Beyond != nil {
		return w.Beyond.Limit, w.Beyond.Count
	}
	stable, canary := sortedBuckets(w.Stable.Buckets), sortedBuckets(w.Canary.Buckets)
	total := lastCount(stable)
	if !(total >= minBad) || len(canary) == 0 {
		return 0, 0
	}
	q := c.Latency.Percentile
	rank := min(q+distuv.UnitNormal.Quantile(c.confidence())*math.Sqrt(q*(1-q)/total), 1)
	top := quantile(stable, rank)
	if !(top > 0) || !finitelyMany(stable, rank) {
		return 0, 0
	}
	limit = top * c.Latency.MaxRatio
	for _, b := range canary {
		if b.UpperBound >= limit && !math.IsInf(b.UpperBound, 1) {
			return limit, max(0, lastCount(canary)-b.Count)
		}
	}
	if finitelyMany(canary, 1) {
		return limit, 0 // every request is in a bucket below the limit
	}
	return 0, 0
}

// Beyond is how many of the canary's requests took longer than latency.maxRatioToStable
// allows.
type Beyond struct {
	// Limit is the longest response time that it allows, in seconds; 0: not known.
	Limit float64
	// Count is the number of requests that certainly took longer.
	Count float64
}

func lastCount(sorted []Bucket) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)-1].Count
}

// finitelyMany says whether a percentile lies within the finite buckets.
func finitelyMany(sorted []Bucket, part float64) bool {
	total, within := lastCount(sorted), 0.0
	for _, b := range sorted {
		if !math.IsInf(b.UpperBound, 1) {
			within = max(within, b.Count)
		}
	}
	return within >= part*total
}

// stableWanting says why stable cannot be compared with, or is empty. It matters where
// the spec asks for the comparison.
func (c Config) stableWanting(h *history) *Problem {
	if c.Latency != nil && c.Latency.MaxRatio > 0 && h.both.limit == 0 {
		return problem(v1alpha1.ReasonInsufficientRequests, "in no window so far could the response time of stable at the percentile be told, which latency.maxRatioToStable needs: stable has too few requests, or they are slower than every bucket's bound")
	}
	if have := h.both.stable.requests; have < float64(c.MinRequests)-slack {
		return problem(v1alpha1.ReasonInsufficientRequests, "stable has had "+count(have)+" of "+count(float64(c.MinRequests))+" requests at this share, too few to compare with")
	}
	return nil
}
