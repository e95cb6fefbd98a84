package telemetry

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/internal/health"
)

// TestPrometheusReadsBackWhatItSaid: over a span of ticks a real Prometheus says what it
// says at each of them.
func TestPrometheusReadsBackWhatItSaid(t *testing.T) {
	const ticks = 41
	load := timeline{labels: map[string]string{"__name__": "load", "job": "app"}}
	hits := timeline{labels: map[string]string{"__name__": "hits_total", "job": "app"}}
	other := timeline{labels: map[string]string{"__name__": "other", "job": "app"}}
	for i := range 60 {
		at, n := float64(i*10), float64(i)
		switch {
		case i == 20:
			load.samples = append(load.samples, [2]float64{at, stale})
		case i > 30 || i < 20:
			load.samples = append(load.samples, [2]float64{at, float64(i * i % 7)})
		}
		hits.samples = append(hits.samples, [2]float64{at, n * 3})
		if i%15 < 7 {
			other.samples = append(other.samples, [2]float64{at, n}, [2]float64{at + 1, stale})
		}
	}
	prom := startPrometheus(t)
	prom.write(load, hits, other)
	f := newFixture(t, prom.url)
	for name, query := range map[string]string{
		"a gauge with a gap": `load`, "a rate": `rate(hits_total{job="app"}[{{window}}])`, "a scalar": `scalar(load)`, "a constant": `2`,
		"now and then": `load > 3`, "several series": `{__name__=~"load|other"}`, "never": `missing`, "0 by 0": `load * 0 / 0`, "an offset": `load offset 1m`,
		"of before": `avg_over_time(load[2m:10s])`, "refused": `sum(`, "a range": `load[1m]`, "a string": `"x"`,
	} {
		t.Run(name, func(t *testing.T) {
			f.Track(target("web", owned(false), func(t *Target) { t.Health.Checks[0].Query = query }))
			e := f.entry(key("web"))
			q, by := &e.queries[0], caller{tenant: "shop"}
			from := start.Add(-15 * time.Second)
			past := map[time.Time]health.CheckResult{}
			for _, a := range e.askPast(t.Context(), by, q, from, from.Add((ticks-1)*15*time.Second)) {
				past[a.End] = a.Checks[0]
			}
			problems := 0
			for i := range ticks {
				at := from.Add(time.Duration(i) * 15 * time.Second)
				want := health.CheckResult{Name: "own"}
				want.Value, want.SampleAt, want.Problem = e.askCheck(t.Context(), by, q, at)
				if want.Problem != nil {
					problems++
				}
				got, ok := past[at]
				if !ok && want.Problem == nil || ok && cmp.Diff(want, got) != "" {
					t.Errorf("at %s: %+v, read back (%t) %+v", at.Sub(start), want, ok, got)
				}
			}
			t.Logf("%d of %d are no numbers", problems, ticks)
		})
	}
}
