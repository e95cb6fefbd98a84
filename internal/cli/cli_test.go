package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/internal/cli"
)

var update = flag.Bool("update", false, "write the golden files anew, to be read before they are committed")

const (
	defaultPlan  = "testdata/default.yaml"
	doubtfulPlan = "testdata/doubtful.yaml"
	failing      = "testdata/failing.yaml"
	shortPlan    = "testdata/short.yaml"
	broken       = "testdata/broken.yaml"
	coarsePlan   = "testdata/coarse.yaml"
)

// ran is what a command did.
type ran struct {
	out, errOut string
	code        int
}

// run runs the program with a text at standard input.
func run(t *testing.T, stdin string, args ...string) ran {
	t.Helper()
	var out, errOut bytes.Buffer
	code := cli.Main(args, "v1.2.3", genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut})
	return ran{out.String(), errOut.String(), code}
}

// succeed is run for a command that must succeed.
func succeed(t *testing.T, args ...string) ran {
	t.Helper()
	r := run(t, "", args...)
	if r.code != 0 {
		t.Fatalf("%s: exit code %d: %s", strings.Join(args, " "), r.code, r.errOut)
	}
	return r
}

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); run the test with -update if this is right:\n%s", file, diff)
	}
}

// TestDocumentedPicture: the picture in the docs is what the command beside it draws.
func TestDocumentedPicture(t *testing.T) {
	drawn := filepath.Join(t.TempDir(), "run.svg")
	succeed(t, "simulate", "-f", "../../config/samples/first.yaml", "--approve", "--expect", "RolledBack",
		"--scenario", "../../config/samples/scenarios/bad-hour.yaml", "--svg", drawn)
	got, err := os.ReadFile(drawn)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "../../../docs/images/simulation.svg", string(got))
}

func TestGolden(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
	}{
		{"plan-default.golden", []string{"plan", "-f", defaultPlan, "--width", "80"}},
		{"plan-default-rps.golden", []string{"plan", "-f", defaultPlan, "--rps", "50"}},
		{"plan-doubtful.golden", []string{"plan", "-f", doubtfulPlan, "--rps", "2", "--width", "120"}},
		{"simulate-default.golden", []string{"simulate", "-f", defaultPlan, "--width", "80"}},
		{"plan-windows.golden", []string{"plan", "-f", "testdata/windows.yaml"}},
		{"simulate-windows.golden", []string{"simulate", "-f", "testdata/windows.yaml", "--exact"}},
		{"simulate-failing.golden", []string{"simulate", "-f", defaultPlan, "--scenario", failing, "--width", "120"}},
		{"simulate-exact.golden", []string{"simulate", "-f", defaultPlan, "--exact", "--rps", "20"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := succeed(t, test.args...)
			golden(t, test.name, r.out+r.errOut)
		})
	}
}

// TestDefaultPlan shows the steps that the default plan is known for.
func TestDefaultPlan(t *testing.T) {
	var plan struct {
		Duration    float64 `json:"duration"`
		Adjustments []struct {
			Stage string  `json:"stage"`
			To    float64 `json:"to"`
		} `json:"adjustments"`
	}
	decodeJSON(t, succeed(t, "plan", "-f", defaultPlan, "-o", "json").out, &plan)
	stages := map[string][]float64{}
	for _, a := range plan.Adjustments {
		stages[a.Stage] = append(stages[a.Stage], a.To)
	}
	want := map[string][]float64{
		"1/6": {1}, "2/6": {2, 3, 4, 5}, "3/6": {6, 7, 8, 9, 10}, "4/6": {12, 14, 16, 19, 20}, "5/6": {24, 28, 33, 39, 46, 50}, "6/6": {60, 70, 80, 90, 100},
	}
	if diff := cmp.Diff(want, stages); diff != "" {
		t.Errorf("steps by stage (-want +got):\n%s", diff)
	}
	if want := 3*3600 + 13*60; plan.Duration != float64(want) {
		t.Errorf("it takes %gs, want %ds", plan.Duration, want)
	}
}

// TestSameBytes shows that output and picture depend on nothing but the input, and on
// the seed.
func TestSameBytes(t *testing.T) {
	dir := t.TempDir()
	var outputs, pictures []string
	for _, seed := range []string{"7", "7", "8"} {
		file := filepath.Join(dir, "run.svg")
		r := succeed(t, "simulate", "-f", shortPlan, "--scenario", broken, "--seed", seed, "--svg", file)
		outputs = append(outputs, r.out)
		picture, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pictures = append(pictures, string(picture))
	}
	if outputs[0] != outputs[1] || pictures[0] != pictures[1] {
		t.Error("the same seed gives another output or picture")
	}
	if outputs[0] == outputs[2] || pictures[0] == pictures[2] {
		t.Error("another seed gives the same output or picture")
	}
}

