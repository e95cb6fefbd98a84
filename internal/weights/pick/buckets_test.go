package pick_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights/pick"
)

// pair makes the buckets of stable and canary, of which the canary has index 1.
func pair(t fataler, stable, canary int32, salt string) *pick.Buckets {
	t.Helper()
	b, err := pick.NewBuckets([]pick.Backend{{Name: "stable", Weight: stable}, {Name: "canary", Weight: canary}}, salt)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// uuids are the keys of n random UUIDs, seeded.
func uuids(n int) []uint64 {
	r := rand.New(rand.NewPCG(5, 6))
	keys := make([]uint64, n)
	for i := range keys {
		hi, lo := r.Uint64(), r.Uint64()
		keys[i] = pick.Key(fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", hi>>32, hi>>16&0xffff, hi&0xfff, lo>>48&0x3fff|0x8000, lo&0xffffffffffff))
	}
	return keys
}

func TestBucketsOwners(t *testing.T) {
	for _, tc := range []struct {
		given []int32
		want  []int // buckets per backend
	}{
		{[]int32{9999, 1}, []int{9999, 1}},
		{[]int32{95, 5}, []int{9500, 500}},
		{[]int32{0, 7}, []int{0, 10000}},
		{[]int32{7, 0}, []int{10000, 0}},
		{[]int32{1, 1, 1}, []int{3334, 3333, 3333}},
		{[]int32{5, 0, 3, 2}, []int{5000, 0, 3000, 2000}},
		{[]int32{1_000_000, 1}, []int{10000, 0}},
		{[]int32{math.MaxInt32, math.MaxInt32}, []int{5000, 5000}},
	} {
		b, err := pick.NewBuckets(backends(tc.given...), "")
		if err != nil {
			t.Fatal(err)
		}
		owners, counts := b.Owners(), make([]int, len(tc.given))
		for i, owner := range owners {
			counts[owner]++
			if i > 0 && owner > owners[i-1] {
				t.Errorf("%v: bucket %d belongs to %d, the one before to %d", tc.given, i, owner, owners[i-1])
			}
		}
		if diff := cmp.Diff(tc.want, counts); diff != "" {
			t.Errorf("%v: buckets per backend (-want +got):\n%s", tc.given, diff)
		}
	}
}

// Every share that a plan can hold is exact in buckets, and the canary has the first.
func TestBucketsAreBasisPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.Int32Range(0, 10000).Draw(t, "share")
		for i, owner := range pair(t, 10000-share, share, "").Owners() {
			if canary := i < int(share); (owner == 1) != canary {
				t.Fatalf("at %d basis points bucket %d belongs to backend %d", share, i, owner)
			}
		}
	})
}

// A raise of the canary's share moves no user from canary to stable.
func TestBucketsAreMonotone(t *testing.T) {
	keys := uuids(1000)
	rapid.Check(t, func(t *rapid.T) {
		salt := rapid.String().Draw(t, "salt")
		var weights [2][2]int32
		for i := range weights {
			weights[i][0] = rapid.Int32Range(1, 1_000_000).Draw(t, "stable")
			weights[i][1] = rapid.Int32Range(0, 1_000_000).Draw(t, "canary")
		}
		low, high := weights[0], weights[1]
		if int64(low[1])*int64(high[0]) > int64(high[1])*int64(low[0]) {
			low, high = high, low
		}
		before, after := pair(t, low[0], low[1], salt), pair(t, high[0], high[1], salt)
		for _, key := range keys {
			if before.Pick(key) == 1 && after.Pick(key) == 0 {
				t.Fatalf("from %v to %v the key %d goes back to stable", low, high, key)
			}
		}
	})
}

// Over 100,000 users the canary's share is within half a point of the weight's.
func TestBucketsShares(t *testing.T) {
	keys := uuids(100_000)
	for _, salt := range []string{"", "checkout", "cart"} {
		for _, percent := range []int32{0, 1, 5, 10, 20, 50, 75, 99, 100} {
			b, canary := pair(t, 100-percent, percent, salt), 0
			for _, key := range keys {
				canary += b.Pick(key)
			}
			if got := float64(canary) * 100 / float64(len(keys)); math.Abs(got-float64(percent)) > 0.5 {
				t.Errorf("salt %q: at %d %% the canary has %.3f %% of the users", salt, percent, got)
			}
		}
	}
}

// With another salt other users come first: of the tenth that one salt picks, another
// picks about a tenth.
func TestBucketsSalt(t *testing.T) {
	keys := uuids(100_000)
	a, b := pair(t, 9, 1, "checkout"), pair(t, 9, 1, "cart")
	both := 0
	for _, key := range keys {
		if a.Pick(key) == 1 && b.Pick(key) == 1 {
			both++
		}
	}
	if both < 800 || both > 1200 {
		t.Errorf("two salts share %d of 100,000 users, want about 1000", both)
	}
}
