package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	past := newPast(q.name, from, until, e.config.Interval)
	err := e.server.check(ctx, by, "/api/v1/query_range", rangeOf(q.text, from, until, e.config.Interval), past.cost(), func(body io.Reader) error {
		return readMatrix(body, limits{series: maxElements, samples: len(past.answers)}, past.add)
	})
	skewed := e.skewed() != nil
	e.asking.Lock()
	defer e.asking.Unlock()
	q.past.pending = false
	switch {
	case err == nil && !skewed:
		q.past.done = true
		return past.result()
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
	_, large := errors.AsType[*sizeError](err)
	return (refused || large) && !slow(err) || errors.Is(err, errNoMatrix)
}

// past takes a check's answers at the ticks of a span. As at a single time each must be one
// number.
type past struct {
	name      string
	from      time.Time
	interval  time.Duration
	answers   []health.Answers
	found     []int // how many series have a value at the tick
	histogram bool
}

// pastCost is what an answer at one tick takes, in bytes.
const pastCost = 256

func newPast(name string, from, until time.Time, interval time.Duration) *past {
	n := int(until.Sub(from)/interval) + 1
	p := &past{name: name, from: from, interval: interval, answers: make([]health.Answers, n), found: make([]int, n)}
	for i := range p.answers {
		p.answers[i].End = from.Add(time.Duration(i) * interval)
		p.answers[i].Checks = []health.CheckResult{{Name: name}}
	}
	return p
}

func (p *past) cost() int64 { return answerCost + pastCost*int64(len(p.answers)) }

func (p *past) add(line *series) error {
	p.histogram = p.histogram || line.Native
	for _, v := range line.Values {
		d := v.at.Sub(p.from)
		if at := int(d / p.interval); d >= 0 && d%p.interval == 0 && at < len(p.answers) {
			p.found[at]++
			p.answers[at].Checks[0] = answerOf(p.name, v)
		}
	}
	return nil
}

func (p *past) result() []health.Answers {
	for i, n := range p.found {
		if problem := notOne(n, p.histogram); problem != nil {
			p.answers[i].Checks[0] = health.CheckResult{Name: p.name, Problem: problem}
		}
	}
	return p.answers
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
