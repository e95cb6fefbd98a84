package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/workload"
)

// apiServer stands between a Reconciler and the objects that it reads and writes. It
// serves the scale of Deployments, which the fake client cannot patch.
type apiServer struct {
	*Reconciler
	t *testing.T
	// wrote names every write, refused or not: "HTTPRoute web", "scale of web-canary".
	wrote []string
	// refuses says what to answer to a write.
	refuses map[string]error
	// scale is the answer to whoever reads a scale; nil: what is stored.
	scale error
}

func serving(t *testing.T, objects ...client.Object) *apiServer {
	t.Helper()
	s := &apiServer{Reconciler: reconcilerWith(t, objects...), t: t, refuses: map[string]error{}}
	s.intercepted(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			gvk, err := c.GroupVersionKindFor(o)
			if err != nil {
				return err
			}
			if err := s.note(gvk.Kind + " " + o.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourceGet: func(ctx context.Context, c client.Client, name string, o, into client.Object, opts ...client.SubResourceGetOption) error {
			if s.scale != nil {
				return s.scale
			}
			copied, ok := o.DeepCopyObject().(client.Object)
			if !ok {
				return fmt.Errorf("%T is no object", o)
			}
			untyped, ok := into.(*unstructured.Unstructured)
			if !ok {
				return c.SubResource(name).Get(ctx, copied, into, opts...)
			}
			// An API server answers in whatever form is asked for; the fake has one only.
			typed := &autoscalingv1.Scale{}
			err := c.SubResource(name).Get(ctx, copied, typed, opts...)
			if err == nil {
				untyped.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
			}
			return err
		},
		SubResourcePatch: s.patchSubResource,
	})
	return s
}

func (s *apiServer) note(write string) error {
	s.wrote = append(s.wrote, write)
	return s.refuses[write]
}

// patchSubResource takes a status as it is, and patches a scale as the API server does:
// it changes the replicas of the workload, if the scale is still the one that was read.
func (s *apiServer) patchSubResource(ctx context.Context, c client.Client, name string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	if err := s.note(name + " of " + o.GetName()); err != nil || name != "scale" {
		return err
	}
	options := client.SubResourcePatchOptions{}
	options.ApplyOptions(opts)
	body, ok := options.SubResourceBody.(*autoscalingv1.Scale)
	if !ok {
		return fmt.Errorf("the body is %T", options.SubResourceBody)
	}
	d, stored := &appsv1.Deployment{}, &autoscalingv1.Scale{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), d); err != nil {
		return err
	}
	if err := c.SubResource("scale").Get(ctx, d, stored); err != nil {
		return err
	}
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	patched := patchedScale(s.t, stored, data)
	if patched.ResourceVersion != d.ResourceVersion {
		return conflict("deployments", d.Name)
	}
	d.Spec.Replicas = &patched.Spec.Replicas
	if err := c.Update(ctx, d); err != nil {
		return err
	}
	return c.SubResource("scale").Get(ctx, d, body)
}

func patchedScale(t *testing.T, stored *autoscalingv1.Scale, patch []byte) *autoscalingv1.Scale {
	t.Helper()
	before, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	after, err := steps.Apply(before)
	if err != nil {
		t.Fatal(err)
	}
	patched := &autoscalingv1.Scale{}
	if err := json.Unmarshal(after, patched); err != nil {
		t.Fatal(err)
	}
	return patched
}

func forbidden(resource, name string) error {
	return apierrors.NewForbidden(appsv1.Resource(resource), name, errors.New("not allowed"))
}

func conflict(resource, name string) error {
	return apierrors.NewConflict(appsv1.Resource(resource), name, errors.New("it was changed"))
}

// deployment is one that has rolled out, of so many replicas.
func deployment(name string, replicas int32, image string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Generation: 3},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Template: template(name, image)},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas, ReadyReplicas: replicas},
	}
}

func template(app, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
	}
}

// autoscalerFor scales a workload between lowest and 20 replicas.
func autoscalerFor(name, kind, target string, lowest *int32) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("hpa-" + name)},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: kind, Name: target},
			MinReplicas:    lowest, MaxReplicas: 20,
		},
	}
}

// scaling is a rollout of both Deployments.
func scaling(capacity v1alpha1.CapacityMode, routes ...v1alpha1.RouteReference) *v1alpha1.WeightedRollout {
	wr := rolloutOf("web", 0, routes...)
	wr.Spec.Stable.Workload = &v1alpha1.WorkloadReference{Name: "web-stable"}
	wr.Spec.Canary.Workload = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web-canary"}
	wr.Spec.Canary.Capacity = capacity
	return wr
}

