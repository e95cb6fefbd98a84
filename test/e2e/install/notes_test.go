package install

import (
	"strings"
	"testing"
)

// TestNotes reads what helm install prints, against clusters with and without the Gateway
// API.
func TestNotes(t *testing.T) {
	bed := cluster(t)
	const (
		noAddress, noGateway = "prometheus.address is not set", "no HTTPRoutes"
		noRollout, noReader  = "no rollout can work", "metrics.readers is empty"
	)
	tests := map[string]struct {
		args    []string
		want    []string
		wantNot []string
	}{
		"a bare cluster": {[]string{"--dry-run=client"}, []string{noAddress, noGateway, "kubectl get wr -A"}, []string{noRollout, noReader}},
		"no Prometheus at all": {
			[]string{"--dry-run=client", "--set-json", "metricsAddressAllow=[]"}, []string{noRollout}, []string{"Every rollout must name"},
		},
		"a Prometheus of the controller alone": {
			[]string{"--dry-run=client", "--set-json", "metricsAddressAllow=[]", "--set", "prometheus.address=http://prometheus"}, nil, []string{noRollout, noAddress},
		},
		"a monitor without a right": {
			[]string{"--dry-run=client", "--set", "serviceMonitor.enabled=true"}, []string{noReader, "notes-weightedrollout-metrics-reader"}, nil,
		},
		"a monitor with a right": {
			[]string{"--dry-run=client", "--set", "serviceMonitor.enabled=true,metrics.readers[0].namespace=monitoring,metrics.readers[0].name=prometheus"}, nil, []string{noReader},
		},
		"a monitor with a token": {
			[]string{"--dry-run=client", "--set", "serviceMonitor.enabled=true,serviceMonitor.bearerTokenSecret.name=scraper"}, nil, []string{noReader},
		},
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
