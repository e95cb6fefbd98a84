package balance

import (
	"errors"
	"fmt"
	"math"

	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// Static returns the weights of unequal backends, each from 1 to weights.MaxReduced,
// in the proportion of their measured throughputs, or of their capacities where no
// throughput was measured.
//
// Capacities are what the backends have on paper, such as cores, in one unit.
// Throughputs are what a load test found, in one unit; none at all (nil), or NaN for a
// backend that was not tested. Such a backend counts by its capacity, at the
// throughput per capacity of those that were tested.
//
// The sum is how fine the weights are before they are reduced: 64 against 16 cores,
// measured 2.8 to 1, is 3:1 of a sum of 4, and 14:5 of a sum of 19. It is at least the
// number of backends. It fails on a capacity or a throughput that is not above 0, and
// on a throughput per backend that leaves the range of a float64.
func Static(sum int64, capacities, throughputs []float64) ([]int64, error) {
	if len(capacities) == 0 {
		return nil, errors.New("there is no backend; give at least one capacity")
	}
	for i, c := range capacities {
		if !above0(c) {
			return nil, fmt.Errorf("the capacity of backend %d is %v; it must be finite and above 0", i, c)
		}
	}
	parts := capacities
	if throughputs != nil {
		var err error
		if parts, err = measured(capacities, throughputs); err != nil {
			return nil, err
		}
	}
	divided, err := proportion(sum, parts)
	if err != nil {
		return nil, err
	}
	return weights.Reduce(divided)
}

// measured returns the throughputs, and for those not measured what their capacities
// let expect.
func measured(capacities, throughputs []float64) ([]float64, error) {
	if len(throughputs) != len(capacities) {
		return nil, fmt.Errorf("%d throughputs do not fit %d capacities; give one for each, NaN where there is none", len(throughputs), len(capacities))
	}
	var throughput, capacity float64
	for i, t := range throughputs {
		if math.IsNaN(t) {
			continue
		}
		if !above0(t) {
			return nil, fmt.Errorf("the throughput of backend %d is %v; it must be finite and above 0, or NaN if it was not measured", i, t)
		}
		throughput, capacity = throughput+t, capacity+capacities[i]
	}
	if capacity == 0 {
		return capacities, nil // None was measured.
	}
	parts := make([]float64, len(throughputs))
	for i, t := range throughputs {
		parts[i] = t
		if math.IsNaN(t) {
			parts[i] = capacities[i] * (throughput / capacity)
		}
		if !above0(parts[i]) {
			return nil, fmt.Errorf("the throughput of backend %d would be %v; take smaller units", i, parts[i])
		}
	}
	return parts, nil
}
