package telemetry

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// allTenants is how many times the requests of one tenant all tenants together may have
// under way.
const allTenants = 8

// everybody is the tenant of requests that several namespaces share.
const everybody = ""

// lane gives turns to the requests of one kind that a server gets: the batches, or the
// checks that each rollout has for itself. Slow checks hold up no batch. Within a lane a
// namespace is a tenant: what it has under way, or has been told to wait for, holds up no
// other one.
type lane struct {
	most    int // requests of one tenant at a time
	clock   clock.PassiveClock
	answers atomic.Int64 // how many were answered

	mu      sync.Mutex
	running int // requests that are under way, those that come last among them
	behind  int // and those alone
	tenants map[string]*tenant
	waiting []*tenant // those with requests that wait, the next one first
	rests   map[string]time.Time
}

// tenant is a namespace, or everybody, while it has requests.
type tenant struct {
	name            string
	running, behind int
	queue           [2][]*waiter // those that come first, and those that come last
}

// caller is whose request it is, and whether it comes after those of everybody else.
type caller struct {
	tenant string
	last   bool
}

// waiter is a request that waits for its turn.
type waiter struct {
	ready chan struct{} // closed when it has its turn
	gone  bool
}

func newLane(most int, c clock.PassiveClock) *lane {
	return &lane{most: most, clock: c, tenants: map[string]*tenant{}, rests: map[string]time.Time{}}
}

// enter waits for its turn, until the context ends.
func (l *lane) enter(ctx context.Context, by caller) (leave func(), err error) {
	leave = func() { l.leave(by) }
	l.mu.Lock()
	t := l.tenants[by.tenant]
	if t == nil {
		t = &tenant{name: by.tenant}
		l.tenants[by.tenant] = t
	}
	if t.next(by.last) == nil && l.admits(t, by.last) {
		l.take(t, by.last)
		l.mu.Unlock()
		return leave, nil
	}
	w := &waiter{ready: make(chan struct{})}
	t.queue[class(by.last)] = append(t.queue[class(by.last)], w)
	if !slices.Contains(l.waiting, t) {
		l.waiting = append(l.waiting, t)
	}
	l.mu.Unlock()
	select {
	case <-w.ready:
		return leave, nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-w.ready:
		return leave, nil // both came at once
	default:
	}
	w.gone = true
	l.forget(t)
	if context.Cause(ctx) == context.DeadlineExceeded { //nolint:errorlint // it is that very value, and not an error that wraps it
		return nil, errCrowded
	}
	return nil, ctx.Err()
}

// admits reports whether a tenant may have another request under way. Each may have one
// while others have many, and what comes last has little room.
func (l *lane) admits(t *tenant, last bool) bool {
	switch {
	case l.running >= allTenants*l.most:
		return false
	case last:
		return t.next(false) == nil && l.behind < l.most && (t.behind == 0 || l.running < l.most)
	case t.name == everybody, t.running == t.behind:
		return true
	}
	return t.running-t.behind < l.most && l.running-l.behind < 2*l.most
}

func (l *lane) take(t *tenant, last bool) {
	l.running++
	t.running++
	if last {
		l.behind++
		t.behind++
	}
}

// leave ends a turn, and gives it to the next ones.
func (l *lane) leave(by caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tenants[by.tenant]
	l.running--
	t.running--
	if by.last {
		l.behind--
		t.behind--
	}
	for l.admitOne(false) || l.admitOne(true) {
		continue
	}
	l.forget(t)
}

// admitOne gives a turn to the first request that may have one. Its tenant is then the
// last to have another.
func (l *lane) admitOne(last bool) bool {
	for i, t := range l.waiting {
		w := t.next(last)
		if w == nil || !l.admits(t, last) {
			continue
		}
		t.queue[class(last)] = t.queue[class(last)][1:]
		l.take(t, last)
		close(w.ready)
		l.waiting = append(slices.Delete(l.waiting, i, i+1), t)
		l.forget(t)
		return true
	}
	return false
}

// next returns the first request that still waits.
func (t *tenant) next(last bool) *waiter {
	queue := t.queue[class(last)]
	for len(queue) > 0 && queue[0].gone {
		queue = queue[1:]
	}
	t.queue[class(last)] = queue
	if len(queue) == 0 {
		return nil
	}
	return queue[0]
}

func class(last bool) int {
	if last {
		return 1
	}
	return 0
}

// forget drops what is not needed of a tenant any more.
func (l *lane) forget(t *tenant) {
	if t.next(false) != nil || t.next(true) != nil {
		return
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(u *tenant) bool { return u == t })
	if t.running == 0 && l.tenants[t.name] == t {
		delete(l.tenants, t.name)
	}
}

// answered counts an answer.
func (l *lane) answered() { l.answers.Add(1) }

func (l *lane) resting(tenant string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock.Now().Before(l.rests[tenant])
}

// rest notes that the server wants no request of a tenant for a while.
func (l *lane) rest(tenant string, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	for name, until := range l.rests {
		if !now.Before(until) {
			delete(l.rests, name)
		}
	}
	if until := now.Add(d); until.After(l.rests[tenant]) {
		l.rests[tenant] = until
	}
}
