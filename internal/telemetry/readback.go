package telemetry

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// pastAnswers are the answers to a check at the ticks before the first at which it was
// asked. After a restart they are asked for by one request, behind everything of the
// present.
type pastAnswers struct {
	first    time.Time // the first tick at which it was asked
	done     bool      // they are there, or not to be had
	pending  bool
	standing standing
}

// boundsText is what PromQL knows of the span that a query is asked about. At the ticks of
// a span it means something else than at each of them alone.
var boundsText = regexp.MustCompile(`(?i)@\s*(start|end)\s*\(`)

// readBack asks for the past answers to a member's own checks, as far as they are still
// wanted.
func (c *Collector) readBack(ctx context.Context, m member) {
	e := m.entry
	for i := range e.queries {
		from, until, by, wanted := e.wantsPast(i, m.to)
		if !wanted {
			continue
		}
		c.inflight.Go(func() {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(e.gone, cancel)()
			c.answer(e, e.askPast(ctx, by, &e.queries[i], from, until)...)
		})
	}
}

// wantsPast returns the span of ticks at which a check's answers are wanted, and marks them
// as outstanding.
func (e *entry) wantsPast(i int, tick time.Time) (from, until time.Time, by caller, wanted bool) {
	e.asking.Lock()
	defer e.asking.Unlock()
	q, interval := &e.queries[i], e.config.Interval
	p := &q.past
	if p.first.IsZero() {
		p.first = tick
	}
	until = p.first.Add(-interval)
	from = e.record.PastFrom(tick, e.config.Checks[i])
	if q.reach > e.config.Window { // see tooEarly
		if begin := health.Ceil(e.target.ConfirmedAt.Add(e.config.SampleDelay+q.reach), interval); begin.After(from) {
			from = begin
		}
	}
	p.done = p.done || q.problem != nil || until.Before(from) || boundsText.MatchString(q.text)
	p.standing.settle(e.server.checks.answers.Load(), interval)
	if p.done || p.pending || p.standing.waits(tick) {
		return from, until, by, false
	}
	p.pending = true
	return from, until, caller{tenant: e.target.Key.Namespace, last: true}, true
}

// askPast asks a check for its values at a span of ticks.
func (e *entry) askPast(ctx context.Context, by caller, q *checkQuery, from, until time.Time) []health.Answers {
	interval := e.config.Interval
	var lines []series
	r, err := e.server.check(ctx, by, "/api/v1/query_range", rangeOf(q.text, from, until, interval))
	if err == nil {
		lines, err = r.matrix()
	}
	skewed := e.skewed() != nil
	e.asking.Lock()
	defer e.asking.Unlock()
	q.past.pending = false
	switch {
	case err == nil && !skewed:
		q.past.done = true
		return answersAt(lines, q.name, from, until, interval)
	case refused(err):
		q.past.done = true // it would be refused again
	case err != nil:
		q.past.standing.fail(failure{problem: e.server.explain(err), tick: until, took: afterOf(err), at: e.server.clock.Now()})
	}
	return nil
}

// refused reports whether the server cannot answer a query at all.
func refused(err error) bool {
	_, refused := errors.AsType[*apiError](err)
	return refused && !slow(err) || errors.Is(err, errNoMatrix)
}

// answersAt reads a check's answers at the ticks of a span. As at a single time each must be
// one number.
func answersAt(lines []series, name string, from, until time.Time, interval time.Duration) []health.Answers {
	answers := make([]health.Answers, int(until.Sub(from)/interval)+1)
	found := make([]int, len(answers))
	for i := range answers {
		answers[i].End = from.Add(time.Duration(i) * interval)
		answers[i].Checks = []health.CheckResult{{Name: name}}
	}
	histogram := false
	for _, line := range lines {
		histogram = histogram || len(line.Histograms) > 0
		for _, v := range line.Values {
			d := v.at.Sub(from)
			if at := int(d / interval); d >= 0 && d%interval == 0 && at < len(answers) {
				found[at]++
				answers[at].Checks[0] = answerOf(name, v)
			}
		}
	}
	for i, n := range found {
		if p := notOne(n, histogram); p != nil {
			answers[i].Checks[0] = health.CheckResult{Name: name, Problem: p}
		}
	}
	return answers
}

func answerOf(name string, s sample) health.CheckResult {
	if _, p := usable(s); p != nil {
		return health.CheckResult{Name: name, Problem: p}
	}
	return health.CheckResult{Name: name, Value: s.value, SampleAt: s.at}
}

// notOne says why so many values at one tick are no answer.
func notOne(n int, histogram bool) *health.Problem {
	switch {
	case histogram:
		return unsupported("the query gave a histogram: take a number from it, with histogram_quantile for instance")
	case n == 0:
		return &health.Problem{Reason: v1alpha1.ReasonNoData, Message: "the query gave no series"}
	case n > 1:
		return &health.Problem{Reason: v1alpha1.ReasonAmbiguousResult, Message: fmt.Sprintf("the query gave %d series: aggregate them into one, with sum or max for instance", n)}
	}
	return nil
}
