package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/cli"
)

// TestErrorsNameThePlace shows that what is wrong with an object is told with its file
// and its document, by all commands that read one.
func TestErrorsNameThePlace(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	const before = "# nothing\n---\nkind: Service\n---\n"
	const valid = `apiVersion: weightedrollout.dev/v1alpha1
kind: WeightedRollout
metadata: {name: web}
spec:
  revision: "1"
  routes: [{name: web}]
  stable: {service: web-stable, port: 80}
  canary: {service: web-canary, port: 80}
  health: {preset: Traefik, errorRate: {maxPercent: 1}}
`
	for name, test := range map[string]struct{ text, says string }{
		"a field of the wrong type":    {strings.Replace(valid, `"1"`, "1.10", 1), `, document 2: WeightedRollout "web" is invalid: spec.revision: `},
		"a workload that is none":      {strings.Replace(valid, "web-canary,", "web-canary, workload: web,", 1), "write it as {name: web}"},
		"an unknown time zone":         {valid + "  plan: {windows: [{timeZone: ET}]}\n", `, document 2, WeightedRollout "web": spec.plan.windows[0].timeZone: "ET" is not in the IANA time zone database: write a name such as Europe/Berlin, America/New_York or UTC`},
		"another version":              {strings.Replace(valid, "v1alpha1", "v9", 1), `, document 2: WeightedRollout "web" (weightedrollout.dev/v9): this program knows only`},
		"a document that is no object": {valid + "---\n- 1\n", ": document 3 is no object"},
		"two of the name":              {valid + "---\n" + valid, "(document 2, document 3): leave one of them"},
	} {
		if err := os.WriteFile("web.yaml", []byte(before+test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"plan", "simulate"} {
			for file, stdin := range map[string]string{"web.yaml": "", "-": before + test.text} {
				title := strings.Replace(file, "-", "standard input", 1)
				r := run(t, stdin, command, "-f", file, "--name", "web")
				if r.code != 1 || !strings.HasPrefix(r.errOut, "error: "+title) || !strings.Contains(r.errOut, test.says) {
					t.Errorf("%s, %s -f %s: exit code %d, %q does not say %q", name, command, file, r.code, r.errOut, test.says)
				}
			}
		}
	}
}

// TestLintLooksAcrossFiles: a reference of the wrong kind is found where the route is in
// another of the files, in whichever order they come.
func TestLintLooksAcrossFiles(t *testing.T) {
	dir := t.TempDir()
	rollout := edited(t, shortPlan, "", "")
	const grpc = "apiVersion: gateway.networking.k8s.io/v1\nkind: GRPCRoute\nmetadata: {name: search}\n"
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := write("rollout.yaml", rollout), write("a-route.yaml", grpc)
	const says = `"search" is a GRPCRoute in the files`
	for _, args := range [][]string{{"-f", a, "-f", b}, {"-f", dir}} {
		var found cli.Lint
		decodeJSON(t, run(t, "", append([]string{"lint", "-o", "json"}, args...)...).out, &found)
		told := 0
		for _, r := range found.Remarks {
			if strings.Contains(r.Message, says) && r.Severity == "warning" && r.File == a {
				told++
			}
		}
		if told != 1 {
			t.Errorf("lint %q says it %d times: %+v", args, told, found.Remarks)
		}
	}
	if r := succeed(t, "lint", "-f", a); strings.Contains(r.out, "GRPCRoute") {
		t.Errorf("without the route it says\n%s", r.out)
	}
	http := write("http.yaml", strings.Replace(grpc, "GRPC", "HTTP", 1))
	if r := run(t, "", "lint", "-f", a, "-f", b, "-f", http); strings.Contains(unwrapped(r.out), says) {
		t.Errorf("beside an HTTPRoute it says\n%s", r.out)
	}
	if r := run(t, rollout+"---\n"+grpc, "plan", "-f", "-"); !strings.Contains(r.errOut, "Warning: spec.routes[0].kind: "+says) {
		t.Errorf("plan says %q", r.errOut)
	}
}

// TestOfficeHours shows that the scenario of the docs has its windows and its commands
// play their parts.
func TestOfficeHours(t *testing.T) {
	r := succeed(t, "simulate", "-f", "../../config/samples/workloads.yaml", "--scenario", "../../config/samples/scenarios/office-hours.yaml", "--exact", "-o", "json")
	var result struct {
		Outcome struct{ Phase v1alpha1.Phase }
		Stages  []struct {
			Position string
			EndedAt  float64
		}
	}
	decodeJSON(t, r.out, &result)
	const hour = 3600
	// The command ends the first stage, the morning's window the second one, and the
	// approval the third.
	want := map[string]float64{"1/4": hour / 3, "2/4": 17 * hour, "3/4": 19 * hour}
	for _, s := range result.Stages {
		if at, ok := want[s.Position]; ok && s.EndedAt != at {
			t.Errorf("stage %s ended after %g s, want %g", s.Position, s.EndedAt, at)
		}
	}
	if result.Outcome.Phase != v1alpha1.PhasePromoted || len(result.Stages) != 4 {
		t.Errorf("it ended as %+v", result)
	}
}
