package workloads

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
	"github.com/weightedrollout/weightedrollout/internal/workload"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// The whole way of a version: the canary is scaled ahead of its share, stable is
// updated, and the traffic goes back to it.
func TestScaledCanaryIsPromotedAndStableUpdated(t *testing.T) {
	w := newWorld(t)
	w.allowScaling()
	w.shop("web:2")
	w.create(newAutoscaler(canary, 1, 8))
	history := w.record()
	w.rollout(func(s *v1alpha1.WeightedRolloutSpec) {
		s.Canary.Capacity = v1alpha1.CapacityScale
		s.Promotion.Mode = v1alpha1.PromotionUpdateStable
	})
	status := w.awaitPhase(v1alpha1.PhaseCompleted)

	events := w.upToNow(history)
	var shares []int32
	replay(events, func(before int32, now *moment) {
		shares = append(shares, now.share)
		if now.share > before {
			needed := workload.Needed(weights.Share(now.share)*weights.SharePoint, 4)
			if got := now.behind(canary); len(got) < int(needed) {
				t.Errorf("the share went from %d to %d percent with %d ready pods of the canary, want %d", before, now.share, len(got), needed)
			}
			if now.minimum[canary] < needed {
				t.Errorf("the share went to %d percent with a minimum of %d replicas, want %d", now.share, now.minimum[canary], needed)
			}
		}
		if now.share < before && slices.Contains(now.behind(stable), "web:1") {
			t.Errorf("the share went from %d to %d percent while stable ran %v", before, now.share, now.behind(stable))
		}
	})
	if want := []int32{0, 25, 50, 75, 100, 75, 50, 25, 0}; !slices.Equal(shares, want) {
		t.Errorf("the canary's shares were %v, want %v", shares, want)
	}

	d := w.awaitRolledOut(stable)
	if image := d.Spec.Template.Spec.Containers[0].Image; image != "web:2" || *d.Spec.Replicas != 4 || d.Spec.Template.Labels["app"] != stable {
		t.Errorf("stable runs %s in %d replicas with labels %v", image, *d.Spec.Replicas, d.Spec.Template.Labels)
	}
	if status.StableRevision != status.Revision || status.Revision == "" {
		t.Errorf("stable is said to run %q, want %q", status.StableRevision, status.Revision)
	}
	w.awaitMinimum(1)
	w.await("nothing is said to be scaled", func(s v1alpha1.WeightedRolloutStatus) bool { return s.Capacity == nil || len(s.Capacity.Scaled) == 0 })
}

func (w *world) awaitMinimum(want int32) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("a minimum of %d", want), func() (bool, string) {
		h := &autoscalingv2.HorizontalPodAutoscaler{}
		w.read(canary, h)
		return workload.MinReplicas(h) == want, fmt.Sprint(workload.MinReplicas(h))
	})
}

// allButFirst matches every pod of the canary but the one that there is now.
func (w *world) allButFirst() func(*corev1.Pod) bool {
	w.t.Helper()
	w.awaitEndpoints(canary, 1)
	var pods corev1.PodList
	if err := w.Client.List(w.t.Context(), &pods, client.InNamespace(w.namespace), client.MatchingLabels(labelsOf(canary))); err != nil {
		w.t.Fatal(err)
	}
	first := pods.Items[0].UID
	return func(pod *corev1.Pod) bool { return pod.Labels["app"] == canary && pod.UID != first }
}

