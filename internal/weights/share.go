package weights

import (
	"fmt"
	"math/bits"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// Share is a part of the traffic in basis points: 0 is none, 100 is 1 percent and
// 10000 is everything.
type Share int

const (
	// ShareNone is no traffic.
	ShareNone Share = 0
	// SharePoint is one percentage point.
	SharePoint Share = 100
	// ShareAll is all traffic.
	ShareAll Share = 10000
)

// ShareFrom reads a percentage as a share from ShareNone to ShareAll. It fails on
// a text that is no percentage.
func ShareFrom(p v1alpha1.Percent) (Share, error) {
	bp, err := p.BasisPoints()
	return Share(bp), err
}

// Percent writes the share as a percentage: "5", "0.5", "12.34". A share outside
// ShareNone to ShareAll is clamped.
func (s Share) Percent() v1alpha1.Percent {
	return v1alpha1.PercentFromBasisPoints(int(s))
}

// String writes the share for people: "12.34%".
func (s Share) String() string { return fmt.Sprintf("%s%%", string(s.Percent())) }

// Whole says whether the share is a whole number of percentage points.
func (s Share) Whole() bool { return s%SharePoint == 0 }

// Clamp returns the nearest share from ShareNone to ShareAll.
func (s Share) Clamp() Share { return min(max(s, ShareNone), ShareAll) }

// Part returns the share that part is of sum, rounded down and rounded up to a
// basis point; the two are equal where it is exact. Rounded up, the smallest part
// is never taken for none; rounded down, it is never taken for more than it is. A
// part of nothing (sum 0 or less) is none, and a part outside 0 to sum is clamped.
func Part(part, sum int64) (low, high Share) {
	if sum <= 0 {
		return ShareNone, ShareNone
	}
	part = min(max(part, 0), sum)
	hi, lo := bits.Mul64(uint64(part), uint64(ShareAll))
	quotient, remainder := bits.Div64(hi, lo, uint64(sum))
	low = Share(quotient) //nolint:gosec // at most ShareAll
	if remainder != 0 {
		return low, low + 1
	}
	return low, low
}

// Pair divides sum into the weights of stable and canary. The canary's is rounded
// down, so that it never passes its share; stable gets the rest, so that the two
// add up to sum exactly. Any share below ShareAll therefore leaves stable at least
// 1. The share is clamped to ShareNone to ShareAll, a negative sum is taken as 0.
func Pair(share Share, sum int32) (stable, canary int32) {
	sum = max(sum, 0)
	canary = int32(int64(share.Clamp()) * int64(sum) / int64(ShareAll)) //nolint:gosec // at most sum, which is an int32
	return sum - canary, canary
}
