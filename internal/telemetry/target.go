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
	"github.com/weightedrollout/weightedrollout/internal/weights"
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
	// Stable and Canary are the two backends, in the namespace of Key where they name
	// none. Their workloads do not matter here.
	Stable, Canary v1alpha1.Track
	// Health is the spec's health section, and For is onUnhealthy.for.
	Health *v1alpha1.Health
	For    v1alpha1.Duration
	// Subject is the track that is judged.
	Subject health.Track
	// ConfirmedAt is when the gateway confirmed the present share; zero: not yet.
	ConfirmedAt time.Time
	// Unopposed says that the subject has all traffic.
	Unopposed bool
	// ComparedFrom is when its comparison with stable begins; health.Never: it does not.
	ComparedFrom time.Time
	// CanaryShare is what the weights give the canary, to compare the traffic with.
	CanaryShare weights.Share
	// Compared is what earlier shares of the attempt have shown beside stable. It is
	// read when the target is new.
	Compared health.Comparison
}

// same says whether evidence that was gathered for one target speaks for another.
func (t *Target) same(u *Target) bool {
	return t.Key == u.Key && t.UID == u.UID && t.Attempt == u.Attempt && t.Route == u.Route &&
		sameBackend(t.Stable, u.Stable) && sameBackend(t.Canary, u.Canary) && t.Subject == u.Subject && t.Unopposed == u.Unopposed && t.ComparedFrom.Equal(u.ComparedFrom) && t.CanaryShare == u.CanaryShare && t.For == u.For &&
		t.ConfirmedAt.Equal(u.ConfirmedAt) && reflect.DeepEqual(t.Health, u.Health)
}

// sameBackend leaves the workload out: which pods serve is for the Service to say, and
// a pointer tells nothing.
func sameBackend(a, b v1alpha1.Track) bool {
	a.Workload, b.Workload = nil, nil
	return a == b
}

// entry is a target with its evidence.
type entry struct {
	target  Target
	config  health.Config
	preset  preset
	server  *server
	problem *health.Problem // nothing can be read for a reason that time does not cure
	stable  string          // the preset's names of the backends
	canary  string
	queries []checkQuery
	gone    context.Context // ends when the target is dropped, and with it its queries
	drop    context.CancelFunc

	mu     sync.Mutex
	record health.Record
	signal health.Signal // the last one that was told

	asking   sync.Mutex // guards how requests go: this, and what the queries have of it
	standing standing   // of what the preset asks
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
	e.config = config
	e.record = health.Share{Config: config, Subject: t.Subject, Unopposed: t.Unopposed, ComparedFrom: t.ComparedFrom, ConfirmedAt: t.ConfirmedAt, CanaryShare: t.CanaryShare, Compared: t.Compared}.Record()
	if config.Disabled {
		return e
	}
	e.queries = checkQueries(t, config)
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
	if !e.polled() {
		return from, to, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.record.Due(now)
}

// placed returns the batch that the entry belongs to, and why it is not to be asked for
// yet, if it is not.
func (e *entry) placed(now time.Time) (b batch, last bool, waits *health.Problem) {
	e.asking.Lock()
	defer e.asking.Unlock()
	s := &e.standing
	s.settle(e.server.batches.answers.Load(), e.config.Interval)
	if s.waits(now) {
		waits = s.failed.problem
	}
	return batch{e.group(), s.apart}, s.failures > 0, waits
}

// inherit takes over how requests about the same rollout went: another share asks for the
// same things.
func (e *entry) inherit(from *entry) {
	if from == nil || from.server == nil || from.server != e.server || from.group() != e.group() {
		return
	}
	from.asking.Lock()
	defer from.asking.Unlock()
	e.standing = from.standing
	for i := range e.queries {
		for j := range from.queries {
			if e.queries[i].text == from.queries[j].text {
				e.queries[i].standing = from.queries[j].standing
			}
		}
	}
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
	return health.Evaluate(e.record.Input(now))
}

// inputWith is the evidence together with windows that it does not hold yet.
func (e *entry) inputWith(windows []health.Window, now time.Time) health.Input {
	in := e.record.Input(now)
	in.Windows = append(append([]health.Window(nil), in.Windows...), windows...)
	return in
}

// add merges windows into the evidence, and says whether the verdict's signal is
// another one now.
func (e *entry) add(windows []health.Window, readTo, now time.Time) (changed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.record.Add(windows, readTo)
	return e.refreshLocked(now)
}

// answer merges answers to own checks into the evidence, as add does with windows.
func (e *entry) answer(answers []health.Answers, now time.Time) (changed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.record.Answer(answers)
	return e.refreshLocked(now)
}

// fail notes that the latest request about the preset's metrics was not answered, and
// succeed that it was.
func (e *entry) fail(f failure) {
	e.asking.Lock()
	defer e.asking.Unlock()
	e.standing.fail(f)
}

func (e *entry) succeed() {
	e.asking.Lock()
	defer e.asking.Unlock()
	e.standing.succeed()
}

func (e *entry) othersAnswered(answers int64) bool {
	e.asking.Lock()
	defer e.asking.Unlock()
	return e.standing.othersAnswered(answers)
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

// bad reports whether the verdict that was last told may lower the share.
func (e *entry) bad() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.signal.State == v1alpha1.VerdictUnhealthy || e.signal.State == v1alpha1.VerdictDegraded
}

// copyWindows returns a copy of the evidence.
func (e *entry) copyWindows() []health.Window {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.record.Windows())
}
