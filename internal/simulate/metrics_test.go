package simulate

import (
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/internal/health"
)

// TestInside shows that a check without values passes, whatever its limits.
func TestInside(t *testing.T) {
	limits := []float64{-1e15, -3, -0.5, 0, 0.01, 1, 1000, 1e15}
	for _, low := range limits {
		for _, high := range limits {
			for _, k := range []health.Check{{Min: &low}, {Max: &high}, {Min: &low, Max: &high}} {
				if k.Min != nil && k.Max != nil && low > high {
					continue
				}
				v := inside(k)
				if k.Min != nil && v < low || k.Max != nil && v > high {
					t.Errorf("%g is not inside of %v and %v", v, k.Min, k.Max)
				}
			}
		}
	}
}

// TestMeterForgets shows that a meter keeps what an evaluation can ask for, and not
// more than twice that.
func TestMeterForgets(t *testing.T) {
	c := health.Config{Window: time.Minute, Interval: 15 * time.Second}
	bounds := []float64{1}
	m := newMeter(c, bounds, DefaultStart)
	const ticks = 2000
	for i := range ticks {
		n := float64(i)
		m.record(counts{requests: n, within: []float64{n}}, counts{requests: 2 * n, within: []float64{n}})
	}
	if len(m.snapshots) > 2*m.keep {
		t.Errorf("it keeps %d snapshots", len(m.snapshots))
	}
	newest := DefaultStart.Add((ticks - 1) * c.Interval)
	for back := time.Duration(0); back <= health.Memory+c.Window; back += c.Interval {
		want := float64(newest.Add(-back).Sub(DefaultStart) / c.Interval)
		if got := m.at(newest.Add(-back)); got.stable.requests != want || got.canary.requests != 2*want {
			t.Fatalf("%s back it says %g and %g, not %g", back, got.stable.requests, got.canary.requests, want)
		}
	}
}
