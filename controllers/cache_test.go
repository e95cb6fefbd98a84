package controllers

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// trimmed is an object as the cache keeps it. Trimming it again changes nothing, and the
// object itself is left as it was.
func trimmed[T client.Object](t *testing.T, o T) T {
	t.Helper()
	before := o.DeepCopyObject()
	kept, err := Trim(o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(before, any(o)); diff != "" {
		t.Errorf("the object was changed (-before +after):\n%s", diff)
	}
	again, err := Trim(kept)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(kept, again); diff != "" {
		t.Errorf("trimmed twice (-once +twice):\n%s", diff)
	}
	typed, ok := kept.(T)
	if !ok {
		t.Fatalf("%T became %T", o, kept)
	}
	return typed
}

// foreign are annotations of others.
func foreign(more map[string]string) map[string]string {
	all := map[string]string{"example.com/owner": "team a", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
	maps.Copy(all, more)
	return all
}

// corpusRoutes reads the routes that internal/route is tested with, and the pair of each.
func corpusRoutes(t *testing.T) map[string]corpusRoute {
	t.Helper()
	files, err := filepath.Glob("../internal/route/testdata/corpus/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d routes, %v", len(files), err)
	}
	routes := map[string]corpusRoute{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, body, _ := bytes.Cut(text, []byte("\n---\n"))
		c := corpusRoute{HTTPRoute: &gatewayv1.HTTPRoute{}}
		if strings.HasPrefix(filepath.Base(file), "grpc") {
			c.HTTPRoute, c.GRPCRoute = nil, &gatewayv1.GRPCRoute{}
		}
		if err := yaml.Unmarshal(head, &c); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(body, c.object()); err != nil {
			t.Fatal(err)
		}
		routes[filepath.Base(file)] = c
	}
	return routes
}

// corpusRoute is a route with the pair that is looked for in it.
type corpusRoute struct {
	Stable    *route.Backend       `json:"stable"`
	Canary    *route.Backend       `json:"canary"`
	RuleNames []string             `json:"ruleNames"`
	HTTPRoute *gatewayv1.HTTPRoute `json:"-"`
	GRPCRoute *gatewayv1.GRPCRoute `json:"-"`
}

func (c corpusRoute) object() client.Object {
	if c.GRPCRoute != nil {
		return c.GRPCRoute
	}
	return c.HTTPRoute
}

func (c corpusRoute) pair() route.Pair {
	pair := route.Pair{Stable: route.Backend{Service: "web-stable", Port: 80}, Canary: route.Backend{Service: "web-canary", Port: 80}}
	if c.Stable != nil {
		pair.Stable = *c.Stable
	}
	if c.Canary != nil {
		pair.Canary = *c.Canary
	}
	return pair
}

func shown(o client.Object) *route.Object {
	if g, ok := o.(*gatewayv1.GRPCRoute); ok {
		return route.FromGRPCRoute(g)
	}
	h, _ := o.(*gatewayv1.HTTPRoute)
	return route.FromHTTPRoute(h)
}

// seen is everything that is read from a route.
type seen struct {
	Inspection       route.Inspection
	Generation       route.Acceptance
	Any              route.Acceptance
	Backends, Owners []string
	Writer           string
	Crossing         int
	UID              types.UID
	Patches          []string
}

func sight(t *testing.T, c corpusRoute, o client.Object) seen {
	t.Helper()
	r := shown(o)
	s := seen{
		Inspection: route.Inspect(r, c.RuleNames, c.pair()), Generation: route.Accepted(r, route.ConfirmGeneration, nil), Any: route.Accepted(r, route.ConfirmAccepted, nil),
		Backends: backendsOf(o), Owners: route.Owners(r), Writer: lastWriter(r), Crossing: r.Crossing(c.pair(), nil), UID: r.UID,
	}
	for _, share := range []weights.Share{0, 100, 1234, 5000, 10000} {
		for _, patch := range []func() ([]byte, error){
			func() ([]byte, error) { return s.Inspection.Patch(r, share, "web") },
			func() ([]byte, error) { return s.Inspection.Release(r, &share, "other") },
			func() ([]byte, error) { return s.Inspection.Release(r, nil, "web") },
		} {
			text, err := patch()
			s.Patches = append(s.Patches, fmt.Sprintf("%s %v", text, err))
		}
	}
	return s
}

// A route from the cache is the same to the controller as the whole one: what is found in
// it, what its gateways say, who wrote it last, and each patch.
func TestTrimmedRoutesAreReadTheSame(t *testing.T) {
	times := func(seconds int64) *metav1.Time { return &metav1.Time{Time: time.Unix(seconds, 0)} }
	for name, c := range corpusRoutes(t) {
		for annotated, annotations := range map[string]map[string]string{
			"as it is": c.object().GetAnnotations(), "none": nil, "of others": foreign(nil),
			"managed by us":     foreign(map[string]string{v1alpha1.ManagedByAnnotation: "web"}),
			"managed by others": foreign(map[string]string{v1alpha1.ManagedByAnnotation: "other, third"}),
		} {
			t.Run(name+"/"+annotated, func(t *testing.T) {
				o := c.object()
				o.SetResourceVersion("7")
				o.SetGeneration(3)
				o.SetUID("uid")
				o.SetAnnotations(annotations)
				o.SetManagedFields([]metav1.ManagedFieldsEntry{
					{Manager: "early", Time: times(1), FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)},
					{Manager: "last", Time: times(3)},
					{Manager: "timeless"},
					{Manager: "gateway", Time: times(4), Subresource: "status"},
					{Manager: FieldOwner, Time: times(5)},
					{Manager: "middle", Time: times(2)},
				})
				kept := trimmed(t, o)
				if diff := gocmp.Diff(sight(t, c, o), sight(t, c, kept)); diff != "" {
					t.Errorf("seen (-whole +trimmed):\n%s", diff)
				}
				if got := len(kept.GetManagedFields()); got != 1 {
					t.Errorf("%d managed fields are kept", got)
				}
			})
		}
	}
}

