package simulate_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
	"github.com/weightedrollout/weightedrollout/internal/weights/pick"
)

type simulateStep[T ~string] = simulate.Step[T]

// run simulates, and fails on an error.
func run(t testing.TB, spec *v1alpha1.WeightedRolloutSpec, s *simulate.Scenario, o simulate.Options) *simulate.Result {
	t.Helper()
	r, err := simulate.Run(spec, s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func at(d time.Duration) simulate.Elapsed { return simulate.Elapsed(d) }

func TestQuietWorldPromotes(t *testing.T) {
	r := run(t, quickSpec(), nil, simulate.Options{Seed: 3})
	if r.Outcome.Phase != v1alpha1.PhasePromoted || r.Outcome.Ending != simulate.EndSettled || r.Outcome.Share != 100 {
		t.Fatalf("it ended as %+v", r.Outcome)
	}
	var shares []float64
	for _, a := range r.Adjustments {
		shares = append(shares, a.To)
	}
	if diff := cmp.Diff([]float64{10, 20, 40, 50, 70, 90, 100}, shares); diff != "" {
		t.Errorf("the shares are others (-want +got):\n%s", diff)
	}
	last := r.Samples[len(r.Samples)-1]
	if last.Verdict.State != v1alpha1.VerdictHealthy || last.Verdict.Score < 0.98 {
		t.Errorf("the last verdict is %+v", last.Verdict)
	}
	if rate := r.Outcome.Total().Requests / r.Outcome.Duration.Seconds(); math.Abs(rate-100) > 0.01 {
		t.Errorf("there were %g requests per second, not 100", rate)
	}
}

// TestSameInputsSameResult shows that a result depends on its inputs alone, byte for
// byte, and that the seed matters.
func TestSameInputsSameResult(t *testing.T) {
	for _, picker := range pick.Names() {
		written := func(seed uint64) string {
			text, err := json.Marshal(run(t, quickSpec(), nil, simulate.Options{Seed: seed, Picker: picker}))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		first := written(5)
		if diff := cmp.Diff(first, written(5)); diff != "" {
			t.Errorf("%s: the same seed gives another result (-first +second):\n%s", picker, diff)
		}
		if first == written(6) {
			t.Errorf("%s: another seed gives the same result", picker)
		}
	}
}

func TestRunLeavesItsInputsAlone(t *testing.T) {
	spec, scenario := quickSpec(), &simulate.Scenario{
		Duration: "10m", Events: []simulate.Happening{{At: "1m", Revision: "v3"}, {At: "2m", Command: "abort"}},
	}
	run(t, spec, scenario, simulate.Options{})
	if diff := cmp.Diff(quickSpec(), spec); diff != "" {
		t.Errorf("the spec was changed:\n%s", diff)
	}
	if len(scenario.Events) != 2 || scenario.Duration != "10m" {
		t.Errorf("the scenario was changed: %+v", scenario)
	}
}

// TestProgress shows that a simulation tells how far it is, up to its end, and that
// this changes nothing.
func TestProgress(t *testing.T) {
	var told []simulate.Elapsed
	r := run(t, quickSpec(), nil, simulate.Options{Seed: 3, Progress: func(e simulate.Elapsed) { told = append(told, e) }})
	if len(told) < len(r.Samples) || !slices.IsSorted(told) || told[len(told)-1] != r.Outcome.Duration {
		t.Errorf("%d times it told of %v", len(told), told)
	}
	if diff := cmp.Diff(run(t, quickSpec(), nil, simulate.Options{Seed: 3}), r); diff != "" {
		t.Errorf("-without +with:\n%s", diff)
	}
}

// TestWarmupSparesRequests shows on the story of a cold start what the warm-up is for:
// while the pods are cold, fewer requests meet them.
func TestWarmupSparesRequests(t *testing.T) {
	with := play(t, "cold-start", simulate.Options{Exact: true})
	spec := rolloutIn(t, "cold-start")
	spec.Ramp.Warmup.InitialPercent = "100"
	scenario, err := simulate.ParseScenario(read(t, "testdata/cold-start.scenario.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	without := run(t, spec, scenario, simulate.Options{Exact: true})
	// From 0:01 to 0:09 the pods are cold.
	failed := func(r *simulate.Result) (n float64) {
		for _, s := range r.Samples {
			if s.At <= at(9*time.Minute) {
				n += s.Canary.Failed
			}
		}
		return n
	}
	if a, b := failed(with), failed(without); a == 0 || b < 3*a {
		t.Errorf("%g requests fail with the warm-up, and %g without: want three times as many", a, b)
	}
	var cold, warm float64
	for _, s := range with.Samples {
		switch s.At {
		case at(8 * time.Minute):
			cold = s.Canary.Latency
		case at(10 * time.Minute):
			warm = s.Canary.Latency
		}
	}
	if cold < 0.4 || cold > 0.5 || warm > 0.3 {
		t.Errorf("the response times are %gs while cold and %gs when warm", cold, warm)
	}
}

// TestReachedAt shows that a rollback has its own time, and not that at which the
// simulation stops.
func TestReachedAt(t *testing.T) {
	r := run(t, quickSpec(), &simulate.Scenario{
		Canary: simulate.Track{ErrorPercent: []simulateStep[v1alpha1.Percent]{{At: "5m", Value: "30", For: "1h"}}},
	}, simulate.Options{})
	var rolledBack simulate.Elapsed
	for _, e := range r.Events {
		if e.Reason == v1alpha1.ReasonRolledBack {
			rolledBack = e.At
		}
	}
	o := r.Outcome
	if o.Phase != v1alpha1.PhaseRolledBack || rolledBack == 0 || o.ReachedAt != rolledBack || o.Duration < at(65*time.Minute) {
		t.Errorf("%s at %s, the event is at %s, and it stopped at %s", o.Phase, o.ReachedAt, rolledBack, o.Duration)
	}
}

func TestRunErrors(t *testing.T) {
	bad := func(change func(*v1alpha1.WeightedRolloutSpec)) *v1alpha1.WeightedRolloutSpec {
		spec := quickSpec()
		change(spec)
		return spec
	}
	for _, tc := range []struct {
		name     string
		spec     *v1alpha1.WeightedRolloutSpec
		scenario *simulate.Scenario
		options  simulate.Options
		want     string
	}{
		{name: "no spec", want: "there is no spec"},
		{name: "no track", spec: bad(func(s *v1alpha1.WeightedRolloutSpec) { s.Canary = nil }), want: "spec.stable and spec.canary are required"},
		{name: "no route", spec: bad(func(s *v1alpha1.WeightedRolloutSpec) { s.Routes = nil }), want: "spec.routes is required"},
		{name: "no revision", spec: bad(func(s *v1alpha1.WeightedRolloutSpec) { s.Revision = "" }), want: "spec.revision is required"},
		{name: "no health", spec: bad(func(s *v1alpha1.WeightedRolloutSpec) { s.Health = nil }), want: "spec.health is missing"},
		{name: "bad health", spec: bad(func(s *v1alpha1.WeightedRolloutSpec) { s.Health.Window = "25s" }), want: "spec.health.window must be a whole multiple"},
		{name: "bad interval", spec: bad(func(s *v1alpha1.WeightedRolloutSpec) { s.Ramp.Interval = "soon" }), want: "spec.ramp.interval:"},
		{name: "bad plan", spec: bad(func(s *v1alpha1.WeightedRolloutSpec) { s.Plan.Stages[1].Weight = "5" }), want: "spec.plan.stages[1].weight: weights must"},
		{name: "one track", spec: bad(func(s *v1alpha1.WeightedRolloutSpec) { s.Canary.Track = s.Stable.Track }), want: "traffic cannot be divided between a backend and itself"},
		{name: "bad scenario", spec: quickSpec(), scenario: &simulate.Scenario{Duration: "later"}, want: `scenario: duration: "later" is no duration`},
		{
			name: "unknown check", spec: quickSpec(),
			scenario: &simulate.Scenario{Checks: map[string][]simulate.Step[v1alpha1.Decimal]{"depth": steady[v1alpha1.Decimal]("1")}},
			want:     "checks.depth: spec.health.checks has no check of that name",
		},
		{name: "unknown picker", spec: quickSpec(), options: simulate.Options{Picker: "best"}, want: `there is no picker "best": use one of round-robin`},
		{name: "too much traffic to pick", spec: quickSpec(), options: simulate.Options{RPS: 20_000}, want: "20000 requests per second are too many to pick"},
		{name: "too much traffic", spec: quickSpec(), options: simulate.Options{RPS: 2e6, Exact: true}, want: "give a number from 0 to 1000000"},
		{name: "no number", spec: quickSpec(), options: simulate.Options{RPS: math.NaN()}, want: "give a number from 0 to 1000000"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := simulate.Run(tc.spec, tc.scenario, tc.options)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v; it should say %q", err, tc.want)
			}
		})
	}
}

func TestExactHasNoNoise(t *testing.T) {
	r := run(t, quickSpec(), nil, simulate.Options{RPS: 200, Exact: true})
	for _, s := range r.Samples {
		for _, track := range []simulate.TrackSample{s.Stable, s.Canary} {
			if track.Requests > 0 && math.Abs(track.FailedPercent-0.1) > 1e-9 {
				t.Errorf("%s: %g percent failed, not 0.1", s.At, track.FailedPercent)
			}
		}
		if total := s.Stable.Requests + s.Canary.Requests; math.Abs(total-2000) > 1e-6 {
			t.Errorf("%s: %g requests in ten seconds, not 2000", s.At, total)
		}
	}
	if r.Picker != "" || r.Pickers != nil {
		t.Errorf("an exact simulation names a picker: %q, %v", r.Picker, r.Pickers)
	}
	drawn := run(t, quickSpec(), nil, simulate.Options{RPS: 200, Seed: 1})
	if drawn.Outcome.Duration != r.Outcome.Duration {
		t.Errorf("with noise it takes %s, without %s", drawn.Outcome.Duration, r.Outcome.Duration)
	}
}

// TestTrafficFollowsTheGateway shows that a share counts from its confirmation on, and
// that the picker decides who gets a request: round robin ignores weights.
func TestTrafficFollowsTheGateway(t *testing.T) {
	scenario := &simulate.Scenario{Duration: "2m", Gateway: simulate.Gateway{Delay: "10s"}}
	for picker, want := range map[string]float64{"smooth": 10, "round-robin": 50} {
		r := run(t, quickSpec(), scenario, simulate.Options{Picker: picker, RPS: 200})
		raised := r.Adjustments[0]
		if raised.At != at(30*time.Second) || *raised.ConfirmedAt != at(40*time.Second) || raised.To != 10 {
			t.Fatalf("%s: the first adjustment is %+v", picker, raised)
		}
		for _, s := range r.Samples {
			share := 0.0
			if s.At > *raised.ConfirmedAt {
				share = want
			}
			if math.Abs(s.Share-share) > 1e-9 {
				t.Errorf("%s: at %s the canary's share is %g, not %g", picker, s.At, s.Share, share)
			}
		}
	}
}

// TestRequestsToNobodyFail shows that what the gateway sends to a track without a
// ready endpoint fails, until it has taken the share of 0.
func TestRequestsToNobodyFail(t *testing.T) {
	r := run(t, quickSpec(), &simulate.Scenario{
		Duration: "2m", Gateway: simulate.Gateway{Delay: "3s"},
		Canary: simulate.Track{ErrorPercent: steady[v1alpha1.Percent]("0")},
		Events: []simulate.Happening{{At: "1m30s", Canary: simulate.Unready}},
	}, simulate.Options{RPS: 1000})
	// Three seconds at 10 percent of 1000 requests per second.
	if got := r.Outcome.Canary.Failed; got != 300 {
		t.Errorf("%g requests met nobody, not 300", got)
	}
	last := r.Adjustments[len(r.Adjustments)-1]
	if last.To != 0 || last.At != at(90*time.Second) || last.Cause != v1alpha1.ReasonCanaryNotReady {
		t.Errorf("the last adjustment is %+v", last)
	}
}

// TestColdPods shows that a canary with its first traffic is slower and fails more for
// as long as the scenario says.
func TestColdPods(t *testing.T) {
	r := run(t, quickSpec(), &simulate.Scenario{
		Duration: "2m",
		Canary: simulate.Track{
			ErrorPercent: steady[v1alpha1.Percent]("0.5"),
			Cold:         &simulate.Cold{For: "18s", LatencyFactor: "2", ErrorPercent: "0.25"},
		},
	}, simulate.Options{RPS: 1000, Exact: true})
	// The share of 10 percent is served from 0:32 on, so the pods are warm from 0:50 on.
	for _, s := range r.Samples {
		if s.Canary.Requests == 0 {
			continue
		}
		failed, slowest := 0.75, 0.2
		if s.At > at(50*time.Second) {
			failed, slowest = 0.5, 0.15
		}
		if math.Abs(s.Canary.FailedPercent-failed) > 1e-9 {
			t.Errorf("%s: %g percent failed, not %g", s.At, s.Canary.FailedPercent, failed)
		}
		if cold := s.Canary.Latency > 0.17; cold != (slowest == 0.2) {
			t.Errorf("%s: the response time is %g", s.At, s.Canary.Latency)
		}
	}
}

func TestApprovals(t *testing.T) {
	spec := quickSpec()
	spec.Plan.Stages[0].Approval = v1alpha1.ApprovalRequired
	waits := run(t, spec, nil, simulate.Options{})
	if waits.Outcome.Phase != v1alpha1.PhaseAwaitingApproval || waits.Outcome.Ending != simulate.EndSettled {
		t.Errorf("without an approval it ended as %+v", waits.Outcome)
	}
	given := run(t, spec, nil, simulate.Options{Approve: true})
	if given.Outcome.Phase != v1alpha1.PhasePromoted {
		t.Errorf("with its approval it ended as %+v", given.Outcome)
	}
	said := run(t, spec, &simulate.Scenario{Events: []simulate.Happening{{At: "20m", Command: "approve"}}}, simulate.Options{})
	var after []simulate.Cause
	for _, a := range said.Adjustments {
		if a.At == at(20*time.Minute) {
			after = append(after, a.Cause)
		}
	}
	if diff := cmp.Diff([]simulate.Cause{simulate.CauseApproval}, after); diff != "" {
		t.Errorf("the approval raised the share by (-want +got):\n%s", diff)
	}
	if said.Outcome.Phase != v1alpha1.PhasePromoted {
		t.Errorf("with the command approve it ended as %+v", said.Outcome)
	}
}

func TestObserveShowsWhatEnforceWouldDo(t *testing.T) {
	spec := quickSpec()
	spec.Mode = v1alpha1.ModeObserve
	r := run(t, spec, nil, simulate.Options{})
	if r.Mode != v1alpha1.ModeObserve {
		t.Errorf("the result says mode %q", r.Mode)
	}
	if r.Outcome.Phase != v1alpha1.PhasePromoted || !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "Observe") }) {
		t.Errorf("it ended as %+v, with the notes %q", r.Outcome, r.Notes)
	}
}

