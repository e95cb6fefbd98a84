package pick

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
)

// Random picks by a draw against the cumulative weights, as Envoy's weighted
// clusters do. It remembers nothing, so that many proxies that share no state are
// right together.
//
// The shares are right in expectation only. With 5:5 ten requests in a row go to a
// given side once in 2^10 = 1024 starts, and a canary of 1 % sees no request at all
// among the first 100 in 37 % of starts (0.99^100). A pick is one draw
// and one binary search: O(log n).
type Random struct {
	mu    sync.Mutex
	rand  *rand.Rand
	upTo  []int64 // upTo[i] is the sum of the weights 0 to i
	total int64
}

// NewRandom makes a picker that draws from source and is its only user from then
// on. It fails without a source and on backends that no picker can use.
func NewRandom(backends []Backend, source rand.Source) (*Random, error) {
	total, err := check(backends)
	if err != nil {
		return nil, err
	}
	if source == nil {
		return nil, errors.New("no random source: pass one, seeded if the picks must repeat")
	}
	upTo := make([]int64, len(backends))
	var sum int64
	for i, b := range backends {
		sum += int64(b.Weight)
		upTo[i] = sum
	}
	draws := rand.New(source) //nolint:gosec // dividing load needs no secrecy, and a seed must repeat the picks
	return &Random{rand: draws, upTo: upTo, total: total}, nil
}

// Pick returns the first backend whose cumulative weight is above the draw. One
// with weight 0 has the cumulative weight of the one before it, so it is never the
// first.
func (r *Random) Pick(uint64) int {
	r.mu.Lock()
	draw := r.rand.Int64N(r.total)
	r.mu.Unlock()
	i, _ := slices.BinarySearch(r.upTo, draw+1)
	return i
}
