package controllers

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// sharing is a Reconciler with so many rollouts of one route, the first one the oldest, and
// a count of how often they are listed.
func sharing(t *testing.T, n int) (*Reconciler, []*v1alpha1.WeightedRollout, *int) {
	t.Helper()
	objects := bothRoutes()
	var all []*v1alpha1.WeightedRollout
	for i := range n {
		wr := rolloutOf(fmt.Sprintf("r%03d", i), time.Duration(n-i)*time.Hour, httpRef("web"))
		all, objects = append(all, wr), append(objects, wr)
	}
	r, lists := reconcilerWith(t, objects...), 0
	r.intercepted(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*v1alpha1.WeightedRolloutList); ok {
			lists++
		}
		return c.List(ctx, list, opts...)
	}})
	return r, all, &lists
}

// ownerOf is what a pass of a rollout finds.
func ownerOf(t *testing.T, r *Reconciler, wr *v1alpha1.WeightedRollout) string {
	t.Helper()
	obs := observeRoutes(t, r, wr)
	if err := r.disown(t.Context(), wr, &obs); err != nil {
		t.Fatal(err)
	}
	return obs.Owner
}

// However many rollouts share a route, and however often they look at it, they are gone
// through once for each version of it, and once more when one of them claims something else.
func TestOwnersAreFoundOncePerVersion(t *testing.T) {
	const n = 300
	r, all, lists := sharing(t, n)
	look := func(want string) {
		t.Helper()
		for _, wr := range all[1:] {
			if got := ownerOf(t, r, wr); got != want && wr.Name != want {
				t.Fatalf("the owner is %q for %s, want %q", got, wr.Name, want)
			}
		}
	}
	look("r000")
	look("r000")
	if *lists != 1 {
		t.Errorf("listed %d times for one version of the route, want 1", *lists)
	}
	route := bothRoutes()[0]
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(route), route); err != nil {
		t.Fatal(err)
	}
	route.SetLabels(map[string]string{"a": "b"})
	if err := r.Client.Update(t.Context(), route); err != nil {
		t.Fatal(err)
	}
	look("r000")
	if *lists != 2 {
		t.Errorf("listed %d times for two versions of the route, want 2", *lists)
	}

	// The oldest one leaves, and the next takes over.
	old := all[0].DeepCopy()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	stored := &v1alpha1.WeightedRollout{}
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(old), stored); err != nil {
		t.Fatal(err)
	}
	stored.Spec.Routes = routeRefs(httpRef("elsewhere"))
	if err := r.Client.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	r.rolloutEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: old, ObjectNew: stored}, q)
	if q.Len() != n-1 {
		t.Errorf("%d are woken, want %d", q.Len(), n-1)
	}
	*lists = 0
	look("r001")
	if *lists != 1 {
		t.Errorf("listed %d times after one change, want 1", *lists)
	}
}

// The work of a pass does not grow with the number of rollouts that share its route.
func TestPassOverASharedRouteIsCheap(t *testing.T) {
	cost := func(n int) float64 {
		r, all, _ := sharing(t, n)
		last := all[n-1]
		obs := observeRoutes(t, r, last)
		return testing.AllocsPerRun(20, func() {
			mine := obs
			if err := r.disown(t.Context(), last, &mine); err != nil || mine.Owner != "r000" {
				t.Errorf("owner %q, %v", mine.Owner, err)
			}
		})
	}
	if few, many := cost(10), cost(300); many > few+5 {
		t.Errorf("%v allocations among 300 rollouts, %v among 10", many, few)
	}
}

// Another rollout is woken where its claims may be affected, and not otherwise.
func TestWhoIsWokenByARollout(t *testing.T) {
	edit := func(wr *v1alpha1.WeightedRollout, edit func(*v1alpha1.WeightedRollout)) *v1alpha1.WeightedRollout {
		wr = wr.DeepCopy()
		edit(wr)
		return wr
	}
	r, all, _ := sharing(t, 4)
	mine := all[1]
	for _, tc := range []struct {
		name    string
		was, is client.Object
		want    []string
	}{
		{"a new revision", mine, edit(mine, func(wr *v1alpha1.WeightedRollout) { wr.Spec.Revision, wr.Generation = "v3", 2 }), nil},
		{"a pause", mine, edit(mine, func(wr *v1alpha1.WeightedRollout) { wr.Spec.Paused, wr.Generation = true, 2 }), nil},
		{"its status", mine, edit(mine, func(wr *v1alpha1.WeightedRollout) { wr.Status.Attempt = 2 }), nil},
		{"other rules", mine, edit(mine, func(wr *v1alpha1.WeightedRollout) { wr.Spec.Routes = routeRefs(httpRef("web", "a")) }), []string{"r002", "r003"}},
		{"another route", mine, edit(mine, func(wr *v1alpha1.WeightedRollout) { wr.Spec.Routes = routeRefs(httpRef("gone")) }), []string{"r002", "r003"}},
		{"another Service", mine, edit(mine, func(wr *v1alpha1.WeightedRollout) { wr.Spec.Canary.Service = "new" }), []string{"r002", "r003"}},
		{"looking on", mine, edit(mine, func(wr *v1alpha1.WeightedRollout) { wr.Spec.Mode = v1alpha1.ModeObserve }), []string{"r002", "r003"}},
		{"no canary", mine, edit(mine, func(wr *v1alpha1.WeightedRollout) { wr.Spec.Canary = nil }), []string{"r002", "r003"}},
		{"it is new", nil, mine, []string{"r002", "r003"}},
		{"it is gone", mine, nil, []string{"r002", "r003"}},
		{"another one of its name", mine, edit(mine, func(wr *v1alpha1.WeightedRollout) { wr.UID = "again" }), []string{"r002", "r003"}},
		{"the youngest", nil, all[3], nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			r.wakeSharers(t.Context(), q, tc.was, tc.is)
			var woken []string
			for q.Len() > 0 {
				req, _ := q.Get()
				woken = append(woken, req.Name)
			}
			if slices.Sort(woken); !slices.Equal(woken, tc.want) {
				t.Errorf("woken %v, want %v", woken, tc.want)
			}
		})
	}
}
