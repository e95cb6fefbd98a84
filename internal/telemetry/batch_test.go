package telemetry

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// matrix answers every range query with the lines for one backend, at every step.
func matrix(lines ...[]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var out []series
		for _, l := range lines {
			s := series{Metric: map[string]string{"service": "shop-web-canary-http-80@kubernetesgateway"}}
			for i := 0; i+2 < len(l); i += 2 {
				s.Metric[l[i]] = l[i+1]
			}
			for _, at := range steps(r.Form) {
				v := map[string]float64{"now": float64(at.Unix()), "old": float64(at.Unix() - 120), "future": float64(at.Unix() + 300), "NaN": math.NaN()}
				value, ok := v[l[len(l)-1]]
				if !ok {
					value = 10
				}
				s.Values = append(s.Values, sample{at, value})
			}
			out = append(out, s)
		}
		writeMatrix(w, out)
	}
}

func TestPresetReplies(t *testing.T) {
	ok, now := []string{"code", "200", "10"}, []string{kindLabel, kindNewest, "now"}
	tests := map[string]struct {
		reply   http.HandlerFunc
		reason  string
		message string
	}{
		"usable":         {matrix(ok, now), v1alpha1.ReasonInsufficientRequests, "10 of 100"},
		"nothing":        {matrix(), v1alpha1.ReasonNoData, "no series"},
		"only the time":  {matrix(now), v1alpha1.ReasonNoData, "samples"},
		"no time":        {matrix(ok), v1alpha1.ReasonNoData, "no sample"},
		"stale":          {matrix(ok, []string{kindLabel, kindNewest, "old"}), v1alpha1.ReasonStale, "older"},
		"of the future":  {matrix(ok, []string{kindLabel, kindNewest, "future"}), v1alpha1.ReasonStale, "clock"},
		"time NaN":       {matrix(ok, []string{kindLabel, kindNewest, "NaN"}), v1alpha1.ReasonNoData, "no"},
		"count NaN":      {matrix([]string{"code", "200", "NaN"}, now), v1alpha1.ReasonNoData, "NaN"},
		"no HTTP status": {matrix(ok, now, []string{"code", "14", "10"}), v1alpha1.ReasonUnsupportedResult, `code="14", protocol=""`},
		"gRPC unknown":   {matrix(ok, now, []string{"code", "2", "protocol", "grpc", "10"}), v1alpha1.ReasonUnsupportedResult, `code="2", protocol="grpc"`},
		"no code":        {matrix(now, []string{"10"}), v1alpha1.ReasonUnsupportedResult, `""`},
		"not a matrix":   {body(`{"status":"success","data":{"resultType":"vector","result":[]}}`), v1alpha1.ReasonUnsupportedResult, "list of series"},
		"short sample":   {body(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1]]}]}}`), v1alpha1.ReasonUnsupportedResult, "list of series"},
		"histogram":      {body(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"service":"shop-web-canary-http-80@kubernetesgateway"},"histograms":[[1,{"count":"1"}]]}]}}`), v1alpha1.ReasonUnsupportedResult, "always_scrape_classic_histograms"},
		"strangers":      {body(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"service":"other"},"values":[[1,"1"]]}]}}`), v1alpha1.ReasonNoData, "no series"},
		"partial":        {body(`{"status":"success","warnings":["x"],"data":{"resultType":"matrix","result":[]}}`), v1alpha1.ReasonProviderError, "partial"},
		"off the ticks":  {body(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"service":"shop-web-canary-http-80@kubernetesgateway"},"values":[[1.5,"1"]]}]}}`), v1alpha1.ReasonNoData, "no series"},
		"nothing at all": {body(`{"status":"success","data":{}}`), v1alpha1.ReasonUnsupportedResult, "list of series"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newMetricsServer(t, tc.reply)
			f := newFixture(t, s.URL)
			f.Track(target("web", func(t *Target) { t.ConfirmedAt = start.Add(-15 * time.Second) }))
			f.step(time.Minute)
			v := f.Verdict(key("web"))
			if v.State != v1alpha1.VerdictUnknown || v.Reason != tc.reason || !strings.Contains(v.Message, tc.message) || v.RampReady {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestBucketReplies(t *testing.T) {
	requests := matrix([]string{"code", "200", "10"}, []string{kindLabel, kindNewest, "now"})
	tests := map[string]struct {
		buckets http.HandlerFunc
		reason  string
		message string
	}{
		"usable":        {matrix([]string{"le", "0.3", "10"}, []string{"le", "+Inf", "10"}), v1alpha1.ReasonInsufficientRequests, "10 of 100"},
		"none":          {matrix(), v1alpha1.ReasonNoData, "no response times"},
		"odd bound":     {matrix([]string{"le", "x", "10"}), v1alpha1.ReasonUnsupportedResult, "a bucket that is no number"},
		"NaN bound":     {matrix([]string{"le", "NaN", "10"}), v1alpha1.ReasonUnsupportedResult, "no number"},
		"no total":      {matrix([]string{"le", "0.3", "10"}), v1alpha1.ReasonUnsupportedResult, "total"},
		"bounds above":  {matrix([]string{"le", "0.5", "10"}, []string{"le", "+Inf", "10"}), v1alpha1.ReasonUnsupportedResult, "500ms"},
		"second failed": {text(500, ""), v1alpha1.ReasonProviderError, "HTTP 500"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newMetricsServer(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.Form.Get("query"), "_bucket") {
					tc.buckets(w, r)
					return
				}
				requests(w, r)
			})
			f := newFixture(t, s.URL)
			f.Track(target("web", withLatency, func(t *Target) { t.ConfirmedAt = start.Add(-15 * time.Second) }))
			f.step(time.Minute)
			v := f.Verdict(key("web"))
			if v.State != v1alpha1.VerdictUnknown || v.Reason != tc.reason || !strings.Contains(v.Message, tc.message) {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestChunks(t *testing.T) {
	const interval = 15 * time.Second
	members := func(n, ticks int) (ms []member) {
		e := newEntry(target("web"))
		for range n {
			ms = append(ms, member{entry: e, from: start.Add(-time.Duration(ticks-1) * interval), to: start})
		}
		return ms
	}
	tests := map[string]struct {
		members []member
		want    []int
	}{
		"none":               {nil, nil},
		"one":                {members(1, 1), []int{1}},
		"a thousand":         {members(1000, 1), []int{1000}},
		"one more":           {members(1001, 1), []int{1000, 1}},
		"after an outage":    {members(1000, 48), []int{1000}},
		"after a restart":    {members(500, 240), []int{200, 200, 100}},
		"one comes back":     {append(members(1, 240), members(900, 1)...), []int{900, 1}},
		"few and one return": {append(members(1, 240), members(20, 1)...), []int{21}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, c := range chunks(tc.members, interval) {
				got = append(got, len(c))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("sizes (-want +got):\n%s", diff)
			}
		})
	}
}
