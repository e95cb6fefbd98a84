package compare

import "math"

// maxTotal is the number of requests of a track above which a block is nonsense. Up
// to it sums of counts are exact.
const maxTotal = 1e12

// Counts is what was counted of one track: bad requests among all. Both may be
// fractions, as increases of counters are.
type Counts struct{ Bad, Total float64 }

// Block is what was counted of both tracks in the same window of time. The split of
// the traffic must be the same throughout: where both the split and the rate of bad
// requests change within a block, it can show a difference that there is not.
type Block struct{ Stable, Canary Counts }

// table is a block in whole requests: total ones and bad ones of stable (a) and of
// the canary (b).
type table struct{ totalA, badA, totalB, badB float64 }

// table returns the block in whole requests, and whether it says anything: both
// tracks had a request, and no count is NaN, infinite or nonsense. Bad ones below 0
// are none, and those beyond the total are all.
func (b Block) table() (table, bool) {
	totalA, badA, okA := b.Stable.whole()
	totalB, badB, okB := b.Canary.whole()
	return table{totalA, badA, totalB, badB}, okA && okB
}

func (c Counts) whole() (total, bad float64, ok bool) {
	if math.IsNaN(c.Bad) || math.IsInf(c.Bad, 0) || !(c.Total >= 1 && c.Total <= maxTotal) {
		return 0, 0, false
	}
	total = math.Round(c.Total)
	return total, min(max(math.Round(c.Bad), 0), total), true
}

// rate is the part of bad requests, drawn towards one half by one request, so that
// it is neither 0 nor 1 (H. Jeffreys' prior; R. Krichevsky, V. Trofimov, 1981).
func (c Counts) rate() float64 { return (c.Bad + 0.5) / (c.Total + 1) }

// remember adds counts to those before, and weighs all of them down to a total of at
// most limit: what is long past fades.
func (c Counts) remember(bad, total, limit float64) Counts {
	c.Bad, c.Total = c.Bad+bad, c.Total+total
	if c.Total > limit {
		// In this order Bad stays at most Total, whatever is rounded.
		c.Bad, c.Total = c.Bad/c.Total*limit, limit
	}
	return c
}
