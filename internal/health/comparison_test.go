package health

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// opposed is an input of a canary that shares the traffic with stable.
func opposed(c Config, ws []Window) Input {
	in := input(c, ws)
	in.Unopposed = false
	in.Past = c.Begin(Comparison{})
	return in
}

// tracks sets what both tracks count in a window.
func tracks(stable, stableErrors, stableSlow, requests, errors, slow float64) func(*Window) {
	return func(w *Window) {
		w.Stable, w.Canary = reading(w.End, stable, stableErrors, stableSlow), reading(w.End, requests, errors, slow)
	}
}

func TestWorseThanStable(t *testing.T) {
	wide := both()
	wide.ErrorRate = &ErrorRate{Max: 0.1}
	wide.Latency = &Latency{Percentile: 0.9, Max: 500 * time.Millisecond}
	within := wide
	within.ErrorRate = &ErrorRate{Max: 0.3, MaxAboveStable: 0.15}
	slower := wide
	slower.Latency = &Latency{Percentile: 0.9, Max: 500 * time.Millisecond, MaxRatio: 5}
	strict := wide
	strict.Confidence = 0.999
	tests := map[string]struct {
		in    Input
		state v1alpha1.VerdictState
		check string
		says  string
	}{
		"no worse": {opposed(wide, windows(5, 40, tracks(1000, 10, 5, 100, 1, 0.5))), healthy, "", ""},
		"more failures, within every limit": {opposed(wide, windows(5, 40, tracks(1000, 10, 5, 100, 9, 0.5))), unhealthy, CheckErrorRate,
			"requests failed since the share was confirmed (9%)"},
		"more slow requests, within every limit": {opposed(wide, windows(5, 40, tracks(1000, 10, 5, 100, 1, 6))), unhealthy, CheckLatency,
			"took longer than 500ms since the share was confirmed (6%)"},
		"a bad hour for both": {opposed(wide, windows(5, 40, tracks(1000, 90, 50, 100, 9, 5))), healthy, "", ""},
		"better than stable":  {opposed(wide, windows(5, 40, tracks(1000, 90, 50, 100, 1, 1))), healthy, "", ""},
		"with all traffic":    {input(wide, windows(5, 40, tracks(1000, 10, 5, 100, 9, 0.5))), healthy, "", ""},
		"while it is cold": {func() Input {
			in := opposed(wide, windows(5, 40, tracks(1000, 10, 5, 100, 9, 0.5)))
			in.ComparedFrom = Never()
			return in
		}(), healthy, "", ""},
		"stable is under test": {func() Input {
			in := opposed(wide, windows(5, 40, tracks(100, 9, 0.5, 1000, 1, 1)))
			in.Subject = TrackStable
			return in
		}(), healthy, "", ""},
		"stable has no traffic":                {opposed(wide, windows(5, 40, tracks(0, 0, 0, 100, 9, 0.5))), healthy, "", ""},
		"stable cannot be read":                {opposed(wide, windows(5, 40, tracks(1000, 10, 5, 100, 9, 0.5), func(w *Window) { w.Stable = Reading{} })), healthy, "", ""},
		"a difference that matters to nobody":  {opposed(wide, windows(5, 200, tracks(100000, 10, 5, 10000, 30, 5))), healthy, "", ""},
		"within the margin of the spec":        {opposed(within, windows(5, 40, tracks(1000, 10, 5, 100, 9, 0.5))), healthy, "", ""},
		"beyond the margin of the spec":        {opposed(within, windows(5, 200, tracks(1000, 10, 5, 100, 19, 0.5))), unhealthy, CheckErrorRate, "(19%)"},
		"slower, within the ratio of the spec": {opposed(slower, windows(5, 40, tracks(1000, 10, 5, 100, 1, 6))), healthy, "", ""},
		"after the newest window was lost": {opposed(wide, concat(windows(5, 40, tracks(1000, 10, 5, 100, 9, 0.5)), windows(41, 41, lost))), unhealthy, CheckErrorRate,
			"worse than stable, with 95% confidence over the whole attempt"},
		"not sure enough": {opposed(strict, windows(5, 9, tracks(1000, 10, 5, 100, 5, 0.5))), healthy, "", ""},
		"sure enough":     {opposed(strict, windows(5, 40, tracks(1000, 10, 5, 100, 9, 0.5))), unhealthy, CheckErrorRate, "with 99.9% confidence"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v := Evaluate(tc.in)
			reason := v1alpha1.ReasonChecksPassed
			if tc.state == unhealthy {
				reason = v1alpha1.ReasonWorseThanStable
			}
			if v.State != tc.state || v.Reason != reason || v.Check != tc.check || !strings.Contains(v.Message, tc.says) {
				t.Errorf("got %+v", v)
			}
			if v.State == unhealthy && (v.BreachSince.IsZero() || v.RampReady || v.StageReady) {
				t.Errorf("an unhealthy canary could be raised: %+v", v)
			}
		})
	}
}

