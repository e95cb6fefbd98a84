package workloads

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/internal/workload"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// readyEndpoints counts the ready endpoints in the slices of a Service.
func (w *world) readyEndpoints(service string) int {
	w.t.Helper()
	var slices discoveryv1.EndpointSliceList
	if err := w.Client.List(w.t.Context(), &slices, client.InNamespace(w.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
		w.t.Fatal(err)
	}
	ready := 0
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready {
				ready++
			}
		}
	}
	return ready
}

func (w *world) awaitEndpoints(service string, want int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d ready endpoints of %s", want, service), func() (bool, string) {
		got := w.readyEndpoints(service)
		return got == want, fmt.Sprintf("%d of them", got)
	})
}

func (w *world) awaitRolledOut(name string) *appsv1.Deployment {
	w.t.Helper()
	d := &appsv1.Deployment{}
	w.eventually("Deployment "+name+" to roll out", func() (bool, string) {
		w.read(name, d)
		return workload.DeploymentRolledOut(d)
	})
	return d
}

func (w *world) awaitReplicas(name string, want int32) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d ready replicas of %s", want, name), func() (bool, string) {
		d := &appsv1.Deployment{}
		w.read(name, d)
		return d.Status.ReadyReplicas == want, fmt.Sprintf("%d of them, %d wanted", d.Status.ReadyReplicas, *d.Spec.Replicas)
	})
}

// images counts the pods of a workload by the image that they run.
func (w *world) images(name string) map[string]int {
	w.t.Helper()
	var pods corev1.PodList
	if err := w.Client.List(w.t.Context(), &pods, client.InNamespace(w.namespace), client.MatchingLabels(labelsOf(name))); err != nil {
		w.t.Fatal(err)
	}
	counts := map[string]int{}
	for _, pod := range pods.Items {
		counts[pod.Spec.Containers[0].Image]++
	}
	return counts
}

// change reads an object, and patches it; once more if somebody else has written it in
// between.
func (w *world) change(name string, o client.Object, patch func() ([]byte, error)) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%T %s to be patched", o, name), func() (bool, string) {
		w.read(name, o)
		steps, err := patch()
		if err != nil || steps == nil {
			w.t.Fatalf("the patch of %T %s is %s, %v", o, name, steps, err)
		}
		err = w.Client.Patch(w.t.Context(), o, client.RawPatch(types.JSONPatchType, steps))
		if err != nil && !apierrors.IsConflict(err) {
			w.t.Fatalf("patching %T %s with %s: %v", o, name, steps, err)
		}
		return err == nil, fmt.Sprint(err)
	})
}

func (w *world) set(state testbed.PodState, match func(*corev1.Pod) bool) {
	w.t.Helper()
	err := w.kubelet.Set(state, func(pod *corev1.Pod) bool { return pod.Namespace == w.namespace && match(pod) })
	if err != nil {
		w.t.Fatal(err)
	}
}

func runs(image string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Spec.Containers[0].Image == image }
}

// A workload makes pods, they become ready, and a Service finds them; what becomes of
// the pods shows in the slices.
func TestDeploymentServesAndRollsOut(t *testing.T) {
	w := newWorld(t)
	w.create(newService("web"))
	w.create(newDeployment("web", 3, template("web", "web:1")))
	d := w.awaitRolledOut("web")
	w.awaitEndpoints("web", 3)

	w.set(testbed.PodUnready, runs("web:1"))
	w.awaitEndpoints("web", 0)
	w.eventually("the Deployment to say so", func() (bool, string) {
		w.read("web", d)
		ok, why := workload.DeploymentRolledOut(d)
		return !ok && why == "0 of 3 replicas are available", why
	})
	w.set(testbed.PodReady, runs("web:1"))
	w.awaitEndpoints("web", 3)

	canary := template("web", "web:2")
	w.awaitRolledOut("web")
	w.change("web", d, func() ([]byte, error) { return workload.UpdateDeployment(d, &canary) })
	if ok, why := workload.DeploymentRolledOut(d); ok {
		t.Errorf("a Deployment that was just changed is rolled out (%s)", why)
	}
	w.awaitRolledOut("web")
	w.awaitEndpoints("web", 3)
	w.eventually("the old pods to go", func() (bool, string) {
		images := w.images("web")
		return images["web:1"] == 0 && images["web:2"] == 3, fmt.Sprint(images)
	})
}

