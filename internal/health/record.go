package health

import (
	"slices"
	"time"

	"github.com/weightedrollout/weightedrollout/internal/weights"
)

const (
	// MaxTicks is how many intervals are read at most at once, after a restart or an
	// outage.
	MaxTicks = 3600
	// maxRun is how many of the newest windows are kept at most to see a long breach.
	maxRun = 240
	// minTicks is how many of the newest windows are kept at least. Older ones that
	// do not lie on the grid are no longer needed.
	minTicks = 60
	// smoothed is how many of the newest windows of the grid are kept at least. What an
	// average has taken in before them counts for next to nothing by then.
	smoothed = 30
)

// Record is the evidence about one share as it grows: which windows are still to be
// read, and those that were. It is not safe for concurrent use.
type Record struct {
	config      Config
	confirmedAt time.Time
	windows     []Window // by rising End
	past        Past     // what the windows up to settled have shown
	settled     time.Time
	input       Input     // how they were judged
	read        time.Time // the newest tick whose metrics were read
	asked       time.Time // the newest tick that is being or was read
	early       []Answers // of ticks whose other metrics are not read yet
}

// Answers are answers to the spec's own checks at a tick.
type Answers struct {
	// End is the tick, and the end of its window.
	End time.Time
	// Checks are the answers.
	Checks []CheckResult
}

// Share is what the evidence is about.
type Share struct {
	// Config is the parsed health section.
	Config Config
	// Subject is the track that is judged.
	Subject Track
	// Unopposed says that it has all traffic.
	Unopposed bool
	// ComparedFrom is when its comparison with stable begins; Never: it does not.
	ComparedFrom time.Time
	// ConfirmedAt is when the gateway confirmed the share; zero: it has not yet.
	ConfirmedAt time.Time
	// CanaryShare is what the weights give the canary, to compare the traffic with.
	CanaryShare weights.Share
	// Compared is what earlier shares of the attempt have shown beside stable.
	Compared Comparison
}

// Record returns an empty record of the share. Of one that is not confirmed nothing is
// ever due.
func (s Share) Record() Record {
	in := Input{Config: s.Config, Subject: s.Subject, Unopposed: s.Unopposed, ComparedFrom: s.ComparedFrom, ConfirmedAt: s.ConfirmedAt, CanaryShare: s.CanaryShare}
	return Record{config: s.Config, confirmedAt: s.ConfirmedAt, input: in, past: s.Config.Begin(s.Compared)}
}

// Input returns the evidence for an evaluation at the given time.
func (r *Record) Input(now time.Time) Input {
	in := r.input
	in.Past, in.Windows, in.Now = r.past, r.windows, now
	return in
}

// Windows returns the windows, by rising End. They share their insides with the
// record's, which change with the next Add.
func (r *Record) Windows() []Window { return r.windows }

// LastRead is the newest tick whose metrics were read; zero: there is none.
func (r *Record) LastRead() time.Time { return r.read }

// Due returns the span of ticks that have not been read yet, if there are any. With
// checks alone that is the present one: see PastFrom.
func (r *Record) Due(now time.Time) (from, to time.Time, ok bool) {
	interval := r.config.Interval
	if r.config.Disabled || r.confirmedAt.IsZero() || interval < time.Millisecond {
		return from, to, false
	}
	to = Floor(now, interval)
	first := r.first()
	if r.asked.After(now.Add(interval)) {
		r.forgetAfter(now)
	}
	if to.Before(first) || !to.After(r.asked) {
		return from, to, false
	}
	if r.config.Preset == "" {
		return to, to, true
	}
	from = latest(first, to.Add(-(MaxTicks-1)*interval), Ceil(to.Add(-Memory), interval))
	if !r.read.IsZero() {
		from = latest(from, r.read.Add(interval))
	}
	return from, to, true
}

// first is the first tick whose window lies after the confirmation.
func (r *Record) first() time.Time {
	return Ceil(r.confirmedAt.Add(r.config.SampleDelay+r.config.Window), r.config.Interval)
}

// PastFrom returns the first tick from which on answers to a check matter to an evaluation
// at a tick: in a breach, or in the window that opens a gate. What weighs in the score does
// so for longer.
func (r *Record) PastFrom(tick time.Time, k Check) time.Time {
	c := r.config
	need := max(c.For+c.Window, steadyStreak*c.Interval)
	if k.Importance > 0 {
		need = max(need, Memory)
	}
	return latest(r.first(), Ceil(tick.Add(-min(need, (MaxTicks-1)*c.Interval)), c.Interval))
}

