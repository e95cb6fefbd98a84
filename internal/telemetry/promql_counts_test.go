package telemetry

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weightedrollout/weightedrollout/internal/health"
)

// requestsOf is a counter of requests of a backend with the given code, as the scrape
// of one gateway has it.
func requestsOf(namespace, service, instance, code string, samples ...[2]float64) timeline {
	return timeline{samples: samples, labels: map[string]string{
		"__name__": "traefik_service_requests_total", "job": "traefik", "instance": instance,
		"service": namespace + "-" + service + "-http-80@kubernetesgateway", "code": code, "protocol": "http", "method": "GET",
	}}
}

// TestCounts writes samples into a real Prometheus, and reads the window from 60 to
// 120 seconds.
func TestCounts(t *testing.T) {
	type samples = [][2]float64
	seconds := func(s float64) health.Instant { return health.At(start.Add(time.Duration(s * float64(time.Second)))) }
	ok := func(instance string, s ...[2]float64) timeline {
		return requestsOf("%", "web-canary", instance, "200", s...)
	}
	bad := func(instance string, s ...[2]float64) timeline {
		return requestsOf("%", "web-canary", instance, "503", s...)
	}
	other := func(instance string, s ...[2]float64) timeline {
		return requestsOf("%", "web-stable", instance, "200", s...)
	}
	steady := samples{{35, 100}, {50, 110}, {65, 120}, {80, 130}, {95, 140}, {110, 150}, {125, 160}}
	tests := map[string]struct {
		lines []timeline
		want  health.Reading
	}{
		"steady": {[]timeline{ok("a", steady...)},
			health.Reading{Found: true, Requests: 40, OldestSample: seconds(50), NewestSample: seconds(110)}},
		"one request is one": {[]timeline{ok("a", [2]float64{50, 7}, [2]float64{65, 7}, [2]float64{80, 8}, [2]float64{95, 8}, [2]float64{110, 8})},
			health.Reading{Found: true, Requests: 1, OldestSample: seconds(50), NewestSample: seconds(110)}},
		"between two windows": {[]timeline{ok("a", [2]float64{50, 7}, [2]float64{65, 37}, [2]float64{110, 37})},
			health.Reading{Found: true, Requests: 30, OldestSample: seconds(50), NewestSample: seconds(110)}},
		"silence": {[]timeline{ok("a", [2]float64{50, 7}, [2]float64{65, 7}, [2]float64{110, 7})},
			health.Reading{Found: true, OldestSample: seconds(50), NewestSample: seconds(110)}},
		"samples on the ends": {[]timeline{ok("a", [2]float64{60, 10}, [2]float64{90, 20}, [2]float64{120, 30})},
			health.Reading{Found: true, Requests: 20, OldestSample: seconds(60), NewestSample: seconds(120)}},
		"the first errors": {[]timeline{ok("a", steady...), bad("a", [2]float64{80, 3}, [2]float64{110, 5})},
			health.Reading{Found: true, Requests: 45, Errors: 5, OldestSample: seconds(50), NewestSample: seconds(110)}},
		"one error, once seen": {[]timeline{ok("a", steady...), bad("a", [2]float64{110, 2})},
			health.Reading{Found: true, Requests: 42, Errors: 2, OldestSample: seconds(50), NewestSample: seconds(110)}},
		"the first request at all": {[]timeline{other("a", steady...), ok("a", [2]float64{80, 9}, [2]float64{110, 12})},
			health.Reading{Found: true, Requests: 12, NewestSample: seconds(110)}},
		"a new target": {[]timeline{ok("b", [2]float64{65, 1000}, [2]float64{80, 1010}, [2]float64{110, 1040})},
			health.Reading{Found: true, Requests: 40, NewestSample: seconds(110)}},
		"a new target beside another": {[]timeline{ok("a", steady...), ok("b", [2]float64{65, 1000}, [2]float64{110, 1040})},
			health.Reading{Found: true, Requests: 80, OldestSample: seconds(50), NewestSample: seconds(110)}},
		"a new target's only sample": {[]timeline{ok("b", [2]float64{110, 1000})},
			health.Reading{Found: true, NewestSample: seconds(110)}},
		"two gateways": {[]timeline{ok("a", steady...), ok("b", [2]float64{58, 5}, [2]float64{118, 25})},
			health.Reading{Found: true, Requests: 60, OldestSample: seconds(50), NewestSample: seconds(118)}},
		"a reset": {[]timeline{ok("a", [2]float64{50, 1000}, [2]float64{65, 1010}, [2]float64{80, 4}, [2]float64{110, 20}), bad("a", [2]float64{50, 2}, [2]float64{65, 2}, [2]float64{80, 1}, [2]float64{110, 9})},
			health.Reading{Found: true, Requests: 29, Errors: 9, OldestSample: seconds(50), NewestSample: seconds(110)}},
		"a reset between two windows": {[]timeline{ok("a", [2]float64{50, 1000}, [2]float64{65, 5}, [2]float64{110, 12})},
			health.Reading{Found: true, Requests: 12, OldestSample: seconds(50), NewestSample: seconds(110)}},
		"a reset that is passed by": {[]timeline{ok("a", [2]float64{50, 5}, [2]float64{65, 3}, [2]float64{110, 40})},
			health.Reading{Found: true, Requests: 40, OldestSample: seconds(50), NewestSample: seconds(110)}},
		"a reset that stays above": {[]timeline{ok("a", [2]float64{50, 5}, [2]float64{65, 80}, [2]float64{80, 30}, [2]float64{110, 40})},
			health.Reading{Found: true, Requests: 35, OldestSample: seconds(50), NewestSample: seconds(110)}},
		"a step back, as between two copies of a counter": {[]timeline{ok("a", [2]float64{50, 1000}, [2]float64{65, 998}, [2]float64{110, 1020})},
			health.Reading{Found: true, Requests: 20, OldestSample: seconds(50), NewestSample: seconds(110)}},
		"a step back that lasts": {[]timeline{ok("a", [2]float64{50, 1000}, [2]float64{65, 998}, [2]float64{110, 998})},
			health.Reading{Found: true, OldestSample: seconds(50), NewestSample: seconds(110)}},
		"an earlier reset": {[]timeline{ok("a", [2]float64{35, 1000}, [2]float64{50, 5}, [2]float64{65, 10}, [2]float64{110, 12})},
			health.Reading{Found: true, Requests: 7, OldestSample: seconds(50), NewestSample: seconds(110)}},
		"vanished": {[]timeline{ok("a", [2]float64{50, 10}, [2]float64{65, 20}, [2]float64{80, stale})},
			health.Reading{Found: true, Requests: 10, OldestSample: seconds(50)}},
		"vanished, the other gateway is there": {[]timeline{ok("a", [2]float64{50, 10}, [2]float64{65, 20}, [2]float64{80, stale}), ok("b", steady...)},
			health.Reading{Found: true, Requests: 50, OldestSample: seconds(50), NewestSample: seconds(110)}},
		"vanished and come back": {[]timeline{other("a", steady...), ok("a", [2]float64{35, 100}, [2]float64{50, stale}, [2]float64{80, 3}, [2]float64{110, 5})},
			health.Reading{Found: true, Requests: 5, NewestSample: seconds(110)}},
		"long gone": {[]timeline{ok("a", [2]float64{5, 10}, [2]float64{20, stale})}, health.Reading{}},
		"no sample since": {[]timeline{ok("a", [2]float64{35, 10}, [2]float64{50, 20})},
			health.Reading{NewestSample: seconds(50)}},
		"after a gap": {[]timeline{ok("a", [2]float64{5, 10}, [2]float64{80, 50}, [2]float64{110, 60})},
			health.Reading{Found: true, Requests: 50, OldestSample: seconds(5), NewestSample: seconds(110)}},
		"after a gap longer than Prometheus looks back": {[]timeline{ok("a", [2]float64{-400, 10}, [2]float64{80, 50}, [2]float64{110, 60})},
			health.Reading{Found: true, Requests: 10, NewestSample: seconds(110)}},
		"not a number": {[]timeline{ok("a", [2]float64{50, 10}, [2]float64{110, math.NaN()})},
			health.Reading{Found: true, Requests: math.NaN(), OldestSample: seconds(50), NewestSample: seconds(110)}},
		"a neighbour's": {[]timeline{requestsOf("%x", "web-canary", "a", "200", steady...), requestsOf("%", "web-canary2", "a", "200", steady...)}, health.Reading{}},
	}
	prom := startPrometheus(t)
	f := newFixture(t, prom.url)
	number := 0
	keys := map[string]Target{}
	for name, tc := range tests {
		number++
		namespace := fmt.Sprintf("case%d", number)
		for _, l := range tc.lines {
			l.labels["instance"] = namespace + l.labels["instance"]
			l.labels["service"] = namespace + l.labels["service"][1:]
			prom.write(l)
		}
		keys[name] = target("web", func(t *Target) { t.Key.Namespace = namespace })
		f.Track(keys[name])
	}
	f.step(2 * time.Minute)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			windows := f.Windows(keys[name].Key)
			last := windows[len(windows)-1]
			if diff := cmp.Diff(tc.want, last.Canary, cmpopts.EquateNaNs()); diff != "" || health.At(last.End) != seconds(120) {
				t.Errorf("window to %s (-want +got):\n%s", last.End.Sub(start), diff)
			}
		})
	}
}

