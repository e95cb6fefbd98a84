package pick_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights/pick"
)

func ring(t fataler, list []pick.Backend, unit int64) *pick.Ring {
	t.Helper()
	r, err := pick.NewRing(list, unit)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// users are n keys.
func users(n int) []uint64 {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = pick.Key(fmt.Sprintf("user-%d", i))
	}
	return keys
}

// One more of n equal backends takes no more than 1.3/n of the keys, and only it
// does; when it goes the keys are back where they were.
func TestRingGrows(t *testing.T) {
	keys := users(100_000)
	for _, n := range []int{1, 2, 3, 5, 10, 16, 50, 100} {
		small, large := ring(t, equal(n, 10), 0), ring(t, equal(n+1, 10), 0)
		moved := 0
		for _, key := range keys {
			before, after := small.Pick(key), large.Pick(key)
			if before == after {
				continue
			}
			moved++
			if after != n {
				t.Fatalf("%d and one more: a key moved from %d to %d", n, before, after)
			}
		}
		if part := float64(moved) / float64(len(keys)); part > 1.3/float64(n) || part < 0.7/float64(n+1) {
			t.Errorf("%d and one more: %.4f of the keys moved, want 0.7/(n+1) = %.4f to 1.3/n = %.4f", n, part, 0.7/float64(n+1), 1.3/float64(n))
		}
	}
}

// Whatever changes, a key leaves only a backend that went or became lighter, or goes
// only to one that came or became heavier. The order of the backends does not matter.
func TestRingMovesOnlyWhatItMust(t *testing.T) {
	keys := users(500)
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawBackends(t), drawBackends(t)
		// A node per 1, 100 or 10,000: a few hundred nodes for the largest weights.
		unit := pick.NodesPerUnit * rapid.SampledFrom([]int64{10_000, 100_000}).Draw(t, "unit")
		before, after := ring(t, a, unit), ring(t, b, unit)
		shuffled := slices.Clone(a)
		slices.SortFunc(shuffled, func(x, y pick.Backend) int { return strings.Compare(x.Name, y.Name) })
		sorted := ring(t, shuffled, unit)

		weight := map[string][2]int32{}
		for _, x := range a {
			weight[x.Name] = [2]int32{x.Weight, 0}
		}
		for _, x := range b {
			weight[x.Name] = [2]int32{weight[x.Name][0], x.Weight}
		}
		for _, key := range keys {
			from, to := a[before.Pick(key)].Name, b[after.Pick(key)].Name
			if from != to && weight[from][0] <= weight[from][1] && weight[to][0] >= weight[to][1] {
				t.Fatalf("a key moved from %s to %s, with weights %v, then %v", from, to, a, b)
			}
			if name := shuffled[sorted.Pick(key)].Name; name != from {
				t.Fatalf("in another order a key goes to %s instead of %s", name, from)
			}
		}
	})
}

// Each share is within 15 % of the exact one, more than three standard deviations of
// a backend with 512 nodes; seeded by the names, so always the same.
func TestRingShares(t *testing.T) {
	keys := users(200_000)
	for _, given := range [][]int32{{1}, {1, 1}, {5, 3, 2}, {99, 1}, {4, 0, 2, 1}, {7, 7, 7, 7, 7, 7, 7, 7}, {1_000_000, 500_000, 250_000}} {
		r := ring(t, backends(given...), 0)
		counts, sum := make([]float64, len(given)), 0.0
		for _, key := range keys {
			counts[r.Pick(key)]++
		}
		for _, w := range given {
			sum += float64(w)
		}
		for i, w := range given {
			exact := float64(w) / sum * float64(len(keys))
			if math.Abs(counts[i]-exact) > 0.15*exact {
				t.Errorf("%v: backend %d got %v of %d keys, exact is %.0f", given, i, counts[i], len(keys), exact)
			}
		}
	}
}

func TestRingUnit(t *testing.T) {
	for _, tc := range []struct {
		given []pick.Backend
		want  int64
	}{
		{backends(99, 0, 3), 3},
		{equal(2000, 10), 10},
		// 512 nodes for a weight of 1 would be 512,000,512 in all.
		{backends(1_000_000, 1), 491},
		{equal(pick.MaxBackends, math.MaxInt32), 4_311_810_303},
	} {
		if got, err := pick.ChosenUnit(tc.given); err != nil || got != tc.want {
			t.Errorf("%d backends: unit %d, error %v, want %d", len(tc.given), got, err, tc.want)
		}
	}
	if got := ring(t, backends(99, 0, 3), 0).Unit(); got != 3 {
		t.Errorf("the ring says that its unit is %d, want 3", got)
	}
	_, err := pick.NewRing(equal(pick.MaxBackends, math.MaxInt32), 4_311_810_302)
	if want := "use 4311810303 or more"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a unit that is too small: error %v, want one with %q", err, want)
	}
	if _, err := pick.NewRing(backends(1), -1); err == nil || !strings.Contains(err.Error(), "-1 is negative") {
		t.Errorf("a negative unit: error %v", err)
	}
	// A backend far below the unit still has a node, and a huge unit does no harm.
	if got := ring(t, backends(1, 0), math.MaxInt64).Pick(1 << 63); got != 0 {
		t.Errorf("the only backend with a weight is not picked, but %d", got)
	}
}

// Two backends on one point: the first name has it, whatever the order, and the other
// one has it when the first is gone. Keys go round the end of the ring.
func TestRingCollisions(t *testing.T) {
	names := func(list []pick.Backend, points [][]uint64) string {
		r, got := pick.RingOf(list, points), ""
		for _, key := range []uint64{0, 100, 101, 200, 201, math.MaxUint64} {
			got += list[r.Pick(key)].Name
		}
		return got
	}
	a, b, c := pick.Backend{Name: "a"}, pick.Backend{Name: "b"}, pick.Backend{Name: "c"}
	for _, tc := range []struct {
		list   []pick.Backend
		points [][]uint64
		want   string
	}{
		{[]pick.Backend{a, b, c}, [][]uint64{{200}, {200}, {100}}, "ccaacc"},
		{[]pick.Backend{b, a, c}, [][]uint64{{200}, {200}, {100}}, "ccaacc"},
		{[]pick.Backend{c, b}, [][]uint64{{100}, {200}}, "ccbbcc"},
	} {
		if got := names(tc.list, tc.points); got != tc.want {
			t.Errorf("%v on %v: keys go to %s, want %s", tc.list, tc.points, got, tc.want)
		}
	}
}

// The ring is the same in every process and release: keys must not move with an
// upgrade.
func TestRingIsStable(t *testing.T) {
	r := ring(t, backends(5, 3, 2), 0)
	var got []int
	for _, key := range users(20) {
		got = append(got, r.Pick(key))
	}
	want := []int{2, 0, 1, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 1, 0, 1, 1, 0, 0, 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("picks (-want +got):\n%s", diff)
	}
}
