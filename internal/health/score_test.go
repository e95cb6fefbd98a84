package health

import (
	"math"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

// targets has a target below each limit.
func targets() Config {
	c := both()
	c.Checks = nil
	c.ErrorRate = &ErrorRate{Max: 0.10, Target: new(0.02)}
	c.Latency = &Latency{Percentile: 0.99, Max: 500 * time.Millisecond, Target: 300 * time.Millisecond, Smoothing: 0.2}
	c.DegradedBelow, c.Penalties = 0.9, score.DefaultPenalties()
	return c
}

func errorTarget() Config {
	c := targets()
	c.Latency = nil
	return c
}

// latency lets every request of the canary take about so many seconds at the 99th
// percentile.
func latency(requests, p99 float64) func(*Window) {
	return func(w *Window) {
		w.Canary = reading(w.End, requests, 0, 0)
		w.Canary.Buckets = []Bucket{{p99 / 2, requests * 0.9}, {p99, requests * 0.99}, {p99 * 1.01, requests}, {math.Inf(1), requests}}
		if p99*1.01 > 0.5 {
			return
		}
		w.Canary.Buckets = append(w.Canary.Buckets, Bucket{0.5, requests})
	}
}

func TestDegraded(t *testing.T) {
	lowScore := targets()
	lowScore.ErrorRate.Target = nil
	lowScore.Latency = nil
	lowScore.ErrorRate.Max = 0.5
	for name, tc := range map[string]struct {
		config    Config
		windows   []Window
		want      expect
		scaleBack bool
	}{
		"well": {errorTarget(), windows(5, 15, canary(200, 1, 0)), expect{healthy, v1alpha1.ReasonChecksPassed, "", true, true, "every check passes"}, false},
		"errors above the target, not for long": {
			errorTarget(), concat(windows(5, 14, canary(200, 1, 0)), windows(15, 15, canary(200, 11, 0))),
			expect{degraded, v1alpha1.ReasonAboveTarget, CheckErrorRate, false, false, "11 of 200 requests failed in one window (5.5%); the target is 2%"}, false,
		},
		"errors above the target": {
			errorTarget(), windows(5, 15, canary(200, 9, 0)),
			expect{degraded, v1alpha1.ReasonAboveTarget, CheckErrorRate, false, false, "the target is 2%"}, true,
		},
		"errors above the target, not beyond doubt": {
			errorTarget(), windows(5, 15, canary(60, 2, 0)),
			expect{healthy, v1alpha1.ReasonChecksPassed, "", true, true, ""}, false,
		},
		"thin errors add up": {
			errorTarget(), windows(5, 36, canary(60, 3, 0)),
			expect{degraded, v1alpha1.ReasonAboveTarget, CheckErrorRate, false, false, "since the share was confirmed"}, true,
		},
		"slower than the target": {
			targets(), windows(5, 15, latency(200, 0.4)),
			expect{degraded, v1alpha1.ReasonAboveTarget, CheckLatency, false, false, "is 400ms; the target is 300ms"}, true,
		},
		"a single slow window is smoothed": {
			targets(), concat(windows(5, 12, latency(200, 0.2)), windows(13, 16, latency(200, 0.49))),
			expect{healthy, v1alpha1.ReasonChecksPassed, "", true, true, ""}, false,
		},
		"well again": {
			errorTarget(), concat(windows(5, 10, canary(200, 9, 0)), windows(11, 16, canary(200, 0, 0))),
			expect{healthy, v1alpha1.ReasonChecksPassed, "", true, true, ""}, false,
		},
		"the score is low": {
			lowScore, windows(5, 15, canary(200, 16, 0)),
			expect{degraded, v1alpha1.ReasonLowScore, "", false, false, "the health score is 0.84; health.degradedBelow is 0.9"}, true,
		},
		"within the target again, but not for long": {
			targets(), concat(windows(5, 20, latency(200, 0.35)), windows(21, 46, latency(200, 0.28))),
			expect{degraded, v1alpha1.ReasonAboveTarget, CheckLatency, false, false, "well again, though not for long: before, the smoothed response time at the percentile 99 is 30"}, false,
		},
		"within the target again": {
			targets(), concat(windows(5, 20, latency(200, 0.35)), windows(21, 60, latency(200, 0.28))),
			expect{healthy, v1alpha1.ReasonChecksPassed, "", true, true, ""}, false,
		},
		"within the target again, on too few requests": {
			errorTarget(), concat(windows(5, 12, canary(200, 12, 0)), windows(13, 20, canary(8, 0, 0))),
			expect{degraded, v1alpha1.ReasonAboveTarget, CheckErrorRate, false, false, "well again, though not for long"}, false,
		},
		"a short silence changes nothing": {
			targets(), concat(windows(5, 14, latency(200, 0.45)), windows(15, 17, canary(0, 0, 0))),
			expect{degraded, v1alpha1.ReasonAboveTarget, CheckLatency, false, false, "the target is 300ms"}, false,
		},
		"silence is no failure": {
			targets(), concat(windows(5, 8, latency(200, 0.45)), windows(9, 60, canary(0, 0, 0))),
			expect{nothing, v1alpha1.ReasonInsufficientRequests, CheckRequests, false, false, "too few requests to tell whether this is over: the smoothed response time"}, false,
		},
		"silence is no recovery": {
			errorTarget(), concat(windows(5, 14, canary(200, 12, 0)), windows(15, 40, canary(0, 0, 0)), windows(41, 41, canary(200, 12, 0))),
			expect{degraded, v1alpha1.ReasonAboveTarget, CheckErrorRate, false, false, "the target is 2%"}, true,
		},
		"a failed query is no recovery": {
			errorTarget(), concat(windows(5, 14, canary(200, 12, 0)), windows(15, 15, lost), windows(16, 16, canary(200, 0, 0))),
			expect{degraded, v1alpha1.ReasonAboveTarget, CheckErrorRate, false, false, "well again, though not for long"}, false,
		},
		"the score is fair": {lowScore, windows(5, 15, canary(200, 8, 0)), expect{healthy, v1alpha1.ReasonChecksPassed, "", true, true, ""}, false},
		"bad news needs no quorum": {
			errorTarget(), concat(windows(5, 7, canary(90, 0, 0)), windows(8, 8, canary(90, 7, 0))),
			expect{degraded, v1alpha1.ReasonAboveTarget, CheckErrorRate, false, false, ""}, false,
		},
		"a breach comes first": {
			errorTarget(), windows(5, 15, canary(200, 60, 0)),
			expect{unhealthy, v1alpha1.ReasonBreach, CheckErrorRate, false, false, "the limit is 10%"}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := tc.config
			v := Evaluate(input(c, tc.windows))
			tc.want.compare(t, v)
			if v.ScaleBack != tc.scaleBack || v.Reason == v1alpha1.ReasonLowScore && !(v.Score >= score.HealthFloor && v.Score < c.DegradedBelow+0.02) {
				t.Errorf("scale back: %v, want %v: %+v", v.ScaleBack, tc.scaleBack, v)
			}
		})
	}
}

