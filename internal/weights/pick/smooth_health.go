package pick

import "slices"

// steadyAfter is how many successes in a row restore a backend at once.
const steadyAfter = 3

// Failed tells that a request to the backend failed. Its effective weight, with
// which it takes part, falls by weight/maxFails, by at least 1 and to no less than 1;
// each later pick raises it by 1 until it is the weight again. The backend is out
// with its maxFails-th failure since it last had three successes in a row, and takes
// nothing until Return. How old a failure may be is for the caller to judge.
//
// A name that is not, or no longer, among the backends is ignored, and so is one
// that is out: answers come late.
func (s *Smooth) Failed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.find(name)
	if p == nil || !p.takes() || s.maxFails == 0 {
		return
	}
	p.successes = 0
	p.fails++
	lower := max(1, int64(p.Weight)/int64(s.maxFails))
	p.effective = int32(max(1, int64(p.effective)-lower)) //nolint:gosec // 1 to Weight
	if p.fails >= s.maxFails {
		p.out = true
		s.settle()
	}
	s.rescale()
}

// Succeeded tells that a request to the backend succeeded. Three in a row forget its
// failures and restore its weight at once: by 1 per pick a weight of 1000 would be
// back only after hundreds of picks. A name that is not among the backends, or is
// out, is ignored.
func (s *Smooth) Succeeded(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.find(name)
	if p == nil || !p.takes() || p.fails == 0 {
		return
	}
	if p.successes++; p.successes < steadyAfter {
		return
	}
	p.fails, p.successes, p.effective = 0, 0, p.Weight
	s.rescale()
}

// Return takes a backend that was out back in. Its running value starts from 0, so
// that it is not hit by what it missed, and its effective weight from where the
// failures left it, to climb as after any failure. Its failures are counted anew. A
// name that is not among the backends, or is not out, is ignored.
func (s *Smooth) Return(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.find(name)
	if p == nil || !p.out {
		return
	}
	p.out, p.fails, p.successes = false, 0, 0
	s.rescale()
}

// climb raises the effective weights that are below their weight by 1.
func (s *Smooth) climb() {
	for i := range s.peers {
		if p := &s.peers[i]; p.takes() && p.effective < p.Weight {
			p.effective++
		}
	}
	s.rescale()
}

// find returns the peer of that name, or nil.
func (s *Smooth) find(name string) *peer {
	i := slices.IndexFunc(s.peers, func(p peer) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &s.peers[i]
}
