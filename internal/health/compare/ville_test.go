package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// bad draws how many of so many requests are bad.
func bad(source rand.Source, total, rate float64) float64 {
	return distuv.Binomial{N: total, P: rate, Src: source}.Rand()
}

// The chance that a good canary is ever called worse is at most alpha, with a look
// after every block, whatever the split and however the common rate moves. The bound
// of the count allows for five standard deviations of luck; the seed is fixed.
func TestVille(t *testing.T) {
	const runs, looks, alpha = 400, 60, 0.05
	limit := runs*alpha + 5*math.Sqrt(runs*alpha*(1-alpha))
	hour := func(k int) float64 { // The rate of both.
		if k >= 20 && k < 30 {
			return 0.1
		}
		return 0.01
	}
	tests := map[string]struct {
		margin, worse float64 // worse is the canary's rate above stable's.
		share         func(k int) float64
	}{
		"1 of 100":                   {share: func(int) float64 { return 0.01 }},
		"half":                       {share: func(int) float64 { return 0.5 }},
		"a ramp":                     {share: func(k int) float64 { return []float64{0.01, 0.05, 0.1, 0.2, 0.5}[k/12] }},
		"margin, as good":            {margin: 0.005, share: func(int) float64 { return 0.2 }},
		"margin, just not worse":     {margin: 0.005, worse: 0.005, share: func(int) float64 { return 0.2 }},
		"margin, just not worse, 50": {margin: 0.005, worse: 0.005, share: func(int) float64 { return 0.5 }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			source := rand.NewPCG(7, 11)
			alarms := 0.0
			for range runs {
				i := NewInferiority(tc.margin)
				for k := range looks {
					canary := 12_000 * tc.share(k)
					stable := 12_000 - canary
					i = i.Add(block(bad(source, stable, hour(k)), stable, bad(source, canary, hour(k)+tc.worse), canary))
					if i.Proven(alpha) {
						alarms++
						break
					}
				}
			}
			if alarms > limit {
				t.Errorf("%v of %v good canaries were called worse, which is more than %.0f", alarms, runs, limit)
			}
		})
	}
}

// The same for a canary that is worse by just the margin, and called not worse.
func TestVilleNotWorse(t *testing.T) {
	const runs, looks, alpha, margin = 400, 60, 0.05, 0.005
	limit := runs*alpha + 5*math.Sqrt(runs*alpha*(1-alpha))
	for _, share := range []float64{0.01, 0.5} {
		source := rand.NewPCG(13, 17)
		passed := 0.0
		for range runs {
			n := NewNotWorse(margin)
			for k := range looks {
				rate := 0.01
				if k >= 20 && k < 30 {
					rate = 0.1
				}
				canary := 12_000 * share
				stable := 12_000 - canary
				n = n.Add(block(bad(source, stable, rate), stable, bad(source, canary, rate+margin), canary))
				if n.Proven(alpha) {
					passed++
					break
				}
			}
		}
		if passed > limit {
			t.Errorf("share %v: %v of %v bad canaries were called not worse, which is more than %.0f", share, passed, runs, limit)
		}
	}
}
