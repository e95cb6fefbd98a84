package main

import (
	"github.com/weightedrollout/weightedrollout/internal/health/compare"
)

const (
	alpha = 0.05 // Confidence 95.

	judges = 4
	// failures is how many measurements must fail.
	failures = 5
)

// judgeNames are the heads of the columns, in the order of a panel.
var judgeNames = [judges]string{"ours", "5 failed", "in a row", "ranks"}

// judge says after each block whether the canary is worse. It is asked again only
// while it is not.
type judge interface {
	worse(b compare.Block) bool
}

// newPanel returns the judges of a run. The fixed thresholds know stable's usual rate.
func newPanel(nominal float64) [judges]judge {
	return [judges]judge{
		&anytime{},
		&threshold{limit: limit(nominal)},
		&threshold{limit: limit(nominal), inARow: true},
		newRanks(),
	}
}

// anytime is the comparison of this project.
type anytime struct{ evidence compare.Inferiority }

func (a *anytime) worse(b compare.Block) bool {
	a.evidence = a.evidence.Add(b)
	return a.evidence.Proven(alpha)
}

// threshold fails a measurement when the canary's rate of bad requests is above a
// limit, whatever stable's is. Argo Rollouts counts the failed measurements of a
// metric, and fails when they are more than failureLimit; Flagger counts failed checks
// and rolls back when they reach threshold. Neither forgets them when a check passes,
// so both are this rule with failureLimit 4 and threshold 5. With inARow a passed one
// starts the count again, as alerting rules do.
type threshold struct {
	limit  float64
	inARow bool
	failed int
}

// limit is what a careful team sets when it knows stable's usual rate: twice that,
// and at least half a point more.
func limit(nominal float64) float64 { return max(2*nominal, nominal+0.005) }

func (t *threshold) worse(b compare.Block) bool {
	switch {
	case b.Canary.Bad > t.limit*b.Canary.Total:
		t.failed++
	case t.inARow:
		t.failed = 0
	}
	return t.failed >= failures
}
