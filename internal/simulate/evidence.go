package simulate

import (
	"slices"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
)

const (
	// maxTicks is how many intervals are read at most, after an outage.
	maxTicks = 240
	// minTicks is how many of the newest windows are kept at least.
	minTicks = 60
)

// target is what evidence is about. Evidence for one says nothing about another.
type target struct {
	attempt     int64
	subject     health.Track
	confirmedAt time.Time
}

// evidence is what was measured of the present target, by the same rules by which the
// controller's telemetry gathers it: which windows are read when, which are read
// later, and which are kept.
type evidence struct {
	config health.Config
	meter  *meter
	target target

	windows []health.Window // by rising End
	read    time.Time       // the newest tick whose metrics were read
	asked   time.Time       // the newest tick that was asked for
	signal  health.Signal   // the last one that was told

	judged    health.Verdict // at judgedAt, of these windows
	judgedAt  time.Time
	isCurrent bool
}

// track says what is to be measured. Another target drops the evidence.
func (e *evidence) track(t target, now time.Time) {
	if e.target.attempt == t.attempt && e.target.subject == t.subject && e.target.confirmedAt.Equal(t.confirmedAt) {
		return
	}
	*e = evidence{config: e.config, meter: e.meter, target: t}
	e.signal = e.verdict(now).Signal()
}

// verdict judges the evidence. Every moment asks for it several times.
func (e *evidence) verdict(now time.Time) health.Verdict {
	if !e.isCurrent || !e.judgedAt.Equal(now) {
		e.isCurrent, e.judgedAt = true, now
		e.judged = health.Evaluate(health.Input{
			Config: e.config, Subject: e.target.subject, ConfirmedAt: e.target.confirmedAt, Windows: e.windows, Now: now,
		})
	}
	return e.judged
}

// due returns the span of ticks that have not been read yet, if there are any.
func (e *evidence) due(now time.Time) (from, to time.Time, ok bool) {
	if e.config.Disabled || e.target.confirmedAt.IsZero() {
		return from, to, false
	}
	to = floor(now, e.config.Interval)
	first := ceil(e.target.confirmedAt.Add(e.config.SampleDelay+e.config.Window), e.config.Interval)
	if to.Before(first) || !to.After(e.asked) {
		return from, to, false
	}
	if e.config.Preset == "" {
		return to, to, true
	}
	from = latest(first, to.Add(-(maxTicks-1)*e.config.Interval), ceil(to.Add(-health.Memory), e.config.Interval))
	if !e.read.IsZero() {
		from = latest(from, e.read.Add(e.config.Interval))
	}
	return from, to, true
}

// poll reads what is due, at a time since the start and in the given mood of the
// server. It tells whether the verdict's signal has changed.
func (e *evidence) poll(now time.Time, elapsed time.Duration, mood Metrics) bool {
	from, to, ok := e.due(now)
	if !ok {
		return false
	}
	e.asked = to
	failed := mood == MetricsOutage && e.config.Preset != ""
	if failed {
		// Unread ticks are read with the next one.
		from = to
	} else {
		e.read = to
	}
	for end := from; !end.After(to); end = end.Add(e.config.Interval) {
		w := e.meter.window(e.config, end, mood)
		if end.Equal(to) {
			w.Checks = e.meter.answers(end, elapsed, mood)
		}
		e.insert(e.config.Compact(w))
	}
	e.trim()
	e.isCurrent = false
	signal := e.verdict(now).Signal()
	changed := signal != e.signal
	e.signal = signal
	return changed
}

// insert puts a window in its place. One that was read again replaces the earlier one,
// but does not take away answers that cannot be had again.
func (e *evidence) insert(w health.Window) {
	at, found := slices.BinarySearchFunc(e.windows, w.End, func(x health.Window, end time.Time) int { return x.End.Compare(end) })
	if !found {
		e.windows = slices.Insert(e.windows, at, w)
		return
	}
	if w.Checks == nil {
		w.Checks = e.windows[at].Checks
	}
	e.windows[at] = w
}

// trim drops the windows that no evaluation needs.
func (e *evidence) trim() {
	if len(e.windows) <= minTicks {
		return
	}
	newest := e.windows[len(e.windows)-1].End
	ticks := min(max(int64(e.config.For/e.config.Interval)+8, minTicks), maxTicks)
	recent := newest.Add(-time.Duration(ticks) * e.config.Interval)
	oldest := newest.Add(-max(health.Memory, e.config.For) - e.config.Window)
	e.windows = slices.DeleteFunc(e.windows, func(w health.Window) bool {
		return w.End.Before(oldest) || w.End.Before(recent) && !e.config.OnGrid(w.End)
	})
}

// targetOf says what a status wants to have measured: nothing while the track under
// test has no traffic or the attempt has ended, and else the share from its
// confirmation on, or from its decision until then.
func targetOf(s *v1alpha1.WeightedRolloutStatus) target {
	t := target{attempt: s.Attempt, subject: rollout.Subject(s)}
	nothing := v1alpha1.Percent("0")
	switch s.Outcome {
	case v1alpha1.OutcomeInProgress, v1alpha1.OutcomePromoted:
	case v1alpha1.OutcomeReturning:
		nothing = "100"
	case v1alpha1.OutcomeCompleted, v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeSuperseded:
		return t
	}
	switch share := s.Share; {
	case share.Desired == nil || *share.Desired == nothing:
	case share.ConfirmedAt != nil:
		t.confirmedAt = share.ConfirmedAt.Time
	case share.ChangedAt != nil:
		t.confirmedAt = share.ChangedAt.Time
	}
	return t
}

// floor returns the last multiple of an interval since the Unix epoch that is not after t.
func floor(t time.Time, interval time.Duration) time.Time {
	step := interval.Milliseconds()
	ms := t.UnixMilli()
	return time.UnixMilli(ms - ms%step).UTC()
}

// ceil returns the first multiple of an interval that is not before t.
func ceil(t time.Time, interval time.Duration) time.Time {
	f := floor(t, interval)
	if f.Before(t) {
		f = f.Add(interval)
	}
	return f
}

func latest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.After(first) {
			first = t
		}
	}
	return first
}
