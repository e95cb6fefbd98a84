package health

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// epoch lies on the grid of every window used here.
var epoch = time.Unix(1_700_000_040, 0).UTC().Truncate(time.Hour)

// both has an error rate, a latency and a check of its own.
func both() Config {
	return Config{
		Window: time.Minute, Interval: 15 * time.Second, SampleDelay: 15 * time.Second, For: 30 * time.Second,
		Preset: v1alpha1.PresetTraefik, MinRequests: 100, MinRampRequests: 20,
		ErrorRate: &ErrorRate{Max: 0.01}, Latency: &Latency{Percentile: 0.99, Max: 500 * time.Millisecond},
		Checks: []Check{{Name: "queue", Max: new(10.0)}},
	}
}

func errorsOnly() Config {
	c := both()
	c.Latency, c.Checks = nil, nil
	return c
}

func checksOnly() Config {
	c := both()
	c.Preset, c.ErrorRate, c.Latency = "", nil, nil
	c.Checks = []Check{{Name: "queue", Max: new(10.0)}, {Name: "success", Min: new(0.99)}}
	return c
}

func reading(end time.Time, requests, errors, slow float64) Reading {
	return Reading{
		Found: true, Requests: requests, Errors: errors, NewestSample: At(end.Add(-time.Second)),
		Buckets: []Bucket{{0.1, (requests - slow) / 2}, {0.5, requests - slow}, {1, requests}, {math.Inf(1), requests}},
	}
}

// window is a healthy one that ends at a tick after the epoch.
func window(tick int, change ...func(*Window)) Window {
	end := epoch.Add(time.Duration(tick) * 15 * time.Second)
	w := Window{
		Start: end.Add(-time.Minute), End: end,
		Stable: reading(end, 1000, 1, 1), Canary: reading(end, 60, 0, 0),
		Checks: []CheckResult{{Name: "queue", Value: 3, SampleAt: end}, {Name: "success", Value: 1, SampleAt: end}},
	}
	for _, f := range change {
		f(&w)
	}
	return w
}

func windows(from, to int, change ...func(*Window)) []Window {
	var ws []Window
	for i := from; i <= to; i++ {
		ws = append(ws, window(i, change...))
	}
	return ws
}

func canary(requests, errors, slow float64) func(*Window) {
	return func(w *Window) { w.Canary = reading(w.End, requests, errors, slow) }
}

func check(name string, value float64) func(*Window) {
	return func(w *Window) {
		for i := range w.Checks {
			if w.Checks[i].Name == name {
				w.Checks[i].Value = value
			}
		}
	}
}

func reads(f func(*Reading)) func(*Window) { return func(w *Window) { f(&w.Canary) } }

// input has the share confirmed so that the window of tick 5 is the first that
// counts, and the one of tick 8 the first on the grid. The canary has all traffic: the
// comparison with stable has tests of its own.
func input(c Config, ws []Window) Input {
	now := epoch
	for _, w := range ws {
		if w.End.After(now) {
			now = w.End
		}
	}
	return Input{Config: c, Subject: TrackCanary, Unopposed: true, ConfirmedAt: epoch, Windows: ws, Now: now.Add(time.Second)}
}

func concat(ws ...[]Window) (all []Window) {
	for _, w := range ws {
		all = append(all, w...)
	}
	return all
}

type expect struct {
	state       v1alpha1.VerdictState
	reason      string
	check       string
	ramp, stage bool
	message     string // a part of it
}

func (e expect) compare(t *testing.T, v Verdict) {
	t.Helper()
	want := Signal{State: e.state, Reason: e.reason, Check: e.check, RampReady: e.ramp, StageReady: e.stage}
	// How long it has been so is the subject of tests of its own.
	want.Steady, want.ScaleBack, want.ScaleTo = v.Steady, v.ScaleBack, v.Signal().ScaleTo
	if v.Steady && !e.stage || v.ScaleBack && e.state != degraded {
		t.Errorf("that does not fit together: %+v", v)
	}
	if diff := cmp.Diff(want, v.Signal()); diff != "" {
		t.Errorf("signal (-want +got):\n%s%+v", diff, v)
	}
	if !strings.Contains(v.Message, e.message) {
		t.Errorf("message %q does not say %q", v.Message, e.message)
	}
	if (v.RampWait == "") != v.RampReady || (v.StageWait == "") != v.StageReady {
		t.Errorf("what is awaited does not fit: %+v", v)
	}
}

