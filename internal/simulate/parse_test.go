package simulate_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// everything is a scenario that uses every field.
const everything = `
start: 2026-01-09T15:30:00-05:00
duration: 6h
traffic:
- {at: 0s, rps: 500}
- {at: 2h, rps: 50.5, over: 10m}
gateway: {delay: 3s}
stable:
  errorPercent: [{at: 0s, value: "0.1"}]
  latency: [{at: 0s, value: 80ms}, {at: 1h, value: 400ms, over: 1h}]
canary:
  errorPercent: [{at: 30m, value: 5, for: 2m}]
  cold: {for: 10m, latencyFactor: 3, errorPercent: 2}
checks:
  queue-depth: [{at: 0s, value: 40}, {at: 1h, value: -2.5}]
events:
- {at: 40m, canary: Unready, for: 3m}
- {at: 41m, stable: Unready}
- {at: 1h, metrics: Outage, for: 10m}
- {at: 2h, revision: "2.5.0"}
- {at: 90m, command: approve}
- {at: 3h, paused: true}
- {at: 4h, paused: false}
- {at: 3h, routeWeights: 20/80}
`

func TestParseScenario(t *testing.T) {
	got, err := simulate.ParseScenario([]byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	yes, no := true, false
	type failures = []simulate.Step[v1alpha1.Percent]
	type latencies = []simulate.Step[v1alpha1.Duration]
	want := &simulate.Scenario{
		Start:    "2026-01-09T15:30:00-05:00",
		Duration: "6h",
		Traffic:  []simulate.RateStep{{At: "0s", RPS: "500"}, {At: "2h", RPS: "50.5", Over: "10m"}},
		Gateway:  simulate.Gateway{Delay: "3s"},
		Stable: simulate.Track{
			ErrorPercent: failures{{At: "0s", Value: "0.1"}},
			Latency:      latencies{{At: "0s", Value: "80ms"}, {At: "1h", Value: "400ms", Over: "1h"}},
		},
		Canary: simulate.Track{
			ErrorPercent: failures{{At: "30m", Value: "5", For: "2m"}},
			Cold:         &simulate.Cold{For: "10m", LatencyFactor: "3", ErrorPercent: "2"},
		},
		Checks: map[string][]simulate.Step[v1alpha1.Decimal]{
			"queue-depth": {{At: "0s", Value: "40"}, {At: "1h", Value: "-2.5"}},
		},
		Events: []simulate.Happening{
			{At: "40m", Canary: simulate.Unready, For: "3m"},
			{At: "41m", Stable: simulate.Unready},
			{At: "1h", Metrics: simulate.MetricsOutage, For: "10m"},
			{At: "2h", Revision: "2.5.0"},
			{At: "90m", Command: "approve"},
			{At: "3h", Paused: &yes},
			{At: "4h", Paused: &no},
			{At: "3h", RouteWeights: "20/80"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestParseScenarioErrors shows that every error names the field and the cure.
func TestParseScenarioErrors(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"traffic: [", []string{"no valid YAML: "}},
		{"duration: 1h\nduration: 2h", []string{`line 2: key "duration" already`, "give every field once"}},
		{"duration: 1h\n---\nduration: 2h", []string{"there are 2 documents", "leave the others out"}},
		{"{}\n{}", []string{"there are 2 documents"}},
		{"duration: 1h\n---\n5", []string{"there are 2 documents"}},
		{"duration: &a " + strings.Repeat("x", 10_000) + "\ntraffic: [" + strings.Repeat("*a,", 1000) + "]", []string{"longer than 3 MiB", "write fewer aliases"}},
		{"duration: " + strings.Repeat("x", 100_000), []string{"duration: ", "is no duration: write numbers with a unit"}},
		{"traffic: [" + strings.Repeat("{x: 1},", 1000) + "]", []string{"unknown field", "correct its name or remove it"}},
		{"load: []", []string{`unknown field "load"`, "correct its name or remove it"}},
		{"traffic: [{at: 0s, rsp: 1}]", []string{`unknown field "traffic[0].rsp"`}},
		{"Traffic: []", []string{`unknown field "Traffic"`}},
		{"traffic: 5", []string{"traffic is of the wrong kind (number)", "must be a list"}},
		{"stable: []", []string{"stable is of the wrong kind (array)", "must be a mapping"}},
		{"events: [{at: 0s, paused: maybe}]", []string{"events[0].paused is of the wrong kind", "true or false"}},
		{"events: [{at: 0s, canary: 3}]", []string{"events[0].canary is of the wrong kind", "a text"}},
		{"5", []string{"the whole is of the wrong kind"}},
		{"events: [{at: 0s, canary: Unready}, {at: 1m, paused: [{}, 1]}]", []string{"scenario: events[1].paused is of the wrong kind (array)", "true or false"}},
		{"checks: {a: [], b: [{at: 0s, value: 1}, 7]}", []string{"scenario: checks.b[1] is of the wrong kind (number)", "a mapping"}},
		{"events: [{at: 0s, canary: Unready, for: 1m}, 5, {at: 1m, stable: Unready}]", []string{"scenario: events[1] is of the wrong kind (number)"}},
		{"canary: {cold: [1, 2]}", []string{"scenario: canary.cold is of the wrong kind (array)"}},
		{"stable: {}\ncanary: {latency: {at: 0s}}", []string{"scenario: canary.latency is of the wrong kind (object)", "must be a list"}},
		{"start: Friday", []string{`start is "Friday": write a date and a time with its offset from UTC, such as 2026-01-09T15:30:00-05:00`}},
		{"start: 2026-01-09 15:30", []string{`start is "2026-01-09 15:30": write a date`}},
		{"start: 2026-01-09", []string{`start is "2026-01-09": write a date`}},
		{"start: 5", []string{"start is of the wrong kind (number)", "a text"}},
		{"start: 1999-12-31T23:59:59Z", []string{"start is", "a whole second of the years from 2000 to 2099"}},
		{"start: 2099-12-31T23:59:59-05:00", []string{"a whole second of the years from 2000 to 2099"}},
		{"start: 2026-01-09T15:30:00.5Z", []string{"a whole second"}},
		{"duration: 0s", []string{"duration is 0s", "must be from 1ms to 72h"}},
		{"duration: 100h", []string{"duration is 100h", "must be from 1ms to 72h"}},
		{"duration: [1]", []string{"duration:", "is no duration: write numbers with a unit"}},
		{"traffic: [{at: 0s}]", []string{"traffic[0].rps is missing: give a number"}},
		{"traffic: [{at: 0s, rps: -1}]", []string{"traffic[0].rps is -1", "must be from 0 to 1e+06"}},
		{"traffic: [{at: 0s, rps: .nan}]", []string{"no valid YAML: "}},
		{`traffic: [{at: 0s, rps: "NaN"}]`, []string{"traffic[0].rps is NaN", "must be from 0"}},
		{"traffic: [{at: 0s, rps: much}]", []string{"traffic[0].rps:", "is no number: write"}},
		{"gateway: {delay: 2h}", []string{"gateway.delay is 2h", "must be from 0s to 1h"}},
		{"stable: {errorPercent: [{at: 0s, value: 101}]}", []string{"stable.errorPercent[0].value:", "is no percentage: write"}},
		{"stable: {errorPercent: [{at: 0s}]}", []string{"stable.errorPercent[0].value is missing: give a percentage"}},
		{"canary: {latency: [{at: 0s, value: 50}]}", []string{"canary.latency[0].value:", "is no duration: write"}},
		{"canary: {latency: [{at: 0s, value: 0s}]}", []string{"canary.latency[0].value is 0s", "must be from 1ms to 10m"}},
		{"canary: {cold: {latencyFactor: 3}}", []string{"canary.cold.for is missing: give a time"}},
		{"canary: {cold: {for: 1m, latencyFactor: 0.5}}", []string{"canary.cold.latencyFactor is 0.5", "must be from 1 to 100"}},
		{"stable: {cold: {for: 1m}}", []string{"stable.cold", "move it to canary.cold"}},
		{"checks: {depth: [{at: 0s, value: deep}]}", []string{"checks.depth[0].value:", "is no number: write"}},
		{"events: [{at: 0s}]", []string{"events[0] sets nothing", "exactly one of canary"}},
		{"events: [{at: 0s, canary: Unready, stable: Unready}]", []string{"events[0] sets canary and stable", "one event does one thing"}},
		{"events: [{at: 0s, canary: Gone}]", []string{`events[0].canary is "Gone"`, "use one of Ready, Unready"}},
		{"events: [{at: 0s, metrics: Down}]", []string{`events[0].metrics is "Down"`, "use one of Fine, Outage, NaN, Empty"}},
		{"events: [{at: 0s, command: undo}]", []string{`events[0].command is "undo"`, "use one of abort, pause, approve, skip, promote, retry, finish, resume"}},
		{"events: [{at: 0s, command: retry, for: 1m}]", []string{"events[0].for: command is done in a moment", "leave for out"}},
		{"events: [{at: 0s, canary: Ready, for: 2m}]", []string{"events[0].for: canary: Ready is as if there were no event", "leave for out, or set another value"}},
		{"events: [{at: 0s, stable: Ready, for: 2m}]", []string{"events[0].for: stable: Ready is as if there were no event"}},
		{"events: [{at: 0s, metrics: Outage}, {at: 1m, metrics: Fine, for: 2m}]", []string{"events[1].for: metrics: Fine is as if there were no event"}},
		{"events: [{at: 0s, routeWeights: 20}]", []string{"events[0].routeWeights is of the wrong kind"}},
		{`events: [{at: 0s, routeWeights: "0/0"}]`, []string{`events[0].routeWeights is "0/0"`, "of which one is above 0, as in 20/80"}},
		{`events: [{at: 0s, routeWeights: "1.5/3"}]`, []string{"two whole numbers from 0 to 1000000"}},
		{
			"events: [{at: 1m, canary: Unready, for: 5m}, {at: 3m, canary: Unready, for: 5m}]",
			[]string{"events[1]: canary is set again while events[0] still lasts, until 6m0s", "move one of the two"},
		},
	} {
		t.Run(tc.text[:min(len(tc.text), 100)], func(t *testing.T) {
			_, err := simulate.ParseScenario([]byte(tc.text))
			if err == nil {
				t.Fatal("there is no error")
			}
			bad, ok := errors.AsType[*simulate.ScenarioError](err)
			if !ok || "scenario: "+bad.Unwrap().Error() != err.Error() || strings.Contains(err.Error(), "\n") {
				t.Errorf("it is no error of a scenario in one line: %v", err)
			}
			if n := len(err.Error()); n > 700 {
				t.Errorf("the error has %d bytes", n)
			}
			for _, want := range append(tc.want, "scenario: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
		})
	}
}

func TestParseScenarioEmpty(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "{}", "null", "---\n{}\n---\n# nothing\n"} {
		got, err := simulate.ParseScenario([]byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if diff := cmp.Diff(&simulate.Scenario{}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// FuzzParseScenario shows that no text makes ParseScenario panic, and that what it
// accepts can be written and read again.
func FuzzParseScenario(f *testing.F) {
	f.Add([]byte(everything))
	files, err := filepath.Glob(filepath.Join("testdata", "*.scenario.yaml"))
	if err != nil || len(files) == 0 {
		f.Fatalf("there is no scenario in testdata: %v", err)
	}
	for _, file := range files {
		f.Add(read(f, file))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := simulate.ParseScenario(text)
		if err != nil {
			return
		}
		written, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := simulate.ParseScenario(written)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		// An empty list and none at all say the same.
		rewritten, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(written), string(rewritten)); diff != "" {
			t.Errorf("it reads differently the second time (-first +second):\n%s", diff)
		}
	})
}