// The figures of the score: an error rate of 10 percent takes off 0.2, a response
// time of twice the target 0.5, and no score is under 0.2.
func TestScore(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Window)
		want   float64
	}{
		"well":             {latency(1000, 0.2), 1},
		"errors":           {canary(1000, 100, 0), 0.8},
		"a few errors":     {canary(40, 1, 0), 1},
		"thin errors":      {canary(40, 4, 0), 0.8},
		"everything fails": {canary(1000, 1000, 0), 0.2},
		"slow":             {latency(1000, 0.6), 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			c := targets()
			if name != "slow" {
				c.Latency = nil
			}
			v := Evaluate(input(c, windows(5, 15, tc.change)))
			if math.Abs(v.Score-tc.want) > 0.01 {
				t.Errorf("score %v, want %v: %+v", v.Score, tc.want, v)
			}
		})
	}
	// The smoothed response time follows one slow window by a fifth of it.
	v := Evaluate(input(targets(), concat(windows(5, 12, latency(1000, 0.3)), windows(13, 16, latency(1000, 0.45)))))
	if want := 1 - 0.5*0.2*0.5; math.Abs(v.Score-want) > 0.001 {
		t.Errorf("score %v after a spike, want %v", v.Score, want)
	}
}

// What Compact keeps is enough for the same verdict.
func TestCompactKeepsTheScore(t *testing.T) {
	c := targets()
	whole := windows(5, 40, latency(200, 0.29))
	compact := make([]Window, len(whole))
	for i := range whole {
		compact[i] = c.Compact(whole[i])
		if len(compact[i].Canary.Buckets) != 2 || compact[i].Canary.Quantile == 0 {
			t.Fatalf("not compact: %+v", compact[i].Canary)
		}
	}
	a, b := Evaluate(input(c, whole)), Evaluate(input(c, compact))
	if a.Score != b.Score || a.Signal() != b.Signal() {
		t.Errorf("%+v\n%+v", a, b)
	}
}

