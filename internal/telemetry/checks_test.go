package telemetry

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// vector is the body of an instant query's reply, at the time that was asked for.
func vector(values ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var elements []string
		for i, v := range values {
			elements = append(elements, fmt.Sprintf(`{"metric":{"pod":"%d"},"value":[%s,"%s"]}`, i, r.Form.Get("time"), v))
		}
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(elements, ","))
	}
}

// body puts the time that was asked for in the place of T.
func body(format string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, strings.ReplaceAll(format, "[T", "["+r.Form.Get("time")))
	}
}

func result(kind, result string) http.HandlerFunc {
	return body(`{"status":"success","data":{"resultType":"` + kind + `","result":` + result + `}}`)
}

func TestOwnChecks(t *testing.T) {
	const (
		none        = v1alpha1.ReasonNoData
		ambiguous   = v1alpha1.ReasonAmbiguousResult
		unsupported = v1alpha1.ReasonUnsupportedResult
		failed      = v1alpha1.ReasonProviderError
	)
	tests := map[string]struct {
		reply   http.HandlerFunc
		value   float64
		reason  string // of the problem; empty: the value counts
		message string
	}{
		"good":                {vector("0.001"), 0.001, "", ""},
		"bad":                 {vector("0.25"), 0.25, "", ""},
		"exponent":            {vector("1e-3"), 0.001, "", ""},
		"scalar":              {result("scalar", `[T,"0.001"]`), 0.001, "", ""},
		"NaN":                 {vector("NaN"), 0, none, "NaN"},
		"scalar NaN":          {result("scalar", `[T,"NaN"]`), 0, none, "NaN"},
		"infinity":            {vector("+Inf"), 0, unsupported, "infinity"},
		"negative infinity":   {vector("-Inf"), 0, unsupported, "infinity"},
		"no series":           {vector(), 0, none, "no series"},
		"two series":          {vector("0.001", "0.40"), 0, ambiguous, "2 series: aggregate them"},
		"two, reversed":       {vector("0.40", "0.001"), 0, ambiguous, "2 series: aggregate them"},
		"two good series":     {vector("0.001", "0.002"), 0, ambiguous, "2 series: aggregate them"},
		"matrix":              {result("matrix", `[{"metric":{},"values":[[T,"0.001"]]}]`), 0, unsupported, "range of values"},
		"string":              {result("string", `[T,"0.001"]`), 0, unsupported, "string"},
		"short sample":        {result("vector", `[{"metric":{},"value":[T]}]`), 0, unsupported, "no number"},
		"long sample":         {result("vector", `[{"metric":{},"value":[T,"1","2"]}]`), 0, unsupported, "no number"},
		"short scalar":        {result("scalar", `[T]`), 0, unsupported, "no number"},
		"no scalar":           {result("scalar", `null`), 0, unsupported, "no number"},
		"word":                {vector("abc"), 0, unsupported, "no number"},
		"empty word":          {vector(""), 0, unsupported, "no number"},
		"beyond a float":      {vector("1e999"), 0, unsupported, "no number"},
		"bare number":         {result("vector", `[{"metric":{},"value":[T,1]}]`), 0, unsupported, "no number"},
		"null value":          {result("vector", `[{"metric":{},"value":null}]`), 0, unsupported, "without a value"},
		"no value":            {result("vector", `[{"metric":{}}]`), 0, unsupported, "without a value"},
		"null vector":         {result("vector", `null`), 0, unsupported, "no number"},
		"object as vector":    {result("vector", `{}`), 0, unsupported, "no number"},
		"odd time":            {result("vector", `[{"metric":{},"value":["x","1"]}]`), 0, unsupported, "no number"},
		"far time":            {result("vector", `[{"metric":{},"value":[1e300,"1"]}]`), 0, unsupported, "no number"},
		"histogram":           {result("vector", `[{"metric":{},"histogram":[T,{"count":"1","sum":"1"}]}]`), 0, unsupported, "histogram"},
		"unknown type":        {result("trend", `[]`), 0, unsupported, "unknown type"},
		"no data":             {body(`{"status":"success"}`), 0, unsupported, "unknown type"},
		"empty object":        {body(`{}`), 0, failed, "not one of the Prometheus API"},
		"empty body":          {body(``), 0, failed, "not one of the Prometheus API"},
		"HTML":                {body(`<html>login</html>`), 0, failed, "not one of the Prometheus API"},
		"array":               {body(`[]`), 0, failed, "not one of the Prometheus API"},
		"error in a success":  {body(`{"status":"error","errorType":"timeout","error":"s3cr3t"}`), 0, failed, "refused the query (timeout)"},
		"unknown error":       {body(`{"status":"error","errorType":"s3cr3t"}`), 0, failed, "refused the query (unknown error)"},
		"warning":             {body(`{"status":"success","warnings":["s3cr3t"],"data":{"resultType":"scalar","result":[T,"0.001"]}}`), 0, failed, "partial response"},
		"info":                {body(`{"status":"success","infos":["x"],"data":{"resultType":"scalar","result":[T,"0.001"]}}`), 0.001, "", ""},
		"info among warnings": {body(`{"status":"success","warnings":["PromQL info: metric might not be a counter"],"data":{"resultType":"scalar","result":[T,"0.001"]}}`), 0.001, "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newMetricsServer(t, tc.reply)
			f := newFixture(t, s.URL)
			f.Track(target("web", checksOnly("up")))
			f.step(time.Second)
			windows := f.Windows(key("web"))
			if len(windows) != 1 || len(windows[0].Checks) != 1 {
				t.Fatalf("windows %+v", windows)
			}
			got := windows[0].Checks[0]
			if tc.reason == "" {
				want := health.CheckResult{Name: "own", Value: tc.value, SampleAt: start.Add(time.Second)}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s%+v", diff, got.Problem)
				}
				return
			}
			if got.Problem == nil || got.Problem.Reason != tc.reason || !strings.Contains(got.Problem.Message, tc.message) {
				t.Errorf("problem %+v, want %s: %s", got.Problem, tc.reason, tc.message)
			}
			v := f.Verdict(key("web"))
			if v.State != v1alpha1.VerdictUnknown || v.Reason != tc.reason || v.Check != "own" || v.RampReady || v.StageReady {
				t.Errorf("%+v", v)
			}
			f.leaksNothing("s3cr3t")
		})
	}
}

