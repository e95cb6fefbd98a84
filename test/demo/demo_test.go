package main

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

func TestManifestsAreReadStrictly(t *testing.T) {
	for _, s := range allScenarios {
		route, rollout, err := manifests(s)
		if err != nil {
			t.Fatalf("manifests(%s): %v", s.key, err)
		}
		if got := pairWeights(route, s); got != [2]int32{100, 0} {
			t.Errorf("%s: the route starts with %v", s.key, got)
		}
		if rollout.Spec.Revision != s.revision || len(rollout.Spec.Plan.Stages) != 5 {
			t.Errorf("%s: unexpected spec %+v", s.key, rollout.Spec)
		}
	}
}

// told is an observation of a rollout that went through the given canary weights,
// three seconds each. Every stage of the plan begins just before its first weight.
func told(t *testing.T, s scenario, phase v1alpha1.Phase, weights ...int32) (*observation, v1alpha1.WeightedRolloutSpec) {
	t.Helper()
	_, rollout, err := manifests(s)
	if err != nil {
		t.Fatal(err)
	}
	rollout.Status.Phase, rollout.Status.OutcomeMessage = phase, s.check+": too much of it"
	began := time.Now()
	seen := &observation{scenario: s, began: began, rollout: rollout, evaluated: true, endedAt: began.Add(time.Duration(3*len(weights)) * time.Second)}
	stages := append(rollout.Spec.Plan.Stages, v1alpha1.Stage{Weight: "100"})
	version, counted := uint64(1), [2]count{}
	for i, weight := range weights {
		at := began.Add(time.Duration(3*i) * time.Second)
		for n := len(seen.entries); n < len(stages) && (n == 0 || weight > int32(points(stages[n-1].Weight)/100)); n++ {
			version++
			seen.entries = append(seen.entries, entry{at: at, version: version, index: n, weight: stages[n].Weight})
		}
		version++
		seen.steps = append(seen.steps, step{at: at, version: version, weights: [2]int32{100 - weight, weight}})
		for range 12 {
			at = at.Add(240 * time.Millisecond)
			counted[stable].requests += float64(100 - weight)
			counted[canary].requests += float64(weight)
			seen.samples = append(seen.samples, sample{at: at, tracks: counted})
		}
	}
	return seen, rollout.Spec
}

func TestJudge(t *testing.T) {
	good, bad, slow := allScenarios[0], allScenarios[1], allScenarios[2]
	tests := []struct {
		name     string
		scenario scenario
		phase    v1alpha1.Phase
		weights  []int32
		problem  string // part of the one problem; none if empty
	}{
		{"promoted", good, v1alpha1.PhasePromoted, []int32{0, 1, 5, 10, 20, 40, 50, 80, 100}, ""},
		{"stage left out", good, v1alpha1.PhasePromoted, []int32{0, 1, 10, 20, 40, 50, 80, 100}, "never had the share of stage 5 %"},
		{"too steep", good, v1alpha1.PhasePromoted, []int32{0, 1, 5, 10, 20, 50, 80, 100}, "rose from 20 % to 50 %"},
		{"fell on the way", good, v1alpha1.PhasePromoted, []int32{0, 1, 5, 10, 5, 10, 20, 40, 50, 80, 100}, "fell on the way"},
		{"not promoted", good, v1alpha1.PhaseProgressing, []int32{0, 1, 5, 10, 20, 40, 50, 80, 100}, "ended Progressing, not Promoted"},
		{"rolled back", bad, v1alpha1.PhaseRolledBack, []int32{0, 1, 5, 10, 0}, ""},
		{"not at 100 and 0", bad, v1alpha1.PhaseRolledBack, []int32{0, 1, 5, 1}, "not at 100 and 0"},
		{"no traffic", bad, v1alpha1.PhaseRolledBack, []int32{0}, "never had any traffic"},
		{"too late", bad, v1alpha1.PhaseRolledBack, []int32{0, 1, 5, 10, 20, 40, 50, 0}, "the bad canary came to 50 %"},
		{"slow", slow, v1alpha1.PhaseRolledBack, []int32{0, 1, 0}, ""},
		{"slow, too late", slow, v1alpha1.PhaseRolledBack, []int32{0, 1, 5, 10, 20, 0}, "the slow canary came to 20 %"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			seen, spec := told(t, test.scenario, test.phase, test.weights...)
			r := judge(test.scenario, spec, seen)
			switch {
			case test.problem == "" && !r.good():
				t.Errorf("unexpected problems: %q", r.problems)
			case test.problem != "" && (len(r.problems) != 1 || !strings.Contains(r.problems[0], test.problem)):
				t.Errorf("problems are %q, want one with %q", r.problems, test.problem)
			}
		})
	}
}

