package telemetry

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// rising is a counter that is scraped every 15 seconds, from one time to another in
// seconds, and rises by so many requests each time.
func rising(service, code string, from, to, step float64) timeline {
	l := requestsOf("shop", service, "gateway", code)
	for n, at := 1.0, from; at < to; n, at = n+1, at+15 {
		l.samples = append(l.samples, [2]float64{at, n * step})
	}
	return l
}

// moment is what a verdict must be from a time on, in seconds since the start.
type moment struct {
	at     int
	state  v1alpha1.VerdictState
	reason string
}

// follow steps through the ticks up to the end, and checks the verdict of one rollout
// at each: that it is as the last of the moments up to then says.
func (f *fixture) follow(name string, end int, moments ...moment) {
	f.t.Helper()
	next := 0
	for at := int(f.clock.Since(start).Seconds()) + 15; at <= end; at += 15 {
		f.step(15 * time.Second)
		for next < len(moments) && moments[next].at <= at {
			next++
		}
		if next == 0 {
			continue
		}
		want, v := moments[next-1], f.Verdict(key(name))
		if v.State != want.state || v.Reason != want.reason {
			f.t.Errorf("at %ds: %s %s: %s; want %s %s", at, v.State, v.Reason, v.Message, want.state, want.reason)
		}
		if v.State == v1alpha1.VerdictUnknown && (v.RampReady || v.StageReady) {
			f.t.Errorf("at %ds: a raise is let through: %+v", at, v)
		}
	}
}

const (
	healthy   = v1alpha1.VerdictHealthy
	unknown   = v1alpha1.VerdictUnknown
	unhealthy = v1alpha1.VerdictUnhealthy
	passes    = v1alpha1.ReasonChecksPassed
)

func TestCounterReset(t *testing.T) {
	prom := startPrometheus(t)
	for _, s := range []string{"web-stable", "web-canary"} {
		prom.write(rising(s, "200", 5, 300, 30))
		prom.write(rising(s, "200", 305, 900, 30)) // the gateway restarted at 300s
	}
	f := newFixture(t, prom.url)
	f.Track(target("web"))
	f.follow("web", 900, moment{120, healthy, passes})
	// 14 windows from 60s. The counter had 30 by the first sample after its reset.
	if v := f.Verdict(key("web")); v.Requests != 14*120 {
		t.Errorf("%v requests", v.Requests)
	}

	t.Run("errors after it", func(t *testing.T) {
		prom.write(rising("bad-stable", "200", 5, 900, 30))
		prom.write(rising("bad-canary", "200", 5, 300, 30))
		prom.write(rising("bad-canary", "503", 5, 300, 0))
		prom.write(rising("bad-canary", "200", 305, 900, 20))
		prom.write(rising("bad-canary", "503", 305, 900, 10))
		f := newFixture(t, prom.url)
		f.Track(target("bad"))
		f.follow("bad", 300, moment{120, healthy, passes})
		f.step(2 * time.Minute)
		if v := f.Verdict(key("bad")); v.State != unhealthy || v.Check != "error-rate" {
			t.Errorf("%+v", v)
		}
	})
}

func TestSeriesVanishes(t *testing.T) {
	prom := startPrometheus(t)
	prom.write(rising("web-stable", "200", 5, 900, 30))
	gone := rising("web-canary", "200", 5, 300, 30)
	gone.samples = append(gone.samples, [2]float64{305, stale})
	prom.write(gone)
	prom.write(rising("web-canary", "200", 605, 900, 30))
	f := newFixture(t, prom.url)
	f.Track(target("web"))
	f.follow("web", 900,
		moment{120, healthy, passes}, moment{315, unknown, v1alpha1.ReasonNoData}, moment{615, healthy, passes})
	// Five samples between 60s and 300s with 30 requests each, less the first; and what
	// came after, all of which the gateway had not counted at 600s.
	if v := f.Verdict(key("web")); v.Requests != 4*120+5*120 {
		t.Errorf("%v requests", v.Requests)
	}
}

func TestScrapesMissing(t *testing.T) {
	prom := startPrometheus(t)
	for _, s := range []string{"web-stable", "web-canary"} {
		l := rising(s, "200", 5, 900, 30)
		kept := l.samples[:0]
		for _, sample := range l.samples {
			if sample[0] < 300 || sample[0] > 500 {
				kept = append(kept, sample)
			}
		}
		l.samples = kept
		prom.write(l)
	}
	f := newFixture(t, prom.url)
	f.Track(target("web"))
	f.follow("web", 900,
		moment{120, healthy, passes},
		// No sample in a whole window is no evidence, and soon the last one is too old.
		moment{360, unknown, v1alpha1.ReasonNoData}, moment{375, unknown, v1alpha1.ReasonStale}, moment{525, healthy, passes})
	// From 60s to 900s nothing is lost and nothing is counted twice.
	if v := f.Verdict(key("web")); v.Requests != 14*120 {
		t.Errorf("%v requests", v.Requests)
	}
}

