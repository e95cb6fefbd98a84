package pick_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights/pick"
)

// scripted picks what the letters say, "-" for none.
type scripted struct {
	letters string
	at      int
}

func (s *scripted) Pick(uint64) int {
	c := s.letters[s.at]
	s.at++
	if c == '-' {
		return -1
	}
	return int(c - 'A')
}

// steady is n requests, one every so many milliseconds.
func steady(n int, every int64) iter.Seq[pick.Request] {
	return func(yield func(pick.Request) bool) {
		for i := range n {
			if !yield(pick.Request{At: int64(i) * every}) {
				return
			}
		}
	}
}

// at is one request at each of these times.
func at(times ...int64) iter.Seq[pick.Request] {
	return func(yield func(pick.Request) bool) {
		for _, ms := range times {
			if !yield(pick.Request{At: ms}) {
				return
			}
		}
	}
}

func TestMeasure(t *testing.T) {
	for _, tc := range []struct {
		name     string
		picks    string
		given    []int32
		requests iter.Seq[pick.Request]
		want     pick.Measurement
	}{
		{
			"nothing", "", []int32{1, 1}, at(),
			pick.Measurement{Loads: make([]pick.Load, 2)},
		},
		{
			"runs and shares", "AABAAAB-", []int32{1, 1}, steady(8, 1000),
			pick.Measurement{Served: 7, Unserved: 1, Loads: []pick.Load{
				// After 6 requests A has 5 and should have 3; B has 1.
				{Requests: 5, LongestRun: 3, BusiestSecond: 1, Exact: 3.5, Deviation: 1.5, LargestDeviation: 2},
				{Requests: 2, LongestRun: 1, BusiestSecond: 1, Exact: 3.5, Deviation: -1.5, LargestDeviation: 2},
			}},
		},
		{
			"a request that none takes ends a run", "AA-A", []int32{1}, steady(4, 0),
			pick.Measurement{Served: 3, Unserved: 1, Loads: []pick.Load{
				{Requests: 3, LongestRun: 2, BusiestSecond: 3, Exact: 3},
			}},
		},
		{
			"the second slides", "AAAAA", []int32{1}, at(0, 999, 1000, 1998, 1999),
			pick.Measurement{Served: 5, Loads: []pick.Load{
				// 999, 1000 and 1998; 1999 is a second after 999.
				{Requests: 5, LongestRun: 5, BusiestSecond: 3, Exact: 5},
			}},
		},
		{
			"each has its own second", "ABABAB", []int32{2, 1}, at(0, 500, 500, 1400, 1500, 5000),
			pick.Measurement{Served: 6, Loads: []pick.Load{
				{Requests: 3, LongestRun: 1, BusiestSecond: 2, Exact: 4, Deviation: -1, LargestDeviation: 1},
				{Requests: 3, LongestRun: 1, BusiestSecond: 2, Exact: 2, Deviation: 1, LargestDeviation: 1},
			}},
		},
		{
			"one that is never picked", "AAA", []int32{2, 1, 0}, steady(3, 1),
			pick.Measurement{Served: 3, Loads: []pick.Load{
				{Requests: 3, LongestRun: 3, BusiestSecond: 3, Exact: 2, Deviation: 1, LargestDeviation: 1},
				{Exact: 1, Deviation: -1, LargestDeviation: 1},
				{},
			}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := pick.Measure(&scripted{letters: tc.picks}, backends(tc.given...), tc.requests)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.picks, diff)
			}
		})
	}
}

func TestMeasureErrors(t *testing.T) {
	for _, tc := range []struct {
		name     string
		given    []pick.Backend
		picks    string
		requests iter.Seq[pick.Request]
		want     string
	}{
		{"backwards", backends(1), "AA", at(5, 4), "a request at 4 ms comes when the clock is at 5"},
		{"before 0", backends(1), "A", at(-1), "a request at -1 ms"},
		{"other backends", backends(1, 1), "C", at(0), "backend 2 of 2"},
		{"no backends", nil, "", at(), "no weight is above 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := pick.Measure(&scripted{letters: tc.picks}, tc.given, tc.requests)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, error %v, want one with %q", got, err, tc.want)
			}
		})
	}
}

// The figures that tell the pickers apart: 5:3:2 at 100 requests a second.
func TestMeasurePickers(t *testing.T) {
	type figures struct{ Run, Second int64 }
	list := backends(5, 3, 2)
	for _, tc := range []struct {
		name string
		want []figures
	}{
		{"round-robin", []figures{{1, 34}, {1, 34}, {1, 34}}},
		{"naive", []figures{{5, 50}, {3, 30}, {2, 20}}},
		{"smooth", []figures{{2, 50}, {1, 30}, {1, 20}}},
	} {
		m, err := pick.Measure(must(t, tc.name, list), list, steady(1000, 10))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]figures, len(list))
		for i, l := range m.Loads {
			got[i] = figures{l.LongestRun, l.BusiestSecond}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: longest run and busiest second (-want +got):\n%s", tc.name, diff)
		}
	}
}

// The same figures, counted the slow way.
func TestMeasureProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := weightsOf(t, "weights", 4, 9)
		picks := rapid.SliceOfN(rapid.IntRange(0, len(given)-1), 0, 300).Draw(t, "picks")
		times := rapid.SliceOfN(rapid.Int64Range(0, 3000), len(picks), len(picks)).Draw(t, "times")
		slices.Sort(times)
		var script strings.Builder
		var sum float64
		for _, p := range picks {
			script.WriteByte(byte('A' + p))
		}
		for _, w := range given {
			sum += float64(w)
		}
		want := pick.Measurement{Served: int64(len(picks)), Loads: make([]pick.Load, len(given))}
		for i := range given {
			l := &want.Loads[i]
			var run int64
			for n, p := range picks {
				l.LargestDeviation = max(l.LargestDeviation, l.Exact-float64(l.Requests), float64(l.Requests)-l.Exact)
				l.Exact = float64(n+1) * float64(given[i]) / sum
				if run++; p != i {
					run = 0
					continue
				}
				l.Requests++
				l.LongestRun = max(l.LongestRun, run)
				var inSecond int64
				for m := range n + 1 {
					if picks[m] == i && times[m] > times[n]-1000 {
						inSecond++
					}
				}
				l.BusiestSecond = max(l.BusiestSecond, inSecond)
			}
			l.Deviation = float64(l.Requests) - l.Exact
			l.LargestDeviation = max(l.LargestDeviation, l.Deviation, -l.Deviation)
		}
		got, err := pick.Measure(&scripted{letters: script.String()}, backends(given...), at(times...))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", script.String(), diff)
		}
	})
}

// Ten times the requests cost no allocation more, and so none per request.
func TestMeasureAllocations(t *testing.T) {
	list := backends(5, 3, 2)
	allocations := func(requests int) float64 {
		return testing.AllocsPerRun(5, func() {
			p, err := pick.NewRoundRobin(list)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := pick.Measure(p, list, steady(requests, 1)); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocations(2000), allocations(20_000); few != many {
		t.Errorf("%v allocations for 2000 requests, %v for 20,000", few, many)
	}
}

func BenchmarkMeasure(b *testing.B) {
	for _, name := range pick.Names() {
		b.Run(fmt.Sprintf("%s/16", name), func(b *testing.B) {
			list := equal(16, 7)
			p := must(b, name, list)
			b.ReportAllocs()
			if _, err := pick.Measure(p, list, steady(b.N, 1)); err != nil {
				b.Fatal(err)
			}
		})
	}
}