// observed reads what a pass that acts needs.
func (s *apiServer) observed(wr *v1alpha1.WeightedRollout) observation {
	s.t.Helper()
	obs := observeRoutes(s.t, s.Reconciler, wr)
	if fresh, err := s.observeWorkloads(s.t.Context(), wr, &obs); err != nil || !fresh {
		s.t.Fatalf("fresh %v, %v", fresh, err)
	}
	return obs
}

func (s *apiServer) get(into client.Object, name string) {
	s.t.Helper()
	if err := s.Client.Get(s.t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, into); err != nil {
		s.t.Fatal(err)
	}
}

// replicas is what a kind has now: a Deployment's replicas, or an autoscaler's minimum.
func (s *apiServer) replicas(kind string) int32 {
	s.t.Helper()
	if kind == autoscalerKind {
		h := &autoscalingv2.HorizontalPodAutoscaler{}
		s.get(h, "web-canary")
		return workload.MinReplicas(h)
	}
	d := &appsv1.Deployment{}
	s.get(d, "web-canary")
	return *d.Spec.Replicas
}

func asked(kind string, from, to int32) rollout.Scale {
	return rollout.Scale{Track: v1alpha1.TrackCanary, Kind: kind, Name: "web-canary", From: from, To: to}
}

func TestWorkloadIsRead(t *testing.T) {
	ready, set := deployment("web", 4, "web:2"), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 2}}
	set.Spec.Template = template("web", "web:2")
	behind := deployment("web", 4, "web:2")
	behind.Generation = 4
	foreign := autoscalerFor("h", "Deployment", "web", nil)
	foreign.Namespace = "apps"
	one, two := autoscalerFor("b", "Deployment", "web", new(int32(2))), autoscalerFor("a", "Deployment", "web", nil)
	revision := workload.Revision(&ready.Spec.Template)
	read := rollout.Workload{Kind: "Deployment", Name: "web", Generation: 3, Replicas: 4, Revision: revision, WriteError: "refused"}
	with := func(edit func(*rollout.Workload)) *rollout.Workload { w := read; edit(&w); return &w }
	ref := &v1alpha1.WorkloadReference{Name: "web"}
	for _, tc := range []struct {
		name     string
		objects  []client.Object
		ref      *v1alpha1.WorkloadReference
		capacity v1alpha1.CapacityMode
		want     *rollout.Workload
	}{
		{"none", []client.Object{ready}, nil, v1alpha1.CapacityCheck, nil},
		{"a Deployment", []client.Object{ready, foreign, autoscalerFor("s", "StatefulSet", "web", nil)}, ref, v1alpha1.CapacityCheck, &read},
		{"one that has not rolled out", []client.Object{behind}, ref, v1alpha1.CapacityCheck, with(func(w *rollout.Workload) {
			w.Generation, w.Unready, w.Outdated = 4, "generation 4 has not been observed yet", "generation 4 has not been observed yet"
		})},
		{
			"a StatefulSet", []client.Object{ready, set}, &v1alpha1.WorkloadReference{Kind: "StatefulSet", Name: "web"}, v1alpha1.CapacityCheck,
			with(func(w *rollout.Workload) {
				w.Kind, w.Generation, w.Replicas = "StatefulSet", 2, 1
				w.Unready, w.Outdated = "generation 2 has not been observed yet", "generation 2 has not been observed yet"
			}),
		},
		{
			"missing", []client.Object{set}, ref, v1alpha1.CapacityCheck,
			&rollout.Workload{Kind: "Deployment", Name: "web", WriteError: "refused", Problem: "there is no such workload: create it, or correct the name in the spec"},
		},
		{"an autoscaler", []client.Object{ready, one}, ref, v1alpha1.CapacityCheck, with(func(w *rollout.Workload) { w.Autoscaler = &rollout.Autoscaler{Name: "b", Min: 2, Max: 20} })},
		{"an autoscaler without a minimum", []client.Object{ready, two}, ref, v1alpha1.CapacityScale, with(func(w *rollout.Workload) { w.Autoscaler = &rollout.Autoscaler{Name: "a", Min: 1, Max: 20} })},
		{"two autoscalers", []client.Object{ready, one, two}, ref, v1alpha1.CapacityCheck, with(func(w *rollout.Workload) {
			w.Problem = "2 HorizontalPodAutoscalers scale Deployment shop/web (a and b): remove all but one"
		})},
		{"two autoscalers that do not matter", []client.Object{ready, one, two}, ref, v1alpha1.CapacityIgnore, &read},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := reconcilerWith(t, tc.objects...)
			wr := scaling(tc.capacity)
			r.writeErrors.set(client.ObjectKeyFromObject(wr), workloadKey(v1alpha1.TrackCanary), errors.New("refused"))
			got, shown, err := r.readWorkload(t.Context(), wr, &observation{}, v1alpha1.TrackCanary, tc.ref)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("workload (-want +got):\n%s", diff)
			}
			if exists := tc.want != nil && tc.want.Generation > 0; (shown != nil) != exists {
				t.Errorf("shown %v, want one: %v", shown, exists)
			}
		})
	}
}

