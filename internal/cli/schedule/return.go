package schedule

import (
	"fmt"

	"github.com/weightedrollout/weightedrollout/internal/simulate"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

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
