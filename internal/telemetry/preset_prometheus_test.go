package telemetry

import (
	"bufio"
	"bytes"
	"embed"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

//go:embed testdata/*.prom
var expositions embed.FS

// exhibits serves the expositions of testdata, as their sources' documentation shows
// them. A file holds several, each under a comment with its time. Every sample gets
// that time, so that the test knows which window it is in.
type exhibits struct {
	*httptest.Server
	base time.Time

	mu     sync.Mutex
	at     string // the comment whose samples are shown
	served map[string]int
}

func newExhibits(t *testing.T, base time.Time) *exhibits {
	e := &exhibits{base: base, served: map[string]int{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := expositions.ReadFile("testdata" + r.URL.Path)
		if err != nil {
			t.Error(err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.served[r.URL.Path]++
		_, _ = w.Write(e.shown(text))
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *exhibits) shown(text []byte) []byte {
	var out bytes.Buffer
	here := false
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if at, ok := strings.CutPrefix(line, "# at "); ok {
			here = at == e.at
			continue
		}
		if offset, err := time.ParseDuration(e.at); here && err == nil {
			fmt.Fprintf(&out, "%s %d\n", line, e.base.Add(offset).UnixMilli())
		}
	}
	return out.Bytes()
}

// show serves what belongs to a time, until every file was read twice: the second
// reading begins when the samples of the first are stored.
func (e *exhibits) show(t *testing.T, at string, files ...string) {
	e.mu.Lock()
	e.at = at
	clear(e.served)
	e.mu.Unlock()
	for _, file := range files {
		eventually(t, "two scrapes of "+file, func() bool {
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.served["/"+file] >= 2
		})
	}
}

// TestPresets has a real Prometheus scrape what each source of metrics exposes, and
// reads it with the preset. In every one a Service of the canary's name in another
// namespace fails all the time.
func TestPresets(t *testing.T) {
	base := time.Now().Truncate(time.Minute).Add(-5 * time.Minute)
	e := newExhibits(t, base)
	files := []string{"traefik.prom", "istio.prom", "linkerd.prom", "pods-stable.prom", "pods-canary.prom", "pods-neighbour.prom", "pods-grpc.prom"}
	pod := func(job, file, namespace, service string) string {
		return scrape(job, e.URL+"/"+file, "100ms", "namespace", namespace, "service", service, "pod", service+"-7d4b9", "container", "app")
	}
	prom := startPrometheus(t,
		scrape("traefik", e.URL+"/traefik.prom", "100ms"), scrape("istio", e.URL+"/istio.prom", "100ms"), scrape("linkerd", e.URL+"/linkerd.prom", "100ms"),
		pod("stable", "pods-stable.prom", "shop", "checkout-stable"), pod("canary", "pods-canary.prom", "shop", "checkout-canary"),
		pod("neighbour", "pods-neighbour.prom", "test", "checkout-canary"), pod("grpc", "pods-grpc.prom", "shop", "pay-canary"))
	for _, at := range []string{"50s", "110s"} {
		e.show(t, at, files...)
	}
	f := newFixture(t, prom.url)
	f.clock.SetTime(base)
	entries := func(preset v1alpha1.Preset, limit v1alpha1.Duration) (members []member) {
		// The last one has the neighbour's series selected as well.
		for _, name := range []string{"shop/checkout", "shop/pay", "test/cart"} {
			namespace, name, _ := strings.Cut(name, "/")
			watched := target(name, withLatency, func(t *Target) {
				t.Key.Namespace, t.Key.Name, t.ConfirmedAt = namespace, name+string(preset), base
				t.Health.Preset = preset
				t.Health.Latency.Max = limit
				t.Stable.Port, t.Canary.Port = 8080, 8080
			})
			f.Track(watched)
			end := base.Add(2 * time.Minute)
			members = append(members, member{entry: f.entry(watched.Key), from: end, to: end})
		}
		return members
	}
	type sum struct{ Requests, Errors float64 }
	tests := map[string]struct {
		preset         v1alpha1.Preset
		member         int
		stable, canary sum
		within         map[float64]float64 // the canary's response times, by bounds in seconds
	}{
		"Traefik":    {v1alpha1.PresetTraefik, 0, sum{102, 0}, sum{31, 6}, map[float64]float64{0.1: 15, 0.3: 17, 1.2: 19, 5: 20}},
		"Istio":      {v1alpha1.PresetIstio, 0, sum{102, 0}, sum{32, 6}, map[float64]float64{0.05: 0, 0.1: 15, 0.25: 17, 0.5: 19, 1: 20}},
		"Linkerd":    {v1alpha1.PresetLinkerd, 0, sum{102, 0}, sum{32, 6}, map[float64]float64{0.05: 2, 0.1: 17, 0.25: 20, 0.5: 25, 1: 27}},
		"pods":       {v1alpha1.PresetPods, 0, sum{102, 0}, sum{24, 4}, map[float64]float64{0.05: 2, 0.1: 15, 0.25: 17, 0.5: 23}},
		"pods, gRPC": {v1alpha1.PresetPods, 1, sum{}, sum{25, 2}, map[float64]float64{0.05: 2, 0.1: 16, 0.25: 19, 0.5: 23}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			members := entries(tc.preset, "300ms")
			windows, problem := members[0].entry.group().readChunk(t.Context(), members)
			if problem != nil {
				t.Fatal(problem)
			}
			last := windows[tc.member][len(windows[tc.member])-1]
			for track, want := range map[health.Track]sum{health.TrackStable: tc.stable, health.TrackCanary: tc.canary} {
				got := last.Reading(track)
				if diff := cmp.Diff(want, sum{got.Requests, got.Errors}); diff != "" || got.Problem != nil {
					t.Errorf("%s (-want +got):\n%s%+v", track, diff, got.Problem)
				}
			}
			got := last.Canary
			if got.OldestSample != health.At(base.Add(50*time.Second)) || got.NewestSample != health.At(base.Add(110*time.Second)) {
				t.Errorf("samples from %s to %s", got.OldestSample.Time().Sub(base), got.NewestSample.Time().Sub(base))
			}
			counted := map[float64]float64{}
			for bound := range tc.within {
				// Of the buckets only the one of the limit is kept.
				members := entries(tc.preset, v1alpha1.Duration(fmt.Sprintf("%.0fms", bound*1000)))
				windows, err := members[0].entry.group().readChunk(t.Context(), members)
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range windows[tc.member][len(windows[tc.member])-1].Canary.Buckets {
					if b.UpperBound == bound {
						counted[bound] = b.Count
					}
				}
			}
			if diff := cmp.Diff(tc.within, counted); diff != "" {
				t.Errorf("buckets (-want +got):\n%s", diff)
			}
		})
	}
}
