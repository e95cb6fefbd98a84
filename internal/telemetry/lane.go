package telemetry

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// lane is a part of what a server is asked: the batches that all rollouts share, or the
// checks that each has for itself. Slow checks, and a rest that one of them has brought
// about, hold up no batch.
type lane struct {
	slots chan struct{}
	clock clock.PassiveClock

	mu        sync.Mutex
	notBefore time.Time
}

// laneKey is the key of the lane of a request in its context.
type laneKey struct{}

func newLane(concurrency int, c clock.PassiveClock) *lane {
	return &lane{slots: make(chan struct{}, concurrency), clock: c}
}

// enter waits for its turn, until the context ends.
func (l *lane) enter(ctx context.Context) (leave func(), err error) {
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots }, nil
	default:
	}
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots }, nil
	case <-ctx.Done():
		if context.Cause(ctx) == context.DeadlineExceeded { //nolint:errorlint // it is that very value, and not an error that wraps it
			return nil, errCrowded
		}
		return nil, ctx.Err()
	}
}

func (l *lane) resting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock.Now().Before(l.notBefore)
}

// rest notes that the server wants no request of this kind for a while.
func (l *lane) rest(d time.Duration) {
	until := l.clock.Now().Add(min(max(d, 0), maxRetryAfter))
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.notBefore) {
		l.notBefore = until
	}
}
