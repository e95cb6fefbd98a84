package simulate

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestOutcomesAddUp shows that no request is lost or counted twice, whatever is drawn.
func TestOutcomesAddUp(t *testing.T) {
	bounds := boundsFor(&v1alpha1.Health{Latency: &v1alpha1.Latency{Max: "400ms", Target: "350ms"}})
	rapid.Check(t, func(t *rapid.T) {
		d := dice{bounds: bounds}
		if rapid.Bool().Draw(t, "drawn") {
			d.source = source(rapid.Uint64().Draw(t, "seed"), streamOutcomes)
		}
		n := float64(rapid.IntRange(0, 20_000).Draw(t, "requests"))
		c := d.outcomes(n, behaviour{
			failed: rapid.Float64Range(0, 1).Draw(t, "failed"),
			median: rapid.Float64Range(0.001, 600).Draw(t, "median"),
		})
		if c.requests != n || c.failed < 0 || c.failed > n {
			t.Fatalf("of %g requests %g failed, and %g were counted", n, c.failed, c.requests)
		}
		before := 0.0
		for i, within := range c.within {
			if within < before || within > n+1e-9 {
				t.Fatalf("bucket %d holds %g requests after %g, of %g", i, within, before, n)
			}
			before = within
		}
		if before != n {
			t.Fatalf("the last bucket holds %g of %g requests", before, n)
		}
	})
}

// TestDrawsFollowTheirDistribution compares a hundred thousand drawn requests with the
// expected values, within six standard deviations.
func TestDrawsFollowTheirDistribution(t *testing.T) {
	const n = 100_000
	bounds := boundsFor(&v1alpha1.Health{})
	as := behaviour{failed: 0.03, median: 0.2}
	exact := dice{bounds: bounds}
	drawn := dice{bounds: bounds, source: source(7, streamOutcomes)}
	want, got := exact.outcomes(n, as), drawn.outcomes(n, as)
	near := func(what string, got, want float64) {
		t.Helper()
		if deviation := math.Sqrt(want * (1 - want/n)); math.Abs(got-want) > 6*deviation+1e-9 {
			t.Errorf("%s: %g drawn, %g expected", what, got, want)
		}
	}
	near("failed", got.failed, want.failed)
	for i := range bounds {
		near("a bucket", got.within[i], want.within[i])
	}
	if got.failed == want.failed {
		t.Error("nothing was drawn")
	}
}

// TestResponseTimes checks the shape of the response times: half of them are within
// the median, and 99 percent within exp(0.5 * 2.326) = 3.2 times the median.
func TestResponseTimes(t *testing.T) {
	if got := within(0.2, 0.2); math.Abs(got-0.5) > 1e-12 {
		t.Errorf("%g of the requests are within the median", got)
	}
	if got := within(0.2*math.Exp(0.5*2.3263478740408408), 0.2); math.Abs(got-0.99) > 1e-9 {
		t.Errorf("%g of the requests are within 3.2 times the median", got)
	}
}

func TestQuantile(t *testing.T) {
	bounds := []float64{0.1, 0.2, 0.4, math.Inf(1)}
	c := counts{requests: 100, within: []float64{50, 90, 98, 100}}
	for _, tc := range []struct{ part, want float64 }{
		{0.25, 0.05}, {0.5, 0.1}, {0.7, 0.15}, {0.9, 0.2}, {0.94, 0.3}, {0.98, 0.4}, {0.99, 0.4},
	} {
		if got := quantile(bounds, c, tc.part); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("the quantile %g is %g, not %g", tc.part, got, tc.want)
		}
	}
	if got := quantile(bounds, counts{within: make([]float64, 4)}, 0.99); got != 0 {
		t.Errorf("the quantile of no request is %g", got)
	}
}
