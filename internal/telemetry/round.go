package telemetry

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// group returns what the entry has in common with others.
func (e *entry) group() group {
	return group{server: e.server, preset: e.config.Preset, window: e.config.Window, interval: e.config.Interval}
}

// poll starts a round for every group that has due targets and no round under way.
// It returns the time that it went by.
func (c *Collector) poll(ctx context.Context) time.Time {
	now := c.cfg.Clock.Now()
	rounds, late := c.dueRounds(now)
	for g, members := range rounds {
		c.inflight.Go(func() { c.round(ctx, g, members) })
	}
	// A server that is slow makes evidence old, which is a change of its own.
	for _, e := range late {
		if e.refresh(now) {
			c.cfg.Notify(e.target.Key, e.bad())
		}
	}
	return now
}

// dueRounds marks the groups as busy and their members as asked. It looks at each entry
// without holding up the others: one may be in the middle of a long evaluation.
func (c *Collector) dueRounds(now time.Time) (rounds map[group][]member, late []*entry) {
	c.mu.Lock()
	entries := slices.Collect(maps.Values(c.entries))
	c.mu.Unlock()
	var due []member
	for _, e := range entries {
		if from, to, ok := e.due(now); ok {
			due = append(due, member{entry: e, from: from, to: to})
		}
	}
	c.mu.Lock()
	rounds = map[group][]member{}
	for _, m := range due {
		g := m.entry.group()
		if _, busy := c.busy[g]; busy {
			c.busy[g] = true
			late = append(late, m.entry)
			continue
		}
		rounds[g] = append(rounds[g], m)
	}
	for g := range rounds {
		c.busy[g] = false
	}
	c.mu.Unlock()
	for _, members := range rounds {
		for _, m := range members {
			m.entry.ask(m.to)
		}
	}
	return rounds, late
}

func (e *entry) ask(tick time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.record.Asked(tick)
}

// round reads the metrics of a group's members. The answers to their own checks may
// come later than the next round starts.
func (c *Collector) round(ctx context.Context, g group, members []member) {
	defer c.finish(g)
	if g.preset == "" {
		for _, m := range members {
			w := health.Window{Start: m.to.Add(-g.window), End: m.to}
			c.complete(ctx, m, []health.Window{w}, m.to)
		}
		return
	}
	for _, chunk := range chunks(members, g.interval) {
		c.read(ctx, g, chunk)
	}
}

// read reads the metrics of some of a group's members. Where the reply is spoiled it asks
// for half of them at a time, down to the one that spoils it: what a rollout's pods or
// Services expose must not take the evidence of all others.
func (c *Collector) read(ctx context.Context, g group, members []member) {
	windows, err := g.readChunk(ctx, members)
	switch {
	case err == nil:
		for i, m := range members {
			if p := m.entry.skewed(); p != nil {
				c.complete(ctx, m, []health.Window{failedWindow(m.to, g.window, p)}, time.Time{})
				continue
			}
			m.entry.apart.Store(false)
			c.complete(ctx, m, windows[i], m.to)
		}
		return
	case culprit(err) && len(members) > 1:
		half := len(members) / 2
		c.read(ctx, g, members[:half])
		c.read(ctx, g, members[half:])
		return
	}
	failed := g.server.explain(err)
	c.cfg.Log.V(1).Info("metrics could not be read", "server", g.server.host, "rollouts", len(members), "reason", failed.Reason, "problem", failed.Message)
	for _, m := range members {
		m.entry.apart.Store(culprit(err))
		// Unread ticks are read with the next one.
		c.complete(ctx, m, []health.Window{failedWindow(m.to, g.window, failed)}, time.Time{})
	}
}

// finish lets the group's next round start, at once if targets came too late for
// this one.
func (c *Collector) finish(g group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[g] {
		c.wakeUp()
	}
	delete(c.busy, g)
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
		windows[len(windows)-1].Checks = e.askChecks(ctx, m.to)
		c.add(e, windows, readTo)
	})
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