func TestJudgeOfASlowCanary(t *testing.T) {
	slow := allScenarios[2]
	tests := map[string]struct {
		change  func(*observation)
		problem string
	}{
		"because of errors":      {func(o *observation) { o.rollout.Status.OutcomeMessage = "error-rate: 3 of 20 requests failed" }, "for another reason than latency: error-rate"},
		"errors at the gateway":  {func(o *observation) { o.samples[len(o.samples)-1].tracks[canary].errors = 2 }, "counted 2 errors of the slow canary"},
		"failures at the client": {func(o *observation) { o.client.failed = 1 }, "1 of 1 requests failed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			seen, spec := told(t, slow, v1alpha1.PhaseRolledBack, 0, 1, 0)
			test.change(seen)
			r := judge(slow, spec, seen)
			if len(r.problems) != 1 || !strings.Contains(r.problems[0], test.problem) {
				t.Errorf("problems are %q, want one with %q", r.problems, test.problem)
			}
		})
	}
}

func TestJudgeWantsEvidence(t *testing.T) {
	seen, spec := told(t, allScenarios[0], v1alpha1.PhasePromoted, 0, 1, 5, 10, 20, 40, 50, 80, 100)
	seen.evaluated = false
	r := judge(allScenarios[0], spec, seen)
	if len(r.problems) != 1 || !strings.Contains(r.problems[0], "never told the numbers") {
		t.Errorf("problems are %q", r.problems)
	}
}

func TestChooseScenarios(t *testing.T) {
	for key, want := range map[string]int{"good": 1, "bad": 1, "slow": 1, "all": 3, "both": 3} {
		if got, err := chooseScenarios(key); err != nil || len(got) != want {
			t.Errorf("%s: %d scenarios, %v", key, len(got), err)
		}
	}
	var keys []string
	for _, s := range allScenarios {
		keys = append(keys, s.key)
	}
	// make demo checks the name before it builds anything.
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if want := "SCENARIOS    := " + strings.Join(keys, " ") + "\n"; !strings.Contains(string(makefile), want) {
		t.Errorf("the Makefile does not say %q", want)
	}
	if _, err := chooseScenarios("fast"); err == nil || !strings.Contains(err.Error(), "choose good, bad, slow or all") {
		t.Errorf("fast: %v", err)
	}
}

func TestJudgeSeesAShareAboveItsStage(t *testing.T) {
	seen, spec := told(t, allScenarios[0], v1alpha1.PhasePromoted, 0, 1, 5, 10, 20, 40, 50, 80, 100)
	// The route had 10 % before status said that the stage of 10 % had begun.
	seen.entries[2].version = seen.steps[3].version + 1
	r := judge(allScenarios[0], spec, seen)
	if r.good() || !strings.Contains(r.problems[0], "the canary had 10 % in a stage of 5 %") {
		t.Errorf("problems are %q", r.problems)
	}
}