// A new template whose pods crash never rolls out, and the old pods go on serving.
func TestCrashingPodsNeverRollOut(t *testing.T) {
	w := newWorld(t)
	w.set(testbed.PodCrashing, runs("web:bad"))
	w.create(newService("web"))
	w.create(newDeployment("web", 3, template("web", "web:1")))
	d := w.awaitRolledOut("web")
	bad := template("web", "web:bad")
	w.change("web", d, func() ([]byte, error) { return workload.UpdateDeployment(d, &bad) })
	w.eventually("a pod that crashes", func() (bool, string) {
		images := w.images("web")
		w.read("web", d)
		ok, why := workload.DeploymentRolledOut(d)
		return images["web:bad"] > 0 && d.Status.ObservedGeneration == d.Generation && !ok, fmt.Sprint(images, why)
	})
	w.awaitEndpoints("web", 3)
}

func TestStatefulSetRollsOut(t *testing.T) {
	w := newWorld(t)
	w.create(newStatefulSet("db", 2, template("db", "db:1")))
	s := &appsv1.StatefulSet{}
	rolledOut := func() (bool, string) {
		w.read("db", s)
		return workload.StatefulSetRolledOut(s)
	}
	w.eventually("the StatefulSet to roll out", rolledOut)
	canary := template("db", "db:2")
	w.change("db", s, func() ([]byte, error) { return workload.UpdateStatefulSet(s, &canary) })
	if ok, _ := workload.StatefulSetRolledOut(s); ok {
		t.Error("a StatefulSet that was just changed is rolled out")
	}
	w.eventually("the StatefulSet to roll out again", rolledOut)
	if images := w.images("db"); images["db:2"] != 2 || len(images) != 1 {
		t.Errorf("the pods run %v, want db:2 twice", images)
	}
}

// Without any metric an autoscaler still keeps its minimum, and goes no further down
// when the minimum is given back.
func TestAutoscalerRaisesToItsMinimum(t *testing.T) {
	w := newWorld(t)
	w.create(newDeployment("web", 2, template("web", "web:1")))
	w.create(newAutoscaler("web", 1, 8))
	w.awaitReplicas("web", 2)
	var all autoscalingv2.HorizontalPodAutoscalerList
	if err := w.Client.List(t.Context(), &all, client.InNamespace(w.namespace)); err != nil {
		t.Fatal(err)
	}
	h, err := workload.Autoscaler(all.Items, workload.Reference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: w.namespace, Name: "web"})
	if err != nil || h == nil {
		t.Fatalf("the autoscaler: %v, %v", h, err)
	}
	w.change("web", h, func() ([]byte, error) { return workload.RaiseMinimum(h, 5) })
	w.awaitReplicas("web", 5)
	w.change("web", h, func() ([]byte, error) { return workload.RestoreMinimum(h, 5, 1) })
	if got := workload.MinReplicas(h); got != 1 {
		t.Errorf("the minimum is %d, want 1", got)
	}
}

func TestScaleIsRaisedAndGivenBack(t *testing.T) {
	w := newWorld(t)
	d := newDeployment("web", 0, template("web", "web:1"))
	w.create(d)
	scale := func(patchFor func(*autoscalingv1.Scale) ([]byte, error)) {
		t.Helper()
		w.eventually("the scale to be written", func() (bool, string) {
			s := &autoscalingv1.Scale{}
			if err := w.Client.SubResource("scale").Get(t.Context(), d, s); err != nil {
				t.Fatal(err)
			}
			patch, err := patchFor(s)
			if err != nil || patch == nil {
				t.Fatalf("the patch is %s, %v", patch, err)
			}
			err = w.Client.SubResource("scale").Patch(t.Context(), d, client.RawPatch(types.JSONPatchType, patch), client.WithSubResourceBody(s))
			return err == nil, fmt.Sprint(err)
		})
	}
	scale(func(s *autoscalingv1.Scale) ([]byte, error) { return workload.RaiseReplicas(s, 4) })
	w.awaitReplicas("web", 4)
	scale(func(s *autoscalingv1.Scale) ([]byte, error) { return workload.RestoreReplicas(s, 4, 0) })
	w.awaitReplicas("web", 0)
}
