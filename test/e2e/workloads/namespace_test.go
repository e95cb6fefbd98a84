package workloads

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestC29NamespaceDeleted: a namespace that is deleted with a rollout half-way goes; the
// rollout's finalizer does not keep it, whatever of the route and the Services is gone
// before.
func TestC29NamespaceDeleted(t *testing.T) {
	w := newWorld(t)
	w.shop("web:2")
	w.rollout(func(spec *v1alpha1.WeightedRolloutSpec) {
		spec.Canary.Capacity = v1alpha1.CapacityIgnore
		spec.Plan.Stages[0].Soak = "1h"
	})
	w.awaitShare("25")
	ns := &corev1.Namespace{}
	ns.Name = w.namespace
	if err := w.Client.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	w.eventually("the namespace is gone", func() (bool, string) {
		err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(ns), ns)
		text := string(ns.Status.Phase)
		for _, c := range ns.Status.Conditions {
			if c.Status == corev1.ConditionTrue {
				text += "; " + c.Message
			}
		}
		return apierrors.IsNotFound(err), text
	})
}
