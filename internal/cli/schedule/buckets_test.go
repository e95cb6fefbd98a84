package schedule_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/internal/cli/schedule"
)

// TestBuckets shows which limits of the response time are said to be no bound of
// Traefik's buckets, and which bound counts instead.
func TestBuckets(t *testing.T) {
	const (
		maximum = "spec.health.latency.max: "
		target  = "spec.health.latency.target: "
		none    = " is no bound of Traefik's buckets (100ms, 300ms, 1.2s, 5s), "
		unless  = ", unless the gateway's buckets were changed (metrics.prometheus.buckets)"
	)
	for name, test := range map[string]struct {
		preset, latency string
		want            []string
	}{
		"a bound":                 {"Traefik", `max: 300ms`, nil},
		"a bound written longer":  {"Traefik", `max: 1s200ms, target: 100ms`, nil},
		"between two":             {"Traefik", `max: 500ms`, []string{maximum + "500ms" + none + "so the next lower one, 300ms, counts: set 300ms or 1.2s" + unless}},
		"above all":               {"Traefik", `max: 10s`, []string{maximum + "10s" + none + "so the next lower one, 5s, counts: set 5s" + unless}},
		"below all":               {"Traefik", `max: 50ms`, []string{maximum + "50ms" + none + "and below all of them, so the verdict stays Unknown and nothing rises: raise it to 100ms" + unless}},
		"a target between two":    {"Traefik", `max: 300ms, target: 250ms`, []string{target + "250ms" + none + "so whether the response time is above it is estimated between the bounds beside it, 100ms and 300ms: set 100ms or 300ms" + unless}},
		"a target below all":      {"Traefik", `max: 300ms, target: 20ms`, []string{target + "20ms" + none + "so whether the response time is above it is estimated between the bounds beside it, 0s and 100ms: set 100ms" + unless}},
		"a target that is no use": {"Traefik", `max: 5s, target: 5s`, []string{target + "no response time is read as longer than 5s, the last bound of Traefik's buckets (100ms, 300ms, 1.2s, 5s), so the canary is never found slower than 5s: set a lower bound" + unless}},
		"a target below max":      {"Traefik", `max: 500ms, target: 400ms`, []string{maximum + "500ms" + none + "so the next lower one, 300ms, counts: set 300ms or 1.2s" + unless, target + "400ms" + none + "so whether the response time is above it is estimated between the bounds beside it, 300ms and 1.2s: set 300ms" + unless}},
		"other buckets":           {"Istio", `max: 500ms, target: 400ms`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := scheduled(t, `health: {preset: `+test.preset+`, latency: {`+test.latency+`}}`, schedule.Options{}).Warnings
			if len(got) != len(test.want) {
				t.Fatalf("want %q, got %q", test.want, got)
			}
			for i, w := range got {
				if diff := cmp.Diff(test.want[i], w.String()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
	if got := scheduled(t, `health: {disabled: true, preset: Traefik, latency: {max: 500ms}}`, schedule.Options{}).Warnings; len(got) != 1 || got[0].Field != "spec.health.disabled" {
		t.Errorf("where nothing is measured it says %q", got)
	}
}
