package balance_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights"
	"github.com/weightedrollout/weightedrollout/internal/weights/balance"
)

func TestStatic(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		name                    string
		sum                     int64
		capacities, throughputs []float64
		want                    []int64
	}{
		{"on paper", 5, []float64{64, 16}, nil, []int64{4, 1}},
		{"measured", 4, []float64{64, 16}, []float64{2.8, 1}, []int64{3, 1}},
		{"measured, finer", 19, []float64{64, 16}, []float64{2800, 1000}, []int64{14, 5}},
		{"reduced", 100, []float64{64, 16}, nil, []int64{4, 1}},
		{"none measured", 5, []float64{64, 16}, []float64{nan, nan}, []int64{4, 1}},
		// 64 cores did 2800, so 16 are expected to do 700.
		{"one measured", 5, []float64{64, 16}, []float64{2800, nan}, []int64{4, 1}},
		// 80 cores did 3800: 47.5 each, so 760 for another 16. 2800:1000:760.
		{"two of three measured", 100, []float64{64, 16, 16}, []float64{2800, 1000, nan}, []int64{61, 22, 17}},
		{"nobody is left out", 100, []float64{1e6, 1}, nil, []int64{99, 1}},
		{"far apart", 10000, []float64{1e300, 1e-300}, nil, []int64{100, 1}},
		{"one", 1, []float64{3}, nil, []int64{1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := balance.Static(tc.sum, tc.capacities, tc.throughputs)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStaticErrors(t *testing.T) {
	for _, tc := range []struct {
		name                    string
		sum                     int64
		capacities, throughputs []float64
		want                    string
	}{
		{"no backend", 4, nil, nil, "there is no backend"},
		{"no capacity", 4, []float64{1, 0}, nil, "the capacity of backend 1 is 0"},
		{"negative capacity", 4, []float64{-1}, nil, "the capacity of backend 0 is -1"},
		{"NaN capacity", 4, []float64{math.NaN()}, nil, "the capacity of backend 0 is NaN"},
		{"infinite capacity", 4, []float64{math.Inf(1)}, nil, "the capacity of backend 0 is +Inf"},
		{"no throughput", 4, []float64{1, 1}, []float64{1, 0}, "the throughput of backend 1 is 0"},
		{"infinite throughput", 4, []float64{1, 1}, []float64{1, math.Inf(1)}, "the throughput of backend 1 is +Inf"},
		{"another number", 4, []float64{1, 1}, []float64{1}, "1 throughputs do not fit 2 capacities"},
		{"out of range", 4, []float64{1e-300, 1e300}, []float64{1e300, math.NaN()}, "the throughput of backend 1 would be +Inf"},
		{"too coarse", 1, []float64{1, 1}, nil, "a sum of 1 does not suffice for 2 backends"},
		{"negative sum", -1, []float64{1}, nil, "a sum of -1 does not suffice"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := balance.Static(tc.sum, tc.capacities, tc.throughputs); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want an error with %q", got, err, tc.want)
			}
		})
	}
}

// Whatever it is given, Static fails or gives weights from 1 to 100, in the order of the
// throughputs.
func TestStaticProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "n")
		sum := rapid.Int64Range(-1, 10_000).Draw(t, "sum")
		capacities := rapid.SliceOfN(rapid.Float64Range(0.1, 1000), n, n).Draw(t, "capacities")
		throughputs := rapid.SliceOfN(rapid.Float64Range(0.1, 1e5), n, n).Draw(t, "throughputs")
		got, err := balance.Static(sum, capacities, throughputs)
		if (err != nil) != (sum < int64(n)) {
			t.Fatalf("%d backends of a sum of %d: %v", n, sum, err)
		}
		checkRange(t, got)
		for i := range got {
			for j := range got {
				if throughputs[i] > throughputs[j] && got[i] < got[j] {
					t.Fatalf("throughputs %v and %v get %d and %d", throughputs[i], throughputs[j], got[i], got[j])
				}
			}
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		got, err := balance.Static(rapid.Int64().Draw(t, "sum"),
			rapid.SliceOfN(anyFloat(), 0, 3).Draw(t, "capacities"), rapid.SliceOfN(anyFloat(), 0, 3).Draw(t, "throughputs"))
		if err == nil {
			checkRange(t, got)
		}
	})
}

func checkRange(t *rapid.T, got []int64) {
	t.Helper()
	for i, w := range got {
		if w < 1 || w > weights.MaxReduced {
			t.Fatalf("backend %d gets %d", i, w)
		}
	}
}

// anyFloat draws any float64 at all, and often one that does harm.
func anyFloat() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.Float64(),
		rapid.Float64Range(0, 0.2),
		rapid.SampledFrom([]float64{
			math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), -1,
			math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64,
		}),
	)
}
