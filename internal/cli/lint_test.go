package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weightedrollout/weightedrollout/internal/cli"
)

const (
	badRollouts = `apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: weightedrollout.dev/v1alpha1
kind: WeightedRollout
metadata: {name: a, namespace: one}
spec:
  revision: "1"
  routes: [{name: a}]
  stable: {service: s, port: 80}
  canary: {service: s, port: 80}
  plan: {stages: [{weight: 10, soak: 1s}, {weight: 5}]}
  nonsense: true
---
apiVersion: weightedrollout.dev/v1alpha1
kind: WeightedRollout
metadata: {name: a, namespace: two}
spec:
  revision: "1"
  revision: "2"
  routes: [{name: a}]
  stable: {service: s, port: 80}
  canary: {service: c, port: 80}
  health: {preset: Traefik, errorRate: {maxPercent: 1}}
`
	listed = `{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "weightedrollout.dev/v1alpha1", "kind": "WeightedRollout", "metadata": {"name": "b"}, "spec": {"mode": "Sometimes"}},
  {"apiVersion": "v1", "kind": "ConfigMap"}]}`
	newerVersion = "apiVersion: weightedrollout.dev/v9\nkind: WeightedRollout\nmetadata: {name: c}\n"
)

// TestLint: every problem is told with its file, document, field and cure.
func TestLint(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"bad.yaml": badRollouts, "list.json": listed, "newer.yaml": newerVersion, "none.yaml": "kind: Service\n", "broken.yaml": "a: [", "empty.yaml": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := run(t, "", "lint", "-f", "bad.yaml", "-f", "list.json", "-f", "newer.yaml", "-f", "none.yaml", "-f", "broken.yaml", "-f", "empty.yaml", "-o", "json")
	if r.code != 1 {
		t.Errorf("exit code %d: %s", r.code, r.errOut)
	}
	var found cli.Lint
	decodeJSON(t, r.out, &found)
	counted := map[string]int{}
	for _, r := range found.Remarks {
		counted[r.Severity]++
	}
	// Of list.json's rollout some rules cannot be checked, which is no error of its own.
	if found.Rollouts != 4 || found.Errors != counted["error"] || found.Warnings != counted["warning"] || counted["note"] != 1 {
		t.Errorf("%d rollouts, %d errors, %d warnings, %d remarks", found.Rollouts, found.Errors, found.Warnings, len(found.Remarks))
	}
	for _, want := range []struct {
		file     string
		document int
		object   string
		says     string
	}{
		{"bad.yaml", 2, "a", `unknown field "spec.nonsense": remove it or correct its name`},
		{"bad.yaml", 2, "a", "spec.health is required"},
		{"bad.yaml", 2, "a", "name the same Service and port"},
		{"bad.yaml", 2, "a", "must rise strictly"},
		{"bad.yaml", 3, "a", `leave it once`},
		{"list.json", 1, "b", "spec.mode"},
		{"newer.yaml", 1, "c", "this program knows only apiVersion"},
		{"none.yaml", 0, "", "holds no WeightedRollout"},
		{"broken.yaml", 0, "", "YAML"},
		{"empty.yaml", 0, "", "holds no WeightedRollout"},
	} {
		ok := false
		for _, got := range found.Remarks {
			ok = ok || got.File == want.file && got.Document == want.document && got.Object == want.object && got.Severity == "error" && strings.Contains(got.Message, want.says)
		}
		if !ok {
			t.Errorf("nothing is said of %+v:\n%s", want, r.out)
		}
	}
}

func TestLintPasses(t *testing.T) {
	r := succeed(t, "lint", "-f", "../../config/samples/first.yaml", "-f", defaultPlan)
	if !strings.Contains(r.out, "2 WeightedRollouts checked: 0 errors") {
		t.Errorf("it says %q", r.out)
	}
	text, err := os.ReadFile(defaultPlan)
	if err != nil {
		t.Fatal(err)
	}
	if r := run(t, string(text), "lint", "-f", "-"); r.code != 0 || !strings.Contains(r.out, "1 WeightedRollout checked") {
		t.Errorf("of standard input it says %q, %q", r.out, r.errOut)
	}
}

// TestLintWarns: what plan warns of, lint does too; with --strict it fails. What keeps a
// rollout from starting at all is an error.
func TestLintWarns(t *testing.T) {
	plan := succeed(t, "plan", "-f", doubtfulPlan, "--rps", "2")
	warnings := strings.Count(plan.errOut, "Warning: ") - 1
	r := run(t, "", "lint", "-f", doubtfulPlan, "--rps", "2")
	if r.code != 1 || warnings < 5 || strings.Count(r.out, ": warning\n") != warnings || strings.Count(r.out, "it never starts: WeightResolution") != 1 || !strings.Contains(r.out, "document 1, WeightedRollout ") {
		t.Errorf("plan has %d warnings beside the one that keeps it from starting, lint says\n%s", warnings, r.out)
	}
	const observed = "../../config/samples/observe.yaml"
	if r := succeed(t, "lint", "-f", observed); !strings.Contains(r.out, "0 errors, 1 warning") {
		t.Errorf("it says\n%s", r.out)
	}
	if r := run(t, "", "lint", "-f", observed, "--strict"); r.code != 1 || r.errOut != "" {
		t.Errorf("strictly, the exit code is %d, %q", r.code, r.errOut)
	}
}

