package telemetry

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// group returns what the entry has in common with others.
func (e *entry) group() group {
	return group{server: e.server, preset: e.config.Preset, window: e.config.Window, interval: e.config.Interval}
}

// poll starts a round for every batch that has due targets and no round under way.
// It returns the time that it went by.
func (c *Collector) poll(ctx context.Context) time.Time {
	now := c.cfg.Clock.Now()
	found := c.dueRounds(now)
	for _, members := range found.rounds {
		for i := range members {
			c.startChecks(ctx, &members[i])
		}
	}
	for b, members := range found.rounds {
		c.inflight.Go(func() { c.round(ctx, b, members) })
	}
	for _, w := range found.waiting {
		m := w.member
		c.startChecks(ctx, &m)
		c.complete(ctx, m, []health.Window{failedWindow(m.to, m.entry.config.Window, w.problem)}, time.Time{})
	}
	// A server that is slow makes evidence old, which is a change of its own.
	for _, e := range found.late {
		if e.refresh(now) {
			c.cfg.Notify(e.target.Key, e.bad())
		}
	}
	return now
}

// due is what is to be done at a time.
type due struct {
	rounds  map[batch][]member
	late    []*entry // their batch has a round under way
	waiting []waiting
}

// waiting is a target that is not asked for yet, since earlier requests about it failed.
type waiting struct {
	member  member
	problem *health.Problem
}

// dueRounds marks the batches as busy and their members as asked. It looks at each entry
// without holding up the others: one may be in the middle of a long evaluation.
func (c *Collector) dueRounds(now time.Time) due {
	c.mu.Lock()
	entries := slices.Collect(maps.Values(c.entries))
	c.mu.Unlock()
	found := due{rounds: map[batch][]member{}}
	for _, e := range entries {
		from, to, ok := e.due(now)
		if !ok {
			continue
		}
		b, last, waits := e.placed(now)
		m := member{entry: e, from: from, to: to, last: last}
		if waits != nil {
			found.waiting = append(found.waiting, waiting{m, waits})
			continue
		}
		found.rounds[b] = append(found.rounds[b], m)
	}
	c.mu.Lock()
	for b, members := range found.rounds {
		_, busy := c.busy[b]
		if busy {
			for _, m := range members {
				found.late = append(found.late, m.entry)
			}
			delete(found.rounds, b)
		}
		c.busy[b] = busy
	}
	c.mu.Unlock()
	for _, members := range found.rounds {
		for _, m := range members {
			m.entry.ask(m.to)
		}
	}
	for _, w := range found.waiting {
		w.member.entry.ask(w.member.to)
	}
	return found
}

func (e *entry) ask(tick time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.record.Asked(tick)
}

// round reads the metrics of a batch's members. The answers to their own checks may
// come later than the next round starts.
func (c *Collector) round(ctx context.Context, b batch, members []member) {
	defer c.finish(b)
	if b.preset == "" {
		for _, m := range members {
			w := health.Window{Start: m.to.Add(-b.window), End: m.to}
			c.complete(ctx, m, []health.Window{w}, m.to)
		}
		return
	}
	var all sync.WaitGroup
	for _, chunk := range chunks(members, b.interval) {
		all.Go(func() { c.readAll(ctx, b, chunk) })
	}
	all.Wait()
}

// readAll reads the metrics of the members of a chunk. Where several rollouts wait for one
// answer they wait no longer than an interval: which of them it is that takes so long is
// found out by then.
func (c *Collector) readAll(ctx context.Context, b batch, members []member) {
	if points(members, b.interval) > maxPoints/maxReadBacks {
		c.readBacks <- struct{}{}
		defer func() { <-c.readBacks }()
	}
	within := ctx
	if len(members) > 1 {
		var cancel context.CancelFunc
		within, cancel = context.WithCancel(ctx)
		defer cancel()
		defer c.cfg.Clock.AfterFunc(b.interval, cancel).Stop()
	}
	c.read(ctx, within, b, members)
}

