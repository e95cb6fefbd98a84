package balance_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights/balance"
)

func TestByResponseTime(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		name  string
		total int64
		times []float64
		want  []int64
	}{
		{"the same", 100, []float64{0.05, 0.05}, []int64{50, 50}},
		{"twice as slow, half the weight", 90, []float64{0.05, 0.1}, []int64{60, 30}},
		// 1/10 : 1/20 : 1/40 is 4 : 2 : 1.
		{"4:2:1", 70, []float64{0.01, 0.02, 0.04}, []int64{40, 20, 10}},
		{"an exact sum", 100, []float64{0.01, 0.02, 0.04}, []int64{57, 29, 14}},
		{"under a millisecond is a millisecond", 100, []float64{0, 0.0001, 0.001}, []int64{34, 33, 33}},
		{"nobody starves", 100, []float64{0.001, 100}, []int64{99, 1}},
		// 1/10 : 1/30 has the mean 1/15: 6 : 2 : 4 of 12.
		{"not known is average", 120, []float64{0.01, 0.03, nan}, []int64{60, 20, 40}},
		{"one", 7, []float64{3}, []int64{7}},
		{"the slowest there is", 3, []float64{math.MaxFloat64, math.MaxFloat64, 0.05}, []int64{1, 1, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := balance.ByResponseTime(tc.total, tc.times)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, tc := range []struct {
		name  string
		total int64
		times []float64
		want  string
	}{
		{"nobody", 1, nil, "no response time is known"},
		{"none known", 1, []float64{nan}, "no response time is known"},
		{"negative", 2, []float64{1, -1}, "the response time of backend 1 is -1 s"},
		{"infinite", 2, []float64{math.Inf(1), 1}, "the response time of backend 0 is +Inf s"},
		{"too coarse", 1, []float64{1, 1}, "a sum of 1 does not suffice for 2 backends"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := balance.ByResponseTime(tc.total, tc.times); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want an error with %q", got, err, tc.want)
			}
		})
	}
}

// The sum is exact, each backend gets at least 1 and less than 1 more than its part, and
// a slower one never more than a faster one.
func TestByResponseTimeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "n")
		times := rapid.SliceOfN(rapid.Float64Range(0, 2), n, n).Draw(t, "times")
		total := rapid.Int64Range(int64(n), 1_000_000).Draw(t, "total")
		got, err := balance.ByResponseTime(total, times)
		if err != nil {
			t.Fatal(err)
		}
		var sum int64
		var inverse float64
		for i := range got {
			sum += got[i]
			inverse += 1 / max(times[i], 0.001)
		}
		if sum != total {
			t.Fatalf("the weights %v add up to %d, not %d", got, sum, total)
		}
		for i := range got {
			quota := 1 / max(times[i], 0.001) / inverse * float64(total)
			if got[i] < 1 || got[i] > 1 && float64(got[i]) > quota+1+1e-3 {
				t.Fatalf("backend %d gets %d, its part is %v", i, got[i], quota)
			}
			for j := range got {
				if max(times[i], 0.001) > max(times[j], 0.001) && got[i] > got[j] {
					t.Fatalf("%v s gets %d and %v s gets %d", times[i], got[i], times[j], got[j])
				}
			}
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64().Draw(t, "total")
		got, err := balance.ByResponseTime(total, rapid.SliceOfN(anyFloat(), 0, 5).Draw(t, "times"))
		var sum int64
		for _, w := range got {
			sum += w
		}
		if err == nil && sum != total {
			t.Fatalf("%v add up to %d, not %d", got, sum, total)
		}
	})
}

func BenchmarkByResponseTime(b *testing.B) {
	times := make([]float64, 16)
	for i := range times {
		times[i] = 0.02 + 0.005*float64(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := balance.ByResponseTime(100, times); err != nil {
			b.Fatal(err)
		}
	}
}
