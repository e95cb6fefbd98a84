package compare

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The wealth after two blocks, over every outcome of both, where the canary is worse
// by the margin or more.
func TestNotWorseIsFair(t *testing.T) {
	for _, margin := range []float64{0.02, 0.2} {
		for _, rates := range [][2][2]float64{
			{{0.1, 0.1 + margin}, {0.1, 0.1 + margin}}, {{0, margin}, {0.5, 0.5 + margin}}, {{0.02, 0.4}, {0.02, 0.9}}, {{0.7, 0.7 + margin}, {0, margin}},
		} {
			got := mean(6, 3, rates[0][0], rates[0][1], func(x table) float64 {
				first := NewNotWorse(margin).Add(block(x.badA, x.totalA, x.badB, x.totalB))
				return math.Log(mean(4, 5, rates[1][0], rates[1][1], func(y table) float64 {
					return math.Log(first.Add(block(y.badA, y.totalA, y.badB, y.totalB)).Wealth())
				}))
			})
			if got > 1+1e-9 {
				t.Errorf("margin %v, rates %v: the mean wealth is %v", margin, rates, got)
			}
		}
	}
}

func TestNotWorse(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	good := block(30, 6000, 30, 6000)
	tests := map[string]struct {
		margin float64
		blocks []Block
		want   bool
	}{
		"nothing":                   {0.01, nil, false},
		"as good":                   {0.01, []Block{good, good, good}, true},
		"a single such block":       {0.01, []Block{good}, false},
		"no bad one at all":         {0.01, []Block{block(0, 6000, 0, 6000)}, true},
		"worse by the margin":       {0.01, []Block{block(30, 6000, 90, 6000), block(30, 6000, 90, 6000), block(30, 6000, 90, 6000)}, false},
		"few requests":              {0.01, []Block{block(0, 6000, 0, 60)}, false},
		"a bad block for both, too": {0.01, []Block{good, good, block(900, 6000, 900, 6000), good, good, good, good}, true},
		"first guess far too low":   {0.01, []Block{block(300, 6000, 300, 6000), block(300, 6000, 300, 6000), block(300, 6000, 300, 6000), block(300, 6000, 300, 6000), block(300, 6000, 300, 6000)}, true},
		"no margin":                 {0, []Block{good, good, good}, false},
		"a margin that is none":     {nan, []Block{good, good, good}, false},
		"a margin of everything":    {1, []Block{good}, true},
		"no traffic":                {0.01, []Block{block(0, 0, 0, 6000), block(0, 6000, 0, 0)}, false},
		"NaN and infinite":          {0.01, []Block{block(nan, 6000, 0, 6000), block(0, 6000, 0, inf), block(0, 6000, -inf, 6000)}, false},
		"very many":                 {0.01, []Block{block(5e8, 1e9, 5e8, 1e9), block(5e8, 1e9, 5e8, 1e9)}, true},
		"very many, all bad":        {0.01, []Block{block(1e9, 1e9, 1e9, 1e9), block(1e9, 1e9, 1e9, 1e9)}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := NewNotWorse(tc.margin)
			for _, b := range tc.blocks {
				n = n.Add(b)
			}
			if got := n.Proven(0.05); got != tc.want {
				t.Errorf("proven: %v at a wealth of %v, want %v", got, n.Wealth(), tc.want)
			}
			if w := n.Wealth(); !(w >= 0 && w <= maxWealth) {
				t.Errorf("a wealth of %v", w)
			}
		})
	}
}

// What is foretold at one split and rate is about what it then takes.
func TestMoreRequests(t *testing.T) {
	for name, b := range map[string]Block{
		"1 of 100":   block(59.4, 11_880, 0.6, 120),
		"10 of 100":  block(54, 10_800, 6, 1200),
		"few errors": block(6, 1080, 0, 120),
	} {
		// The bad ones of the canary come in turns, so that whole numbers average to
		// the fraction.
		next := func(k int) Block {
			x := b
			x.Canary.Bad = math.Floor(b.Canary.Bad*float64(k+1)) - math.Floor(b.Canary.Bad*float64(k))
			return x
		}
		n := NewNotWorse(0.01)
		for k := range 2 {
			n = n.Add(next(k))
		}
		foretold := n.MoreRequests(1e-6)
		took := 0.0
		for k := 2; !n.Proven(1e-6) && k < 1000; k++ {
			n = n.Add(next(k))
			took += b.Canary.Total
		}
		if !(foretold > 0.5*took && foretold < 2*took+b.Canary.Total) {
			t.Errorf("%s: foretold %v, and it took %v", name, foretold, took)
		}
		if got := n.MoreRequests(1e-6); got != 0 {
			t.Errorf("%s: proven, and %v more requests", name, got)
		}
	}
}

func TestMoreRequestsBeforeAndNever(t *testing.T) {
	if got := NewNotWorse(0.01).MoreRequests(0.05); !(got > 200 && got < 600) {
		t.Errorf("before the first block: %v", got)
	}
	worse := NewNotWorse(0.01).Add(block(60, 6000, 130, 6000))
	for name, got := range map[string]float64{
		"worse":     worse.MoreRequests(0.05),
		"no margin": NewNotWorse(0).MoreRequests(0.05),
		"alpha 0":   NewNotWorse(0.01).MoreRequests(0),
		"alpha NaN": NewNotWorse(0.01).MoreRequests(math.NaN()),
	} {
		if !math.IsInf(got, 1) {
			t.Errorf("%s: %v, want infinity", name, got)
		}
	}
}

func TestPropertyNotWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := NewNotWorse(rapid.SampledFrom([]float64{1e-4, 0.005, 0.1, 0.7, 1}).Draw(t, "margin"))
		for range rapid.IntRange(0, 8).Draw(t, "blocks") {
			n = n.Add(drawBlock(t))
		}
		x := drawTable(t)
		now := n.Add(block(x.badA, x.totalA, x.badB, x.totalB)).Wealth()
		more := n.Add(block(x.badA, x.totalA, x.badB+1, x.totalB)).Wealth()
		if !(now >= 0 && now <= maxWealth) || more > now*(1+1e-6) {
			t.Fatalf("%+v: %v, and with one more bad one of the canary %v", x, now, more)
		}
		if left := n.MoreRequests(0.05); !(left >= 0) || (left == 0) != n.Proven(0.05) {
			t.Fatalf("%v more requests, proven: %v", left, n.Proven(0.05))
		}
	})
}

func BenchmarkNotWorse(b *testing.B) {
	b.ReportAllocs()
	n := NewNotWorse(0.005)
	for b.Loop() {
		n = n.Add(block(119, 11_880, 1, 120))
	}
}
