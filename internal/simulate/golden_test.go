package simulate_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/manifest"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

var update = flag.Bool("update", false, "write the golden files anew")

// stories are the simulations in testdata: NAME.rollout.yaml is the rollout,
// NAME.scenario.yaml the world, and NAME.golden what happens.
var stories = []struct {
	name    string
	options simulate.Options
}{
	{"plan-1-5-10-20-50", simulate.Options{Exact: true, RPS: 500}},
	{"ramp-caps", simulate.Options{Exact: true}},
	{"cold-start", simulate.Options{}},
	{"breaker", simulate.Options{}},
	{"degraded-floor", simulate.Options{}},
	{"trend", simulate.Options{Exact: true}},
	{"error-spike", simulate.Options{}},
	{"latency-leak", simulate.Options{}},
	{"metrics-outage", simulate.Options{}},
	{"flapping", simulate.Options{}},
	{"newer-revision", simulate.Options{}},
	{"pause", simulate.Options{}},
}

func TestGolden(t *testing.T) {
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			got := textOf(play(t, story.name, story.options))
			file := filepath.Join("testdata", story.name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(strings.Split(string(read(t, file)), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("%s (-want +got); read it, and if it is right run the test with -update:\n%s", file, diff)
			}
		})
	}
}

// play runs a story.
func play(t testing.TB, name string, o simulate.Options) *simulate.Result {
	t.Helper()
	spec := rolloutIn(t, name)
	scenario := &simulate.Scenario{}
	if text, err := os.ReadFile(filepath.Join("testdata", name+".scenario.yaml")); err == nil {
		if scenario, err = simulate.ParseScenario(text); err != nil {
			t.Fatal(err)
		}
	}
	o.Name, o.Seed = name, 1
	r, err := simulate.Run(spec, scenario, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rolloutIn reads the spec of a story, with the API's defaults.
func rolloutIn(t testing.TB, name string) *v1alpha1.WeightedRolloutSpec {
	t.Helper()
	wr, err := manifest.Decode(bytes.NewReader(read(t, filepath.Join("testdata", name+".rollout.yaml"))), "")
	if err != nil {
		t.Fatal(err)
	}
	return &wr.Spec
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// textOf writes a result for people.
func textOf(r *simulate.Result) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
	}
	line("ADJUSTMENTS")
	line("%-11s %-11s %6s %6s  %-10s %-6s %-15s %s", "at", "confirmed", "from", "to", "weights", "stage", "cause", "bound")
	for _, a := range r.Adjustments {
		line("%-11s %-11s %5g%% %5g%%  %-10s %-6s %-15s %s", a.At, moment(a.ConfirmedAt), a.From, a.To, wire(a.Weights), a.Stage, a.Cause, a.Bound)
	}
	line("")
	line("EVENTS")
	for _, e := range r.Events {
		kind := "event"
		switch {
		case e.Source == simulate.FromScenario:
			kind = "*"
		case e.Warning:
			kind = "WARNING"
		}
		if e.Reason != "" {
			e.Message = e.Reason + ": " + e.Message
		}
		line("%-11s %-7s %s", e.At, kind, e.Message)
	}
	line("")
	line("VERDICTS, leaving out those that only await a window")
	last := ""
	for _, s := range r.Samples {
		v := strings.TrimSpace(fmt.Sprintf("%-10s %-20s %s", s.Verdict.State, s.Verdict.Reason, s.Verdict.Check))
		if s.Verdict.Reason != v1alpha1.ReasonAwaitingWindow && v != last {
			score := "-"
			if s.Verdict.Score > 0 {
				score = fmt.Sprintf("%.2f", s.Verdict.Score)
			}
			line("%-11s at %3g%%  score %-4s  %s", s.At, s.Desired, score, v)
			last = v
		}
	}
	line("")
	line("STAGES")
	line("%-7s %-6s %6s  %-11s %-11s %-11s %-11s %s", "attempt", "stage", "share", "began", "reached", "ended", "lasted", "canary requests")
	for _, s := range r.Stages {
		line("%-7d %-6s %5g%%  %-11s %-11s %-11s %-11s %.0f", s.Attempt, s.Position, s.Weight, s.BeganAt, moment(s.ReachedAt), moment(s.EndedAt), s.Lasted, s.CanaryRequests)
	}
	line("")
	o := r.Outcome
	line("OUTCOME")
	line("%s at %s; %s at %s", o.Phase, o.ReachedAt, ends[o.Ending], o.Duration)
	line("attempt %d of revision %q, with the canary at %g percent", o.Attempt, o.Revision, o.Share)
	line("%s: %s", o.Reason, o.Message)
	line("stable %s", traffic(o.Stable))
	line("canary %s", traffic(o.Canary))
	line("%d wake-ups, %d passes, %d status writes, %d route writes", o.Wakeups, o.Passes, o.StatusWrites, o.RouteWrites)
	for _, n := range r.Notes {
		line("note: %s", n)
	}
	return b.String()
}

// ends are the ways in which a simulation ends, in words.
var ends = map[simulate.Ending]string{
	simulate.EndSettled: "nothing more could change", simulate.EndDuration: "the scenario was over", simulate.EndLimit: "the longest time was over",
}

func moment(e *simulate.Elapsed) string {
	if e == nil {
		return "-"
	}
	return e.String()
}

func wire(list []simulate.RouteWeights) string {
	texts := make([]string, len(list))
	for i, w := range list {
		texts[i] = w.String()
	}
	return strings.Join(texts, " ")
}

func traffic(t simulate.Traffic) string {
	return fmt.Sprintf("%.0f requests, %.0f failed (%.3f%%)", t.Requests, t.Failed, t.FailedPercent())
}
