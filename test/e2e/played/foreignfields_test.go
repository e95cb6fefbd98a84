package played

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// rawRoute reads a route with every field that the API server has.
func (w *world) rawRoute(name string) *unstructured.Unstructured {
	w.t.Helper()
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"})
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, route); err != nil {
		w.t.Fatalf("reading HTTPRoute %s: %v", name, err)
	}
	return route
}

// onlyOurs takes away what may differ: the weights in the managed rules (the first,
// if none is named), our annotation, and what the API server and the gateway write.
func onlyOurs(t *testing.T, route *unstructured.Unstructured, managed ...int) map[string]any {
	t.Helper()
	if len(managed) == 0 {
		managed = []int{0}
	}
	route = route.DeepCopy()
	for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
		unstructured.RemoveNestedField(route.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(route.Object, "status")
	unstructured.RemoveNestedField(route.Object, "metadata", "annotations", v1alpha1.ManagedByAnnotation)
	if len(route.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(route.Object, "metadata", "annotations")
	}
	rules, ok, err := unstructured.NestedSlice(route.Object, "spec", "rules")
	if !ok || err != nil {
		t.Fatalf("reading the rules: %v", err)
	}
	for _, i := range managed {
		for _, ref := range rules[i].(map[string]any)["backendRefs"].([]any) {
			delete(ref.(map[string]any), "weight")
		}
	}
	if err := unstructured.SetNestedSlice(route.Object, rules, "spec", "rules"); err != nil {
		t.Fatalf("setting the rules: %v", err)
	}
	return route.Object
}

// onlyWeightsChange checks that no version of a route differs from its first one in
// more than the weights of the managed rules and our annotation.
func (w *world) onlyWeightsChange(name string, managed ...int) {
	w.t.Helper()
	versions := w.routes.versions(name)
	if len(versions) < 2 {
		w.t.Errorf("there are %d versions of route %s, so nothing is proved", len(versions), name)
		return
	}
	first := onlyOurs(w.t, versions[0], managed...)
	for _, v := range versions[1:] {
		if diff := cmp.Diff(first, onlyOurs(w.t, v, managed...)); diff != "" {
			w.t.Errorf("route %s, version %s: more than the weights of rules %v changed (-first +then):\n%s", name, v.GetResourceVersion(), managed, diff)
			return
		}
	}
}

// TestC08ForeignFieldsSurvive: after a run and after a rollback, a route that is
// full of things that the controller does not know differs in nothing but what is
// the controller's.
func TestC08ForeignFieldsSurvive(t *testing.T) {
	w := newWorld(t)
	start := map[string]*unstructured.Unstructured{}
	for _, name := range []string{"promoted", "rolled-back", "deleted"} {
		w.create(foreignRoute(w.namespace, name))
		start[name] = w.rawRoute(name)
	}
	if rule := start["promoted"].Object["spec"].(map[string]any)["rules"].([]any)[0].(map[string]any); rule[foreignField] == nil {
		t.Fatalf("the API server did not keep the foreign field, so the test proves nothing: %v", rule)
	}
	w.prom.set(w.namespace, canaryOf("rolled-back"), traffic{perSecond: 50, failed: 0.25})
	w.rolloutFor("promoted", stages("1s", "10", "50"))
	w.rolloutFor("rolled-back", stages("1s", "10", "50"))
	w.rolloutFor("deleted", stages("10m", "10"))
	w.startManager()
	w.awaitShare("deleted", "10")
	w.remove("deleted")
	w.awaitGone("deleted")
	w.awaitPhase("rolled-back", v1alpha1.PhaseRolledBack)
	w.awaitPhase("promoted", v1alpha1.PhasePromoted)
	w.wantWeights("promoted", "100/0", "90/10", "60/40", "50/50", "20/80", "0/100")
	w.wantWeights("rolled-back", "100/0", "90/10", "100/0")
	w.wantWeights("deleted", "100/0", "90/10", "100/0")
	for name, before := range start {
		after := w.rawRoute(name)
		if diff := cmp.Diff(onlyOurs(t, before), onlyOurs(t, after)); diff != "" {
			t.Errorf("%s: the route changed in more than its weights (-before +after):\n%s", name, diff)
		}
		if _, left := after.GetAnnotations()[v1alpha1.ManagedByAnnotation]; left != (name != "deleted") {
			t.Errorf("%s: our annotation is there: %t", name, left)
		}
	}
}