// The rest of what is watched is the same to the controller, too.
func TestTrimmedObjectsAreReadTheSame(t *testing.T) {
	stable, canary := deployment("web-stable", 10, "web:1"), deployment("web-canary", 4, "web:2")
	canary.Spec.Paused, canary.Status.UpdatedReplicas = true, 2
	canary.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "Late", Message: "no quota"}}
	canary.Spec.Template.Annotations = map[string]string{"checksum/config": "abc"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-canary", UID: "set", Generation: 2}}
	set.Spec.Template, set.Spec.Replicas = template("web", "web:2"), new(int32(3))
	set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2))}
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 1, AvailableReplicas: 3}
	scaler := autoscalerFor("web-canary", deploymentKind, "web-canary", new(int32(2)))
	scaler.OwnerReferences = []metav1.OwnerReference{{Kind: "Team", Name: "a"}, {Kind: "ScaledObject", Name: "web", Controller: new(true)}}
	slice := sliceOf("web-canary", "a", "b")
	slice.Endpoints[0].Addresses = []string{"10.0.0.1", "10.0.0.2"}
	slice.Endpoints[1].TargetRef = nil
	slice.Endpoints[1].Conditions.Ready = new(false)
	slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.0.0.9"}}, discoveryv1.Endpoint{})
	statefully := func(wr *v1alpha1.WeightedRollout) { wr.Spec.Canary.Workload.Kind = statefulSetKind }
	for name, tc := range map[string]struct {
		objects []client.Object
		edit    func(*v1alpha1.WeightedRollout)
	}{
		"Deployments":    {[]client.Object{stable, canary}, nil},
		"a StatefulSet":  {[]client.Object{stable, set}, statefully},
		"an autoscaler":  {[]client.Object{stable, canary, scaler}, nil},
		"EndpointSlices": {[]client.Object{stable, canary, slice, sliceOf("web-stable", "c")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			wr := scaling(v1alpha1.CapacityScale)
			if tc.edit != nil {
				tc.edit(wr)
			}
			var whole, kept []client.Object
			for _, o := range tc.objects {
				labels := map[string]string{"app": "web"}
				maps.Copy(labels, o.GetLabels())
				o.SetLabels(labels)
				o.SetAnnotations(foreign(nil))
				whole, kept = append(whole, o), append(kept, trimmed(t, o))
			}
			if diff := gocmp.Diff(read(t, wr, whole), read(t, wr, kept)); diff != "" {
				t.Errorf("observed (-whole +trimmed):\n%s", diff)
			}
		})
	}
}

// reading is what is read of workloads and endpoints, and the patches that follow.
type reading struct {
	Stable, Canary         *rollout.Workload
	StablePods, CanaryPods []string
	Same                   bool
	Patches                map[string]string
}

func read(t *testing.T, wr *v1alpha1.WeightedRollout, objects []client.Object) reading {
	t.Helper()
	copies := make([]client.Object, 0, len(objects))
	for _, o := range objects {
		c, _ := o.DeepCopyObject().(client.Object)
		copies = append(copies, c)
	}
	s := serving(t, copies...)
	got := reading{Patches: map[string]string{}}
	funcs := interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) error {
		data, err := p.Data(o)
		got.Patches[fmt.Sprintf("%T %s", o, o.GetName())] = string(data)
		return err
	}}
	s.intercepted(t, funcs)
	obs := s.observed(wr)
	if err := s.observeEndpoints(t.Context(), wr, &obs); err != nil {
		t.Fatal(err)
	}
	got.Stable, got.Canary, got.StablePods, got.CanaryPods, got.Same = obs.StableWorkload, obs.CanaryWorkload, obs.StablePods, obs.CanaryPods, obs.SameTemplate
	for name, err := range map[string]error{
		"template": s.updateStable(t.Context(), wr, obs),
		"minimum":  s.setMinimum(t.Context(), wr, wr.Spec.Canary.Workload, asked(autoscalerKind, 2, 5)),
	} {
		got.Patches[name] = fmt.Sprint(err)
	}
	return got
}

