package dashboard

import (
	"context"
	"sync"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// relistAfter is the pause between two readings of all rollouts: after a watch has ended,
// and while the API server cannot be asked.
const relistAfter = 2 * time.Second

// hub holds all rollouts, and tells every page of changes. There is one watch for all.
type hub struct {
	source Source
	now    func() time.Time

	mu       sync.Mutex
	rollouts map[string]*known
	// synced says that they have been read once. trouble says why nothing new comes, and
	// fresh is until when all that is new has come.
	synced  bool
	trouble string
	fresh   time.Time
	pages   map[*page]struct{}
}

// known is a rollout and what was seen of it.
type known struct {
	rollout *v1alpha1.WeightedRollout
	seen    timeline
}

// page is a reader that is told of what has changed since it last took it.
type page struct {
	wake chan struct{} // holds one
	// Guarded by the hub.
	changed map[string]struct{}
	all     bool
}

func newHub(source Source, now func() time.Time) *hub {
	return &hub{source: source, now: now, rollouts: map[string]*known{}, pages: map[*page]struct{}{}}
}

// run keeps the rollouts up to date until the context ends.
func (h *hub) run(ctx context.Context) {
	for ctx.Err() == nil {
		list, err := h.source.List(ctx)
		if err == nil {
			h.replace(list)
			// However it ends, all are read again: only what that says is trouble.
			_ = h.source.Watch(ctx, list.ResourceVersion, h.take)
			h.refresh()
		} else if ctx.Err() == nil {
			h.fail(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(relistAfter):
		}
	}
}

// replace takes over all rollouts as they are.
func (h *hub) replace(list *v1alpha1.WeightedRolloutList) {
	h.mu.Lock()
	defer h.mu.Unlock()
	gone := make(map[string]struct{}, len(h.rollouts))
	for k := range h.rollouts {
		gone[k] = struct{}{}
	}
	for i := range list.Items {
		wr := &list.Items[i]
		delete(gone, key(wr))
		h.keep(wr)
	}
	for k := range gone {
		delete(h.rollouts, k)
		h.tell(k)
	}
	recovered := !h.synced || h.trouble != ""
	h.synced, h.trouble, h.fresh = true, "", h.now()
	if recovered {
		h.tellAll()
	}
}

// take takes a change over.
func (h *hub) take(c Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !c.Gone {
		h.keep(c.Rollout)
		return
	}
	delete(h.rollouts, key(c.Rollout))
	h.tell(key(c.Rollout))
}

// keep holds a rollout. Another one of the same name starts anew.
func (h *hub) keep(wr *v1alpha1.WeightedRollout) {
	k := h.rollouts[key(wr)]
	switch {
	case k == nil || k.rollout.UID != wr.UID:
		k = &known{}
		h.rollouts[key(wr)] = k
	case k.rollout.ResourceVersion == wr.ResourceVersion:
		return
	}
	k.rollout = wr
	k.seen.see(wr, h.now())
	h.tell(key(wr))
}

// measure notes the canary's part of the requests.
func (h *hub) measure(of string, share float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.rollouts[of]; k != nil {
		k.seen.measure(share, h.now())
	}
}

// refresh notes that all that is new has come until now.
func (h *hub) refresh() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fresh = h.now()
}

func (h *hub) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if said := err.Error(); said != h.trouble {
		h.trouble = said
		for p := range h.pages {
			p.nudge()
		}
	}
}

func (h *hub) tell(k string) {
	for p := range h.pages {
		p.changed[k] = struct{}{}
		p.nudge()
	}
}

func (h *hub) tellAll() {
	for p := range h.pages {
		p.all = true
		p.nudge()
	}
}

func (p *page) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// open adds a page, which has everything to read.
func (h *hub) open() *page {
	p := &page{wake: make(chan struct{}, 1), changed: map[string]struct{}{}, all: true}
	p.nudge()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pages[p] = struct{}{}
	return p
}

func (h *hub) close(p *page) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pages, p)
}

// find returns a rollout and what was seen of it; nil: there is none. The object is
// never changed.
func (h *hub) find(k string) (*v1alpha1.WeightedRollout, timeline) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.rollouts[k]; known != nil {
		return known.rollout, known.seen
	}
	return nil, timeline{}
}

// news is what a page has not read yet.
type news struct {
	// reset says that rows are all there are.
	reset bool
	rows  []*v1alpha1.WeightedRollout
	gone  []string
	// touched has the keys of rows and gone; after a reset everything is.
	touched map[string]struct{}
	state   State
}

// State says whether the data are up to date.
type State struct {
	Synced bool `json:"synced"`
	// Behind says why nothing new comes; empty: it does. Fresh is until when it did.
	Behind string    `json:"behind"`
	Fresh  time.Time `json:"fresh,omitzero"`
}

// read returns what is new for a page.
func (h *hub) read(p *page) news {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := news{reset: p.all && h.synced, touched: p.changed, state: State{Synced: h.synced, Behind: h.trouble, Fresh: h.fresh}}
	if n.reset {
		p.all = false
		for _, k := range h.rollouts {
			n.rows = append(n.rows, k.rollout)
		}
	} else if h.synced {
		for key := range p.changed {
			if k := h.rollouts[key]; k != nil {
				n.rows = append(n.rows, k.rollout)
			} else {
				n.gone = append(n.gone, key)
			}
		}
	}
	p.changed = map[string]struct{}{}
	return n
}
