// Package telemetry gathers the evidence: it asks Prometheus for the metrics of
// all rollouts at once, keeps what the verdicts need, and wakes a rollout when its
// verdict changes. What can be asked again is not stored anywhere else.
package telemetry

import (
	"context"
	"fmt"
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
	// BearerTokenFile and CAFile are the credentials for DefaultAddress, where the spec
	// names neither an address nor any credentials. They are read anew for every
	// request. Empty: there are none, and the system's authorities are trusted.
	BearerTokenFile, CAFile string
	// Allow says which other addresses may be asked. Default: any.
	Allow Allowlist
	// Secrets are where the credentials of rollouts are kept. Default: none can be read.
	Secrets Secrets
	// Clock is the clock of ticks and evaluations. Default: the real one.
	Clock clock.WithDelayedExecution
	// Transport sends requests to servers that need no TLS settings of their own.
	// Default: one with the settings of http.DefaultTransport.
	Transport http.RoundTripper
	// Log gets failures, without queries, addresses' user names or replies.
	Log logr.Logger
	// Notify is called when the signal of a verdict has changed, bad where it is now one
	// that may lower the share. It should return soon. Default: nothing is called.
	Notify func(k types.NamespacedName, bad bool)
	// Evaluated is called after every evaluation. The reason is empty, or says why some of
	// its metrics could not be read. Default: nothing is called.
	Evaluated func(k types.NamespacedName, reason string)
	// Timeout is how long a request may take. Default: 10s.
	Timeout time.Duration
	// Concurrency is how many requests a server gets at a time with the same
	// credentials. Default: 8.
	Concurrency int
	// Memory is how many bytes all replies together may take while they are read. Default:
	// 128 MiB.
	Memory int64

	answers *memory
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
	busy      map[batch]bool        // a round is under way; true: it came too late for some
	readBacks chan struct{}         // turns of those that read much at once
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
	if cfg.Memory <= 0 {
		cfg.Memory = defaultMemory
	}
	cfg.answers = newMemory(cfg.Memory)
	if cfg.Transport == nil {
		cfg.Transport = newTransport(cfg.Concurrency, nil)
	}
	if cfg.Secrets == nil {
		cfg.Secrets = noSecrets{}
	}
	if cfg.Notify == nil {
		cfg.Notify = func(types.NamespacedName, bool) {}
	}
	if cfg.Evaluated == nil {
		cfg.Evaluated = func(types.NamespacedName, string) {}
	}
	return &Collector{
		cfg: cfg, wake: make(chan struct{}, 1),
		entries: map[types.NamespacedName]*entry{}, servers: map[string]*server{},
		intervals: map[time.Duration]int{}, busy: map[batch]bool{}, readBacks: make(chan struct{}, maxReadBacks),
	}
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
		e.server, e.problem = c.serverFor(t.Key.Namespace, t.Health)
	}
	e.inherit(c.entries[t.Key])
	c.remove(t.Key)
	c.entries[t.Key] = e
	now := c.cfg.Clock.Now()
	e.signal = e.verdict(now).Signal()
	if !e.polled() {
		return
	}
	c.intervals[e.config.Interval]++
	_, _, due := e.due(now)
	_, busy := c.busy[batch{e.group(), e.standing.apart}]
	if due && !busy || c.intervals[e.config.Interval] == 1 {
		c.wakeUp()
	}
}

// Problem says why the metrics server of a spec must not or cannot be asked, as far
// as that does not depend on the server or on any Secret. It is nil if it can.
func (c *Collector) Problem(h *v1alpha1.Health) *health.Problem {
	if h == nil || h.Disabled {
		return nil
	}
	address := c.addressOf(h.Prometheus)
	if address == "" {
		return &health.Problem{Reason: v1alpha1.ReasonNoMetricsAddress, Message: "no metrics server is named: set health.prometheus.address, or start the controller with --prometheus-address"}
	}
	u, bad := parseAddress(address)
	if bad != "" {
		return badAddress(bad)
	}
	if !c.cfg.Allow.allows(address) && address != c.cfg.DefaultAddress && !sameAddress(address, c.cfg.DefaultAddress) {
		return &health.Problem{Reason: v1alpha1.ReasonMetricsAddressNotAllowed, Message: fmt.Sprintf("the controller may not ask the metrics server %s: name one that its --metrics-address-allow lists, or have this one listed", u.Host)}
	}
	return settingsProblem(u.Scheme, h.Prometheus)
}

func (c *Collector) addressOf(p *v1alpha1.Prometheus) string {
	if p != nil && p.Address != "" {
		return p.Address
	}
	return c.cfg.DefaultAddress
}

// serverFor returns the server that a target asks, and counts its user. The caller
// holds the lock.
func (c *Collector) serverFor(namespace string, h *v1alpha1.Health) (*server, *health.Problem) {
	if p := c.Problem(h); p != nil {
		return nil, p
	}
	spec, address := h.Prometheus, c.addressOf(h.Prometheus)
	with := credentialsOf(namespace, spec, c.cfg.Secrets)
	if !hasCredentials(spec) && (spec == nil || spec.Address == "") && c.cfg.BearerTokenFile+c.cfg.CAFile != "" {
		with = ownCredentials(c.cfg)
	}
	id := identity(namespace, address, spec, with)
	s := c.servers[id]
	if s == nil {
		s = newServer(address, with, c.cfg)
		s.id = id
		c.servers[id] = s
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
		delete(c.servers, e.server.id)
		e.server.close()
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

// Latest returns the state of the verdict that was told last, and the newest tick whose
// metrics were read (zero: none yet); false if the target is not tracked, or not measured.
// It costs nothing.
func (c *Collector) Latest(key types.NamespacedName) (state v1alpha1.VerdictState, read time.Time, ok bool) {
	e := c.entry(key)
	if e == nil || e.config.Disabled {
		return "", time.Time{}, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	state = e.signal.State
	if state == "" {
		state = v1alpha1.VerdictUnknown
	}
	return state, e.record.LastRead(), true
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
