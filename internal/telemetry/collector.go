// Package telemetry gathers the evidence: it asks Prometheus for the metrics of
// all rollouts at once, keeps what the verdicts need, and wakes a rollout when its
// verdict changes. What can be asked again is not stored anywhere else.
package telemetry

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

const (
	defaultTimeout     = 10 * time.Second
	defaultConcurrency = 8
	// shortestSleep keeps a clock that stands still, or is set back in small steps,
	// from making the loop busy.
	shortestSleep = 5 * time.Millisecond
)

// Config is what a Collector needs.
type Config struct {
	// DefaultAddress is asked where the spec names none. Empty: there is no default.
	DefaultAddress string
	// Clock is the clock of ticks and evaluations. Default: the real one.
	Clock clock.WithDelayedExecution
	// Transport sends requests. Default: one with the settings of
	// http.DefaultTransport.
	Transport http.RoundTripper
	// Log gets failures, without queries, addresses' user names or replies.
	Log logr.Logger
	// Notify is called when the signal of a verdict has changed. It should return
	// soon. Default: nothing is called.
	Notify func(types.NamespacedName)
	// Timeout is how long a request may take. Default: 10s.
	Timeout time.Duration
	// Concurrency is how many requests a server gets at a time. Default: 8.
	Concurrency int
}

// Collector gathers evidence. Its methods may be called at any time, before Start
// as well, by several goroutines.
type Collector struct {
	cfg      Config
	wake     chan struct{}
	inflight sync.WaitGroup

	mu        sync.Mutex
	entries   map[types.NamespacedName]*entry
	servers   map[string]*server
	intervals map[time.Duration]int // how many targets have it
	busy      map[group]bool        // a round is under way; true: it came too late for some
}

// New returns a Collector that has no target.
func New(cfg Config) *Collector {
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Concurrency <= 0 {
		cfg.Concurrency = defaultConcurrency
	}
	if cfg.Transport == nil {
		cfg.Transport = newTransport(cfg.Concurrency)
	}
	if cfg.Notify == nil {
		cfg.Notify = func(types.NamespacedName) {}
	}
	return &Collector{
		cfg: cfg, wake: make(chan struct{}, 1),
		entries: map[types.NamespacedName]*entry{}, servers: map[string]*server{},
		intervals: map[time.Duration]int{}, busy: map[group]bool{},
	}
}

func newTransport(perHost int) http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = perHost
	return t
}

// NeedLeaderElection says that only the leader gathers evidence.
func (c *Collector) NeedLeaderElection() bool { return true }

// Start gathers evidence until the context ends, and then waits for requests that
// are under way. It returns nil.
func (c *Collector) Start(ctx context.Context) error {
	defer c.inflight.Wait()
	for {
		now := c.poll(ctx)
		var tick <-chan time.Time
		stop := func() bool { return true }
		if d, ok := c.untilNextTick(now); ok {
			timer := c.cfg.Clock.NewTimer(d)
			tick, stop = timer.C(), timer.Stop
		}
		select {
		case <-ctx.Done():
			stop()
			return nil
		case <-tick:
		case <-c.wake:
			stop()
		}
	}
}

// untilNextTick is the time to the next tick of any target after the time of the
// last poll, so that a tick that has come since is not missed.
func (c *Collector) untilNextTick(polled time.Time) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var next time.Time
	for interval := range c.intervals {
		t := health.Floor(polled, interval).Add(interval)
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	return max(next.Sub(c.cfg.Clock.Now()), shortestSleep), !next.IsZero()
}

// Track says that the evidence about a target is wanted. It costs little when
// nothing has changed. When anything has, the evidence is dropped: it does not
// speak for the new target.
func (c *Collector) Track(t Target) {
	t.ConfirmedAt = t.ConfirmedAt.Round(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.entries[t.Key]; old != nil && old.target.same(&t) {
		return
	}
	e := newEntry(t)
	if e.problem == nil && !e.config.Disabled {
		e.server, e.problem = c.serverFor(t.Health)
	}
	c.remove(t.Key)
	c.entries[t.Key] = e
	now := c.cfg.Clock.Now()
	e.signal = e.verdict(now).Signal()
	if !e.polled() {
		return
	}
	c.intervals[e.config.Interval]++
	_, _, due := e.due(now)
	_, busy := c.busy[e.group()]
	if due && !busy || c.intervals[e.config.Interval] == 1 {
		c.wakeUp()
	}
}

// serverFor returns the server that a target asks, and counts its user. The caller
// holds the lock.
func (c *Collector) serverFor(h *v1alpha1.Health) (*server, *health.Problem) {
	address := c.cfg.DefaultAddress
	if h.Prometheus != nil && h.Prometheus.Address != "" {
		address = h.Prometheus.Address
	}
	if address == "" {
		return nil, &health.Problem{Reason: v1alpha1.ReasonNoMetricsAddress, Message: "no metrics server is named: set health.prometheus.address, or start the controller with --prometheus-address"}
	}
	s := c.servers[address]
	if s == nil {
		var p *health.Problem
		if s, p = newServer(address, c.cfg); p != nil {
			return nil, p
		}
		s.address = address
		c.servers[address] = s
	}
	s.users++
	return s, nil
}

// Forget drops a target and its evidence.
func (c *Collector) Forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(key)
}

// remove drops a target. The caller holds the lock.
func (c *Collector) remove(key types.NamespacedName) {
	e := c.entries[key]
	if e == nil {
		return
	}
	delete(c.entries, key)
	e.drop()
	if e.server == nil {
		return
	}
	if c.intervals[e.config.Interval]--; c.intervals[e.config.Interval] <= 0 {
		delete(c.intervals, e.config.Interval)
	}
	if e.server.users--; e.server.users <= 0 {
		delete(c.servers, e.server.address)
	}
}

// Verdict judges the evidence about a target, at the clock's time.
func (c *Collector) Verdict(key types.NamespacedName) health.Verdict {
	e := c.entry(key)
	if e == nil {
		return health.Unknown(v1alpha1.ReasonAwaitingWindow, "no evidence is gathered yet")
	}
	return e.verdict(c.cfg.Clock.Now())
}

// Windows returns the evidence about a target, by rising time. The windows share
// their insides with the collector's and must not be changed.
func (c *Collector) Windows(key types.NamespacedName) []health.Window {
	e := c.entry(key)
	if e == nil {
		return nil
	}
	return e.copyWindows()
}

func (c *Collector) entry(key types.NamespacedName) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[key]
}

// wakeUp makes the loop look for due targets now.
func (c *Collector) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
