package health

import (
	"math"
	"time"
)

// history is what all windows together say.
type history struct {
	latest   *Window
	finding  finding // of the latest window
	bound    float64 // seconds, of the latest window
	sum      tally   // of the disjoint windows
	full     bool    // at least one disjoint window is evidence
	from, to time.Time
	since    time.Time     // end of the first window of the breach
	lasted   time.Duration // of the breach
	signals  signals

	past          Past     // with the disjoint windows up to the latest
	both          beside   // of the disjoint windows in which both tracks could be told
	here          beside   // of those among them that are part of the comparison
	stableProblem *Problem // why stable cannot be told in the latest window
	worse         finding  // the canary is proven to be worse
}

// have is the number of requests that every check of the preset has seen.
func (h *history) have(c Config) float64 {
	if c.Latency != nil {
		return math.Min(h.sum.requests, h.sum.timed)
	}
	return h.sum.requests
}

// remembersAll says whether the evidence is as long as it is remembered, so that it will
// not become more by waiting.
func (h *history) remembersAll(c Config) bool { return h.to.Sub(h.from) >= Memory-c.Window }

// disjoint is a window whose counts are summed.
type disjoint struct {
	start, end time.Time
	counts     tally
	both       beside
	compared   bool
}

// review walks through the windows once, in order of time.
func (in *Input) review(windows []Window) history { return in.reviewing(windows, nil) }

// reviewing does so, and tells what each window said.
func (in *Input) reviewing(windows []Window, told func(*Window, finding)) history {
	r := reviewer{in: in, history: history{signals: newSignals(in.Config), past: in.Past}}
	for i := range windows {
		r.look(&windows[i])
		if told != nil {
			told(&windows[i], r.finding)
		}
	}
	if r.latest != nil {
		r.total(r.grid)
	}
	if in.compared() {
		r.worse = in.Config.worse(r.past.Comparison, r.here, in.comparedSince())
	}
	return r.history
}

// reviewer walks through the windows.
type reviewer struct {
	history

	in     *Input
	grid   []disjoint
	before *Window // the previous evaluation, if it was a breach
}

// look takes in one window.
func (r *reviewer) look(w *Window) {
	c := r.in.Config
	m := c.measure(w, r.in.Subject)
	onGrid := c.onGrid(w.End)
	both, opposed := r.beside(w, m, onGrid)
	if onGrid && m.counted() && c.Preset != "" {
		compared := opposed && r.in.compares(w)
		r.grid = append(r.grid, disjoint{w.Start, w.End, m.counts, both, compared})
		if compared {
			r.past = c.fold(r.past, both, w.End)
		}
	}
	sum := func() tally { return sumSince(r.grid, w.End.Add(-Memory)) }
	r.signals.measured(w, m, sum)
	f := c.judge(w, m, sum)
	if opposed && f.outcome != breached {
		f = f.worse(c.judgeBeside(both, func() beside { return besideSince(r.grid, w.End.Add(-Memory)) }))
	}
	missed := finding{}
	if f.outcome != unknown {
		missed = r.signals.judge(m, sum)
	}
	f = r.signals.count(w, m, f.worse(missed), missed)
	if onGrid && c.Preset == "" && f.outcome != unknown {
		r.grid = append(r.grid, disjoint{start: w.Start, end: w.End})
	}
	r.took(w, m, f)
}

// took notes how a breach goes on.
func (r *reviewer) took(w *Window, m measurement, f finding) {
	switch f.outcome {
	case passed, missed:
		r.before = nil
		if r.in.Config.Preset == "" || !m.silent() {
			r.since, r.lasted = time.Time{}, 0
		}
	case unknown: // neither ends a breach nor lengthens it
		r.before = nil
	case breached:
		if r.since.IsZero() {
			r.since = w.End
		}
		r.lasted += since(r.before, w)
		r.before = w
	}
	r.latest, r.finding, r.bound = w, f, m.bound
}

// beside reads both tracks of a window, where that is of any use.
func (r *reviewer) beside(w *Window, m measurement, onGrid bool) (both beside, ok bool) {
	r.stableProblem = nil
	if !m.counted() || !r.in.compared() || !onGrid && !r.in.Config.relative() {
		return beside{}, false
	}
	both, r.stableProblem = r.in.besides(w, m)
	return both, r.stableProblem == nil
}

// total sums what of the grid is not forgotten yet.
func (h *history) total(grid []disjoint) {
	for _, d := range grid {
		if d.start.Before(h.latest.End.Add(-Memory)) {
			continue
		}
		if !h.full {
			h.from = d.start
		}
		h.full, h.to, h.sum, h.both = true, d.end, h.sum.add(d.counts), h.both.add(d.both)
		if d.compared {
			h.here = h.here.add(d.both)
		}
	}
}

func sumSince(grid []disjoint, start time.Time) tally {
	var t tally
	for _, d := range grid {
		if !d.start.Before(start) {
			t = t.add(d.counts)
		}
	}
	return t
}

func besideSince(grid []disjoint, start time.Time) beside {
	var b beside
	for _, d := range grid {
		if !d.start.Before(start) {
			b = b.add(d.both)
		}
	}
	return b
}
