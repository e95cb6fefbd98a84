package telemetry

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// TestOneRolloutSpoilsNoOthers: what the metrics of one rollout do to a reply costs the
// others nothing but a few more requests, once.
func TestOneRolloutSpoilsNoOthers(t *testing.T) {
	good := traffic(120, 0)
	for name, spoiled := range map[string]http.HandlerFunc{
		"warnings":      text(200, `{"status":"success","warnings":["PromQL warning: mixed"],"data":{"resultType":"matrix","result":[]}}`),
		"refused":       text(422, `{"status":"error","errorType":"execution","error":"many-to-many matching not allowed"}`),
		"no matrix":     text(200, `{"status":"success","data":{"resultType":"vector","result":[]}}`),
		"a large reply": text(200, strings.Repeat(" ", maxBody+1024)),
	} {
		t.Run(name, func(t *testing.T) {
			s := newMetricsServer(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.Form.Get("query"), "shop-evil-canary") {
					spoiled(w, r)
					return
				}
				good(w, r)
			})
			f := newFixture(t, s.URL)
			const victims = 15
			f.Track(target("evil"))
			for i := range victims {
				f.Track(target(fmt.Sprintf("web-%d", i)))
			}
			f.step(timeToVerdict)
			first := len(s.take())
			f.step(15 * time.Second)
			for i := range victims {
				if v := f.Verdict(key(fmt.Sprintf("web-%d", i))); v.State != v1alpha1.VerdictHealthy {
					t.Fatalf("a neighbour: %+v", v)
				}
			}
			if v := f.Verdict(key("evil")); v.State != v1alpha1.VerdictUnknown {
				t.Errorf("the rollout itself: %+v", v)
			}
			if later := len(s.take()); first > 2*5 || later != 2 {
				t.Errorf("%d requests at first, and then %d", first, later)
			}
			s.answer(good)
			f.step(15 * time.Second)
			f.step(15 * time.Second)
			s.take()
			f.step(15 * time.Second)
			if v := f.Verdict(key("evil")); v.State != v1alpha1.VerdictHealthy || len(s.take()) != 1 {
				t.Errorf("once it is mended: %+v", v)
			}
		})
	}
}

// TestSlowChecksHoldUpNoBatch: queries of rollouts' own that do not come back, and a rest
// that they have brought about, leave the evidence of others alone.
func TestSlowChecksHoldUpNoBatch(t *testing.T) {
	good, hanging := traffic(120, 0), make(chan struct{})
	s := newMetricsServer(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/query") {
			good(w, r)
			return
		}
		if strings.Contains(r.Form.Get("query"), "tired") {
			text(429, "", "Retry-After", "300")(w, r)
			return
		}
		select {
		case <-hanging:
		case <-r.Context().Done():
		}
	})
	defer close(hanging)
	f := newFixture(t, s.URL, func(c *Config) { c.Concurrency = 2 })
	for i := range 5 {
		f.Track(target(fmt.Sprintf("slow-%d", i), checksOnly("hangs"), func(t *Target) {
			t.Health.Window, t.Health.Interval = "15s", "15s"
		}))
	}
	f.Track(target("tired", checksOnly("tired"), func(t *Target) { t.Health.Window, t.Health.Interval = "15s", "15s" }))
	f.Track(target("web"))
	f.clock.Step(timeToVerdict)
	f.poll(t.Context())
	eventually(t, "a verdict for the others", func() bool { return f.Verdict(key("web")).State == v1alpha1.VerdictHealthy })
}

// TestClocksApart: with the controller's clock behind that of the server, requests of
// before the confirmation would be taken for evidence.
func TestClocksApart(t *testing.T) {
	for name, tc := range map[string]struct {
		ahead time.Duration
		apart bool
	}{
		"together": {0, false}, "a little": {10 * time.Second, false}, "a little, the other way": {-10 * time.Second, false},
		"far ahead": {2 * time.Minute, true}, "far behind": {-2 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			good := traffic(120, 0)
			var now func() time.Time
			s := newMetricsServer(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", now().Add(tc.ahead).UTC().Format(http.TimeFormat))
				good(w, r)
			})
			f := newFixture(t, s.URL, func(c *Config) { c.Transport = http.DefaultTransport })
			now = f.clock.Now
			f.Track(target("web"))
			f.Track(target("own", checksOnly("up"), func(t *Target) {
				t.Health.Window, t.Health.Interval, t.Health.SampleDelay = "15s", "15s", "15s"
				t.Health.Checks[0].Max = new(v1alpha1.Decimal("2"))
			}))
			f.step(timeToVerdict)
			f.step(15 * time.Second)
			for _, name := range []string{"web", "own"} {
				v := f.Verdict(key(name))
				if tc.apart && (v.Reason != v1alpha1.ReasonStale || v.RampReady || !strings.Contains(v.Message, "clock")) ||
					!tc.apart && v.State != v1alpha1.VerdictHealthy {
					t.Errorf("%s: %+v", name, v)
				}
			}
		})
	}
}

// TestWorseIsTheOneThatMatters: of two comparisons that are proven, the one whose
// difference is negligible does not hide the other.
func TestWorseIsTheOneThatMatters(t *testing.T) {
	s := newMetricsServer(t, counted(0, func(backend string, _ time.Time) counts {
		if isCanary(backend) {
			return counts{requests: 200, errors: 2, slow: 30}
		}
		return counts{requests: 10000, errors: 10, slow: 100}
	}))
	f := newFixture(t, s.URL)
	f.Track(target("web", withLatency, func(t *Target) { t.Health.ErrorRate.MaxPercent = "10" }))
	for range 60 * 4 {
		f.step(15 * time.Second)
		v := f.Verdict(key("web"))
		if at := f.clock.Now().Sub(start); at > 10*time.Minute && (v.Reason != v1alpha1.ReasonWorseThanStable || v.Check != health.CheckLatency) {
			t.Fatalf("at %s: %+v", at, v)
		}
	}
}
