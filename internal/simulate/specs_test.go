package simulate_test

import (
	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// quickSpec is a plan of minutes with every default of the API filled in: 10 and 50
// percent, each for two minutes, by large steps.
func quickSpec() *v1alpha1.WeightedRolloutSpec {
	return &v1alpha1.WeightedRolloutSpec{
		Revision: "v2",
		Mode:     v1alpha1.ModeEnforce,
		Routes:   []v1alpha1.RouteReference{{Kind: v1alpha1.HTTPRouteKind, Name: "web"}},
		Stable:   &v1alpha1.StableTrack{Track: v1alpha1.Track{Service: "web-stable", Port: 80}},
		Canary:   &v1alpha1.CanaryTrack{Track: v1alpha1.Track{Service: "web-canary", Port: 80}},
		Plan: v1alpha1.Plan{Stages: []v1alpha1.Stage{
			{Weight: "10", Soak: "2m", Approval: v1alpha1.ApprovalNone},
			{Weight: "50", Soak: "2m", Approval: v1alpha1.ApprovalNone},
		}},
		Ramp: v1alpha1.Ramp{
			MinIncrease: "10", MaxIncrease: "20", MaxChangePercent: "100", Interval: "30s",
			Warmup: v1alpha1.Warmup{InitialPercent: "30", Soak: "1m", IncrementPercent: "20"},
		},
		Health: &v1alpha1.Health{
			Preset: v1alpha1.PresetTraefik, Window: "30s", Interval: "10s", SampleDelay: "5s",
			MinRequests: 50, MinRampRequests: 10, DegradedBelow: "0.9",
			ErrorRate: &v1alpha1.ErrorRate{MaxPercent: "2", Penalty: "2"},
			Latency:   &v1alpha1.Latency{Percentile: "95", Max: "500ms", Smoothing: "0.2", Penalty: "0.5"},
		},
		OnUnhealthy: v1alpha1.OnUnhealthy{Action: v1alpha1.UnhealthyRollback, For: "30s"},
		Promotion:   v1alpha1.Promotion{Mode: v1alpha1.PromotionAwait},
		OnDelete:    v1alpha1.DeletionRestore,
	}
}

// steady is a timeline of one value.
func steady[T ~string](value T) []simulateStep[T] {
	return []simulateStep[T]{{At: "0s", Value: value}}
}
