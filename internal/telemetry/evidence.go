package telemetry

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

// Evidence returns what is known about a target, with its numbers, or false if it is
// not tracked.
func (c *Collector) Evidence(key types.NamespacedName, now time.Time) (live.Evidence, bool) {
	e := c.entry(key)
	if e == nil {
		return live.Evidence{}, false
	}
	return e.evidence(now), true
}

func (e *entry) evidence(now time.Time) live.Evidence {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := live.Evidence{Attempt: e.target.Attempt, Subject: e.target.Subject, ConfirmedAt: e.target.ConfirmedAt}
	if e.problem != nil {
		found.Report = health.Report{Verdict: e.verdictLocked(now)}
		found.Report.Ramp.What, found.Report.Stage.What = found.Report.Verdict.RampWait, found.Report.Verdict.StageWait
		return found
	}
	found.Report = health.ReportOn(e.record.Input(now))
	return found
}
