package telemetry

import (
	"context"
	"errors"
	"sync"
)

const (
	// defaultMemory is the default of Config.Memory.
	defaultMemory = 128 << 20
	// answerCost is what an answer takes while it is read, beside what is kept of it:
	// buffers, and what is unpacked.
	answerCost = 256 << 10
)

var errNoRoom = errors.New("there is no memory for the reply beside the others that are being read")

// memory is what all answers together may take that are being read.
type memory struct {
	total int64

	mu    sync.Mutex
	used  int64
	by    map[string]int64
	freed chan struct{} // is closed when something is given back
}

func newMemory(total int64) *memory {
	return &memory{total: total, by: map[string]int64{}, freed: make(chan struct{})}
}

// fits reports whether somebody may have so much more. One namespace has an eighth of what is
// free at most, so that something is left for the next, whatever others take; the reading
// of the metrics of many namespaces together, whose name is empty, has all of it at most.
// The caller holds the lock.
func (m *memory) fits(who string, n int64) bool {
	free := m.total - m.used
	if who != "" {
		free /= 8
	}
	return m.by[who]+n <= free
}

// room is a part of the memory that somebody has.
type room struct {
	memory *memory
	who    string
	size   int64
}

// room waits until there is so much memory. Who has some must not wait for more. It fails
// at once with errNoRoom if there can never be as much.
func (m *memory) room(ctx context.Context, who string, n int64) (*room, error) {
	for {
		m.mu.Lock()
		ok, never, freed := m.fits(who, n), !(&memory{total: m.total}).fits(who, n), m.freed
		if ok {
			m.take(who, n)
		}
		m.mu.Unlock()
		switch {
		case ok:
			return &room{memory: m, who: who, size: n}, nil
		case never:
			return nil, errNoRoom
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, waited(ctx)
		}
	}
}

func (m *memory) take(who string, n int64) {
	m.used += n
	if m.by[who] += n; m.by[who] == 0 {
		delete(m.by, who)
	}
}

// grow takes more, and fails at once if there is none.
func (r *room) grow(n int64) error {
	r.memory.mu.Lock()
	defer r.memory.mu.Unlock()
	if !r.memory.fits(r.who, n) {
		return errNoRoom
	}
	r.memory.take(r.who, n)
	r.size += n
	return nil
}

// leave gives everything back.
func (r *room) leave() {
	r.memory.mu.Lock()
	defer r.memory.mu.Unlock()
	r.memory.take(r.who, -r.size)
	r.size = 0
	close(r.memory.freed)
	r.memory.freed = make(chan struct{})
}

// waited is the error of one whose turn did not come before the context ended.
func waited(ctx context.Context) error {
	if context.Cause(ctx) == context.DeadlineExceeded { //nolint:errorlint // it is that very value, and not an error that wraps it
		return errCrowded
	}
	return ctx.Err()
}

// roomFor waits for what it takes to read so many ticks of members.
func (s *server) roomFor(ctx context.Context, members []member, ticks int) (*room, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	who := members[0].entry.target.Key.Namespace
	for _, m := range members {
		if m.entry.target.Key.Namespace != who {
			who = ""
		}
	}
	return s.memory.room(ctx, who, answerCost+int64(len(members))*int64(ticks)*windowCost)
}
