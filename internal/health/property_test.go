package health

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health/compare"
)

// drawWindow is a window of a tick, most often a healthy one.
func drawWindow(t *rapid.T, tick int) Window {
	requests := float64(rapid.IntRange(0, 300).Draw(t, "requests"))
	bad := func(label string) float64 {
		if rapid.IntRange(0, 3).Draw(t, label+"?") > 0 {
			return 0
		}
		return float64(rapid.IntRange(0, int(requests)).Draw(t, label))
	}
	w := window(tick, canary(requests, bad("errors"), bad("slow")))
	w.Checks[0].Value = rapid.SampledFrom([]float64{1, 1, 1, 10, 11}).Draw(t, "queue")
	if rapid.IntRange(0, 9).Draw(t, "lost?") == 0 {
		lost(&w)
	}
	return w
}

func drawInput(t *rapid.T) Input {
	c := rapid.SampledFrom([]Config{both(), errorsOnly(), checksOnly()}).Draw(t, "config")
	if rapid.Bool().Draw(t, "targets") && c.Preset != "" {
		c.DegradedBelow = 0.9
		c.ErrorRate = &ErrorRate{Max: c.ErrorRate.Max, Target: new(c.ErrorRate.Max / 2)}
		if c.Latency != nil {
			l := *c.Latency
			l.Target, l.Smoothing = 450*time.Millisecond, 0.2
			c.Latency = &l
		}
	}
	c.For = time.Duration(rapid.IntRange(0, 6).Draw(t, "for")) * 15 * time.Second
	n := rapid.IntRange(5, 40).Draw(t, "ticks")
	var ws []Window
	for i := 5; i <= n; i++ {
		if rapid.IntRange(0, 19).Draw(t, "hole?") > 0 {
			ws = append(ws, drawWindow(t, i))
		}
	}
	return input(c, ws)
}

// drawOpposed is such an input of a canary that is compared with stable.
func drawOpposed(t *rapid.T) Input {
	in := drawInput(t)
	in.Unopposed = false
	in.Config.NotWorse = rapid.Bool().Draw(t, "not worse")
	if in.Config.ErrorRate != nil && rapid.Bool().Draw(t, "margin") {
		in.Config.ErrorRate = &ErrorRate{Max: in.Config.ErrorRate.Max, Target: in.Config.ErrorRate.Target, MaxAboveStable: 0.005}
	}
	in.Past = in.Config.Begin(Comparison{})
	return in
}

// byValue compares what has unexported fields.
var byValue = cmpopts.EquateComparable(compare.Inferiority{}, compare.NotWorse{})

// clone copies an input as deeply as the properties change it.
func clone(in Input) Input {
	in.Windows = slices.Clone(in.Windows)
	for i := range in.Windows {
		w := &in.Windows[i]
		w.Checks = slices.Clone(w.Checks)
		w.Canary.Buckets = slices.Clone(w.Canary.Buckets)
	}
	return in
}

// Promise 4: what cannot be read opens no gate, and does not make anything unhealthy.
func TestPropertyUnreadableIsUnknown(t *testing.T) {
	spoil := map[string]func(*Window){
		"problem":   lost,
		"not found": reads(func(r *Reading) { *r = Reading{} }),
		"NaN":       reads(func(r *Reading) { r.Requests = math.NaN() }),
		"infinite":  reads(func(r *Reading) { r.Errors = math.Inf(1) }),
		"stale":     reads(func(r *Reading) { r.NewestSample = At(r.NewestSample.Time().Add(-5 * time.Minute)) }),
		"future":    reads(func(r *Reading) { r.NewestSample = At(r.NewestSample.Time().Add(5 * time.Minute)) }),
	}
	rapid.Check(t, func(t *rapid.T) {
		in := clone(drawInput(t))
		if len(in.Windows) == 0 {
			return
		}
		last := &in.Windows[len(in.Windows)-1]
		if in.Config.Preset != "" {
			spoil[rapid.SampledFrom([]string{"problem", "not found", "NaN", "infinite", "stale", "future"}).Draw(t, "spoil")](last)
		} else {
			last.Checks = last.Checks[:1]
		}
		last.Checks[0].Value = rapid.SampledFrom([]float64{1, math.NaN(), math.Inf(1)}).Draw(t, "own check")
		v := Evaluate(in)
		if v.State != v1alpha1.VerdictUnknown || v.RampReady || v.StageReady {
			t.Fatalf("%+v", v)
		}
	})
}

// Promise 3: evidence from before the confirmation never matters.
func TestPropertyEvidenceBeforeConfirmationIsNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawOpposed(t)
		want := Evaluate(in)
		var before []Window
		for i := rapid.IntRange(-60, 4).Draw(t, "first"); i < 5; i++ {
			before = append(before, drawWindow(t, i))
		}
		in.Windows = append(before, in.Windows...)
		if diff := cmp.Diff(want, Evaluate(in), byValue); diff != "" {
			t.Fatalf("(-without +with):\n%s", diff)
		}
	})
}

func TestPropertyOrderAndRepetitionDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawOpposed(t)
		want := Evaluate(in)
		mixed := slices.Clone(in.Windows)
		for _, w := range in.Windows {
			if rapid.Bool().Draw(t, "twice") {
				mixed = append(mixed, w)
			}
		}
		in.Windows = rapid.Permutation(mixed).Draw(t, "order")
		given := slices.Clone(in.Windows)
		if diff := cmp.Diff(want, Evaluate(in), byValue); diff != "" {
			t.Fatalf("(-in order +mixed):\n%s", diff)
		}
		if diff := cmp.Diff(given, in.Windows, byValue, cmp.Comparer(func(a, b float64) bool { return a == b })); diff != "" {
			t.Fatalf("the input was changed:\n%s", diff)
		}
	})
}

