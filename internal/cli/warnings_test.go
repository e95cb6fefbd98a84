package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// edited returns a file of the tests with something else in it.
func edited(t *testing.T, file, before, after string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), before) {
		t.Fatalf("%s has no %q", file, before)
	}
	return strings.ReplaceAll(string(text), before, after)
}

// unwrapped takes out the line breaks of a paragraph.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestSimulateWarnsAsPlanDoes shows that a simulation does not hide what keeps the
// rollout in the file from going as it does.
func TestSimulateWarnsAsPlanDoes(t *testing.T) {
	short := filepath.Join(t.TempDir(), "short.yaml")
	if err := os.WriteFile(short, []byte("duration: 10m"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, text, want string }{
		{"coarse weights", edited(t, coarsePlan, "", ""), `Warning: HTTPRoute "search": the weights of shop/search-stable:80 and shop/search-canary:80 in rule 0 of HTTPRoute shop/search add up to 9`},
		{"no matching rule", edited(t, coarsePlan, "search-legacy, port: 80", "search-stable, port: 8080") + "---\n", `Warning: HTTPRoute "search": `},
		{"many doubts", edited(t, doubtfulPlan, "paused: true", "paused: false"), "Warning: spec.plan.stages: every stage waits for a person"},
		{"mode Observe", edited(t, shortPlan, "spec:", "spec:\n  mode: Observe"), "Warning: spec.mode: Observe writes no route"},
		{"no doubt", edited(t, shortPlan, "", ""), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, rps := range [][]string{nil, {"--rps", "20"}} {
				plan := run(t, test.text, append([]string{"plan", "-f", "-"}, rps...)...)
				simulated := run(t, test.text, append([]string{"simulate", "-f", "-", "--exact", "--scenario", short}, rps...)...)
				if plan.code != 0 || simulated.code != 0 {
					t.Fatalf("exit codes %d and %d: %s%s", plan.code, simulated.code, plan.errOut, simulated.errOut)
				}
				if diff := cmp.Diff(plan.errOut, simulated.errOut); diff != "" {
					t.Errorf("with %v (-plan +simulate):\n%s", rps, diff)
				}
				if !strings.Contains(simulated.errOut, test.want) || (test.want == "") != (simulated.errOut == "") {
					t.Errorf("want %q, got\n%s", test.want, simulated.errOut)
				}
			}
		})
	}
	for _, want := range []string{"every rollout gets a rule of its own with the two backends", "begins on Monday, 2026-01-05T09:00:00Z, unless the scenario has another start"} {
		if help := unwrapped(succeed(t, "simulate", "--help").out); !strings.Contains(help, want) {
			t.Errorf("the help does not say %q:\n%s", want, help)
		}
	}
}

// TestPlanOfAStalledRollout shows that nothing is promised for a route on which the
// controller would not start.
func TestPlanOfAStalledRollout(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"coarse weights", edited(t, coarsePlan, "", ""), `It never starts: Stalled with WeightResolution: HTTPRoute "search": the weights of shop/search-stable:80 and`},
		{"no matching rule", edited(t, coarsePlan, "name: search-canary", "name: search-new"), `It never starts: Stalled with NoMatchingRule: HTTPRoute "search": no rule of HTTPRoute shop/search holds both`},
		{"a backend twice", edited(t, coarsePlan, "search-legacy", "search-stable"), `It never starts: Stalled with DuplicateBackendRef: HTTPRoute "search": HTTPRoute shop/search: rule 0 lists shop/search-stable:80 2 times`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := run(t, test.text, "plan", "-f", "-")
			if r.code != 0 {
				t.Errorf("exit code %d: %s", r.code, r.errOut)
			}
			_, headline, _ := strings.Cut(r.out, "\n")
			if !strings.HasPrefix(unwrapped(headline), test.want) {
				t.Errorf("want %q, got\n%s", test.want, r.out)
			}
			if strings.Contains(r.out, "\nPromoted after") || !strings.Contains(r.out, "\nWithout that: Promoted after 12m at the earliest") {
				t.Errorf("an end is promised, or it is not said when it would be:\n%s", r.out)
			}
			if r := run(t, test.text, "plan", "-f", "-", "--strict"); r.code != 1 {
				t.Errorf("exit code %d with --strict, want 1", r.code)
			}
			var plan struct {
				Stalled struct{ Reason, Message string }
			}
			decodeJSON(t, run(t, test.text, "plan", "-f", "-", "-o", "json").out, &plan)
			if !strings.Contains(test.want, "Stalled with "+plan.Stalled.Reason+": ") || plan.Stalled.Message == "" {
				t.Errorf("as data it is %+v", plan.Stalled)
			}
		})
	}
	if out := succeed(t, "plan", "-f", shortPlan).out; strings.Contains(out, "never starts") {
		t.Errorf("a plan without a fault never starts:\n%s", out)
	}
}

// TestPlanWithoutMeasurement shows that no stage is said to prove anything where
// nothing is measured.
func TestPlanWithoutMeasurement(t *testing.T) {
	text := edited(t, shortPlan, "health:", "health:\n    disabled: true")
	out := run(t, text, "plan", "-f", "-", "--rps", "50").out
	if !strings.Contains(out, "\nNo stage proves anything: health.disabled is set, so nothing is measured.\n") {
		t.Errorf("it is not said why there is no table:\n%s", out)
	}
	for _, wrong := range []string{"RISE", "minRequests", "Evidence"} {
		if strings.Contains(out, wrong) {
			t.Errorf("%s is explained, and nothing is measured:\n%s", wrong, out)
		}
	}
	measured := unwrapped(succeed(t, "plan", "-f", shortPlan, "--rps", "50").out)
	for _, want := range []string{"RISE, points", "REQUESTS are those during the stage, the last hour at most", "Back on stable"} {
		if !strings.Contains(measured, want) {
			t.Errorf("want %q in\n%s", want, measured)
		}
	}
}

// TestSimulateObserved shows that a simulation of mode Observe says first that the
// controller would do none of it.
func TestSimulateObserved(t *testing.T) {
	const note = "spec.mode is Observe, in which the controller writes nothing. The simulation runs as Enforce would."
	r := run(t, edited(t, shortPlan, "spec:", "spec:\n  mode: Observe"), "simulate", "-f", "-")
	if lines := strings.Split(r.out, "\n"); r.code != 0 || lines[1] != note {
		t.Errorf("exit code %d, and the second line is %q, want %q", r.code, lines[1], note)
	}
	if out := succeed(t, "simulate", "-f", shortPlan).out; strings.Contains(out, "Observe") {
		t.Errorf("it is said of mode Enforce as well:\n%s", out)
	}
}