// gatewayLog plays one gateway with the counters of one backend.
type gatewayLog struct {
	name  string
	count map[string]float64   // by code, since the gateway's start
	lines map[string]*timeline // by code
	sent  map[string]float64   // by code, in all
}

func (g *gatewayLog) request(code string, n float64) {
	g.count[code] += n
	g.sent[code] += n
}

func (g *gatewayLog) scrape(at float64) {
	for code, n := range g.count {
		if g.lines[code] == nil {
			l := requestsOf("shop", g.name+"-canary", g.name, code)
			g.lines[code] = &l
		}
		g.lines[code].samples = append(g.lines[code].samples, [2]float64{at, n})
	}
	for code, l := range g.lines {
		if _, there := g.count[code]; !there && l.samples[len(l.samples)-1][0] < at {
			l.samples = append(l.samples, [2]float64{at, stale})
		}
	}
}

// TestCountsAddUp plays random traffic to many backends. Half of their gateways restart
// now and then, or are not scraped for a while. Windows side by side never count more
// than there was, and exactly that where all is well.
func TestCountsAddUp(t *testing.T) {
	const backends, scrapes, every = 40, 80, 15
	random := rand.New(rand.NewPCG(1, 2))
	prom := startPrometheus(t)
	f := newFixture(t, prom.url)
	logs := make([]*gatewayLog, backends)
	for b := range logs {
		g := &gatewayLog{name: fmt.Sprintf("app%d", b), count: map[string]float64{}, lines: map[string]*timeline{}, sent: map[string]float64{}}
		logs[b] = g
		g.count["404"] = 1 // was there before the first window
		g.scrape(float64(b%14 - 14))
		unscraped := 0
		for s := range scrapes {
			if calm := b%2 == 0; !calm {
				if random.IntN(12) == 0 {
					clear(g.count)
				}
				if unscraped--; random.IntN(15) == 0 {
					unscraped = 1 + random.IntN(25)
				}
			}
			g.request("200", float64(random.IntN(9)))
			if code := []string{"404", "500", "503"}[random.IntN(3)]; random.IntN(4) == 0 {
				g.request(code, float64(1+random.IntN(3)))
			}
			if unscraped <= 0 {
				g.scrape(float64(s*every + b%14 + 1))
			}
		}
		for _, l := range g.lines {
			prom.write(*l)
		}
		f.Track(target(g.name, func(t *Target) { t.ConfirmedAt = start.Add(-15 * time.Second) }))
	}
	// Every request is in a sample by the end, and every sample in a window of the grid.
	f.step(scrapes * every * time.Second)
	for b, g := range logs {
		var got, failed float64
		for _, w := range f.Windows(key(g.name)) {
			if w.End.Sub(start)%time.Minute == 0 {
				got += w.Canary.Requests
				failed += w.Canary.Errors
			}
		}
		errors := g.sent["500"] + g.sent["503"]
		all := g.sent["200"] + g.sent["404"] + errors
		if calm := b%2 == 0; got > all || failed > errors || calm && (got != all || failed != errors) || got == 0 {
			t.Errorf("%s: %v requests and %v failures were counted, %v and %v were sent", g.name, got, failed, all, errors)
		}
	}
}
