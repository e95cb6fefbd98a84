package controllers

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/telemetry"
)

// passStart is the time of the first pass.
var passStart = time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)

// passBench runs whole passes against a small API server: rollout web over route web, or
// more, at 20 percent in attempt 3.
type passBench struct {
	t      *testing.T
	server client.WithWatch
	clock  *clocktesting.FakePassiveClock
	// verdict is what the evidence says.
	verdict health.Verdict
	// answer is asked before each write, by its name: status, finalizer, abort, or the
	// name of a route. An error refuses the write.
	answer func(write string) error
	mu     sync.Mutex
	wrote  []string
	told   *events.FakeRecorder
	r      *Reconciler
}

func (b *passBench) Track(telemetry.Target)                      {}
func (b *passBench) Forget(types.NamespacedName)                 {}
func (b *passBench) Verdict(types.NamespacedName) health.Verdict { return b.verdict }
func (b *passBench) Problem(*v1alpha1.Health) *health.Problem    { return nil }

var (
	goodVerdict = health.Verdict{State: v1alpha1.VerdictHealthy, Reason: v1alpha1.ReasonChecksPassed, Message: "every check passes", RampReady: true, StageReady: true, Steady: true, Score: 1}
	badVerdict  = health.Verdict{State: v1alpha1.VerdictUnhealthy, Reason: v1alpha1.ReasonBreach, Check: "error-rate", Message: "error-rate 12 percent, limit 1"}
)

func newPassBench(t *testing.T, wr *v1alpha1.WeightedRollout, objects ...client.Object) *passBench {
	t.Helper()
	b := &passBench{t: t, clock: clocktesting.NewFakePassiveClock(passStart), verdict: goodVerdict, answer: func(string) error { return nil }}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, gatewayv1.Install, discoveryv1.AddToScheme, autoscalingv2.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.WeightedRollout{}).
		WithObjects(append(objects, wr, endpointsOf("web-stable"), endpointsOf("web-canary"))...)
	if err := (&Reconciler{}).addIndexes(t.Context(), builderIndexer{builder}); err != nil {
		t.Fatal(err)
	}
	b.server = builder.Build()
	b.restart()
	return b
}

// restart begins with a controller that has forgotten everything.
func (b *passBench) restart() {
	b.t.Helper()
	c := interceptor.NewClient(b.server, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := b.write(nameOf(b.t, o, p)); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := b.write(name); err != nil {
				return err
			}
			return c.SubResource(name).Patch(ctx, o, p, opts...)
		},
	})
	b.told = events.NewFakeRecorder(100)
	b.r = &Reconciler{Client: c, Live: b.server, Recorder: b.told, Evidence: b, Clock: b.clock}
}

func (b *passBench) write(name string) error {
	b.mu.Lock()
	b.wrote = append(b.wrote, name)
	b.mu.Unlock()
	return b.answer(name)
}

// nameOf names a write.
func nameOf(t *testing.T, o client.Object, p client.Patch) string {
	t.Helper()
	data, err := p.Data(o)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case strings.Contains(string(data), `"finalizers"`):
		return "finalizer"
	case strings.Contains(string(data), v1alpha1.AbortAnnotation):
		return "abort"
	case strings.Contains(string(data), "annotations"):
		return o.GetName() + " with annotations"
	}
	return o.GetName()
}

// pass runs one pass, a little later than the one before.
func (b *passBench) pass() error {
	b.clock.SetTime(b.clock.Now().Add(time.Second))
	_, err := b.r.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}})
	return err
}

// passes runs so many passes, refused or not.
func (b *passBench) passes(n int) {
	for range n {
		_ = b.pass()
	}
}

func (b *passBench) rollout() *v1alpha1.WeightedRollout {
	b.t.Helper()
	wr := &v1alpha1.WeightedRollout{}
	if err := b.server.Get(b.t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, wr); err != nil {
		b.t.Fatal(err)
	}
	return wr
}

func (b *passBench) route(name string) *gatewayv1.HTTPRoute {
	b.t.Helper()
	hr := &gatewayv1.HTTPRoute{}
	if err := b.server.Get(b.t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, hr); err != nil {
		b.t.Fatal(err)
	}
	return hr
}

// canary is the canary's weight in a route.
func (b *passBench) canary(name string) int32 {
	b.t.Helper()
	return *b.route(name).Spec.Rules[0].BackendRefs[1].Weight
}