// TestFormats shows that JSON and YAML hold the same, and that what was written can be
// read.
func TestFormats(t *testing.T) {
	for _, args := range [][]string{
		{"plan", "-f", defaultPlan, "--rps", "50"},
		{"plan", "-f", doubtfulPlan},
		{"simulate", "-f", shortPlan, "--scenario", broken},
		{"simulate", "-f", shortPlan, "--exact"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			var fromJSON, fromYAML map[string]any
			decodeJSON(t, succeed(t, append(args, "-o", "json")...).out, &fromJSON)
			if err := yaml.Unmarshal([]byte(succeed(t, append(args, "-o", "yaml")...).out), &fromYAML); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fromJSON, fromYAML); diff != "" {
				t.Errorf("(-JSON +YAML):\n%s", diff)
			}
			if fromJSON["name"] == "" || fromJSON["name"] == nil {
				t.Errorf("the name is missing from %v", fromJSON)
			}
		})
	}
}

// TestStandardInput shows that a file may come from standard input, and be JSON.
func TestStandardInput(t *testing.T) {
	text, err := os.ReadFile(defaultPlan)
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	want := succeed(t, "plan", "-f", defaultPlan)
	for _, stdin := range []string{string(text), string(asJSON)} {
		if got := run(t, stdin, "plan", "-f", "-"); got != want {
			t.Errorf("from standard input (-file +stdin):\n%s", cmp.Diff(want.out, got.out))
		}
	}
	scenario, err := os.ReadFile(broken)
	if err != nil {
		t.Fatal(err)
	}
	want = succeed(t, "simulate", "-f", shortPlan, "--scenario", broken)
	if got := run(t, string(scenario), "simulate", "-f", shortPlan, "--scenario", "-"); got != want {
		t.Errorf("the scenario from standard input (-file +stdin):\n%s", cmp.Diff(want.out, got.out))
	}
}

