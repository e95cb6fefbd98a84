package telemetry

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

const (
	// maxBuckets is how many buckets of a histogram are read.
	maxBuckets = 200
	// maxSeries is how many series a reply has at most for each name that is asked for, and
	// spareSeries how many it may have beside.
	maxSeries, spareSeries = 500, 1000
	// What is kept for each tick: of a window, of a backend and of one of its buckets.
	windowCost, readingCost, countCost = 256, 96, 9
	// columnCost is what a bucket takes beside its counts.
	columnCost = 128
)

// table holds the numbers of a chunk by backend and tick.
type table struct {
	preset   preset
	from     time.Time
	interval time.Duration
	ticks    int
	backends map[string]*backend // by each name that a series can have for it
	room     *room
}

// backend is what was read of a backend: in one part, or of alternatives in one for each
// family.
type backend struct{ parts []portion }

// portion is what was read of one family, or of all.
type portion struct {
	readings []health.Reading // one per tick; nil: nothing was found
	native   []bool           // per tick: there is a native histogram; nil: there is none
	counted  bool             // there are counts of requests
	columns  []*column        // the buckets
	at       map[float64]*column
	tooMany  bool // buckets
}

// column is a bucket: what it counts at every tick that it has a number for.
type column struct {
	bound  float64
	counts []float64
	has    []bool
}

func newTable(p preset, from, to time.Time, interval time.Duration, backends []string, r *room) *table {
	t := &table{preset: p, from: from, interval: interval, ticks: int(to.Sub(from)/interval) + 1, backends: make(map[string]*backend, len(backends)), room: r}
	parts := 1
	if p.alternatives {
		parts = len(p.families)
	}
	for _, name := range backends {
		b := &backend{parts: make([]portion, parts)}
		for _, alias := range p.aliases(name) {
			if known := t.backends[alias]; known != nil {
				b = known // another rollout's, or asked for twice
			}
			t.backends[alias] = b
		}
	}
	return t
}

// limits bound what a reply has.
func (t *table) limits() limits {
	return limits{series: spareSeries + maxSeries*len(t.backends), samples: t.ticks}
}

// row is a series that belongs to a backend which was asked for.
type row struct {
	*series
	portion *portion
	family  *family
}

// row returns where a series belongs; no part: to nothing that was asked for.
func (t *table) row(s *series) (row, error) {
	index, _ := strconv.Atoi(s.Metric[familyLabel])
	b := t.backends[t.preset.owner(s.Metric)]
	if b == nil || index < 0 || index >= len(t.preset.families) {
		return row{}, nil
	}
	r := row{series: s, portion: &b.parts[0], family: &t.preset.families[index]}
	if t.preset.alternatives {
		r.portion = &b.parts[index]
	}
	if r.portion.readings == nil {
		if err := t.room.grow(int64(t.ticks) * readingCost); err != nil {
			return row{}, err
		}
		r.portion.readings = make([]health.Reading, t.ticks)
	}
	return r, nil
}

// read returns what counts of a backend: of alternatives the first one with requests, or
// if there is none what all of them say.
func (b *backend) read() *portion {
	for i := range b.parts {
		if len(b.parts) == 1 || b.parts[i].counted {
			return &b.parts[i]
		}
	}
	all := portion{}
	for i := range b.parts {
		all.join(&b.parts[i])
	}
	b.parts = []portion{all}
	return &b.parts[0]
}

// join takes in what another part says that has no counts.
func (p *portion) join(q *portion) {
	if p.readings == nil {
		p.readings, p.native = q.readings, q.native
		return
	}
	for at := range q.readings {
		r, s := &p.readings[at], &q.readings[at]
		r.NewestSample = max(r.NewestSample, s.NewestSample)
		if r.OldestSample.IsZero() || !s.OldestSample.IsZero() && s.OldestSample < r.OldestSample {
			r.OldestSample = s.OldestSample
		}
		if r.Problem == nil {
			r.Problem = s.Problem
		}
	}
	for at, native := range q.native {
		if native {
			p.noteNative(at)
		}
	}
}

func (p *portion) noteNative(at int) {
	if p.native == nil {
		p.native = make([]bool, len(p.readings))
	}
	p.native[at] = true
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
		// As it is kept: what an evaluation cannot look at is not held until then.
		all = append(all, m.entry.config.Compact(w))
	}
	return all
}

func absent(r *health.Reading) bool {
	return !r.Found && r.NewestSample.IsZero() && r.Problem == nil
}

