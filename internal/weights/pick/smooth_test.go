package pick_test

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights/pick"
)

// smooth makes the picker without a limit on failures.
func smooth(t fataler, list []pick.Backend) *pick.Smooth {
	t.Helper()
	s, err := pick.NewSmooth(list, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// harmonic is H(n) = 1 + 1/2 + ... + 1/n.
func harmonic(n int) *big.Rat {
	h := new(big.Rat)
	for i := 1; i <= n; i++ {
		h.Add(h, big.NewRat(1, int64(i)))
	}
	return h
}

// divisor is the greatest common divisor of weights of which one is above 0.
func divisor(given []int32) int64 {
	largest := int64(slices.Max(given))
	for d := largest; d > 1; d-- {
		if !slices.ContainsFunc(given, func(w int32) bool { return int64(w)%d != 0 }) {
			return d
		}
	}
	return 1
}

func TestSmoothSequences(t *testing.T) {
	for _, tc := range []struct {
		given []int32
		want  string
	}{
		{[]int32{4, 2, 1}, "ABACABA"},
		{[]int32{5, 3, 2}, "ABCAABACBA"},
		{[]int32{3, 1}, "AABA"},
		{[]int32{5, 1, 1}, "AABACAA"},
		{[]int32{1}, "A"},
		{[]int32{9}, "A"},
		{[]int32{1, 1, 1}, "ABC"},
		{[]int32{1000, 1000, 1000}, "ABC"},
		{[]int32{0, 3, 0, 1}, "BBDB"},
		{[]int32{400, 200, 100}, "ABACABA"},
		{[]int32{math.MaxInt32, math.MaxInt32}, "AB"},
		// Very unequal: the light one comes once, in the middle.
		{[]int32{100, 1}, strings.Repeat("A", 50) + "B" + strings.Repeat("A", 50)},
	} {
		want := strings.Repeat(tc.want, 3)
		if got := letters(smooth(t, backends(tc.given...)), len(want)); got != want {
			t.Errorf("%v picks %s, want %s", tc.given, got, want)
		}
	}
}

// The rule as it is published, with the weights themselves.
func TestSmoothFollowsTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := weightsOf(t, "weights", 12, math.MaxInt32)
		s := smooth(t, backends(given...))
		var total int64
		for _, w := range given {
			total += int64(w)
		}
		running := make([]int64, len(given))
		for n := range 200 {
			want := 0
			for i, w := range given {
				running[i] += int64(w)
				if running[i] > running[want] {
					want = i
				}
			}
			running[want] -= total
			if got := s.Pick(0); got != want {
				t.Fatalf("pick %d of %v is %d, want %d", n, given, got, want)
			}
		}
	})
}

// Over a cycle the counts are the weights; within it each stays within the bounds
// that the doc comment proves; at its end all is as at the start.
func TestSmoothCycle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := weightsOf(t, "weights", 64, 1000)
		s := smooth(t, backends(given...))
		first := cycle(t, s, given)
		if running, _ := s.Running(); !cmp.Equal(running, make([]int64, len(given))) {
			t.Fatalf("after a cycle of %v the running values are %v", given, running)
		}
		for i, want := range first {
			if got := s.Pick(0); got != want {
				t.Fatalf("%v: pick %d of the second cycle is %d, of the first it was %d", given, i, got, want)
			}
		}
	})
}

// cycle checks one cycle from the start and returns its picks.
func cycle(t interface{ Fatalf(string, ...any) }, s *pick.Smooth, given []int32) []int {
	var sum, n int64
	for _, w := range given {
		sum += int64(w)
		n += int64(min(w, 1))
	}
	// Counts in units of 1/sum are integers, so the bounds are compared exactly.
	most := new(big.Rat).Sub(harmonic(int(n)), big.NewRat(1, 1))
	most.Mul(most, big.NewRat(sum, 1))
	behind := new(big.Int).Quo(most.Num(), most.Denom()).Int64()

	length := sum / divisor(given)
	picks := make([]int, 0, length)
	debts := make([]int64, len(given))
	for range length {
		picked := s.Pick(0)
		picks = append(picks, picked)
		for i, w := range given {
			debts[i] += int64(w)
			if i == picked {
				debts[i] -= sum
			}
			if debts[i] > behind || -debts[i]*n > (n-1)*sum || w == 0 && debts[i] != 0 {
				t.Fatalf("%v: after %d picks backend %d is %d/%d picks behind", given, len(picks), i, debts[i], sum)
			}
		}
	}
	for i, debt := range debts {
		if debt != 0 {
			t.Fatalf("%v: after a cycle backend %d is %d/%d picks behind", given, i, debt, sum)
		}
	}
	return picks
}

// The largest debts that the doc comment gives as examples.
func TestSmoothLargestDebts(t *testing.T) {
	for _, tc := range []struct {
		given  []int32
		behind string
	}{
		{[]int32{1, 1}, "0.500"},
		{[]int32{1, 82, 82}, "0.830"},
		{[]int32{9, 96, 2, 96}, "1.025"},
	} {
		list := backends(tc.given...)
		s := smooth(t, list)
		var sum int
		for _, w := range tc.given {
			sum += int(w)
		}
		var behind float64
		for range sum {
			s.Pick(0)
			running, worth := s.Running()
			for _, r := range running {
				behind = max(behind, float64(r)/float64(worth))
			}
		}
		if got := fmt.Sprintf("%.3f", behind); got != tc.behind {
			t.Errorf("%v falls behind by up to %s picks, want %s", tc.given, got, tc.behind)
		}
	}
}

// The most backends, the largest weights.
func TestSmoothDoesNotOverflow(t *testing.T) {
	s := smooth(t, equal(pick.MaxBackends, math.MaxInt32))
	for i := range pick.MaxBackends / 2 {
		if got := s.Pick(0); got != i {
			t.Fatalf("pick %d is %d", i, got)
		}
	}
	// The first half has been picked, so half is ahead and half behind, by half a pick
	// each: the largest sums that there can be. Half of those ahead leave.
	if err := s.Update(equal(pick.MaxBackends, math.MaxInt32)[pick.MaxBackends/4:]); err != nil {
		t.Fatal(err)
	}
	running, worth := s.Running()
	var sum int64
	for i, r := range running {
		sum += r
		// Those behind give up half of what they had.
		want := -0.5
		if i >= pick.MaxBackends/4 {
			want = 0.25
		}
		if got := float64(r) / float64(worth); math.Abs(got-want) > 0.001 {
			t.Fatalf("backend %d has a debt of %v, want %v", i, got, want)
		}
	}
	if sum != 0 {
		t.Errorf("the running values add up to %d", sum)
	}
}
