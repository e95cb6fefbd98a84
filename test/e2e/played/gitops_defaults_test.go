package played

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestC25DefaultsAreNoDrift: what the CRD fills in is no difference for a tool that asks the
// API server what an apply would change.
func TestC25DefaultsAreNoDrift(t *testing.T) {
	w := newWorld(t)
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: weightedrollout.dev/v1alpha1
kind: WeightedRollout
metadata: {name: web, namespace: `+w.namespace+`}
spec:
  revision: "1"
  routes: [{name: web}]
  stable: {service: web-stable, port: 80}
  canary: {service: web-canary, port: 80}
  plan:
    stages: [{weight: 1}, {weight: 10, soak: 10m}]
    windows: [{days: [Mon]}]
  health: {preset: Traefik, errorRate: {maxPercent: 1}, checks: [{name: a, query: up, min: 0}]}
`), &o.Object); err != nil {
		t.Fatal(err)
	}
	tool := w.newTool("argocd-controller", o)
	tool.mustOnce()
	w.startManager()
	w.await("web", "an attempt", func(wr *v1alpha1.WeightedRollout) bool { return wr.Status.Phase != "" })
	diff, _, err := tool.difference(t.Context(), o, func(map[string]any) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if diff != "" {
		t.Errorf("there is drift (-live +git):\n%s", diff)
	}
}
