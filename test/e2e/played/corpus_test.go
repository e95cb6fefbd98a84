package played

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// corpusDir holds routes of every sort, each with a head that says what is known of it.
const corpusDir = "../../../internal/route/testdata/corpus"

// corpusRoute is one of them.
type corpusRoute struct {
	Stable    *v1alpha1.Track `json:"stable,omitempty"`
	Canary    *v1alpha1.Track `json:"canary,omitempty"`
	RuleNames []string        `json:"ruleNames,omitempty"`
	Managed   []corpusRule    `json:"managed,omitempty"`
	Refused   string          `json:"refused,omitempty"`

	name  string
	route *unstructured.Unstructured
	start *unstructured.Unstructured // as the API server has stored it
}

// corpusRule says which backendRefs of a rule are the pair.
type corpusRule struct{ Rule, Stable, Canary int }

// readCorpus reads the routes into a namespace, each by the name of its file.
func readCorpus(t *testing.T, namespace string) []*corpusRoute {
	t.Helper()
	files, err := filepath.Glob(corpusDir + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files in %s: %v", len(files), corpusDir, err)
	}
	var routes []*corpusRoute
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, body, _ := bytes.Cut(bytes.ReplaceAll(text, []byte("namespace: shop"), []byte("namespace: "+namespace)), []byte("\n---\n"))
		c := &corpusRoute{name: strings.TrimSuffix(filepath.Base(file), ".yaml"), route: &unstructured.Unstructured{}}
		if err := yaml.Unmarshal(head, c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := yaml.Unmarshal(body, &c.route.Object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		c.route.SetName(c.name)
		c.route.SetManagedFields(nil)
		if c.Stable == nil {
			c.Stable = &v1alpha1.Track{Service: "web-stable", Port: 80}
		}
		if c.Canary == nil {
			c.Canary = &v1alpha1.Track{Service: "web-canary", Port: 80}
		}
		routes = append(routes, c)
	}
	return routes
}

// rollout is the rollout over the route, up to 50 percent and without metrics.
func (c *corpusRoute) rollout(namespace string) *v1alpha1.WeightedRollout {
	return newRollout(namespace, c.name, "", stages("10m", "50"), func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Routes = []v1alpha1.RouteReference{{Kind: v1alpha1.RouteKind(c.route.GetKind()), Name: c.name, RuleNames: c.RuleNames}}
		wr.Spec.Stable.Track, wr.Spec.Canary.Track = *c.Stable, *c.Canary
		wr.Spec.Health = &v1alpha1.Health{Disabled: true}
	})
}