// TestAnswersAreLimited: what is just small enough is read, and the message says what is not.
func TestAnswersAreLimited(t *testing.T) {
	const begin, end = `{"status":"success","data":{"resultType":"vector","result":[{"value":[1,"0.5"]}]},"warnings":[`, `"PromQL info: "]}`
	fill := func(size int) string {
		remark := `"PromQL info: ` + strings.Repeat("x", 10_000) + `",`
		return strings.Repeat(remark, size/len(remark))
	}
	tests := map[string]struct{ body, message string }{
		"small":        {begin + fill(50_000) + end, ""},
		"just right":   {begin + fill(maxCheckBody-1000) + end, ""},
		"too large":    {begin + fill(maxCheckBody+50_000) + end, "gave a reply of more than 1 MiB, which is not read"},
		"many":         {begin + strings.Repeat(`"PromQL info: ",`, maxRemarks) + end, "gave a reply of more than 1000 warnings, which is not read"},
		"long value":   {`{"x":"` + strings.Repeat("y", maxToken/2) + `",` + begin[1:] + end, ""},
		"longer value": {`{"x":"` + strings.Repeat("y", 3*maxToken) + `",` + begin[1:] + end, "gave a value of more than 64 KiB, which is not read"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n, err := instantNumber(strings.NewReader(tc.body))
			if tc.message == "" {
				if err != nil {
					t.Fatal(err)
				}
				if s, p := n.one(); p != nil || s.value != 0.5 {
					t.Errorf("%v, %v", s, p)
				}
				return
			}
			s := &server{host: "prom.test"}
			if p := s.explain(fmt.Errorf("reading: %w", err)); p.Reason != v1alpha1.ReasonProviderError || !strings.Contains(p.Message, tc.message) {
				t.Errorf("%+v", p)
			}
		})
	}
}

// leaksNothing looks for a secret wherever a person could read it.
func (f *fixture) leaksNothing(secret string) {
	f.t.Helper()
	f.mu.Lock()
	logs := f.logs.String()
	f.mu.Unlock()
	v := f.Verdict(key("web"))
	all := fmt.Sprintf("%s %+v %v", logs, v, v.Notes)
	for _, w := range f.Windows(key("web")) {
		if w.Problem != nil {
			all += w.Problem.Message
		}
		for _, c := range w.Checks {
			if c.Problem != nil {
				all += c.Problem.Message
			}
		}
	}
	if strings.Contains(all, secret) {
		f.t.Errorf("the secret is in: %s", all)
	}
}

