package health

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

func TestTraffic(t *testing.T) {
	preset := func(p v1alpha1.Preset) Config { return with(both(), func(c *Config) { c.Preset = p }) }
	noSeries := func(w *Window) { w.Canary = Reading{} }
	for name, c := range map[string]struct {
		config  Config
		windows []Window
		want    Traffic
	}{
		// Ticks are 15 s; the grid has one window in four, and the confirmation is at 0.
		"nothing yet":           {both(), nil, Traffic{NotCounted: "waiting for the first full window of 1m0s since the share was confirmed"}},
		"no window of the grid": {both(), windows(5, 7), Traffic{NotCounted: "waiting for the first full window of 1m0s since the share was confirmed"}},
		"before the share":      {both(), windows(-40, 4), Traffic{NotCounted: "waiting for the first full window of 1m0s since the share was confirmed"}},
		"one window":            {both(), windows(5, 8), Traffic{Counted: true, Canary: 60, Stable: 1000}},
		"disjoint ones are summed, and only those of this share": {both(), windows(-40, 20), Traffic{Counted: true, Canary: 240, Stable: 4000}},
		"an hour of them":      {both(), windows(5, 600), Traffic{Counted: true, Canary: 3600, Stable: 60_000}},
		"fractions":            {both(), windows(5, 12, canary(0.3, 0, 0)), Traffic{Counted: true, Canary: 1, Stable: 2000}},
		"Istio":                {preset(v1alpha1.PresetIstio), windows(5, 8), Traffic{Counted: true, Canary: 60, Stable: 1000}},
		"Linkerd":              {preset(v1alpha1.PresetLinkerd), windows(5, 8), Traffic{Counted: true, Canary: 60, Stable: 1000}},
		"no canary ever":       {both(), windows(5, 8, noSeries), Traffic{Counted: true, Stable: 1000}},
		"no stable ever":       {both(), windows(5, 8, func(w *Window) { w.Stable = Reading{} }), Traffic{Counted: true, Canary: 60}},
		"neither":              {both(), windows(5, 8, noSeries, func(w *Window) { w.Stable = Reading{} }), Traffic{NotCounted: "the gateway's metrics have no series for the canary: it has had no request yet, or the gateway does not report metrics per service, or is no longer scraped"}},
		"one cannot be told":   {both(), concat(windows(5, 8), windows(9, 12, reads(func(r *Reading) { r.Requests = math.NaN() }))), Traffic{Counted: true, Canary: 60, Stable: 1000}},
		"none can be told":     {both(), windows(5, 12, lost), Traffic{NotCounted: "the metrics server failed"}},
		"stable reaches back":  {both(), windows(5, 8, func(w *Window) { w.Stable.OldestSample = At(epoch.Add(-time.Second)) }), Traffic{NotCounted: "the counts reach back to before the share was confirmed"}},
		"canary's series gone": {both(), windows(5, 8, reads(func(r *Reading) { r.Found = false })), Traffic{NotCounted: "the metrics have no two samples between which requests of the canary could be counted: health.window must be longer than the scrape interval"}},
		"Pods":                 {preset(v1alpha1.PresetPods), windows(5, 8), Traffic{NotCounted: "with health.preset Pods the requests are counted in the pods, wherever they come from; the preset of a gateway counts them where they are divided"}},
		"own checks only":      {checksOnly(), windows(5, 8), Traffic{NotCounted: "health.preset is not set, so no requests are counted where they are divided"}},
		"disabled":             {with(both(), func(c *Config) { c.Disabled = true }), windows(5, 8), Traffic{NotCounted: "health.disabled is true, so nothing is counted"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(c.config, c.windows)
			if diff := cmp.Diff(c.want, Evaluate(in).Traffic); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			in.ConfirmedAt = time.Time{}
			if got := Evaluate(in).Traffic; got.Counted || got.NotCounted == "" {
				t.Errorf("without a confirmation: %+v", got)
			}
		})
	}
}

// How much traffic stable has decides nothing where the two are not compared, and wakes
// nobody.
func TestPropertyTrafficDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := clone(drawInput(t))
		want := Evaluate(in)
		for i := range in.Windows {
			in.Windows[i].Stable.Requests += float64(rapid.IntRange(1, 1000).Draw(t, "more"))
		}
		got := Evaluate(in)
		if want.Traffic.Counted && got.Traffic.Stable <= want.Traffic.Stable {
			t.Fatalf("%+v became %+v", want.Traffic, got.Traffic)
		}
		if got.Signal() != want.Signal() {
			t.Fatalf("%+v became %+v", want.Signal(), got.Signal())
		}
		got.Traffic = want.Traffic
		if diff := cmp.Diff(want, got, byValue); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
