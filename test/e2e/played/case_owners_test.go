package played

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// sharing gives a rollout the route and the Services of another one.
func sharing(name string) change {
	return func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Routes[0].Name = name
		wr.Spec.Stable.Service, wr.Spec.Canary.Service = stableOf(name), canaryOf(name)
	}
}

// TestC07OlderRolloutOwnsTheRule: of rollouts that claim one rule the oldest goes on,
// undisturbed, also after a restart; the others write nothing, say who the owner is,
// and can be deleted. When the owner is gone the next one takes over from 0.
func TestC07OlderRolloutOwnsTheRule(t *testing.T) {
	w := newWorld(t)
	w.loose = true // several rollouts write one route
	w.rollout("web", soak(1, "10m"))
	w.startManager()
	w.awaitShare("web", "1")
	created := w.get("web").CreationTimestamp
	eventually(t, "the next second", func() (bool, string) { return time.Now().Unix() > created.Unix()+1, "the same one" })
	// Both come first by their names.
	for _, name := range []string{"a-copy", "b-copy"} {
		w.create(newRollout(w.namespace, name, w.prom.url(), sharing("web"), soak(1, "10m")))
		if copied := w.get(name).CreationTimestamp; !created.Before(&copied) {
			t.Fatalf("%s is not younger than web, so nothing is proved", name)
		}
		w.awaitStalled(name, v1alpha1.ReasonRouteConflict, `"web"`)
	}
	w.awaitShare("web", "5")
	w.killManager()
	w.startManager()
	w.edit("web", soak(1, "1s"))
	w.edit("web", soak(2, "10m"))
	w.awaitShare("web", "10")
	w.remove("b-copy")
	w.awaitGone("b-copy")
	w.wantWeights("web", "100/0", "99/1", "95/5", "90/10")
	if writes := w.routeWrites("web", 0); len(writes) != 3 {
		t.Errorf("the route was written %d times for three raises of its owner: %v", len(writes), writes)
	}
	if owner := w.route("web").Annotations[v1alpha1.ManagedByAnnotation]; owner != "web" {
		t.Errorf("the route's annotation names %q, want web", owner)
	}
	if wr := w.get("a-copy"); wr.Status.Attempt != 0 || !isStalled(wr, v1alpha1.ReasonRouteConflict, `"web"`) {
		t.Errorf("a-copy: attempt %d, %s", wr.Status.Attempt, summary(wr))
	}

	w.remove("web")
	w.awaitGone("web")
	w.awaitShare("a-copy", "5")
	w.wantWeights("web", "100/0", "99/1", "95/5", "90/10", "100/0", "99/1", "95/5")
	if owner := w.route("web").Annotations[v1alpha1.ManagedByAnnotation]; owner != "a-copy" {
		t.Errorf("the route's annotation names %q, want a-copy", owner)
	}
	for _, r := range w.routeWrites("web", 0) {
		w.checkRouteWrite(r)
	}
}

// TestC07NameDecidesBetweenEqualAges: of two rollouts of the same second the first by
// name owns the rule, whichever was made first.
func TestC07NameDecidesBetweenEqualAges(t *testing.T) {
	w := newWorld(t)
	w.loose = true // the route is named like neither
	w.create(newRoute(w.namespace, "web", new(int32(100)), new(int32(0))))
	w.endpoints("web")
	eventually(t, "two rollouts of one second", func() (bool, string) {
		later := newRollout(w.namespace, "zebra", w.prom.url(), sharing("web"), stages("10m", "10"))
		first := newRollout(w.namespace, "aardvark", w.prom.url(), sharing("web"), stages("10m", "10"))
		w.create(later)
		w.create(first)
		if later.CreationTimestamp.Equal(&first.CreationTimestamp) {
			return true, ""
		}
		for _, wr := range []*v1alpha1.WeightedRollout{later, first} {
			if err := w.client.Delete(t.Context(), wr); err != nil && !apierrors.IsNotFound(err) {
				t.Fatalf("deleting WeightedRollout %s: %v", wr.Name, err)
			}
		}
		return false, "a second in between"
	})
	w.startManager()
	w.awaitShare("aardvark", "10")
	w.awaitStalled("zebra", v1alpha1.ReasonRouteConflict, `"aardvark"`)
	w.wantWeights("web", "100/0", "90/10")
}

// TestC07SomeRulesAreTaken: a rollout of two routes loses one to an older one, and keeps
// the other safe: a bad canary is rolled back there.
func TestC07SomeRulesAreTaken(t *testing.T) {
	w := newWorld(t)
	w.loose = true // two rollouts share the Services
	stable, canary := stableOf("web"), canaryOf("web")
	for _, name := range []string{"one", "two"} {
		r := newRoute(w.namespace, name, ptr.To[int32](100), ptr.To[int32](0))
		refs := r.Spec.Rules[0].BackendRefs
		refs[0].Name, refs[1].Name = gatewayv1.ObjectName(stable), gatewayv1.ObjectName(canary)
		w.create(r)
	}
	w.endpoints("web")
	of := func(routes ...string) func(*v1alpha1.WeightedRollout) {
		return func(wr *v1alpha1.WeightedRollout) {
			wr.Spec.Stable.Service, wr.Spec.Canary.Service = stable, canary
			wr.Spec.Routes = nil
			for _, name := range routes {
				wr.Spec.Routes = append(wr.Spec.Routes, v1alpha1.RouteReference{Kind: v1alpha1.HTTPRouteKind, Name: name})
			}
		}
	}
	w.create(newRollout(w.namespace, "a-old", w.prom.url(), stages("10m", "5"), of("one"), func(wr *v1alpha1.WeightedRollout) { wr.Spec.Mode = v1alpha1.ModeObserve }))
	w.create(newRollout(w.namespace, "b-young", w.prom.url(), stages("10m", "30"), of("one", "two")))
	w.startManager()
	w.awaitShare("b-young", "30")

	w.edit("a-old", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Mode = v1alpha1.ModeEnforce })
	w.await("b-young", "it keeps one of its routes", func(wr *v1alpha1.WeightedRollout) bool {
		return isStalled(wr, v1alpha1.ReasonPartialRouteConflict, `"a-old"`) && desired(wr) == "30"
	})
	w.prom.set(w.namespace, canary, traffic{perSecond: 50, failed: 0.9})
	w.await("b-young", "it is rolled back", func(wr *v1alpha1.WeightedRollout) bool {
		return wr.Status.Outcome == v1alpha1.OutcomeRolledBack && wr.Status.Share.ConfirmedAt != nil
	})
	if got, want := w.weightsNow("two"), (pair{100, 0}); got != want {
		t.Errorf("the route that was left to it has the weights %v, want %v", got, want)
	}
}
