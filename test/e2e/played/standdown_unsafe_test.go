package played

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// rolledBack aborts a rollout, and waits until stable serves everything.
func (w *world) rolledBack(name string) {
	w.t.Helper()
	w.edit(name, func(wr *v1alpha1.WeightedRollout) {
		metav1.SetMetaDataAnnotation(&wr.ObjectMeta, v1alpha1.AbortAnnotation, "1")
	})
	w.await(name, "rolled back and confirmed", func(wr *v1alpha1.WeightedRollout) bool {
		return wr.Status.Outcome == v1alpha1.OutcomeRolledBack && wr.Status.Share.ConfirmedAt != nil
	})
}

// TestStandDownBesideAnotherWriter: who sets the weights again and again is named, and
// nothing is safe.
func TestStandDownBesideAnotherWriter(t *testing.T) {
	w := newWorld(t)
	w.loose = true
	w.rollout("running", stages("10m", "30"))
	w.startManager()
	w.awaitShare("running", "30")
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for ctx.Err() == nil {
			if w.weightsNow("running").canary != 30 {
				w.editWeights("running", pair{70, 30})
			}
			time.Sleep(pollEvery)
		}
	})
	defer writer.Wait()
	defer stop()
	w.wantUnsafe(w.namespace + "/running: ")
	w.await("running", "contended", func(wr *v1alpha1.WeightedRollout) bool {
		return wr.Status.Outcome == v1alpha1.OutcomeRolledBack && isStalled(wr, v1alpha1.ReasonWeightContention, "")
	})
	w.wantUnsafe(w.namespace + "/running: by-hand keeps changing the weights")
}

// TestStandDownWhatAPersonMustSay: what no abort and no deletion makes safe is named, with
// the cure, and is not deleted.
func TestStandDownWhatAPersonMustSay(t *testing.T) {
	w := newWorld(t)
	w.loose = true
	w.create(newRoute(w.namespace, "unrecorded", ptr.To[int32](40), ptr.To[int32](60)))
	w.rolloutFor("unrecorded", stages("10m", "30"))
	w.rollout("unserved", stages("10m", "30"))
	w.rollout("edited", stages("10m", "30"))
	w.startManager()
	w.await("unrecorded", "without a record", func(wr *v1alpha1.WeightedRollout) bool { return isStalled(wr, v1alpha1.ReasonAdoptionAmbiguous, "") })
	w.awaitShare("unserved", "30")
	w.setReady(stableOf("unserved"), false)
	w.await("unserved", "without a ready stable", func(wr *v1alpha1.WeightedRollout) bool {
		return isStalled(wr, v1alpha1.ReasonStableUnavailable, "")
	})
	w.awaitShare("edited", "30")
	w.rolledBack("edited")
	w.edit("edited", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Mode = v1alpha1.ModeObserve })
	w.await("edited", "only observed", func(wr *v1alpha1.WeightedRollout) bool { return wr.Status.ObservedGeneration == wr.Generation })
	w.editWeights("edited", pair{40, 60})
	w.await("edited", "seen with other weights", func(wr *v1alpha1.WeightedRollout) bool { return ptr.Deref(wr.Status.Share.Observed, "") == "60" })

	for _, args := range [][]string{nil, {"--delete"}} {
		out, err := w.standDown(append(args, "--timeout=4s")...)
		if err == nil {
			t.Errorf("%v: it ended well: %s", args, out)
		}
		for _, words := range []string{
			"/unrecorded: nobody knows why the canary has 60 percent: give the retry command",
			"has no ready endpoint",
			"/edited: stable has been given everything, but its routes give the canary 60 percent",
			"set the mode to Enforce",
		} {
			if !strings.Contains(out, words) {
				t.Errorf("%v: %q is not in\n%s", args, words, out)
			}
		}
	}
	for _, name := range []string{"unrecorded", "unserved", "edited"} {
		if !w.get(name).DeletionTimestamp.IsZero() {
			t.Errorf("%s was deleted", name)
		}
	}

	w.command("unrecorded", v1alpha1.VerbRetry)
	w.setReady(stableOf("unserved"), true)
	w.edit("edited", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Mode = v1alpha1.ModeEnforce })
	w.await("unrecorded", "begun", func(wr *v1alpha1.WeightedRollout) bool { return wr.Status.Attempt == 1 })
	if out, err := w.standDown("--timeout=2m"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, name := range []string{"unrecorded", "unserved", "edited"} {
		if now := w.weightsNow(name); now.canary != 0 {
			t.Errorf("%s has %s", name, now)
		}
	}
}

// setReady says whether the only endpoint of a Service is ready.
func (w *world) setReady(service string, ready bool) {
	w.t.Helper()
	slice := newEndpoints(w.namespace, service, ready)
	now := &discoveryv1.EndpointSlice{}
	w.read(slice.Name, now)
	now.Endpoints[0].Conditions.Ready = &ready
	if err := w.client.Update(w.t.Context(), now); err != nil {
		w.t.Fatalf("updating EndpointSlice %s: %v", slice.Name, err)
	}
}

