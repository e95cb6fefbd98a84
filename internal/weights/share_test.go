package weights_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

func TestShareText(t *testing.T) {
	for _, tc := range []struct {
		share weights.Share
		want  v1alpha1.Percent
		whole bool
	}{
		{weights.ShareNone, "0", true},
		{1, "0.01", false},
		{50, "0.5", false},
		{weights.SharePoint, "1", true},
		{1234, "12.34", false},
		{weights.ShareAll, "100", true},
	} {
		if got := tc.share.Percent(); got != tc.want {
			t.Errorf("Share(%d).Percent() = %q, want %q", tc.share, got, tc.want)
		}
		if got, want := tc.share.String(), string(tc.want)+"%"; got != want {
			t.Errorf("Share(%d).String() = %q, want %q", tc.share, got, want)
		}
		if got := tc.share.Whole(); got != tc.whole {
			t.Errorf("Share(%d).Whole() = %v, want %v", tc.share, got, tc.whole)
		}
		if got, err := weights.ShareFrom(tc.want); err != nil || got != tc.share {
			t.Errorf("ShareFrom(%q) = %d, %v, want %d", tc.want, got, err, tc.share)
		}
	}
	if got, err := weights.ShareFrom("5%"); err == nil {
		t.Errorf(`ShareFrom("5%%") = %d, want an error`, got)
	}
	if low, high := weights.Share(-1).Clamp(), (weights.ShareAll + 1).Clamp(); low != weights.ShareNone || high != weights.ShareAll {
		t.Errorf("clamped to %d and %d, want %d and %d", low, high, weights.ShareNone, weights.ShareAll)
	}
}

func TestPair(t *testing.T) {
	for _, tc := range []struct {
		share          weights.Share
		sum            int32
		stable, canary int32
	}{
		{weights.ShareNone, 100, 100, 0},
		{500, 100, 95, 5},
		{weights.ShareAll, 100, 0, 100},
		{1234, 10000, 8766, 1234},
		{50, 100, 100, 0},
		{9999, 100, 1, 99},
		{3333, 3, 3, 0},
		{3334, 3, 2, 1},
		{5000, 0, 0, 0},
		{5000, -7, 0, 0},
		{-1, 10, 10, 0},
		{weights.ShareAll + 1, 10, 0, 10},
		{5000, math.MaxInt32, 1073741824, 1073741823},
	} {
		stable, canary := weights.Pair(tc.share, tc.sum)
		if stable != tc.stable || canary != tc.canary {
			t.Errorf("Pair(%d, %d) = %d, %d, want %d, %d", tc.share, tc.sum, stable, canary, tc.stable, tc.canary)
		}
	}
}

func TestPart(t *testing.T) {
	for _, tc := range []struct {
		part, sum int64
		low, high weights.Share
	}{
		{0, 100, 0, 0},
		{2, 10, 2000, 2000},
		{100, 200, 5000, 5000},
		{1, 3, 3333, 3334},
		{1, 1_000_000, 0, 1},
		{999_999, 1_000_000, 9999, weights.ShareAll},
		{7, 7, weights.ShareAll, weights.ShareAll},
		{1, 0, 0, 0},
		{-1, 5, 0, 0},
		{9, 5, weights.ShareAll, weights.ShareAll},
		{math.MaxInt64, math.MaxInt64, weights.ShareAll, weights.ShareAll},
		{math.MaxInt64 / 2, math.MaxInt64, 4999, 5000},
	} {
		low, high := weights.Part(tc.part, tc.sum)
		if low != tc.low || high != tc.high {
			t.Errorf("Part(%d, %d) = %d, %d, want %d, %d", tc.part, tc.sum, low, high, tc.low, tc.high)
		}
	}
}

// What Pair writes, Part never reads back as more than was asked for, and as less by
// no more than the one unit of weight that was rounded away.
func TestPairNeverPassesItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := weights.Share(rapid.IntRange(0, int(weights.ShareAll)).Draw(t, "share"))
		sum := rapid.Int32Range(1, math.MaxInt32).Draw(t, "sum")
		stable, canary := weights.Pair(share, sum)
		if stable < 0 || canary < 0 || int64(stable)+int64(canary) != int64(sum) {
			t.Fatalf("%d and %d do not add up to %d", stable, canary, sum)
		}
		if share < weights.ShareAll && stable == 0 {
			t.Fatalf("a share of %d leaves stable nothing", share)
		}
		low, high := weights.Part(int64(canary), int64(sum))
		if low > high || high > low+1 || high > share {
			t.Fatalf("a share of %d reads back as %d to %d", share, low, high)
		}
		if _, next := weights.Part(int64(canary)+1, int64(sum)); share < weights.ShareAll && next < share {
			t.Fatalf("a weight of %d would also be within a share of %d of %d", canary+1, share, sum)
		}
		if share.Whole() && sum%100 == 0 && (low != share || high != share) {
			t.Fatalf("%s of %d is not exact: %d to %d", share, sum, low, high)
		}
	})
}