// TestChecks shows that the scenario's values decide the spec's own checks, with a
// preset and without, and that a check without values passes and is noted.
func TestChecks(t *testing.T) {
	limit := v1alpha1.Decimal("100")
	for _, preset := range []v1alpha1.Preset{v1alpha1.PresetTraefik, ""} {
		spec := quickSpec()
		spec.Health.Preset = preset
		if preset == "" {
			spec.Health.ErrorRate, spec.Health.Latency = nil, nil
		}
		spec.Health.Checks = []v1alpha1.Check{{Name: "depth", Query: "depth", Max: &limit}}
		passes := run(t, spec, nil, simulate.Options{})
		if passes.Outcome.Phase != v1alpha1.PhasePromoted || len(passes.Notes) != 1 || !strings.Contains(passes.Notes[0], "depth") {
			t.Errorf("preset %q: without values it ended as %+v, with the notes %q", preset, passes.Outcome, passes.Notes)
		}
		values := map[string][]simulate.Step[v1alpha1.Decimal]{"depth": {{At: "0s", Value: "10"}, {At: "5m", Value: "101"}}}
		fails := run(t, spec, &simulate.Scenario{Checks: values}, simulate.Options{})
		if fails.Outcome.Phase != v1alpha1.PhaseRolledBack || !strings.Contains(fails.Outcome.Message, "depth: the value is 101") {
			t.Errorf("preset %q: with bad values it ended as %+v", preset, fails.Outcome)
		}
	}
}

