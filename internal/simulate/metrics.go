package simulate

import (
	"math"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// snapshot is what the gateway's counters say at a tick of the metrics.
type snapshot struct {
	stable, canary counts
}

// meter is the metrics server: the gateway's counters at every tick of the grid of
// health.interval, as far back as any evaluation looks.
type meter struct {
	bounds   []float64
	interval time.Duration
	// first is the time of the oldest snapshot, the others follow at every interval.
	first     time.Time
	snapshots []snapshot
	keep      int
	checks    []gauge
}

// gauge is one of the spec's own checks.
type gauge struct {
	name   string
	values timeline
}

// newMeter returns a meter whose first tick is at a time of the grid.
func newMeter(c health.Config, bounds []float64, first time.Time) *meter {
	return &meter{bounds: bounds, interval: c.Interval, first: first, keep: int((health.Memory+c.Window)/c.Interval) + 8}
}

// record keeps the counters of the tick that follows the last one.
func (m *meter) record(stable, canary counts) {
	m.snapshots = append(m.snapshots, snapshot{stable.clone(), canary.clone()})
	if extra := len(m.snapshots) - 2*m.keep; extra > 0 {
		// Half of them at a time, so that the cost stays small.
		m.snapshots = append([]snapshot(nil), m.snapshots[m.keep:]...)
		m.first = m.first.Add(time.Duration(m.keep) * m.interval)
	}
}

// at returns the counters at a tick. Before the first one nothing was counted.
func (m *meter) at(t time.Time) snapshot {
	i := int(t.Sub(m.first) / m.interval)
	if t.Before(m.first) || i >= len(m.snapshots) {
		none := counts{within: make([]float64, len(m.bounds))}
		return snapshot{none, none}
	}
	return m.snapshots[i]
}

// window reads the metrics of the window that ends at a tick, in the given mood of the
// server. The spec's own checks are answered for the present only.
func (m *meter) window(c health.Config, end time.Time, mood Metrics) health.Window {
	w := health.Window{Start: end.Add(-c.Window), End: end}
	if c.Preset == "" {
		return w
	}
	switch mood {
	case MetricsOutage:
		w.Problem = &health.Problem{Reason: v1alpha1.ReasonProviderError, Message: "the metrics server could not be reached"}
	case MetricsEmpty:
	case MetricsNaN:
		nan := health.Reading{Found: true, Requests: math.NaN(), Errors: math.NaN(), NewestSample: health.At(end)}
		w.Stable, w.Canary = nan, nan
	case MetricsFine:
		before, after := m.at(w.Start), m.at(end)
		w.Stable = m.reading(before.stable, after.stable, end)
		w.Canary = m.reading(before.canary, after.canary, end)
	}
	return w
}

// reading is the increase of a track's counters. A track has series from its first
// request on.
func (m *meter) reading(before, after counts, end time.Time) health.Reading {
	if after.requests == 0 {
		return health.Reading{}
	}
	d := after.since(before)
	r := health.Reading{Found: true, Requests: d.requests, Errors: d.failed, NewestSample: health.At(end)}
	r.Buckets = make([]health.Bucket, len(m.bounds))
	for i, bound := range m.bounds {
		r.Buckets[i] = health.Bucket{UpperBound: bound, Count: d.within[i]}
	}
	return r
}

// answers are those of the spec's own checks at a tick, at the given time since the
// start.
func (m *meter) answers(end time.Time, elapsed time.Duration, mood Metrics) []health.CheckResult {
	var results []health.CheckResult
	for _, g := range m.checks {
		r := health.CheckResult{Name: g.name, SampleAt: end}
		switch mood {
		case MetricsOutage:
			r.Problem = &health.Problem{Reason: v1alpha1.ReasonProviderError, Message: "the metrics server could not be reached"}
		case MetricsEmpty:
			r.Problem = &health.Problem{Reason: v1alpha1.ReasonNoData, Message: "the query gave no series"}
		case MetricsNaN:
			r.Value = math.NaN()
		case MetricsFine:
			r.Value = g.values.at(elapsed)
		}
		results = append(results, r)
	}
	return results
}

// gauges returns the spec's own checks with their values: those of the scenario, or
// else a value inside the limits. It names the checks that have none.
func gauges(c health.Config, values map[string]timeline) (list []gauge, unset []string) {
	for _, k := range c.Checks {
		g := gauge{name: k.Name, values: values[k.Name]}
		if g.values == nil {
			g.values = constant(inside(k))
			unset = append(unset, k.Name)
		}
		list = append(list, g)
	}
	return list, unset
}

// inside returns a value well inside the limits of a check.
func inside(k health.Check) float64 {
	switch {
	case k.Min != nil && k.Max != nil:
		return *k.Min + (*k.Max-*k.Min)/2
	case k.Max != nil && *k.Max >= 0:
		return *k.Max / 2
	case k.Max != nil:
		return *k.Max - 1
	case k.Min != nil && *k.Min > 0:
		return *k.Min * 2
	case k.Min != nil:
		return *k.Min + 1
	}
	return 0
}