func TestJudgeComparesTheShareWithTheGateway(t *testing.T) {
	seen, spec := told(t, allScenarios[0], v1alpha1.PhasePromoted, 0, 1, 5, 10, 20, 40, 50, 80, 100)
	for i := range seen.samples {
		seen.samples[i].tracks[canary].requests *= 1.5
	}
	r := judge(allScenarios[0], spec, seen)
	if len(r.problems) != 1 || !strings.Contains(r.problems[0], "in the stage of 10 % the gateway counted a share of 14.") {
		t.Errorf("problems are %q", r.problems)
	}
}

func TestStageRows(t *testing.T) {
	seen, spec := told(t, allScenarios[0], v1alpha1.PhasePromoted, 1, 5, 10, 20, 40, 50, 80, 100)
	row := judge(allScenarios[0], spec, seen).rows[4]
	if row.weight != "50 %" || row.began != 12*time.Second || row.lasted != 6*time.Second || math.Abs(row.measured-50) > 0.01 {
		t.Errorf("unexpected row %+v", row)
	}
	if diff := cmp.Diff([]string{"40", "50"}, row.shares); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
}

func TestParseCounters(t *testing.T) {
	const text = `# TYPE traefik_service_requests_total counter
traefik_service_requests_total{code="200",method="GET",protocol="http",service="shop-checkout-stable-http-9898@kubernetesgateway"} 90
traefik_service_requests_total{code="200",method="GET",protocol="http",service="shop-checkout-canary-http-9898@kubernetesgateway"} 7
traefik_service_requests_total{code="400",method="GET",protocol="http",service="shop-checkout-canary-http-9898@kubernetesgateway"} 2
traefik_service_requests_total{code="503",method="GET",protocol="http",service="shop-checkout-canary-http-9898@kubernetesgateway"} 1
traefik_service_requests_total{code="500",method="GET",protocol="http",service="shop-other-http-9898@kubernetesgateway"} 1000
`
	got, err := parseCounters(strings.NewReader(text), allScenarios[0], time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if want := [2]count{{requests: 90}, {requests: 10, errors: 1}}; got.tracks != want {
		t.Errorf("got %+v, want %+v", got.tracks, want)
	}
	if got.share() != 10 {
		t.Errorf("share is %v, want 10", got.share())
	}
}

func TestClassify(t *testing.T) {
	tests := []struct {
		name   string
		result vegeta.Result
		want   answer
	}{
		{"stable", vegeta.Result{Code: 200, Body: []byte(`{"message":"checkout-stable"}`)}, answer{by: stable, known: true}},
		{"canary", vegeta.Result{Code: 200, Body: []byte(`{"message":"checkout-canary"}`)}, answer{by: canary, known: true}},
		{"nobody", vegeta.Result{Code: 200, Body: []byte(`{"message":"hello"}`)}, answer{}},
		{"failed", vegeta.Result{Code: 500}, answer{failed: true}},
		{"refused", vegeta.Result{Code: 400}, answer{failed: true, refused: true}},
		{"lost", vegeta.Result{Error: "connection refused"}, answer{failed: true, lost: "connection refused"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := classify(&test.result, allScenarios[0]); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestLinesFitTheScreen(t *testing.T) {
	s := &screen{color: true}
	if got, want := cut("ab"+s.red("cdef"), 4), "ab\x1b[31mcd\x1b[0m"; got != want {
		t.Errorf("cut = %q, want %q", got, want)
	}
	if got := cut(s.red("abcd"), 4); !strings.HasSuffix(got, "\x1b[0m") {
		t.Errorf("cut = %q leaves the colour on", got)
	}
	if diff := cmp.Diff([]string{"a " + s.red("b"), "cde"}, wrap("a "+s.red("b")+" cde", 4)); diff != "" {
		t.Errorf("wrap (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"now a b", "    c", "    "}, block("now ", "a b c", 3, 8)); diff != "" {
		t.Errorf("block (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"now abc", "    de…"}, block("now ", "abc def ghi", 2, 7)); diff != "" {
		t.Errorf("block (-want +got):\n%s", diff)
	}
}