// TestLintNotes: what is left unchecked is told, and is no error beside the one that it
// comes of.
func TestLintNotes(t *testing.T) {
	r := run(t, edited(t, shortPlan, "spec:", "spec:\n  paused: 7"), "lint", "-f", "-")
	if r.code != 1 || strings.Count(r.out, ": note\n") != 1 || !strings.Contains(unwrapped(r.out), "note some validation rules were not checked") || !strings.Contains(r.out, "1 error, 0 warnings.") {
		t.Errorf("exit code %d\n%s", r.code, r.out)
	}
}

// TestLintFindsAMisspeltRoute: a rollout whose route is not in the files, while another one
// there holds its backends, is likely to be about that one.
func TestLintFindsAMisspeltRoute(t *testing.T) {
	const first = "../../config/samples/first.yaml"
	const says = `spec.routes[0].name: no route "chekout" is in the files, and HTTPRoute "checkout" there holds both backends: correct the name`
	text := edited(t, first, "- name: checkout\n  stable:", "- name: chekout\n  stable:")
	if r := run(t, text, "lint", "-f", "-"); r.code != 0 || !strings.Contains(unwrapped(r.out), says) || !strings.Contains(r.out, "1 warning.") {
		t.Errorf("lint says\n%s", r.out)
	}
	if r := run(t, text, "plan", "-f", "-", "--strict"); r.code != 1 || strings.Count(r.errOut, "Warning: "+says) != 1 {
		t.Errorf("plan says\n%s", r.errOut)
	}
	// The rollout and the route in a file each, named as they should be and not.
	for file, want := range map[string]int{text: 1, edited(t, first, "", ""): 0} {
		dir := t.TempDir()
		rollout, others, _ := strings.Cut(file, "\n---\n")
		for name, text := range map[string]string{"rollout.yaml": rollout, "route.yaml": others} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if r := succeed(t, "lint", "-f", dir); strings.Count(unwrapped(r.out), "no route ") != want {
			t.Errorf("of two files lint says\n%s", r.out)
		}
	}
}

// TestLintFolder: of a folder the files in it are checked, and those that hold other things
// are passed over.
func TestLintFolder(t *testing.T) {
	r := succeed(t, "lint", "-f", "../../config/samples")
	samples, err := filepath.Glob("../../config/samples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// Each holds one, apart from kustomization.yaml.
	if want := fmt.Sprintf("%d WeightedRollouts checked: 0 errors", len(samples)-1); !strings.Contains(r.out, want) {
		t.Errorf("it does not say %q:\n%s", want, r.out)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "below.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"notes.txt": "a: [", "other.yml": "kind: Service\n", "below.yaml/bad.yaml": badRollouts} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := run(t, "", "lint", "-f", dir, "--width", "1000"); r.code != 1 || !strings.Contains(r.out, "no WeightedRollout is in the 1 file of the folder") || !strings.Contains(r.out, "1 error,") {
		t.Errorf("of a folder without one: exit code %d, %q, %q", r.code, r.out, r.errOut)
	}
	for name, text := range map[string]string{"bad.json": "{", "list.json": listed} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := run(t, "", "lint", "-f", dir); r.code != 1 || !strings.Contains(r.out, "bad.json: error") || !strings.Contains(r.out, `list.json, document 1, WeightedRollout "b": error`) || strings.Contains(r.out, "bad.yaml") {
		t.Errorf("of a folder with bad ones: exit code %d, %q, %q", r.code, r.out, r.errOut)
	}
	for _, args := range [][]string{{"plan", "-f", dir}, {"simulate", "-f", dir}, {"simulate", "-f", defaultPlan, "--scenario", dir}} {
		if r := run(t, "", args...); r.code != 1 || strings.Count(r.errOut, dir) != 1 || !strings.Contains(r.errOut, "is a folder: name a file in it") {
			t.Errorf("%q: exit code %d, %q", args, r.code, r.errOut)
		}
	}
}

func TestLintErrors(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"no file":      {nil, "name the files to check with -f"},
		"missing file": {[]string{"-f", "/nonexistent"}, "open /nonexistent"},
		"no traffic":   {[]string{"-f", defaultPlan, "--rps", "-1"}, "--rps -1 is out of range"},
		"a format":     {[]string{"-f", defaultPlan, "-o", "xml"}, "there is no output format"},
	} {
		if r := run(t, "", append([]string{"lint"}, test.args...)...); r.code != 1 || !strings.Contains(r.errOut, test.says) {
			t.Errorf("%s: exit code %d, %q", name, r.code, r.errOut)
		}
	}
}
