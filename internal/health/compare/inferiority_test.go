package compare

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func block(stableBad, stable, canaryBad, canary float64) Block {
	return Block{Stable: Counts{stableBad, stable}, Canary: Counts{canaryBad, canary}}
}

// The wealth after two blocks, over every outcome of both: bets that are divided anew
// between them, and with a margin guess from the first, still gain nothing on average.
func TestWealthIsFair(t *testing.T) {
	for _, margin := range []float64{0, 0.02, 0.2} {
		for _, rates := range [][2][2]float64{ // of stable and the canary, in each block
			{{0.1, 0.1}, {0.1, 0.1}}, {{0.02, 0.02}, {0.6, 0.6}}, {{0.5, 0.2}, {0.3, 0.3}}, {{0.9, 0.9}, {0.05, 0.05}},
			{{0.1, 0.12}, {0.4, 0.42}}, {{0.1, 0.3}, {0.4, 0.6}}, {{0.1, 0.1}, {0.4, 0.6}},
		} {
			if rates[0][1] > rates[0][0]+margin+1e-12 || rates[1][1] > rates[1][0]+margin+1e-12 {
				continue // Not in the null.
			}
			got := mean(6, 3, rates[0][0], rates[0][1], func(x table) float64 {
				first := NewInferiority(margin).Add(block(x.badA, x.totalA, x.badB, x.totalB))
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

func TestInferiority(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	same := block(119, 11_880, 1, 120)
	worse := block(119, 11_880, 5, 120)
	tests := map[string]struct {
		margin float64
		blocks []Block
		want   bool // whether it is proven at 5 %
	}{
		"nothing":                       {0, nil, false},
		"no difference":                 {0, []Block{same, same, same}, false},
		"one block of a bad canary":     {0, []Block{worse}, false},
		"two":                           {0, []Block{worse, worse}, true},
		"good blocks first":             {0, []Block{same, same, same, same, same, worse, worse, worse}, true},
		"a bad hour for both":           {0, []Block{same, block(3000, 6000, 3000, 6000), block(2900, 6000, 2950, 6000)}, false},
		"better":                        {0, []Block{block(100, 100, 0, 100), block(100, 100, 0, 100)}, false},
		"all bad against none":          {0, []Block{block(0, 100, 100, 100)}, true},
		"worse within the margin":       {0.05, []Block{block(100, 10_000, 400, 10_000), block(100, 10_000, 400, 10_000)}, false},
		"worse beyond the margin":       {0.05, []Block{block(100, 10_000, 1000, 10_000), block(100, 10_000, 1000, 10_000)}, true},
		"the margin is 0 for them":      {0, []Block{block(100, 10_000, 400, 10_000), block(100, 10_000, 400, 10_000)}, true},
		"NaN is no margin":              {nan, []Block{worse, worse}, true},
		"a margin below 0 is none":      {-1, []Block{worse, worse}, true},
		"a margin that leaves no room":  {0.9999, []Block{block(0, 10, 10, 10), block(0, 10, 10, 10)}, false},
		"a margin of everything":        {1, []Block{block(0, 10, 10, 10), block(0, 10, 10, 10)}, false},
		"and more":                      {math.Inf(1), []Block{block(0, 10, 10, 10), block(0, 10, 10, 10)}, false},
		"no traffic on the canary":      {0, []Block{block(0, 100, 0, 0), block(0, 100, 100, 0)}, false},
		"no traffic on stable":          {0, []Block{block(0, 0, 100, 100), block(0, 0.9, 100, 100)}, false},
		"fractions":                     {0, []Block{block(118.7, 11_880.4, 7.2, 119.6), block(118.7, 11_880.4, 7.2, 119.6)}, true},
		"more bad than all":             {0, []Block{block(0, 100, 1000, 100)}, true},
		"less bad than none":            {0, []Block{block(-100, 100, 100, 100)}, true},
		"NaN":                           {0, []Block{block(nan, 100, 100, 100), block(0, nan, 100, 100), block(0, 100, nan, 100), block(0, 100, 100, nan)}, false},
		"infinite":                      {0, []Block{block(0, 100, inf, 100), block(0, 100, 100, inf), block(-inf, 100, 100, 100)}, false},
		"negative totals":               {0, []Block{block(0, -100, 100, 100), block(0, 100, 100, -100)}, false},
		"more requests than there are":  {0, []Block{block(0, 1e300, 1e300, 1e300)}, false},
		"very many, no difference":      {0, []Block{block(1e7, 1e9, 1e7, 1e9), block(5e8, 1e9, 5e8, 1e9)}, false},
		"very many, half a point worse": {0, []Block{block(1e7, 1e9, 1.5e7, 1e9)}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			i := NewInferiority(tc.margin)
			for _, b := range tc.blocks {
				i = i.Add(b)
			}
			if got := i.Proven(0.05); got != tc.want {
				t.Errorf("proven: %v at a wealth of %v, want %v", got, i.Wealth(), tc.want)
			}
			if w := i.Wealth(); !(w >= 0 && w <= maxWealth) {
				t.Errorf("a wealth of %v", w)
			}
		})
	}
}

func TestProvenNeedsAPossibleAlpha(t *testing.T) {
	i := Inferiority{}.Add(block(0, 100, 100, 100))
	for alpha, want := range map[float64]bool{0.05: true, 1e-8: true, 1e-12: false, 0: false, -1: false, 1: false, 2: false, math.NaN(): false} {
		if got := i.Proven(alpha); got != want {
			t.Errorf("alpha %v at a wealth of %v: %v", alpha, i.Wealth(), got)
		}
	}
}

// Everything was lost over a day of good blocks, and still a canary that turns bad
// is found within minutes.
func TestCanaryThatTurnsBadLate(t *testing.T) {
	i := Inferiority{}
	for range 1440 {
		i = i.Add(block(59, 5900, 1, 100))
	}
	if i.Proven(0.05) {
		t.Fatalf("proven of a good canary: %v", i.Wealth())
	}
	for k := range 6 {
		if i = i.Add(block(59, 5900, 7, 100)); i.Proven(0.05) {
			if k == 0 {
				t.Error("one block was enough, which makes this test too easy")
			}
			return
		}
	}
	t.Errorf("not found: %v", i.Wealth())
}

func TestCombined(t *testing.T) {
	bad := Inferiority{}.Add(block(119, 11_880, 7, 120))
	if got := Combined(); got != 1 {
		t.Errorf("of none: %v, want 1", got)
	}
	if got := Combined(bad); got != bad.Wealth() {
		t.Errorf("of one: %v, want %v", got, bad.Wealth())
	}
	if got, want := Combined(bad, Inferiority{}), (bad.Wealth()+1)/2; got != want || Combined(Inferiority{}, bad) != want {
		t.Errorf("of two: %v, want %v", got, want)
	}
}

// drawBlock draws a block, now and then an odd one.
func drawBlock(t *rapid.T) Block {
	if rapid.IntRange(0, 9).Draw(t, "odd?") == 0 {
		odd := rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 0.4, 1, 1e9, 1e12, math.MaxFloat64, math.SmallestNonzeroFloat64})
		return block(odd.Draw(t, "a"), odd.Draw(t, "b"), odd.Draw(t, "c"), odd.Draw(t, "d"))
	}
	x := drawTable(t)
	return block(x.badA, x.totalA, x.badB, x.totalB)
}

func drawMargin(t *rapid.T) float64 {
	return rapid.SampledFrom([]float64{0, 0, 1e-4, 0.005, 0.1, 0.7, 1}).Draw(t, "margin")
}

func drawInferiority(t *rapid.T) Inferiority {
	i := NewInferiority(drawMargin(t))
	for range rapid.IntRange(0, 8).Draw(t, "blocks") {
		i = i.Add(drawBlock(t))
	}
	return i
}

// Whatever has come before, one more bad request of the canary is not less evidence,
// and no block changes the value that it was added to.
func TestPropertyInferiorityIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i, x := drawInferiority(t), drawTable(t)
		before := i
		now := i.Add(block(x.badA, x.totalA, x.badB, x.totalB)).Wealth()
		more := i.Add(block(x.badA, x.totalA, x.badB+1, x.totalB)).Wealth()
		if !(now >= 0 && now <= maxWealth) || more < now*(1-1e-6) {
			t.Fatalf("%+v: %v, and with one more bad one of the canary %v", x, now, more)
		}
		if i != before {
			t.Fatal("adding a block has changed what it was added to")
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	for name, x := range map[string]Block{
		"1to99": block(119, 11_880, 1, 120), "50to50": block(60, 6000, 60, 6000), "billions": block(5e8, 1e9, 5e8, 1e9),
	} {
		for _, margin := range []float64{0, 0.005} {
			title := name
			if margin > 0 {
				title += "/margin"
			}
			b.Run(title, func(b *testing.B) {
				b.ReportAllocs()
				i := NewInferiority(margin)
				for b.Loop() {
					i = i.Add(x)
				}
			})
		}
	}
}
