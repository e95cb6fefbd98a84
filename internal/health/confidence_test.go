package health

import (
	"math"
	"testing"
)

// The expected bounds are exact binomial ones: for all of n bad the bound is
// 0.05^(1/n), and for one bad it is 1 - 0.95^(1/n). The others were solved for
// with the binomial sum below.
func TestLowerBound(t *testing.T) {
	tests := map[string]struct{ bad, total, want float64 }{
		"one of one":     {1, 1, 0.05},
		"ten of ten":     {10, 10, math.Pow(0.05, 0.1)},
		"one of hundred": {1, 100, 1 - math.Pow(0.95, 0.01)},
		"none":           {0, 100, 0},
		"of nothing":     {5, 0, 0},
		"negative":       {-1, 100, 0},
		"NaN":            {math.NaN(), 100, 0},
		"NaN total":      {5, math.NaN(), 0},
		"infinite":       {math.Inf(1), math.Inf(1), 0},
		"more than all":  {12, 10, math.Pow(0.05, 0.1)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := LowerBound(tc.bad, tc.total); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("LowerBound(%v, %v) = %v, want %v", tc.bad, tc.total, got, tc.want)
			}
		})
	}
}

// By definition, at the bound as many bad ones or more are seen in 5 % of cases.
func TestLowerBoundIsTheBinomialTail(t *testing.T) {
	for _, n := range []int{5, 20, 100, 400} {
		for _, k := range []int{1, 5, n / 4, n / 2, n - 1} {
			p := LowerBound(float64(k), float64(n))
			if tail := binomialTail(k, n, p); math.Abs(tail-doubt) > 1e-6 {
				t.Errorf("%d of %d: P(X >= %d | p = %v) = %v, want %v", k, n, k, p, tail, doubt)
			}
		}
	}
}

func binomialTail(k, n int, p float64) float64 {
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	tail := 0.0
	for i := k; i <= n; i++ {
		tail += math.Exp(lg(n) - lg(i) - lg(n-i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return tail
}

func TestExceeds(t *testing.T) {
	tests := map[string]struct {
		bad, total, limit float64
		want              bool
	}{
		"four are never enough":   {4, 4, 0.01, false},
		"five of twenty":          {5, 20, 0.01, true},
		"five of five hundred":    {5, 500, 0.01, false},
		"at the limit":            {10, 1000, 0.01, false},
		"above, but in doubt":     {14, 1000, 0.01, false},
		"above, beyond doubt":     {20, 1000, 0.01, true},
		"limit zero":              {5, 1e6, 0, true},
		"limit of everything":     {100, 100, 1, false},
		"many requests":           {1.1e7, 1e9, 0.01, true},
		"many requests, at limit": {1e7, 1e9, 0.01, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := exceeds(tc.bad, tc.total, tc.limit); got != tc.want {
				t.Errorf("exceeds(%v, %v, %v) = %v, bound %v", tc.bad, tc.total, tc.limit, got, LowerBound(tc.bad, tc.total))
			}
		})
	}
}
