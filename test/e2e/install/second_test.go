package install

import (
	"strings"
	"testing"
)

// TestNamesOfAnyRelease: Helm takes dots in the name of a release, and a Service takes none.
func TestNamesOfAnyRelease(t *testing.T) {
	bed := cluster(t)
	for _, name := range []string{"a.b.c", "weightedrollout.prod", "x-9.0", strings.Repeat("long.", 10) + "end"} {
		t.Run(name, func(t *testing.T) {
			text := mustRun(t, nil, "helm", "template", name, chart, "--namespace", system)
			out, err := commandWith(t.Context(), bed, text, "kubectl", "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "--warnings-as-errors", "-f", "-")
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	const digit = "1.2"
	if _, err := command(t.Context(), nil, "helm", "template", digit, chart); err == nil || !strings.Contains(err.Error(), "begins with a digit") {
		t.Errorf("%s: %v, want it refused for its first letter", digit, err)
	}
	mustRun(t, nil, "helm", "template", digit, chart, "--set", "fullnameOverride=other")
}

// TestASecondReleaseInANamespace would share the lease with the first one, and never work.
// The first one here is that of config/default.
func TestASecondReleaseInANamespace(t *testing.T) {
	bed := cluster(t)
	if err := bed.CreateNamespace(t.Context(), "elsewhere"); err != nil {
		t.Fatal(err)
	}
	const refusal = "the namespace " + system + " has a controller already, the Deployment weightedrollout-manager"
	tests := map[string]struct {
		args    []string
		refusal string
	}{
		"another one":               {[]string{"second", chart, "--namespace", system}, refusal},
		"with part of its name":     {[]string{"weightedrollout.second", chart, "--namespace", system}, refusal},
		"another namespace":         {[]string{"second", chart, "--namespace", "elsewhere"}, ""},
		"in place of the first one": {[]string{release, chart, "--namespace", system, "--take-ownership"}, ""},
		"the cluster is not asked":  {[]string{"second", chart, "--namespace", system, "--dry-run=client"}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"install"}, tc.args...)
			if !strings.Contains(strings.Join(args, " "), "--dry-run") {
				args = append(args, "--dry-run=server")
			}
			args = append(args, "--set", "crds.enabled=false")
			_, err := command(t.Context(), bed, "helm", args...)
			if tc.refusal == "" && err != nil || tc.refusal != "" && (err == nil || !strings.Contains(err.Error(), tc.refusal)) {
				t.Errorf("%v, want the refusal %q", err, tc.refusal)
			}
		})
	}
}
