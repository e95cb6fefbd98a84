package played

import (
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

func (w *world) remove(name string) {
	w.t.Helper()
	if err := w.client.Delete(w.t.Context(), w.get(name)); err != nil {
		w.t.Fatalf("deleting WeightedRollout %s: %v", name, err)
	}
}

func (w *world) awaitGone(name string) {
	w.t.Helper()
	eventually(w.t, "WeightedRollout "+name+" gone", func() (bool, string) {
		wr := &v1alpha1.WeightedRollout{}
		err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, wr)
		return apierrors.IsNotFound(err), summary(wr)
	})
}

// finalizersOnce checks that every write that set the finalizers had ours once.
func (w *world) finalizersOnce(name string) {
	w.t.Helper()
	if got := w.get(name).Finalizers; !slices.Equal(got, []string{v1alpha1.Finalizer}) {
		w.t.Errorf("the finalizers are %q, want ours once", got)
	}
}

// TestC29DeletedMidWay: the route is left at 100/0 and without our annotation.
func TestC29DeletedMidWay(t *testing.T) {
	w := newWorld(t)
	w.rollout("web", soak(3, "10m"))
	w.startManager()
	w.awaitShare("web", "20")
	w.finalizersOnce("web")
	if owner := w.route("web").Annotations[v1alpha1.ManagedByAnnotation]; owner != "web" {
		t.Errorf("the route's annotation names %q, want web", owner)
	}
	from := w.api.count()
	w.remove("web")
	w.awaitGone("web")
	w.wantWeights("web", "100/0", "99/1", "95/5", "90/10", "80/20", "100/0")
	if route := w.route("web"); route.Annotations[v1alpha1.ManagedByAnnotation] != "" {
		t.Errorf("our annotation is left behind: %v", route.Annotations)
	}
	writes := w.api.since(from, func(r *request) bool { return r.isRouteWrite() && r.accepted() })
	if len(writes) != 1 {
		t.Errorf("the deletion took %d writes to the route, want one: %v", len(writes), writes)
	}
}

// TestC29DeletedAfterPromotion: the deletion of a finished rollout moves no traffic.
func TestC29DeletedAfterPromotion(t *testing.T) {
	w := newWorld(t)
	w.rollout("web", stages("1s", "50"))
	w.startManager()
	w.awaitPhase("web", v1alpha1.PhasePromoted)
	w.remove("web")
	w.awaitGone("web")
	w.wantWeights("web", "100/0", "70/30", "50/50", "20/80", "0/100")
	if route := w.route("web"); pairOf(route) != (pair{0, 100}) || route.Annotations[v1alpha1.ManagedByAnnotation] != "" {
		t.Errorf("the route is left with the weights %s and the annotations %v", pairOf(route), route.Annotations)
	}
}

// TestC29DeletedWithoutTheRightToWrite: the deletion is tried again and says what
// is wrong; onDelete: Keep is the way out.
func TestC29DeletedWithoutTheRightToWrite(t *testing.T) {
	w := newWorld(t)
	w.rollout("web", soak(3, "10m"))
	w.startManager()
	w.awaitShare("web", "20")
	from := w.api.count()
	w.api.onRequest(func(r *request) verdict {
		if r.isRouteWrite() {
			return verdict{refuse: http.StatusForbidden}
		}
		return verdict{}
	})
	w.remove("web")
	refused := func(r *request) bool { return r.isRouteWrite() && r.Code == http.StatusForbidden }
	eventually(t, "three attempts", func() (bool, string) {
		attempts := w.api.since(from, refused)
		return len(attempts) >= 3, summary(w.get("web"))
	})
	w.await("web", "a condition that says so", func(wr *v1alpha1.WeightedRollout) bool {
		return condition(wr, v1alpha1.ConditionRouteAccepted).Reason == v1alpha1.ReasonRouteWriteFailed
	})
	w.finalizersOnce("web")
	if now := w.weightsNow("web"); now != (pair{80, 20}) {
		t.Errorf("the weights are %s", now)
	}
	w.edit("web", func(wr *v1alpha1.WeightedRollout) { wr.Spec.OnDelete = v1alpha1.DeletionKeep })
	w.awaitGone("web")
	w.wantWeights("web", "100/0", "99/1", "95/5", "90/10", "80/20")
}

// TestC29RightToWriteComesBack: once the route can be written, the deletion ends as
// it should.
func TestC29RightToWriteComesBack(t *testing.T) {
	w := newWorld(t)
	w.rollout("web", stages("10m", "10"))
	w.startManager()
	w.awaitShare("web", "10")
	w.api.onRequest(func(r *request) verdict {
		if r.isRouteWrite() {
			return verdict{refuse: http.StatusForbidden}
		}
		return verdict{}
	})
	w.remove("web")
	w.await("web", "a condition that says so", func(wr *v1alpha1.WeightedRollout) bool {
		return condition(wr, v1alpha1.ConditionRouteAccepted).Reason == v1alpha1.ReasonRouteWriteFailed
	})
	w.api.onRequest(nil)
	w.awaitGone("web")
	w.wantWeights("web", "100/0", "90/10", "100/0")
}