const (
	healthy   = v1alpha1.VerdictHealthy
	degraded  = v1alpha1.VerdictDegraded
	unhealthy = v1alpha1.VerdictUnhealthy
	nothing   = v1alpha1.VerdictUnknown
)

func TestEvaluate(t *testing.T) {
	awaiting := expect{state: nothing, reason: v1alpha1.ReasonAwaitingWindow}
	passes := expect{state: healthy, reason: v1alpha1.ReasonChecksPassed, ramp: true, stage: true}
	bad := canary(60, 30, 0)
	tests := map[string]struct {
		config Config
		ws     []Window
		change func(*Input)
		want   expect
	}{
		"disabled": {Config{Disabled: true}, nil, nil, expect{healthy, v1alpha1.ReasonChecksDisabled, "", true, true, "disabled"}},
		"disabled and unconfirmed": {Config{Disabled: true}, nil, func(in *Input) { in.ConfirmedAt = time.Time{} },
			expect{healthy, v1alpha1.ReasonChecksDisabled, "", true, true, ""}},
		"zero config":                 {Config{}, windows(8, 12), nil, expect{nothing, v1alpha1.ReasonInvalidSpec, "", false, false, ""}},
		"unconfirmed":                 {both(), windows(8, 12), func(in *Input) { in.ConfirmedAt = time.Time{} }, awaiting},
		"no window":                   {both(), nil, nil, awaiting},
		"windows from before":         {both(), windows(-20, 4), nil, awaiting},
		"windows of another length":   {both(), windows(8, 12, func(w *Window) { w.Start = w.Start.Add(time.Second) }), nil, awaiting},
		"no window on the grid yet":   {both(), windows(5, 7), nil, awaiting},
		"one grid window":             {both(), windows(5, 8, canary(200, 0, 0)), nil, passes},
		"grid window only":            {both(), windows(8, 8, canary(200, 0, 0)), nil, passes},
		"two grid windows are summed": {both(), windows(5, 12), nil, passes},
		"overlapping are not summed":  {both(), windows(5, 11), nil, expect{nothing, v1alpha1.ReasonInsufficientRequests, CheckRequests, true, false, "60 of 100 requests"}},
		"too few for a ramp step":     {both(), windows(5, 11, canary(19, 0, 0)), nil, expect{nothing, v1alpha1.ReasonInsufficientRequests, CheckRequests, false, false, "19 of 100 requests"}},
		"enough for a ramp step":      {both(), windows(5, 11, canary(20, 0, 0)), nil, expect{nothing, v1alpha1.ReasonInsufficientRequests, CheckRequests, true, false, ""}},
		"no request at all":           {both(), windows(5, 40, canary(0, 0, 0)), nil, expect{nothing, v1alpha1.ReasonInsufficientRequests, CheckRequests, false, false, "0 of 100"}},
		"requests of an hour ago": {both(), concat(windows(5, 16, canary(1000, 0, 0)), windows(17, 260, canary(1, 0, 0))), nil,
			expect{nothing, v1alpha1.ReasonInsufficientRequests, CheckRequests, true, false, "60 of 100"}},
		"untimed requests do not count": {both(), windows(5, 40, reads(func(r *Reading) {
			r.Buckets = []Bucket{{0.5, 0}, {math.Inf(1), 0}}
		})), nil, expect{nothing, v1alpha1.ReasonInsufficientRequests, CheckRequests, false, false, "0 of 100"}},
		"stable is not looked at": {both(), windows(5, 12, func(w *Window) { w.Stable = Reading{} }), nil, passes},
		"stable is the subject": {both(), windows(5, 12, bad), func(in *Input) { in.Subject = TrackStable },
			passes},
		"stable fails as the subject": {both(), windows(5, 12, func(w *Window) { w.Stable = reading(w.End, 100, 90, 0) }),
			func(in *Input) { in.Subject = TrackStable }, expect{unhealthy, v1alpha1.ReasonBreach, CheckErrorRate, false, false, "90 of 100"}},

		"first breach":           {both(), concat(windows(5, 11), windows(12, 12, bad)), nil, expect{degraded, v1alpha1.ReasonBreach, CheckErrorRate, false, false, "30 of 60 requests failed in one window (50%); the limit is 1%"}},
		"breach before the grid": {both(), windows(5, 5, bad), nil, expect{degraded, v1alpha1.ReasonBreach, CheckErrorRate, false, false, ""}},
		"breach lasts":           {both(), concat(windows(5, 11), windows(12, 14, bad)), nil, expect{unhealthy, v1alpha1.ReasonBreach, CheckErrorRate, false, false, ""}},
		"breach almost lasts":    {both(), concat(windows(5, 11), windows(12, 13, bad)), nil, expect{degraded, v1alpha1.ReasonBreach, CheckErrorRate, false, false, ""}},
		"for 0s":                 {with(both(), func(c *Config) { c.For = 0 }), windows(5, 5, bad), nil, expect{unhealthy, v1alpha1.ReasonBreach, CheckErrorRate, false, false, ""}},
		"a pass resets":          {errorsOnly(), concat(windows(5, 6, bad), windows(7, 7), windows(8, 9, bad)), nil, expect{degraded, v1alpha1.ReasonBreach, CheckErrorRate, false, false, ""}},
		"unknown does not reset": {errorsOnly(), concat(windows(5, 6, bad), windows(7, 7, lost), windows(8, 9, bad)), nil, expect{unhealthy, v1alpha1.ReasonBreach, CheckErrorRate, false, false, ""}},
		"unknown does not count": {errorsOnly(), concat(windows(5, 5, bad), windows(6, 12, lost), windows(13, 13, bad)), nil, expect{degraded, v1alpha1.ReasonBreach, CheckErrorRate, false, false, ""}},
		"a hole does not count":  {errorsOnly(), concat(windows(5, 5, bad), windows(30, 30, bad)), nil, expect{degraded, v1alpha1.ReasonBreach, CheckErrorRate, false, false, ""}},
		"unknown after a breach": {errorsOnly(), concat(windows(5, 12, bad), windows(13, 13, lost)), nil, expect{nothing, v1alpha1.ReasonProviderError, CheckRequests, false, false, "server"}},
		"recovered, above limit": {errorsOnly(), concat(windows(5, 12, bad), windows(13, 20)), nil, expect{degraded, v1alpha1.ReasonAboveLimit, CheckErrorRate, false, false, "not in the newest window"}},
		"recovered, though single requests still fail": {errorsOnly(), concat(windows(5, 20, canary(3000, 300, 0)), windows(24, 40, canary(3000, 3, 0))), nil,
			expect{degraded, v1alpha1.ReasonAboveLimit, CheckErrorRate, false, false, "but not in the newest window"}},
		"recovered an hour ago": {errorsOnly(), concat(windows(5, 12, bad), windows(13, 260)), nil, passes},
		"four errors prove little": {errorsOnly(), windows(5, 8, canary(200, 4, 0)), nil,
			expect{degraded, v1alpha1.ReasonAboveLimit, CheckErrorRate, false, false, "4 of 200 requests failed since the share was confirmed (2%), above the limit of 1%, but not yet beyond doubt"}},
		"four errors on few requests": {errorsOnly(), windows(5, 8, canary(50, 4, 0)), nil, expect{nothing, v1alpha1.ReasonInsufficientRequests, CheckRequests, true, false, "50 of 100"}},
		"at the limit":                {errorsOnly(), windows(5, 8, canary(200, 2, 0)), nil, passes},

		"slow requests":          {both(), concat(windows(5, 11), windows(12, 12, canary(60, 0, 20))), nil, expect{degraded, v1alpha1.ReasonBreach, CheckLatency, false, false, "20 of 60 requests took longer than 500ms in one window (33.3%); the limit is 1%"}},
		"error rate comes first": {both(), windows(5, 12, canary(60, 20, 20)), nil, expect{unhealthy, v1alpha1.ReasonBreach, CheckErrorRate, false, false, ""}},
		"slow, not beyond doubt": {both(), windows(5, 8, canary(200, 0, 4)), nil, expect{degraded, v1alpha1.ReasonAboveLimit, CheckLatency, false, false, "4 of 200 requests were slow"}},
		"own check above max":    {both(), concat(windows(5, 11), windows(12, 12, check("queue", 10.5))), nil, expect{degraded, v1alpha1.ReasonBreach, "queue", false, false, "the value is 10.5; the limit is at most 10"}},
		"own check at max":       {both(), windows(5, 12, check("queue", 10)), nil, passes},
		"own check, lasting":     {both(), windows(5, 12, check("queue", 11)), nil, expect{unhealthy, v1alpha1.ReasonBreach, "queue", false, false, ""}},
		"breach beats unknown":   {both(), windows(5, 12, lost, check("queue", 11)), nil, expect{unhealthy, v1alpha1.ReasonBreach, "queue", false, false, ""}},
		"first unknown is named": {both(), windows(5, 12, lost, check("queue", math.NaN())), nil, expect{nothing, v1alpha1.ReasonProviderError, CheckRequests, false, false, ""}},
		"without a preset":       {checksOnly(), windows(5, 8, func(w *Window) { w.Canary, w.Stable = Reading{}, Reading{} }), nil, passes},
		"no preset, no grid":     {checksOnly(), windows(5, 7), nil, awaiting},
		"no preset, below min":   {checksOnly(), windows(5, 8, check("success", 0.5)), nil, expect{unhealthy, v1alpha1.ReasonBreach, "success", false, false, "the value is 0.5; the limit is at least 0.99"}},
		"one check has not spoken": {checksOnly(), windows(5, 20, func(w *Window) { w.Checks = w.Checks[:1] }), nil,
			expect{nothing, v1alpha1.ReasonNoData, "success", false, false, "not been answered"}},
		"no preset, grid windows unknown": {checksOnly(), concat(windows(5, 8, check("queue", math.NaN())), windows(9, 9)), nil, awaiting},

		"poller stuck":        {both(), windows(5, 12), func(in *Input) { in.Now = in.Now.Add(2 * time.Minute) }, expect{nothing, v1alpha1.ReasonStale, "", false, false, "not been read"}},
		"poller not stuck":    {both(), windows(5, 12), func(in *Input) { in.Now = in.Now.Add(100 * time.Second) }, passes},
		"stuck in a breach":   {both(), windows(5, 12, bad), func(in *Input) { in.Now = in.Now.Add(time.Hour) }, expect{nothing, v1alpha1.ReasonStale, "", false, false, ""}},
		"clock was set back":  {both(), windows(5, 12), func(in *Input) { in.Now = epoch.Add(61 * time.Second) }, expect{state: nothing, reason: v1alpha1.ReasonAwaitingWindow}},
		"clock a bit behind":  {both(), windows(5, 12), func(in *Input) { in.Now = in.Now.Add(-2 * time.Second) }, passes},
		"confirmed in future": {both(), windows(5, 12), func(in *Input) { in.ConfirmedAt = epoch.Add(time.Hour) }, awaiting},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := input(tc.config, tc.ws)
			if tc.change != nil {
				tc.change(&in)
			}
			tc.want.compare(t, Evaluate(in))
		})
	}
}

