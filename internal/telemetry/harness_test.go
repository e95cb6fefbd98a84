package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// start lies on the grid of every window used here.
var start = time.Unix(1_700_000_000, 0).Truncate(time.Hour)

// metricsServer is a fake Prometheus that notes what it is asked.
type metricsServer struct {
	*httptest.Server
	mu    sync.Mutex
	asked []url.Values
	reply http.HandlerFunc
}

func newMetricsServer(t *testing.T, reply http.HandlerFunc) *metricsServer {
	t.Helper()
	s := &metricsServer{reply: reply}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s request, form: %v", r.Method, err)
		}
		form := r.Form
		form.Set("path", r.URL.Path)
		s.mu.Lock()
		s.asked = append(s.asked, form)
		reply := s.reply
		s.mu.Unlock()
		reply(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// take returns the requests since the last call.
func (s *metricsServer) take() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *metricsServer) answer(reply http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply = reply
}

func text(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
}

// ownCheck reports whether a request asks for a check of a rollout's own.
func ownCheck(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/query") || !windowText.MatchString(r.Form.Get("query"))
}

// values answers own checks, at one time or at the steps of a range.
func values(w http.ResponseWriter, r *http.Request, of func(at time.Time) float64) {
	if strings.HasSuffix(r.URL.Path, "/query") {
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"scalar","result":[%s,"%g"]}}`, r.Form.Get("time"), of(timeIn(r.Form, "time")))
		return
	}
	writeMatrix(w, []series{lineOf(r.Form, of, nil)})
}

// traffic answers the queries of presets: every backend has so many requests and errors in
// each window, a tenth of them slower than 300ms. It answers others by 1.
func traffic(requests, errors float64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if ownCheck(r) {
			values(w, r, func(time.Time) float64 { return 1 })
			return
		}
		query := r.Form.Get("query")
		var out []series
		line := func(value func(time.Time) float64, labels ...string) {
			out = append(out, lineOf(r.Form, value, labels))
		}
		constant := func(v float64) func(time.Time) float64 { return func(time.Time) float64 { return v } }
		buckets, window := strings.Contains(query, "_bucket"), windowOf(query)
		for _, name := range backendNames(query) {
			if buckets {
				line(constant(requests/2), "service", name, "le", "0.1")
				line(constant(requests*0.9), "service", name, "le", "0.3")
				line(constant(requests), "service", name, "le", "1.2")
				line(constant(requests), "service", name, "le", "+Inf")
				continue
			}
			line(constant(requests-errors), "service", name, "code", "200")
			line(constant(errors), "service", name, "code", "503")
			line(secondsBefore(500*time.Millisecond), "service", name, kindLabel, kindNewest)
			line(secondsBefore(window+500*time.Millisecond), "service", name, kindLabel, kindOldest)
		}
		writeMatrix(w, out)
	}
}

// lineOf returns a series with a value at every step that a form asks for. The labels are
// names and values in turn.
func lineOf(form url.Values, value func(at time.Time) float64, labels []string) series {
	s := series{Metric: map[string]string{}}
	for i := 0; i < len(labels); i += 2 {
		s.Metric[labels[i]] = labels[i+1]
	}
	for _, at := range steps(form) {
		s.Values = append(s.Values, sample{at, value(at)})
	}
	return s
}

func writeMatrix(w http.ResponseWriter, lines []series) {
	type line struct {
		Metric map[string]string `json:"metric"`
		Values [][2]any          `json:"values"`
	}
	result := make([]line, len(lines))
	for i, l := range lines {
		result[i].Metric = l.Metric
		for _, v := range l.Values {
			result[i].Values = append(result[i].Values, [2]any{json.Number(unixSeconds(v.at)), strconv.FormatFloat(v.value, 'f', -1, 64)})
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": result}})
}

func steps(form url.Values) (at []time.Time) {
	step := timeIn(form, "step").Sub(time.UnixMilli(0))
	for t := timeIn(form, "start"); !t.After(timeIn(form, "end")); t = t.Add(step) {
		at = append(at, t)
	}
	return at
}

// timeIn reads seconds since the Unix epoch from a form.
func timeIn(form url.Values, name string) time.Time {
	f, _ := strconv.ParseFloat(form.Get(name), 64)
	return time.UnixMilli(int64(math.Round(f * 1000)))
}

// secondsBefore gives the time that lies so long before a step.
func secondsBefore(d time.Duration) func(at time.Time) float64 {
	return func(at time.Time) float64 { return float64(at.Add(-d).UnixMilli()) / 1000 }
}

var (
	matcherText = regexp.MustCompile(`service=~"([^"]*)"`)
	windowText  = regexp.MustCompile(`offset (\d+)ms`)
)

