package balance_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weightedrollout/weightedrollout/internal/weights/balance"
)

var near = cmpopts.EquateApprox(1e-9, 1e-9)

func newGroup(t interface {
	Helper()
	Fatal(args ...any)
}, s balance.Settings, configured ...int64) *balance.Group {
	t.Helper()
	g, err := balance.NewGroup(s, configured)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// observe gives the same times to a group, as often as said.
func observe(t *testing.T, g *balance.Group, windows int, times ...float64) {
	t.Helper()
	for range windows {
		if _, err := g.Observe(times); err != nil {
			t.Fatal(err)
		}
	}
}

// with returns the default settings after a change.
func with(change func(*balance.Settings)) balance.Settings {
	s := balance.DefaultSettings()
	change(&s)
	return s
}

// One observation of two backends of 100, the second at the baseline.
func TestOneObservation(t *testing.T) {
	for _, tc := range []struct {
		name     string
		settings balance.Settings
		time     float64
		want     float64
	}{
		{"at the baseline nothing changes", balance.DefaultSettings(), 0.05, 100},
		{"slower lowers", balance.DefaultSettings(), 0.075, 90},
		{"faster raises", balance.DefaultSettings(), 0.025, 110},
		{"twice as slow is a whole step", balance.DefaultSettings(), 0.1, 80},
		{"a step is the most", balance.DefaultSettings(), 10, 80},
		{"as fast as can be", balance.DefaultSettings(), 0, 100 * (1 + 0.2*0.98)},
		{"a higher gain", with(func(s *balance.Settings) { s.Gain = 0.4 }), 0.0625, 90},
		{"a higher gain has the same cap", with(func(s *balance.Settings) { s.Gain = 0.4 }), 0.1, 80},
		{"a smaller step", with(func(s *balance.Settings) { s.Step = 0.05 }), 0.1, 95},
		{"no cap goes down to the floor", with(func(s *balance.Settings) { s.Step = 1 }), 10, 10},
		{"in the dead band", balance.DefaultSettings(), 0.0549, 100},
		{"just out of the dead band", balance.DefaultSettings(), 0.0551, 97.96},
		{"in the dead band upwards", balance.DefaultSettings(), 0.0451, 100},
		{"no dead band", with(func(s *balance.Settings) { s.DeadBand = 0 }), 0.0505, 99.8},
		{"another baseline", with(func(s *balance.Settings) { s.Baseline = 0.2 }), 0.3, 90},
		{"not known", balance.DefaultSettings(), math.NaN(), 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGroup(t, tc.settings, 100, 100)
			changed, err := g.Observe([]float64{tc.time, tc.settings.Baseline})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]float64{tc.want, 100}, g.Weights(), near); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if changed != (tc.want != 100) {
				t.Errorf("changed: %v", changed)
			}
		})
	}
}

// The second window's 0.1 s is a fifth of the average: 0.06 s, so a change of 4 %.
func TestSmoothing(t *testing.T) {
	g := newGroup(t, balance.DefaultSettings(), 100, 100)
	observe(t, g, 1, 0.05, 0.05)
	observe(t, g, 1, 0.1, 0.05)
	if diff := cmp.Diff([]float64{96, 100}, g.Weights(), near); diff != "" {
		t.Errorf("smoothed (-want +got):\n%s", diff)
	}
	g = newGroup(t, with(func(s *balance.Settings) { s.Alpha = 1 }), 100, 100)
	observe(t, g, 1, 0.05, 0.05)
	observe(t, g, 1, 0.1, 0.05)
	if diff := cmp.Diff([]float64{80, 100}, g.Weights(), near); diff != "" {
		t.Errorf("not smoothed (-want +got):\n%s", diff)
	}
}

// However slow a window was, it counts as one of twice the baseline, which costs a whole
// step. The weight is not held down by it for long.
func TestOneSlowWindow(t *testing.T) {
	g := newGroup(t, balance.DefaultSettings(), 100, 100)
	observe(t, g, 1, 0.05, 0.05)
	observe(t, g, 1, 100, 0.05)
	if diff := cmp.Diff([]float64{96, 100}, g.Weights(), near); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	observe(t, g, 10, 0.05, 0.05)
	if got := g.Weights()[0]; got < 85 {
		t.Errorf("ten windows later it has %v", got)
	}
}

