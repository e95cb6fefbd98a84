package telemetry

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

func TestQueries(t *testing.T) {
	const (
		one   = `traefik_service_requests_total{service=~"shop-web-80-grpc@kubernetesgateway|shop-web-http-80@kubernetesgateway"}`
		slow  = `istio_request_duration_milliseconds_bucket{reporter="source", destination_service_namespace=~"shop", destination_service_name=~"web"}`
		whole = `istio_request_duration_milliseconds{reporter="source", destination_service_namespace=~"shop", destination_service_name=~"web"}`
	)
	web := v1alpha1.Track{Service: "web", Port: 80}
	tests := map[string]struct{ got, want string }{
		"requests": {traefik.requestsQuery([]string{traefik.backend("shop", web)}, time.Minute),
			`sum by (service, code, protocol) (` +
				`clamp_min(last_over_time(` + one + `[60000ms]) - (` + one + ` offset 60000ms <= min_over_time(` + one + `[60000ms]) / 0.9), 0)` +
				` or (last_over_time(` + one + `[60000ms]) and on (job, instance) ` + one + ` offset 60000ms)` +
				` or (last_over_time(` + one + `[60000ms]) - min_over_time(` + one + `[60000ms])))` +
				` or label_replace(max by (service) (timestamp(` + one + `)), "wr_kind", "newest", "", "")` +
				` or label_replace(min by (service) (timestamp(` + one + ` offset 60000ms) and last_over_time(` + one + `[60000ms])), "wr_kind", "oldest", "", "")`},
		"buckets": {istio.bucketsQuery([]string{istio.backend("shop", web)}, 1500*time.Millisecond),
			`sum by (destination_service_namespace, destination_service_name, le) (` +
				`clamp_min(last_over_time(` + slow + `[1500ms]) - (` + slow + ` offset 1500ms <= min_over_time(` + slow + `[1500ms]) / 0.9), 0)` +
				` or (last_over_time(` + slow + `[1500ms]) and on (job, instance) ` + slow + ` offset 1500ms)` +
				` or (last_over_time(` + slow + `[1500ms]) - min_over_time(` + slow + `[1500ms])))` +
				` or label_replace(group by (destination_service_namespace, destination_service_name) (` + whole + `), "wr_kind", "native", "", "")`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("query (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMatchers(t *testing.T) {
	a, b := v1alpha1.Track{Service: "a.v2", Port: 80}, v1alpha1.Track{Service: `b"\`, Port: 8080}
	tests := map[string]struct {
		preset preset
		want   string
	}{
		"joined":   {traefik, `service=~"shop-a-v2-80-grpc@kubernetesgateway|shop-a-v2-http-80@kubernetesgateway|test-b-8080-grpc@kubernetesgateway|test-b-http-8080@kubernetesgateway"`},
		"no port":  {istio, `destination_service_namespace=~"shop|test", destination_service_name=~"a\\.v2|b\"\\\\"`},
		"with one": {linkerd, `backend_namespace=~"shop|test", backend_name=~"a\\.v2|b\"\\\\", backend_port=~"80|8080"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := tc.preset.matchers([]string{tc.preset.backend("test", b), tc.preset.backend("shop", a), tc.preset.backend("shop", a)})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("matchers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestC40Variables(t *testing.T) {
	values := map[string]string{"namespace": "shop", "service": "web-canary", "route": "", "window": "1m", "version": "web.v2"}
	tests := map[string]struct {
		query, want string
		message     string // of the problem
	}{
		"all":           {`rate(x{a="{{namespace}}/{{service}}"}[{{window}}])`, `rate(x{a="shop/web-canary"}[1m])`, ""},
		"twice":         {"{{service}} + {{service}}", "web-canary + web-canary", ""},
		"none":          {"up", "up", ""},
		"escaped":       {`x{a="\x7b\x7b.canary}}"}`, `x{a="\x7b\x7b.canary}}"}`, ""},
		"single braces": {`x{a="{b}"}`, `x{a="{b}"}`, ""},
		"empty":         {`x{a="{{route}}"}`, "", "{{route}}"},
		"missing":       {`x{a="{{ .missing }}"}`, "", "{{ .missing }}"},
		"spaced":        {`x{a="{{ service }}"}`, "", "{{ service }}"},
		"literal":       {`x{a="{{"}`, "", `\x7b\x7b`},
		"doubled":       {`x{a="{{{{service}}}}"}`, "", `\x7b\x7b`},

		"regexp":               {`x{a=~"{{version}}"}`, `x{a=~"web\\.v2"}`, ""},
		"regexp, not":          {`x{a!~"{{version}}|b"}`, `x{a!~"web\\.v2|b"}`, ""},
		"regexp, single":       {`x{a=~'{{version}}'}`, `x{a=~'web\\.v2'}`, ""},
		"regexp, back quotes":  {"x{a=~`{{version}}`}", "x{a=~`web\\.v2`}", ""},
		"regexp, later":        {`x{a =~ "^\"{{service}}[.]{{version}}$", b="{{version}}"}`, `x{a =~ "^\"web-canary[.]web\\.v2$", b="web.v2"}`, ""},
		"regexp, new line":     {"x{a=~ # it's \"{{version}}\"\n\"{{version}}\"}", "x{a=~ # it's \"web.v2\"\n\"web\\\\.v2\"}", ""},
		"regexp, own quoting":  {`x{a=~"\\Q{{version}}\\E-{{version}}"}`, `x{a=~"\\Qweb.v2\\E-web\\.v2"}`, ""},
		"regexp, argument":     {`label_replace(rate(x{a="{{version}}",b="c"}[1m]), "d", "$1", "a", '{{version}}-(.*)') > 1`, `label_replace(rate(x{a="web.v2",b="c"}[1m]), "d", "$1", "a", 'web\\.v2-(.*)') > 1`, ""},
		"other arguments":      {`label_replace(x, "d", "{{version}}", "a", "b") or label_join(x, "a", "b", "c", "{{version}}")`, `label_replace(x, "d", "web.v2", "a", "b") or label_join(x, "a", "b", "c", "web.v2")`, ""},
		"a long operator":      {`x{a=~"b"} == bool 1 and "{{version}}"`, `x{a=~"b"} == bool 1 and "web.v2"`, ""},
		"brackets alone":       {`)}], "{{version}}"`, `)}], "web.v2"`, ""},
		"equal":                {`x{a="=~{{version}}",b!="{{version}}"}`, `x{a="=~web.v2",b!="web.v2"}`, ""},
		"after a regexp":       {`x{a=~"b"} == y{b="{{version}}"}`, `x{a=~"b"} == y{b="web.v2"}`, ""},
		"a name after one":     {`x{a=~"b","{{version}}"="c"}`, `x{a=~"b","web.v2"="c"}`, ""},
		"quote in back quotes": {"x{a=`\"=~`,b=\"{{version}}\"}", "x{a=`\"=~`,b=\"web.v2\"}", ""},
		"backslash at the end": {"x{a=~`\\`,b=~\"{{version}}\"}", "x{a=~`\\`,b=~\"web\\\\.v2\"}", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, p := fill(tc.query, values)
			if got != tc.want || (p != nil) != (tc.message != "") {
				t.Fatalf("got %q, %+v", got, p)
			}
			if p != nil && (p.Reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(p.Message, tc.message)) {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestC40NothingIsSent(t *testing.T) {
	s := newMetricsServer(t, traffic(120, 0))
	f := newFixture(t, s.URL)
	f.Track(target("empty", checksOnly(`x{route="{{route}}"}`), func(t *Target) { t.Route = "" }))
	f.Track(target("unknown", checksOnly(`x{a="{{ .canary }}"}`)))
	for range 3 {
		f.step(time.Second)
	}
	if asked := s.take(); len(asked) != 0 {
		t.Errorf("%d queries were sent: %v", len(asked), asked[0])
	}
	for name, variable := range map[string]string{"empty": "{{route}}", "unknown": "{{ .canary }}"} {
		v := f.Verdict(key(name))
		if v.State != v1alpha1.VerdictUnknown || v.Reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(v.Message, variable) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func FuzzFillQuery(f *testing.F) {
	for _, q := range []string{"up", "{{service}}", "{{ x }}", "{{{service}}}", "{{service", "}}{{", "{{{{service}}}}", `sum(x{a="{{namespace}}"})`} {
		f.Add(q, "web")
	}
	f.Fuzz(func(t *testing.T, query, service string) {
		got, p := fill(query, map[string]string{"namespace": "shop", "service": service, "route": "r", "window": "1m"})
		if p != nil && got != "" || p == nil && variable.MatchString(got) {
			t.Errorf("%q became %q, %v", query, got, p)
		}
	})
}

func FuzzDecodeReply(f *testing.F) {
	for _, text := range []string{
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"service":"a"},"values":[[1,"2"]]}]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"wr_family":"-1"},"histograms":[[1,{}]]}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"NaN"]}]}}`,
		`{"status":"success","data":{"resultType":"scalar","result":[1e99,"1"]}}`,
		`{"status":"error","errorType":"bad_data"}`, `{"status":"success","data":{"resultType":"matrix","result":null}}`, `[`, ``,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if r, err := instantNumber(bytes.NewReader(body)); err == nil {
			if s, p := r.one(); p == nil && (s.value != s.value || s.value-s.value != 0) {
				t.Errorf("%v passes for a number", s.value)
			}
		}
		end := time.Unix(1, 0)
		for name, p := range presets {
			e := newEntry(target("a", func(t *Target) { t.Health.Preset = name }))
			tb := newTable(p, end, end, time.Second, []string{e.stable, e.canary}, someRoom(t))
			if readMatrix(bytes.NewReader(body), tb.limits(), tb.addRequests) != nil || readMatrix(bytes.NewReader(body), tb.limits(), tb.addBuckets) != nil {
				return
			}
			for _, w := range tb.windows(member{entry: e, from: end, to: end}, group{window: time.Second, interval: time.Second}) {
				if r := w.Reading(health.TrackCanary); r.Found && r.Problem == nil && r.Errors > r.Requests+1e-6*max(r.Requests, 1) {
					t.Errorf("%s: %v of %v requests failed", name, r.Errors, r.Requests)
				}
			}
		}
	})
}