// TestRoutesShareTheTraffic shows that several routes are written and confirmed alike.
func TestRoutesShareTheTraffic(t *testing.T) {
	spec := quickSpec()
	spec.Routes = append(spec.Routes, v1alpha1.RouteReference{Kind: v1alpha1.HTTPRouteKind, Name: "api", RuleNames: []string{"main", "admin"}})
	r := run(t, spec, &simulate.Scenario{Duration: "2m"}, simulate.Options{RPS: 101})
	want := []simulate.RouteWeights{{Route: "web", Stable: 90, Canary: 10}, {Route: "api", Stable: 90, Canary: 10}}
	if diff := cmp.Diff(want, r.Adjustments[0].Weights); diff != "" {
		t.Errorf("the routes carry (-want +got):\n%s", diff)
	}
	if got := r.Outcome.Total().Requests; got != 2*60*101 {
		t.Errorf("there were %g requests", got)
	}
	if r.Outcome.RouteWrites != 2*len(r.Adjustments) {
		t.Errorf("%d adjustments took %d writes to two routes", len(r.Adjustments), r.Outcome.RouteWrites)
	}
}

// TestMissedMetricsAreReadLater shows that an outage hides nothing: what happened in
// it is read once it is over, whereas an empty answer stays empty.
func TestMissedMetricsAreReadLater(t *testing.T) {
	requestsSeen := func(mood simulate.Metrics) string {
		spec := quickSpec()
		spec.Plan.Stages[0].Soak = "10m"
		r := run(t, spec, &simulate.Scenario{
			Duration: "6m", Events: []simulate.Happening{{At: "2m", Metrics: mood, For: "2m"}},
		}, simulate.Options{Exact: true})
		for _, e := range r.Events {
			if e.Reason == v1alpha1.ReasonVerdictChanged && e.At >= at(4*time.Minute) {
				return e.Message
			}
		}
		t.Fatalf("%s: no verdict after it: %v", mood, r.Events)
		return ""
	}
	// From 1:00 to 4:00 at ten requests per second. Of the six windows of that time, the
	// four that end from 2:00 to 3:30 have no answer.
	if got := requestsSeen(simulate.MetricsOutage); !strings.Contains(got, "on 1800 requests") {
		t.Errorf("after an outage: %s", got)
	}
	if got := requestsSeen(simulate.MetricsEmpty); !strings.Contains(got, "on 600 requests") {
		t.Errorf("after empty answers: %s", got)
	}
}