// Turning good requests into bad ones never opens a gate.
func TestPropertyBadRequestsOpenNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		if len(in.Windows) == 0 {
			return
		}
		before := Evaluate(in)
		worse := clone(in)
		for i := range worse.Windows {
			r := &worse.Windows[i].Canary
			if !rapid.Bool().Draw(t, "worse") {
				continue
			}
			r.Errors += float64(rapid.IntRange(0, int(r.Requests-r.Errors)).Draw(t, "more errors"))
			fast := int(r.Buckets[1].Count)
			r.Buckets[1].Count -= float64(rapid.IntRange(0, fast).Draw(t, "more slow"))
		}
		after := Evaluate(worse)
		if !before.RampReady && after.RampReady || !before.StageReady && after.StageReady {
			t.Fatalf("before %+v\nafter %+v", before, after)
		}
		if before.State == v1alpha1.VerdictUnhealthy && after.State != v1alpha1.VerdictUnhealthy {
			t.Fatalf("before %+v\nafter %+v", before, after)
		}
	})
}

// What a verdict says must agree with itself.
func TestPropertyVerdictIsConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		v := Evaluate(in)
		checkConsistency(t, v)
		if v.StageReady && in.Config.Preset != "" && v.Requests < in.Config.MinRequests {
			t.Fatalf("a stage may end on %d requests", v.Requests)
		}
		if v.RampReady && (v.To.Sub(v.From) < in.Config.Window || in.Config.Preset != "" && v.Requests < in.Config.MinRampRequests) {
			t.Fatalf("a ramp step on too little: %+v", v)
		}
		if v.State == v1alpha1.VerdictUnhealthy && in.Now.Sub(v.BreachSince) < in.Config.For {
			t.Fatalf("unhealthy before its time: %+v", v)
		}
	})
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

func checkConsistency(t failer, v Verdict) {
	t.Helper()
	switch v.State {
	case v1alpha1.VerdictHealthy:
		if !v.StageReady {
			t.Fatalf("healthy, and a stage may not end: %+v", v)
		}
	case v1alpha1.VerdictUnhealthy:
		if v.RampReady || v.StageReady || v.Reason != v1alpha1.ReasonBreach || v.Check == "" {
			t.Fatalf("%+v", v)
		}
	case v1alpha1.VerdictDegraded:
		known := slices.Contains([]string{v1alpha1.ReasonBreach, v1alpha1.ReasonAboveLimit, v1alpha1.ReasonAboveTarget, v1alpha1.ReasonLowScore}, v.Reason)
		if v.RampReady || v.StageReady || !known || v.Check == "" && v.Reason != v1alpha1.ReasonLowScore {
			t.Fatalf("%+v", v)
		}
		if v.ScaleBack && v.Reason != v1alpha1.ReasonAboveTarget && v.Reason != v1alpha1.ReasonLowScore {
			t.Fatalf("scaled back for another reason: %+v", v)
		}
	case v1alpha1.VerdictUnknown:
		if v.StageReady || v.RampReady && v.Reason != v1alpha1.ReasonInsufficientRequests {
			t.Fatalf("unknown, and a gate is open: %+v", v)
		}
	default:
		t.Fatalf("no state: %+v", v)
	}
	if v.Score != 0 && !(v.Score >= 0.2 && v.Score <= 1) || v.Steady && !v.StageReady || v.ScaleBack && v.State != v1alpha1.VerdictDegraded {
		t.Fatalf("%+v", v)
	}
	if v.Reason == "" || v.Message == "" || len(v.Message) > 500 || (v.RampWait == "") != v.RampReady || (v.StageWait == "") != v.StageReady {
		t.Fatalf("%+v", v)
	}
}

// FuzzEvaluate builds windows out of any floats and times.
func FuzzEvaluate(f *testing.F) {
	f.Add([]byte{}, int64(0), int64(60_000), uint8(0))
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, 1e308, 50, 5}
	var seed []byte
	for range 40 {
		for _, v := range odd {
			seed = binary.LittleEndian.AppendUint64(seed, math.Float64bits(v))
		}
	}
	f.Add(seed, int64(15_000), int64(60_000), uint8(7))
	f.Add(seed, int64(1), int64(1), uint8(255))
	f.Add(seed, int64(math.MaxInt64), int64(math.MinInt64), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, interval, length int64, kind uint8) {
		next := func() float64 {
			if len(data) < 8 {
				return 50
			}
			v := math.Float64frombits(binary.LittleEndian.Uint64(data))
			data = data[8:]
			return v
		}
		c := both()
		c.Interval, c.Window = time.Duration(interval)*time.Millisecond, time.Duration(length)*time.Millisecond
		if kind&1 != 0 {
			c.Preset = ""
		}
		if kind&2 != 0 {
			c.Latency.Max, c.ErrorRate.Max = time.Duration(interval), next()
		}
		in := Input{Config: c, Subject: TrackCanary, ConfirmedAt: epoch, Now: epoch.Add(time.Hour)}
		for i := range 30 {
			end := epoch.Add(time.Duration(i) * c.Interval)
			if kind&4 != 0 {
				end = epoch.Add(time.Duration(next()))
			}
			in.Windows = append(in.Windows, Window{
				Start: end.Add(-c.Window), End: end,
				Canary: Reading{Found: next() > 0, Requests: next(), Errors: next(), NewestSample: At(end), Buckets: []Bucket{{next(), next()}, {math.Inf(1), next()}}},
				Checks: []CheckResult{{Name: "queue", Value: next(), SampleAt: end}},
			})
		}
		checkConsistency(t, Evaluate(in))
	})
}
