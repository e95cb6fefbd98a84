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
)

// group is what targets must have in common to be read by the same requests.
type group struct {
	server   *server
	preset   v1alpha1.Preset
	window   time.Duration
	interval time.Duration
}

// member is a target in a round, and the ticks that it needs.
type member struct {
	entry    *entry
	from, to time.Time
}

// chunks divides members into those that one request asks for. Members that need
// many ticks come together, so that the others' requests stay small. One that spoiled the
// others' replies is asked for by itself.
func chunks(members []member, interval time.Duration) [][]member {
	slices.SortStableFunc(members, func(a, b member) int {
		return cmp.Or(b.from.Compare(a.from), cmp.Compare(a.entry.canary, b.entry.canary))
	})
	var out [][]member
	members = slices.DeleteFunc(members, func(m member) bool {
		apart := m.entry.apart.Load()
		if apart {
			out = append(out, []member{m})
		}
		return apart
	})
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
	room, err := g.server.roomFor(ctx, members, int(to.Sub(from)/g.interval)+1)
	if err != nil {
		return nil, err
	}
	defer room.leave()
	t := newTable(p, from, to, g.interval, all, room)
	if err := g.server.overRange(ctx, p.requestsQuery(distinct(all), g.window), t, t.addRequests); err != nil {
		return nil, err
	}
	if len(timed) > 0 {
		if err := g.server.overRange(ctx, p.bucketsQuery(distinct(timed), g.window), t, t.addBuckets); err != nil {
			return nil, err
		}
	}
	windows := make([][]health.Window, len(members))
	for i, m := range members {
		windows[i] = t.windows(m, g)
	}
	return windows, nil
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