// TestPickerComparison shows how the pickers differ on the same requests.
func TestPickerComparison(t *testing.T) {
	c := run(t, quickSpec(), nil, simulate.Options{RPS: 50, Seed: 2}).Pickers
	row := func(picker string, share float64) simulate.PickerRow {
		t.Helper()
		i := slices.IndexFunc(c.Rows, func(r simulate.PickerRow) bool { return r.Picker == picker && r.Share == share })
		if i < 0 {
			t.Fatalf("there is no row for %s at %g percent: %+v", picker, share, c.Rows)
		}
		return c.Rows[i]
	}
	if len(c.Rows) != 2*len(pick.Names()) || !strings.Contains(c.Sample, "3000 requests") {
		t.Fatalf("%d rows on %s", len(c.Rows), c.Sample)
	}
	want := simulate.PickerRow{Picker: "smooth", Share: 10, Requests: 3000, Canary: 300, LongestRun: 1, LargestBurst: 5}
	if diff := cmp.Diff(want, row("smooth", 10)); diff != "" {
		t.Errorf("smooth at 10 percent (-want +got):\n%s", diff)
	}
	want = simulate.PickerRow{Picker: "naive", Share: 50, Requests: 3000, Canary: 1500, LongestRun: 50, LargestBurst: 50}
	if diff := cmp.Diff(want, row("naive", 50)); diff != "" {
		t.Errorf("naive at 50 percent (-want +got):\n%s", diff)
	}
	if got := row("round-robin", 10); got.Deviation != 40 {
		t.Errorf("round robin at 10 percent is off by %g points", got.Deviation)
	}
	if got := row("random", 50); got.LongestRun < 5 || got.Deviation > 5 {
		t.Errorf("random at 50 percent: %+v", got)
	}
}