func TestTrendingUp(t *testing.T) {
	c := targets()
	c.Latency.Target = 0
	c.Latency.Smoothing = 0.1
	// rise is a p99 that starts low and rises by so much per window of a minute.
	rise := func(from, perMinute float64, ticks int) []Window {
		var ws []Window
		for i := range ticks {
			ws = append(ws, windows(5+i, 5+i, latency(500, from+perMinute*float64(i)/4))...)
		}
		return ws
	}
	trending := expect{nothing, v1alpha1.ReasonTrendingUp, CheckLatency, false, false, "the limit is 500ms"}
	well := expect{healthy, v1alpha1.ReasonChecksPassed, "", true, true, ""}
	for name, tc := range map[string]struct {
		windows []Window
		want    expect
	}{
		"the limit is near":   {rise(0.1, 0.03, 45), trending},
		"the limit is far":    {rise(0.1, 0.003, 45), well},
		"steady":              {windows(5, 45, latency(500, 0.4)), well},
		"falling":             {rise(0.45, -0.03, 40), well},
		"too few to tell":     {rise(0.1, 0.1, 14), well},
		"up and down":         {concat(rise(0.1, 0.03, 20), windows(25, 50, latency(500, 0.1))), well},
		"over the limit":      {windows(5, 45, latency(500, 0.6)), expect{unhealthy, v1alpha1.ReasonBreach, CheckLatency, false, false, "took longer than"}},
		"few timed requests":  {rise2(0.1, 0.03, 45, 4), expect{nothing, v1alpha1.ReasonInsufficientRequests, CheckRequests, true, false, ""}},
		"a trend of earlier":  {concat(rise(0.1, 0.03, 45), windows(50, 110, latency(4, 0.1))), well},
		"a trend needs a cap": {nil, expect{nothing, v1alpha1.ReasonAwaitingWindow, "", false, false, ""}},
	} {
		t.Run(name, func(t *testing.T) { tc.want.compare(t, Evaluate(input(c, tc.windows))) })
	}
}

func rise2(from, perMinute float64, ticks int, requests float64) []Window {
	var ws []Window
	for i := range ticks {
		ws = append(ws, windows(5+i, 5+i, latency(requests, from+perMinute*float64(i)/4))...)
	}
	return ws
}

func TestSteady(t *testing.T) {
	c := errorsOnly()
	good := canary(200, 0, 0)
	for name, tc := range map[string]struct {
		windows []Window
		want    bool
	}{
		"two":                 {windows(8, 9, good), false},
		"three":               {windows(6, 8, good), true},
		"three after a miss":  {concat(windows(5, 8, good), windows(9, 9, canary(200, 60, 0)), windows(10, 12, good)), true},
		"two after a breach":  {concat(windows(5, 8, good), windows(9, 9, canary(200, 60, 0)), windows(10, 11, good)), false},
		"too few requests":    {windows(6, 8, canary(30, 0, 0)), false},
		"one cannot be read":  {concat(windows(5, 8, good), windows(9, 9, func(w *Window) { w.Problem = &Problem{Reason: v1alpha1.ReasonProviderError} }), windows(10, 11, good)), false},
		"nothing yet":         {nil, false},
		"a breach at the end": {concat(windows(5, 12, good), windows(13, 13, canary(200, 60, 0))), false},
	} {
		t.Run(name, func(t *testing.T) {
			if v := Evaluate(input(c, tc.windows)); v.Steady != tc.want {
				t.Errorf("steady: %v, want %v: %+v", v.Steady, tc.want, v)
			}
		})
	}
}

func TestQuantile(t *testing.T) {
	inf := math.Inf(1)
	for name, tc := range map[string]struct {
		buckets []Bucket
		part    float64
		want    float64
	}{
		"within a bucket":     {[]Bucket{{0.1, 50}, {0.2, 100}, {inf, 100}}, 0.75, 0.15},
		"in the first":        {[]Bucket{{0.1, 100}, {inf, 100}}, 0.5, 0.05},
		"at a bound":          {[]Bucket{{0.1, 50}, {0.2, 100}, {inf, 100}}, 0.5, 0.1},
		"beyond the last":     {[]Bucket{{0.1, 50}, {0.2, 60}, {inf, 100}}, 0.99, 0.2},
		"an empty bucket":     {[]Bucket{{0.1, 50}, {0.2, 50}, {0.4, 100}, {inf, 100}}, 0.75, 0.3},
		"a bucket that falls": {[]Bucket{{0.1, 50}, {0.2, 40}, {0.4, 100}, {inf, 100}}, 0.75, 0.3},
		"nothing counted":     {[]Bucket{{0.1, 0}, {inf, 0}}, 0.5, 0},
		"no total":            {[]Bucket{{0.1, 1}, {inf, math.NaN()}}, 0.5, 0},
		"an infinite total":   {[]Bucket{{0.1, 1}, {inf, inf}}, 0.5, 0},
		"no buckets":          {nil, 0.5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quantile(tc.buckets, tc.part); math.Abs(got-tc.want) > 1e-12 {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
