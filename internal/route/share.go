package route

import (
	"fmt"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

const (
	// MaxWeight is the largest weight that the Gateway API allows.
	MaxWeight = 1_000_000
	// wholeSum and fineSum are what the pair's weights add up to where no other
	// backend shares the rule: 100 reads as percent, 10000 holds basis points.
	wholeSum = 100
	fineSum  = 10_000
)

// Target returns the weights that give the canary the share in this rule.
//
// Where the two are alone they add up to 100, or to 10000 for a share that is no
// whole point. Beside a third backend they keep their own sum, so that the third's
// share does not move, with two exceptions: a sum above MaxWeight, which no single
// weight could carry, is taken as MaxWeight, and where every weight of the rule is 0
// there is no share to preserve and the pair is treated as being alone, because a
// rule must never add up to 0. The canary's weight is rounded down.
func (m ManagedRule) Target(share weights.Share) (stable, canary int32) {
	share = share.Clamp()
	sum := min(m.pairSum(), MaxWeight)
	if m.alone() {
		sum = wholeSum
		if !share.Whole() {
			sum = fineSum
		}
	}
	return weights.Pair(share, int32(sum))
}

// alone says whether the pair's sum can be chosen freely.
func (m ManagedRule) alone() bool {
	return !m.Others || (m.pairSum() == 0 && m.OthersWeight == 0)
}

// pairSum is the sum of the pair's weights. A negative weight, which no API server
// would store, counts as 0.
func (m ManagedRule) pairSum() int64 {
	return int64(max(m.StableWeight, 0)) + int64(max(m.CanaryWeight, 0))
}

func (m ManagedRule) matches(share weights.Share) bool {
	stable, canary := m.Target(share)
	return m.StableWeight == stable && m.CanaryWeight == canary
}

// Observed returns the canary's part of the pair's weights: the lowest over the
// managed rules, rounded down, and the highest, rounded up. They are equal where
// all rules agree on a whole number of basis points. Only a high of 0 says that the
// canary has no weight at all. A pair of 0 and 0, and a route without a managed rule,
// count as 0.
func (i Inspection) Observed() (low, high weights.Share) {
	for n, m := range i.Rules {
		ruleLow, ruleHigh := weights.Part(int64(m.CanaryWeight), m.pairSum())
		if n == 0 {
			low, high = ruleLow, ruleHigh
			continue
		}
		low, high = min(low, ruleLow), max(high, ruleHigh)
	}
	return low, high
}

// Matches says whether every managed rule carries exactly the weights for the
// share. It is false without a managed rule.
func (i Inspection) Matches(share weights.Share) bool {
	for _, m := range i.Rules {
		if !m.matches(share) {
			return false
		}
	}
	return len(i.Rules) > 0
}

// Express returns a Problem with ReasonWeightResolution if the weights of a managed
// rule cannot express the share: it is above 0, but beside a third backend the pair's
// own sum is 0, too small, or above MaxWeight. The message says which sum would do.
// A share of 0 can always be written.
func (i Inspection) Express(share weights.Share) *Problem {
	share = share.Clamp()
	if share == weights.ShareNone {
		return nil
	}
	for _, m := range i.Rules {
		if m.alone() {
			continue
		}
		if p := i.express(m, share); p != nil {
			return p
		}
	}
	return nil
}

func (i Inspection) express(m ManagedRule, share weights.Share) *Problem {
	label := ruleLabel(m.Index, m.Name)
	sum := m.pairSum()
	// The smallest sum of which the share is at least 1.
	need := (int64(weights.ShareAll) + int64(share) - 1) / int64(share)
	switch {
	case sum == 0:
		return problemf(v1alpha1.ReasonWeightResolution,
			"%s of %s gives no traffic to %s and %s (their weights are 0) and all to its other backends: give %s a weight of at least %d",
			label, i.Route, i.Pair.Stable, i.Pair.Canary, i.Pair.Stable, need)
	case sum > MaxWeight:
		return problemf(v1alpha1.ReasonWeightResolution,
			"the weights of %s and %s in %s of %s add up to %d, more than the %d that one of them may have: divide every weight of the rule by %d",
			i.Pair.Stable, i.Pair.Canary, label, i.Route, sum, MaxWeight, (sum+MaxWeight-1)/MaxWeight)
	case sum < need:
		return problemf(v1alpha1.ReasonWeightResolution,
			"the weights of %s and %s in %s of %s add up to %d, of which %s is less than 1: they need a sum of at least %d%s",
			i.Pair.Stable, i.Pair.Canary, label, i.Route, sum, share, need, m.scaling(need))
	}
	return nil
}

// scaling says how to reach the sum that is needed without moving the share of the
// other backends, if the Gateway API's limit leaves room for it.
func (m ManagedRule) scaling(need int64) string {
	factor := (need + m.pairSum() - 1) / m.pairSum()
	if max(m.OthersWeight, m.pairSum())*factor > MaxWeight {
		return ""
	}
	return fmt.Sprintf(" (multiply every weight of the rule by %d)", factor)
}