func TestFloorAndHeadroom(t *testing.T) {
	// All slow: each goes down to a tenth of its own, so the ratio stays.
	g := newGroup(t, balance.DefaultSettings(), 100, 25)
	observe(t, g, 50, 1, 1)
	if diff := cmp.Diff([]float64{10, 2.5}, g.Weights(), near); diff != "" {
		t.Errorf("all slow (-want +got):\n%s", diff)
	}
	// All fast: each goes up to twice its own, so the ratio stays.
	g = newGroup(t, balance.DefaultSettings(), 100, 25)
	observe(t, g, 50, 0.001, 0.001)
	if diff := cmp.Diff([]float64{200, 50}, g.Weights(), cmpopts.EquateApprox(0.02, 0)); diff != "" {
		t.Errorf("all fast (-want +got):\n%s", diff)
	}
	// One slow: a tenth of the largest, which the other one has raised.
	g = newGroup(t, with(func(s *balance.Settings) { s.DeadBand = 0 }), 100, 100)
	observe(t, g, 50, 0.001, 1)
	if diff := cmp.Diff([]float64{200, 20}, g.Weights(), near); diff != "" {
		t.Errorf("one slow (-want +got):\n%s", diff)
	}
	// The largest lifts nobody above its configured weight.
	g = newGroup(t, balance.DefaultSettings(), 100, 1)
	observe(t, g, 50, 0.05, 1)
	if diff := cmp.Diff([]float64{100, 1}, g.Weights(), near); diff != "" {
		t.Errorf("one light (-want +got):\n%s", diff)
	}
}

// A backend that was slow for long is at the floor. The steps up would take a dozen
// windows; three good checks in a row restore it.
func TestFastRecovery(t *testing.T) {
	slow := func() *balance.Group {
		g := newGroup(t, balance.DefaultSettings(), 100, 100)
		observe(t, g, 50, 1, 0.05)
		return g
	}
	for _, tc := range []struct {
		name  string
		times []float64
		want  float64
	}{
		{"three", []float64{0.03, 0.04, 0.03}, 100},
		{"two", []float64{0.03, 0.03}, 10},
		{"not in a row", []float64{0.03, 0.03, 0.06, 0.03}, 10},
		{"silence is not good", []float64{0.03, 0.03, math.NaN(), 0.03}, 10},
		{"not good enough", []float64{0.045, 0.045, 0.045}, 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := slow()
			for _, rt := range tc.times {
				observe(t, g, 1, rt, 0.05)
			}
			if got := g.Weights()[0]; math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}

	// What was averaged in the bad time is forgotten with it.
	g := slow()
	observe(t, g, 4, 0.04, 0.05)
	if got := g.Weights()[0]; got < 100 {
		t.Errorf("after a good check more the weight is %v", got)
	}
}

// A backend that is fast only while it has little to do is restored, slow again, and so
// on. Each time twice as many good checks are asked for, until it is left in peace.
func TestFastRecoveryIsNotASawTooth(t *testing.T) {
	g := newGroup(t, with(func(s *balance.Settings) { s.Headroom = 1 }), 100, 100)
	var restored []int
	for window := range 600 {
		before := g.Weights()[0]
		rt := 0.2
		if before <= 50 {
			rt = 0.03
		}
		if _, err := g.Observe([]float64{rt, 0.05}); err != nil {
			t.Fatal(err)
		}
		if after := g.Weights()[0]; after > before*1.21 {
			restored = append(restored, window)
		}
	}
	if len(restored) < 2 {
		t.Fatalf("restored in the windows %v: want it to be tried", restored)
	}
	if last := restored[len(restored)-1]; len(restored) > 6 || last > 300 {
		t.Errorf("restored in the windows %v: want an end", restored)
	}
}

// What a backend that was restored too early has to make up for is forgotten, once it has
// had its full weight for 30 windows: the next time 3 good checks are enough again.
func TestFastRecoveryForgets(t *testing.T) {
	checks := func(g *balance.Group) (n int) {
		for g.Weights()[0] < 100 {
			observe(t, g, 1, 0.03, 0.05)
			n++
		}
		return n
	}
	// Without a step up worth mentioning only restoring leads back.
	g := newGroup(t, with(func(s *balance.Settings) { s.Step, s.DeadBand = 0.03, 0.029 }), 100, 100)
	var got []int
	for _, fine := range []int{0, 0, 5, 30, 0} {
		observe(t, g, 200, 1, 0.05)
		got = append(got, checks(g))
		observe(t, g, fine, 0.05, 0.05)
	}
	if diff := cmp.Diff([]int{3, 6, 12, 24, 3}, got); diff != "" {
		t.Errorf("good checks that restore (-want +got):\n%s", diff)
	}
}

func TestBreak(t *testing.T) {
	g := newGroup(t, balance.DefaultSettings(), 100, 60, 40)
	if err := g.Break(0); err != nil {
		t.Fatal(err)
	}
	observe(t, g, 5, 0.001, 0.05, 0.05)
	if diff := cmp.Diff([]float64{0, 60, 40}, g.Weights(), near); diff != "" {
		t.Errorf("out (-want +got):\n%s", diff)
	}
	whole, err := g.Apportion(100)
	if diff := cmp.Diff([]int64{0, 60, 40}, whole); err != nil || diff != "" {
		t.Errorf("out: %v (-want +got):\n%s", err, diff)
	}
	if err := g.Break(0); err != nil {
		t.Errorf("out twice: %v", err)
	}
	// The average of 60 and 40 is 50, and half of that 25.
	if err := g.Return(0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{25, 60, 40}, g.Weights(), near); diff != "" {
		t.Errorf("back (-want +got):\n%s", diff)
	}
	// It rises by steps, and after three good checks it is back.
	observe(t, g, 2, 0.025, 0.05, 0.05)
	if diff := cmp.Diff([]float64{25 * 1.1 * 1.1, 60, 40}, g.Weights(), near); diff != "" {
		t.Errorf("rising (-want +got):\n%s", diff)
	}
	observe(t, g, 1, 0.025, 0.05, 0.05)
	if diff := cmp.Diff([]float64{100, 60, 40}, g.Weights(), near); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}

	// No more than its configured weight, no less than the floor.
	g = newGroup(t, balance.DefaultSettings(), 1000, 4)
	for range 2 {
		if err := g.Break(1); err != nil {
			t.Fatal(err)
		}
		if err := g.Return(1); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]float64{1000, 4}, g.Weights(), near); diff != "" {
		t.Errorf("a light one (-want +got):\n%s", diff)
	}
}