func TestErrors(t *testing.T) {
	const bad = `apiVersion: weightedrollout.dev/v1alpha1
kind: WeightedRollout
metadata: {name: checkout}
spec: {revision: "1", plan: {stages: [{weight: "5%"}]}, health: {disabled: true}}`
	const two = "apiVersion: weightedrollout.dev/v1alpha1\nkind: WeightedRollout\nmetadata: {name: a}\n---\napiVersion: weightedrollout.dev/v1alpha1\nkind: WeightedRollout\nmetadata: {name: b}\n"
	missing := filepath.Join(t.TempDir(), "missing", "file")
	for _, test := range []struct {
		name, stdin string
		args        []string
		want        string
	}{
		{"no file", "", []string{"plan"}, "name the file that holds the WeightedRollout with -f, or - for standard input"},
		{"no file to simulate", "", []string{"simulate"}, "name the file that holds the WeightedRollout with -f"},
		{"a missing file", "", []string{"plan", "-f", missing}, "no such file or directory"},
		{"nothing", "", []string{"plan", "-f", "-"}, "standard input: the manifest is empty"},
		{"an invalid rollout", bad, []string{"plan", "-f", "-"}, `spec.plan.stages[0].weight: Invalid value: "5%": must be a percentage`},
		{"a name that would move the cursor", "", []string{"plan", "-f", "a\x1b[2Jb"}, "open a [2Jb: "},
		{"several rollouts", two, []string{"plan", "-f", "-"}, `standard input: the manifest holds several WeightedRollouts, "a", "b": choose one by name, with --name`},
		{"a name that is not there", two, []string{"plan", "-f", "-", "--name", "c"}, `the manifest holds no WeightedRollout "c", but "a", "b"`},
		{"an unknown format", "", []string{"plan", "-f", defaultPlan, "-o", "xml"}, `there is no output format "xml": use one of table, json, yaml`},
		{"a width that is too small", "", []string{"plan", "-f", defaultPlan, "--width", "10"}, "--width 10 is out of range: give 60 to 1000"},
		{"no traffic", "", []string{"plan", "-f", defaultPlan, "--rps", "0"}, "--rps 0 is out of range"},
		{"traffic that is none", "", []string{"plan", "-f", defaultPlan, "--rps", "NaN"}, "--rps NaN is out of range"},
		{"endless traffic", "", []string{"simulate", "-f", defaultPlan, "--rps", "Inf"}, "--rps +Inf is out of range"},
		{"traffic in words", "", []string{"plan", "-f", defaultPlan, "--rps", "many"}, `invalid argument "many" for "--rps" flag`},
		{"an error rate without traffic", "", []string{"plan", "-f", defaultPlan, "--error-percent", "1"}, "--error-percent needs --rps"},
		{"an error rate out of range", "", []string{"plan", "-f", defaultPlan, "--rps", "1", "--error-percent", "100"}, "--error-percent 100 is out of range"},
		{"warnings, strictly", "", []string{"plan", "-f", doubtfulPlan, "--strict"}, "error: there are 7 warnings, and --strict was given"},
		{"one warning, strictly", "", []string{"plan", "-f", coarsePlan, "--strict"}, "error: there is 1 warning, and --strict was given"},
		{"one warning of a simulation, strictly", "", []string{"simulate", "-f", coarsePlan, "--strict"}, "error: there is 1 warning, and --strict was given"},
		{"another ending with a warning", "", []string{"simulate", "-f", coarsePlan, "--strict", "--expect", "Idle"}, "error: the rollout ended as Promoted, and not as Idle"},
		{"an unknown picker", "", []string{"simulate", "-f", defaultPlan, "--picker", "best"}, `there is no picker "best": use one of round-robin, naive, smooth`},
		{"a picker that is not used", "", []string{"simulate", "-f", defaultPlan, "--picker", "naive", "--exact"}, "--picker and --exact exclude each other"},
		{"an unknown ending", "", []string{"simulate", "-f", defaultPlan, "--expect", "success"}, `a rollout never ends as "success": --expect takes one of Promoted, RolledBack`},
		{"another ending", "", []string{"simulate", "-f", shortPlan, "--scenario", broken, "--expect", "promoted"}, "the rollout ended as RolledBack, and not as Promoted"},
		{"a missing scenario", "", []string{"simulate", "-f", defaultPlan, "--scenario", missing}, "--scenario: open "},
		{"a bad scenario", "nonsense: 1", []string{"simulate", "-f", defaultPlan, "--scenario", "-"}, `error: --scenario -: unknown field "nonsense": correct its name or remove it`},
		{"a scenario of the wrong kind", "events: [{at: 0s, stable: Unready}, {at: 1m, paused: 3}]", []string{"simulate", "-f", defaultPlan, "--scenario", "-"}, "error: --scenario -: events[1].paused is of the wrong kind (number): it must be true or false"},
		{"a scenario for another spec", "checks: {nope: [{at: 0s, value: 1}]}", []string{"simulate", "-f", defaultPlan, "--scenario", "-"}, "error: --scenario -: checks.nope: spec.health.checks has no check of that name: correct the name or remove it"},
		{"a scenario with too much traffic", "traffic: [{at: 0s, rps: 20000}]", []string{"simulate", "-f", defaultPlan, "--scenario", "-"}, "error: --scenario -: traffic: 20000 requests per second are too many to pick one by one"},
		{"too much traffic", "", []string{"simulate", "-f", defaultPlan, "--rps", "20000"}, "error: 20000 requests per second are too many to pick one by one"},
		{"a scenario of two", "duration: 1h\n---\nduration: 2h\n", []string{"simulate", "-f", defaultPlan, "--scenario", "-"}, "error: --scenario -: there are 2 documents: a scenario is one, so leave the others out"},
		{"a scenario that is too long", strings.Repeat("# long\n", 1<<19), []string{"simulate", "-f", defaultPlan, "--scenario", "-"}, "error: --scenario -: longer than 3 MiB"},
		{"one input for two", "", []string{"simulate", "-f", "-", "--scenario", "-"}, "-f and --scenario both read standard input"},
		{"a picture that cannot be written", "", []string{"simulate", "-f", shortPlan, "--svg", missing}, "--svg: open "},
		{"an unknown flag", "", []string{"plan", "--fast"}, "unknown flag: --fast\nSee 'kubectl weightedrollout plan --help' for usage"},
		{"an argument too many", "", []string{"plan", "-f", defaultPlan, "checkout"}, `"checkout" is no argument of plan: name the file with -f, as in kubectl weightedrollout plan -f checkout`},
		{"a file without -f to lint", "", []string{"lint", defaultPlan}, "name the file with -f, as in kubectl weightedrollout lint -f " + defaultPlan},
		{"a file without -f to simulate", "", []string{"simulate", defaultPlan}, "name the file with -f, as in kubectl weightedrollout simulate -f " + defaultPlan},
		{"an unknown shell", "", []string{"completion", "tcsh"}, `there is no completion for "tcsh": use one of bash, fish, powershell, zsh`},
		{"an unknown command", "", []string{"launch"}, "error: unknown command \"launch\" for \"kubectl weightedrollout\"\nSee 'kubectl weightedrollout --help' for usage"},
		{"a mistyped command", "", []string{"pln"}, "error: unknown command \"pln\" for \"kubectl weightedrollout\": did you mean plan?\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := run(t, test.stdin, test.args...)
			if r.code != 1 {
				t.Errorf("exit code %d, want 1", r.code)
			}
			if !strings.Contains(r.errOut, "error: ") || !strings.Contains(r.errOut, test.want) {
				t.Errorf("want an error with %q, got\n%s", test.want, r.errOut)
			}
			if n := strings.Count(r.errOut, "error: "); n != 1 {
				t.Errorf("the error is printed %d times:\n%s", n, r.errOut)
			}
			if strings.Contains(r.out, "Usage:") {
				t.Errorf("an error prints the whole usage:\n%s", r.out)
			}
		})
	}
}

