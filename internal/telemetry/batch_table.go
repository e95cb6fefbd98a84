package telemetry

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// table holds the numbers of a chunk by backend and tick.
type table struct {
	preset   preset
	from     time.Time
	interval time.Duration
	ticks    int
	backends map[string]*backend // by each name that a series can have for it
}

// backend is what was read of a backend.
type backend struct {
	readings []health.Reading // one per tick; nil: nothing was found
	native   []bool           // per tick: there is a native histogram; nil: there is none
	family   int              // of alternatives, the one that is read; -1: none yet
}

func newTable(p preset, from, to time.Time, interval time.Duration, backends []string) *table {
	t := &table{preset: p, from: from, interval: interval, ticks: int(to.Sub(from)/interval) + 1, backends: make(map[string]*backend, len(backends))}
	for _, name := range backends {
		b := &backend{family: -1}
		for _, alias := range p.aliases(name) {
			if known := t.backends[alias]; known != nil {
				b = known // another rollout's, or asked for twice
			}
			t.backends[alias] = b
		}
	}
	return t
}

// row is a series that belongs to a backend which was asked for.
type row struct {
	*series
	backend *backend
	family  int
}

// rows returns the series that belong to a backend. Of alternatives those of the
// first family with counts are returned, and if there are none those of every one.
func (t *table) rows(reply []series) []row {
	rows := make([]row, 0, len(reply))
	for i := range reply {
		s := &reply[i]
		index, _ := strconv.Atoi(s.Metric[familyLabel])
		b := t.backends[t.preset.owner(s.Metric)]
		if b == nil || index < 0 || index >= len(t.preset.families) {
			continue
		}
		if b.readings == nil {
			b.readings = make([]health.Reading, t.ticks)
		}
		rows = append(rows, row{s, b, index})
	}
	if !t.preset.alternatives {
		return rows
	}
	for _, r := range rows {
		if counts := r.Metric[kindLabel] == ""; counts && (r.backend.family < 0 || r.family < r.backend.family) {
			r.backend.family = r.family
		}
	}
	kept := rows[:0]
	for _, r := range rows {
		if r.backend.family < 0 || r.family == r.backend.family {
			kept = append(kept, r)
		}
	}
	return kept
}

// each calls add for every number of a row that lies on a tick.
func (t *table) each(r row, add func(at int, v float64)) {
	for _, v := range r.Values {
		d := v.at.Sub(t.from)
		if at := int(d / t.interval); d >= 0 && d%t.interval == 0 && at < t.ticks {
			add(at, v.value)
		}
	}
}

// windows returns the windows of a member.
func (t *table) windows(m member, g group) []health.Window {
	var all []health.Window
	for end := m.again(g.interval); !end.After(m.to); end = end.Add(g.interval) {
		w := health.Window{
			Start: end.Add(-g.window), End: end,
			Stable: t.reading(m.entry, m.entry.stable, end), Canary: t.reading(m.entry, m.entry.canary, end),
		}
		if absent(&w.Stable) && absent(&w.Canary) {
			w.Problem = &health.Problem{Reason: v1alpha1.ReasonNoData, Message: "the metrics have no series for the stable or the canary: neither has had a request yet, or the metrics are not there: " + t.preset.hint}
		}
		all = append(all, w)
	}
	return all
}

func absent(r *health.Reading) bool {
	return !r.Found && r.NewestSample.IsZero() && r.Problem == nil
}

func (t *table) reading(e *entry, name string, end time.Time) health.Reading {
	b := t.backends[t.preset.aliases(name)[0]]
	at := int(end.Sub(t.from) / t.interval)
	if b == nil || b.readings == nil || at < 0 || at >= t.ticks {
		return health.Reading{}
	}
	r := b.readings[at]
	if b.native == nil || !b.native[at] || r.Problem != nil {
		return r
	}
	// Errors that can be told are judged even where response times cannot.
	timesOnly := e.config.Latency != nil && e.config.ErrorRate == nil && len(r.Buckets) == 0
	if !r.Found || timesOnly {
		r.Problem = nativeHistogram()
	}
	return r
}

func nativeHistogram() *health.Problem {
	return unsupported("the metrics are native histograms, which are not read: let Prometheus keep the classic ones as well, with always_scrape_classic_histograms: true")
}

func (t *table) addRequests(reply []series) {
	for _, r := range t.rows(reply) {
		f := &t.preset.families[r.family]
		readings := r.backend.readings
		switch {
		case t.isNative(r):
		case r.Metric[kindLabel] == kindNewest:
			t.each(r, func(at int, v float64) { later(&readings[at].NewestSample, v) })
		case r.Metric[kindLabel] == kindOldest:
			t.each(r, func(at int, v float64) { earlier(&readings[at].OldestSample, v) })
		case r.Metric[kindLabel] == "":
			failed, known := f.judge(r.Metric)
			t.each(r, func(at int, v float64) { f.addCount(&readings[at], r.Metric, v, failed, known) })
		}
	}
}

func (f *family) addCount(r *health.Reading, labels map[string]string, v float64, failed, known bool) {
	r.Found = true
	r.Requests += v
	switch {
	case !known && v != 0:
		var said []string
		for _, name := range f.status {
			said = append(said, name+"="+strconv.Quote(shorten(labels[name], 20)))
		}
		r.Problem = unsupported("the metrics count requests with %s, which does not say whether they failed", strings.Join(said, ", "))
	case failed:
		r.Errors += v
	}
}

// isNative notes that a row says that there is a native histogram, or is one.
func (t *table) isNative(r row) bool {
	b := r.backend
	note := func(at int, _ float64) {
		if b.native == nil {
			b.native = make([]bool, t.ticks)
		}
		b.native[at] = true
	}
	switch {
	case len(r.Histograms) > 0:
		for at := range b.readings {
			b.readings[at].Problem = nativeHistogram()
		}
		return true
	case r.Metric[kindLabel] == kindNative:
		t.each(r, note)
		return true
	}
	return false
}

func later(t *health.Instant, seconds float64) {
	if at, ok := instantOf(seconds); ok && at > *t {
		*t = at
	}
}

func earlier(t *health.Instant, seconds float64) {
	if at, ok := instantOf(seconds); ok && (t.IsZero() || at < *t) {
		*t = at
	}
}

// instantOf reads a time in seconds since the Unix epoch. Beyond the year 5138 nothing is
// a time, and milliseconds stay exact.
func instantOf(seconds float64) (health.Instant, bool) {
	if math.IsNaN(seconds) || math.Abs(seconds) > 1e11 {
		return 0, false
	}
	return health.Instant(math.Round(seconds * 1000)), true
}

func (t *table) addBuckets(reply []series) {
	for _, r := range t.rows(reply) {
		f := &t.preset.families[r.family]
		if t.isNative(r) || r.Metric[kindLabel] != "" {
			continue
		}
		// A bound that is no number stays one: health says so.
		bound, err := strconv.ParseFloat(r.Metric[f.bound], 64)
		if err != nil {
			bound = math.NaN()
		}
		t.each(r, func(at int, v float64) { addBucket(&r.backend.readings[at], bound*f.unit, v) })
	}
}

// addBucket adds up what several families, or several spellings of one bound, count.
func addBucket(r *health.Reading, bound, count float64) {
	for i := range r.Buckets {
		if r.Buckets[i].UpperBound == bound {
			r.Buckets[i].Count += count
			return
		}
	}
	r.Buckets = append(r.Buckets, health.Bucket{UpperBound: bound, Count: count})
}