func TestPrometheusIsSlow(t *testing.T) {
	prom := startPrometheus(t)
	for _, s := range []string{"web-stable", "web-canary"} {
		prom.write(rising(s, "200", 5, 900, 30))
	}
	upstream, err := url.Parse(prom.url)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	slow := false
	proxy := httputil.NewSingleHostReverseProxy(upstream)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		wait := slow
		mu.Unlock()
		if wait {
			_, _ = io.Copy(io.Discard, r.Body) // only then is it seen that the client leaves
			<-r.Context().Done()
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(between.Close)
	set := func(to bool) { mu.Lock(); slow = to; mu.Unlock() }
	f := newFixture(t, between.URL, func(c *Config) { c.Timeout = 5 * time.Second })
	f.Track(target("web"))
	f.follow("web", 300, moment{120, healthy, passes})
	set(true)
	f.entry(key("web")).server.timeout = 50 * time.Millisecond
	f.follow("web", 345, moment{315, unknown, v1alpha1.ReasonProviderError})
	set(false)
	f.entry(key("web")).server.timeout = 5 * time.Second
	f.follow("web", 900, moment{360, healthy, passes})
	if v := f.Verdict(key("web")); v.Requests != 14*120 {
		t.Errorf("%v requests", v.Requests)
	}
}

func TestPrometheusRestarts(t *testing.T) {
	prom := startPrometheus(t)
	for _, s := range []string{"web-stable", "web-canary"} {
		prom.write(rising(s, "200", 5, 600, 30))
	}
	f := newFixture(t, prom.url)
	f.Track(target("web"))
	f.follow("web", 300, moment{120, healthy, passes})
	prom.stop()
	f.follow("web", 345, moment{315, unknown, v1alpha1.ReasonProviderError})
	prom.start()
	f.follow("web", 600, moment{360, healthy, passes})
	again := newFixture(t, prom.url)
	again.Track(target("web"))
	again.step(600 * time.Second)
	if before, after := f.Verdict(key("web")), again.Verdict(key("web")); before.Requests != 9*120 || after.Requests != before.Requests {
		t.Errorf("%v requests, and %v read anew", before.Requests, after.Requests)
	}
}

// TestNativeHistograms: what is not read is said, and takes nothing else away.
func TestNativeHistograms(t *testing.T) {
	prom := startPrometheus(t)
	series := func(name, service string, native bool, more ...string) timeline {
		l := timeline{native: native, labels: map[string]string{"__name__": name, "job": "app", "instance": service, "namespace": "shop", "service": service}}
		for i := 0; i+1 < len(more); i += 2 {
			l.labels[more[i]] = more[i+1]
		}
		for n := 1.0; n <= 10; n++ {
			l.samples = append(l.samples, [2]float64{n*15 - 10, n * 30})
		}
		return l
	}
	for _, track := range []string{"-stable", "-canary"} {
		prom.write(series("http_server_request_duration_seconds", "otel"+track, true, "http_response_status_code", "200"))
		for _, name := range []string{"slow", "bad"} {
			prom.write(series("http_request_duration_seconds", name+track, true), series("http_requests_total", name+track, false, "status", "500"))
		}
		prom.write(series("http_requests_total", "odd"+track, true, "status", "200"), series("http_requests_total", "fine"+track, false, "status", "200"))
	}
	f := newFixture(t, prom.url)
	const hint = "always_scrape_classic_histograms"
	tests := map[string]struct {
		limits  func(*Target)
		state   v1alpha1.VerdictState
		reason  string
		message string
	}{
		"otel": {func(*Target) {}, unknown, v1alpha1.ReasonUnsupportedResult, hint},
		"slow": {func(t *Target) { withLatency(t); t.Health.ErrorRate = nil }, unknown, v1alpha1.ReasonUnsupportedResult, hint},
		"bad":  {withLatency, unhealthy, v1alpha1.ReasonBreach, "failed"},
		"odd":  {func(*Target) {}, unknown, v1alpha1.ReasonUnsupportedResult, hint},
		"fine": {func(*Target) {}, healthy, passes, ""},
	}
	for name, tc := range tests {
		f.Track(target(name, tc.limits, func(t *Target) { t.Health.Preset, t.For = v1alpha1.PresetPods, "0s" }))
	}
	f.step(2 * time.Minute)
	for name, tc := range tests {
		if v := f.Verdict(key(name)); v.State != tc.state || v.Reason != tc.reason || !strings.Contains(v.Message, tc.message) {
			t.Errorf("%s: %s %s: %s", name, v.State, v.Reason, v.Message)
		}
	}
}

// TestEscapedBraces asks the real engine with the escape for two opening braces.
func TestEscapedBraces(t *testing.T) {
	prom := startPrometheus(t)
	l := requestsOf("shop", "web-canary", "gateway", "200", [2]float64{50, 0.01}, [2]float64{110, 0.01})
	l.labels["tmpl"] = "{{.canary}}"
	prom.write(l)
	f := newFixture(t, prom.url)
	for name, quote := range map[string]string{"double": `"`, "single": `'`} {
		f.Track(target(name, checksOnly(`max({tmpl=`+quote+`\x7b\x7b.canary}}`+quote+`, service=~"{{namespace}}-.*"})`)))
	}
	f.clock.SetTime(start.Add(109 * time.Second))
	f.step(2 * time.Second)
	for _, name := range []string{"double", "single"} {
		windows := f.Windows(key(name))
		if len(windows) == 0 || len(windows[len(windows)-1].Checks) != 1 {
			t.Fatalf("%s: %d windows", name, len(windows))
		}
		if got := windows[len(windows)-1].Checks[0]; got.Problem != nil || got.Value != 0.01 {
			t.Errorf("%s: %+v %+v", name, got, got.Problem)
		}
	}
	if strings.Contains(f.logs.String(), "tmpl") {
		t.Error("a query is in the log")
	}
}