func TestOwnCheckPassesAndFails(t *testing.T) {
	s := newMetricsServer(t, vector("0.001"))
	f := newFixture(t, s.URL)
	f.Track(target("web", checksOnly("up")))
	f.step(time.Second)
	if v := f.Verdict(key("web")); !v.StageReady || !v.RampReady {
		t.Errorf("%+v", v)
	}
	s.answer(vector("0.25"))
	f.step(time.Second)
	if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictDegraded || v.Check != "own" {
		t.Errorf("%+v", v)
	}
	s.answer(vector())
	f.step(time.Second)
	if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictUnknown || v.Reason != v1alpha1.ReasonNoData {
		t.Errorf("the old value is used: %+v", v)
	}
}

func TestOwnCheckIsAskedAtTheTick(t *testing.T) {
	s := newMetricsServer(t, vector("0.001"))
	f := newFixture(t, s.URL)
	f.Track(target("web", checksOnly(`rate(errors{ns="{{namespace}}",svc="{{service}}",r="{{route}}"}[{{window}}])`)))
	f.step(time.Second + 300*time.Millisecond)
	asked := s.take()
	if len(asked) != 1 {
		t.Fatalf("%d requests", len(asked))
	}
	if got, want := asked[0].Get("query"), `rate(errors{ns="shop",svc="web-canary",r="web"}[1s])`; got != want {
		t.Errorf("query %s, want %s", got, want)
	}
	if got, want := asked[0].Get("time"), unixSeconds(start.Add(time.Second)); got != want || asked[0].Get("path") != "/api/v1/query" {
		t.Errorf("%s at %s, want %s", asked[0].Get("path"), got, want)
	}
}

func TestUnfilledVariableIsNotAsked(t *testing.T) {
	for _, query := range []string{"{{ .canary }}", "{{missing}}", `x{a="{{"}`, "{{ service }}", "{{}}", "{{service}}{{Service}}"} {
		s := newMetricsServer(t, vector("0.001"))
		f := newFixture(t, s.URL)
		f.Track(target("web", checksOnly(query)))
		f.step(time.Second)
		if asked := s.take(); len(asked) != 0 {
			t.Errorf("%s was asked as %s", query, asked[0].Get("query"))
		}
		if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictUnknown || v.Reason != v1alpha1.ReasonInvalidSpec {
			t.Errorf("%s: %+v", query, v)
		}
	}
}

// The namespace in a query is that of the Service under test.
func TestOwnCheckInAnotherNamespace(t *testing.T) {
	web := target("web", checksOnly(`up{ns="{{namespace}}"}`), func(t *Target) { t.Canary.Namespace = "apps" })
	for subject, want := range map[health.Track]string{
		health.TrackCanary: `up{ns="apps"}`,
		health.TrackStable: `up{ns="shop"}`,
	} {
		web.Subject = subject
		queries := checkQueries(web, health.Config{Window: time.Minute})
		if len(queries) != 1 || queries[0].text != want || queries[0].problem != nil {
			t.Errorf("%v: %+v, want %s", subject, queries, want)
		}
	}
}

