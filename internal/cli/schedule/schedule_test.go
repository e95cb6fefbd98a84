package schedule_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/cli/schedule"
	"github.com/weightedrollout/weightedrollout/internal/manifest"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// decode returns a rollout with the API's defaults, whose spec has the given fields
// in place of its own.
func decode(t *testing.T, fields string) *v1alpha1.WeightedRollout {
	t.Helper()
	spec := []string{fields}
	for _, field := range []string{
		`revision: "2"`, `routes: [{name: web}]`, `stable: {service: web-stable, port: 80}`, `canary: {service: web-canary, port: 80}`,
		`health: {preset: Traefik, errorRate: {maxPercent: 1}}`,
	} {
		if name, _, _ := strings.Cut(field, ":"); !strings.Contains(fields, name+":") {
			spec = append(spec, field)
		}
	}
	text := "{apiVersion: weightedrollout.dev/v1alpha1, kind: WeightedRollout, metadata: {name: web}, spec: {" + strings.TrimPrefix(strings.Join(spec, ", "), ", ") + "}}"
	wr, err := manifest.Decode(strings.NewReader(text), "")
	if err != nil {
		t.Fatalf("the test's spec: %v", err)
	}
	return wr
}

func scheduled(t *testing.T, fields string, o schedule.Options) *schedule.Schedule {
	t.Helper()
	if o.RPS > 0 && o.ErrorPercent == 0 {
		o.ErrorPercent = 0.1
	}
	s, err := schedule.For(decode(t, fields), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// path writes the shares of a schedule by stage: "1 | 2 3 4 5 | …".
func path(s *schedule.Schedule) string {
	var b strings.Builder
	stage := ""
	for _, a := range s.Adjustments {
		if stage != "" && a.Stage != stage {
			b.WriteString("| ")
		}
		stage = a.Stage
		fmt.Fprintf(&b, "%g ", a.To)
	}
	return strings.TrimSpace(b.String())
}

func TestFor(t *testing.T) {
	const minute = simulate.Elapsed(time.Minute)
	for _, test := range []struct {
		name, fields string
		rps          float64
		path         string
		duration     simulate.Elapsed
	}{
		{"the default plan", ``, 0, "1 | 2 3 4 5 | 6 7 8 9 10 | 12 14 16 19 20 | 24 28 33 39 46 50 | 60 70 80 90 100", 193 * minute},
		// 1m to start with, then the soak, then steps of 2m: 15s of delay, the rest of that
		// minute, and a window of 1m.
		{"one stage", `plan: {stages: [{weight: 90, soak: 5m}]}, ramp: {warmup: {initialPercent: 100}, maxIncrease: 100}`, 0, "90 | 100", (1 + 5 + 2) * minute},
		{"100 alone", `plan: {stages: [{weight: 100, soak: 5m}]}, ramp: {warmup: {initialPercent: 100}, maxIncrease: 100}`, 0, "100", 6 * minute},
		{"nothing measured", `plan: {stages: [{weight: 90, soak: 5m}]}, ramp: {warmup: {initialPercent: 100}, maxIncrease: 100}, health: {disabled: true}`, 0, "90 | 100", 6 * minute},
		{"fractions", `plan: {stages: [{weight: "0.5", soak: 5m}, {weight: "1.25", soak: 5m}]}, ramp: {maxIncrease: 50}`, 0,
			"0.5 | 1.25 | 2.25 3.25 4.25 5.25 6.3 7.56 9.07 10.88 13.05 15.66 18.79 22.54 27.04 32.44 38.92 46.7 56.04 67.24 80.68 96.81 100", (1 + 5 + 5 + 2*20 + 2) * minute},
		// 30 % of 20 first, held for 10m, then 4 points (20 % of 20) at a time.
		{"warm-up", `plan: {stages: [{weight: 20, soak: 5m}]}, ramp: {maxIncrease: 80, maxChangePercent: 100}`, 0, "6 10 14 18 20 | 40 80 100", (1 + 10 + 2 + 2 + 2 + 5 + 2 + 2 + 2) * minute},
		// A canary with 1 % of 10 requests per second has 6 in a window, so 100 take 17.
		{"little traffic", `plan: {stages: [{weight: 1, soak: 5m}]}, ramp: {maxIncrease: 100, maxChangePercent: 100, minIncrease: 99}`, 10, "1 | 100", (1 + 1 + 17 + 2) * minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := scheduled(t, test.fields, schedule.Options{RPS: test.rps})
			if got := path(s); got != test.path {
				t.Errorf("shares %s, want %s", got, test.path)
			}
			if s.Duration != test.duration {
				t.Errorf("it takes %s, want %s", s.Duration, test.duration)
			}
			if s.Stuck != "" {
				t.Errorf("stuck: %s", s.Stuck)
			}
		})
	}
}

// TestForStages shows what is said of each stage.
func TestForStages(t *testing.T) {
	s := scheduled(t, `plan: {stages: [{weight: 10, soak: 5m}, {weight: 12, soak: 10m, approval: Required}]}, ramp: {warmup: {initialPercent: 100}}`, schedule.Options{RPS: 10})
	at := func(minutes int) *simulate.Elapsed {
		e := simulate.Elapsed(time.Duration(minutes) * time.Minute)
		return &e
	}
	if len(s.Stages) != 3 || s.Approvals != 1 {
		t.Fatalf("%d stages and %d approvals, want 3 and 1", len(s.Stages), s.Approvals)
	}
	got := s.Stages[1]
	got.Traffic = nil
	want := schedule.Stage{Position: "2/3", Weight: 12, Soak: *at(10), Approval: true, Steps: 1, BeginsAt: at(6), ReachedAt: at(6), EndsAt: at(16)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stage 2 (-want +got):\n%s", diff)
	}
	traffic := *s.Stages[0].Traffic
	if math.Abs(traffic.CanaryRequests-300) > 1e-6 || math.Abs(traffic.StableRequests-2700) > 1e-6 {
		t.Errorf("stage 1 has %g and %g requests, want 300 and 2700", traffic.CanaryRequests, traffic.StableRequests)
	}
	if after := traffic.MinRequestsAfter; after == nil || *after != simulate.Elapsed(100*time.Second) {
		t.Errorf("100 requests at 1 per second after %v, want 1m40s", after)
	}
	last := s.Adjustments[2]
	wantWaits := []schedule.Wait{
		{For: simulate.CauseSoak, Lasts: *at(10)}, {For: simulate.CauseEvidence, Lasts: *at(3)}, {For: simulate.CauseInterval, Lasts: *at(1)}, {For: simulate.CauseApproval},
	}
	if diff := cmp.Diff(wantWaits, last.Waits); diff != "" {
		t.Errorf("the step to %g waits for (-want +got):\n%s", last.To, diff)
	}
	if total := s.Stages[2].Traffic; total.SmallestDifference != nil {
		t.Errorf("with nothing left to stable, the difference is %g, want none", *total.SmallestDifference)
	}
}

// TestForgotten shows that a stage proves no more than the last hour of it does, and
// nothing where nothing is measured.
func TestForgotten(t *testing.T) {
	fields := func(soak string) string {
		return `plan: {stages: [{weight: 50, soak: ` + soak + `}]}, ramp: {warmup: {initialPercent: 100}, maxIncrease: 50}`
	}
	hour := scheduled(t, fields("1h"), schedule.Options{RPS: 10}).Stages[0]
	day := scheduled(t, fields("20h"), schedule.Options{RPS: 10}).Stages[0]
	if diff := cmp.Diff(hour.Traffic, day.Traffic); diff != "" {
		t.Errorf("a stage of a day proves another than one of an hour (-hour +day):\n%s", diff)
	}
	if got := day.Traffic.CanaryRequests + day.Traffic.StableRequests; math.Abs(got-36000) > 1e-6 {
		t.Errorf("%g requests in an hour at 10 per second, want 36000", got)
	}
	if half := scheduled(t, fields("30m"), schedule.Options{RPS: 10}).Stages[0]; !(*half.Traffic.SmallestDifference > *hour.Traffic.SmallestDifference) {
		t.Errorf("half an hour tells %g points, an hour %g", *half.Traffic.SmallestDifference, *hour.Traffic.SmallestDifference)
	}
	unmeasured := scheduled(t, `health: {disabled: true}`, schedule.Options{RPS: 10})
	if !unmeasured.Unmeasured {
		t.Error("the schedule does not say that nothing is measured")
	}
	for _, st := range unmeasured.Stages {
		if st.Traffic != nil {
			t.Errorf("stage %s proves %+v, and nothing is measured", st.Position, *st.Traffic)
		}
	}
}

// TestForStuck shows a rollout whose requests are forgotten faster than they come.
func TestForStuck(t *testing.T) {
	for _, test := range []struct{ name, fields, field string }{
		{"stage", ``, "spec.health.minRequests"},
		{"ramp", `plan: {stages: [{weight: 50}]}, health: {preset: Traefik, errorRate: {maxPercent: 1}, minRequests: 1, minRampRequests: 1000000}`, "spec.health.minRampRequests"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := scheduled(t, test.fields, schedule.Options{RPS: 1})
			if !strings.Contains(s.Stuck, test.field) || len(s.Adjustments) != 1 {
				t.Errorf("stuck %q after %d steps, want it to name %s after 1", s.Stuck, len(s.Adjustments), test.field)
			}
			if len(s.Stages) < 2 || s.Stages[0].EndsAt != nil || s.Stages[len(s.Stages)-1].BeginsAt != nil {
				t.Errorf("stages %+v: none should end", s.Stages)
			}
			if len(s.Warnings) != 1 || s.Warnings[0].Field != test.field {
				t.Errorf("warnings %v, want one of %s", s.Warnings, test.field)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	for _, test := range []struct {
		name, fields string
		rps          float64
		field, says  string
	}{
		{"observed only", `mode: Observe`, 0, "spec.mode", "Observe writes no route"},
		{"paused", `paused: true`, 0, "spec.paused", "set it to false"},
		{"a window longer than the soak", `plan: {stages: [{weight: 1}, {weight: 5, soak: 1m}]}`, 0, "spec.plan.stages[1].soak",
			"the soak of 1m is shorter than health.sampleDelay and health.window, 1m15s together"},
		{"a soak too short for minRequests", `plan: {stages: [{weight: 1, soak: 5m}]}, ramp: {minIncrease: 100, maxIncrease: 100}`, 10, "spec.plan.stages[0].soak",
			"at 10 requests per second and 1%, 100 canary requests (health.minRequests) take 16m40s, and are counted in whole windows, so the stage lasts 18m and not 5m"},
		{"too few requests for a ramp step", `plan: {stages: [{weight: 10, soak: 1h}]}, ramp: {warmup: {initialPercent: 10}}`, 10, "spec.health.minRampRequests",
			"a canary with 1% has about 6 requests in a window of 1m, fewer than the 20"},
		{"every stage approved", `plan: {stages: [{weight: 1, approval: Required}, {weight: 5, approval: Required}]}`, 0, "spec.plan.stages", "every stage waits for a person"},
		{"a warm-up longer than the soak", `plan: {stages: [{weight: 20, soak: 5m}]}`, 0, "spec.ramp.warmup.soak", "the warm-up of 10m is longer than the first stage's soak of 5m, and until it is over the canary is not compared with stable: shorten it"},
		{"a stage that shows nothing", `plan: {stages: [{weight: 1, soak: 20m}, {weight: 5}]}, health: {preset: Traefik, errorRate: {maxPercent: 1}, minRequests: 20, minRampRequests: 1}`, 10, "spec.plan.stages[0].soak",
			"at 10 requests per second the canary has about 120 requests in stage 1/3, too few to tell it from stable if it fails for errorRate.maxPercent (1%) of them: only a rise of"},
		{"a margin above the limit", `health: {preset: Traefik, errorRate: {maxPercent: 2, maxAboveStablePercent: 4}}`, 0, "spec.health.errorRate.maxAboveStablePercent",
			"a canary may fail for 4 points more than stable before the comparison finds it worse, and the limit of maxPercent is 2"},
		{"nothing measured", `health: {disabled: true}`, 0, "spec.health.disabled", "a bad revision is promoted like a good one"},
		{"days", `plan: {stages: [{weight: 50, soak: 30h}]}, ramp: {warmup: {initialPercent: 100}, maxIncrease: 100}`, 0, "spec.plan", "the rollout takes 30h9m at least"},
		{"fractions", `plan: {stages: [{weight: "0.5"}]}`, 0, "spec.plan", "need weights that add up to 10000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := scheduled(t, test.fields, schedule.Options{RPS: test.rps})
			if len(s.Warnings) != 1 || s.Warnings[0].Field != test.field || !strings.Contains(s.Warnings[0].Message, test.says) {
				t.Errorf("want one warning, of %s with %q; got\n%v", test.field, test.says, s.Warnings)
			}
		})
	}
	for _, fields := range []string{``, `plan: {stages: [{weight: 1}, {weight: 50, approval: Required}]}`} {
		for _, rps := range []float64{0, 100} {
			if s := scheduled(t, fields, schedule.Options{RPS: rps}); len(s.Warnings) != 0 {
				t.Errorf("%q at %g requests per second: %v", fields, rps, s.Warnings)
			}
		}
	}
}

// TestWarningsOfRoutes shows what is said of routes that were read.
func TestWarningsOfRoutes(t *testing.T) {
	backend := func(service string) route.Backend {
		return route.Backend{Namespace: "shop", Service: service, Port: 80}
	}
	inspection := func(stable, canary int32, others bool) route.Inspection {
		return route.Inspection{
			Route: "shop/web", Pair: route.Pair{Stable: backend("web-stable"), Canary: backend("web-canary")},
			Rules: []route.ManagedRule{{StableWeight: stable, CanaryWeight: canary, Others: others, OthersWeight: 100}},
		}
	}
	for _, test := range []struct {
		name    string
		found   route.Inspection
		weights string
		says    string
	}{
		{"alone", inspection(3, 0, false), "99/1", ""},
		{"beside another, fine enough", inspection(200, 0, true), "198/2", ""},
		{"beside another, too coarse for the first step", inspection(30, 0, true), "30/0", "add up to 30, of which 1% is less than 1"},
		{"beside another, rounded", inspection(150, 0, true), "149/1", "beside a third backend the pair's weights keep their sum of 150, so that 1% becomes 0.66%"},
		{"a problem", route.Inspection{Problem: &route.Problem{Message: "no rule holds both"}}, "99/1", "no rule holds both"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := scheduled(t, ``, schedule.Options{Routes: map[string]route.Inspection{"HTTPRoute/web": test.found}})
			if got := s.Adjustments[0].Weights[0].String(); got != test.weights {
				t.Errorf("the first step writes %s, want %s", got, test.weights)
			}
			if test.says == "" {
				if len(s.Warnings) != 0 {
					t.Errorf("warnings %v, want none", s.Warnings)
				}
				return
			}
			if len(s.Warnings) != 1 || s.Warnings[0].Field != `HTTPRoute "web"` || !strings.Contains(s.Warnings[0].Message, test.says) {
				t.Errorf("warnings %v, want one with %q", s.Warnings, test.says)
			}
		})
	}
}

func TestForErrors(t *testing.T) {
	valid := func() *v1alpha1.WeightedRollout { return decode(t, ``) }
	edited := func(edit func(*v1alpha1.WeightedRolloutSpec)) *v1alpha1.WeightedRollout {
		wr := valid()
		edit(&wr.Spec)
		return wr
	}
	for _, test := range []struct {
		name    string
		wr      *v1alpha1.WeightedRollout
		options schedule.Options
		want    string
	}{
		{"negative traffic", valid(), schedule.Options{RPS: -1}, "-1 requests per second"},
		{"traffic that is none", valid(), schedule.Options{RPS: math.NaN()}, "NaN requests per second"},
		{"endless traffic", valid(), schedule.Options{RPS: math.Inf(1)}, "+Inf requests per second"},
		{"no error rate", valid(), schedule.Options{RPS: 1}, "an error rate of 0 percent"},
		{"all fail", valid(), schedule.Options{RPS: 1, ErrorPercent: 100}, "an error rate of 100 percent"},
		{"no spec", &v1alpha1.WeightedRollout{}, schedule.Options{}, "spec.plan.stages is empty"},
		{"weight", edited(func(s *v1alpha1.WeightedRolloutSpec) { s.Plan.Stages[1].Weight = "x" }), schedule.Options{}, "spec.plan.stages[1].weight: "},
		{"order", edited(func(s *v1alpha1.WeightedRolloutSpec) { s.Plan.Stages[1].Weight = "1" }), schedule.Options{}, "spec.plan.stages[1].weight: weights must be above 0 and rise"},
		{"soak", edited(func(s *v1alpha1.WeightedRolloutSpec) { s.Plan.Stages[1].Soak = "x" }), schedule.Options{}, "spec.plan.stages[1].soak: "},
		{"limits", edited(func(s *v1alpha1.WeightedRolloutSpec) { s.Ramp.MaxIncrease = "0.5" }), schedule.Options{}, "spec.ramp: ramp.minIncrease"},
		{"warm-up", edited(func(s *v1alpha1.WeightedRolloutSpec) { s.Ramp.Warmup.InitialPercent = "0" }), schedule.Options{}, "spec.ramp.warmup.initialPercent"},
		{"warm-up's soak", edited(func(s *v1alpha1.WeightedRolloutSpec) { s.Ramp.Warmup.Soak = "x" }), schedule.Options{}, "spec.ramp.warmup.soak: "},
		{"interval", edited(func(s *v1alpha1.WeightedRolloutSpec) { s.Ramp.Interval = "" }), schedule.Options{}, "spec.ramp.interval: "},
		{"health", edited(func(s *v1alpha1.WeightedRolloutSpec) { s.Health = nil }), schedule.Options{}, "spec.health is missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, err := schedule.For(test.wr, test.options); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, error %v, want one that starts with %q", got, err, test.want)
			}
		})
	}
}
