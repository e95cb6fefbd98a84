package workloads

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// Of a workload of any kind the replicas are read from its scale: here those of the
// ReplicaSet of the canary.
func TestWorkloadOfAnyKind(t *testing.T) {
	w := newWorld(t)
	w.shop("web:2")
	w.awaitEndpoints(canary, 1)
	name := w.replicaSetOf(canary)
	w.rollout(func(s *v1alpha1.WeightedRolloutSpec) {
		s.Revision = "2"
		s.Canary.Workload = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name}
	})
	status := w.await("more replicas are awaited", func(s v1alpha1.WeightedRolloutStatus) bool {
		got, _ := reason(s, v1alpha1.ConditionReconciling)
		return got == v1alpha1.ReasonInsufficientCapacity
	})
	if _, text := reason(status, v1alpha1.ConditionReconciling); !strings.Contains(text, `ReplicaSet "`+name+`" has 1 ready replica, and 50 percent of the traffic takes 2 (of 4 for all of it)`) {
		t.Errorf("it says: %s", text)
	}
	w.mergePatch(canary, `{"spec":{"replicas":4}}`)
	w.awaitPhase(v1alpha1.PhasePromoted)
}

// replicaSetOf is the name of a Deployment's ReplicaSet, once it is there.
func (w *world) replicaSetOf(deployment string) string {
	w.t.Helper()
	name := ""
	w.eventually("a ReplicaSet of "+deployment, func() (bool, string) {
		var sets appsv1.ReplicaSetList
		if err := w.Client.List(w.t.Context(), &sets, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatal(err)
		}
		for _, set := range sets.Items {
			if strings.HasPrefix(set.Name, deployment+"-") {
				name = set.Name
			}
		}
		return name != "", fmt.Sprintf("%d ReplicaSets", len(sets.Items))
	})
	return name
}
