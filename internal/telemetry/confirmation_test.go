package telemetry

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/health/compare"
)

// counts are what a backend has had in the window that ends at a step.
type counts struct{ requests, errors, slow float64 }

// counted answers range queries by what each backend had at each step; its counts start
// at the sample that lies so long before the window.
func counted(reach time.Duration, of func(backend string, end time.Time) counts) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.Form.Get("query")
		window := windowOf(query)
		var out []series
		line := func(value func(time.Time) float64, labels ...string) {
			out = append(out, lineOf(r.Form, value, labels))
		}
		for _, name := range backendNames(query) {
			if strings.Contains(query, "_bucket") {
				line(func(at time.Time) float64 { c := of(name, at); return c.requests - c.slow }, "service", name, "le", "0.3")
				line(func(at time.Time) float64 { return of(name, at).requests }, "service", name, "le", "1.2")
				line(func(at time.Time) float64 { return of(name, at).requests }, "service", name, "le", "+Inf")
				continue
			}
			line(func(at time.Time) float64 { c := of(name, at); return c.requests - c.errors }, "service", name, "code", "200")
			line(func(at time.Time) float64 { return of(name, at).errors }, "service", name, "code", "503")
			line(secondsBefore(0), "service", name, kindLabel, kindNewest)
			line(secondsBefore(window+reach), "service", name, kindLabel, kindOldest)
		}
		writeMatrix(w, out)
	}
}

func isCanary(backend string) bool { return strings.Contains(backend, "-canary-") }

// TestEvidenceStartsAtTheConfirmation: a server that answers well for every range that
// begins before the confirmation, and badly for every other, never opens a gate.
func TestEvidenceStartsAtTheConfirmation(t *testing.T) {
	for _, reach := range []time.Duration{0, 10 * time.Second, 40 * time.Second} {
		t.Run(fmt.Sprintf("samples every %s", reach), func(t *testing.T) {
			good := 0
			s := newMetricsServer(t, counted(reach, func(_ string, end time.Time) counts {
				if end.Add(-time.Minute - reach).Before(start) {
					good++
					return counts{requests: 1000}
				}
				return counts{requests: 1000, errors: 500}
			}))
			f := newFixture(t, s.URL)
			f.Track(target("web"))
			for range 40 {
				f.step(15 * time.Second)
				if v := f.Verdict(key("web")); v.RampReady || v.StageReady || v.State == v1alpha1.VerdictHealthy {
					t.Fatalf("at %s: %+v", f.clock.Now().Sub(start), v)
				}
			}
			if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictUnhealthy {
				t.Errorf("at the end: %+v", v)
			}
			// The window is late enough by itself, unless the samples are too far apart.
			if tempted := reach > 15*time.Second; tempted != (good > 0) {
				t.Errorf("%d good answers", good)
			}
		})
	}
}

// TestRestartComesToTheSameVerdict: a controller that starts in mid-soak reads the range
// back, and comes to the verdict, the numbers and the comparison of one that never
// stopped.
func TestRestartComesToTheSameVerdict(t *testing.T) {
	noise := func(backend string, end time.Time) counts {
		n := float64(end.Unix() / 15 % 7)
		if isCanary(backend) {
			return counts{requests: 60 + n, errors: n / 6, slow: n}
		}
		return counts{requests: 900 + n, errors: n, slow: 10 * n}
	}
	earlier := health.Comparison{
		Errors:  compare.Inferiority{}.Add(compare.Block{Stable: compare.Counts{Bad: 10, Total: 1000}, Canary: compare.Counts{Bad: 2, Total: 50}}),
		Through: start.Add(-time.Minute),
	}
	sameTarget := func() Target {
		return target("web", withLatency, func(t *Target) {
			t.Compared = earlier
			t.Health.Require = v1alpha1.RequireNotWorse
		})
	}
	s := newMetricsServer(t, counted(0, noise))
	steady := newFixture(t, s.URL)
	steady.Track(sameTarget())
	for range 25 * 4 {
		steady.step(15 * time.Second)
	}
	restarted := newFixture(t, s.URL)
	restarted.clock.SetTime(steady.clock.Now())
	restarted.Track(sameTarget())
	restarted.step(0)
	byValue := cmpopts.EquateComparable(compare.Inferiority{}, compare.NotWorse{})
	for range 3 {
		want, got := steady.Verdict(key("web")), restarted.Verdict(key("web"))
		if want.Requests < 1000 || want.Compared.Through.IsZero() || want.Score == 0 {
			t.Fatalf("too little to compare: %+v", want)
		}
		if diff := cmp.Diff(want, got, byValue); diff != "" {
			t.Errorf("at %s (-without a restart +with one):\n%s", steady.clock.Now().Sub(start), diff)
		}
		steady.step(15 * time.Second)
		restarted.step(15 * time.Second)
	}
}

// BenchmarkMemory measures what an hour of evidence takes, per rollout.
func BenchmarkMemory(b *testing.B) {
	const rollouts = 1000
	config, err := health.ConfigFrom(target("web", withLatency).Health, "1m")
	if err != nil {
		b.Fatal(err)
	}
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for b.Loop() {
		c := New(Config{DefaultAddress: "http://localhost:9"})
		before := heap()
		for i := range rollouts {
			name := fmt.Sprintf("web-%d", i)
			c.Track(target(name, withLatency))
			e := c.entry(key(name))
			for tick := 5; tick <= 60*4; tick++ {
				end := start.Add(time.Duration(tick) * config.Interval)
				reading := health.Reading{Found: true, Requests: 100, NewestSample: health.At(end), OldestSample: health.At(end.Add(-time.Minute))}
				for _, bound := range []float64{0.1, 0.3, 1.2, 5} {
					reading.Buckets = append(reading.Buckets, health.Bucket{UpperBound: bound, Count: 100})
				}
				e.add([]health.Window{{Start: end.Add(-time.Minute), End: end, Stable: reading, Canary: reading}}, end, end)
			}
		}
		b.ReportMetric((heap()-before)/rollouts/1024, "KiB/rollout")
		runtime.KeepAlive(c)
	}
}