// Replicas are only raised, and given back only as long as they are what was set.
func TestScale(t *testing.T) {
	for _, kind := range []string{deploymentKind, autoscalerKind} {
		for _, tc := range []struct {
			name           string
			now            int32
			from, to, want int32
			writes         int
		}{
			{"raised", 1, 1, 4, 4, 1},
			{"raised by somebody in the meantime", 6, 1, 4, 6, 0},
			{"given back", 4, 4, 1, 1, 1},
			{"raised by somebody since", 7, 4, 1, 7, 0},
			{"lowered by somebody since", 2, 4, 1, 2, 0},
		} {
			t.Run(kind+" "+tc.name, func(t *testing.T) {
				objects := []client.Object{deployment("web-stable", 10, "web:1")}
				if kind == autoscalerKind {
					objects = append(objects, deployment("web-canary", 9, "web:2"), autoscalerFor("web-canary", deploymentKind, "web-canary", &tc.now))
				} else {
					objects = append(objects, deployment("web-canary", tc.now, "web:2"))
				}
				s, wr := serving(t, objects...), scaling(v1alpha1.CapacityScale)
				if err := s.writeWorkloads(t.Context(), wr, s.observed(wr), rollout.Decision{Scales: []rollout.Scale{asked(kind, tc.from, tc.to)}}); err != nil {
					t.Fatal(err)
				}
				if got := s.replicas(kind); got != tc.want || len(s.wrote) != tc.writes {
					t.Errorf("%d, written %v, want %d, %d writes", got, s.wrote, tc.want, tc.writes)
				}
			})
		}
	}
}

// Another autoscaler than the one that was raised is left alone.
func TestAnotherAutoscalerIsLeftAlone(t *testing.T) {
	for _, objects := range [][]client.Object{nil, {autoscalerFor("other", deploymentKind, "web-canary", new(int32(4)))}} {
		s, wr := serving(t, append(objects, deployment("web-canary", 4, "web:2"))...), scaling(v1alpha1.CapacityScale)
		err := s.writeWorkloads(t.Context(), wr, s.observed(wr), rollout.Decision{Scales: []rollout.Scale{asked(autoscalerKind, 4, 1)}})
		if err != nil || len(s.wrote) > 0 {
			t.Errorf("%v, written %v", err, s.wrote)
		}
	}
}

