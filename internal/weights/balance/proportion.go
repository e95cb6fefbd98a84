package balance

import (
	"fmt"
	"math"

	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// resolution is what the largest part becomes as an integer. A part is exact to 2^-32
// of the largest, and as many parts as fit into memory do not overflow.
const resolution = 1 << 32

// proportion divides total among parts, which are finite and at least 0, one of them
// above. Each part above 0 gets at least 1, and a part of 0 gets 0. It fails when total
// does not suffice for that.
func proportion(total int64, parts []float64) ([]int64, error) {
	var largest float64
	var positive int64
	for _, part := range parts {
		largest = max(largest, part)
		if part > 0 {
			positive++
		}
	}
	if total < positive {
		return nil, fmt.Errorf("a sum of %d does not suffice for %d backends; take at least 1 for each", total, positive)
	}
	scaled := make([]int64, len(parts))
	for i, part := range parts {
		if part > 0 {
			scaled[i] = max(1, int64(math.Round(part/largest*resolution)))
		}
	}
	return weights.AtLeastOne(total, scaled)
}

// above0 says whether v is a finite number above 0. NaN is not.
func above0(v float64) bool { return v > 0 && !math.IsInf(v, 1) }
