package dashboard

import (
	"context"
	"errors"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/weightedrollout/weightedrollout/internal/live"
)

const (
	// evidenceEvery is how often the live evidence of a rollout that somebody looks at is
	// read. Who has no right to it is asked for more seldom: one may still be given.
	evidenceEvery = 5 * time.Second
	withoutRight  = time.Minute
	// eventsEvery is how often events are read where the rollout does not change.
	eventsEvery = 15 * time.Second
	// soon is when to look again for a rollout that there is none of.
	soon = time.Second
)

// findings are what is read of a rollout beside the object itself.
type findings struct {
	events      []eventsv1.Event
	eventsErr   error
	evidence    *live.Document
	evidenceErr error
}

// lookouts read evidence and events of those rollouts that somebody looks at: once, for
// all who do.
type lookouts struct {
	hub    *hub
	source Source
	// every is evidenceEvery, but in tests.
	every time.Duration

	mu  sync.Mutex
	all map[string]*lookout
}

// lookout reads evidence and events of one rollout.
type lookout struct {
	key     string
	cancel  context.CancelFunc
	changed chan struct{} // holds one

	// Guarded by lookouts.
	readers map[*page]struct{}
	found   findings
	finds   int // how often something was found
}

func newLookouts(h *hub, source Source) *lookouts {
	return &lookouts{hub: h, source: source, every: evidenceEvery, all: map[string]*lookout{}}
}

// join lets a page look at a rollout until it leaves.
func (l *lookouts) join(ctx context.Context, k string, p *page) *lookout {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.all[k]
	if o == nil {
		o = &lookout{key: k, changed: make(chan struct{}, 1), readers: map[*page]struct{}{}}
		ctx, o.cancel = context.WithCancel(ctx)
		l.all[k] = o
		go l.evidence(ctx, o)
		go l.events(ctx, o)
	}
	o.readers[p] = struct{}{}
	return o
}

func (l *lookouts) leave(o *lookout, p *page) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(o.readers, p)
	if len(o.readers) == 0 {
		o.cancel()
		delete(l.all, o.key)
	}
}

// look returns what was found, and how often something was.
func (l *lookouts) look(o *lookout) (found findings, finds int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return o.found, o.finds
}

func (l *lookouts) note(o *lookout, change func(*findings)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&o.found)
	o.finds++
	for p := range o.readers {
		p.nudge()
	}
}

// evidence reads the live evidence again and again.
func (l *lookouts) evidence(ctx context.Context, o *lookout) {
	for ctx.Err() == nil {
		pause := soon
		if wr, _ := l.hub.find(o.key); wr != nil {
			document, err := l.source.Evidence(ctx, wr)
			if err != nil && ctx.Err() != nil {
				return
			}
			if share, ok := measured(document); ok {
				l.hub.measure(o.key, share)
			}
			pause = l.every
			if errors.Is(err, ErrNoRight) {
				pause = withoutRight
			}
			l.note(o, func(f *findings) { f.evidence, f.evidenceErr = document, err })
		}
		rest(ctx, pause, nil)
	}
}

// events reads the events, after each change as well.
func (l *lookouts) events(ctx context.Context, o *lookout) {
	for ctx.Err() == nil {
		pause := soon
		if wr, _ := l.hub.find(o.key); wr != nil {
			pause = eventsEvery
			events, err := l.source.Events(ctx, wr)
			if err != nil && ctx.Err() != nil {
				return
			}
			l.note(o, func(f *findings) { f.events, f.eventsErr = events, err })
		}
		rest(ctx, pause, o.changed)
	}
}

// stir says that the rollout has changed, so that there may be events.
func (o *lookout) stir() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// measured is the canary's part of the requests that the gateway has counted, in percent.
func measured(d *live.Document) (float64, bool) {
	if d == nil || d.Traffic == nil || d.Traffic.NotCounted != "" || d.Traffic.Canary+d.Traffic.Stable <= 0 {
		return 0, false
	}
	return 100 * float64(d.Traffic.Canary) / float64(d.Traffic.Canary+d.Traffic.Stable), true
}

// rest waits for a while, or until something comes.
func rest(ctx context.Context, d time.Duration, come <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-come:
	case <-timer.C:
	}
}
