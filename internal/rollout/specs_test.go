package rollout_test

import (
	"fmt"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// defaultSpec is a spec with all the API's defaults filled in.
func defaultSpec() v1alpha1.WeightedRolloutSpec {
	return v1alpha1.WeightedRolloutSpec{
		Revision: "v2",
		Mode:     v1alpha1.ModeEnforce,
		Routes:   []v1alpha1.RouteReference{{Kind: v1alpha1.HTTPRouteKind, Name: "web"}},
		Stable:   &v1alpha1.StableTrack{Track: v1alpha1.Track{Service: "web-stable", Port: 80}},
		Canary:   &v1alpha1.CanaryTrack{Track: v1alpha1.Track{Service: "web-canary", Port: 80}},
		Plan: v1alpha1.Plan{Stages: []v1alpha1.Stage{
			stageOf("1", "30m"), stageOf("5", "30m"), stageOf("10", "30m"), stageOf("20", "30m"), stageOf("50", "30m"),
		}},
		Ramp:        v1alpha1.Ramp{MinIncrease: "1", MaxIncrease: "10", MaxChangePercent: "20", Interval: "1m"},
		Health:      &v1alpha1.Health{Window: "1m", Interval: "15s", SampleDelay: "15s", MinRequests: 100, MinRampRequests: 20},
		OnUnhealthy: v1alpha1.OnUnhealthy{Action: v1alpha1.UnhealthyRollback, For: "1m"},
		Promotion:   v1alpha1.Promotion{Mode: v1alpha1.PromotionAwait},
		OnDelete:    v1alpha1.DeletionRestore,
	}
}

// smallSpec has three stages, short soaks and large ramp steps: 20, 40, 50, 60, 70, 80, 90, 100
// percent, with an approval at 50.
func smallSpec() v1alpha1.WeightedRolloutSpec {
	spec := defaultSpec()
	spec.Plan.Stages = []v1alpha1.Stage{stageOf("10", "4m"), stageOf("20", "5m"), stageOf("50", "6m")}
	spec.Ramp = v1alpha1.Ramp{MinIncrease: "10", MaxIncrease: "20", MaxChangePercent: "100", Interval: "30s"}
	return spec
}

func stageOf(weight v1alpha1.Percent, soak v1alpha1.Duration) v1alpha1.Stage {
	return v1alpha1.Stage{Weight: weight, Soak: soak, Approval: v1alpha1.ApprovalNone}
}

func approvedAfter(s v1alpha1.Stage) v1alpha1.Stage {
	s.Approval = v1alpha1.ApprovalRequired
	return s
}

// alsoRoute adds a second route to a spec.
func alsoRoute(spec v1alpha1.WeightedRolloutSpec) v1alpha1.WeightedRolloutSpec {
	spec.Routes = append(spec.Routes, v1alpha1.RouteReference{Kind: v1alpha1.HTTPRouteKind, Name: "api"})
	return spec
}

// offset writes the time since the start of the world: 01:02:03.5.
func offset(t time.Time) string {
	d := t.Sub(start)
	text := fmt.Sprintf("%02d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
	if rest := d % time.Second; rest != 0 {
		text += fmt.Sprintf(".%03d", rest.Milliseconds())
	}
	return text
}
