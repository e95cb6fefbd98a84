package telemetry

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// startPodinfo runs a podinfo, and returns where it answers and where its metrics are.
func startPodinfo(t *testing.T) (url, metrics string) {
	t.Helper()
	var ports []string
	for range 2 {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		ports = append(ports, port)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("WEIGHTEDROLLOUT_BIN"), "podinfo"),
		"--host=127.0.0.1", "--port="+ports[0], "--port-metrics="+ports[1], "--level=panic", "--config-path=.")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return "http://127.0.0.1:" + ports[0], "http://127.0.0.1:" + ports[1] + "/metrics"
}

// ask sends requests for a status to podinfo.
func ask(t *testing.T, url string, status, times int) {
	t.Helper()
	for range times {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/status/"+strconv.Itoa(status), nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
		if r.StatusCode != status {
			t.Fatalf("podinfo answered %d, want %d", r.StatusCode, status)
		}
	}
}

// TestPodinfo reads the metrics that real pods expose, scraped with the labels that a
// ServiceMonitor gives them.
func TestPodinfo(t *testing.T) {
	if os.Getenv("WEIGHTEDROLLOUT_BIN") == "" {
		t.Skip("WEIGHTEDROLLOUT_BIN names no directory with a podinfo")
	}
	stable, stableMetrics := startPodinfo(t)
	canary, canaryMetrics := startPodinfo(t)
	prom := startPrometheus(t,
		scrape("web-stable", stableMetrics, "500ms", "namespace", "shop", "service", "web-stable", "pod", "web-stable-0"),
		scrape("web-canary", canaryMetrics, "500ms", "namespace", "shop", "service", "web-canary", "pod", "web-canary-0"))
	for _, url := range []string{stable, canary} {
		eventually(t, "an answer", func() bool {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/healthz", nil)
			if err != nil {
				return false
			}
			r, err := http.DefaultClient.Do(request)
			if err != nil {
				return false
			}
			return r.Body.Close() == nil
		})
	}
	c := New(Config{DefaultAddress: prom.url})
	go func() { _ = c.Start(t.Context()) }()
	c.Track(target("web", func(t *Target) {
		t.ConfirmedAt = time.Now()
		t.Health.Preset, t.Health.Window, t.Health.Interval, t.Health.SampleDelay = v1alpha1.PresetPods, "2s", "1s", "1s"
		t.Health.Latency = &v1alpha1.Latency{Percentile: "90", Max: "500ms"}
	}))
	type sum struct{ Requests, Errors, Timed float64 }
	var since time.Time
	count := func() (stable, canary sum, ready bool) {
		for _, w := range c.Windows(key("web")) {
			if w.End.UnixMilli()%2000 != 0 {
				continue
			}
			if ready = w.Stable.Found && w.Canary.Found; w.Start.Before(since) {
				continue
			}
			stable.Requests, stable.Errors = stable.Requests+w.Stable.Requests, stable.Errors+w.Stable.Errors
			canary.Requests, canary.Errors = canary.Requests+w.Canary.Requests, canary.Errors+w.Canary.Errors
			if n := len(w.Canary.Buckets); n > 0 {
				canary.Timed += w.Canary.Buckets[n-1].Count
			}
		}
		return stable, canary, ready
	}
	eventually(t, "a window with both", func() bool { _, _, ready := count(); return ready })
	since = time.Now().Truncate(2 * time.Second)
	ask(t, stable, 200, 20)
	ask(t, canary, 200, 30)
	ask(t, canary, 404, 5)
	ask(t, canary, 500, 7)
	want := [2]sum{{20, 0, 0}, {42, 7, 42}}
	var got [2]sum
	defer func() {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	}()
	eventually(t, "the counts", func() bool {
		got[0], got[1], _ = count()
		return got == want
	})
}