func (t *table) reading(e *entry, name string, end time.Time) health.Reading {
	b := t.backends[t.preset.aliases(name)[0]]
	at := int(end.Sub(t.from) / t.interval)
	if b == nil || at < 0 || at >= t.ticks {
		return health.Reading{}
	}
	p := b.read()
	if p.readings == nil {
		return health.Reading{}
	}
	r := p.readings[at]
	r.Buckets = p.buckets(at)
	if r.Problem != nil {
		return r
	}
	// Errors that can be told are judged even where response times cannot.
	switch native := p.native != nil && p.native[at]; {
	case native && !r.Found:
		r.Problem = nativeHistogram()
	case native && e.config.Latency != nil && len(r.Buckets) == 0:
		r.Problem = nativeHistogram()
		r.Problem.OnlyTimes = true
	case p.tooMany && e.config.Latency != nil:
		r.Problem = unsupported("the histogram of response times has more than %d buckets: have the metrics keep fewer", maxBuckets)
		r.Problem.OnlyTimes = true
	}
	return r
}

// buckets returns the buckets at a tick, by rising bound.
func (p *portion) buckets(at int) []health.Bucket {
	if p.tooMany {
		return nil
	}
	var all []health.Bucket
	for _, c := range p.columns {
		if c.has[at] {
			all = append(all, health.Bucket{UpperBound: c.bound, Count: c.counts[at]})
		}
	}
	return all
}

func nativeHistogram() *health.Problem {
	return unsupported("the metrics are native histograms, which are not read: let Prometheus keep the classic ones as well, with always_scrape_classic_histograms: true")
}

func (t *table) addRequests(s *series) error {
	r, err := t.row(s)
	if err != nil || r.portion == nil || t.isNative(r) {
		return err
	}
	readings := r.portion.readings
	switch s.Metric[kindLabel] {
	case kindNewest:
		t.each(r, func(at int, v float64) { later(&readings[at].NewestSample, v) })
	case kindOldest:
		t.each(r, func(at int, v float64) { earlier(&readings[at].OldestSample, v) })
	case "":
		r.portion.counted = true
		failed, known := r.family.judge(s.Metric)
		t.each(r, func(at int, v float64) { r.family.addCount(&readings[at], s.Metric, v, failed, known) })
	}
	return nil
}

func (f *family) addCount(r *health.Reading, labels map[string]string, v float64, failed, known bool) {
	r.Found = true
	r.Requests += v
	switch {
	case !known && v != 0:
		if r.Problem != nil {
			return
		}
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
	switch {
	case r.Native:
		for at := range r.portion.readings {
			r.portion.readings[at].Problem = nativeHistogram()
		}
		return true
	case r.Metric[kindLabel] == kindNative:
		t.each(r, func(at int, _ float64) { r.portion.noteNative(at) })
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

func (t *table) addBuckets(s *series) error {
	r, err := t.row(s)
	if err != nil || r.portion == nil || t.isNative(r) || s.Metric[kindLabel] != "" || r.portion.tooMany {
		return err
	}
	// A bound that is no number stays one: health says so.
	bound, err := strconv.ParseFloat(s.Metric[r.family.bound], 64)
	if err != nil {
		bound = math.NaN()
	}
	c, err := t.column(r.portion, bound*r.family.unit)
	if err != nil || c == nil {
		return err
	}
	t.each(r, func(at int, v float64) { c.counts[at], c.has[at] = c.counts[at]+v, true })
	return nil
}

// column returns the bucket with a bound, which several families, or several spellings,
// can have; nil if there are too many already. All that are no number are one.
func (t *table) column(p *portion, bound float64) (*column, error) {
	for _, c := range p.columns[:min(len(p.columns), 1)] {
		if math.IsNaN(bound) && math.IsNaN(c.bound) {
			return c, nil
		}
	}
	if c := p.at[bound]; c != nil {
		return c, nil
	}
	if len(p.columns) == maxBuckets {
		p.columns, p.at, p.tooMany = nil, nil, true
		return nil, nil
	}
	if err := t.room.grow(columnCost + int64(t.ticks)*countCost); err != nil {
		return nil, err
	}
	c := &column{bound: bound, counts: make([]float64, t.ticks), has: make([]bool, t.ticks)}
	if p.at == nil {
		p.at = map[float64]*column{}
	}
	p.at[bound] = c
	// By rising bound, the one that is no number first.
	i, _ := slices.BinarySearchFunc(p.columns, c, func(a, b *column) int { return cmp.Compare(a.bound, b.bound) })
	p.columns = slices.Insert(p.columns, i, c)
	return c, nil
}
