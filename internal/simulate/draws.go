package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// spread is the standard deviation of the logarithm of the response times.
const spread = 0.5

// Streams of randomness, so that one use does not shift another's draws.
const (
	streamOutcomes = iota + 1
	streamKeys
	streamPicker
	streamSample
)

// source returns a seeded source of its own for a use.
func source(seed uint64, stream uint64) *rand.PCG { return rand.NewPCG(seed, stream) }

// counts are requests of one track: all, failed, and those within each of the bounds.
type counts struct {
	requests, failed float64
	within           []float64
}

func (c *counts) add(d counts) {
	c.requests += d.requests
	c.failed += d.failed
	for i := range d.within {
		c.within[i] += d.within[i]
	}
}

// since returns what was added since an earlier state.
func (c counts) since(before counts) counts {
	d := counts{requests: c.requests - before.requests, failed: c.failed - before.failed, within: slices.Clone(c.within)}
	for i := range before.within {
		d.within[i] -= before.within[i]
	}
	return d
}

func (c counts) clone() counts {
	c.within = slices.Clone(c.within)
	return c
}

// boundsFor returns the upper bounds of a histogram like Traefik's, in seconds: its
// own and those that the spec compares response times with, so that none is lost.
func boundsFor(h *v1alpha1.Health) []float64 {
	bounds := []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.3, 0.5, 1, 1.2, 2.5, 5, 10, math.Inf(1)}
	if h.Latency != nil {
		for _, text := range []v1alpha1.Duration{h.Latency.Max, h.Latency.Target} {
			if d, err := text.Parse(); err == nil && d > 0 {
				bounds = append(bounds, d.Seconds())
			}
		}
	}
	slices.Sort(bounds)
	return slices.Compact(bounds)
}

// behaviour is how a track does for a short time.
type behaviour struct {
	failed float64 // part of the requests
	median float64 // response time in seconds
}

// dice draws what becomes of requests. Without a source it returns expected values.
type dice struct {
	bounds []float64
	source rand.Source
}

// outcomes tells what becomes of n requests: how many fail, and how long they take.
// Counts are drawn and not single requests, so the cost does not depend on n.
func (d *dice) outcomes(n float64, b behaviour) counts {
	c := counts{requests: n, failed: d.binomial(n, b.failed), within: make([]float64, len(d.bounds))}
	rest, below, sum := n, 0.0, 0.0
	for i, bound := range d.bounds {
		share := within(bound, b.median)
		if d.source == nil {
			c.within[i] = n * share
			continue
		}
		// Of the requests that are slower than the bound before, this part is within this one.
		k := rest
		if !math.IsInf(bound, 1) {
			k = d.binomial(rest, (share-below)/(1-below))
		}
		rest, below, sum = rest-k, share, sum+k
		c.within[i] = sum
	}
	return c
}

// within is the part of log-normal response times with this median that is at most the
// bound.
func within(bound, median float64) float64 {
	if math.IsInf(bound, 1) {
		return 1
	}
	return distuv.UnitNormal.CDF(math.Log(bound/median) / spread)
}

// binomial draws how many of n succeed with chance p, or returns the expected number.
func (d *dice) binomial(n, p float64) float64 {
	switch {
	case n <= 0 || !(p > 0):
		return 0
	case p >= 1:
		return n
	case d.source == nil:
		return n * p
	}
	return min(max(distuv.Binomial{N: n, P: p, Src: d.source}.Rand(), 0), n)
}

// quantile returns the response time below which a part of the requests lies, in
// seconds, as a histogram shows it: straight within a bucket, and the last finite
// bound for what lies beyond it. It is 0 without a request.
func quantile(bounds []float64, c counts, part float64) float64 {
	want := part * c.requests
	if !(c.requests > 0) {
		return 0
	}
	lower, before := 0.0, 0.0
	for i, bound := range bounds {
		if c.within[i] < want {
			lower, before = bound, c.within[i]
			continue
		}
		if math.IsInf(bound, 1) || c.within[i] <= before {
			return lower
		}
		return lower + (bound-lower)*(want-before)/(c.within[i]-before)
	}
	return lower
}

// during returns how a track does between two times.
func (p profile) during(from, to time.Duration, isCold bool) behaviour {
	b := behaviour{failed: p.errors.mean(from, to), median: p.latency.mean(from, to)}
	if isCold {
		b.failed = min(1, b.failed+p.cold.errors)
		b.median *= p.cold.factor
	}
	return b
}