// backendNames lists the backends of HTTPRoutes that a query asks for.
func backendNames(query string) []string {
	names := strings.Split(matcherText.FindStringSubmatch(query)[1], "|")
	return slices.DeleteFunc(names, func(n string) bool { return strings.HasSuffix(n, "-grpc@kubernetesgateway") })
}

func windowOf(query string) time.Duration {
	ms, _ := strconv.Atoi(windowText.FindStringSubmatch(query)[1])
	return time.Duration(ms) * time.Millisecond
}

// fixture is a collector on a fake clock that the test drives by hand.
type fixture struct {
	*Collector
	t     *testing.T
	clock *clocktesting.FakeClock
	mu    sync.Mutex
	woken []string
	bad   []bool // for each that is woken
	logs  strings.Builder
}

func newFixture(t *testing.T, address string, change ...func(*Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: clocktesting.NewFakeClock(start)}
	cfg := Config{
		DefaultAddress: address, Clock: f.clock, Timeout: time.Minute, Transport: undated{http.DefaultTransport},
		Notify: func(k types.NamespacedName, bad bool) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.woken, f.bad = append(f.woken, k.Name), append(f.bad, bad)
		},
		Log: funcr.New(func(prefix, args string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.logs.WriteString(prefix + args + "\n")
		}, funcr.Options{Verbosity: 9}),
	}
	for _, c := range change {
		c(&cfg)
	}
	f.Collector = New(cfg)
	return f
}

// undated takes the time off the replies of servers: they have the real one, and the
// collector that of the test.
type undated struct{ next http.RoundTripper }

func (u undated) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := u.next.RoundTrip(r)
	if response != nil {
		response.Header.Del("Date")
	}
	return response, err
}

// step moves the clock and finishes everything that is due.
func (f *fixture) step(d time.Duration) {
	f.t.Helper()
	f.clock.Step(d)
	f.poll(f.t.Context())
	f.inflight.Wait()
}

func (f *fixture) wakes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	woken := f.woken
	f.woken = nil
	return woken
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

// target has an error rate, and its share confirmed at the start of the test.
func target(name string, change ...func(*Target)) Target {
	t := Target{
		Key: key(name), UID: types.UID("uid-" + name), Attempt: 1, Route: name,
		Stable: v1alpha1.Track{Service: name + "-stable", Port: 80}, Canary: v1alpha1.Track{Service: name + "-canary", Port: 80},
		Health:  &v1alpha1.Health{Preset: v1alpha1.PresetTraefik, ErrorRate: &v1alpha1.ErrorRate{MaxPercent: "5"}},
		Subject: health.TrackCanary, ConfirmedAt: start,
	}
	for _, c := range change {
		c(&t)
	}
	return t
}

func withLatency(t *Target) {
	t.Health.Latency = &v1alpha1.Latency{Percentile: "80", Max: "300ms"}
}

// checksOnly asks every second, so that a test with a real stall stays short.
func checksOnly(query string) func(*Target) {
	limit := v1alpha1.Decimal("0.02")
	return func(t *Target) {
		t.Health = &v1alpha1.Health{
			Window: "1s", Interval: "1s", SampleDelay: "0s",
			Checks: []v1alpha1.Check{{Name: "own", Query: query, Max: &limit}},
		}
	}
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("never came: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// someRoom is more than any test needs.
func someRoom(t *testing.T) *room {
	t.Helper()
	r, err := newMemory(1<<40).room(t.Context(), "", 1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
