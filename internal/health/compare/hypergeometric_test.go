package compare

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// exactMean returns log E[psi^Y] in whole numbers; psi is a whole number.
func exactMean(d draw, psi int64) float64 {
	sum := new(big.Int)
	marked, drawn, left := int64(d.marked), int64(d.drawn), int64(d.left)
	for y := max(0, marked-left); y <= min(marked, drawn); y++ {
		term := new(big.Int).Binomial(drawn, y)
		term.Mul(term, new(big.Int).Binomial(left, marked-y))
		sum.Add(sum, term.Mul(term, new(big.Int).Exp(big.NewInt(psi), big.NewInt(y), nil)))
	}
	return bigLog(sum) - bigLog(new(big.Int).Binomial(drawn+left, marked))
}

func bigLog(x *big.Int) float64 {
	mantissa := new(big.Float)
	exponent := new(big.Float).SetInt(x).MantExp(mantissa)
	m, _ := mantissa.Float64()
	return math.Log(m) + float64(exponent)*math.Ln2
}

func TestLogMeanIsExact(t *testing.T) {
	for _, d := range []draw{
		{0, 5, 5}, {10, 5, 5}, {1, 1, 1}, {3, 4, 7}, {9, 4, 7}, {12, 120, 11880}, {119, 120, 11880},
		{120, 6000, 6000}, {300, 40, 20}, {500, 700, 800}, {900, 400, 1100}, {1499, 700, 800},
	} {
		for _, psi := range []int64{1, 2, 3, 10} {
			want, got := exactMean(d, psi), d.logMean(float64(psi))
			if math.Abs(got-want) > 1e-10*(1+want) {
				t.Errorf("%+v, psi %d: %v, want %v", d, psi, got, want)
			}
		}
	}
}

// The mean of psi^Y is symmetric in what is marked and what is drawn, which takes
// another way through the sum, and the mean of 1^Y is 1.
func TestLogMeanOfManyRequests(t *testing.T) {
	for _, d := range []draw{{3e5, 1e5, 5e5}, {1e6, 1e6, 1e6}, {5e8, 1e9, 1e9}, {1e9, 1e9, 1e9}, {2e7, 1e7, 1e9}} {
		tolerance := 1e-9
		if d.drawn > 1e6 {
			tolerance = 1e-5
		}
		if got := d.logMean(1); math.Abs(got) > tolerance {
			t.Errorf("%+v: E[1^Y] is exp(%v)", d, got)
		}
		for _, psi := range []float64{1.25, 3, 12} {
			turned := draw{marked: d.drawn, drawn: d.marked, left: d.drawn + d.left - d.marked}
			got, want := d.logMean(psi), turned.logMean(psi)
			// The convex order: drawing with replacement spreads Y more (W. Hoeffding,
			// "Probability inequalities for sums of bounded random variables", 1963).
			above := d.marked * math.Log1p(d.drawn/(d.drawn+d.left)*(psi-1))
			below := d.marked * d.drawn / (d.drawn + d.left) * math.Log(psi)
			if math.Abs(got-want) > 1e-13*want+tolerance || got > above+tolerance || got < below-tolerance {
				t.Errorf("%+v, psi %v: %v, turned %v, want within %v and %v", d, psi, got, want, below, above)
			}
		}
	}
}

// Summing each stride-th term only changes nothing that can be seen.
func TestStridesMissNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw{
			drawn: float64(rapid.IntRange(1, 20_000).Draw(t, "drawn")),
			left:  float64(rapid.IntRange(1, 20_000).Draw(t, "left")),
		}
		d.marked = float64(rapid.IntRange(0, int(d.drawn+d.left)).Draw(t, "marked"))
		psi := rapid.SampledFrom(odds[:]).Draw(t, "psi")
		low, high := max(0, d.marked-d.left), min(d.marked, d.drawn)
		peak := min(max(d.peak(psi), low), high)
		all := 1 + d.side(psi, peak, 1, high) + d.side(psi, peak, -1, low)
		want := math.Log(all) + d.logWays(peak) + peak*math.Log(psi) - logChoose(d.drawn+d.left, d.marked)
		if got := d.logMean(psi); math.Abs(got-want) > 1e-9 {
			t.Fatalf("%+v, psi %v: %v, and term by term %v", d, psi, got, want)
		}
	})
}

// binomial returns the chance of k of n.
func binomial(n, k int, p float64) float64 {
	switch {
	case p == 0 && k == 0, p == 1 && k == n:
		return 1
	case p == 0, p == 1:
		return 0
	}
	ways, _ := new(big.Float).SetInt(new(big.Int).Binomial(int64(n), int64(k))).Float64()
	return ways * math.Pow(p, float64(k)) * math.Pow(1-p, float64(n-k))
}

// mean returns the mean of exp(log) over every outcome of a block at the given rates.
func mean(totalA, totalB int, rateA, rateB float64, log func(table) float64) float64 {
	sum := 0.0
	for a := range totalA + 1 {
		for b := range totalB + 1 {
			x := table{float64(totalA), float64(a), float64(totalB), float64(b)}
			sum += binomial(totalA, a, rateA) * binomial(totalB, b, rateB) * math.Exp(log(x))
		}
	}
	return sum
}

func TestConditionalIsAnEVariable(t *testing.T) {
	rates := []float64{0, 0.001, 0.05, 0.3, 0.5, 0.9, 1}
	for _, total := range [][2]int{{1, 1}, {9, 1}, {1, 6}, {8, 8}, {30, 3}} {
		for _, a := range rates {
			for _, b := range rates {
				for _, psi := range odds {
					got := mean(total[0], total[1], a, b, func(x table) float64 { return x.conditional(psi) })
					name := fmt.Sprintf("%v requests, rates %v and %v, psi %v: mean %v", total, a, b, psi, got)
					if b <= a && got > 1+1e-9 {
						t.Error(name)
					}
					if a == b && math.Abs(got-1) > 1e-9 {
						t.Error(name, "which is not 1")
					}
				}
			}
		}
	}
}

// drawTable draws a block from a few requests to millions.
func drawTable(t *rapid.T) table {
	count := func(label string) int {
		return rapid.IntRange(1, rapid.SampledFrom([]int{5, 200, 20_000, 5_000_000}).Draw(t, label+" size")).Draw(t, label)
	}
	totalA, totalB := count("stable"), count("canary")
	return table{
		float64(totalA), float64(rapid.IntRange(0, totalA).Draw(t, "stable bad")),
		float64(totalB), float64(rapid.IntRange(0, totalB).Draw(t, "canary bad")),
	}
}

// One more bad request of the canary is more evidence, and one of stable is less.
func TestConditionalIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawTable(t)
		psi := rapid.SampledFrom(odds[:]).Draw(t, "psi")
		now := x.conditional(psi)
		slack := 1e-9 * (1 + math.Abs(now))
		if y := x; y.badB < y.totalB {
			y.badB++
			if more := y.conditional(psi); more < now-slack {
				t.Fatalf("%+v: %v, and with one more bad one of the canary %v", x, now, more)
			}
		}
		if y := x; y.badA < y.totalA {
			y.badA++
			if less := y.conditional(psi); less > now+slack {
				t.Fatalf("%+v: %v, and with one more bad one of stable %v", x, now, less)
			}
		}
	})
}