// A raise waits until the replicas that it takes are ready, however long they take.
func TestRaiseWaitsForReadyReplicas(t *testing.T) {
	w := newWorld(t)
	w.allowScaling()
	w.shop("web:2")
	later := w.allButFirst()
	w.set(testbed.PodUnready, later)
	w.rollout(func(s *v1alpha1.WeightedRolloutSpec) { s.Canary.Capacity = v1alpha1.CapacityScale })
	s := w.await("it waits for replicas", func(s v1alpha1.WeightedRolloutStatus) bool {
		why, _ := reason(s, v1alpha1.ConditionReady)
		return why == v1alpha1.ReasonInsufficientCapacity
	})
	if s.Share.Desired == nil || *s.Share.Desired != "25" {
		t.Errorf("it waits at %v, want 25 percent", s.Share.Desired)
	}
	w.eventually("a second replica", func() (bool, string) {
		d := &appsv1.Deployment{}
		w.read(canary, d)
		return *d.Spec.Replicas == 2 && d.Status.Replicas == 2, fmt.Sprint(*d.Spec.Replicas)
	})
	w.set(testbed.PodReady, later)
	w.awaitPhase(v1alpha1.PhasePromoted)
	w.awaitReplicas(canary, 4)
}

// The replicas that the next share takes crash: the rollout comes no further, goes back,
// and gives back what it took.
func TestScaleIsGivenBackOnRollback(t *testing.T) {
	for name, autoscaled := range map[string]bool{"replicas": false, "autoscaler": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.allowScaling()
			w.shop("web:2")
			if autoscaled {
				w.create(newAutoscaler(canary, 1, 8))
			}
			w.set(testbed.PodCrashing, w.allButFirst())
			history := w.record()
			w.rollout(func(s *v1alpha1.WeightedRolloutSpec) {
				s.Canary.Capacity = v1alpha1.CapacityScale
				s.ProgressDeadline = "20s"
			})
			s := w.awaitPhase(v1alpha1.PhaseRolledBack)
			why, message := reason(s, v1alpha1.ConditionStalled)
			if why != v1alpha1.ReasonProgressDeadlineExceeded || !strings.Contains(message, v1alpha1.ReasonInsufficientCapacity) {
				t.Errorf("it was rolled back for %s: %s", why, message)
			}
			if autoscaled {
				w.awaitMinimum(1)
			} else {
				w.awaitReplicas(canary, 1)
			}
			w.await("nothing is said to be scaled", func(s v1alpha1.WeightedRolloutStatus) bool { return s.Capacity == nil || len(s.Capacity.Scaled) == 0 })
			w.awaitShare("0")
			var shares []int32
			replay(w.upToNow(history), func(_ int32, now *moment) { shares = append(shares, now.share) })
			if want := []int32{0, 25, 0}; !slices.Equal(shares, want) {
				t.Errorf("the canary's shares were %v, want %v", shares, want)
			}
		})
	}
}

// A canary that never becomes ready gets no traffic, and is given up.
func TestCrashingCanaryIsRolledBack(t *testing.T) {
	w := newWorld(t)
	w.set(testbed.PodCrashing, runs("web:bad"))
	w.shop("web:bad")
	history := w.record()
	w.rollout(func(s *v1alpha1.WeightedRolloutSpec) { s.ProgressDeadline = "10s" })
	s := w.awaitPhase(v1alpha1.PhaseRolledBack)
	why, message := reason(s, v1alpha1.ConditionStalled)
	if why != v1alpha1.ReasonProgressDeadlineExceeded || !strings.Contains(message, v1alpha1.ReasonCanaryNotReady) {
		t.Errorf("it was rolled back for %s: %s", why, message)
	}
	replay(w.upToNow(history), func(_ int32, now *moment) {
		if now.share != 0 {
			t.Errorf("a canary without a ready pod got %d percent", now.share)
		}
	})
}

// Without the right to scale, the rollout says which role allows it, and goes on once it
// is bound.
func TestScalingNeedsARole(t *testing.T) {
	w := newWorld(t)
	w.shop("web:2")
	w.rollout(func(s *v1alpha1.WeightedRolloutSpec) { s.Canary.Capacity = v1alpha1.CapacityScale })
	w.await("it names the role", func(s v1alpha1.WeightedRolloutStatus) bool {
		why, message := reason(s, v1alpha1.ConditionStalled)
		return why == v1alpha1.ReasonWorkloadWriteFailed && strings.Contains(message, "weightedrollout-workload-writer")
	})
	w.allowScaling()
	w.awaitPhase(v1alpha1.PhasePromoted)
}