func TestDurationStops(t *testing.T) {
	r := run(t, quickSpec(), &simulate.Scenario{Duration: "1m7s"}, simulate.Options{})
	if r.Outcome.Ending != simulate.EndDuration || r.Outcome.Duration != at(67*time.Second) {
		t.Errorf("it ended as %+v", r.Outcome)
	}
	if last := r.Samples[len(r.Samples)-1]; last.At != r.Outcome.Duration {
		t.Errorf("the last sample is at %s", last.At)
	}
}

// TestNothingToSee shows that a rollout without a request waits until the limit.
func TestNothingToSee(t *testing.T) {
	spec := quickSpec()
	spec.Health.Window, spec.Health.Interval = "1h", "10m"
	r := run(t, spec, &simulate.Scenario{Traffic: []simulate.RateStep{{At: "0s", RPS: "0"}}}, simulate.Options{})
	if r.Outcome.Ending != simulate.EndLimit || r.Outcome.Duration != at(72*time.Hour) || r.Outcome.Share != 10 {
		t.Errorf("it ended as %+v", r.Outcome)
	}
	if r.Outcome.Total().Requests != 0 || r.Pickers != nil {
		t.Errorf("there was traffic: %+v, %+v", r.Outcome.Total(), r.Pickers)
	}
}

func TestElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0:00:00", time.Hour + 2*time.Minute + 3*time.Second: "1:02:03", 26 * time.Hour: "26:00:00",
		1500 * time.Millisecond: "0:00:01.500",
	} {
		if got := at(d).String(); got != want {
			t.Errorf("%s is written %s", d, got)
		}
	}
	text, err := json.Marshal(at(90500 * time.Millisecond))
	if err != nil || string(text) != "90.5" {
		t.Errorf("in JSON it is %s (%v)", text, err)
	}
}

// TestResultJSON shows that every name in a result's JSON begins with a small letter.
func TestResultJSON(t *testing.T) {
	text, err := json.Marshal(run(t, quickSpec(), nil, simulate.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	names := 0
	var walk func(any)
	walk = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			for name, child := range node {
				names++
				if name[0] < 'a' || name[0] > 'z' {
					t.Errorf("a field is named %q", name)
				}
				walk(child)
			}
		case []any:
			for _, child := range node {
				walk(child)
			}
		}
	}
	walk(tree)
	if names < 50 {
		t.Errorf("only %d names were seen", names)
	}
}
