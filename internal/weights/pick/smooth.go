package pick

import (
	"fmt"
	"sync"
)

// pickWorth is what one pick is worth in running values, at most: see Smooth. It is a
// multiple of every number up to 36, of 1000 and of 10000, so that for weights that
// add up to one of these, as percentages and basis points do, it is exactly this.
const pickWorth = int64(3_610_088_822_340_000)

// Smooth is smooth weighted round robin, as nginx does it for its upstreams. For
// each request every backend's weight is added to its running value; the largest
// running value is picked, the first of equal ones; the sum of the weights is
// subtracted from the picked one. The running values always add up to 0.
//
// With unchanged weights one cycle, of as many picks as the sum of the weights
// divided by their greatest common divisor, gives each backend exactly its part,
// and all running values are 0 at its end.
//
// # How far off a count can be
//
// The running value of a backend, divided by the sum of the weights, is its debt:
// its exact share of the picks so far minus the picks that it got. With n backends
// above weight 0 and H(n) = 1 + 1/2 + ... + 1/n, a debt stays within
//
//	-(1 - 1/n) <= debt <= H(n) - 1
//
// so a backend is never a whole pick ahead, and behind by at most 0.5 picks with two
// backends, 0.84 with three and 3.75 with 64. The left side: when a backend is
// picked, its value is the largest of n that add up to the total, so at least total/n.
//
// The right side follows from a stronger claim, by induction over picks: the values
// of any k backends add up to at most F(k) = k*(H(n) - H(k)) totals. All values
// start at 0, and F(n) = 0 is their sum. Take k < n of them. If one of the k is
// picked, their sum gains k weights and loses the total, which is no less. If
// another one is picked, that one's value was no less than the average of the k+1,
// so the k hold at most k/(k+1) of what the k+1 hold after adding the weights: at
// most k/(k+1) * (F(k+1) + 1) = F(k) totals. A debt is the case k = 1.
//
// Both sides are reached with two and the right one nearly with three (weights
// 1:82:82). From four on a count can fall behind by more than 1: 9:96:2:96 does, by
// 1.02. In any k picks a backend gets its exact share of them, give or take
// H(n) - 1/n: that is 1 for two backends.
//
// # Changes without bursts
//
// The induction never used that the weights stay the same, only that each pick adds
// up to what it subtracts, and that this is never more than one total. So the weights
// are reduced by their greatest common divisor and scaled by a whole number, such
// that their sum is as close under one large constant as it comes, whatever they are.
// A running value then means the same before and after a change, and the bounds
// hold across any number of changes of weights, of effective weights, and of backends
// that come, with n the most that there were at once. The scaled sums differ by
// sum/3.6e15 of their size at most, and so do the bounds: by five parts in 10^9 for
// sixteen weights of 1,000,000, by 0.25 % for MaxBackends of the largest weight. With
// the raw weights instead, a change from 1000:1000 to 1:1 would leave a backend that
// was half a pick behind with 500 picks to catch up on.
//
// A backend that leaves takes its value with it, and one that comes starts at 0. What
// the others then lack or have too much is taken from those that are behind or ahead,
// in proportion, so that every value moves towards 0 and the sum is 0 again. That
// keeps the claim: of any k, the sum is largest for those behind and then the least
// ahead; while that holds no more than those behind it has fallen, and beyond that it
// is what the rest are ahead by, which has fallen too. A departure lets others off
// less than one pick that they were ahead, so it adds less than 1 to what a backend
// can get in picks that span it.
//
// # Cost
//
// A pick is O(n) and touches two integers per backend; a route has at most 16. A
// heap would not help, since every pick changes every value. While an effective
// weight climbs, each pick also computes the steps anew, still in O(n).
type Smooth struct {
	mu       sync.Mutex
	maxFails int
	peers    []peer

	// running and step are apart from peers because each pick reads all of them. A
	// step is the scaled effective weight, 0 for a peer that takes nothing.
	running    []int64
	step       []int64
	total      int64 // the sum of the steps
	recovering bool  // some effective weight is below its weight
}

// peer is a backend and its health.
type peer struct {
	Backend
	effective int32 // 1 to Weight; 0 only if Weight is 0
	fails     int   // since the last time of steadyAfter successes in a row
	successes int   // in a row
	out       bool
}

// takes says whether requests go to the peer.
func (p *peer) takes() bool { return p.Weight > 0 && !p.out }

// NewSmooth makes a picker from which maxFails failures take a backend out. With a
// maxFails of 0 failures are ignored, as in nginx. It fails on a negative maxFails and
// on backends that no picker can use.
func NewSmooth(backends []Backend, maxFails int) (*Smooth, error) {
	if maxFails < 0 {
		return nil, fmt.Errorf("maxFails %d is negative: use 0 to ignore failures", maxFails)
	}
	s := &Smooth{maxFails: maxFails}
	if err := s.Update(backends); err != nil {
		return nil, err
	}
	return s, nil
}

// Pick returns the index, in the latest list of backends, of the one with the
// largest running value, or -1 when all are out.
func (s *Smooth) Pick(uint64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The largest value is at least total/n, so above 0; a peer that takes nothing
	// stays at 0 and is not picked.
	picked, largest := -1, int64(0)
	for i, step := range s.step {
		s.running[i] += step
		if s.running[i] > largest {
			picked, largest = i, s.running[i]
		}
	}
	if picked >= 0 {
		s.running[picked] -= s.total
	}
	if s.recovering {
		s.climb()
	}
	return picked
}

// rescale brings the steps in line with the effective weights.
func (s *Smooth) rescale() {
	var sum int64
	var divisor int32
	s.recovering = false
	for i := range s.peers {
		if p := &s.peers[i]; p.takes() {
			sum += int64(p.effective)
			divisor = gcd(p.effective, divisor)
			s.recovering = s.recovering || p.effective < p.Weight
		}
	}
	s.total = 0
	for i := range s.peers {
		s.step[i] = 0
		if p := &s.peers[i]; p.takes() {
			scale := pickWorth / (sum / int64(divisor))
			s.step[i] = int64(p.effective/divisor) * scale
			s.total += s.step[i]
		}
	}
}

// gcd is the greatest common divisor; that of a and 0 is a.
func gcd(a, b int32) int32 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
