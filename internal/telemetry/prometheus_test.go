package telemetry

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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

// startPrometheus runs a real Prometheus that scrapes a server every second, and
// returns its address.
func startPrometheus(t *testing.T, scraped string) string {
	t.Helper()
	bin := os.Getenv("WEIGHTEDROLLOUT_BIN")
	if bin == "" {
		t.Skip("WEIGHTEDROLLOUT_BIN names no directory with a prometheus")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs: [{job_name: traefik, static_configs: [{targets: [\"" + strings.TrimPrefix(scraped, "http://") + "\"]}]}]\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "prometheus"),
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=error")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	eventually(t, "a ready Prometheus", func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/-/ready", nil)
		if err != nil {
			return false
		}
		r, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	return "http://" + address
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
	address := startPrometheus(t, scraped.URL)

	c := New(Config{DefaultAddress: address, Clock: clock.RealClock{}})
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
	// 40 requests a second for 6 seconds, give or take a scrape. Windows from before
	// the first scrape hold less, but none may hold more.
	most := 0.0
	for _, w := range c.Windows(key("good")) {
		most = max(most, w.Canary.Requests)
	}
	if most < 180 || most > 300 {
		t.Errorf("at most %v requests in a window", most)
	}
}
