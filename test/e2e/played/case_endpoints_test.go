package played

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// endpoint is the state of one endpoint of a Service.
type endpoint struct{ ready, terminating bool }

// these returns n endpoints that are alike.
func these(n int, e endpoint) []endpoint {
	all := make([]endpoint, n)
	for i := range all {
		all[i] = e
	}
	return all
}

// setEndpoints says what the endpoints of a Service are from now on.
func (w *world) setEndpoints(service string, endpoints ...endpoint) {
	w.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		slice := &discoveryv1.EndpointSlice{}
		key := client.ObjectKey{Namespace: w.namespace, Name: newEndpoints(w.namespace, service, true).Name}
		if err := w.client.Get(w.t.Context(), key, slice); err != nil {
			return err
		}
		slice.Endpoints = nil
		for i, e := range endpoints {
			one := newEndpoint(service, i, e.ready)
			one.Conditions.Terminating = new(e.terminating)
			slice.Endpoints = append(slice.Endpoints, one)
		}
		return w.client.Update(w.t.Context(), slice)
	})
	if err != nil {
		w.t.Fatalf("setting the endpoints of Service %s: %v", service, err)
	}
}

// isWaitingForCanary tells whether a rollout says that its canary is not ready.
func isWaitingForCanary(wr *v1alpha1.WeightedRollout) bool {
	return condition(wr, v1alpha1.ConditionReconciling).Reason == v1alpha1.ReasonCanaryNotReady && desired(wr) == "0"
}

// TestC30CanaryNotReadyAtStart: a canary without a ready endpoint gets nothing: with
// none at all, with one that is not ready, and with one that is being shut down. It
// starts as soon as there is one.
func TestC30CanaryNotReadyAtStart(t *testing.T) {
	w := newWorld(t)
	waiting := map[string][]endpoint{
		"none": nil, "unready": these(2, endpoint{}), "terminating": these(2, endpoint{ready: true, terminating: true}),
	}
	for name, endpoints := range waiting {
		w.rollout(name, stages("10m", "10"))
		w.setEndpoints(canaryOf(name), endpoints...)
	}
	w.rollout("other", stages("1s", "50"))
	w.startManager()
	w.awaitPhase("other", v1alpha1.PhasePromoted)
	for name := range waiting {
		w.await(name, "waiting for the canary", isWaitingForCanary)
		if writes := w.routeWrites(name, 0); len(writes) > 0 {
			t.Errorf("%s: the route is written: %v", name, writes)
		}
		w.setEndpoints(canaryOf(name), endpoint{}, endpoint{ready: true})
	}
	for name := range waiting {
		w.awaitShare(name, "10")
		w.wantWeights(name, "100/0", "90/10")
	}
}

// TestC30CanaryLosesItsEndpoints: a canary whose last endpoint goes, or begins to shut
// down, gets nothing at once, metrics or not. It is not rolled back, and comes back as a
// cold one.
func TestC30CanaryLosesItsEndpoints(t *testing.T) {
	w := newWorld(t)
	lost := map[string][]endpoint{
		"gone": nil, "unready": these(5, endpoint{}), "terminating": these(5, endpoint{ready: true, terminating: true}),
	}
	for name := range lost {
		w.rollout(name, stages("1s", "10", "40"), soak(1, "10m"), func(wr *v1alpha1.WeightedRollout) {
			wr.Spec.Ramp.MinIncrease = "1"
			wr.Spec.Ramp.Warmup = v1alpha1.Warmup{InitialPercent: "50", Soak: "1s", IncrementPercent: "50"}
		})
		w.setEndpoints(canaryOf(name), these(5, endpoint{ready: true})...)
	}
	w.startManager()
	for name := range lost {
		w.awaitShare(name, "40")
	}
	w.prom.fail(outage{refuse: true})
	for name, endpoints := range lost {
		w.setEndpoints(canaryOf(name), endpoints...)
	}
	for name := range lost {
		wr := w.await(name, "waiting for the canary, confirmed", func(wr *v1alpha1.WeightedRollout) bool {
			return isWaitingForCanary(wr) && wr.Status.Share.ConfirmedAt != nil
		})
		if wr.Status.Outcome != v1alpha1.OutcomeInProgress || wr.Status.Stage.Index != 1 ||
			wr.Status.Warmup == nil || wr.Status.Warmup.Reason != v1alpha1.ColdNotReady {
			t.Errorf("%s: stage %+v, warm-up %+v: %s", name, wr.Status.Stage, wr.Status.Warmup, summary(wr))
		}
		w.awaitEvent(name, v1alpha1.ReasonCanaryNotReady, "from 40 to 0 percent")
		w.wantWeights(name, "100/0", "95/5", "90/10", "80/20", "60/40", "100/0")
	}
	w.prom.fail(outage{})
	for name := range lost {
		w.setEndpoints(canaryOf(name), endpoint{ready: true})
	}
	for name := range lost {
		if wr := w.awaitShare(name, "40"); wr.Status.Attempt != 1 {
			t.Errorf("%s: attempt %d", name, wr.Status.Attempt)
		}
		w.wantWeights(name, "100/0", "95/5", "90/10", "80/20", "60/40", "100/0", "80/20", "60/40")
	}
}