// TestPictureSparesInput shows that the picture replaces no file that is read, by
// whatever name, and any other.
func TestPictureSparesInput(t *testing.T) {
	dir := t.TempDir()
	rollout, scenario, link, old := filepath.Join(dir, "rollout.yaml"), filepath.Join(dir, "scenario.yaml"), filepath.Join(dir, "link.svg"), filepath.Join(dir, "old.svg")
	for to, from := range map[string]string{rollout: shortPlan, scenario: broken, old: broken} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(scenario, link); err != nil {
		t.Fatal(err)
	}
	for svg, want := range map[string]string{
		rollout: "is the file that -f reads: give the picture a name of its own",
		filepath.Join(dir, ".", "x", "..", "rollout.yaml"): "is the file that -f reads",
		scenario: "is the file that --scenario reads",
		link:     "is the file that --scenario reads",
	} {
		before := [2]string{fileText(t, rollout), fileText(t, scenario)}
		r := run(t, "", "simulate", "-f", rollout, "--scenario", scenario, "--svg", svg)
		if r.code != 1 || !strings.Contains(r.errOut, "error: --svg "+svg+" "+want) {
			t.Errorf("--svg %s: exit code %d: %s", svg, r.code, r.errOut)
		}
		if after := [2]string{fileText(t, rollout), fileText(t, scenario)}; after != before {
			t.Errorf("--svg %s: a file that is read was written", svg)
		}
	}
	succeed(t, "simulate", "-f", rollout, "--scenario", scenario, "--svg", old)
	if !strings.HasPrefix(fileText(t, old), "<svg") {
		t.Error("an older picture was not replaced")
	}
}

// TestPictureSparesStandardInput is the same for a file at standard input.
func TestPictureSparesStandardInput(t *testing.T) {
	name := filepath.Join(t.TempDir(), "rollout.yaml")
	if err := os.WriteFile(name, []byte(fileText(t, shortPlan)), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out, errOut bytes.Buffer
	code := cli.Main([]string{"simulate", "-f", "-", "--svg", name}, "dev", genericiooptions.IOStreams{In: in, Out: &out, ErrOut: &errOut})
	if code != 1 || !strings.Contains(errOut.String(), "is the file that -f reads") || fileText(t, name) != fileText(t, shortPlan) {
		t.Errorf("exit code %d: %s", code, errOut.String())
	}
}

func fileText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestExpect shows that the expected ending, in any case, is a success, and so is any
// ending without an expectation.
func TestExpect(t *testing.T) {
	succeed(t, "simulate", "-f", shortPlan, "--expect", "PROMOTED")
	succeed(t, "simulate", "-f", shortPlan, "--scenario", broken, "--expect", "rolledback")
	succeed(t, "simulate", "-f", shortPlan, "--scenario", broken)
}

// TestBrokenPipe shows that output that cannot be written is an error.
func TestBrokenPipe(t *testing.T) {
	var errOut bytes.Buffer
	code := cli.Main([]string{"plan", "-f", defaultPlan}, "dev", genericiooptions.IOStreams{In: strings.NewReader(""), Out: brokenPipe{}, ErrOut: &errOut})
	if code != 1 || !strings.Contains(errOut.String(), "write the output: the pipe is broken") {
		t.Errorf("exit code %d, error %q", code, errOut.String())
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("the pipe is broken") }

var _ io.Writer = brokenPipe{}

func decodeJSON(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
}
