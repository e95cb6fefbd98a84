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

	// These are guarded by the entry's asking.
	pending  bool // an answer is outstanding
	standing standing
	past     pastAnswers
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
		if results[i].Problem = e.unasked(q, tick); results[i].Problem != nil {
			continue
		}
		by, p := e.claim(q, tick)
		if p != nil {
			results[i].Problem = p
			continue
		}
		wait.Go(func() {
			results[i].Value, results[i].SampleAt, results[i].Problem = e.askCheck(ctx, by, q, tick)
		})
	}
	wait.Wait()
	return results
}

// unasked says why a check is not asked for its value at a tick, whatever the server does.
func (e *entry) unasked(q *checkQuery, tick time.Time) *health.Problem {
	if q.problem != nil {
		return q.problem
	}
	return e.tooEarly(q, tick)
}

func (e *entry) askCheck(ctx context.Context, by caller, q *checkQuery, tick time.Time) (float64, time.Time, *health.Problem) {
	r, err := e.server.instant(ctx, by, q.text, tick)
	if p := e.release(q, tick, err); p != nil {
		return 0, time.Time{}, p
	}
	if p := e.skewed(); p != nil {
		return 0, time.Time{}, p
	}
	s, p := r.one()
	if p != nil {
		return 0, time.Time{}, p
	}
	return s.value, s.at, nil
}

// claim marks a check's answer as outstanding, unless one already is, or it is too early
// to ask after earlier ones did not come.
func (e *entry) claim(q *checkQuery, tick time.Time) (caller, *health.Problem) {
	e.asking.Lock()
	defer e.asking.Unlock()
	q.standing.settle(e.server.checks.answers.Load(), e.config.Interval)
	switch {
	case q.pending:
		return caller{}, &health.Problem{Reason: v1alpha1.ReasonProviderError, Message: "the metrics server " + e.server.host + " is still waited for: it has not answered the previous query"}
	case q.standing.waits(tick):
		return caller{}, q.standing.failed.problem
	}
	q.pending = true
	return caller{tenant: e.target.Key.Namespace, last: q.standing.failures > 0}, nil
}

// release notes that an answer is not outstanding any more. If it has not come, it says why.
func (e *entry) release(q *checkQuery, tick time.Time, err error) *health.Problem {
	e.asking.Lock()
	defer e.asking.Unlock()
	q.pending = false
	if err == nil {
		q.standing.succeed()
		return nil
	}
	p := e.server.explain(err)
	if slow(err) {
		q.standing.fail(failure{problem: p, tick: tick, took: afterOf(err), at: e.server.clock.Now()})
	}
	return p
}
