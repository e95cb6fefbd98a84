package gateway

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// quiet is how long a weight is watched that must not change.
const quiet = 4 * time.Second

// TestTwoRoutes promotes a canary in two routes at once. Of the next one the gateway does
// not accept the second route any more: neither route is raised, both are lowered, and
// they rise again, together, when the gateway accepts both.
func TestTwoRoutes(t *testing.T) {
	s := newShop(t, "tworoutes")
	other := &shop{t: t, namespace: s.namespace, host: "other.example"}
	second := other.route()
	second.Name = "second"
	s.must(bed.Client.Create(t.Context(), second), "create the second HTTPRoute")
	s.load(100)
	other.load(60)
	ledgers := []*ledger{s.open(&gatewayv1.HTTPRouteList{}, "web"), s.open(&gatewayv1.HTTPRouteList{}, "second")}
	want := func(weights ...int32) {
		t.Helper()
		for _, l := range ledgers {
			s.wantCanary(l, 0, weights...)
		}
	}
	startManager(t)
	wr := s.rollout(stage("10"), withApproval("20"), stage("50"))
	wr.Spec.Routes = append(wr.Spec.Routes, v1alpha1.RouteReference{Name: "second"})
	wr.Spec.OnUnhealthy.For = "8s"
	s.must(bed.Client.Create(t.Context(), wr), "create the rollout")
	s.awaitApproval("v2", 1)
	s.order(v1alpha1.VerbApprove)
	s.awaitPhase("v2", v1alpha1.PhasePromoted)
	promoted := []int32{0, 10, 20, 40, 50, 80, 100}
	want(promoted...)

	s.revise("v3")
	s.awaitApproval("v3", 1)
	s.attach("second", "nowhere")
	s.awaitRefusal(v1alpha1.ReasonNotAccepted, `HTTPRoute "second"`, "NoMatchingParent")
	s.order(v1alpha1.VerbApprove)
	st := s.awaitPhase("v3", v1alpha1.PhaseRolledBack)
	if st.OutcomeReason != v1alpha1.ReasonRouteNotResolved || !strings.Contains(st.OutcomeMessage, `HTTPRoute "second"`) {
		t.Errorf("rolled back because of %s: %s", st.OutcomeReason, st.OutcomeMessage)
	}
	lowered := append(promoted, 0, 10, 20, 0)
	want(lowered...)

	s.order(v1alpha1.VerbRetry)
	s.eventually("another attempt", func() (bool, string) {
		now := s.status()
		return now.Attempt > st.Attempt, describe(now)
	})
	time.Sleep(quiet)
	want(lowered...)
	s.attach("second", "web")
	s.awaitApproval("v3", 1)
	want(append(lowered, 10, 20)...)
}

// attach changes the section of the Gateway that a route wants to be attached to.
func (s *shop) attach(route string, section gatewayv1.SectionName) {
	s.t.Helper()
	r := &gatewayv1.HTTPRoute{}
	s.must(bed.Client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: route}, r), "read the route")
	before := r.DeepCopy()
	r.Spec.ParentRefs[0].SectionName = &section
	s.must(bed.Client.Patch(s.t.Context(), r, client.MergeFrom(before)), "attach the route")
}

// awaitRefusal waits until the rollout says that a gateway refuses a route, in words that
// hold these.
func (s *shop) awaitRefusal(reason string, words ...string) {
	s.t.Helper()
	s.eventually("the status says that the gateway refuses a route", func() (bool, string) {
		st := s.status()
		c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionRouteAccepted)
		ok := c != nil && c.Status == metav1.ConditionFalse && c.Reason == reason
		for _, word := range words {
			ok = ok && strings.Contains(c.Message, word)
		}
		return ok, describe(st)
	})
}