func TestServerTrouble(t *testing.T) {
	refused := func() string {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		return "http://" + l.Addr().String()
	}()
	stall := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	tests := map[string]struct {
		reply   http.HandlerFunc
		address string
		reason  string
		message string
	}{
		"refused connection": {nil, refused, v1alpha1.ReasonProviderError, "connection refused"},
		"stall":              {stall, "", v1alpha1.ReasonProviderError, "did not answer within 200ms"},
		"429":                {text(429, "s3cr3t", "Retry-After", "5"), "", v1alpha1.ReasonProviderError, "HTTP 429"},
		"500":                {text(500, "s3cr3t"), "", v1alpha1.ReasonProviderError, "HTTP 500"},
		"503 with HTML":      {text(503, "<html>s3cr3t</html>"), "", v1alpha1.ReasonProviderError, "HTTP 503"},
		"401":                {text(401, "Authorization: Bearer s3cr3t"), "", v1alpha1.ReasonProviderAuth, "HTTP 401"},
		"403":                {text(403, "s3cr3t"), "", v1alpha1.ReasonProviderAuth, "HTTP 401 or 403"},
		"redirect":           {text(302, "", "Location", "http://127.0.0.1:1/?token=s3cr3t"), "", v1alpha1.ReasonProviderError, "HTTP 302"},
		"bad query":          {text(400, `{"status":"error","errorType":"bad_data","error":"s3cr3t"}`), "", v1alpha1.ReasonProviderError, "refused the query (bad_data)"},
		"bad query, no JSON": {text(400, `s3cr3t`), "", v1alpha1.ReasonProviderError, "not one of the Prometheus API"},
		"execution":          {text(422, `{"status":"error","errorType":"execution","error":"s3cr3t"}`), "", v1alpha1.ReasonProviderError, "refused the query (execution)"},
		"broken reply": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = fmt.Fprint(w, "{")
		}, "", v1alpha1.ReasonProviderError, "could not be reached"},
	}
	kinds := map[string]func(*Target){
		"own check": checksOnly("up"),
		"preset":    func(t *Target) { t.Health.Window, t.Health.Interval, t.Health.SampleDelay = "1s", "1s", "0s" },
	}
	for name, tc := range tests {
		for kind, change := range kinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				address := tc.address
				var s *metricsServer
				if tc.reply != nil {
					s = newMetricsServer(t, tc.reply)
					address = s.URL
				}
				f := newFixture(t, address, func(c *Config) { c.Timeout = 200 * time.Millisecond })
				f.Track(target("web", change))
				f.step(time.Second)
				v := f.Verdict(key("web"))
				if v.State != v1alpha1.VerdictUnknown || v.Reason != tc.reason || !strings.Contains(v.Message, tc.message) || v.RampReady || v.StageReady {
					t.Errorf("%+v", v)
				}
				f.leaksNothing("s3cr3t")
				if s == nil {
					return
				}
				s.answer(func(w http.ResponseWriter, r *http.Request) {
					if kind == "preset" {
						traffic(200, 0)(w, r)
						return
					}
					vector("0.001")(w, r)
				})
				f.step(6 * time.Second)
				if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictHealthy {
					t.Errorf("it does not recover: %+v", v)
				}
			})
		}
	}
}

func TestRetryAfterIsKept(t *testing.T) {
	tests := map[string]struct {
		status int
		header string
		rests  time.Duration
	}{
		"429":             {429, "5", 5 * time.Second},
		"503":             {503, "7", 7 * time.Second},
		"date":            {429, start.Add(6 * time.Second).UTC().Format(http.TimeFormat), 6 * time.Second},
		"capped":          {429, "999999999999", 301 * time.Second},
		"past date":       {429, start.Add(-time.Hour).UTC().Format(http.TimeFormat), 0},
		"nonsense":        {429, "soon", 0},
		"no header":       {503, "", 0},
		"not for a 500":   {500, "5", 0},
		"negative number": {429, "-5", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newMetricsServer(t, text(tc.status, "", "Retry-After", tc.header))
			f := newFixture(t, s.URL)
			f.Track(target("web", checksOnly("up")))
			f.step(time.Second)
			s.take()
			var next time.Duration
			for next = time.Second; next < 310*time.Second; next += time.Second {
				f.step(time.Second)
				if v := f.Verdict(key("web")); v.Reason != v1alpha1.ReasonProviderError {
					t.Fatalf("%+v", v)
				}
				if len(s.take()) > 0 {
					break
				}
			}
			// The rest is counted from 1s after the start. A date says when it ends.
			want := max(tc.rests, time.Second)
			if name == "date" {
				want = 5 * time.Second
			}
			if name == "capped" {
				want = maxRetryAfter
			}
			if next != want {
				t.Errorf("asked again after %s, want %s", next, want)
			}
		})
	}
}

