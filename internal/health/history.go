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
}

// have is the number of requests that every check of the preset has seen.
func (h *history) have(c Config) float64 {
	if c.Latency != nil {
		return math.Min(h.sum.requests, h.sum.timed)
	}
	return h.sum.requests
}

// disjoint is a window whose counts are summed.
type disjoint struct {
	start, end time.Time
	counts     tally
}

// review walks through the windows once, in order of time.
func (in *Input) review(windows []Window) history {
	c := in.Config
	h := history{signals: newSignals(c)}
	var grid []disjoint
	var before *Window // the previous evaluation, if it was a breach
	for i := range windows {
		w := &windows[i]
		m := c.measure(w, in.Subject)
		onGrid := c.onGrid(w.End)
		if onGrid && m.readable && c.Preset != "" {
			grid = append(grid, disjoint{w.Start, w.End, m.counts})
		}
		sum := func() tally { return sumSince(grid, w.End.Add(-Memory)) }
		h.signals.measured(w, m, sum)
		f := c.judge(w, m, sum)
		if f.outcome == passed {
			f = h.signals.judge(m, sum)
		}
		f = h.signals.count(w, m, f)
		if onGrid && c.Preset == "" && f.outcome != unknown {
			grid = append(grid, disjoint{start: w.Start, end: w.End})
		}
		switch f.outcome {
		case passed, missed:
			before = nil
			if c.Preset == "" || !m.silent() {
				h.since, h.lasted = time.Time{}, 0
			}
		case unknown: // neither ends a breach nor lengthens it
			before = nil
		case breached:
			if h.since.IsZero() {
				h.since = w.End
			}
			h.lasted += since(before, w)
			before = w
		}
		h.latest, h.finding, h.bound = w, f, m.bound
	}
	h.total(grid)
	return h
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
		h.full, h.to, h.sum = true, d.end, h.sum.add(d.counts)
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