// TestGrantGoes has a canary in another namespace. Without a ReferenceGrant there it gets
// nothing. With one it is raised. When the grant goes, the gateway says that the reference
// is not permitted: the share goes to 0 at once, and after a while the attempt ends.
func TestGrantGoes(t *testing.T) {
	const elsewhere = "grant-canary"
	s := newEmptyShop(t, "grant")
	s.podinfo("web-stable")
	(&shop{t: t, namespace: elsewhere}).podinfo("web-canary")
	r := s.route()
	r.Spec.Rules[0].BackendRefs[1].Namespace = new(gatewayv1.Namespace(elsewhere))
	s.must(bed.Client.Create(t.Context(), r), "create the HTTPRoute")
	s.eventually("the gateway serves the route", func() (bool, string) {
		answer := s.answer(t.Context(), "/api/info", nil)
		return answer == "200 web-stable", answer
	})
	v := s.visit("/api/info", 5*time.Millisecond, nil)
	seen := s.open(&gatewayv1.HTTPRouteList{}, "web")
	startManager(t)
	wr := s.rollout(stage("10"), withApproval("20"))
	wr.Spec.Canary.Namespace = elsewhere
	wr.Spec.OnUnhealthy.For = "6s"
	s.must(bed.Client.Create(t.Context(), wr), "create the rollout")
	s.awaitRefusal(v1alpha1.ReasonNotResolved, "RefNotPermitted")
	time.Sleep(quiet)
	if st := s.status(); s.weight() != 0 || st.Phase == v1alpha1.PhaseRolledBack {
		t.Errorf("without a grant: weight %d, %s", s.weight(), describe(st))
	}
	v.only(0, "200 web-stable")

	grant := &gatewayv1.ReferenceGrant{}
	grant.Namespace, grant.Name = elsewhere, "web"
	grant.Spec.From = []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: "HTTPRoute", Namespace: gatewayv1.Namespace(s.namespace)}}
	grant.Spec.To = []gatewayv1.ReferenceGrantTo{{Kind: "Service"}}
	s.must(bed.Client.Create(t.Context(), grant), "create the ReferenceGrant")
	s.awaitApproval("v2", 1)
	s.must(bed.Client.Delete(t.Context(), grant), "delete the ReferenceGrant")
	s.awaitRefusal(v1alpha1.ReasonNotResolved, "RefNotPermitted")
	refused := meta.FindStatusCondition(s.status().Conditions, v1alpha1.ConditionRouteAccepted).LastTransitionTime
	s.eventually("the canary gets nothing, and the attempt goes on", func() (bool, string) {
		st := s.status()
		return s.weight() == 0 && st.Outcome == v1alpha1.OutcomeInProgress, describe(st)
	})
	if took := time.Since(refused.Time); took > 4*time.Second {
		t.Errorf("the weight went to 0 %s after the gateway's refusal, want at once", took)
	}
	s.order(v1alpha1.VerbApprove)
	st := s.awaitPhase("v2", v1alpha1.PhaseRolledBack)
	if st.OutcomeReason != v1alpha1.ReasonRouteNotResolved || !strings.Contains(st.OutcomeMessage, "RefNotPermitted") || !strings.Contains(st.OutcomeMessage, "missing ReferenceGrant") {
		t.Errorf("rolled back because of %s: %s", st.OutcomeReason, st.OutcomeMessage)
	}
	if held := st.History[0].EndedAt.Sub(refused.Time); held < 6*time.Second {
		t.Errorf("rolled back %s after the gateway's refusal, want onUnhealthy.for, 6s, at least", held)
	}
	s.wantCanary(seen, 0, 0, 10, 20, 0)
	v.sees(100, map[string]float64{"200 web-stable": 100})
	v.only(0, "200 web-stable", "200 web-canary", "500 ") // what the gateway says instead of the canary
}

// TestAGatewayThatIsNotThere has a route on two Gateways, of which one does not exist.
// Traefik reports on both. Nothing is raised until the route names the other one alone.
func TestAGatewayThatIsNotThere(t *testing.T) {
	s := newEmptyShop(t, "notthere")
	s.podinfo("web-stable")
	s.podinfo("web-canary")
	r := s.route()
	r.Spec.ParentRefs = append(r.Spec.ParentRefs, gatewayv1.ParentReference{Name: "nowhere"})
	s.must(bed.Client.Create(t.Context(), r), "create the HTTPRoute")
	s.load(100)
	startManager(t)
	s.must(bed.Client.Create(t.Context(), s.rollout(withApproval("10"))), "create the rollout")
	s.eventually("the status names the Gateway", func() (bool, string) {
		st := s.status()
		c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionReady)
		return c != nil && c.Reason == v1alpha1.ReasonRouteNotConfirmed && strings.Contains(c.Message, "Gateway "+s.namespace+"/nowhere does not exist"), describe(st)
	})
	time.Sleep(quiet)
	if weight := s.weight(); weight != 0 {
		t.Errorf("the canary has weight %d, want 0", weight)
	}
	s.must(bed.Client.Get(t.Context(), s.key(), r), "read the route")
	before := r.DeepCopy()
	r.Spec.ParentRefs = r.Spec.ParentRefs[:1]
	s.must(bed.Client.Patch(t.Context(), r, client.MergeFrom(before)), "take the other Gateway out")
	s.awaitApproval("v2", 0)
	if weight := s.weight(); weight != 10 {
		t.Errorf("the canary has weight %d, want 10", weight)
	}
}