// longSoak holds the rollout in its first stage.
func longSoak(s *v1alpha1.WeightedRolloutSpec) { s.Plan.Stages[0].Soak = "1h" }

// Replicas, annotations and field managers of a workload are not its version. A label of
// its pod template is.
func TestC31ReplicasAreNoRevision(t *testing.T) {
	w := newWorld(t)
	w.shop("web:2")
	w.mergePatch(canary, `{"spec":{"replicas":2}}`)
	w.rollout(longSoak)
	before := w.await("it soaks", func(s v1alpha1.WeightedRolloutStatus) bool {
		why, _ := reason(s, v1alpha1.ConditionReady)
		return why == v1alpha1.ReasonSoaking && s.Share.ConfirmedAt != nil
	})

	for _, replicas := range []int32{8, 3} {
		w.mergePatch(canary, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
		w.awaitEndpoints(canary, int(replicas))
	}
	w.mergePatch(canary, `{"metadata":{"annotations":{"touched":"yes"}}}`)
	d := &appsv1.Deployment{}
	w.read(canary, d)
	// This takes all entries away.
	if err := w.Client.Patch(t.Context(), d, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`))); err != nil {
		t.Fatal(err)
	}
	now := &v1alpha1.WeightedRollout{}
	w.read("web", now)
	if s := now.Status; s.Attempt != before.Attempt || s.Revision != before.Revision || !s.Share.ConfirmedAt.Equal(before.Share.ConfirmedAt) || !s.Stage.StartedAt.Equal(before.Stage.StartedAt) {
		t.Errorf("the rollout was disturbed:\nbefore: %s\nnow:    %s", describe(before), describe(s))
	}

	w.mergePatch(canary, `{"spec":{"template":{"metadata":{"labels":{"version":"3"}}}}}`)
	after := w.await("it starts again", func(s v1alpha1.WeightedRolloutStatus) bool { return s.Revision != before.Revision })
	w.read(canary, d)
	if want := workload.Revision(&d.Spec.Template); after.Revision != want {
		t.Errorf("the revision is %s, want %s", after.Revision, want)
	}
	// The manager sees the changes in their order, so that an attempt more would have been
	// begun by one of those before.
	if after.Attempt != before.Attempt+1 {
		t.Errorf("attempt %d follows %d", after.Attempt, before.Attempt)
	}
	w.awaitShare("25")
}

// A restart is no new version, but its pods are new: they warm up again.
func TestRestartedCanaryIsCold(t *testing.T) {
	w := newWorld(t)
	w.shop("web:2")
	w.mergePatch(canary, `{"spec":{"replicas":3}}`)
	w.rollout(func(s *v1alpha1.WeightedRolloutSpec) {
		s.Plan.Stages = []v1alpha1.Stage{{Weight: "50", Soak: "1h"}}
		s.Ramp.Warmup = v1alpha1.Warmup{InitialPercent: "50", Soak: "1s", IncrementPercent: "50"}
		s.Canary.Capacity = v1alpha1.CapacityIgnore
	})
	before := w.awaitShare("50")
	// From now on a cold canary stays where it begins.
	w.edit(func(s *v1alpha1.WeightedRolloutSpec) { s.Ramp.Warmup.Soak = "1h" })
	w.mergePatch(canary, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}}}`)
	after := w.awaitShare("25")
	if after.Attempt != before.Attempt || after.Revision != before.Revision {
		t.Errorf("a restart began another attempt: %s", describe(after))
	}
	if after.Warmup == nil || after.Warmup.Reason != v1alpha1.ColdPodsReplaced {
		t.Errorf("the warm-up is %+v, want one for replaced pods", after.Warmup)
	}
	w.awaitEvent(v1alpha1.ReasonPodsReplaced, "50 to 25 percent")
}