func TestGroupErrors(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*balance.Settings)
		want   string
	}{
		{"baseline", func(s *balance.Settings) { s.Baseline = 0 }, "Baseline is 0"},
		{"NaN baseline", func(s *balance.Settings) { s.Baseline = math.NaN() }, "Baseline is NaN"},
		{"gain", func(s *balance.Settings) { s.Gain = 0 }, "Gain is 0"},
		{"alpha", func(s *balance.Settings) { s.Alpha = 0.5 }, "alpha is 0.5"},
		{"step", func(s *balance.Settings) { s.Step = 1.1 }, "Step is 1.1"},
		{"dead band", func(s *balance.Settings) { s.DeadBand = 0.2 }, "DeadBand is 0.2"},
		{"negative dead band", func(s *balance.Settings) { s.DeadBand = -0.1 }, "DeadBand is -0.1"},
		{"floor", func(s *balance.Settings) { s.Floor = 0.05 }, "Floor is 0.05"},
		{"headroom", func(s *balance.Settings) { s.Headroom = 0.5 }, "Headroom is 0.5"},
		{"good", func(s *balance.Settings) { s.Good = 0 }, "Good is 0"},
		{"recovery", func(s *balance.Settings) { s.Recovery = 0 }, "Recovery is 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := balance.NewGroup(with(tc.change), []int64{1}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
	for _, configured := range [][]int64{nil, {1, 0}, {-1}, {balance.MaxConfigured + 1}} {
		if _, err := balance.NewGroup(balance.DefaultSettings(), configured); err == nil {
			t.Errorf("NewGroup of %v does not fail", configured)
		}
	}

	g := newGroup(t, balance.DefaultSettings(), 100, 100)
	for _, times := range [][]float64{nil, {1}, {1, 1, 1}, {1, -1}, {1, math.Inf(1)}, {math.Inf(-1), 1}} {
		if changed, err := g.Observe(times); err == nil || changed {
			t.Errorf("Observe(%v): changed %v, error %v", times, changed, err)
		}
	}
	for _, i := range []int{-1, 2} {
		if err := g.Break(i); err == nil || !strings.Contains(err.Error(), "there is no backend") {
			t.Errorf("Break(%d): %v", i, err)
		}
		if err := g.Return(i); err == nil || !strings.Contains(err.Error(), "there is no backend") {
			t.Errorf("Return(%d): %v", i, err)
		}
	}
	if err := g.Return(0); err == nil || !strings.Contains(err.Error(), "is not out") {
		t.Errorf("Return of one that is in: %v", err)
	}
	if err := g.Break(0); err != nil {
		t.Fatal(err)
	}
	if err := g.Break(1); err == nil || !strings.Contains(err.Error(), "the last one") {
		t.Errorf("Break of the last one: %v", err)
	}
	if diff := cmp.Diff([]float64{0, 100}, g.Weights()); diff != "" {
		t.Errorf("after errors (-want +got):\n%s", diff)
	}
	if _, err := g.Apportion(0); err == nil || !strings.Contains(err.Error(), "does not suffice") {
		t.Errorf("Apportion(0): %v", err)
	}
	if changed, err := new(balance.Group).Observe(nil); changed || err != nil {
		t.Errorf("a group of nobody: changed %v, error %v", changed, err)
	}
}

// BenchmarkObserve is one window of 16 backends, of which some move.
func BenchmarkObserve(b *testing.B) {
	configured, times := make([]int64, 16), make([]float64, 16)
	for i := range configured {
		configured[i], times[i] = 100, 0.03+0.003*float64(i)
	}
	g := newGroup(b, balance.DefaultSettings(), configured...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Observe(times); err != nil {
			b.Fatal(err)
		}
	}
}

// A window costs no memory.
func TestObserveAllocatesNothing(t *testing.T) {
	g := newGroup(t, balance.DefaultSettings(), 100, 50, 25)
	times := []float64{0.03, 0.06, 0.2}
	if got := testing.AllocsPerRun(100, func() { _, _ = g.Observe(times) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
