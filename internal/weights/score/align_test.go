package score_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

func TestAlign(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		name   string
		points []score.Point
		period time.Duration
		n      int
		want   []float64
	}{
		{"means", every(30, 1, 3, 5, 7), time.Minute, 2, []float64{2, 6}},
		{"a bucket holds its first moment and not its last", every(60, 1, 2, 3), time.Minute, 2, []float64{1, 2}},
		{"missing is not 0", []score.Point{{At: second(0), Value: 4}, {At: second(130), Value: 6}}, time.Minute, 4, []float64{4, nan, 6, nan}},
		{"nothing at all", nil, time.Minute, 2, []float64{nan, nan}},
		{"a missing value is no point", every(10, 4, nan, math.Inf(1), 6), time.Minute, 1, []float64{5}},
		{"a 0 is a value", every(10, 0, 0), time.Minute, 1, []float64{0}},
		{"outside", []score.Point{{At: second(-1), Value: 9}, {At: second(60), Value: 9}, {At: second(59), Value: 1}}, time.Minute, 1, []float64{1}},
		{"far outside", []score.Point{{At: time.Time{}, Value: 9}, {At: noon.AddDate(2000, 0, 0), Value: 9}, {At: second(1), Value: 1}}, time.Minute, 1, []float64{1}},
		{"in any order", []score.Point{{At: second(61), Value: 8}, {At: second(1), Value: 1}, {At: second(2), Value: 3}}, time.Minute, 2, []float64{2, 8}},
		{"no overflow", every(1, math.MaxFloat64, math.MaxFloat64, math.MaxFloat64), time.Minute, 1, []float64{math.MaxFloat64}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := score.Align(tc.points, noon, tc.period, tc.n)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, near, missing); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, tc := range []struct {
		name   string
		period time.Duration
		n      int
		want   string
	}{
		{"no period", 0, 1, "the period is 0s"},
		{"negative period", -time.Second, 1, "the period is -1s"},
		{"no buckets", time.Second, 0, "0 buckets"},
		{"negative buckets", time.Second, -1, "-1 buckets"},
		{"too many buckets", time.Second, 1 << 40, "take 1 to 1000000"},
		{"too long", 200 * 365 * 24 * time.Hour, 2, "reach too far"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := score.Align(nil, noon, tc.period, tc.n); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

// A load per second and an error rate per minute, on one time base and then one number.
// In the minute without a load the composite is refused, and not made of a 0.
func TestSignalsOfDifferentPeriods(t *testing.T) {
	var load []score.Point
	for s := range 180 {
		if s < 60 || s >= 120 {
			load = append(load, score.Point{At: second(float64(s)), Value: 0.5 + 0.5*float64(s%2)})
		}
	}
	errorRates := every(60, 0.02, 0.01, 0.06)

	var signals [][]float64
	for _, points := range [][]score.Point{load, errorRates} {
		aligned, err := score.Align(points, noon, time.Minute, 3)
		if err != nil {
			t.Fatal(err)
		}
		normal, err := score.Normalise(aligned, score.LowerIsBetter)
		if err != nil {
			t.Fatal(err)
		}
		signals = append(signals, normal)
	}
	// The load swings each second, but its mean does not: it takes nothing off.
	if diff := cmp.Diff([][]float64{{1, math.NaN(), 1}, {0.8, 1, 0}}, signals, near, missing); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, err := score.Composite([]float64{signals[0][0], signals[1][0]}, []float64{0.25, 0.75})
	if err != nil || math.Abs(got-0.85) > 1e-12 {
		t.Errorf("got %v, %v, want 0.85", got, err)
	}
	if _, err := score.Composite([]float64{signals[0][1], signals[1][1]}, []float64{0.25, 0.75}); err == nil {
		t.Error("a minute without a load has a composite")
	}
}
