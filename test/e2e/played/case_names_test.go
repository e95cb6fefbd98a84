package played

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// onPorts makes a rollout's tracks two ports of one Service.
func onPorts(service string, stable, canary int32) change {
	return func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Stable.Service, wr.Spec.Stable.Port = service, stable
		wr.Spec.Canary.Service, wr.Spec.Canary.Port = service, canary
	}
}

// TestC35OneServiceForBothTracks: the same Service and port for both is not admitted.
// Two ports of one Service are two backends, told apart by the port.
func TestC35OneServiceForBothTracks(t *testing.T) {
	w := newWorld(t)
	err := w.client.Create(t.Context(), newRollout(w.namespace, "same", w.prom.url(), onPorts("both", 80, 80)))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "the same Service and port") {
		t.Errorf("the API server says %v, want a refusal", err)
	}
	err = w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "same"}, &v1alpha1.WeightedRollout{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("reading what was refused: %v", err)
	}

	for _, name := range []string{"promoted", "rolled-back"} {
		service := name + "-both"
		route := newRoute(w.namespace, name, ptr.To[int32](100), ptr.To[int32](0))
		for i, port := range []gatewayv1.PortNumber{8080, 80} {
			route.Spec.Rules[0].BackendRefs[i].Name = gatewayv1.ObjectName(service)
			route.Spec.Rules[0].BackendRefs[i].Port = new(port)
		}
		w.create(route)
		w.create(newEndpoints(w.namespace, service, true))
		w.create(newRollout(w.namespace, name, w.prom.url(), stages("1s", "10", "50"), onPorts(service, 8080, 80)))
	}
	// What the metrics say of port 80, which is the canary's.
	w.prom.set(w.namespace, "rolled-back-both", traffic{perSecond: 50, failed: 0.25})
	w.startManager()
	w.awaitPhase("rolled-back", v1alpha1.PhaseRolledBack)
	w.awaitPhase("promoted", v1alpha1.PhasePromoted)
	w.wantWeights("rolled-back", "100/0", "90/10", "100/0")
	w.wantWeights("promoted", "100/0", "90/10", "60/40", "50/50", "20/80", "0/100")
	for _, name := range []string{"promoted", "rolled-back"} {
		w.onlyWeightsChange(name)
	}
}

// TestC35TwoServicesOfTheSamePods: Services that pick the same pods are told, once there
// is traffic for the canary.
func TestC35TwoServicesOfTheSamePods(t *testing.T) {
	w := newWorld(t)
	w.rollout("web", stages("10m", "10"))
	slice := newEndpoints(w.namespace, canaryOf("web"), true)
	slice.Endpoints = newEndpoints(w.namespace, stableOf("web"), true).Endpoints
	if err := w.client.Update(t.Context(), slice); err != nil {
		t.Fatalf("giving the canary stable's pod: %v", err)
	}
	w.startManager()
	w.awaitShare("web", "10")
	w.awaitEvent("web", v1alpha1.ReasonSharedPods, "pick the same pods")
}

// TestC36LongNames: rollouts whose names are as long as an object's name can be, some of
// which only differ after the 63rd character, and one with dots, each manage a rule of
// one route, which has the longest name, too.
func TestC36LongNames(t *testing.T) {
	w := newWorld(t)
	w.loose = true // they share a route
	routeName := strings.Repeat("r", 253)
	names := []string{"web.v2.example"}
	for _, length := range []int{63, 64, 200, 253} {
		names = append(names, strings.Repeat("n", length))
	}
	route := newRoute(w.namespace, routeName, nil, nil)
	route.Spec.Rules = nil
	for i := range names {
		pairName := fmt.Sprintf("pair-%d", i)
		stable, canary := pairOfRefs(pairName)
		rule := newRule("/"+pairName, stable, canary)
		rule.Name = new(gatewayv1.SectionName(pairName))
		route.Spec.Rules = append(route.Spec.Rules, rule)
		w.endpoints(pairName)
	}
	w.create(route)
	for i, name := range names {
		pairName := fmt.Sprintf("pair-%d", i)
		w.create(newRollout(w.namespace, name, w.prom.url(), sharing(pairName), stages("1s", "10", "50"), func(wr *v1alpha1.WeightedRollout) {
			wr.Spec.Routes[0].Name, wr.Spec.Routes[0].RuleNames = routeName, []string{pairName}
		}))
	}
	w.prom.set(w.namespace, canaryOf("pair-4"), traffic{perSecond: 50, failed: 0.25})
	w.startManager()
	longest := names[4]
	w.awaitPhase(longest, v1alpha1.PhaseRolledBack)
	w.awaitEvent(longest, v1alpha1.ReasonRolledBack, "from 10 percent")
	for _, name := range names[:4] {
		w.awaitPhase(name, v1alpha1.PhasePromoted)
		w.awaitEvent(name, v1alpha1.ReasonPromoted, "passed the plan")
	}
	for i := range names {
		want := []string{"100/0", "90/10", "60/40", "50/50", "20/80", "0/100"}
		if i == 4 {
			want = []string{"100/0", "90/10", "100/0"}
		}
		if diff := cmp.Diff(want, w.pairsOfRule(routeName, i)); diff != "" {
			t.Errorf("rule %d had other weights (-want +got):\n%s", i, diff)
		}
	}
	w.onlyWeightsChange(routeName, 0, 1, 2, 3, 4)
	w.wantOwners(routeName, names...)
	// Their deletion tells them apart as well.
	for i, name := range names {
		w.remove(name)
		w.awaitGone(name)
		w.wantOwners(routeName, names[i+1:]...)
	}
}

// wantOwners checks which rollouts the annotation of a route names.
func (w *world) wantOwners(name string, want ...string) {
	w.t.Helper()
	got := map[string]bool{}
	for owner := range strings.SplitSeq(w.route(name).Annotations[v1alpha1.ManagedByAnnotation], ",") {
		if owner != "" {
			got[owner] = true
		}
	}
	wanted := map[string]bool{}
	for _, owner := range want {
		wanted[owner] = true
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		w.t.Errorf("the owners of route %s (-want +got):\n%s", name, diff)
	}
}

// pairsOfRule returns the weights that a rule of a route has had, stable's first, in
// order and without repetitions.
func (w *world) pairsOfRule(name string, rule int) (pairs []string) {
	w.t.Helper()
	for _, v := range w.routes.versions(name) {
		rules, _, err := unstructured.NestedSlice(v.Object, "spec", "rules")
		if err != nil || rule >= len(rules) {
			w.t.Fatalf("version %s of route %s has no rule %d (%v)", v.GetResourceVersion(), name, rule, err)
		}
		p := pair{weightAt(rules[rule], 0), weightAt(rules[rule], 1)}.String()
		if len(pairs) == 0 || pairs[len(pairs)-1] != p {
			pairs = append(pairs, p)
		}
	}
	return pairs
}

// weightAt returns the weight of one of a rule's backends; 1 where it is left out.
func weightAt(rule any, ref int) int {
	refs, ok := at(rule, "backendRefs").([]any)
	if !ok || ref >= len(refs) {
		return -1
	}
	switch weight := at(refs[ref], "weight").(type) {
	case int64:
		return int(weight)
	case nil:
		return 1
	}
	return -1
}
