package telemetry

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// Target is a rollout whose evidence is wanted.
type Target struct {
	// Key and UID name the rollout's object.
	Key types.NamespacedName
	UID types.UID
	// Attempt counts the walks through the plan.
	Attempt int64
	// Route is the name that {{route}} stands for.
	Route string
	// Stable and Canary are the two backends, in the namespace of Key.
	Stable, Canary v1alpha1.Track
	// Health is the spec's health section, and For is onUnhealthy.for.
	Health *v1alpha1.Health
	For    v1alpha1.Duration
	// Subject is the track that is judged.
	Subject health.Track
	// ConfirmedAt is when the gateway confirmed the present share; zero: not yet.
	ConfirmedAt time.Time
}

// same says whether evidence that was gathered for one target speaks for another.
func (t *Target) same(u *Target) bool {
	return t.Key == u.Key && t.UID == u.UID && t.Attempt == u.Attempt && t.Route == u.Route &&
		t.Stable == u.Stable && t.Canary == u.Canary && t.Subject == u.Subject && t.For == u.For &&
		t.ConfirmedAt.Equal(u.ConfirmedAt) && reflect.DeepEqual(t.Health, u.Health)
}

const (
	// maxTicks is how many intervals are read at most, after a restart or an outage.
	maxTicks = 240
	// minTicks is how many of the newest windows are kept at least. Older ones that
	// do not lie on the grid are no longer needed.
	minTicks = 60
)

// entry is a target with its evidence.
type entry struct {
	target   Target
	config   health.Config
	preset   preset
	server   *server
	problem  *health.Problem // nothing can be read for a reason that time does not cure
	stable   string          // the preset's names of the backends
	canary   string
	queries  []checkQuery
	gone     context.Context // ends when the target is dropped, and with it its queries
	drop     context.CancelFunc
	interval int64 // milliseconds

	mu      sync.Mutex
	windows []health.Window // by rising End
	read    time.Time       // the newest tick whose metrics were read
	asked   time.Time       // the newest tick that is being or was read
	pending []bool          // per query: an answer is outstanding
	signal  health.Signal   // the last one that was told
}

// newEntry prepares a target. The server is filled in by the collector.
func newEntry(t Target) *entry {
	t.Health = t.Health.DeepCopy()
	e := &entry{target: t}
	e.gone, e.drop = context.WithCancel(context.Background())
	config, err := health.ConfigFrom(t.Health, t.For)
	if err != nil {
		e.problem = &health.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()}
		return e
	}
	e.config, e.interval = config, config.Interval.Milliseconds()
	if config.Disabled {
		return e
	}
	e.queries = checkQueries(t, config)
	e.pending = make([]bool, len(e.queries))
	if config.Preset == "" {
		return e
	}
	e.preset = presets[config.Preset]
	e.stable = e.preset.backend(t.Key.Namespace, t.Stable)
	e.canary = e.preset.backend(t.Key.Namespace, t.Canary)
	if e.stable == e.canary {
		e.problem = &health.Problem{Reason: v1alpha1.ReasonAmbiguousResult, Message: "the gateway's metrics give stable and canary the same name, so they cannot be told apart: rename one of the Services"}
	}
	return e
}

// polled says whether there is anything to read.
func (e *entry) polled() bool {
	return e.problem == nil && !e.config.Disabled && e.server != nil
}

// due returns the span of ticks that have not been read yet, if there are any.
func (e *entry) due(now time.Time) (from, to time.Time, ok bool) {
	if !e.polled() || e.target.ConfirmedAt.IsZero() {
		return from, to, false
	}
	to = floor(now, e.interval)
	first := ceil(e.target.ConfirmedAt.Add(e.config.SampleDelay+e.config.Window), e.interval)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked.After(now.Add(e.config.Interval)) {
		e.forgetAfter(now)
	}
	if to.Before(first) || !to.After(e.asked) {
		return from, to, false
	}
	if e.config.Preset == "" {
		// The spec's own queries are asked for the present only.
		return to, to, true
	}
	from = latest(first, to.Add(-(maxTicks-1)*e.config.Interval), ceil(to.Add(-health.Memory), e.interval))
	if !e.read.IsZero() {
		from = latest(from, e.read.Add(e.config.Interval))
	}
	return from, to, true
}

// forgetAfter starts over when the clock was set back: windows of the future say
// nothing about the present. The caller holds the lock.
func (e *entry) forgetAfter(now time.Time) {
	e.windows = slices.DeleteFunc(slices.Clone(e.windows), func(w health.Window) bool { return w.End.After(now) })
	e.read, e.asked = time.Time{}, time.Time{}
}

// verdict judges the evidence.
func (e *entry) verdict(now time.Time) health.Verdict {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.verdictLocked(now)
}

func (e *entry) verdictLocked(now time.Time) health.Verdict {
	if e.problem != nil {
		return health.Unknown(e.problem.Reason, e.problem.Message)
	}
	return health.Evaluate(e.input(e.windows, now))
}

func (e *entry) input(windows []health.Window, now time.Time) health.Input {
	return health.Input{
		Config: e.config, Subject: e.target.Subject, ConfirmedAt: e.target.ConfirmedAt,
		Windows: windows, Now: now,
	}
}

// add merges windows into the evidence, and says whether the verdict's signal is
// another one now.
func (e *entry) add(windows []health.Window, readTo, now time.Time) (changed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range windows {
		e.insert(e.config.Compact(w))
	}
	e.trim()
	if readTo.After(e.read) && !readTo.After(e.asked) {
		e.read = readTo
	}
	return e.refreshLocked(now)
}

// refresh says whether the verdict's signal has changed since it was last told.
func (e *entry) refresh(now time.Time) (changed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refreshLocked(now)
}

func (e *entry) refreshLocked(now time.Time) bool {
	signal := e.verdictLocked(now).Signal()
	changed := signal != e.signal
	e.signal = signal
	return changed
}

// insert puts a window in its place. One that was read again replaces the earlier
// one, but does not take away answers that cannot be had again.
func (e *entry) insert(w health.Window) {
	at, found := slices.BinarySearchFunc(e.windows, w.End, func(x health.Window, end time.Time) int { return x.End.Compare(end) })
	if !found {
		if len(e.windows) == cap(e.windows) {
			// Growing by a few and not by a factor: there can be thousands of targets.
			e.windows = append(make([]health.Window, 0, len(e.windows)+16), e.windows...)
		}
		e.windows = slices.Insert(e.windows, at, w)
		return
	}
	if w.Checks == nil {
		w.Checks = e.windows[at].Checks
	}
	e.windows[at] = w
}

// trim drops the windows that no evaluation needs: the newest are kept, and of
// older ones those on the grid, whose counts are summed and which suffice to see
// a long breach.
func (e *entry) trim() {
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

// copyWindows returns a copy of the evidence.
func (e *entry) copyWindows() []health.Window {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.windows)
}

// floor returns the last multiple of an interval, in milliseconds since the Unix
// epoch, that is not after t.
func floor(t time.Time, interval int64) time.Time {
	ms := t.UnixMilli()
	rest := ms % interval
	if rest < 0 {
		rest += interval
	}
	return time.UnixMilli(ms - rest)
}

// ceil returns the first multiple of an interval that is not before t.
func ceil(t time.Time, interval int64) time.Time {
	f := floor(t, interval)
	if f.Before(t) {
		f = f.Add(time.Duration(interval) * time.Millisecond)
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