// read reads the metrics of some of a batch's members. Where the reply is spoiled it asks
// for half of them at a time, down to the one that spoils it: what a rollout's pods or
// Services expose must not take the evidence of all others. What takes too long for that
// is left to the next round.
func (c *Collector) read(ctx, within context.Context, b batch, members []member) {
	windows, err := b.readChunk(within, members)
	switch {
	case err == nil:
		c.took(ctx, b, members, windows)
		return
	case errors.Is(err, errNoRoom) && len(members) > 1 && within.Err() == nil:
		// It is the memory that is short: at the same time both halves would take as much.
		half := len(members) / 2
		c.read(ctx, within, b, members[:half])
		c.read(ctx, within, b, members[half:])
		return
	case culprit(err) && len(members) > 1 && within.Err() == nil && b.othersAnswered(members):
		slices.SortFunc(members, byNamespace)
		half := len(members) / 2
		var both sync.WaitGroup
		both.Go(func() { c.read(ctx, within, b, members[:half]) })
		both.Go(func() { c.read(ctx, within, b, members[half:]) })
		both.Wait()
		return
	}
	failed := b.server.explain(err)
	c.cfg.Log.V(1).Info("metrics could not be read", "server", b.server.host, "rollouts", len(members), "reason", failed.Reason, "problem", failed.Message)
	if len(members) > 1 && !b.othersAnswered(members) {
		c.inflight.Go(func() { b.server.probe(ctx) })
	}
	next := apartFrom(members)
	unread := within.Err() != nil && ctx.Err() == nil
	for i, m := range members {
		m.entry.fail(failure{problem: failed, next: next[i], single: len(members) == 1, tick: m.to, took: afterOf(err), rest: restOf(err), at: c.cfg.Clock.Now()})
		// Unread ticks are read with the next one. There is one now, if nothing failed but
		// that it took too long for so many.
		if unread {
			c.addChecks(m)
			continue
		}
		c.complete(ctx, m, []health.Window{failedWindow(m.to, b.window, failed)}, time.Time{})
	}
}

// othersAnswered reports whether the server has answered anything since these members were
// set apart, if they ever were. If not, it is of no use to look for the one that is refused.
func (b batch) othersAnswered(members []member) bool {
	answers := b.server.batches.answers.Load()
	return slices.ContainsFunc(members, func(m member) bool { return m.entry.othersAnswered(answers) })
}

// took adds what was read of members to their evidence.
func (c *Collector) took(ctx context.Context, b batch, members []member, windows [][]health.Window) {
	for i, m := range members {
		if p := m.entry.skewed(); p != nil {
			c.complete(ctx, m, []health.Window{failedWindow(m.to, b.window, p)}, time.Time{})
			continue
		}
		m.entry.succeed()
		c.complete(ctx, m, windows[i], m.to)
	}
}

// finish lets the batch's next round start, at once if targets came too late for
// this one.
func (c *Collector) finish(b batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[b] {
		c.wakeUp()
	}
	delete(c.busy, b)
}

// complete adds windows to a member's evidence, the last one with the answers to
// its own checks. A breach that the preset's metrics show does not wait for them.
func (c *Collector) complete(ctx context.Context, m member, windows []health.Window, readTo time.Time) {
	e := m.entry
	if len(e.queries) == 0 {
		c.add(e, windows, readTo)
		return
	}
	if e.breaches(windows, c.cfg.Clock.Now()) {
		c.add(e, windows, readTo)
	}
	c.inflight.Go(func() {
		windows[len(windows)-1].Checks = m.checks()
		c.add(e, windows, readTo)
	})
	c.readBack(ctx, m)
}

// startChecks asks a member's own checks at its tick, which wait for nothing else.
func (c *Collector) startChecks(ctx context.Context, m *member) {
	e, tick := m.entry, m.to
	if len(e.queries) == 0 {
		return
	}
	results := make(chan []health.CheckResult, 1)
	m.checks = func() []health.CheckResult { return <-results }
	c.inflight.Go(func() { results <- e.askChecks(ctx, tick) })
}

// addChecks adds the answers to a member's own checks at a tick whose other metrics are
// read later.
func (c *Collector) addChecks(m member) {
	if len(m.entry.queries) > 0 {
		c.inflight.Go(func() { c.answer(m.entry, health.Answers{End: m.to, Checks: m.checks()}) })
	}
}

// breaches says whether windows are a breach whatever the checks will say.
func (e *entry) breaches(windows []health.Window, now time.Time) bool {
	if e.config.Preset == "" {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	v := health.Evaluate(e.inputWith(windows, now))
	return !v.BreachSince.IsZero() && v.State != v1alpha1.VerdictUnknown
}

// add adds windows to a target's evidence, if it is still wanted, and tells of a
// changed verdict.
func (c *Collector) add(e *entry, windows []health.Window, readTo time.Time) {
	if c.entry(e.target.Key) != e {
		return
	}
	c.cfg.Evaluated(e.target.Key, faultOf(windows))
	if e.add(windows, readTo, c.cfg.Clock.Now()) {
		c.cfg.Notify(e.target.Key, e.bad())
	}
}

// answer adds answers to own checks to a target's evidence, as add does.
func (c *Collector) answer(e *entry, answers ...health.Answers) {
	if len(answers) > 0 && c.entry(e.target.Key) == e && e.answer(answers, c.cfg.Clock.Now()) {
		c.cfg.Notify(e.target.Key, e.bad())
	}
}

// faultOf says why metrics could not be read; empty if all were.
func faultOf(windows []health.Window) string {
	for _, w := range windows {
		if w.Problem != nil {
			return w.Problem.Reason
		}
		for _, c := range w.Checks {
			if c.Problem != nil {
				return c.Problem.Reason
			}
		}
	}
	return ""
}