// Answer merges answers to own checks into the windows of their ticks. Those of a tick that
// is still to be read wait for it. Without a preset they are all that there is of a window.
func (r *Record) Answer(answers []Answers) {
	for _, a := range answers {
		at, found := slices.BinarySearchFunc(r.windows, a.End, func(x Window, end time.Time) int { return x.End.Compare(end) })
		switch {
		case found:
			r.windows[at].Checks = withAnswers(r.windows[at].Checks, a.Checks)
		case r.config.Preset == "":
			r.insert(Window{Start: a.End.Add(-r.config.Window), End: a.End, Checks: a.Checks})
		case a.End.After(r.read) && len(r.early) < MaxTicks*max(len(r.config.Checks), 1):
			r.early = append(r.early, a)
		}
	}
	r.trim()
}

// withAnswers adds the answers that are not there yet.
func withAnswers(to, more []CheckResult) []CheckResult {
	to = slices.Clip(to)
	for _, k := range more {
		if !slices.ContainsFunc(to, func(x CheckResult) bool { return x.Name == k.Name }) {
			to = append(to, k)
		}
	}
	return to
}

// Asked notes that the ticks up to this one are being read.
func (r *Record) Asked(tick time.Time) { r.asked = tick }

// Add merges windows into the record, each compacted, and drops those that no
// evaluation needs. The ticks up to readTo are not due again; of a zero readTo those
// of the windows are, since they could not be read.
func (r *Record) Add(windows []Window, readTo time.Time) {
	for _, w := range windows {
		r.insert(r.config.Compact(w))
	}
	r.settle()
	if r.early != nil {
		early := r.early
		r.early = nil
		r.Answer(early)
	}
	r.trim()
	if readTo.After(r.read) && !readTo.After(r.asked) {
		r.read = readTo
		r.early = slices.DeleteFunc(r.early, func(a Answers) bool { return !a.End.After(readTo) })
	}
}

// forgetAfter starts over when the clock was set back: windows of the future say
// nothing about the present.
func (r *Record) forgetAfter(now time.Time) {
	r.windows = slices.DeleteFunc(slices.Clone(r.windows), func(w Window) bool { return w.End.After(now) })
	r.read, r.asked, r.early = time.Time{}, time.Time{}, nil
}

// insert puts a window in its place. One that was read again replaces the earlier
// one, but does not take away answers that cannot be had again.
func (r *Record) insert(w Window) {
	at, found := slices.BinarySearchFunc(r.windows, w.End, func(x Window, end time.Time) int { return x.End.Compare(end) })
	if !found {
		if len(r.windows) == cap(r.windows) {
			// Growing by a few and not by a factor: there can be thousands of records.
			r.windows = append(make([]Window, 0, len(r.windows)+16), r.windows...)
		}
		r.windows = slices.Insert(r.windows, at, w)
		return
	}
	if w.Checks == nil {
		w.Checks = r.windows[at].Checks
	}
	r.windows[at] = w
}

// settle takes the windows that will not be read again into the past, so that no
// evaluation has to compare them anew. The newest two ticks can still change.
func (r *Record) settle() {
	if len(r.windows) == 0 {
		return
	}
	until := r.windows[len(r.windows)-1].End.Add(-2 * r.config.Interval)
	for i := range r.windows {
		w := &r.windows[i]
		if w.End.After(until) {
			return
		}
		if w.End.After(r.settled) && r.config.OnGrid(w.End) {
			r.past = r.input.pastWith(r.past, w)
			r.settled = w.End
		}
	}
}

// trim drops the windows that no evaluation needs: the newest are kept, and of
// older ones those on the grid, whose counts are summed and which suffice to see
// a long breach.
func (r *Record) trim() {
	if len(r.windows) <= minTicks {
		return
	}
	newest := r.windows[len(r.windows)-1].End
	ticks := min(max(int64(r.config.For/r.config.Interval)+8, minTicks), maxRun)
	recent := newest.Add(-time.Duration(ticks) * r.config.Interval)
	oldest := newest.Add(-max(Memory, r.config.For, smoothed*r.config.Window) - r.config.Window)
	r.windows = slices.DeleteFunc(r.windows, func(w Window) bool {
		return w.End.Before(oldest) || w.End.Before(recent) && !r.config.OnGrid(w.End)
	})
}

// Floor returns the last tick that is not after t: a multiple of the interval, of
// at least a millisecond, since the Unix epoch.
func Floor(t time.Time, interval time.Duration) time.Time {
	ms, step := t.UnixMilli(), max(interval.Milliseconds(), 1)
	rest := ms % step
	if rest < 0 {
		rest += step
	}
	return time.UnixMilli(ms - rest)
}

// Ceil returns the first tick that is not before t.
func Ceil(t time.Time, interval time.Duration) time.Time {
	f := Floor(t, interval)
	if f.Before(t) {
		f = f.Add(time.Duration(max(interval.Milliseconds(), 1)) * time.Millisecond)
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
