package health

import (
	"math"
	"testing"
)

func TestAtLeastIsTheBinomialTail(t *testing.T) {
	for _, n := range []int{5, 20, 100, 400, 10000} {
		for _, k := range []int{1, 5, n/4 + 1, n / 2, n - 1, n} {
			for _, p := range []float64{0.0001, 0.01, 0.2, 0.5, 0.99} {
				want := binomialTail(k, n, p)
				if got := atLeast(float64(k), float64(n), p); math.Abs(got-want) > 1e-9 {
					t.Errorf("P(X >= %d | n = %d, p = %v) = %v, want %v", k, n, p, got, want)
				}
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

// Where all of n are bad, the lower bound is known in closed form: 0.05^(1/n).
func TestExceedsAtTheBound(t *testing.T) {
	for _, n := range []float64{5, 10, 40} {
		bound := math.Pow(0.05, 1/n)
		if exceeds(n, n, bound+1e-9, 0.05) || !exceeds(n, n, bound-1e-9, 0.05) {
			t.Errorf("%v of %v do not turn at %v", n, n, bound)
		}
	}
}

func TestExceeds(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	tests := map[string]struct {
		bad, total, limit float64
		want              bool
	}{
		"four are never enough":   {4, 4, 0.01, false},
		"five of twenty":          {5, 20, 0.01, true},
		"fractions":               {5.5, 20.25, 0.01, true},
		"five of five hundred":    {5, 500, 0.01, false},
		"at the limit":            {10, 1000, 0.01, false},
		"above, but in 0.05":      {14, 1000, 0.01, false},
		"above, beyond 0.05":      {20, 1000, 0.01, true},
		"limit zero":              {5, 1e6, 0, true},
		"limit of everything":     {100, 100, 1, false},
		"many requests":           {1.1e7, 1e9, 0.01, true},
		"many requests, at limit": {1e7, 1e9, 0.01, false},
		"more than all":           {50, 20, 0.9, false},
		"of nothing":              {5, 0, 0.01, false},
		"NaN":                     {nan, 20, 0.01, false},
		"NaN total":               {5, nan, 0.01, false},
		"NaN limit":               {5, 20, nan, false},
		"infinite":                {inf, inf, 0.01, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := exceeds(tc.bad, tc.total, tc.limit, 0.05); got != tc.want {
				t.Errorf("exceeds(%v, %v, %v) = %v, want %v", tc.bad, tc.total, tc.limit, got, tc.want)
			}
		})
	}
}
