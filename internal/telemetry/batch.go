package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

const (
	// maxChunk is the number of rollouts that one request asks for.
	maxChunk = 1000
	// maxPoints bounds the size of a reply when many ticks are read at once: rollouts
	// times ticks. A rollout takes about ten numbers a tick.
	maxPoints = 48000
	// maxReadBacks is how many requests with many ticks are under way at a time.
	maxReadBacks = 4
)

// group is what targets must have in common to be read by the same requests.
type group struct {
	server   *server
	preset   v1alpha1.Preset
	window   time.Duration
	interval time.Duration
}

// batch is those of a group that are asked for together: all in good standing, or some
// that are set apart from the others.
type batch struct {
	group

	apart string
}

// member is a target in a round, and the ticks that it needs.
type member struct {
	entry    *entry
	from, to time.Time
	last     bool // it has failed by itself, and comes after the others

	// checks waits for the answers to its own checks. It is called once.
	checks func() []health.CheckResult
}

// chunks divides members into those that one request asks for. Members that need
// many ticks come together, so that the others' requests stay small.
func chunks(members []member, interval time.Duration) [][]member {
	slices.SortStableFunc(members, func(a, b member) int {
		return cmp.Or(b.from.Compare(a.from), cmp.Compare(a.entry.canary, b.entry.canary))
	})
	var out [][]member
	for start := 0; start < len(members); {
		end := start + 1
		for end < len(members) && end-start < maxChunk {
			// The members are sorted by falling start, so the next one needs the most ticks.
			ticks := int(members[end].to.Sub(members[end].from)/interval) + 1
			if (end-start+1)*ticks > maxPoints {
				break
			}
			end++
		}
		out = append(out, members[start:end])
		start = end
	}
	return out
}

// readChunk reads the metrics of members, all up to the same tick, with one request
// per kind of metric. It returns the windows of each member.
func (g group) readChunk(ctx context.Context, members []member) ([][]health.Window, error) {
	p := presets[g.preset]
	to := members[0].to
	from := to
	var all, timed []string
	for _, m := range members {
		if start := m.again(g.interval); start.Before(from) {
			from = start
		}
		all = append(all, m.entry.stable, m.entry.canary)
		if m.entry.config.Latency != nil {
			timed = append(timed, m.entry.stable, m.entry.canary)
		}
	}
	by := callerOf(members)
	room, err := g.server.roomFor(ctx, members, int(to.Sub(from)/g.interval)+1)
	if err != nil {
		return nil, err
	}
	defer room.leave()
	t := newTable(p, from, to, g.interval, all, room)
	if err := g.server.overRange(ctx, by, p.requestsQuery(distinct(all), g.window), t, t.addRequests); err != nil {
		return nil, err
	}
	if len(timed) > 0 {
		if err := g.server.overRange(ctx, by, p.bucketsQuery(distinct(timed), g.window), t, t.addBuckets); err != nil {
			return nil, err
		}
	}
	g.server.batches.answered()
	windows := make([][]health.Window, len(members))
	for i, m := range members {
		windows[i] = t.windows(m, g)
	}
	return windows, nil
}

// points is how large the reply about a chunk is: rollouts times ticks.
func points(members []member, interval time.Duration) int {
	most := 0
	for _, m := range members {
		most = max(most, int(m.to.Sub(m.from)/interval)+1)
	}
	return len(members) * most
}

// callerOf returns whose request one about some members is.
func callerOf(members []member) caller {
	last := !slices.ContainsFunc(members, func(m member) bool { return !m.last })
	return caller{tenant: sharedBy(members), last: last}
}

// again returns the first tick that is read: the one before those that are due is read
// once more. A scrape that was under way at that tick has its time from before it and
// became visible after it; without it, its requests would be missed by the window that
// ends there, and taken for those of before by the next.
func (m member) again(interval time.Duration) time.Time {
	c := m.entry.config
	first := health.Ceil(m.entry.target.ConfirmedAt.Add(c.SampleDelay+c.Window), interval)
	if start := m.from.Add(-interval); !start.Before(first) {
		return start
	}
	return m.from
}

// distinct sorts names and drops repetitions, so that the same targets give the
// same query.
func distinct(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// failedWindow is the window of a tick whose metrics could not be read.
func failedWindow(end time.Time, window time.Duration, p *health.Problem) health.Window {
	return health.Window{Start: end.Add(-window), End: end, Problem: p}
}

func (g group) String() string {
	return fmt.Sprintf("%s/%s/%s", g.server.host, g.preset, g.window)
}