func TestOneQueryIsOutstandingPerCheck(t *testing.T) {
	release := make(chan struct{})
	s := newMetricsServer(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Form.Get("query"), "slow") {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		vector("0.001")(w, r)
	})
	f := newFixture(t, s.URL, func(c *Config) { c.Timeout = time.Minute })
	f.Track(target("web", checksOnly("slow"), func(t *Target) {
		quick := t.Health.Checks[0]
		quick.Name, quick.Query = "quick", "quick"
		t.Health.Checks = append(t.Health.Checks, quick)
	}))
	count := func(query string) (n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, a := range s.asked {
			if a.Get("query") == query {
				n++
			}
		}
		return n
	}
	quickPending := func() bool {
		e := f.entry(key("web"))
		e.asking.Lock()
		defer e.asking.Unlock()
		return e.queries[1].pending
	}
	for i := range 5 {
		// A quick query that is still under way at the next tick would be left out
		// there, as it should be.
		eventually(t, "the quick answer", func() bool { return !quickPending() })
		f.clock.Step(time.Second)
		// The loop would poll again when the round before has ended.
		eventually(t, "the quick query", func() bool { f.poll(t.Context()); return count("quick") == i+1 })
		eventually(t, "the slow query", func() bool { return count("slow") == 1 })
		// The first window waits for its answer; later ones say that they do not.
		eventually(t, "the window", func() bool { return len(f.Windows(key("web"))) == i })
	}
	if v := f.Verdict(key("web")); v.Reason != v1alpha1.ReasonProviderError || v.Check != "own" || !strings.Contains(v.Message, "still waited for") {
		t.Errorf("%+v", v)
	}
	close(release)
	f.inflight.Wait()
	if n := count("slow"); n != 1 {
		t.Errorf("%d slow queries", n)
	}
	windows := f.Windows(key("web"))
	if len(windows) != 5 || windows[0].Checks[0].Problem != nil {
		t.Errorf("the late answer is lost: %+v", windows)
	}
	f.step(time.Second)
	if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictHealthy {
		t.Errorf("%+v", v)
	}
}

func TestBreachDoesNotWaitForOwnChecks(t *testing.T) {
	release := make(chan struct{})
	s := newMetricsServer(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/query") {
			select {
			case <-release:
			case <-r.Context().Done():
			}
			vector("0.001")(w, r)
			return
		}
		traffic(100, 90)(w, r)
	})
	f := newFixture(t, s.URL, func(c *Config) { c.Timeout = time.Minute })
	f.Track(target("web", func(t *Target) {
		t.Health.Checks = []v1alpha1.Check{{Name: "own", Query: "slow", Max: new(v1alpha1.Decimal("1"))}}
	}))
	f.clock.Step(75 * time.Second)
	f.poll(t.Context())
	eventually(t, "the breach", func() bool { return f.Verdict(key("web")).State == v1alpha1.VerdictDegraded })
	close(release)
	f.inflight.Wait()
	if w := f.Windows(key("web")); len(w) != 1 || len(w[0].Checks) != 1 || math.Abs(w[0].Checks[0].Value-0.001) > 1e-12 {
		t.Errorf("%+v", w)
	}
}

func TestForgottenTargetsQueriesEnd(t *testing.T) {
	s := newMetricsServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	f := newFixture(t, s.URL, func(c *Config) { c.Timeout = time.Hour })
	f.Track(target("web", checksOnly("slow")))
	f.clock.Step(time.Second)
	f.poll(t.Context())
	eventually(t, "the query", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.asked) == 1 })
	f.Forget(key("web"))
	f.inflight.Wait()
}

// TestConcurrencyIsBounded: of many checks so many are asked at a time, and no more.
func TestConcurrencyIsBounded(t *testing.T) {
	const most = 3
	var now, highest atomic.Int64
	release := make(chan struct{})
	s := newMetricsServer(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for {
			was := highest.Load()
			if n <= was || highest.CompareAndSwap(was, n) {
				break
			}
		}
		<-release
		traffic(1, 0)(w, r)
	})
	f := newFixture(t, s.URL, func(c *Config) { c.Concurrency = most })
	for i := range 4 {
		f.Track(target(fmt.Sprintf("web-%d", i), checksOnly("up"), func(t *Target) {
			for j := range 4 {
				k := t.Health.Checks[0]
				k.Name = fmt.Sprintf("own-%d", j)
				t.Health.Checks = append(t.Health.Checks, k)
			}
		}))
	}
	f.clock.Step(time.Second)
	f.poll(t.Context())
	eventually(t, "as many queries as there may be", func() bool { return now.Load() == most })
	close(release)
	f.inflight.Wait()
	if n := len(s.take()); n != 20 || highest.Load() != most {
		t.Errorf("%d queries, at most %d at a time, want 20 and %d", n, highest.Load(), most)
	}
}
