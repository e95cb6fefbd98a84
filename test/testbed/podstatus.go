package testbed

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podAddresses gives each pod an address of its own out of 192.0.2.0/24, which is set
// aside for documentation: nothing listens there.
type podAddresses struct {
	byPod map[types.NamespacedName]string
	taken map[string]bool
}

func (a *podAddresses) of(pod types.NamespacedName) (string, error) {
	if address, ok := a.byPod[pod]; ok {
		return address, nil
	}
	if a.byPod == nil {
		a.byPod, a.taken = map[types.NamespacedName]string{}, map[string]bool{}
	}
	for host := 1; host < 255; host++ {
		address := fmt.Sprintf("192.0.2.%d", host)
		if !a.taken[address] {
			a.byPod[pod], a.taken[address] = address, true
			return address, nil
		}
	}
	return "", errors.New("all 254 addresses for pods are taken")
}

func (a *podAddresses) free(pod types.NamespacedName) {
	delete(a.taken, a.byPod[pod])
	delete(a.byPod, pod)
}

// podStatus is what a kubelet would say of a pod in the state.
func podStatus(pod *corev1.Pod, state PodState, address string, started, now metav1.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.Phase = corev1.PodRunning
	status.PodIP, status.PodIPs = address, []corev1.PodIP{{IP: address}}
	status.HostIP, status.HostIPs = "127.0.0.1", []corev1.HostIP{{IP: "127.0.0.1"}}
	status.StartTime = &started
	ready := corev1.ConditionFalse
	if state == PodReady {
		ready = corev1.ConditionTrue
	}
	setPodCondition(&status, corev1.PodInitialized, corev1.ConditionTrue, now)
	setPodCondition(&status, corev1.ContainersReady, ready, now)
	setPodCondition(&status, corev1.PodReady, ready, now)
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(c, state, started))
	}
	return status
}

func containerStatus(c corev1.Container, state PodState, started metav1.Time) corev1.ContainerStatus {
	status := corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: "testbed", ContainerID: "testbed://" + c.Name,
		Ready: state == PodReady, Started: new(state != PodCrashing),
	}
	if state == PodCrashing {
		status.RestartCount = 3
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off restarting failed container " + c.Name}
		return status
	}
	status.State.Running = &corev1.ContainerStateRunning{StartedAt: started}
	return status
}

// setPodCondition keeps the time of the last transition while the value stays.
func setPodCondition(status *corev1.PodStatus, kind corev1.PodConditionType, value corev1.ConditionStatus, now metav1.Time) {
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if c.Type != kind {
			continue
		}
		if c.Status != value {
			c.Status, c.LastTransitionTime = value, now
		}
		return
	}
	status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: value, LastTransitionTime: now})
}
