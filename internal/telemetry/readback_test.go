package telemetry

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/health/compare"
)

// plot answers own checks by one line, or several, at each time; of none there is no
// series. Presets' queries are answered well.
func plot(of func(at time.Time) []float64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !ownCheck(r) {
			traffic(120, 0)(w, r)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/query") {
			at := timeIn(r.Form, "time")
			var texts []string
			for _, v := range of(at) {
				texts = append(texts, fmt.Sprint(v))
			}
			vector(texts...)(w, r)
			return
		}
		lines := make([]series, 2)
		for i := range lines {
			lines[i].Metric = map[string]string{"pod": fmt.Sprint(i)}
			for _, at := range steps(r.Form) {
				if values := of(at); i < len(values) {
					lines[i].Values = append(lines[i].Values, sample{at, values[i]})
				}
			}
		}
		writeMatrix(w, lines)
	}
}

// badFrom is a check that is out of its limits from some time after the start on.
func badFrom(d time.Duration) func(time.Time) []float64 {
	return func(at time.Time) []float64 {
		if at.Before(start.Add(d)) {
			return []float64{1}
		}
		return []float64{9}
	}
}

// owned gives a target a check, with or without a preset.
func owned(preset bool, change ...func(*v1alpha1.Check)) func(*Target) {
	return func(t *Target) {
		k := v1alpha1.Check{Name: "own", Query: "up", Max: new(v1alpha1.Decimal("2"))}
		for _, c := range change {
			c(&k)
		}
		if !preset {
			t.Health = &v1alpha1.Health{}
		}
		t.Health.Checks = []v1alpha1.Check{k}
	}
}

func restarted(t *testing.T, s *metricsServer, at time.Time, change ...func(*Target)) *fixture {
	t.Helper()
	f := newFixture(t, s.URL)
	f.clock.SetTime(at)
	f.Track(target("web", change...))
	f.step(0)
	return f
}

// TestRestartKeepsABreachOfOwnChecks: a check that has been out of its limits for 50 of 60
// seconds is so after a restart, too.
func TestRestartKeepsABreachOfOwnChecks(t *testing.T) {
	for _, preset := range []bool{false, true} {
		t.Run(fmt.Sprintf("preset %t", preset), func(t *testing.T) {
			s := newMetricsServer(t, plot(badFrom(10*time.Minute)))
			f := restarted(t, s, start.Add(10*time.Minute+50*time.Second), owned(preset))
			var ranges int
			for _, a := range s.take() {
				if !strings.Contains(a.Get("query"), "up") || !strings.HasSuffix(a.Get("path"), "_range") {
					continue
				}
				ranges++
				// A minute of breach, and the window before it.
				if from, to := unixSeconds(start.Add(8*time.Minute+45*time.Second)), unixSeconds(start.Add(10*time.Minute+30*time.Second)); a.Get("start") != from || a.Get("end") != to {
					t.Errorf("from %s to %s, want %s to %s", a.Get("start"), a.Get("end"), from, to)
				}
			}
			if ranges != 1 {
				t.Errorf("%d requests for what was before", ranges)
			}
			if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictDegraded || !v.BreachSince.Equal(start.Add(10*time.Minute)) {
				t.Errorf("at once: %+v", v)
			}
			f.step(15 * time.Second)
			if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictUnhealthy {
				t.Errorf("after a minute of breach: %+v", v)
			}
			for _, a := range s.take() {
				if strings.Contains(a.Get("query"), "up") && strings.HasSuffix(a.Get("path"), "_range") {
					t.Error("it is read back twice")
				}
			}
		})
	}
}

// TestRestartWithOwnChecksComesToTheSameVerdict: whatever a check has said, and whenever the
// controller starts again.
func TestRestartWithOwnChecksComesToTheSameVerdict(t *testing.T) {
	const interval, minutes = 15 * time.Second, 12
	byValue := cmpopts.EquateComparable(compare.Inferiority{}, compare.NotWorse{})
	// How far back a check without a preset has its windows says nothing about the canary.
	since := cmpopts.IgnoreFields(health.Verdict{}, "From")
	for seed := range uint64(24) {
		preset, important := seed%2 == 0, seed%3 == 0
		random := rand.New(rand.NewPCG(seed, 0))
		said := make([][]float64, minutes*4+1)
		now := []float64{1}
		for i := range said {
			switch n := random.IntN(20); {
			case n < 3:
				now = []float64{9}
			case n < 6:
				now = []float64{1 + float64(n)/10}
			}
			said[i] = now
			switch random.IntN(40) {
			case 0:
				said[i] = nil
			case 1:
				said[i] = []float64{1, 1}
			case 2:
				said[i] = []float64{math.NaN()}
			}
		}
		s := newMetricsServer(t, plot(func(at time.Time) []float64 { return said[at.Sub(start)/interval] }))
		kind := owned(preset, func(k *v1alpha1.Check) {
			if important {
				k.Importance = "9"
			}
		})
		steady := newFixture(t, s.URL)
		steady.Track(target("web", kind))
		stopped := 20 + random.IntN(10)
		for range stopped {
			steady.step(interval)
		}
		again := restarted(t, s, steady.clock.Now(), kind)
		for at := stopped; at < len(said)-1; at++ {
			want, got := steady.Verdict(key("web")), again.Verdict(key("web"))
			if diff := cmp.Diff(want, got, byValue, since); diff != "" {
				t.Errorf("seed %d, stopped at %d, at %d (-without a restart +with one):\n%s", seed, stopped, at, diff)
				break
			}
			steady.step(interval)
			again.step(interval)
		}
	}
}

