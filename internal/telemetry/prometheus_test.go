package telemetry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// exposition is what Traefik would say of one backend whose counters rise by a
// number of requests a second, a part of them failed and a part slower than 300ms.
func exposition(name string, since time.Time, perSecond, failed, slow float64) string {
	all := time.Since(since).Seconds() * perSecond
	var b strings.Builder
	labels := func(code string) string {
		return fmt.Sprintf(`code="%s",method="GET",protocol="http",service="%s"`, code, name)
	}
	fmt.Fprintf(&b, "traefik_service_requests_total{%s} %d\n", labels("200"), int(all*(1-failed)))
	fmt.Fprintf(&b, "traefik_service_requests_total{%s} %d\n", labels("503"), int(all*failed))
	for _, bound := range []struct {
		le   string
		part float64
	}{{"0.1", (1 - slow) / 2}, {"0.3", 1 - slow}, {"1.2", 1}, {"5.0", 1}, {"+Inf", 1}} {
		fmt.Fprintf(&b, "traefik_service_request_duration_seconds_bucket{%s,le=%q} %d\n", labels("200"), bound.le, int(all*bound.part))
	}
	return b.String()
}

func TestAgainstPrometheus(t *testing.T) {
	began := time.Now()
	scraped := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, line := range []string{
			exposition("shop-good-stable-http-80@kubernetesgateway", began, 40, 0, 0),
			exposition("shop-good-canary-http-80@kubernetesgateway", began, 40, 0, 0.02),
			exposition("shop-bad-canary-http-80@kubernetesgateway", began, 40, 0.5, 0),
			exposition("shop-slow-canary-http-80@kubernetesgateway", began, 40, 0, 0.5),
		} {
			_, _ = fmt.Fprint(w, line)
		}
	}))
	t.Cleanup(scraped.Close)
	prom := startPrometheus(t, scrape("traefik", scraped.URL, "1s"))

	c := New(Config{DefaultAddress: prom.url, Clock: clock.RealClock{}})
	go func() { _ = c.Start(t.Context()) }()
	limit := v1alpha1.Decimal("1000")
	for _, name := range []string{"good", "bad", "slow", "absent"} {
		c.Track(target(name, func(t *Target) {
			t.ConfirmedAt, t.For = time.Now(), "2s"
			t.Health.Window, t.Health.Interval, t.Health.SampleDelay, t.Health.MinRequests = "6s", "2s", "2s", 200
			t.Health.Latency = &v1alpha1.Latency{Percentile: "90", Max: "500ms"}
			t.Health.Checks = []v1alpha1.Check{{Name: "rate", Max: &limit,
				Query: `sum(rate(traefik_service_requests_total{service=~"{{namespace}}-{{route}}-.*"}[{{window}}])) or vector(0)`}}
		}))
	}
	want := map[string]struct {
		state v1alpha1.VerdictState
		check string
	}{
		"good": {v1alpha1.VerdictHealthy, ""}, "bad": {v1alpha1.VerdictUnhealthy, health.CheckErrorRate},
		"slow": {v1alpha1.VerdictUnhealthy, health.CheckLatency}, "absent": {v1alpha1.VerdictUnknown, health.CheckRequests},
	}
	deadline := time.Now().Add(60 * time.Second)
	for name, w := range want {
		for {
			v := c.Verdict(key(name))
			if v.State == w.state && v.Check == w.check {
				t.Logf("%s: %s", name, v.Message)
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", name, v)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	// 40 requests a second for 6 seconds, and for the time that a window reaches back to
	// a sample before it, however long a busy machine made that.
	for _, w := range c.Windows(key("good")) {
		r := w.Canary
		if r.Problem != nil || !r.Found || r.OldestSample.IsZero() {
			continue
		}
		if most := 40*r.NewestSample.Time().Sub(r.OldestSample.Time()).Seconds() + 80; r.Requests > most {
			t.Errorf("%v requests between samples %s apart", r.Requests, r.NewestSample.Time().Sub(r.OldestSample.Time()))
		}
	}
}
