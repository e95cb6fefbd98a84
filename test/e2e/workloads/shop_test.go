package workloads

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// The rollout web of these tests has the route web, and two Services with a Deployment
// of the same name each.
const (
	stable = "web-stable"
	canary = "web-canary"
)

// shop creates all that a rollout needs: stable runs web:1 in 4 replicas, and the canary
// another image in 1.
func (w *world) shop(image string) {
	w.t.Helper()
	w.create(newDeployment(stable, 4, template(stable, "web:1")))
	w.create(newDeployment(canary, 1, template(canary, image)))
	w.front(httpRoute())
	w.awaitEndpoints(stable, 4)
}

// front creates the Services and what is in front of them: a Gateway and a route.
func (w *world) front(route client.Object) {
	w.t.Helper()
	if err := w.Gateway.Create(w.t.Context(), w.namespace, "public"); err != nil {
		w.t.Fatal(err)
	}
	w.create(newService(stable))
	w.create(newService(canary))
	parents := gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "public"}}}
	hosts := []gatewayv1.Hostname{gatewayv1.Hostname(w.namespace + ".example")}
	switch r := route.(type) {
	case *gatewayv1.HTTPRoute:
		r.Spec.CommonRouteSpec, r.Spec.Hostnames = parents, hosts
	case *gatewayv1.GRPCRoute:
		r.Spec.CommonRouteSpec, r.Spec.Hostnames = parents, hosts
	}
	route.SetName("web")
	w.create(route)
}

func httpRoute() *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{Spec: gatewayv1.HTTPRouteSpec{
		Rules: []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{backend(stable, 100), backend(canary, 0)}}},
	}}
}

func grpcRoute() *gatewayv1.GRPCRoute {
	refs := make([]gatewayv1.GRPCBackendRef, 2)
	refs[0].BackendRef, refs[1].BackendRef = backend(stable, 100).BackendRef, backend(canary, 0).BackendRef
	return &gatewayv1.GRPCRoute{Spec: gatewayv1.GRPCRouteSpec{Rules: []gatewayv1.GRPCRouteRule{{BackendRefs: refs}}}}
}

func backend(name string, weight int32) gatewayv1.HTTPBackendRef {
	port := gatewayv1.PortNumber(80)
	var ref gatewayv1.HTTPBackendRef
	ref.Name, ref.Port, ref.Weight = gatewayv1.ObjectName(name), &port, &weight
	return ref
}

// allowScaling lets the manager write workloads, as its manifests say.
func (w *world) allowScaling() {
	w.t.Helper()
	binding := &rbacv1.RoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "weightedrollout-workload-writer"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: testbed.ManagerUser}},
	}
	binding.Name = "weightedrollout-workload-writer"
	w.create(binding)
}

// rollout starts a rollout of whatever the canary's Deployment runs, in steps of 25
// percent and without any check, so that only the workloads decide.
func (w *world) rollout(change func(*v1alpha1.WeightedRolloutSpec)) {
	w.t.Helper()
	wr := &v1alpha1.WeightedRollout{}
	wr.Name = "web"
	track := func(name string) v1alpha1.Track {
		return v1alpha1.Track{Service: name, Port: 80, Workload: &v1alpha1.WorkloadReference{Name: name}}
	}
	wr.Spec = v1alpha1.WeightedRolloutSpec{
		Routes: []v1alpha1.RouteReference{{Name: "web"}},
		Stable: &v1alpha1.StableTrack{Track: track(stable)},
		Canary: &v1alpha1.CanaryTrack{Track: track(canary)},
		Plan:   v1alpha1.Plan{Stages: []v1alpha1.Stage{{Weight: "25", Soak: "1s"}, {Weight: "50", Soak: "1s"}}},
		Ramp: v1alpha1.Ramp{
			MinIncrease: "25", MaxIncrease: "25", MaxChangePercent: "100", Interval: "1s",
			Warmup: v1alpha1.Warmup{InitialPercent: "100"},
		},
		Health: &v1alpha1.Health{Disabled: true},
	}
	change(&wr.Spec)
	w.create(wr)
}

func (w *world) edit(change func(*v1alpha1.WeightedRolloutSpec)) {
	w.t.Helper()
	wr := &v1alpha1.WeightedRollout{}
	w.read("web", wr)
	before := wr.DeepCopy()
	change(&wr.Spec)
	if err := w.Client.Patch(w.t.Context(), wr, client.MergeFrom(before)); err != nil {
		w.t.Fatalf("editing the rollout: %v", err)
	}
}

// await waits until the rollout is as wanted, and returns its status.
func (w *world) await(what string, condition func(v1alpha1.WeightedRolloutStatus) bool) v1alpha1.WeightedRolloutStatus {
	w.t.Helper()
	wr := &v1alpha1.WeightedRollout{}
	w.eventually("the rollout: "+what, func() (bool, string) {
		w.read("web", wr)
		return condition(wr.Status), describe(wr.Status)
	})
	return wr.Status
}

func (w *world) awaitPhase(phase v1alpha1.Phase) v1alpha1.WeightedRolloutStatus {
	w.t.Helper()
	return w.await("phase "+string(phase), func(s v1alpha1.WeightedRolloutStatus) bool { return s.Phase == phase })
}

// awaitShare waits until a share is confirmed.
func (w *world) awaitShare(share v1alpha1.Percent) v1alpha1.WeightedRolloutStatus {
	w.t.Helper()
	return w.await("a confirmed share of "+string(share), func(s v1alpha1.WeightedRolloutStatus) bool {
		return s.Share.Desired != nil && *s.Share.Desired == share && s.Share.ConfirmedAt != nil
	})
}

// reason is the reason and the message of a condition.
func reason(s v1alpha1.WeightedRolloutStatus, kind string) (string, string) {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c.Reason, c.Message
		}
	}
	return "", ""
}

func describe(s v1alpha1.WeightedRolloutStatus) string {
	text := fmt.Sprintf("phase %s, attempt %d", s.Phase, s.Attempt)
	if s.Share.Desired != nil {
		text += fmt.Sprintf(", at %s percent, confirmed %t", *s.Share.Desired, s.Share.ConfirmedAt != nil)
	}
	why, message := reason(s, v1alpha1.ConditionReady)
	return fmt.Sprintf("%s, capacity %+v, %s: %s", text, s.Capacity, why, message)
}

// awaitEvent waits for an event of the rollout whose text contains the given one.
func (w *world) awaitEvent(reason, text string) {
	w.t.Helper()
	w.eventually("the event "+reason, func() (bool, string) {
		var list eventsv1.EventList
		if err := w.Client.List(w.t.Context(), &list, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatal(err)
		}
		var seen []string
		for _, e := range list.Items {
			if e.Regarding.Name != "web" {
				continue
			}
			if e.Reason == reason && strings.Contains(e.Note, text) {
				return true, ""
			}
			seen = append(seen, e.Reason+": "+e.Note)
		}
		return false, strings.Join(seen, "\n")
	})
}

// mergePatch changes a Deployment as kubectl patch does.
func (w *world) mergePatch(name, patch string) {
	w.t.Helper()
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = w.namespace, name
	if err := w.Client.Patch(w.t.Context(), d, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("somebody")); err != nil {
		w.t.Fatalf("patching Deployment %s with %s: %v", name, patch, err)
	}
}
