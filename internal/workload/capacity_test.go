package workload

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights"
)

func TestNeeded(t *testing.T) {
	for _, tt := range []struct {
		share weights.Share
		of    int32
		want  int32
	}{
		{0, 10, 0},
		{1, 10, 1},
		{1000, 10, 1},
		{1001, 10, 2},
		{5000, 10, 5},
		{5000, 3, 2},
		{10000, 10, 10},
		{20000, 10, 10},
		{-1, 10, 0},
		{1, 0, 1},
		{10000, 0, 1},
		{10000, -5, 1},
		{10000, math.MaxInt32, math.MaxInt32},
		{9999, math.MaxInt32, 2147268899},
	} {
		if got := Needed(tt.share, tt.of); got != tt.want {
			t.Errorf("Needed(%d, %d) = %d, want %d", tt.share, tt.of, got, tt.want)
		}
	}
}

func TestPropertyNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := weights.Share(rapid.IntRange(0, 10000).Draw(t, "share"))
		of := rapid.Int32Range(1, math.MaxInt32).Draw(t, "of")
		got := int64(Needed(share, of))
		// One replica takes 1/of of the traffic: got of them cover the share, one less does not.
		if wanted := int64(share) * int64(of); got*10000 < wanted || got > 0 && (got-1)*10000 >= wanted {
			t.Fatalf("Needed(%d, %d) = %d", share, of, got)
		}
	})
}
