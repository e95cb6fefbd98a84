package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// checkQuery is one of the spec's own checks, ready to be asked.
type checkQuery struct {
	name    string
	text    string
	reach   time.Duration   // how far back it looks
	problem *health.Problem // why it cannot be asked
}

// askChecks asks every check of a target for its value at a tick, and waits for
// the answers. A check whose earlier answer is still awaited is not asked again.
func (e *entry) askChecks(ctx context.Context, tick time.Time) []health.CheckResult {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.gone, cancel)()
	results := make([]health.CheckResult, len(e.queries))
	var wait sync.WaitGroup
	for i := range e.queries {
		q := &e.queries[i]
		results[i].Name = q.name
		switch {
		case q.problem != nil:
			results[i].Problem = q.problem
		case e.tooEarly(q, tick) != nil:
			results[i].Problem = e.tooEarly(q, tick)
		case !e.claim(i):
			results[i].Problem = &health.Problem{Reason: v1alpha1.ReasonProviderError, Message: "the metrics server " + e.server.host + " is still waited for: it has not answered the previous query"}
		default:
			wait.Go(func() {
				defer e.release(i)
				results[i].Value, results[i].SampleAt, results[i].Problem = e.askCheck(ctx, q, tick)
			})
		}
	}
	wait.Wait()
	return results
}

func (e *entry) askCheck(ctx context.Context, q *checkQuery, tick time.Time) (float64, time.Time, *health.Problem) {
	r, p := e.server.instant(ctx, e.target.Key.Namespace, q.text, tick)
	if p == nil {
		p = e.skewed()
	}
	if p != nil {
		return 0, time.Time{}, p
	}
	s, p := r.one()
	if p != nil {
		return 0, time.Time{}, p
	}
	return s.value, s.at, nil
}

// claim marks a check's answer as outstanding, unless one already is.
func (e *entry) claim(i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pending[i] {
		return false
	}
	e.pending[i] = true
	return true
}

func (e *entry) release(i int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pending[i] = false
}