// withWorkloads names the Deployments of both tracks, which must be there.
func withWorkloads(wr *v1alpha1.WeightedRollout) {
	wr.Spec.Stable.Workload = &v1alpha1.WorkloadReference{Name: wr.Spec.Stable.Service}
	wr.Spec.Canary.Workload = &v1alpha1.WorkloadReference{Name: wr.Spec.Canary.Service}
}

// deployment creates a Deployment that asks for so many replicas. Nobody makes its pods:
// those that there are stand in the EndpointSlices.
func (w *world) deployment(name string, replicas int32) {
	w.t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "registry.example/" + name}}},
			},
		},
	}
	w.create(d)
	// As its controller would say.
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas}
	if err := w.bed.Client.Status().Update(w.t.Context(), d); err != nil {
		w.t.Fatal(err)
	}
}

// TestC32RollbackOntoAShrunkStable: stable has lost most of its pods while the canary
// had half of the traffic. An unhealthy canary is rolled back all the same, in one step;
// where the workloads are named, a warning says that stable is too small.
func TestC32RollbackOntoAShrunkStable(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"services", "workloads"} {
		w.create(newRoute(w.namespace, name, new(int32(100)), new(int32(0))))
		w.endpoints(name)
		w.setEndpoints(stableOf(name), these(10, endpoint{ready: true})...)
		w.setEndpoints(canaryOf(name), these(10, endpoint{ready: true})...)
	}
	w.create(newRollout(w.namespace, "services", w.prom.url(), stages("10m", "50")))
	w.deployment(stableOf("workloads"), 10)
	w.deployment(canaryOf("workloads"), 10)
	w.create(newRollout(w.namespace, "workloads", w.prom.url(), stages("10m", "50"), withWorkloads))
	w.startManager()
	for _, name := range []string{"services", "workloads"} {
		w.awaitShare(name, "50")
		w.setEndpoints(stableOf(name), append(these(8, endpoint{}), these(2, endpoint{ready: true})...)...)
		w.prom.set(w.namespace, canaryOf(name), traffic{perSecond: 50, failed: 0.25})
	}
	for _, name := range []string{"services", "workloads"} {
		if wr := w.awaitPhase(name, v1alpha1.PhaseRolledBack); wr.Status.OutcomeReason != v1alpha1.ReasonUnhealthy {
			t.Errorf("%s: %s: %s", name, wr.Status.OutcomeReason, wr.Status.OutcomeMessage)
		}
		w.wantWeights(name, "100/0", "70/30", "50/50", "100/0")
	}
	w.awaitEvent("workloads", v1alpha1.ReasonStableUndersized, "has 2 ready replicas and was asked to have 10")
}

// TestC32StableIsDead: traffic is not sent to a stable that has no ready endpoint, for
// whatever reason the canary is to be rolled back. That is said, and done as soon as
// stable is there again.
func TestC32StableIsDead(t *testing.T) {
	w := newWorld(t)
	walked := []string{"100/0", "70/30", "50/50"}
	reasons := map[string]string{"unhealthy": v1alpha1.ReasonUnhealthy, "aborted": v1alpha1.ReasonAborted}
	for name := range reasons {
		w.rollout(name, stages("10m", "50"))
		w.setEndpoints(canaryOf(name), these(5, endpoint{ready: true})...)
	}
	w.startManager()
	for name := range reasons {
		w.awaitShare(name, "50")
		w.setEndpoints(stableOf(name), these(2, endpoint{})...)
		w.awaitStalled(name, v1alpha1.ReasonStableUnavailable, stableOf(name))
	}
	w.prom.set(w.namespace, canaryOf("unhealthy"), traffic{perSecond: 50, failed: 0.25})
	w.abort("aborted")
	w.await("unhealthy", "verdict Unhealthy", func(wr *v1alpha1.WeightedRollout) bool {
		return wr.Status.Verdict != nil && wr.Status.Verdict.State == v1alpha1.VerdictUnhealthy
	})
	w.awaitQuestions(held, "requests_total")
	for name := range reasons {
		wr := w.awaitStalled(name, v1alpha1.ReasonStableUnavailable, stableOf(name))
		if wr.Status.Outcome != v1alpha1.OutcomeInProgress || desired(wr) != "50" {
			t.Errorf("%s: %s", name, summary(wr))
		}
		w.wantWeights(name, walked...)
		w.setEndpoints(stableOf(name), endpoint{}, endpoint{ready: true})
	}
	for name, reason := range reasons {
		if wr := w.awaitPhase(name, v1alpha1.PhaseRolledBack); wr.Status.OutcomeReason != reason {
			t.Errorf("%s: %s: %s", name, wr.Status.OutcomeReason, wr.Status.OutcomeMessage)
		}
		w.wantWeights(name, append(append([]string{}, walked...), "100/0")...)
	}
}
