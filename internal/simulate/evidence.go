package simulate

import (
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// target is what evidence is about. Evidence for one says nothing about another.
type target struct {
	attempt     int64
	subject     health.Track
	confirmedAt time.Time
	unopposed   bool
	// comparedFrom is when the comparison with stable begins.
	comparedFrom time.Time
	desired      weights.Share
	// compared is what earlier shares have shown. It changes only with the others.
	compared health.Comparison
}

// evidence is what was measured of the present target.
type evidence struct {
	config health.Config
	meter  *meter
	target target
	record health.Record
	signal health.Signal // the last one that was told

	judged    health.Verdict // at judgedAt, of these windows
	judgedAt  time.Time
	isCurrent bool
}

// track says what is to be measured. Another target drops the evidence.
func (e *evidence) track(t target, now time.Time) {
	if e.target.attempt == t.attempt && e.target.subject == t.subject && e.target.confirmedAt.Equal(t.confirmedAt) && e.target.comparedFrom.Equal(t.comparedFrom) {
		return
	}
	*e = evidence{config: e.config, meter: e.meter, target: t, record: t.share(e.config).Record()}
	e.signal = e.verdict(now).Signal()
}

// verdict judges the evidence. Every moment asks for it several times.
func (e *evidence) verdict(now time.Time) health.Verdict {
	if !e.isCurrent || !e.judgedAt.Equal(now) {
		e.isCurrent, e.judgedAt = true, now
		e.judged = health.Evaluate(e.record.Input(now))
	}
	return e.judged
}

// poll reads what is due, at a time since the start and in the given mood of the
// server. It tells whether the verdict's signal has changed.
func (e *evidence) poll(now time.Time, elapsed time.Duration, mood Metrics) bool {
	from, to, ok := e.record.Due(now)
	if !ok {
		return false
	}
	e.record.Asked(to)
	readTo := to
	if mood == MetricsOutage && e.config.Preset != "" {
		// Unread ticks are read with the next one.
		from, readTo = to, time.Time{}
	}
	var windows []health.Window
	for end := from; !end.After(to); end = end.Add(e.config.Interval) {
		w := e.meter.window(e.config, end, mood)
		if end.Equal(to) {
			w.Checks = e.meter.answers(end, elapsed, mood)
		}
		windows = append(windows, w)
	}
	e.record.Add(windows, readTo)
	e.isCurrent = false
	signal := e.verdict(now).Signal()
	changed := signal != e.signal
	e.signal = signal
	return changed
}

func (t target) share(c health.Config) health.Share {
	return health.Share{Config: c, Subject: t.subject, Unopposed: t.unopposed, ComparedFrom: t.comparedFrom, ConfirmedAt: t.confirmedAt, CanaryShare: t.desired, Compared: t.compared}
}

// targetOf says what a rollout wants to have measured.
func targetOf(spec *v1alpha1.WeightedRolloutSpec, s *v1alpha1.WeightedRolloutStatus) target {
	return target{
		attempt: s.Attempt, subject: rollout.Subject(s), confirmedAt: rollout.MeasuredFrom(s),
		unopposed: rollout.Unopposed(s), comparedFrom: rollout.ComparedFrom(spec, s), desired: rollout.CanaryShare(s), compared: rollout.Compared(s),
	}
}
