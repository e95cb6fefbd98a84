package pick

import (
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// Update replaces the backends, in mid-cycle and without a burst. One whose name was
// there before keeps its running value and its health; its effective weight stays the
// same part of its weight. A new one, and one whose weight was 0, starts from a
// running value of 0. From now on Pick returns indexes in this list. Update fails,
// and changes nothing, on backends that no picker can use.
func (s *Smooth) Update(backends []Backend) error {
	if _, err := check(backends); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := make(map[string]int, len(s.peers))
	for i, p := range s.peers {
		before[p.Name] = i
	}
	peers := make([]peer, len(backends))
	running := make([]int64, len(backends))
	for i, b := range backends {
		peers[i] = peer{Backend: b, effective: b.Weight}
		if old, ok := before[b.Name]; ok {
			peers[i] = s.peers[old].reweighed(b.Weight)
			running[i] = s.running[old]
		}
	}
	s.peers, s.running, s.step = peers, running, make([]int64, len(backends))
	s.settle()
	s.rescale()
	return nil
}

// reweighed returns the peer with another weight, of which its effective weight is
// the same part as before, rounded down, but at least 1.
func (p peer) reweighed(weight int32) peer {
	effective := weight
	if p.effective < p.Weight {
		effective = int32(max(1, int64(p.effective)*int64(weight)/int64(p.Weight))) //nolint:gosec // below weight, or 1
		effective = min(effective, weight)
	}
	p.Weight, p.effective = weight, effective
	return p
}

// settle makes the running values add up to 0 after peers have left: those that
// take nothing have 0, and whichever of the two sides, behind (above 0) or ahead
// (below 0), is now the larger shrinks in proportion to the size of the other.
func (s *Smooth) settle() {
	behind, ahead := make([]int64, len(s.running)), make([]int64, len(s.running))
	var sumBehind, sumAhead int64
	for i := range s.running {
		if !s.peers[i].takes() {
			s.running[i] = 0
		}
		behind[i], ahead[i] = max(s.running[i], 0), max(-s.running[i], 0)
		sumBehind, sumAhead = sumBehind+behind[i], sumAhead+ahead[i]
	}
	if sumBehind > sumAhead {
		behind = shrink(behind, sumAhead)
	} else if sumAhead > sumBehind {
		ahead = shrink(ahead, sumBehind)
	}
	for i := range s.running {
		s.running[i] = behind[i] - ahead[i]
	}
}

// shrink divides sum, which is below the sum of the values, in proportion to them.
// None grows: a part is its quota rounded up at most, and a quota is no more than its
// value.
//
// The values add up to less than 2^63. By the bounds that Smooth states, the k
// backends on one side hold at most k*(H(n) - H(k)) picks. That is no more than n/2
// for every k, and MaxBackends/2 picks are worth less than 2^63.
func shrink(values []int64, sum int64) []int64 {
	parts, err := weights.Apportion(sum, values)
	if err != nil {
		return make([]int64, len(values)) // zeros are always safe to go on from
	}
	return parts
}
