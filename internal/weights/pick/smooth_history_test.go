package pick_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights/pick"
)

// slack is for the rounding of the floats in these tests and for the scaled sums,
// which differ by a few parts in 10^9 here.
const slack = 1e-5

// history plays random picks, weights, arrivals, departures, failures, successes and
// returns, and holds the counts against the bounds that Smooth documents.
type history struct {
	s    *pick.Smooth
	list []pick.Backend
	most int // the most backends that took requests at once

	excess     map[string]float64 // requests less the sum of the momentary shares
	departures float64            // changes with which some backend left
	trail      []moment
}

// moment is a point in a history: what the excesses and the departures were.
type moment struct {
	excess     map[string]float64
	departures float64
}

func TestSmoothHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{list: drawBackends(t), excess: map[string]float64{}}
		var err error
		if h.s, err = pick.NewSmooth(h.list, rapid.IntRange(0, 3).Draw(t, "maxFails")); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			h.picks(t, rapid.IntRange(0, 30).Draw(t, "picks"))
			h.change(t)
			h.checkValues(t)
		}
		h.picks(t, 30)
		h.checkWindows(t)
	})
}

// drawBackends draws backends with some of eight names and with weights of very
// different sizes.
func drawBackends(t *rapid.T) []pick.Backend {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"}), 1, 8, rapid.ID).Draw(t, "names")
	most := rapid.SampledFrom([]int32{1, 5, 100, 1_000_000}).Draw(t, "largest weight")
	list := make([]pick.Backend, len(names))
	for i, name := range names {
		list[i] = pick.Backend{Name: name, Weight: rapid.Int32Range(0, most).Draw(t, "weight")}
	}
	list[0].Weight = max(list[0].Weight, 1)
	return list
}

// takers returns the effective weights of the backends that take requests.
func (h *history) takers() map[string]float64 {
	takers := map[string]float64{}
	for i, effective := range h.s.Effective() {
		if effective > 0 {
			takers[h.list[i].Name] = float64(effective)
		}
	}
	return takers
}

func (h *history) picks(t *rapid.T, n int) {
	for range n {
		takers := h.takers()
		h.most = max(h.most, len(takers))
		var sum float64
		for _, effective := range takers {
			sum += effective
		}
		picked := h.s.Pick(0)
		if picked < 0 && len(takers) > 0 || picked >= 0 && takers[h.list[picked].Name] == 0 {
			t.Fatalf("picked %d of %v, which take %v", picked, h.list, takers)
		}
		for name, effective := range takers {
			h.excess[name] -= effective / sum
		}
		if picked >= 0 {
			h.excess[h.list[picked].Name]++
		}
		h.checkValues(t)
		h.trail = append(h.trail, moment{maps.Clone(h.excess), h.departures})
	}
}

// change does one thing other than a pick.
func (h *history) change(t *rapid.T) {
	before := h.takers()
	name := rapid.SampledFrom(h.list).Draw(t, "backend").Name
	switch rapid.SampledFrom([]string{"update", "reweigh", "fail", "succeed", "return"}).Draw(t, "change") {
	case "update":
		h.update(t, drawBackends(t))
	case "reweigh":
		list := slices.Clone(h.list)
		factor := rapid.SampledFrom([]int32{1, 7, 1000}).Draw(t, "factor")
		for i, b := range list {
			list[i].Weight = min(b.Weight, 1000)*factor + min(b.Weight, 1)*rapid.Int32Range(0, 3).Draw(t, "more")
		}
		h.update(t, list)
	case "fail":
		for range rapid.IntRange(1, 3).Draw(t, "failures") {
			h.s.Failed(name)
		}
	case "succeed":
		for range rapid.IntRange(1, 3).Draw(t, "successes") {
			h.s.Succeeded(name)
		}
	case "return":
		h.s.Return(name)
	}
	after := h.takers()
	for name := range before {
		if _, ok := after[name]; !ok {
			h.departures++
			break
		}
	}
	h.most = max(h.most, len(after))
}

func (h *history) update(t *rapid.T, list []pick.Backend) {
	if err := h.s.Update(list); err != nil {
		t.Fatal(err)
	}
	h.list = list
}

// checkValues checks that the running values add up to 0, that none is below
// -(1-1/n), and that the k largest are no more than k*(H(n)-H(k)), for every k.
func (h *history) checkValues(t *rapid.T) {
	running, worth := h.s.Running()
	takers := h.takers()
	var sum int64
	var debts []float64
	for i, r := range running {
		sum += r
		if takers[h.list[i].Name] > 0 {
			debts = append(debts, float64(r)/float64(worth))
		} else if r != 0 {
			t.Fatalf("%s takes nothing and has the running value %d", h.list[i].Name, r)
		}
	}
	if sum != 0 {
		t.Fatalf("the running values of %v add up to %d: %v", h.list, sum, running)
	}
	slices.Sort(debts)
	n := float64(h.most)
	if len(debts) > 0 && debts[0] < -(1-1/n)-slack {
		t.Fatalf("of %v backends one is %v picks ahead", n, -debts[0])
	}
	var largest float64
	for k := 1; k <= len(debts); k++ {
		largest += debts[len(debts)-k]
		if bound := float64(k) * (harmonicFloat(h.most) - harmonicFloat(k)); largest > bound+slack {
			t.Fatalf("of %v backends %d are %v picks behind together, more than %v", n, k, largest, bound)
		}
	}
}

// checkWindows checks for every backend and any two moments that what it got between
// them is its share, give or take H(n)-1/n, and for each departure 1-1/n more or
// H(n)-1 less.
func (h *history) checkWindows(t *rapid.T) {
	n := float64(max(h.most, 1))
	bound := harmonicFloat(h.most) - 1/n + slack
	for name := range h.excess {
		lowest, highest := math.Inf(1), math.Inf(-1)
		for at, m := range h.trail {
			more := m.excess[name] - m.departures*(1-1/n)
			less := m.excess[name] + m.departures*(harmonicFloat(h.most)-1)
			lowest, highest = min(lowest, more), max(highest, less)
			if more-lowest > bound {
				t.Fatalf("%s has a burst that ends with pick %d: %v more than its share, bound %v", name, at, more-lowest, bound)
			}
			if highest-less > bound {
				t.Fatalf("%s starves until pick %d: %v less than its share, bound %v", name, at, highest-less, bound)
			}
		}
	}
}

func harmonicFloat(n int) float64 {
	var h float64
	for i := range n {
		h += 1 / float64(i+1)
	}
	return h
}
