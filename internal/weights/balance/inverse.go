package balance

import (
	"errors"
	"fmt"
	"math"
)

// MinResponseTime is the least response time that counts, in seconds. A shorter one is
// taken for it: below a millisecond differences are noise.
const MinResponseTime = 0.001

// ByResponseTime divides total among backends in inverse proportion to their response
// times: (1/RTi) / Σ(1/RTj) × total. The idea is that of Netflix Ribbon's weighted
// response-time rule. The result adds up to total exactly, and each backend gets at
// least 1.
//
// The times are in seconds, and floored at MinResponseTime. A backend whose time is not
// known (NaN) is given the average: neither is it starved for its silence nor favoured. It
// fails when no time is known, on a time that is negative or an infinity, and on a total
// below the number of backends.
func ByResponseTime(total int64, times []float64) ([]int64, error) {
	parts := make([]float64, len(times))
	var sum, known float64
	for i, rt := range times {
		if err := checkTime(i, rt); err != nil {
			return nil, err
		}
		if !math.IsNaN(rt) {
			parts[i] = 1 / max(rt, MinResponseTime)
			sum += parts[i]
			known++
		}
	}
	if known == 0 {
		return nil, errors.New("no response time is known; keep the present weights")
	}
	for i, rt := range times {
		if math.IsNaN(rt) {
			parts[i] = sum / known
		}
	}
	return proportion(total, parts)
}

// checkTime refuses a response time that cannot be one. NaN is one that is not known.
func checkTime(backend int, rt float64) error {
	if rt < 0 || math.IsInf(rt, 0) {
		return fmt.Errorf("the response time of backend %d is %v s; it must be finite and at least 0, or NaN if it is not known", backend, rt)
	}
	return nil
}
