package pick

import "sync"

// Turns gives each backend a number of requests in a row, then goes on to the next
// one. It is round robin when that number is 1 for all, and naive weighted round
// robin when it is the weight.
//
// The naive form is right over a cycle and bursty within it: a heavy backend gets
// its whole part of the cycle at once, and the light ones wait for that long. A
// position and a count stand for the list in which each backend is repeated, so
// weights of any size cost nothing. A pick is O(1).
type Turns struct {
	mu    sync.Mutex
	turns []turn
	at    int
	taken int32
}

// turn is one backend's place in the cycle.
type turn struct {
	index  int
	length int32
}

// NewRoundRobin makes a picker that takes the backends in turn. It ignores the
// weights, except that a backend with weight 0 is never picked. It fails on
// backends that no picker can use.
func NewRoundRobin(backends []Backend) (*Turns, error) {
	return newTurns(backends, func(int32) int32 { return 1 })
}

// NewNaive makes a picker that takes each backend as many times in a row as its
// weight says: 5:3:2 gives A A A A A B B B C C. It fails on backends that no picker
// can use.
func NewNaive(backends []Backend) (*Turns, error) {
	return newTurns(backends, func(weight int32) int32 { return weight })
}

func newTurns(backends []Backend, length func(weight int32) int32) (*Turns, error) {
	if _, err := check(backends); err != nil {
		return nil, err
	}
	t := &Turns{}
	for i, b := range backends {
		if b.Weight > 0 {
			t.turns = append(t.turns, turn{index: i, length: length(b.Weight)})
		}
	}
	return t, nil
}

// Pick returns the backend whose turn it is.
func (t *Turns) Pick(uint64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken == t.turns[t.at].length {
		t.at, t.taken = (t.at+1)%len(t.turns), 0
	}
	t.taken++
	return t.turns[t.at].index
}
