package schedule

import (
	"fmt"
	"slices"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// Begins says what the return begins after.
func (r *Return) Begins() string {
	if r.ByItself {
		return "stable is updated"
	}
	return "the finish command"
}

// returnsByItself tells whether the controller can see that stable has the revision: both
// workloads are named, and of kinds whose pod template is known.
func returnsByItself(spec *v1alpha1.WeightedRolloutSpec) bool {
	if spec.Stable == nil || spec.Canary == nil {
		return false
	}
	for _, w := range []*v1alpha1.WorkloadReference{spec.Stable.Workload, spec.Canary.Workload} {
		if w == nil || !slices.Contains([]string{"Deployment", "StatefulSet"}, kindOfWorkload(w)) {
			return false
		}
	}
	return true
}

// comeBack walks the traffic back to stable after the finish command: stable is
// then the track under test, and rises from 0 as the canary did, without stages and
// without a warm-up.
func (p *plan) comeBack(rps float64) *Return {
	w, back := walker{plan: *p, rps: rps}, &Return{}
	for w.share < weights.ShareAll {
		w.share = weights.NextRaise(w.share, weights.ShareAll, w.limits)
		back.Steps++
		field, requests, waits := "spec.health.minRampRequests", w.health.MinRampRequests, w.rampWaits()
		if w.share == weights.ShareAll {
			field, requests, waits = "spec.health.minRequests", w.health.MinRequests, w.stageWaits(stage{share: weights.ShareAll})
		}
		if !w.wait(waits...) {
			back.stuckBy = field
			back.Stuck = fmt.Sprintf("stable stays at %s: it has %s", w.share, w.tooFew(field, requests))
			break
		}
	}
	back.Duration = simulate.Elapsed(w.now)
	return back
}
