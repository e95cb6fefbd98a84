package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
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
func (g group) readChunk(ctx context.Context, members []member) ([][]health.Window, *health.Problem) {
	p := presets[g.preset]
	to := members[0].to
	from := to
	var all, timed []string
	for _, m := range members {
		if m.from.Before(from) {
			from = m.from
		}
		all = append(all, m.entry.stable, m.entry.canary)
		if m.entry.config.Latency != nil {
			timed = append(timed, m.entry.stable, m.entry.canary)
		}
	}
	t := &table{preset: p, from: from, interval: g.interval, ticks: int(to.Sub(from)/g.interval) + 1, backends: make(map[string]*backend, len(all))}
	for _, name := range all {
		t.backends[name] = nil
	}
	reply, failed := g.server.overRange(ctx, p.requestsQuery(distinct(all), g.window), from, to, g.interval)
	if failed != nil {
		return nil, failed
	}
	t.addRequests(reply)
	if len(timed) > 0 {
		reply, failed = g.server.overRange(ctx, p.bucketsQuery(distinct(timed), g.window), from, to, g.interval)
		if failed != nil {
			return nil, failed
		}
		t.addBuckets(reply)
	}
	windows := make([][]health.Window, len(members))
	for i, m := range members {
		for end := m.from; !end.After(m.to); end = end.Add(g.interval) {
			windows[i] = append(windows[i], health.Window{
				Start: end.Add(-g.window), End: end,
				Stable: t.reading(m.entry.stable, end), Canary: t.reading(m.entry.canary, end),
			})
		}
	}
	return windows, nil
}

// distinct sorts names and drops repetitions, so that the same targets give the
// same query.
func distinct(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// table holds the numbers of a chunk by backend and tick.
type table struct {
	preset   preset
	from     time.Time
	interval time.Duration
	ticks    int
	backends map[string]*backend // nil: asked for, nothing found yet
}

// backend is a backend's readings, one per tick.
type backend struct {
	readings []health.Reading
}

// backend returns the backend that a series belongs to, or nil if it was not asked for.
func (t *table) backend(s *series) *backend {
	name := s.Metric[t.preset.track]
	b, asked := t.backends[name]
	if asked && b == nil {
		b = &backend{readings: make([]health.Reading, t.ticks)}
		t.backends[name] = b
	}
	return b
}

// at returns the index of a time that lies on a tick.
func (t *table) at(when time.Time) (int, bool) {
	d := when.Sub(t.from)
	i := int(d / t.interval)
	return i, d >= 0 && d%t.interval == 0 && i < t.ticks
}

func (t *table) reading(name string, end time.Time) health.Reading {
	b := t.backends[name]
	i, ok := t.at(end)
	if b == nil || !ok {
		return health.Reading{}
	}
	return b.readings[i]
}

func (t *table) addRequests(reply []series) {
	for i := range reply {
		s := &reply[i]
		b := t.backend(s)
		if b == nil {
			continue
		}
		add := func(r *health.Reading, v float64) { t.addCount(r, s.Metric[t.preset.code], v) }
		if s.Metric[kindLabel] == kindNewest {
			add = addNewest
		}
		for _, v := range s.Values {
			if at, ok := t.at(v.at); ok {
				add(&b.readings[at], v.value)
			}
		}
	}
}

func (t *table) addCount(r *health.Reading, code string, v float64) {
	r.Found = true
	r.Requests += v
	failed, known := t.preset.classify(code)
	switch {
	case !known && v != 0:
		r.Problem = unsupported("the gateway counts requests with the status %q, which is none of HTTP: gRPC cannot be judged by it", shorten(code, 20))
	case failed:
		r.Errors += v
	}
}

func addNewest(r *health.Reading, seconds float64) {
	if math.IsNaN(seconds) || math.Abs(seconds) > 1e11 {
		return
	}
	r.NewestSample = time.UnixMilli(int64(math.Round(seconds * 1000)))
}

func (t *table) addBuckets(reply []series) {
	for i := range reply {
		s := &reply[i]
		b := t.backend(s)
		if b == nil {
			continue
		}
		bound, err := strconv.ParseFloat(s.Metric[t.preset.bound], 64)
		for _, v := range s.Values {
			at, ok := t.at(v.at)
			if !ok {
				continue
			}
			r := &b.readings[at]
			if err != nil {
				r.Problem = unsupported("the histogram of response times has a bucket whose bound is no number")
				continue
			}
			r.Buckets = append(r.Buckets, health.Bucket{UpperBound: bound, Count: v.value})
		}
	}
}

// failedWindow is the window of a tick whose metrics could not be read.
func failedWindow(end time.Time, window time.Duration, p *health.Problem) health.Window {
	return health.Window{Start: end.Add(-window), End: end, Problem: p}
}

func (g group) String() string {
	return fmt.Sprintf("%s/%s/%s", g.server.host, g.preset, g.window)
}