func with(c Config, change func(*Config)) Config {
	change(&c)
	return c
}

func lost(w *Window) {
	w.Problem = &Problem{Reason: v1alpha1.ReasonProviderError, Message: "the metrics server failed"}
}

// Everything that cannot be read is Unknown: never a pass, never a failure.
func TestEvaluateUnknown(t *testing.T) {
	at := func(d time.Duration) func(*Reading) {
		return func(r *Reading) { r.NewestSample = At(epoch.Add(12*15*time.Second + d)) }
	}
	own := func(f func(*CheckResult)) func(*Window) {
		return func(w *Window) { f(&w.Checks[0]) }
	}
	tests := map[string]struct {
		change  func(*Window)
		reason  string
		check   string
		message string
	}{
		"nothing at all": {func(w *Window) { w.Canary, w.Stable = Reading{}, Reading{} }, v1alpha1.ReasonNoData, CheckRequests, "does not report metrics per service"},
		"only stable":    {reads(func(r *Reading) { *r = Reading{} }), v1alpha1.ReasonNoData, CheckRequests, "though the stable has some"},
		"one sample":     {reads(func(r *Reading) { r.Found = false }), v1alpha1.ReasonNoData, CheckRequests, "no two samples"},
		"no sample time": {reads(func(r *Reading) { r.NewestSample = 0 }), v1alpha1.ReasonNoData, CheckRequests, "no sample"},
		"problem of the reading": {reads(func(r *Reading) {
			r.Problem = &Problem{Reason: v1alpha1.ReasonUnsupportedResult, Message: "gRPC"}
		}), v1alpha1.ReasonUnsupportedResult, CheckRequests, "gRPC"},
		"stale":              {reads(at(-76 * time.Second)), v1alpha1.ReasonStale, CheckRequests, "older than"},
		"from the future":    {reads(at(31 * time.Second)), v1alpha1.ReasonStale, CheckRequests, "clock"},
		"NaN requests":       {reads(func(r *Reading) { r.Requests = math.NaN() }), v1alpha1.ReasonNoData, CheckRequests, "NaN"},
		"infinite requests":  {reads(func(r *Reading) { r.Requests = math.Inf(1) }), v1alpha1.ReasonUnsupportedResult, CheckRequests, "impossible"},
		"negative requests":  {reads(func(r *Reading) { r.Requests = -1 }), v1alpha1.ReasonUnsupportedResult, CheckRequests, "impossible"},
		"NaN errors":         {reads(func(r *Reading) { r.Errors = math.NaN() }), v1alpha1.ReasonNoData, CheckRequests, "NaN"},
		"more errors":        {reads(func(r *Reading) { r.Errors = 61 }), v1alpha1.ReasonUnsupportedResult, CheckRequests, "impossible"},
		"no buckets":         {reads(func(r *Reading) { r.Buckets = nil }), v1alpha1.ReasonNoData, CheckLatency, "no response times"},
		"no total":           {reads(func(r *Reading) { r.Buckets = r.Buckets[:3] }), v1alpha1.ReasonUnsupportedResult, CheckLatency, "total"},
		"NaN bucket":         {reads(func(r *Reading) { r.Buckets[1].Count = math.NaN() }), v1alpha1.ReasonUnsupportedResult, CheckLatency, "no number"},
		"NaN bound":          {reads(func(r *Reading) { r.Buckets[1].UpperBound = math.NaN() }), v1alpha1.ReasonUnsupportedResult, CheckLatency, "no number"},
		"negative bucket":    {reads(func(r *Reading) { r.Buckets[1].Count = -3 }), v1alpha1.ReasonUnsupportedResult, CheckLatency, "no number"},
		"more fast than all": {reads(func(r *Reading) { r.Buckets[1].Count = 90 }), v1alpha1.ReasonUnsupportedResult, CheckLatency, "more fast"},
		"bounds too high":    {reads(func(r *Reading) { r.Buckets = []Bucket{{1.2, 5}, {5, 60}, {math.Inf(1), 60}} }), v1alpha1.ReasonUnsupportedResult, CheckLatency, "500ms is below every bucket bound of the gateway's histogram (1.2s, 5s)"},
		"no bound":           {reads(func(r *Reading) { r.Buckets = []Bucket{{math.Inf(1), 60}} }), v1alpha1.ReasonUnsupportedResult, CheckLatency, "(none)"},
		"check NaN":          {check("queue", math.NaN()), v1alpha1.ReasonNoData, "queue", "NaN"},
		"check below 0":      {check("queue", -0.5), v1alpha1.ReasonUnsupportedResult, "queue", "the value is -0.5, and a check without min cannot be below 0: correct the query, or set min"},
		"check infinite":     {check("queue", math.Inf(-1)), v1alpha1.ReasonUnsupportedResult, "queue", "infinity"},
		"check problem": {own(func(r *CheckResult) {
			r.Problem = &Problem{Reason: v1alpha1.ReasonAmbiguousResult, Message: "2 series"}
		}), v1alpha1.ReasonAmbiguousResult, "queue", "2 series"},
		"check stale":         {own(func(r *CheckResult) { r.SampleAt = r.SampleAt.Add(-76 * time.Second) }), v1alpha1.ReasonStale, "queue", "older"},
		"check of the future": {own(func(r *CheckResult) { r.SampleAt = r.SampleAt.Add(5 * time.Minute) }), v1alpha1.ReasonStale, "queue", "clock"},
		"check without time":  {own(func(r *CheckResult) { r.SampleAt = time.Time{} }), v1alpha1.ReasonNoData, "queue", "no sample"},
		"check missing":       {func(w *Window) { w.Checks = nil }, v1alpha1.ReasonNoData, "queue", "not been answered"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := expect{state: nothing, reason: tc.reason, check: tc.check, message: tc.message}
			ws := append(windows(5, 11), window(12, tc.change))
			want.compare(t, Evaluate(input(both(), ws)))
			// The windows before have not made it lasting, and those after cure it.
			cured := append(ws, window(13), window(14), window(15), window(16))
			expect{healthy, v1alpha1.ReasonChecksPassed, "", true, true, ""}.compare(t, Evaluate(input(both(), cured)))
		})
	}
}