// TestWhatIsReadBackIsNoPass: an error, silence, several series or a value that is no number
// in what is read back says nothing, neither good nor bad.
func TestWhatIsReadBackIsNoPass(t *testing.T) {
	present := plot(badFrom(time.Hour))
	for name, past := range map[string]http.HandlerFunc{
		"error":        text(500, ""),
		"refused":      text(422, `{"status":"error","errorType":"execution"}`),
		"no matrix":    vector("1"),
		"partial":      text(200, `{"status":"success","warnings":["x"],"data":{"resultType":"matrix","result":[]}}`),
		"silence":      plot(func(time.Time) []float64 { return nil }),
		"two series":   plot(func(time.Time) []float64 { return []float64{1, 1} }),
		"NaN":          plot(func(time.Time) []float64 { return []float64{math.NaN()} }),
		"infinity":     plot(func(time.Time) []float64 { return []float64{math.Inf(1)} }),
		"off the grid": text(200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1.5,"1"]]}]}}`),
		"a histogram":  text(200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"histograms":[[1,{"count":"1"}]]}]}}`),
	} {
		t.Run(name, func(t *testing.T) {
			s := newMetricsServer(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "_range") {
					past(w, r)
					return
				}
				present(w, r)
			})
			// 10m15s is on no grid of a minute, so that nothing opens a gate but what is past.
			f := restarted(t, s, start.Add(10*time.Minute+15*time.Second), owned(false))
			if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictUnknown || v.RampReady || v.StageReady {
				t.Errorf("%+v", v)
			}
			for _, w := range f.Windows(key("web")) {
				if c := w.Checks[0]; w.End.Before(f.clock.Now()) && c.Problem == nil {
					t.Errorf("window to %s: %+v", w.End.Sub(start), c)
				}
			}
			// It is no breach either.
			for range 3 {
				f.step(15 * time.Second)
			}
			if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictHealthy {
				t.Errorf("with a full window of its own: %+v", v)
			}
		})
	}
}

// TestReadBackIsTriedAgain: as long as it can matter, and no longer.
func TestReadBackIsTriedAgain(t *testing.T) {
	good := plot(badFrom(10 * time.Minute))
	for name, tc := range map[string]struct {
		failing int // ranges that fail
		asked   int
		since   time.Duration
	}{
		"at once": {0, 1, 10 * time.Minute}, "later": {2, 3, 10 * time.Minute}, "never": {99, 7, 10*time.Minute + 30*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			ranges := 0
			s := newMetricsServer(t, nil)
			s.answer(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "_range") {
					s.mu.Lock()
					ranges++
					fails := ranges <= tc.failing
					s.mu.Unlock()
					if fails {
						text(503, "")(w, r)
						return
					}
				}
				good(w, r)
			})
			f := restarted(t, s, start.Add(10*time.Minute+30*time.Second), owned(false))
			for range 20 {
				f.step(15 * time.Second)
			}
			if v := f.Verdict(key("web")); ranges > tc.asked || name != "never" && ranges != tc.asked || !v.BreachSince.Equal(start.Add(tc.since)) {
				t.Errorf("%d requests; since %s", ranges, v.BreachSince.Sub(start))
			}
		})
	}
}

// TestBoundsOfASpanAreNotReadBack: what means something else over a span than at one time.
func TestBoundsOfASpanAreNotReadBack(t *testing.T) {
	s := newMetricsServer(t, plot(badFrom(0)))
	f := restarted(t, s, start.Add(10*time.Minute), owned(false, func(k *v1alpha1.Check) { k.Query = "up @ end()" }))
	if asked := s.take(); len(asked) != 1 {
		t.Errorf("%d requests", len(asked))
	}
	if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictDegraded {
		t.Errorf("%+v", v)
	}
}

// TestPresentComesBeforeThePast: what others are asked now does not wait for what is read
// back.
func TestPresentComesBeforeThePast(t *testing.T) {
	good := plot(badFrom(time.Hour))
	s := newMetricsServer(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "_range") {
			<-r.Context().Done()
			return
		}
		good(w, r)
	})
	f := newFixture(t, s.URL, func(c *Config) { c.Concurrency = 2 })
	f.clock.SetTime(start.Add(10 * time.Minute))
	names := make([]string, 12)
	for i := range names {
		names[i] = fmt.Sprintf("web-%d", i)
		f.Track(target(names[i], owned(false)))
	}
	t.Cleanup(func() {
		for _, name := range names {
			f.Forget(key(name))
		}
		f.inflight.Wait()
	})
	f.poll(t.Context())
	for _, name := range names {
		eventually(t, "the present answer", func() bool { return f.Verdict(key(name)).StageReady })
	}
}
