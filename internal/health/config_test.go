package health

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

func TestConfigFrom(t *testing.T) {
	full := &v1alpha1.Health{
		Preset: v1alpha1.PresetTraefik, Window: "2m", Interval: "30s", SampleDelay: "0s",
		MinRequests: 7, MinRampRequests: 3, Confidence: "99.5", Require: v1alpha1.RequireNotWorse,
		ErrorRate:     &v1alpha1.ErrorRate{MaxPercent: "0.5", TargetPercent: "0.1", Penalty: "3", MaxAboveStablePercent: "0.2"},
		Latency:       &v1alpha1.Latency{Percentile: "99.9", Max: "500ms", Target: "300ms", Smoothing: "0.3", Penalty: "0", MaxRatioToStable: "1.2"},
		DegradedBelow: "0.8",
		Checks:        []v1alpha1.Check{{Name: "queue", Query: "q", Min: new(v1alpha1.Decimal("-1")), Max: new(v1alpha1.Decimal("2.5")), Importance: "0.5"}},
	}
	tests := map[string]struct {
		health *v1alpha1.Health
		want   Config
	}{
		"everything given": {full, Config{
			Window: 2 * time.Minute, Interval: 30 * time.Second, SampleDelay: 0, For: 10 * time.Second,
			Preset: v1alpha1.PresetTraefik, MinRequests: 7, MinRampRequests: 3, Confidence: 0.995, NotWorse: true,
			ErrorRate: &ErrorRate{Max: 0.005, Target: new(0.001), MaxAboveStable: 0.002},
			Latency:   &Latency{Percentile: 0.999, Max: 500 * time.Millisecond, Target: 300 * time.Millisecond, Smoothing: 0.3, MaxRatio: 1.2},
			Penalties: score.Penalties{Error: 3, Latency: 0}, DegradedBelow: 0.8,
			Checks: []Check{{Name: "queue", Min: new(-1.0), Max: new(2.5), Importance: 0.5}},
		}},
		"defaults": {&v1alpha1.Health{Preset: v1alpha1.PresetTraefik, Latency: &v1alpha1.Latency{Max: "1s"}}, Config{
			Window: time.Minute, Interval: 15 * time.Second, SampleDelay: 15 * time.Second, For: 10 * time.Second,
			Preset: v1alpha1.PresetTraefik, MinRequests: 100, MinRampRequests: 20, Confidence: 0.95,
			Latency:   &Latency{Percentile: 0.99, Max: time.Second, Smoothing: 0.2},
			Penalties: score.DefaultPenalties(), DegradedBelow: 0.9,
		}},
		"disabled": {&v1alpha1.Health{Disabled: true}, Config{
			Disabled: true, Window: time.Minute, Interval: 15 * time.Second, SampleDelay: 15 * time.Second,
			For: 10 * time.Second, MinRequests: 100, MinRampRequests: 20,
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ConfigFrom(tc.health, "10s")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigFromNamesTheField(t *testing.T) {
	valid := func() *v1alpha1.Health {
		return &v1alpha1.Health{Preset: v1alpha1.PresetTraefik, ErrorRate: &v1alpha1.ErrorRate{MaxPercent: "1"}}
	}
	checks := func(c ...v1alpha1.Check) func(*v1alpha1.Health) {
		return func(h *v1alpha1.Health) { h.Checks = c }
	}
	limit := new(v1alpha1.Decimal("1"))
	tests := map[string]struct {
		change func(*v1alpha1.Health)
		lasts  v1alpha1.Duration
		want   string
	}{
		"window":             {func(h *v1alpha1.Health) { h.Window = "x" }, "1m", "health.window"},
		"window too long":    {func(h *v1alpha1.Health) { h.Window = "61m" }, "1m", "health.window"},
		"interval":           {func(h *v1alpha1.Health) { h.Interval = "0s" }, "1m", "health.interval"},
		"not a multiple":     {func(h *v1alpha1.Health) { h.Interval = "7s" }, "1m", "multiple"},
		"sample delay":       {func(h *v1alpha1.Health) { h.SampleDelay = "-1s" }, "1m", "health.sampleDelay"},
		"for":                {func(*v1alpha1.Health) {}, "25h", "onUnhealthy.for"},
		"below a ms":         {func(*v1alpha1.Health) {}, "1us", "onUnhealthy.for"},
		"min requests":       {func(h *v1alpha1.Health) { h.MinRequests = -1 }, "1m", "health.minRequests"},
		"unknown preset":     {func(h *v1alpha1.Health) { h.Preset = "Nginx" }, "1m", "health.preset"},
		"no preset":          {func(h *v1alpha1.Health) { h.Preset = "" }, "1m", "health.preset"},
		"max percent":        {func(h *v1alpha1.Health) { h.ErrorRate.MaxPercent = "5%" }, "1m", "health.errorRate.maxPercent"},
		"nothing to check":   {func(h *v1alpha1.Health) { h.ErrorRate = nil }, "1m", "no check"},
		"percentile":         {func(h *v1alpha1.Health) { h.Latency = &v1alpha1.Latency{Percentile: "49", Max: "1s"} }, "1m", "health.latency.percentile"},
		"percentile 100":     {func(h *v1alpha1.Health) { h.Latency = &v1alpha1.Latency{Percentile: "100", Max: "1s"} }, "1m", "health.latency.percentile"},
		"percentile text":    {func(h *v1alpha1.Health) { h.Latency = &v1alpha1.Latency{Percentile: "p99", Max: "1s"} }, "1m", "health.latency.percentile"},
		"latency max":        {func(h *v1alpha1.Health) { h.Latency = &v1alpha1.Latency{} }, "1m", "health.latency.max"},
		"target":             {func(h *v1alpha1.Health) { h.ErrorRate.TargetPercent = "x" }, "1m", "health.errorRate.targetPercent"},
		"target over max":    {func(h *v1alpha1.Health) { h.ErrorRate.TargetPercent = "2" }, "1m", "health.errorRate.targetPercent is above"},
		"error penalty":      {func(h *v1alpha1.Health) { h.ErrorRate.Penalty = "5" }, "1m", "health.errorRate.penalty"},
		"penalty text":       {func(h *v1alpha1.Health) { h.ErrorRate.Penalty = "x" }, "1m", "health.errorRate.penalty"},
		"degraded below":     {func(h *v1alpha1.Health) { h.DegradedBelow = "0.1" }, "1m", "health.degradedBelow"},
		"degraded text":      {func(h *v1alpha1.Health) { h.DegradedBelow = "NaN" }, "1m", "health.degradedBelow"},
		"latency target":     {func(h *v1alpha1.Health) { h.Latency = &v1alpha1.Latency{Max: "1s", Target: "2s"} }, "1m", "health.latency.target is above"},
		"latency target 0":   {func(h *v1alpha1.Health) { h.Latency = &v1alpha1.Latency{Max: "1s", Target: "0s"} }, "1m", "health.latency.target"},
		"smoothing":          {func(h *v1alpha1.Health) { h.Latency = &v1alpha1.Latency{Max: "1s", Smoothing: "0.5"} }, "1m", "health.latency.smoothing"},
		"smoothing text":     {func(h *v1alpha1.Health) { h.Latency = &v1alpha1.Latency{Max: "1s", Smoothing: "x"} }, "1m", "health.latency.smoothing"},
		"latency penalty":    {func(h *v1alpha1.Health) { h.Latency = &v1alpha1.Latency{Max: "1s", Penalty: "x"} }, "1m", "health.latency.penalty"},
		"check without name": {checks(v1alpha1.Check{Query: "q", Max: limit}), "1m", "health.checks[0].name"},
		"check twice":        {checks(v1alpha1.Check{Name: "a", Query: "q", Max: limit}, v1alpha1.Check{Name: "a", Query: "q", Max: limit}), "1m", "health.checks[a] is given twice"},
		"check no query":     {checks(v1alpha1.Check{Name: "a", Max: limit}), "1m", "health.checks[a].query"},
		"check no limit":     {checks(v1alpha1.Check{Name: "a", Query: "q"}), "1m", "health.checks[a] has no limit"},
		"check min":          {checks(v1alpha1.Check{Name: "a", Query: "q", Min: new(v1alpha1.Decimal("x"))}), "1m", "health.checks[a].min"},
		"check max NaN":      {checks(v1alpha1.Check{Name: "a", Query: "q", Max: new(v1alpha1.Decimal("NaN"))}), "1m", "health.checks[a].max"},
		"check min over max": {checks(v1alpha1.Check{Name: "a", Query: "q", Min: new(v1alpha1.Decimal("2")), Max: limit}), "1m", "min is above max"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := valid()
			tc.change(h)
			got, err := ConfigFrom(h, tc.lasts)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one that says %q", err, tc.want)
			}
			if diff := cmp.Diff(Config{}, got); diff != "" {
				t.Errorf("a config came with the error:\n%s", diff)
			}
		})
	}
	if _, err := ConfigFrom(nil, "1m"); err == nil {
		t.Error("a missing health section is accepted")
	}
}