// sliceOf is an EndpointSlice of a Service with a ready endpoint for each pod.
func sliceOf(service string, pods ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: service + "-1", UID: types.UID(service), Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Port: new(int32(8080))}},
	}
	for i, pod := range pods {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.0.0.%d", i+1)}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod, UID: types.UID(pod), FieldPath: "x"}, NodeName: new("node"), Zone: new("zone"),
		})
	}
	return s
}

// A patch that is computed from what the cache keeps removes nothing that it left out.
func TestPatchOfATrimmedRolloutLeavesTheRest(t *testing.T) {
	stored := rolloutOf("web", 0, httpRef("web"))
	stored.Annotations = foreign(map[string]string{v1alpha1.AbortAnnotation: "1"})
	stored.Labels, stored.Finalizers = map[string]string{"app": "web"}, []string{"example.com/theirs"}
	stored.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "app", UID: "app"}}
	s := serving(t, append(bothRoutes(), stored)...)
	whole := &v1alpha1.WeightedRollout{}
	s.get(whole, "web")
	wr := trimmed(t, whole)
	d := rollout.Decision{Writes: rollout.WriteAll}
	d.Status.Attempt = 2
	if err := s.ensureFinalizer(t.Context(), wr, d); err != nil {
		t.Fatal(err)
	}
	s.get(wr, "web")
	for _, key := range slices.Sorted(maps.Keys(stored.Annotations)) {
		if got := wr.Annotations[key]; got != stored.Annotations[key] {
			t.Errorf("annotation %s is %q, want %q", key, got, stored.Annotations[key])
		}
	}
	if want := []string{"example.com/theirs", v1alpha1.Finalizer}; !slices.Equal(wr.Finalizers, want) || wr.Labels["app"] != "web" || len(wr.OwnerReferences) != 1 {
		t.Errorf("finalizers %v, labels %v, owners %v", wr.Finalizers, wr.Labels, wr.OwnerReferences)
	}
	wr.DeletionTimestamp = &wr.CreationTimestamp
	if err := s.removeFinalizer(t.Context(), trimmed(t, wr)); err != nil {
		t.Fatal(err)
	}
	s.get(wr, "web")
	if !slices.Equal(wr.Finalizers, stored.Finalizers) || len(wr.Annotations) != len(stored.Annotations) {
		t.Errorf("in the end: finalizers %v, annotations %v", wr.Finalizers, wr.Annotations)
	}
}

// Our annotation is added to those of others, whatever of them is in the cache.
func TestPatchOfATrimmedRouteLeavesTheRest(t *testing.T) {
	wr := rolloutOf("web", 0, httpRef("web"))
	for name, annotations := range map[string]map[string]string{"none": nil, "of others": foreign(nil)} {
		t.Run(name, func(t *testing.T) {
			objects := bothRoutes()
			objects[0].SetAnnotations(annotations)
			s := serving(t, append(objects, wr)...)
			h := &gatewayv1.HTTPRoute{}
			s.get(h, "web")
			kept := trimmed(t, h)
			obs := observation{routes: []*route.Object{route.FromHTTPRoute(kept)}, refs: wr.Spec.Routes}
			obs.Routes = append(obs.Routes, s.observeRoute(wr, wr.Spec.Routes[0], obs.routes[0]))
			if err := s.writeRoutes(t.Context(), wr, obs, rollout.Decision{Writes: rollout.WriteAll, Share: 1000}); err != nil {
				t.Fatal(err)
			}
			s.get(h, "web")
			want := map[string]string{v1alpha1.ManagedByAnnotation: "web"}
			maps.Copy(want, annotations)
			if diff := gocmp.Diff(want, h.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever is not one of the kinds goes into the cache as it came.
func TestTrimLeavesTheUnknown(t *testing.T) {
	for _, o := range []any{nil, "text", &corev1.Secret{}, toolscache.DeletedFinalStateUnknown{Key: "shop/web", Obj: &gatewayv1.HTTPRoute{}}} {
		if got, err := Trim(o); err != nil || !gocmp.Equal(got, o) {
			t.Errorf("%T became %v, %v", o, got, err)
		}
	}
}

// OwnAnnotations has every annotation that the API names.
func TestOwnAnnotationsAreAll(t *testing.T) {
	files, err := filepath.Glob("../api/v1alpha1/*.go")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) == 0 || !strings.HasSuffix(spec.Names[0].Name, "Annotation") {
				return true
			}
			named++
			lit, _ := spec.Values[0].(*ast.BasicLit)
			if key, err := strconv.Unquote(lit.Value); err != nil || !slices.Contains(v1alpha1.OwnAnnotations(), key) {
				t.Errorf("%s is not one of OwnAnnotations (%v)", spec.Names[0].Name, err)
			}
			return true
		})
	}
	if named < 3 {
		t.Errorf("%d annotations are named", named)
	}
}