// rest is what must not change: all but the pair's weights, our annotation, and what the
// API server and the gateway write.
func (c *corpusRoute) rest(t *testing.T, route *unstructured.Unstructured) map[string]any {
	t.Helper()
	rest := route.DeepCopy()
	for _, h := range c.Managed {
		delete(refOf(t, rest, h.Rule, h.Stable), "weight")
		delete(refOf(t, rest, h.Rule, h.Canary), "weight")
	}
	unstructured.RemoveNestedField(rest.Object, "metadata", "annotations", v1alpha1.ManagedByAnnotation)
	if len(rest.GetAnnotations()) == 0 {
		rest.SetAnnotations(nil)
	}
	for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
		unstructured.RemoveNestedField(rest.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(rest.Object, "status")
	return rest.Object
}

// refOf is a backendRef within a route.
func refOf(t *testing.T, route *unstructured.Unstructured, rule, ref int) map[string]any {
	t.Helper()
	spec, _ := route.Object["spec"].(map[string]any)
	rules, _ := spec["rules"].([]any)
	if rule < len(rules) {
		fields, _ := rules[rule].(map[string]any)
		if refs, _ := fields["backendRefs"].([]any); ref < len(refs) {
			found, _ := refs[ref].(map[string]any)
			return found
		}
	}
	t.Fatalf("%s has no backendRef %d in rule %d", route.GetName(), ref, rule)
	return nil
}

// readRaw reads the route as it is stored now.
func (c *corpusRoute) readRaw(w *world) *unstructured.Unstructured {
	w.t.Helper()
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(c.route.GroupVersionKind())
	w.read(c.name, now)
	return now
}

// check compares the route with the beginning. The canary has the given part of the
// pair's weights in every managed rule, rounded down to a weight.
func (c *corpusRoute) check(w *world, when string, percent int64) {
	w.t.Helper()
	now := c.readRaw(w)
	if diff := cmp.Diff(c.rest(w.t, c.start), c.rest(w.t, now)); diff != "" {
		w.t.Errorf("%s, %s: more than the weights has changed (-before +after):\n%s", c.name, when, diff)
	}
	for _, h := range c.Managed {
		stable, _ := refOf(w.t, now, h.Rule, h.Stable)["weight"].(int64)
		canary, given := refOf(w.t, now, h.Rule, h.Canary)["weight"].(int64)
		if sum := stable + canary; !given || sum == 0 || canary != sum*percent/100 {
			w.t.Errorf("%s, %s: rule %d has the weights %d and %d, want %d percent", c.name, when, h.Rule, stable, canary, percent)
		}
	}
}

// acceptGRPCRoutes does for GRPCRoutes what the played gateway does for HTTPRoutes.
func (w *world) acceptGRPCRoutes(ctx context.Context) {
	for ctx.Err() == nil {
		var list gatewayv1.GRPCRouteList
		if err := w.client.List(ctx, &list, client.InNamespace(w.namespace)); err == nil {
			for i := range list.Items {
				w.acceptGRPCRoute(ctx, &list.Items[i])
			}
		}
		time.Sleep(pollEvery)
	}
}

func (w *world) acceptGRPCRoute(ctx context.Context, r *gatewayv1.GRPCRoute) {
	parents, _ := w.gateway.parents(&gatewayv1.HTTPRoute{ObjectMeta: r.ObjectMeta, Spec: gatewayv1.HTTPRouteSpec{CommonRouteSpec: r.Spec.CommonRouteSpec}})
	if len(r.Status.Parents) > 0 && r.Status.Parents[0].Conditions[0].ObservedGeneration == r.Generation {
		return
	}
	before := r.DeepCopy()
	r.Status.Parents = parents
	// What cannot be written now is tried again at the next look.
	_ = w.client.Status().Patch(ctx, r, client.MergeFrom(before))
}

// TestCorpus: every route of the corpus that the Gateway API's own schema takes goes to
// 50 percent and back, in the API server's own storage, and nothing else in it changes.
func TestCorpus(t *testing.T) {
	w := newWorld(t)
	w.loose = true // the laws are read off first rules only, and these have others
	elsewhere := []string{"apps", "blue", "green", "next"}
	services := map[client.ObjectKey]bool{}
	byKind := map[string]int{}
	var routes []*corpusRoute
	for _, namespace := range elsewhere {
		if err := w.bed.CreateNamespace(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"public", "inside"} {
		if err := w.bed.PlayGateway(t.Context(), w.namespace, name, playedController); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range readCorpus(t, w.namespace) {
		if err := w.client.Create(t.Context(), c.route.DeepCopy()); apierrors.IsInvalid(err) {
			t.Logf("the API server does not take %s: %v", c.name, err)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		c.start = c.readRaw(w)
		for _, track := range []*v1alpha1.Track{c.Stable, c.Canary} {
			namespace := w.namespace
			if track.Namespace != "" {
				namespace = track.Namespace
			}
			if key := (client.ObjectKey{Namespace: namespace, Name: track.Service}); !services[key] {
				services[key] = true
				w.create(newEndpoints(namespace, track.Service, true))
			}
		}
		w.create(c.rollout(w.namespace))
		byKind[c.route.GetKind()]++
		routes = append(routes, c)
	}
	if byKind["HTTPRoute"] < 30 || byKind["GRPCRoute"] < 8 {
		t.Fatalf("too few routes are taken: %v", byKind)
	}
	go w.acceptGRPCRoutes(t.Context())
	w.startManager("--namespaces=" + strings.Join(append(slices.Clone(elsewhere), w.namespace), ","))
	for _, c := range routes {
		w.goAndReturn(c)
	}
}

// coarseRoutes have weights that must be changed by hand before the canary gets any.
var coarseRoutes = []string{"http-pair-cut-off", "http-third-too-large"}

// goAndReturn sees a route to 50 percent, deletes the rollout and sees it back at 0. A
// route that is refused must say so, and is never raised.
func (w *world) goAndReturn(c *corpusRoute) {
	w.t.Helper()
	reason := c.Refused
	if slices.Contains(coarseRoutes, c.name) {
		reason = v1alpha1.ReasonWeightResolution
	}
	if reason != "" {
		w.await(c.name, "stalled with "+reason, func(wr *v1alpha1.WeightedRollout) bool { return isStalled(wr, reason, c.route.GetKind()) })
		c.checkRefused(w)
		return
	}
	w.awaitShare(c.name, "50")
	c.check(w, "at 50 percent", 50)
	w.remove(c.name)
	w.awaitGone(c.name)
	c.check(w, "after the deletion", 0)
	if got, was := c.readRaw(w).GetAnnotations()[v1alpha1.ManagedByAnnotation], c.start.GetAnnotations()[v1alpha1.ManagedByAnnotation]; got != was {
		w.t.Errorf("%s: the annotation is %q, was %q", c.name, got, was)
	}
}

// checkRefused makes sure that no canary has risen.
func (c *corpusRoute) checkRefused(w *world) {
	w.t.Helper()
	now := c.readRaw(w)
	if diff := cmp.Diff(c.rest(w.t, c.start), c.rest(w.t, now)); diff != "" {
		w.t.Errorf("%s, refused: more than the weights has changed (-before +after):\n%s", c.name, diff)
	}
	for _, h := range c.Managed {
		was, _ := refOf(w.t, c.start, h.Rule, h.Canary)["weight"].(int64)
		if is, _ := refOf(w.t, now, h.Rule, h.Canary)["weight"].(int64); is > was {
			w.t.Errorf("%s, refused: the canary has risen from %d to %d", c.name, was, is)
		}
	}
}