// A refusal is told with what would allow the write, until the write succeeds. A
// conflict is none.
func TestWriteErrorNamesTheRole(t *testing.T) {
	for _, tc := range []struct {
		write  string
		track  v1alpha1.TrackName
		d      rollout.Decision
		answer error
		says   []string
	}{
		{"scale of web-canary", v1alpha1.TrackCanary, rollout.Decision{Scales: []rollout.Scale{asked(deploymentKind, 4, 5)}}, forbidden("deployments/scale", "web-canary"), []string{"is forbidden: not allowed", "ClusterRole weightedrollout-workload-writer"}},
		{"HorizontalPodAutoscaler web-canary", v1alpha1.TrackCanary, rollout.Decision{Scales: []rollout.Scale{asked(autoscalerKind, 2, 5)}}, forbidden("horizontalpodautoscalers", "web-canary"), []string{"ClusterRole weightedrollout-workload-writer"}},
		{"Deployment web-stable", v1alpha1.TrackStable, rollout.Decision{UpdateStable: true}, forbidden("deployments", "web-stable"), []string{"ClusterRole weightedrollout-workload-writer"}},
		{"scale of web-canary", v1alpha1.TrackCanary, rollout.Decision{Scales: []rollout.Scale{asked(deploymentKind, 4, 5)}}, apierrors.NewInternalError(errors.New("etcd is down")), []string{"etcd is down"}},
		{"scale of web-canary", v1alpha1.TrackCanary, rollout.Decision{Scales: []rollout.Scale{asked(deploymentKind, 4, 5)}}, conflict("deployments", "web-canary"), nil},
	} {
		t.Run(fmt.Sprintf("%s: %s", tc.write, apierrors.ReasonForError(tc.answer)), func(t *testing.T) {
			s := serving(t, deployment("web-stable", 10, "web:1"), deployment("web-canary", 4, "web:2"), autoscalerFor("web-canary", deploymentKind, "web-canary", new(int32(2))))
			wr := scaling(v1alpha1.CapacityScale)
			s.refuses[tc.write] = tc.answer
			if err := s.writeWorkloads(t.Context(), wr, s.observed(wr), tc.d); !errors.Is(err, tc.answer) || !slices.Equal(s.wrote, []string{tc.write}) {
				t.Errorf("error %v, written %v", err, s.wrote)
			}
			told := func() string {
				obs := s.observed(wr)
				errs := map[v1alpha1.TrackName]string{v1alpha1.TrackStable: obs.StableWorkload.WriteError, v1alpha1.TrackCanary: obs.CanaryWorkload.WriteError}
				said := errs[tc.track]
				delete(errs, tc.track)
				for other, text := range errs {
					if text != "" {
						t.Errorf("%s is told %q", other, text)
					}
				}
				return said
			}
			said := told()
			for _, part := range tc.says {
				if !strings.Contains(said, part) {
					t.Errorf("told %q, want %q", said, part)
				}
			}
			if hint := strings.Contains(said, "ClusterRole"); hint != apierrors.IsForbidden(tc.answer) || (said == "") != (tc.says == nil) {
				t.Errorf("told %q", said)
			}
			delete(s.refuses, tc.write)
			if err := s.writeWorkloads(t.Context(), wr, s.observed(wr), tc.d); err != nil || told() != "" {
				t.Errorf("once it is allowed: %v, told %q", err, told())
			}
		})
	}
}

// A rollout that is deleted goes, whatever refuses to be scaled. Only what was changed
// in the meantime is decided on again.
func TestReleaseDespiteARefusedScale(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer error
		gone   bool
	}{
		{"written", nil, true},
		{"forbidden", forbidden("deployments/scale", "web-canary"), true},
		{"not found", apierrors.NewNotFound(appsv1.Resource("deployments"), "web-canary"), true},
		{"a failing API server", apierrors.NewInternalError(errors.New("etcd is down")), true},
		{"a conflict", conflict("deployments", "web-canary"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			leaving := scaling(v1alpha1.CapacityScale)
			leaving.Finalizers, leaving.DeletionTimestamp = []string{v1alpha1.Finalizer}, &leaving.CreationTimestamp
			s := serving(t, leaving, deployment("web-stable", 10, "web:1"), deployment("web-canary", 4, "web:2"))
			s.refuses["scale of web-canary"] = tc.answer
			wr := &v1alpha1.WeightedRollout{}
			s.get(wr, "web")
			recorded, err := s.act(t.Context(), wr, s.observed(wr), rollout.Decision{Status: wr.Status, Release: true, Scales: []rollout.Scale{asked(deploymentKind, 4, 1)}})
			if !recorded || (err == nil) != tc.gone || err != nil && !apierrors.IsConflict(err) {
				t.Errorf("recorded %v, %v", recorded, err)
			}
			left := s.Client.Get(t.Context(), client.ObjectKeyFromObject(wr), &v1alpha1.WeightedRollout{})
			if apierrors.IsNotFound(left) != tc.gone {
				t.Errorf("gone %v (%v), want %v", apierrors.IsNotFound(left), left, tc.gone)
			}
			if want := map[bool]int32{true: 1, false: 4}[tc.answer == nil]; s.replicas(deploymentKind) != want {
				t.Errorf("%d replicas, want %d", s.replicas(deploymentKind), want)
			}
		})
	}
}

