package balance

import (
	"errors"
	"fmt"
	"math"

	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

const (
	// MaxConfigured is the largest configured weight, as a route limits it.
	MaxConfigured = 1_000_000

	// returnPart is the part of the average weight that a backend returns with after a
	// break: its caches are cold.
	returnPart = 0.5
	// proof is for how many times Recovery observations a weight must hold.
	proof = 10
	// maxPatience is how many times Recovery good checks may be asked for.
	maxPatience = 32
)

// Group is the weights of the backends of one track, which follow their response
// times. It is not safe for concurrent use.
//
// A backend slower than the baseline loses weight, a faster one gains, and one at the
// baseline keeps it: the change is (baseline - smoothed) / baseline, at most
// Settings.Step either way. A weight is from Settings.Floor of its configured weight,
// and of the largest weight of the group, to Settings.Headroom times its configured
// one. The group's floor lifts no backend above its configured weight.
type Group struct {
	settings Settings
	fresh    score.EMA
	backends []backend
}

// A backend's next weight is its present one except while a Group works on it.
type backend struct {
	configured, weight, next float64
	smoothed                 score.EMA
	// good counts the good checks in a row, and patience is how many restore the
	// configured weight.
	good, patience int
	// restored says that the weight was restored and has yet to prove itself; held counts
	// the observations in a row that left the configured weight or more.
	restored bool
	held     int
	out      bool
}

// NewGroup returns a group in which each backend has its configured weight, from 1 to
// MaxConfigured. It fails on any other weight, on no backend, and on settings out of
// range.
func NewGroup(s Settings, configured []int64) (*Group, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	fresh, err := s.average()
	if err != nil {
		return nil, fmt.Errorf("smoothing, where 1 is none: %w", err)
	}
	if len(configured) == 0 {
		return nil, errors.New("there is no backend; give at least one configured weight")
	}
	g := &Group{settings: s, fresh: fresh, backends: make([]backend, len(configured))}
	for i, w := range configured {
		if w < 1 || w > MaxConfigured {
			return nil, fmt.Errorf("the configured weight of backend %d is %d; take one from 1 to %d", i, w, MaxConfigured)
		}
		g.backends[i] = backend{configured: float64(w), weight: float64(w), next: float64(w), smoothed: fresh, patience: s.Recovery}
	}
	return g, nil
}

// Observe takes the response times of one sampling window, in seconds, one for each
// backend, and says whether a weight changed. A backend whose time is not known (NaN)
// keeps its weight, and its good checks are no longer in a row. The time of a backend
// that is out is ignored. It fails, and changes nothing, on another number of times,
// and on one that is negative or an infinity.
func (g *Group) Observe(times []float64) (changed bool, err error) {
	if len(times) != len(g.backends) {
		return false, fmt.Errorf("%d response times do not fit %d backends; give one for each, NaN where it is not known", len(times), len(g.backends))
	}
	for i, rt := range times {
		if err := checkTime(i, rt); err != nil {
			return false, err
		}
	}
	for i := range g.backends {
		b := &g.backends[i]
		switch {
		case b.out:
		case math.IsNaN(times[i]):
			b.good = 0
		default:
			g.follow(b, times[i])
		}
	}
	return g.settle(), nil
}

// settle makes each next weight the present one, lifted to its floor, and says whether
// one changed. Lifting makes none the largest, so that it does not raise the floor.
func (g *Group) settle() (changed bool) {
	var largest float64
	for _, b := range g.backends {
		largest = max(largest, b.next)
	}
	for i := range g.backends {
		b := &g.backends[i]
		if b.out {
			continue
		}
		b.next = max(b.next, min(b.configured, g.settings.Floor*largest))
		changed = changed || b.next != b.weight
		b.weight = b.next
	}
	return changed
}

// follow sets the backend's next weight after a response time.
func (g *Group) follow(b *backend, rt float64) {
	s := g.settings
	// Slower than what costs a whole step makes no difference. Were more of it averaged,
	// the weight would stay down long after the backend is fast again.
	rt = min(max(rt, MinResponseTime), s.Baseline*(1+s.Step/s.Gain))
	if s.Alpha == noSmoothing {
		b.smoothed = g.fresh
	}
	b.smoothed = b.smoothed.Add(rt)
	if g.restore(b, rt) {
		return
	}
	smoothed, _ := b.smoothed.Value()
	change := min(max(s.Gain*(s.Baseline-smoothed)/s.Baseline, -s.Step), s.Step)
	next := min(max(b.weight*(1+change), s.Floor*b.configured), s.Headroom*b.configured)
	if math.Abs(next-b.weight) < s.DeadBand*b.weight {
		next = b.weight
	}
	b.next = next
	g.judge(b)
}

// restore gives back the configured weight after enough good checks in a row: the way
// up by steps is long. The average starts anew with the last check, or what it remembers
// of the bad time would take the weight away again.
func (g *Group) restore(b *backend, rt float64) bool {
	if rt > g.settings.Good*g.settings.Baseline {
		b.good = 0
		return false
	}
	b.good = min(b.good+1, b.patience)
	if b.good < b.patience || b.weight >= b.configured {
		return false
	}
	b.next, b.smoothed, b.restored, b.good, b.held = b.configured, g.fresh.Add(rt), true, 0, 0
	return true
}

// judge looks at what became of a restored weight. Where it had to be lowered again,
// the backend is good only as long as it has little to do, and the next restoring asks
// for twice as many good checks; without that, restoring would itself be a saw-tooth.
// Where the weight, restored or not, has held for long, all is forgotten.
func (g *Group) judge(b *backend) {
	if b.next >= b.configured {
		if b.held++; b.held >= proof*g.settings.Recovery {
			b.restored, b.patience = false, g.settings.Recovery
		}
		return
	}
	b.held = 0
	if b.restored {
		b.restored, b.patience = false, min(2*b.patience, maxPatience*g.settings.Recovery)
	}
}

// Weights returns the present weights, in the unit of the configured ones; 0 for a
// backend that is out.
func (g *Group) Weights() []float64 {
	present := make([]float64, len(g.backends))
	for i, b := range g.backends {
		present[i] = b.weight
	}
	return present
}

// Apportion divides total among the backends in proportion to their present weights. It
// adds up to total exactly. Each backend that is in gets at least 1, one that is out
// gets 0. It fails on a total below the number of those that are in.
func (g *Group) Apportion(total int64) ([]int64, error) {
	return proportion(total, g.Weights())
}

// Break takes a backend out: its weight is 0 until it returns. It fails on the last
// backend that is in, since the weights must not be all 0, and on one that there is not.
// A backend that is out stays so.
func (g *Group) Break(i int) error {
	if err := g.check(i); err != nil {
		return err
	}
	if g.backends[i].out {
		return nil
	}
	if _, in := g.average(); in == 1 {
		return fmt.Errorf("backend %d is the last one that is in; return another one first", i)
	}
	g.backends[i] = backend{configured: g.backends[i].configured, out: true}
	return nil
}

// Return takes a backend back in after a break, with half of the average weight of
// those that are in, but no more than its configured weight and no less than its
// floor. It then rises like any other. It fails on a backend that is not out, or that
// there is not.
func (g *Group) Return(i int) error {
	if err := g.check(i); err != nil {
		return err
	}
	b := &g.backends[i]
	if !b.out {
		return fmt.Errorf("backend %d is not out; only one that is can return", i)
	}
	average, _ := g.average()
	next := max(min(b.configured, returnPart*average), g.settings.Floor*b.configured)
	*b = backend{configured: b.configured, next: next, smoothed: g.fresh, patience: g.settings.Recovery}
	g.settle()
	return nil
}

// average returns the mean weight of the backends that are in, and their number, which
// is never 0.
func (g *Group) average() (mean float64, in int) {
	var sum float64
	for _, b := range g.backends {
		if !b.out {
			sum += b.weight
			in++
		}
	}
	return sum / float64(in), in
}

func (g *Group) check(i int) error {
	if i < 0 || i >= len(g.backends) {
		return fmt.Errorf("there is no backend %d; the group has %d, from 0", i, len(g.backends))
	}
	return nil
}
