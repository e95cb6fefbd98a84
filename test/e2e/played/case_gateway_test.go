package played

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestC21GatewayLags: the soak starts when the gateway has caught up, and what is
// measured before that is no evidence.
func TestC21GatewayLags(t *testing.T) {
	w := newWorld(t)
	const lag, soakTime, window = 4 * time.Second, 2 * time.Second, time.Second
	w.gateway.set(w.namespace, gatewayMode{lag: lag})
	w.rollout("web", stages("2s", "10", "30"))
	w.startManager()
	w.awaitPhase("web", v1alpha1.PhasePromoted)
	w.wantWeights("web", "100/0", "90/10", "70/30", "40/60", "10/90", "0/100")

	// Between two writes to the route lies the lag, and at a stage's share its soak.
	soaked := map[int]bool{10: true, 30: true}
	writes := w.api.since(0, func(r *request) bool { return r.isRouteWrite() && r.accepted() })
	for i := 1; i < len(writes); i++ {
		was, _ := writes[i-1].firstPair()
		least := lag
		if soaked[was.canary] {
			least += soakTime
		}
		if gap := writes[i].Answered.Sub(writes[i-1].Answered); gap < least-100*time.Millisecond {
			t.Errorf("%s was left after %s, although the gateway lags %s behind and the soak is %s", was, gap, lag, least-lag)
		}
	}
	confirmations := w.api.since(0, func(r *request) bool {
		patch, err := r.patch()
		return r.isStatusWrite() && r.accepted() && err == nil && at(patch, "status", "share", "confirmedAt") != nil
	})
	if len(confirmations) < len(writes) {
		t.Fatalf("%d confirmations of %d writes", len(confirmations), len(writes))
	}
	promoted := w.api.since(0, func(r *request) bool {
		patch, err := r.patch()
		return r.isStatusWrite() && r.accepted() && err == nil && at(patch, "status", "outcome") == string(v1alpha1.OutcomePromoted)
	})
	last, err := confirmations[len(confirmations)-1].patch()
	if err != nil {
		t.Fatal(err)
	}
	confirmedAt, err := time.Parse(time.RFC3339Nano, fmt.Sprint(at(last, "status", "share", "confirmedAt")))
	if err != nil {
		t.Fatal(err)
	}
	if len(promoted) != 1 || promoted[0].At.Sub(confirmedAt) < window {
		t.Errorf("promoted by %v, although the last gate needs a window of %s after the confirmation at %s", promoted, window, confirmedAt)
	}
	// The first confirmation is that of 100/0, which the route had already.
	for i, r := range writes {
		if gap := confirmations[i+1].At.Sub(r.Answered); gap < lag-100*time.Millisecond {
			p, _ := r.firstPair()
			t.Errorf("%s was confirmed after %s, although the gateway lags %s behind", p, gap, lag)
		}
	}
}

// TestC21GatewayReportsNoGeneration: a gateway that never says which generation it
// speaks of holds the rollout, by name; --confirm=accepted goes on.
func TestC21GatewayReportsNoGeneration(t *testing.T) {
	w := newWorld(t)
	w.gateway.set(w.namespace, gatewayMode{noGeneration: true})
	w.rollout("web", stages("1s", "50"))
	w.startManager()
	w.mustNotConfirm("web", playedController)
	w.killManager()
	w.startManager("--confirm=accepted")
	w.awaitPhase("web", v1alpha1.PhasePromoted)
	w.wantWeights("web", "100/0", "70/30", "50/50", "20/80", "0/100")
}

// TestC21GatewaySaysNothing: no status.parents at all holds the rollout, and says
// which parent is missing.
func TestC21GatewaySaysNothing(t *testing.T) {
	w := newWorld(t)
	w.gateway.set(w.namespace, gatewayMode{silent: true})
	w.rollout("web", stages("1s", "50"))
	w.startManager()
	w.mustNotConfirm("web", w.namespace+"/gw")
	w.gateway.set(w.namespace, gatewayMode{})
	w.awaitPhase("web", v1alpha1.PhasePromoted)
	w.wantWeights("web", "100/0", "70/30", "50/50", "20/80", "0/100")
}