// update changes an object as another writer does.
func (b *passBench) update(o client.Object) {
	b.t.Helper()
	if err := b.server.Update(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

// events are what people were told, oldest first.
func (b *passBench) events() []string {
	var all []string
	for {
		select {
		case e := <-b.told.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// atTwenty is a rollout whose canary has 20 percent, confirmed, in the second of three
// stages.
func atTwenty(edits ...func(*v1alpha1.WeightedRollout)) *v1alpha1.WeightedRollout {
	wr := rolloutOf("web", time.Hour, httpRef("web"))
	wr.Generation = 4
	wr.Finalizers = []string{v1alpha1.Finalizer}
	stage := func(weight v1alpha1.Percent) v1alpha1.Stage {
		return v1alpha1.Stage{Weight: weight, Soak: "1m", Approval: v1alpha1.ApprovalNone}
	}
	wr.Spec.Revision, wr.Spec.Mode = "v2", v1alpha1.ModeEnforce
	wr.Spec.Plan.Stages = []v1alpha1.Stage{stage("10"), stage("20"), stage("50")}
	wr.Spec.Ramp = v1alpha1.Ramp{MinIncrease: "1", MaxIncrease: "20", MaxChangePercent: "100", Interval: "1s"}
	wr.Spec.Health = &v1alpha1.Health{Window: "1m", Interval: "15s", SampleDelay: "15s", MinRequests: 100, MinRampRequests: 20, Preset: v1alpha1.PresetTraefik, ErrorRate: &v1alpha1.ErrorRate{MaxPercent: "1"}}
	wr.Spec.OnUnhealthy = v1alpha1.OnUnhealthy{Action: v1alpha1.UnhealthyRollback, For: "1m"}
	wr.Spec.OnDelete = v1alpha1.DeletionRestore
	share, at := v1alpha1.Percent("20"), metav1.NewMicroTime(passStart.Add(-10*time.Minute))
	wr.Status = v1alpha1.WeightedRolloutStatus{
		ObservedGeneration: 4, Attempt: 3, Revision: "v2", StableRevision: "v1", Outcome: v1alpha1.OutcomeInProgress, StartedAt: &at,
		Stage: &v1alpha1.StageStatus{Index: 1, Position: "2/4", Weight: "20", Soak: "1m", StartedAt: &at},
		Share: v1alpha1.ShareStatus{Desired: &share, ChangedAt: &at, ConfirmedAt: &at},
	}
	for _, edit := range edits {
		edit(wr)
	}
	for _, ref := range wr.Spec.Routes {
		wr.Status.Routes = append(wr.Status.Routes, v1alpha1.RouteStatus{Kind: ref.Kind, Name: ref.Name, UID: types.UID("route-" + ref.Name), Generation: 5, Written: &share, ConfirmedAt: &at})
	}
	return wr
}

// routeAt is a route with these weights that its gateway serves.
func routeAt(name string, stable, canary int32) *gatewayv1.HTTPRoute {
	s, c := backendRef("web-stable"), backendRef("web-canary")
	s.Weight, c.Weight = &stable, &canary
	hr := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("route-" + name), Generation: 5,
		Annotations: map[string]string{v1alpha1.ManagedByAnnotation: "web"},
	}}
	parent := gatewayv1.ParentReference{Name: "gw"}
	hr.Spec.ParentRefs = []gatewayv1.ParentReference{parent}
	hr.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: s}, {BackendRef: c}}}}
	condition := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, ObservedGeneration: 1 << 30}
	}
	hr.Status.Parents = []gatewayv1.RouteParentStatus{{ParentRef: parent, ControllerName: "example.com/gateway", Conditions: []metav1.Condition{condition("Accepted"), condition("ResolvedRefs")}}}
	return hr
}

// endpointsOf is one ready pod behind a Service.
func endpointsOf(service string) *discoveryv1.EndpointSlice {
	ready := true
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(80))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	}
}

// unready takes the ready endpoints of a Service away.
func (b *passBench) unready(service string) {
	b.t.Helper()
	slice := &discoveryv1.EndpointSlice{}
	if err := b.server.Get(b.t.Context(), client.ObjectKey{Namespace: "shop", Name: service}, slice); err != nil {
		b.t.Fatal(err)
	}
	slice.Endpoints = nil
	b.update(slice)
}
