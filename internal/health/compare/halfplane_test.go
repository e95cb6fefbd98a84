package compare

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Everywhere in the null, on either side of the boundary, the mean is at most 1.
func TestRatioIsAnEVariable(t *testing.T) {
	rates := []float64{0, 0.01, 0.05, 0.1, 0.15, 0.3, 0.5, 0.55, 0.9, 1}
	alternatives := [][2]float64{{0.01, 0.01}, {0.01, 0.2}, {0.05, 0.16}, {0.3, 0.3}, {0.5, 0.9}, {0.9, 0.05}, {0.97, 0.97}}
	for _, margin := range []float64{0, 0.005, 0.1, 0.5} {
		for _, alt := range alternatives {
			for _, total := range [][2]int{{1, 1}, {12, 2}, {2, 9}, {7, 7}} {
				for _, a := range rates {
					for _, b := range rates {
						if alt[1] > alt[0]+margin != (b <= a+margin) {
							continue // The rates are not in the null.
						}
						got := mean(total[0], total[1], a, b, func(x table) float64 { return x.ratio(alt[0], alt[1], margin) })
						if got > 1+1e-9 {
							t.Errorf("margin %v, bet on %v, %v requests, rates %v and %v: mean %v", margin, alt, total, a, b, got)
						}
					}
				}
			}
		}
	}
}

func relativeEntropy(a, p float64) float64 {
	return a*math.Log(a/p) + (1-a)*math.Log((1-a)/(1-p))
}

func TestNearestIsTheNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(1e-6, 1-1e-6)
		x := table{totalA: float64(rapid.IntRange(1, 1_000_000).Draw(t, "stable")), totalB: float64(rapid.IntRange(1, 1_000_000).Draw(t, "canary"))}
		a, b, margin := rate.Draw(t, "a"), rate.Draw(t, "b"), rapid.Float64Range(0, 0.9).Draw(t, "margin")
		p := x.nearest(a, b, margin)
		if !(p > 0 && p < 1-margin) {
			t.Fatalf("%v is no rate between 0 and %v", p, 1-margin)
		}
		distance := func(p float64) float64 {
			return x.totalA*relativeEntropy(a, p) + x.totalB*relativeEntropy(b, p+margin)
		}
		for _, step := range []float64{1e-6, 1e-3, 0.1} {
			for _, q := range []float64{p * (1 - step), p + step*(1-margin-p)} {
				if distance(q) < distance(p)*(1-1e-9)-1e-9 {
					t.Fatalf("%v is at %v, and %v at %v", p, distance(p), q, distance(q))
				}
			}
		}
	})
}

// With no margin the nearest point is known: the rate of both together.
func TestNearestWithoutMargin(t *testing.T) {
	x := table{totalA: 300, totalB: 100}
	if got, want := x.nearest(0.01, 0.05, 0), 0.02; math.Abs(got-want) > 1e-15 {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestRatioOfTheBoundaryBetsNothing(t *testing.T) {
	if got := (table{100, 3, 50, 9}).ratio(0.25, 0.375, 0.125); got != 0 {
		t.Errorf("exp(%v), want 1", got)
	}
}

func TestStake(t *testing.T) {
	for log, want := range map[float64]float64{
		0: 0, math.Inf(-1): math.Log(0.25), -1e9: math.Log(0.25), math.Log(2): math.Log(1.75), 1e6: 1e6 + math.Log(0.75),
	} {
		if got := stake(log); math.Abs(got-want) > 1e-12*(1+math.Abs(want)) {
			t.Errorf("of exp(%v) exp(%v) is left, want exp(%v)", log, got, want)
		}
	}
}
