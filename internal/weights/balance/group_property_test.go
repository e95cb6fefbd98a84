package balance_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights/balance"
)

// At the baseline nothing ever changes, and a backend that is twice as slow or worse
// loses at once, down to its floor, and never gains, whatever the others do.
func TestDirection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := balance.DefaultSettings()
		s.Baseline = rapid.Float64Range(0.001, 10).Draw(t, "baseline")
		configured := rapid.SliceOfN(rapid.Int64Range(1, 100), 2, 8).Draw(t, "configured")
		times := make([]float64, len(configured))
		for i := range times {
			times[i] = s.Baseline
		}
		g := newGroup(t, s, configured...)
		for range 5 {
			if changed, err := g.Observe(times); changed || err != nil {
				t.Fatalf("at the baseline: changed %v, error %v", changed, err)
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "windows") {
			before := g.Weights()
			times[0] = s.Baseline * rapid.Float64Range(2, 100).Draw(t, "slow")
			for i := 1; i < len(times); i++ {
				times[i] = s.Baseline * rapid.Float64Range(0.1, 10).Draw(t, "others")
			}
			if _, err := g.Observe(times); err != nil {
				t.Fatal(err)
			}
			after := g.Weights()
			floor := max(s.Floor*float64(configured[0]), min(float64(configured[0]), s.Floor*largest(after)))
			if after[0] > max(before[0], floor) {
				t.Fatalf("the slow one goes from %v to %v, its floor is %v", before[0], after[0], floor)
			}
			if after[0] == before[0] && before[0]*(1-s.DeadBand) > floor {
				t.Fatalf("the slow one keeps %v, its floor is %v", before[0], floor)
			}
		}
	})
}

func largest(values []float64) float64 {
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	return most
}

// checkObservation makes an observation and checks what holds after any of them.
func checkObservation(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, g *balance.Group, s balance.Settings, configured []int64, times []float64) {
	t.Helper()
	bad := false
	for _, rt := range times {
		bad = bad || rt < 0 || math.IsInf(rt, 0)
	}
	before := g.Weights()
	changed, err := g.Observe(times)
	after := g.Weights()
	if (err != nil) != bad {
		t.Fatalf("Observe(%v): %v", times, err)
	}
	if equal := cmp.Equal(before, after); changed == equal || bad && !equal {
		t.Fatalf("changed %v, error %v, from %v to %v", changed, err, before, after)
	}
	most := largest(after)
	in := 0
	for i, w := range after {
		own := float64(configured[i])
		floor := max(s.Floor*own, min(own, s.Floor*most))
		if (before[i] == 0) != (w == 0) {
			t.Fatalf("backend %d goes from %v to %v", i, before[i], w)
		}
		if w == 0 {
			continue
		}
		in++
		if !(w >= floor && w <= s.Headroom*own) {
			t.Fatalf("backend %d of %v has %v, not from %v to %v", i, own, w, floor, s.Headroom*own)
		}
		step := math.Abs(w-before[i]) / before[i]
		if w == before[i] || w == own || w == floor {
			continue // Unchanged, restored, or lifted.
		}
		if step > s.Step+1e-9 || step < s.DeadBand-1e-9 || math.IsNaN(times[i]) {
			t.Fatalf("backend %d goes from %v to %v after %v s", i, before[i], w, times[i])
		}
	}
	whole, err := g.Apportion(1000)
	if err != nil {
		t.Fatalf("Apportion: %v", err)
	}
	var sum int64
	for i, w := range whole {
		sum += w
		if (w > 0) != (after[i] > 0) || w < 0 {
			t.Fatalf("a weight of %v becomes %d", after[i], w)
		}
	}
	if in == 0 || sum != 1000 {
		t.Fatalf("%d backends are in, their weights add up to %d", in, sum)
	}
}

// Whatever is observed, and whoever breaks and returns: floors, headroom, step and dead
// band hold, the sum is exact, and the weights are never all 0.
func TestGroupProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := balance.Settings{
			Baseline: rapid.Float64Range(0.001, 1000).Draw(t, "baseline"),
			Gain:     rapid.Float64Range(0.05, 1).Draw(t, "gain"),
			Alpha:    rapid.SampledFrom([]float64{0.1, 0.2, 0.3, 1}).Draw(t, "alpha"),
			Step:     rapid.Float64Range(0.01, 1).Draw(t, "step"),
			Floor:    rapid.Float64Range(0.1, 0.2).Draw(t, "floor"),
			Headroom: rapid.Float64Range(1, 10).Draw(t, "headroom"),
			Good:     rapid.Float64Range(0.1, 1).Draw(t, "good"),
			Recovery: rapid.IntRange(1, 5).Draw(t, "recovery"),
		}
		s.DeadBand = s.Step * rapid.Float64Range(0, 0.9).Draw(t, "dead band")
		configured := rapid.SliceOfN(rapid.Int64Range(1, balance.MaxConfigured), 1, 6).Draw(t, "configured")
		g := newGroup(t, s, configured...)
		for range rapid.IntRange(1, 30).Draw(t, "windows") {
			i := rapid.IntRange(0, len(configured)-1).Draw(t, "backend")
			switch rapid.IntRange(0, 5).Draw(t, "action") {
			case 0:
				_ = g.Break(i) // It may be the last one.
			case 1:
				_ = g.Return(i) // It may not be out.
			default:
				n := len(configured)
				times := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(0, 3*s.Baseline), anyFloat()), n, n).Draw(t, "times")
				checkObservation(t, g, s, configured, times)
			}
		}
	})
}

func FuzzGroup(f *testing.F) {
	f.Add([]byte{0x3f, 0xa9, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0x7f, 0xf0, 0, 0, 0, 0, 0, 0, 0x7f, 0xf8, 0, 0, 0, 0, 0, 1})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 0xef, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		s, configured := balance.DefaultSettings(), []int64{100, 3}
		g := newGroup(t, s, configured...)
		for len(data) >= 16 {
			checkObservation(t, g, s, configured, []float64{
				math.Float64frombits(binary.BigEndian.Uint64(data)),
				math.Float64frombits(binary.BigEndian.Uint64(data[8:])),
			})
			data = data[16:]
		}
	})
}
