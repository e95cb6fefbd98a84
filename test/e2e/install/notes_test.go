package install

import (
	"maps"
	"strings"
	"testing"
)

// TestNotes reads what helm install prints, against clusters with and without the Gateway
// API.
func TestNotes(t *testing.T) {
	bed := cluster(t)
	const noAddress, noGateway = "prometheus.address is not set", "no HTTPRoutes"
	tests := map[string]struct {
		args    []string
		want    []string
		wantNot []string
	}{
		"a bare cluster": {[]string{"--dry-run=client"}, []string{noAddress, noGateway, "kubectl get wr -A"}, nil},
		"a cluster with the Gateway API": {
			[]string{"--dry-run=server", "--set", "prometheus.address=http://prometheus.monitoring:9090", "--set", "crds.enabled=false"},
			[]string{"kubectl rollout status deployment/notes-weightedrollout-manager -n notes"}, []string{noAddress, noGateway},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out := mustRun(t, bed, "helm", append([]string{"install", "notes", chart, "--namespace", "notes", "--create-namespace"}, tc.args...)...)
			_, notes, _ := strings.Cut(out, "NOTES:")
			for _, text := range tc.want {
				if !strings.Contains(notes, text) {
					t.Errorf("the notes do not say %q:\n%s", text, notes)
				}
			}
			for _, text := range tc.wantNot {
				if strings.Contains(notes, text) {
					t.Errorf("the notes say %q:\n%s", text, notes)
				}
			}
		})
	}
}

// TestOldClustersAreRefused: older API servers estimate the cost of the CRD's rules higher
// than they allow.
func TestOldClustersAreRefused(t *testing.T) {
	for version, ok := range map[string]bool{"1.33.9": false, "1.34.0": true, "1.34.1-gke.100": true, "1.37.0": true} {
		_, err := command(t.Context(), nil, "helm", "template", release, chart, "--kube-version", version)
		if (err == nil) != ok {
			t.Errorf("Kubernetes %s: %v", version, err)
		}
	}
}

// TestHooksComeInOrder looks at what helm runs when the release is uninstalled.
func TestHooksComeInOrder(t *testing.T) {
	for keep, want := range map[bool]map[string]string{
		true:  {"weightedrollout-stand-down": "stand-down --timeout=5m", "weightedrollout-stand-down-finalizers": "stand-down --finalizers"},
		false: {"weightedrollout-stand-down": "stand-down --timeout=5m --delete"},
	} {
		all := objects(t, render(t, map[string]any{"crds": map[string]any{"keep": keep}}, "--show-only", "templates/uninstall.yaml"))
		got, weights := map[string]string{}, map[string]string{}
		for _, u := range all {
			a := u.GetAnnotations()
			if a["helm.sh/hook"] == "" || a["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" {
				t.Errorf("%s %s has the annotations %v", u.GetKind(), u.GetName(), a)
			}
			weights[u.GetKind()] = a["helm.sh/hook-weight"]
			if u.GetKind() == "Job" {
				got[u.GetName()] = strings.Join(args(t, u), " ")
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("keep %t: the Jobs are %v, want %v", keep, got, want)
		}
		if want := (map[string]string{"ServiceAccount": "-10", "ClusterRole": "-10", "ClusterRoleBinding": "-5", "Job": "0"}); !maps.Equal(weights, want) {
			t.Errorf("keep %t: the weights are %v, want %v", keep, weights, want)
		}
	}
}