// TestComparisonGoesOnOverShares shows that what one share has shown is not forgotten at
// the next: two halves that prove nothing by themselves prove it together, in whatever
// form the first was kept.
func TestComparisonGoesOnOverShares(t *testing.T) {
	c := errorsOnly()
	c.ErrorRate = &ErrorRate{Max: 0.2}
	half := windows(5, 28, tracks(1000, 10, 0, 30, 1, 0))
	first := Evaluate(opposed(c, half))
	if first.State == unhealthy {
		t.Fatalf("half of it is proof: %+v", first)
	}
	status := first.Compared.Status()
	text := *status
	if text.Errors == "" || text.Through == nil {
		t.Fatalf("status %+v", status)
	}
	k := ComparisonFrom(&text)
	in := opposed(c, windows(29, 60, tracks(1000, 10, 0, 30, 1, 0)))
	in.ConfirmedAt = epoch.Add(29*15*time.Second - 2*time.Minute)
	alone := Evaluate(in)
	in.Past = c.Begin(k)
	together := Evaluate(in)
	if !(c.wealth(together.Compared) > c.wealth(alone.Compared)) {
		t.Errorf("the evidence is %g with the first share, and %g without", c.wealth(together.Compared), c.wealth(alone.Compared))
	}
	for name, broken := range map[string]*v1alpha1.ComparisonStatus{
		"nothing": nil, "no numbers": {Errors: "a b c"}, "infinite": {Errors: "+Inf +Inf"}, "slow": {Slow: "NaN"},
	} {
		if got := ComparisonFrom(broken); got != (Comparison{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestRecordForgetsNoComparison shows that windows that are not kept any more stay in
// the comparison and in the proof.
func TestRecordForgetsNoComparison(t *testing.T) {
	c := both()
	c.NotWorse, c.Checks = true, nil
	all := windows(5, 600, tracks(1000, 1, 1, 100, 0, 0))
	r := Share{Config: c, Subject: TrackCanary, ConfirmedAt: epoch}.Record()
	for i := range all {
		r.Add(all[i:i+1], all[i].End)
	}
	now := all[len(all)-1].End
	got := Evaluate(r.Input(now))
	in := opposed(c, all)
	in.Now = now
	want := Evaluate(in)
	if len(r.Windows()) >= len(all)/2 {
		t.Errorf("%d of %d windows are kept", len(r.Windows()), len(all))
	}
	if diff := cmp.Diff(want.Compared, got.Compared, byValue); diff != "" {
		t.Errorf("(-all +recorded):\n%s", diff)
	}
	if got.State != want.State || got.Reason != want.Reason {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestWhatIsNotCompared: windows of a cold canary, and those that are in the comparison
// already, change nothing; nor does a window in which stable's counts reach back to
// before the confirmation.
func TestWhatIsNotCompared(t *testing.T) {
	c := errorsOnly()
	ws := windows(5, 60, tracks(1000, 10, 0, 100, 9, 0))
	cold := opposed(c, ws)
	cold.ComparedFrom = ws[len(ws)-1].End
	if v := Evaluate(cold); v.Compared != (Comparison{}) {
		t.Errorf("of a cold canary: %+v", v.Compared)
	}
	r := Share{Config: c, Subject: TrackCanary, ComparedFrom: ws[len(ws)-1].End, ConfirmedAt: epoch}.Record()
	for i := range ws {
		r.Add(ws[i:i+1], ws[i].End)
	}
	if k := Evaluate(r.Input(ws[len(ws)-1].End)).Compared; k != (Comparison{}) {
		t.Errorf("of a cold canary, recorded: %+v", k)
	}
	once := Evaluate(opposed(c, ws)).Compared
	again := opposed(c, ws)
	again.Past = c.Begin(once)
	if twice := Evaluate(again).Compared; twice != once {
		t.Errorf("windows are counted twice: %+v, and once %+v", twice, once)
	}
	half := opposed(c, ws)
	half.Past = c.Begin(Comparison{Through: epoch.Add(8 * time.Minute)})
	if k := Evaluate(half).Compared; k == once || k.Through != once.Through || !(c.wealth(k) < c.wealth(once)) {
		t.Errorf("from the middle on: %+v, and all %+v", k, once)
	}
	for i := range ws {
		ws[i].Stable.OldestSample = At(epoch.Add(-time.Second))
	}
	if v := Evaluate(opposed(c, ws)); v.Compared != (Comparison{}) {
		t.Errorf("with counts of stable from before: %+v", v.Compared)
	}
}

// TestWorseBesideAWideLimit: a limit that is far away does not hide a large difference.
func TestWorseBesideAWideLimit(t *testing.T) {
	c := errorsOnly()
	c.ErrorRate = &ErrorRate{Max: 0.5}
	if v := Evaluate(opposed(c, windows(5, 60, tracks(9900, 99, 0, 100, 5, 0)))); v.Reason != v1alpha1.ReasonWorseThanStable {
		t.Errorf("5 %% against 1 %%: %+v", v)
	}
}

// TestProofThatWaits: what keeps a proof from being acted upon is told.
func TestProofThatWaits(t *testing.T) {
	c := errorsOnly()
	few := ReportOn(opposed(c, windows(5, 8, tracks(1000, 0, 0, 8, 4, 0))))
	if few.Comparison.Evidence < few.Comparison.Proof || !strings.Contains(few.Comparison.Waits, "5 bad requests") || few.Verdict.Reason == v1alpha1.ReasonWorseThanStable {
		t.Errorf("with four bad requests: %+v, %+v", few.Comparison, few.Verdict)
	}
	small := ReportOn(opposed(c, windows(5, 200, tracks(100000, 10, 0, 10000, 30, 0))))
	if small.Comparison.Evidence < small.Comparison.Proof || !strings.Contains(small.Comparison.Waits, "matters") {
		t.Errorf("a small difference: %+v", small.Comparison)
	}
	worse := ReportOn(opposed(c, windows(5, 60, tracks(1000, 0, 0, 100, 9, 0))))
	if worse.Comparison.Waits != "" || worse.Verdict.State != unhealthy {
		t.Errorf("one that is worse: %+v, %+v", worse.Comparison, worse.Verdict)
	}
}

// TestNotWorse: a stage that requires the proof ends with it, and not before.
func TestNotWorse(t *testing.T) {
	c := both()
	c.NotWorse, c.Checks = true, nil
	few := Evaluate(opposed(c, windows(5, 12, tracks(1000, 1, 1, 60, 0, 0))))
	if few.State != v1alpha1.VerdictUnknown || few.Reason != v1alpha1.ReasonNotProven || !few.RampReady || few.StageReady ||
		!strings.HasPrefix(few.StageWait, "about ") || !strings.Contains(few.StageWait, "more requests") {
		t.Errorf("before the proof: %+v", few)
	}
	many := Evaluate(opposed(c, windows(5, 80, tracks(1000, 1, 1, 60, 0, 0))))
	if many.State != healthy || !many.StageReady {
		t.Errorf("after it: %+v", many)
	}
	c.ErrorRate, c.Latency = &ErrorRate{Max: 0.2, MaxAboveStable: 0.01}, nil
	worse := Evaluate(opposed(c, windows(5, 80, tracks(2000, 20, 0, 60, 1.3, 0))))
	if worse.State == healthy || worse.StageReady || worse.Reason == v1alpha1.ReasonNotProven && !strings.Contains(worse.StageWait, "the proof will not come") {
		t.Errorf("of one that is worse: %+v", worse)
	}
	silent := Evaluate(opposed(c, windows(5, 80, tracks(0, 0, 0, 60, 0, 0))))
	if silent.State != v1alpha1.VerdictUnknown || silent.Reason != v1alpha1.ReasonInsufficientRequests || !strings.Contains(silent.Message, "stable") || silent.StageReady {
		t.Errorf("beside a silent stable: %+v", silent)
	}
	if alone := Evaluate(input(c, windows(5, 80, tracks(0, 0, 0, 60, 0, 0)))); alone.State != healthy {
		t.Errorf("with all traffic there is nothing to be proven: %+v", alone)
	}
}

func TestLimitsRelativeToStable(t *testing.T) {
	errors := errorsOnly()
	errors.ErrorRate = &ErrorRate{Max: 0.5, MaxAboveStable: 0.02}
	ratio := both()
	ratio.Checks = nil
	ratio.ErrorRate = nil
	ratio.Latency = &Latency{Percentile: 0.9, Max: 5 * time.Second, MaxRatio: 2}
	// Nine of ten requests of stable take 0.1s, so 0.2s to 0.5s are allowed.
	timed := func(requests, beyond float64) func(*Window) {
		return func(w *Window) {
			times := func(n, slow float64) []Bucket {
				return []Bucket{{0.05, n * 0.5}, {0.1, n * 0.97 * (1 - slow/n)}, {0.5, n - slow}, {5, n}, {math.Inf(1), n}}
			}
			w.Stable, w.Canary = reading(w.End, 1000, 0, 0), reading(w.End, requests, 0, 0)
			w.Stable.Buckets, w.Canary.Buckets = times(1000, 0), times(requests, beyond)
		}
	}
	tests := map[string]struct {
		in    Input
		state v1alpha1.VerdictState
		check string
		says  string
	}{
		"within the points":              {opposed(errors, windows(5, 12, tracks(1000, 50, 0, 100, 6, 0))), healthy, "", ""},
		"beyond them, one window":        {opposed(errors, windows(8, 8, tracks(1000, 50, 0, 200, 40, 0))), degraded, CheckErrorRate, "40 of 200 requests failed in one window (20%), and 5% of stable's; the limit is 2 points above stable"},
		"beyond them, four bad requests": {opposed(errors, windows(8, 8, tracks(10000, 0, 0, 20, 4, 0))), v1alpha1.VerdictUnknown, CheckRequests, ""},
		"both are bad":                   {opposed(errors, windows(5, 12, tracks(1000, 200, 0, 200, 42, 0))), healthy, "", ""},
		"stable is lost":                 {opposed(errors, windows(5, 12, tracks(1000, 5, 0, 100, 0, 0), func(w *Window) { w.Stable = Reading{} })), v1alpha1.VerdictUnknown, CheckRequests, "stable cannot be compared with"},
		"within the ratio":               {opposed(ratio, windows(5, 12, timed(200, 10))), healthy, "", ""},
		"beyond the ratio":               {opposed(ratio, windows(8, 8, timed(200, 60))), degraded, CheckLatency, "60 of 200 requests took longer in one window than 2 times the response time of stable at the percentile 90 (30%); at most 10% may"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v := Evaluate(tc.in)
			if v.State != tc.state || v.Check != tc.check || !strings.Contains(v.Message, tc.says) {
				t.Errorf("got %+v", v)
			}
			compact := tc.in
			compact.Windows = nil
			for _, w := range tc.in.Windows {
				compact.Windows = append(compact.Windows, tc.in.Config.Compact(w))
			}
			if diff := cmp.Diff(v, Evaluate(compact), byValue); diff != "" {
				t.Errorf("compact windows say something else:\n%s", diff)
			}
		})
	}
}

// TestEvidenceStartsAtItsOldestSample: counts that reach back to before the
// confirmation are no evidence, however the window is named; that the metrics have
// stopped coming is still told.
func TestEvidenceStartsAtItsOldestSample(t *testing.T) {
	oldest := func(at time.Time) func(*Window) {
		return func(w *Window) { w.Canary.OldestSample, w.Stable.OldestSample = At(at), At(at) }
	}
	c := errorsOnly()
	early := Evaluate(input(c, windows(5, 12, canary(600, 0, 0), oldest(epoch.Add(-time.Millisecond)))))
	if early.State != v1alpha1.VerdictUnknown || early.Reason != v1alpha1.ReasonAwaitingWindow || early.RampReady || early.Requests != 0 {
		t.Errorf("evidence from before the confirmation: %+v", early)
	}
	if v := Evaluate(input(c, windows(5, 12, canary(600, 0, 0), oldest(epoch)))); v.State != healthy {
		t.Errorf("evidence from the confirmation on: %+v", v)
	}
	old := func(w *Window) { w.Canary.NewestSample = At(epoch.Add(-2 * time.Second)) }
	if v := Evaluate(input(c, windows(5, 12, canary(600, 0, 0), oldest(epoch.Add(-time.Minute)), old))); v.Reason != v1alpha1.ReasonStale {
		t.Errorf("metrics that have stopped coming: %+v", v)
	}
}

// TestImportance works the score of several checks out by hand.
func TestImportance(t *testing.T) {
	c := checksOnly()
	c.DegradedBelow = 0.5
	c.Checks = []Check{{Name: "queue", Max: new(10.0), Importance: 3}, {Name: "success", Min: new(0.9), Importance: 1}, {Name: "extra", Max: new(1.0)}}
	values := func(queue, success float64) func(*Window) {
		return func(w *Window) {
			w.Checks = []CheckResult{{Name: "queue", Value: queue, SampleAt: w.End}, {Name: "success", Value: success, SampleAt: w.End}, {Name: "extra", SampleAt: w.End}}
		}
	}
	if v := Evaluate(input(c, windows(5, 10, values(2, 1)))); v.Score != 1 || v.State != healthy {
		t.Errorf("at the best: %+v", v)
	}
	// In one window the queue's moving average goes from 2 to 2 + 0.2*(7-2) = 3: it has lost an eighth
	// of the way from 2 to 10. The other check is at its best: (3*7/8 + 1)/4.
	v := Evaluate(input(c, concat(windows(5, 8, values(2, 1)), windows(9, 12, values(7, 1)))))
	if math.Abs(v.Score-(3*7.0/8+1)/4) > 1e-9 {
		t.Errorf("score %v", v.Score)
	}
	low := Evaluate(input(c, concat(windows(5, 8, values(2, 1)), windows(9, 140, values(9.9, 0.99)))))
	if low.State != degraded || low.Reason != v1alpha1.ReasonLowScore || !strings.Contains(low.Message, "check queue scores 0.01") {
		t.Errorf("near the limit: %+v", low)
	}
	// Beside requests, whose own score counts 1: 1 − 2 × 0.1 = 0.8.
	c.Preset, c.ErrorRate, c.DegradedBelow = v1alpha1.PresetTraefik, &ErrorRate{Max: 0.2}, 0.9
	mixed := Evaluate(input(c, windows(5, 12, values(2, 1), canary(100, 10, 0))))
	if want := (0.8 + 3 + 1) / 5; math.Abs(mixed.Score-want) > 1e-9 {
		t.Errorf("score %v, want %v", mixed.Score, want)
	}
}

// TestHalfTheLimitIsNoRollback: a true error rate of half the limit, at 100 requests a
// window, does not roll back. How seldom is for make bench-health to say, with a thousand
// runs; here one of forty would already be too many to be chance.
func TestHalfTheLimitIsNoRollback(t *testing.T) {
	const runs, ticks = 40, 5 * 60 * 4
	c := errorsOnly()
	c.For, c.MinRequests = time.Minute, 100
	rolledBack := 0
	for run := range runs {
		random := rand.New(rand.NewPCG(uint64(run), 2))
		r := Share{Config: c, Subject: TrackCanary, ConfirmedAt: epoch}.Record()
		var requests, errors [4]float64 // of the quarters of a window
		for i := 1; i <= ticks; i++ {
			q := i % 4
			requests[q], errors[q] = 25, 0
			for range 25 {
				if random.Float64() < 0.005 {
					errors[q]++
				}
			}
			if i < 5 {
				continue
			}
			w := window(i, canary(100, errors[0]+errors[1]+errors[2]+errors[3], 0))
			w.Stable = reading(w.End, 9900, float64(binomial(random, 9900, 0.005)), 0)
			r.Add([]Window{w}, w.End)
			if i%4 == 0 && Evaluate(r.Input(w.End)).State == unhealthy {
				rolledBack++
				break
			}
		}
	}
	if rolledBack > 0 {
		t.Errorf("%d of %d runs of five hours were rolled back", rolledBack, runs)
	}
}

// binomial draws by the normal approximation, which is close for such numbers.
func binomial(random *rand.Rand, n, p float64) int {
	return max(0, int(math.Round(n*p+random.NormFloat64()*math.Sqrt(n*p*(1-p)))))
}

// Whatever is drawn, the comparison never opens a gate: without it the verdict allows at
// least as much.
func TestPropertyComparisonOpensNoGate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawOpposed(t)
		v := Evaluate(in)
		in.Unopposed = true
		alone := Evaluate(in)
		if v.RampReady && !alone.RampReady || v.StageReady && !alone.StageReady {
			t.Fatalf("compared %+v\nalone %+v", v, alone)
		}
	})
}

// TestComparedFrom: what a cold canary did before its time was over has no part in the
// comparison, and not in what it has come to at this share; what it did then has.
func TestComparedFrom(t *testing.T) {
	c := errorsOnly()
	c.ErrorRate = &ErrorRate{Max: 0.5}
	middle := epoch.Add(10 * time.Minute)
	cold, warm := windows(5, 40, tracks(1000, 1, 0, 100, 20, 0)), windows(41, 120, tracks(1000, 1, 0, 100, 4, 0))
	in := opposed(c, concat(cold, warm))
	in.ComparedFrom = middle
	v := Evaluate(in)
	if v.Reason != v1alpha1.ReasonWorseThanStable || !strings.Contains(v.Message, "requests failed since the comparison with stable began (4%)") {
		t.Errorf("got %+v", v)
	}
	late := opposed(c, warm[3:])
	late.ComparedFrom = middle
	if want := Evaluate(late).Compared; v.Compared != want {
		t.Errorf("compared %+v, and of the later windows alone %+v", v.Compared, want)
	}
	in.Windows = concat(cold, warm[:3])
	if v := Evaluate(in); v.State == unhealthy || v.Compared != (Comparison{}) {
		t.Errorf("before its time is over: %+v", v)
	}
	// What earlier shares have proven is not acted upon while it is cold again.
	in.Past = c.Begin(Evaluate(late).Compared)
	if v := Evaluate(in); v.State == unhealthy {
		t.Errorf("cold again: %+v", v)
	}
	r := Share{Config: c, Subject: TrackCanary, ConfirmedAt: epoch, ComparedFrom: middle}.Record()
	for _, w := range concat(cold, warm) {
		r.Add([]Window{w}, w.End)
	}
	if got := Evaluate(r.Input(warm[len(warm)-1].End)); got.Compared != v.Compared || got.Reason != v.Reason {
		t.Errorf("recorded %+v, and at once %+v", got, v)
	}
}

// TestWorseWithoutResponseTimes: response times that cannot be read hold the canary, and
// do not hide that it fails more than stable does.
func TestWorseWithoutResponseTimes(t *testing.T) {
	c := both()
	c.Checks, c.ErrorRate = nil, &ErrorRate{Max: 0.5}
	untimed := func(w *Window) { w.Stable.Buckets, w.Canary.Buckets = nil, nil }
	in := opposed(c, windows(5, 80, tracks(1000, 1, 0, 100, 9, 0), untimed))
	if v := Evaluate(in); v.Reason != v1alpha1.ReasonWorseThanStable || v.Check != CheckErrorRate {
		t.Errorf("got %+v", v)
	}
	in = opposed(c, windows(5, 80, tracks(1000, 1, 0, 100, 0, 0), untimed))
	if v := Evaluate(in); v.State != v1alpha1.VerdictUnknown || v.StageReady || v.RampReady {
		t.Errorf("of a good one: %+v", v)
	}
}
