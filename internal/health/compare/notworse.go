package compare

import "math"

// NotWorse is the evidence that the canary's rate of bad requests is not above
// stable's by the margin or more. It is a value, and comparable; Add returns the next
// one. The zero NotWorse has no margin and never proves anything.
//
// It bets that both tracks have the same rate, the one of the blocks before, against
// the null that the canary's is above stable's by at least the margin.
type NotWorse struct {
	margin float64
	log    float64
	// pooled is what is remembered of both tracks; stable and canary are all that
	// was counted.
	pooled, stable, canary Counts
}

// NewNotWorse returns the evidence, so far none, for a margin, a part above 0 and at
// most 1. One of 1 or more is taken as a little less, which is harder to prove. With
// one that is not above 0 nothing is ever proven.
func NewNotWorse(margin float64) NotWorse {
	const most = 0.9999
	if !(margin > 0) {
		return NotWorse{}
	}
	return NotWorse{margin: min(margin, most)}
}

// Add returns the evidence with one more block. Blocks must not overlap. A block in
// which a track had less than one request, or that is not a number, changes nothing.
func (n NotWorse) Add(b Block) NotWorse {
	t, ok := b.table()
	if !ok || n.margin == 0 {
		return n
	}
	rate := n.rate()
	n.log = min(max(n.log+stake(t.ratio(rate, rate, n.margin)), minLog), math.Log(maxWealth))
	n.pooled = n.pooled.remember(t.badA+t.badB, t.totalA+t.totalB, memory(n.margin))
	n.stable = n.stable.remember(t.badA, t.totalA, maxTotal)
	n.canary = n.canary.remember(t.badB, t.totalB, maxTotal)
	return n
}

// rate is the common rate that is bet on. Before the first block it is guessed to be a
// tenth of the margin: who asks for a margin expects rates well below it.
func (n NotWorse) rate() float64 {
	if n.pooled.Total == 0 {
		return n.margin / 10
	}
	return n.pooled.rate()
}

// Wealth is the evidence: what has become of a wealth of 1 that was bet on the canary
// not being worse. It is an e-value, 1 at the start and at most 1e9.
func (n NotWorse) Wealth() float64 { return min(math.Exp(n.log), maxWealth) }

// Proven says whether the canary is not worse, now: the wealth is at least 1/alpha. If
// it is worse by the margin or more, then the chance that this is ever so is at most
// alpha. Alpha is above 0 and below 1; with any other nothing is proven.
func (n NotWorse) Proven(alpha float64) bool { return proven(n.Wealth(), alpha) }

// MoreRequests returns about how many more requests the canary must serve until it is
// proven not to be worse, if the rates and the split stay as they are: 0 when it is
// proven, and infinity when it never will be, because the canary's rate is above
// stable's by the margin, or nearly so. Before the first block the guessed rate and a
// canary's share of 1 % stand for what is not known.
func (n NotWorse) MoreRequests(alpha float64) float64 {
	if n.Proven(alpha) {
		return 0
	}
	if n.margin == 0 || !(alpha > 0 && alpha < 1) {
		return math.Inf(1)
	}
	rate := n.rate()
	stable, canary := n.stable, n.canary
	if canary.Total == 0 {
		stable, canary = Counts{Bad: 99 * rate, Total: 99}, Counts{Bad: rate, Total: 1}
	}
	mean := table{totalA: stable.Total, badA: stable.Bad, totalB: canary.Total, badB: canary.Bad}
	growth := mean.ratio(rate, rate, n.margin) / canary.Total * (2*staked - staked*staked)
	if !(growth > 0) {
		return math.Inf(1)
	}
	return (-math.Log(alpha) - n.log) / growth
}