// TestL13WorkloadOlderThanOurWrite: after a write nothing is decided on what the cache
// still shows of the object from before.
func TestL13WorkloadOlderThanOurWrite(t *testing.T) {
	for _, tc := range []struct {
		name string
		old  func() []client.Object
		d    rollout.Decision
	}{
		{"replicas", func() []client.Object { return nil }, rollout.Decision{Scales: []rollout.Scale{asked(deploymentKind, 4, 5)}}},
		{"an autoscaler's minimum", func() []client.Object {
			return []client.Object{autoscalerFor("web-canary", deploymentKind, "web-canary", new(int32(2)))}
		}, rollout.Decision{Scales: []rollout.Scale{asked(autoscalerKind, 2, 5)}}},
		{"stable's template", func() []client.Object { return nil }, rollout.Decision{UpdateStable: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			objects := func() []client.Object {
				return append(tc.old(), deployment("web-stable", 10, "web:1"), deployment("web-canary", 4, "web:2"))
			}
			s, wr := serving(t, objects()...), scaling(v1alpha1.CapacityScale)
			if err := s.writeWorkloads(t.Context(), wr, s.observed(wr), tc.d); err != nil || len(s.wrote) != 1 {
				t.Fatalf("%v, written %v", err, s.wrote)
			}
			now := s.Client
			s.Client = reconcilerWith(t, objects()...).Client
			if fresh, err := s.observeWorkloads(t.Context(), wr, &observation{}); fresh || err != nil {
				t.Errorf("from before the write: fresh %v, %v", fresh, err)
			}
			if fresh, err := s.observeWorkloads(t.Context(), rolloutNamed("another", wr), &observation{}); !fresh || err != nil {
				t.Errorf("another rollout, which has written nothing: fresh %v, %v", fresh, err)
			}
			s.Client = now
			obs := s.observed(wr)
			if obs.SameTemplate != tc.d.UpdateStable {
				t.Errorf("same template %v", obs.SameTemplate)
			}
		})
	}
}

func rolloutNamed(name string, wr *v1alpha1.WeightedRollout) *v1alpha1.WeightedRollout {
	wr = wr.DeepCopy()
	wr.Name = name
	return wr
}

// TestL6RoutesComeBeforeWorkloads: the intent, then the routes, then the workloads; and
// a workload that cannot be written keeps no route from being written, nor the other way.
func TestL6RoutesComeBeforeWorkloads(t *testing.T) {
	order := []string{"WeightedRollout web", "status of web", "HTTPRoute web", "GRPCRoute web", "scale of web-canary", "Deployment web-stable"}
	for _, refused := range append([]string{""}, order[2:]...) {
		t.Run("refused: "+refused, func(t *testing.T) {
			s := serving(t, append(bothRoutes(), scaling(v1alpha1.CapacityScale, httpRef("web"), grpcRef("web")),
				deployment("web-stable", 10, "web:1"), deployment("web-canary", 4, "web:2"))...)
			answer := forbidden("any", "web")
			if refused != "" {
				s.refuses[refused] = answer
			}
			wr := &v1alpha1.WeightedRollout{}
			s.get(wr, "web")
			d := rollout.Decision{Writes: rollout.WriteAll, Scales: []rollout.Scale{asked(deploymentKind, 4, 5)}, UpdateStable: true}
			d.Status.Attempt = 2
			recorded, err := s.act(t.Context(), wr, s.observed(wr), d)
			if !recorded || (err == nil) != (refused == "") || err != nil && !errors.Is(err, answer) {
				t.Errorf("recorded %v, %v", recorded, err)
			}
			if diff := cmp.Diff(order, s.wrote); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			if got := s.shares(); refused != "HTTPRoute web" && got != "100/0 100/0" {
				t.Errorf("the HTTPRoute's weights are %s", got)
			}
			if got := s.replicas(deploymentKind); (got == 5) != (refused != "scale of web-canary") {
				t.Errorf("%d replicas", got)
			}
		})
	}
}

// shares writes down the weights of the HTTPRoute's rules: "100/0 100/0".
func (s *apiServer) shares() string {
	s.t.Helper()
	h := &gatewayv1.HTTPRoute{}
	s.get(h, "web")
	var rules []string
	for _, rule := range h.Spec.Rules {
		var weights []string
		for _, ref := range rule.BackendRefs {
			weight := "-"
			if ref.Weight != nil {
				weight = strconv.Itoa(int(*ref.Weight))
			}
			weights = append(weights, weight)
		}
		rules = append(rules, strings.Join(weights, "/"))
	}
	return strings.Join(rules, " ")
}
