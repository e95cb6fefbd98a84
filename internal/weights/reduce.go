package weights

import (
	"fmt"
	"math/bits"
)

// MaxReduced is the largest weight after Reduce. Larger ones cost precision work
// and buy nothing.
const MaxReduced = 100

// Reduce returns small weights in the same proportion: each from 1 to MaxReduced,
// and 0 where it was 0. Where the greatest common divisor brings them into that
// range, the proportion is exact. Where it does not, the largest becomes MaxReduced
// and the others are rounded to the nearest in proportion to it, but never to 0.
//
// It fails on a negative weight, on weights that add up to more than 2^63-1, and
// with ErrNoWeight when no weight is above 0.
func Reduce(weights []int64) ([]int64, error) {
	if _, err := sumOf(weights); err != nil {
		return nil, err
	}
	var divisor, largest int64
	for _, w := range weights {
		divisor, largest = commonDivisor(divisor, w), max(largest, w)
	}
	largest /= divisor

	reduced := make([]int64, len(weights))
	for i, w := range weights {
		reduced[i] = w / divisor
		if w > 0 && largest > MaxReduced {
			reduced[i] = max(1, rounded(reduced[i], MaxReduced, largest))
		}
	}
	return reduced, nil
}

// commonDivisor returns the greatest common divisor of two numbers of at least 0,
// by Euclid's method. That of a number and 0 is the number.
func commonDivisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// rounded returns w*times/by, rounded to the nearest, a half up. It is at most times,
// since w is at most by.
func rounded(w, times, by int64) int64 {
	hi, lo := bits.Mul64(uint64(w), uint64(times))         //nolint:gosec // neither is negative
	quotient, remainder := bits.Div64(hi, lo, uint64(by))  //nolint:gosec // above 0
	if half := uint64(by) - remainder; remainder >= half { //nolint:gosec // above 0
		quotient++
	}
	return int64(quotient) //nolint:gosec // at most times
}

// AtLeastOne divides total among weights as Apportion does, but gives no weight above
// 0 less than 1, as long as total suffices for that. What the lightest get so is
// taken from the others in proportion. A total below the number of weights above 0
// does not suffice; it is then divided as Apportion does.
//
// The result adds up to total exactly, is never all 0, and a weight of 0 gets 0. It
// fails on a total below 1, and otherwise as Apportion does.
func AtLeastOne(total int64, weights []int64) ([]int64, error) {
	if total < 1 {
		return nil, fmt.Errorf("total %d leaves nothing for any weight; it must be at least 1", total)
	}
	parts, err := Apportion(total, weights)
	if err != nil {
		return nil, err
	}
	var positive int64
	for _, w := range weights {
		if w > 0 {
			positive++
		}
	}
	if total < positive {
		return parts, nil
	}

	// Each round gives 1 to those that went away empty and divides the rest again. It
	// ends: rest stays at least the number of weights that still share it, so that
	// one of them gets something.
	sharing, rest := append([]int64(nil), weights...), total
	raised := make([]bool, len(weights))
	for {
		var empty int64
		for i, part := range parts {
			if sharing[i] > 0 && part == 0 {
				sharing[i], raised[i] = 0, true
				empty++
			}
		}
		if empty == 0 {
			break
		}
		rest -= empty
		if parts, err = Apportion(rest, sharing); err != nil {
			return nil, err
		}
	}
	for i := range parts {
		if raised[i] {
			parts[i] = 1
		}
	}
	return parts, nil
}