func TestSlowTrafficDoesNotHideABadCanary(t *testing.T) {
	// Two of four requests a minute fail: no window can prove anything.
	few := canary(4, 2, 0)
	in := input(errorsOnly(), windows(5, 20, few))
	expect{unhealthy, v1alpha1.ReasonBreach, CheckErrorRate, false, false, "8 of 16 requests failed since the share was confirmed (50%), and still do"}.compare(t, Evaluate(in))

	in = input(errorsOnly(), append(windows(5, 20, few), window(21, canary(4, 0, 0))))
	expect{nothing, v1alpha1.ReasonInsufficientRequests, CheckRequests, false, false, ""}.compare(t, Evaluate(in))

	slow := canary(4, 0, 2)
	in = input(both(), windows(5, 20, slow))
	expect{unhealthy, v1alpha1.ReasonBreach, CheckLatency, false, false, "8 of 16 requests took longer than 500ms since"}.compare(t, Evaluate(in))
}

func TestLowerBucketBoundIsUsedAndReported(t *testing.T) {
	traefik := reads(func(r *Reading) { r.Buckets = []Bucket{{0.1, 50}, {0.3, 55}, {1.2, 60}, {5, 60}, {math.Inf(1), 60}} })
	v := Evaluate(input(both(), windows(5, 6, traefik)))
	expect{degraded, v1alpha1.ReasonBreach, CheckLatency, false, false, "5 of 60 requests took longer than 300ms"}.compare(t, v)
	want := []string{"health.latency.max of 500ms is no bucket bound of the gateway's histogram; the next lower one, 300ms, is used instead"}
	if diff := cmp.Diff(want, v.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if v = Evaluate(input(both(), windows(5, 12))); v.Notes != nil {
		t.Errorf("notes %q without a reason", v.Notes)
	}
}

func TestEvaluateNumbers(t *testing.T) {
	v := Evaluate(input(both(), windows(5, 19, canary(40.5, 0, 0))))
	// The grid windows end at ticks 8, 12 and 16.
	if v.Requests != 121 || !v.From.Equal(epoch.Add(time.Minute)) || !v.To.Equal(epoch.Add(4*time.Minute)) {
		t.Errorf("%d requests from %v to %v", v.Requests, v.From, v.To)
	}
	v = Evaluate(input(both(), windows(5, 9, canary(30, 0, 0))))
	if v.RampWait != "" || v.StageWait != "about 70 more requests (30 of 100)" {
		t.Errorf("waits %q, %q", v.RampWait, v.StageWait)
	}
	v = Evaluate(input(both(), windows(5, 9, canary(13, 0, 0))))
	if v.RampWait != "about 7 more requests (13 of 20)" {
		t.Errorf("ramp wait %q", v.RampWait)
	}
	v = Evaluate(input(errorsOnly(), windows(5, 8, canary(200, 4, 0))))
	if v.StageWait != "about 200 more good requests" {
		t.Errorf("stage wait %q", v.StageWait)
	}
	v = Evaluate(input(both(), concat(windows(5, 9), windows(10, 12, canary(60, 30, 0)))))
	if want := epoch.Add(150 * time.Second); !v.BreachSince.Equal(want) {
		t.Errorf("breach since %v, want %v", v.BreachSince, want)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("é", 4000)
	v := Evaluate(input(both(), windows(5, 8, func(w *Window) { w.Problem = &Problem{Reason: "X", Message: long} })))
	for _, s := range []string{v.Message, v.RampWait, v.StageWait} {
		if len(s) > 500 || !strings.HasSuffix(s, "é…") {
			t.Errorf("%d bytes, ending in %q", len(s), s[max(0, len(s)-8):])
		}
	}
}

func TestCompactKeepsTheVerdict(t *testing.T) {
	for _, limit := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond, 500 * time.Millisecond, time.Minute} {
		c := both()
		c.Latency.Max = limit
		for _, slow := range []float64{0, 1, 30} {
			ws := windows(5, 12, canary(60, 0, slow))
			want := Evaluate(input(c, ws))
			for i := range ws {
				ws[i] = c.Compact(ws[i])
			}
			if diff := cmp.Diff(want, Evaluate(input(c, ws)), byValue); diff != "" {
				t.Errorf("max %s, slow %v (-full +compact):\n%s", limit, slow, diff)
			}
		}
	}
	if got := len(both().Compact(window(8)).Canary.Buckets); got != 2 {
		t.Errorf("%d buckets are kept, want 2", got)
	}
}

// TestCompactKeepsFewBuckets, also where none of many can decide, and the same verdict.
func TestCompactKeepsFewBuckets(t *testing.T) {
	many := func(from float64, count int) (all []Bucket) {
		for i := range count {
			all = append(all, Bucket{UpperBound: from + float64(i), Count: 60})
		}
		return all
	}
	total := Bucket{UpperBound: math.Inf(1), Count: 60}
	for name, buckets := range map[string][]Bucket{
		"bounds above":  append(many(10, 100), total),
		"few above":     append(many(10, 12), total),
		"more above":    append(many(10, 13), total),
		"no total":      many(0.1, 100),
		"odd bound":     append(many(0.1, 100), Bucket{UpperBound: math.NaN()}, total),
		"odd count":     append(many(0.1, 100), Bucket{UpperBound: 500, Count: -1}, total),
		"none too fast": append(many(0.1, 100), Bucket{UpperBound: math.Inf(1), Count: 1}),
	} {
		c := both()
		ws := windows(5, 8, canary(60, 0, 0), func(w *Window) { w.Canary.Buckets = buckets })
		want := Evaluate(input(c, ws))
		for i := range ws {
			ws[i] = c.Compact(ws[i])
			if n := len(ws[i].Canary.Buckets); n > maxNamed+2 {
				t.Errorf("%s: %d buckets are kept", name, n)
			}
		}
		if diff := cmp.Diff(want, Evaluate(input(c, ws)), byValue); diff != "" {
			t.Errorf("%s (-full +compact):\n%s", name, diff)
		}
	}
	if n := len(errorsOnly().Compact(window(8)).Canary.Buckets); n != 0 {
		t.Errorf("%d buckets are kept that nobody looks at", n)
	}
}

func TestOnGrid(t *testing.T) {
	c := both()
	for end, want := range map[time.Time]bool{
		epoch: true, epoch.Add(time.Minute): true, epoch.Add(15 * time.Second): false,
		epoch.Add(time.Nanosecond): false, time.Unix(-60, 0): true,
	} {
		if got := c.OnGrid(end); got != want {
			t.Errorf("OnGrid(%v) = %v", end, got)
		}
	}
	if (Config{}).OnGrid(epoch) {
		t.Error("a config without a window has a grid")
	}
}

func ExampleEvaluate() {
	v := Evaluate(input(both(), windows(5, 8)))
	fmt.Println(v.State, v.Reason, v.Message)
	fmt.Println("to end the stage:", v.StageWait)
	// Output:
	// Unknown InsufficientRequests 60 of 100 requests
	// to end the stage: about 40 more requests (60 of 100)
}

func BenchmarkEvaluate(b *testing.B) {
	for name, in := range map[string]Input{
		"healthy": input(both(), windows(5, 110)),
		"breach":  input(both(), windows(5, 110, canary(60, 30, 30))),
		"slow":    input(both(), windows(5, 110, canary(4, 1, 1))),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Evaluate(in)
			}
		})
	}
}
