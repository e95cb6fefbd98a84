package weights_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights"
)

func TestScaleBackWalks(t *testing.T) {
	fine := defaults
	fine.WholePoints = false
	for _, tc := range []struct {
		name        string
		from, stage weights.Share
		score       weights.Share
		limits      weights.RampLimits
		want        []weights.Share
	}{
		{"to half", 5000, 5000, 5000, defaults, []weights.Share{4000, 3200, 2600, 2500}},
		{"to the floor", 2000, 2000, 0, defaults, []weights.Share{1600, 1300, 1100, 900, 800, 700, 600, 500, 400}},
		{"in basis points", 2000, 2000, 7000, fine, []weights.Share{1600, 1400}},
		{"within the dead band", 1000, 1000, 9100, defaults, nil},
		{"on the way to the stage", 1000, 5000, 5000, defaults, nil},
		{"in whole points there is nothing between 1 and 0", 100, 100, 2000, defaults, nil},
		{"a perfect score", 5000, 5000, 10000, defaults, nil},
		{"more than perfect", 5000, 5000, 30000, defaults, nil},
		{"less than nothing", 500, 500, -7, fine, []weights.Share{400, 300, 200, 100}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []weights.Share
			for at := tc.from; len(got) <= len(tc.want); {
				next := weights.ScaleBack(at, tc.stage, tc.score, tc.limits)
				if next == at {
					break
				}
				at = next
				got = append(got, at)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Scaling back never raises, never goes under a fifth of the stage's share, goes down
// by no more than the ramp allows, writes nothing within the dead band, and comes to
// rest.
func TestScaleBackProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := drawLimits(t)
		stage := weights.Share(rapid.IntRange(1, int(weights.ShareAll)).Draw(t, "stage"))
		at := weights.Share(rapid.IntRange(0, int(stage)).Draw(t, "present"))
		score := weights.Share(rapid.IntRange(-100, 11000).Draw(t, "score"))
		for range 2*int(weights.ShareAll)/int(limits.MinIncrease) + 2 {
			next := weights.ScaleBack(at, stage, score, limits)
			switch {
			case next > at:
				t.Fatalf("raised from %d to %d", at, next)
			case next == at:
				return
			case next*5 < stage:
				t.Fatalf("%d is under a fifth of %d", next, stage)
			case next*weights.ShareAll < stage*min(max(score, 0), weights.ShareAll):
				t.Fatalf("%d is under the score %d of %d", next, score, stage)
			case at-next > limits.Cap(at):
				t.Fatalf("from %d to %d is more than %d", at, next, limits.Cap(at))
			}
			at = next
		}
		t.Fatalf("still moving at %d of %d by the score %d", at, stage, score)
	})
}

func BenchmarkScaleBack(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		weights.ScaleBack(5000, 5000, 5000, defaults)
	}
}