// TestStandDownPromotedAndStopped: a canary that serves everything and is unhealthy is not
// left alone.
func TestStandDownPromotedAndStopped(t *testing.T) {
	w := newWorld(t)
	w.rollout("promoted", stages("1s", "50"), func(wr *v1alpha1.WeightedRollout) { wr.Spec.OnUnhealthy.Action = v1alpha1.UnhealthyPause })
	w.startManager()
	w.awaitPhase("promoted", v1alpha1.PhasePromoted)
	w.prom.set(w.namespace, canaryOf("promoted"), traffic{perSecond: 50, failed: 0.5})
	w.await("promoted", "stopped", func(wr *v1alpha1.WeightedRollout) bool { return wr.Status.Pause != nil })
	w.wantUnsafe(w.namespace+"/promoted: the canary serves everything and is unhealthy", "abort it, or give the resume command")
	w.rolledBack("promoted")
	if out, err := w.standDown("--timeout=1m"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestStandDownWithRoutesThatGiveNothing: a route that is gone, or has no rule for the
// canary any more, is waited for by nobody.
func TestStandDownWithRoutesThatGiveNothing(t *testing.T) {
	w := newWorld(t)
	w.loose = true
	second := newRoute(w.namespace, "two-b", ptr.To[int32](100), ptr.To[int32](0))
	for i, service := range []string{stableOf("two"), canaryOf("two")} {
		second.Spec.Rules[0].BackendRefs[i].Name = gatewayv1.ObjectName(service)
	}
	w.create(second)
	w.rollout("two", stages("10m", "30"), func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Routes = append(wr.Spec.Routes, v1alpha1.RouteReference{Kind: v1alpha1.HTTPRouteKind, Name: "two-b"})
	})
	w.rollout("without", stages("10m", "30"))
	w.startManager()
	w.awaitShare("two", "30")
	w.awaitShare("without", "30")
	if err := w.client.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	route := w.route("without")
	before := route.DeepCopy()
	route.Spec.Rules[0].BackendRefs = route.Spec.Rules[0].BackendRefs[:1]
	if err := w.client.Patch(t.Context(), route, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if out, err := w.standDown("--timeout=1m"); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	if now := w.weightsNow("two"); now != (pair{100, 0}) {
		t.Errorf("two: %s", now)
	}
}

// TestStandDownOneIsFrozen: an admission policy that refuses a change of one keeps no other
// from being aborted, or deleted.
func TestStandDownOneIsFrozen(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"frozen", "later"} {
		w.rollout(name, stages("10m", "30"))
	}
	w.startManager()
	for _, name := range []string{"frozen", "later"} {
		w.awaitShare(name, "30")
	}
	w.freeze("frozen")
	out, err := w.standDown("--timeout=10s")
	if err == nil || !strings.Contains(out, "/frozen: it cannot be aborted") || !strings.Contains(out, "change freeze") || strings.Contains(out, "/frozen: attempt") {
		t.Errorf("%v: %s", err, out)
	}
	w.awaitPhase("later", v1alpha1.PhaseRolledBack)
	out, err = w.standDown("--timeout=10s", "--delete")
	if err == nil || !strings.Contains(out, "/frozen: it cannot be deleted") || !strings.Contains(out, "/later: deleted") || strings.Contains(out, "/frozen: deleted") {
		t.Errorf("%v: %s", err, out)
	}
	eventually(t, "the other is deleted", func() (bool, string) {
		err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "later"}, &v1alpha1.WeightedRollout{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// freeze has the API server refuse every change of a rollout but that of its status, until
// the test ends.
func (w *world) freeze(name string) {
	w.t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	rule := admissionv1.NamedRuleWithOperations{}
	rule.Operations = []admissionv1.OperationType{admissionv1.Update, admissionv1.Delete}
	rule.APIGroups, rule.APIVersions, rule.Resources = []string{v1alpha1.GroupVersion.Group}, []string{"*"}, []string{"weightedrollouts"}
	policy.Spec = admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule}},
		Validations: []admissionv1.Validation{{
			Expression: fmt.Sprintf("oldObject.metadata.namespace != %q || oldObject.metadata.name != %q", w.namespace, name), Message: "change freeze",
		}},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	binding.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: w.namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}
	for _, o := range []client.Object{policy, binding} {
		w.create(o)
		w.t.Cleanup(func() {
			if err := w.client.Delete(context.Background(), o); err != nil {
				w.t.Error(err)
			}
		})
	}
	eventually(w.t, "the policy is in force", func() (bool, string) {
		wr := w.get(name)
		before := wr.DeepCopy()
		metav1.SetMetaDataAnnotation(&wr.ObjectMeta, "example.com/try", strconv.FormatInt(time.Now().UnixNano(), 10))
		err := w.client.Patch(w.t.Context(), wr, client.MergeFrom(before))
		return err != nil, fmt.Sprint(err)
	})
}

// TestStandDownAwaitsTheAPIServer: one that fails at first is asked again, by both commands,
// and one that hangs is waited for no longer than was said.
func TestStandDownAwaitsTheAPIServer(t *testing.T) {
	w := newWorld(t)
	w.rollout("running", stages("10m", "30"))
	w.startManager()
	w.awaitShare("running", "30")
	config, err := w.bed.ManagerConfig()
	if err != nil {
		t.Fatal(err)
	}
	api := newAPIProxy(t, config)
	kubeconfig := api.writeKubeconfig(t)
	refuseOnce := func() func(*request) verdict {
		var asked atomic.Bool
		return func(*request) verdict {
			if asked.Swap(true) {
				return verdict{}
			}
			return verdict{refuse: http.StatusServiceUnavailable}
		}
	}
	api.onRequest(refuseOnce())
	if out, err := w.standDownBy(kubeconfig, "--timeout=1m"); err != nil || !strings.Contains(out, "running: attempt 1 is aborted") {
		t.Errorf("%v: %s", err, out)
	}
	w.killManager()
	api.onRequest(refuseOnce())
	if out, err := w.standDownBy(kubeconfig, "--finalizers"); err != nil || len(w.get("running").Finalizers) > 0 {
		t.Errorf("%v: %s", err, out)
	}

	hang := make(chan struct{})
	defer close(hang)
	api.onRequest(func(*request) verdict {
		<-hang
		return verdict{drop: true}
	})
	for _, args := range [][]string{nil, {"--delete"}, {"--finalizers"}} {
		out, err := w.standDownBy(kubeconfig, append(args, "--timeout=2s")...)
		if err == nil || !strings.Contains(out, "the 2s of --timeout are over, and the API server has not answered") {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
}

// TestStandDownHeldByAnother: a rollout that is deleted, and that the controller has let go
// of, is safe; before everything is deleted, whoever holds it is named.
func TestStandDownHeldByAnother(t *testing.T) {
	w := newWorld(t)
	w.rollout("held", stages("10m", "30"), func(wr *v1alpha1.WeightedRollout) { wr.Finalizers = []string{"example.com/other"} })
	w.startManager()
	w.awaitShare("held", "30")
	if err := w.client.Delete(t.Context(), w.get("held")); err != nil {
		t.Fatal(err)
	}
	w.await("held", "let go of", func(wr *v1alpha1.WeightedRollout) bool { return len(wr.Finalizers) == 1 })
	if out, err := w.standDown("--timeout=1m"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := w.standDown("--timeout=4s", "--delete"); err == nil || !strings.Contains(out, "/held: it is being deleted, and the controller has let go of it; what holds it are the finalizers of others: example.com/other") {
		t.Errorf("%v: %s", err, out)
	}
	w.edit("held", func(wr *v1alpha1.WeightedRollout) { wr.Finalizers = nil })
}

// TestStandDownBesideAnOlderRollout: one that shares a route with an older rollout gives back
// what it has in the routes that are its own.
func TestStandDownBesideAnOlderRollout(t *testing.T) {
	w := newWorld(t)
	w.loose = true
	tracks := func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Stable.Service, wr.Spec.Canary.Service = stableOf("shared"), canaryOf("shared")
	}
	w.rollout("shared", stages("10m", "5"), func(wr *v1alpha1.WeightedRollout) { wr.Spec.Mode = v1alpha1.ModeObserve })
	own := newRoute(w.namespace, "own", ptr.To[int32](100), ptr.To[int32](0))
	for i, service := range []string{stableOf("shared"), canaryOf("shared")} {
		own.Spec.Rules[0].BackendRefs[i].Name = gatewayv1.ObjectName(service)
	}
	w.create(own)
	// Of two that are of the same second, the one that comes first by name is the older.
	w.create(newRollout(w.namespace, "younger", w.prom.url(), stages("10m", "30"), tracks, func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Routes = []v1alpha1.RouteReference{{Kind: v1alpha1.HTTPRouteKind, Name: "shared"}, {Kind: v1alpha1.HTTPRouteKind, Name: "own"}}
	}))
	w.startManager()
	w.awaitShare("younger", "30")
	w.edit("shared", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Mode = v1alpha1.ModeEnforce })
	w.await("younger", "beside the older one", func(wr *v1alpha1.WeightedRollout) bool {
		return isStalled(wr, v1alpha1.ReasonPartialRouteConflict, `"shared"`)
	})
	if out, err := w.standDown("--timeout=1m"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, name := range []string{"shared", "own"} {
		if now := w.weightsNow(name); now != (pair{100, 0}) {
			t.Errorf("%s: %s", name, now)
		}
	}
}
