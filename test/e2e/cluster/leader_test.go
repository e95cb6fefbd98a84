package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// kills is how often the leader is killed during one rollout.
const kills = 10

// testLeaderKilled kills the leader's pod at ten moments of a rollout: after each raise, a
// little later each time. Every other time it is the process alone, as a crash would, so
// that the lease has to run out; in a given cluster, whose processes are out of reach, the
// pod is deleted and gives the lease back. The shares must be those of an undisturbed
// rollout.
func testLeaderKilled(t *testing.T) {
	s := newShop(t, plan{
		Namespace: "e2e-leader", Stages: []int{5, 10, 20, 40, 60, 80}, Soak: "1s", MinIncrease: 5, MaxIncrease: 10,
	}, 60)
	want := []int32{0, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}
	s.begin()
	leaders := map[string]bool{}
	for i := range kills {
		s.reaches(want[i+1])
		// From before the gateway has confirmed the share to after its evidence is there.
		time.Sleep(time.Duration(i) * 400 * time.Millisecond)
		pod := leader(t)
		leaders[pod.Name] = true
		if i%2 == 0 {
			s.say("kill %d at %d percent: pod %s is deleted by force", i+1, s.last(), pod.Name)
			kubectl(t, "delete", "pod", "--namespace="+systemNamespace, "--force", "--grace-period=0", pod.Name)
			continue
		}
		if cluster.own == nil {
			s.say("kill %d at %d percent: pod %s is deleted", i+1, s.last(), pod.Name)
			kubectl(t, "delete", "pod", "--namespace="+systemNamespace, pod.Name)
			continue
		}
		s.say("kill %d at %d percent: the process of pod %s", i+1, s.last(), pod.Name)
		crash(t, pod)
	}
	s.wants(want...)
	s.wantPhase(v1alpha1.PhasePromoted)
	s.wantNoServerError()
	if len(leaders) < 2 {
		t.Errorf("only %v has led: no replica took over from another", leaders)
	}
}

// crash kills the only process of a pod, as the kernel does when memory is short, and
// waits until the kubelet has noticed.
func crash(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	before := pod.Status.ContainerStatuses[0]
	must(t, cluster.own.KillContainer(t.Context(), before.ContainerID), "kill the leader's process")
	eventually(t, "the kubelet starts "+pod.Name+" again", func() (bool, string) {
		for _, p := range managers(t) {
			if p.Name == pod.Name && len(p.Status.ContainerStatuses) == 1 {
				now := p.Status.ContainerStatuses[0]
				return now.RestartCount > before.RestartCount, now.String()
			}
		}
		return true, "" // it was replaced
	})
}
