package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDeploymentRolledOut(t *testing.T) {
	type status = appsv1.DeploymentStatus
	failed := []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: "True", Reason: "FailedCreate", Message: "exceeded\nquota " + strings.Repeat("x", 300)}}
	late := []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: "False", Reason: "MinimumReplicasUnavailable"},
		{Type: appsv1.DeploymentProgressing, Status: "False", Reason: "ProgressDeadlineExceeded", Message: "it timed out"},
	}
	for _, tt := range []struct {
		name     string
		replicas *int32
		paused   bool
		status   status
		want     string
	}{
		{"done", new(int32(3)), false, status{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}, ""},
		{"done, without a number", nil, false, status{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}, ""},
		{"none wanted", new(int32(0)), false, status{ObservedGeneration: 2}, ""},
		{"being scaled down", new(int32(3)), false, status{ObservedGeneration: 2, Replicas: 5, UpdatedReplicas: 5, AvailableReplicas: 5}, ""},
		{"paused when it was done", new(int32(3)), true, status{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}, ""},
		{"not observed", new(int32(3)), false, status{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}, "generation 2 has not been observed yet"},
		{"not updated", new(int32(3)), false, status{ObservedGeneration: 2, Replicas: 4, UpdatedReplicas: 2, AvailableReplicas: 3}, "2 of 3 replicas run the new template"},
		{"old ones left", new(int32(3)), false, status{ObservedGeneration: 2, Replicas: 4, UpdatedReplicas: 3, AvailableReplicas: 3}, "1 of 4 replicas run an old template"},
		{"not available", new(int32(3)), false, status{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 2}, "2 of 3 replicas are available"},
		{"paused", new(int32(3)), true, status{ObservedGeneration: 2, Replicas: 3, AvailableReplicas: 3}, "0 of 3 replicas run the new template; the Deployment is paused: set spec.paused to false"},
		{"too late", new(int32(3)), false, status{ObservedGeneration: 2, Replicas: 4, UpdatedReplicas: 1, AvailableReplicas: 3, Conditions: late}, "1 of 3 replicas run the new template; ProgressDeadlineExceeded: it timed out"},
		{"quota", new(int32(1)), false, status{ObservedGeneration: 2, Conditions: failed}, "0 of 1 replicas run the new template; FailedCreate: exceeded quota " + strings.Repeat("x", 184) + "…"},
	} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: tt.replicas, Paused: tt.paused}, Status: tt.status}
		ok, why := DeploymentRolledOut(d)
		if diff := cmp.Diff(tt.want, why); diff != "" || ok != (tt.want == "") {
			t.Errorf("%s: %t (-want +got):\n%s", tt.name, ok, diff)
		}
	}
	if ok, why := DeploymentRolledOut(nil); ok || why == "" {
		t.Errorf("no Deployment: %t, %q", ok, why)
	}
}

func TestStatefulSetRolledOut(t *testing.T) {
	type status = appsv1.StatefulSetStatus
	onDelete := appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	partition := appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2))}}
	for _, tt := range []struct {
		name     string
		strategy appsv1.StatefulSetUpdateStrategy
		status   status
		want     string
	}{
		{"done", appsv1.StatefulSetUpdateStrategy{}, status{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}, ""},
		{"done by hand", onDelete, status{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}, ""},
		{"not observed", onDelete, status{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}, "generation 2 has not been observed yet"},
		{"not updated", appsv1.StatefulSetUpdateStrategy{}, status{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 1, AvailableReplicas: 3}, "1 of 3 replicas run the new template"},
		{"on delete", onDelete, status{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 1, AvailableReplicas: 3}, "1 of 3 replicas run the new template; the update strategy is OnDelete: delete the old pods, or set spec.updateStrategy.type to RollingUpdate"},
		{"partition", partition, status{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 1, AvailableReplicas: 3}, "1 of 3 replicas run the new template; spec.updateStrategy.rollingUpdate.partition keeps the pods below number 2 as they are: set it to 0"},
		{"not available", partition, status{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 1}, "1 of 3 replicas are available"},
	} {
		s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3)), UpdateStrategy: tt.strategy}, Status: tt.status}
		ok, why := StatefulSetRolledOut(s)
		if diff := cmp.Diff(tt.want, why); diff != "" || ok != (tt.want == "") {
			t.Errorf("%s: %t (-want +got):\n%s", tt.name, ok, diff)
		}
	}
	if ok, why := StatefulSetRolledOut(nil); ok || why == "" {
		t.Errorf("no StatefulSet: %t, %q", ok, why)
	}
}
