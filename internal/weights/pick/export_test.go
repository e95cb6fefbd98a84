package pick

// Effective returns the effective weights, 0 for a backend that takes nothing.
func (s *Smooth) Effective() []int32 {
	effective := make([]int32, len(s.peers))
	for i := range s.peers {
		if p := &s.peers[i]; p.takes() {
			effective[i] = p.effective
		}
	}
	return effective
}

// Running returns the running values, and what one pick is worth in them.
func (s *Smooth) Running() (running []int64, worth int64) { return s.running, s.total }

// Owners returns the owner of each bucket.
func (b *Buckets) Owners() []int { return b.owners }

// RingOf makes a ring of the points given for each backend.
func RingOf(backends []Backend, points [][]uint64) *Ring {
	var nodes []node
	for i := range backends {
		for _, p := range points[i] {
			nodes = append(nodes, node{point: p, owner: int32(i)})
		}
	}
	return newRing(1, nodes, backends)
}

// ChosenUnit returns the unit that a ring of these backends chooses, without the ring.
func ChosenUnit(backends []Backend) (int64, error) {
	sum, err := check(backends)
	if err != nil {
		return 0, err
	}
	return unitFor(backends, sum, 0)
}