// mustNotConfirm waits for the condition that says that nobody confirms the route,
// and checks that nothing moves for a while.
func (w *world) mustNotConfirm(name, who string) {
	w.t.Helper()
	for _, kind := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionRouteAccepted} {
		w.await(name, "RouteNotConfirmed in condition "+kind+", naming "+who, func(wr *v1alpha1.WeightedRollout) bool {
			c := condition(wr, kind)
			return c.Reason == v1alpha1.ReasonRouteNotConfirmed && strings.Contains(c.Message, who)
		})
	}
	time.Sleep(8 * time.Second)
	w.wantWeights(name, "100/0")
	if wr := w.get(name); wr.Status.Share.ConfirmedAt != nil || desired(wr) != "0" {
		w.t.Errorf("%s did not hold: %s", name, summary(wr))
	}
}

// TestC22GatewayRejects: a route that the gateway does not accept gets no traffic
// for the canary, and the condition says why.
func TestC22GatewayRejects(t *testing.T) {
	w := newWorld(t)
	w.gateway.set(w.namespace, gatewayMode{notAccepted: true})
	w.rollout("web", stages("1s", "50"))
	w.startManager()
	w.await("web", "the gateway's own reason", func(wr *v1alpha1.WeightedRollout) bool {
		c := condition(wr, v1alpha1.ConditionRouteAccepted)
		return c.Reason == v1alpha1.ReasonNotAccepted && strings.Contains(c.Message, "NotAllowedByListeners")
	})
	time.Sleep(4 * time.Second)
	w.wantWeights("web", "100/0")
	w.gateway.set(w.namespace, gatewayMode{})
	w.awaitShare("web", "30")
	w.gateway.set(w.namespace, gatewayMode{notResolved: true})
	wr := w.awaitPhase("web", v1alpha1.PhaseRolledBack)
	if wr.Status.OutcomeReason != v1alpha1.ReasonRouteNotResolved {
		t.Errorf("rolled back because of %s, want %s", wr.Status.OutcomeReason, v1alpha1.ReasonRouteNotResolved)
	}
	eventually(t, "all traffic on stable", func() (bool, string) {
		now := w.weightsNow("web")
		return now == pair{100, 0}, now.String()
	})
}

// TestConfirmedByWhoServes: the gateway reports on all Gateways of a route once one is its
// own, as some do. That counts for its own alone, and the rollout goes on as soon as the
// other one is served, too.
func TestConfirmedByWhoServes(t *testing.T) {
	w := newWorld(t)
	route := newRoute(w.namespace, "web", new(int32(100)), new(int32(0)))
	route.Spec.ParentRefs = append(route.Spec.ParentRefs, gatewayv1.ParentReference{Name: "other"})
	w.create(route)
	w.rolloutFor("web", stages("1s", "50"))
	w.startManager()
	w.mustNotConfirm("web", "Gateway "+w.namespace+"/other does not exist")

	if err := w.bed.PlayGateway(t.Context(), w.namespace, "other", "example.com/idle"); err != nil {
		t.Fatal(err)
	}
	w.mustNotConfirm("web", "controller example.com/idle")

	gateway := &gatewayv1.Gateway{}
	w.read("other", gateway)
	before := gateway.DeepCopy()
	gateway.Spec.GatewayClassName = gatewayv1.ObjectName(strings.ReplaceAll(playedController, "/", "-"))
	if err := w.client.Patch(t.Context(), gateway, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	w.awaitPhase("web", v1alpha1.PhasePromoted)
	w.wantWeights("web", "100/0", "70/30", "50/50", "20/80", "0/100")
}
