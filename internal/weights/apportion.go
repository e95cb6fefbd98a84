package weights

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// ErrNoWeight says that there is nothing to divide by: no weight is above 0.
var ErrNoWeight = errors.New("no weight is above 0")

// Apportion divides total among weights in proportion, by the method of the
// largest remainder (Hamilton): each gets its quota rounded down, and what is
// left goes, one each, to the largest remainders, the first of equal ones first.
// The result adds up to total exactly, each part differs from its quota by less
// than 1, and a weight of 0 gets 0.
//
// It fails on a total below 0, a negative weight, weights that add up to more
// than 2^63-1, and with ErrNoWeight when no weight is above 0.
func Apportion(total int64, weights []int64) ([]int64, error) {
	if total < 0 {
		return nil, fmt.Errorf("total %d is negative", total)
	}
	sum, err := sumOf(weights)
	if err != nil {
		return nil, err
	}

	parts := make([]int64, len(weights))
	remainders := make([]uint64, len(weights))
	left := total
	for i, w := range weights {
		// total*weight needs 128 bits. The quotient fits: weight is at most sum, so
		// it is at most total.
		hi, lo := bits.Mul64(uint64(total), uint64(w)) //nolint:gosec // neither is negative
		quotient, remainder := bits.Div64(hi, lo, sum)
		parts[i] = int64(quotient) //nolint:gosec // at most total
		remainders[i] = remainder
		left -= parts[i]
	}

	// left is below the number of weights with a remainder, because each remainder
	// is below sum and together they are left times sum.
	for _, i := range byRemainder(remainders)[:left] {
		parts[i]++
	}
	return parts, nil
}

// sumOf adds up weights that must not be negative, not overflow, and not all be 0.
func sumOf(weights []int64) (uint64, error) {
	var sum uint64
	for i, w := range weights {
		if w < 0 {
			return 0, fmt.Errorf("weight %d is negative: %d", i, w)
		}
		if sum += uint64(w); sum > math.MaxInt64 {
			return 0, fmt.Errorf("the weights add up to more than %d", int64(math.MaxInt64))
		}
	}
	if sum == 0 {
		return 0, ErrNoWeight
	}
	return sum, nil
}

// byRemainder returns the indexes, the largest remainder first, equal ones in
// their given order.
func byRemainder(remainders []uint64) []int {
	order := make([]int, len(remainders))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(remainders[b], remainders[a])
	})
	return order
}
