package schedule

import (
	"fmt"

	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// stalled returns what keeps the rollout from starting, as the controller would say
// it: the first fault of the first route that has one. Routes that were not read are
// taken to be in order.
func (p *plan) stalled() *Stall {
	for _, r := range p.routes {
		if problem := p.problem(r); problem != nil {
			return &Stall{problem.Reason, fmt.Sprintf("%s: %s", r.title, problem.Message)}
		}
	}
	return nil
}

// problem returns what keeps a route from being managed: it has no rule for the pair,
// or none that can carry the first step from 0. The smallest step is that of the
// first stage, even where a warm-up begins with more.
func (p *plan) problem(m managed) *route.Problem {
	if m.found == nil {
		return nil
	}
	if m.found.Problem != nil {
		return m.found.Problem
	}
	return m.found.Express(weights.NextRaise(weights.ShareNone, p.stages[0].share, p.limits))
}
