package controllers

import (
	"context"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
	"github.com/weightedrollout/weightedrollout/internal/workload"
)

// Priorities in the queue, the highest first. What waits at the same one is taken in the
// order in which it became due.
const (
	// priorityLower is for what may take traffic off the track under test.
	priorityLower = 100
	// priorityServing and priorityFirst are for the first look after a start: at a rollout
	// whose canary has traffic, and at any other.
	priorityServing = 20
	priorityFirst   = 10
	// priorityRetry is for the first try after a conflict.
	priorityRetry = 1
	// priorityDue is for everything else.
	priorityDue = 0
	// priorityListed is for what is listed at the start and brings no news: the rollouts
	// are listed as well.
	priorityListed = handler.LowPriority
)

type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueue adds a rollout to the queue, and remembers that it is urgent until something is
// decided about it: the cache may not be ready for that when its turn comes.
func (r *Reconciler) enqueue(q requestQueue, priority int, req reconcile.Request) {
	if priority == priorityLower {
		r.urgent.Store(req.NamespacedName, nil)
	}
	if pq, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		pq.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, req)
		return
	}
	q.Add(req)
}

// notYet ends a pass that could not decide. The watch that it awaits would put an urgent
// rollout at the end of the queue, so that one comes back by itself, to its place.
func (r *Reconciler) notYet(req ctrl.Request, urgent bool, err error) (ctrl.Result, error) {
	if urgent {
		r.urgent.Store(req.NamespacedName, nil)
	}
	if err != nil || !urgent {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: conflictRequeue, Priority: new(priorityLower)}, nil
}

// placeAfter is the priority of a pass that is done again. A rollout that was overtaken
// keeps its place once; one that is overtaken again and again does not hold up the others.
func (r *Reconciler) placeAfter(req ctrl.Request, obs observation, d rollout.Decision, conflict bool) int {
	if slices.ContainsFunc(obs.Routes, d.Lowers) {
		return priorityLower
	}
	if conflict {
		if _, again := r.overtaken.LoadOrStore(req.NamespacedName, nil); !again {
			return priorityRetry
		}
	}
	return priorityDue
}

// setAlarm wakes a rollout at its next time, before all others, if what is decided then takes
// traffic off the track under test unless something happens before. The queue cannot do
// that: whatever happens before would come first, too.
func (r *Reconciler) setAlarm(req ctrl.Request, obs observation, d rollout.Decision) {
	r.stopAlarm(req.NamespacedName)
	if r.wake == nil || d.NextAt.IsZero() || d.Release || slices.ContainsFunc(obs.Routes, d.NeedsWrite) {
		return
	}
	later := obs.Observation
	later.Status = &d.Status
	next := rollout.Decide(later, d.NextAt)
	if slices.ContainsFunc(obs.Routes, next.Lowers) {
		r.alarms.Store(req.NamespacedName, time.AfterFunc(r.until(d.NextAt), func() { r.wake(req.NamespacedName, true) }))
	}
}

func (r *Reconciler) stopAlarm(key types.NamespacedName) {
	if alarm, ok := r.alarms.LoadAndDelete(key); ok {
		if timer, ok := alarm.(*time.Timer); ok {
			timer.Stop()
		}
	}
}

// exceeds reports whether the track under test has more than its share in a route.
func exceeds(i route.Inspection, share weights.Share, returning bool) bool {
	low, high := i.Observed()
	if returning {
		return low < share
	}
	return high > share
}

// exposed reports whether the canary of a rollout has, or is to have, traffic.
func exposed(wr *v1alpha1.WeightedRollout) bool {
	for _, share := range []*v1alpha1.Percent{wr.Status.Share.Desired, wr.Status.Share.Observed} {
		if share == nil {
			continue
		}
		if bp, err := share.BasisPoints(); err != nil || bp > 0 {
			return true
		}
	}
	return false
}

// ends reports whether a rollout itself asks for its canary's traffic back: it is being
// deleted, aborted, or given another revision.
func ends(wr *v1alpha1.WeightedRollout) bool {
	if !exposed(wr) {
		return false
	}
	another := wr.Spec.Revision != "" && wr.Spec.Revision != wr.Status.Revision
	abort := rollout.OrdersFrom(wr.Annotations).Abort
	return !wr.DeletionTimestamp.IsZero() || another || abort > 0 && abort == wr.Status.Attempt
}

// firstLook is the priority of a rollout that was listed at the start.
func firstLook(wr *v1alpha1.WeightedRollout) int {
	switch {
	case ends(wr):
		return priorityLower
	case exposed(wr):
		return priorityServing
	}
	return priorityFirst
}

// rolloutEvents gives a rollout its place in the queue, where it is not the last, and wakes
// those that may have to give way to it, or may take over from it.
func (r *Reconciler) rolloutEvents() handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requestQueue) {
			wr, ok := e.Object.(*v1alpha1.WeightedRollout)
			if ok && e.IsInInitialList {
				r.enqueue(q, firstLook(wr), requestFor(wr))
				return
			}
			r.wakeSharers(ctx, q, nil, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requestQueue) {
			if wr, ok := e.ObjectNew.(*v1alpha1.WeightedRollout); ok && ends(wr) {
				r.enqueue(q, priorityLower, requestFor(wr))
			}
			r.wakeSharers(ctx, q, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requestQueue) {
			r.wakeSharers(ctx, q, e.Object, nil)
		},
	}
}

func requestFor(o client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}
}

// related finds the rollouts that an object has to do with.
type related func(context.Context, client.Object) []v1alpha1.WeightedRollout

// relatedEvents wakes the rollouts that an object has to do with: first those of which the
// change may lower the share. before or after is nil where there was, or is, no object.
func (r *Reconciler) relatedEvents(find related, lowers func(wr *v1alpha1.WeightedRollout, before, after client.Object) bool) handler.Funcs {
	wake := func(ctx context.Context, q requestQueue, before, after client.Object, otherwise int) {
		woken := map[reconcile.Request]bool{}
		for _, o := range []client.Object{before, after} {
			if o == nil {
				continue
			}
			rollouts := find(ctx, o)
			for i := range rollouts {
				req := requestFor(&rollouts[i])
				if woken[req] {
					continue
				}
				woken[req] = true
				priority := otherwise
				if lowers(&rollouts[i], before, after) {
					priority = priorityLower
				}
				r.enqueue(q, priority, req)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requestQueue) {
			if e.IsInInitialList {
				wake(ctx, q, e.Object, e.Object, priorityListed)
				return
			}
			wake(ctx, q, nil, e.Object, priorityDue)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requestQueue) {
			wake(ctx, q, e.ObjectOld, e.ObjectNew, priorityDue)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requestQueue) {
			wake(ctx, q, e.Object, nil, priorityDue)
		},
	}
}

// neverLowers is for objects whose changes only let a share rise, or hold it.
func neverLowers(*v1alpha1.WeightedRollout, client.Object, client.Object) bool { return false }

// losesEndpoints reports whether a change takes a ready endpoint from the track under test.
func losesEndpoints(wr *v1alpha1.WeightedRollout, before, after client.Object) bool {
	was, ok := before.(*discoveryv1.EndpointSlice)
	if !ok || !exposed(wr) {
		return false
	}
	under := pairOf(wr).Canary
	if wr.Status.Outcome == v1alpha1.OutcomeReturning {
		under = pairOf(wr).Stable
	}
	if serviceOfSlice(was) != serviceKey(under) {
		return false
	}
	left := map[string]bool{}
	if is, ok := after.(*discoveryv1.EndpointSlice); ok && serviceOfSlice(is) == serviceKey(under) {
		for _, e := range is.Endpoints {
			left[endpointName(e)] = ready(e)
		}
	}
	return slices.ContainsFunc(was.Endpoints, func(e discoveryv1.Endpoint) bool { return ready(e) && !left[endpointName(e)] })
}

// endpointName is the pod of an endpoint, or its first address.
func endpointName(e discoveryv1.Endpoint) string {
	if pod := podOf(e); pod != "" || len(e.Addresses) == 0 {
		return pod
	}
	return e.Addresses[0]
}

// changesRevision reports whether a change of a workload is another revision of the canary.
func changesRevision(wr *v1alpha1.WeightedRollout, before, after client.Object) bool {
	if before == nil || after == nil || before.GetGeneration() == after.GetGeneration() || wr.Spec.Revision != "" || !exposed(wr) {
		return false
	}
	ref := wr.Spec.Canary.Workload
	if ref == nil || ref.Name != after.GetName() || wr.Namespace != after.GetNamespace() {
		return false
	}
	was, is := templateOf(before), templateOf(after)
	return was != nil && is != nil && workload.Revision(was) != workload.Revision(is)
}

func templateOf(o client.Object) *corev1.PodTemplateSpec {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	}
	return nil
}

// strays reports whether a change of a route gives the track under test more than its
// share, or leaves it with backends that a gateway does not find.
func (r *Reconciler) strays(wr *v1alpha1.WeightedRollout, before, after client.Object) bool {
	if after == nil || wr.Spec.Stable == nil || wr.Spec.Canary == nil || !ownedBy(wr, before, after) {
		return false
	}
	edited := before == nil || before.GetGeneration() != after.GetGeneration()
	// Our own write may be seen in the route before it is seen in the status.
	if !edited && !exposed(wr) || !r.writes.seen(client.ObjectKeyFromObject(wr), wr) {
		return false
	}
	is := objectOf(after)
	return exposed(wr) && unresolved(is) && !unresolved(objectOf(before)) || edited && outweighs(wr, is)
}

// outweighs reports whether the track under test has more in a route than is recorded.
func outweighs(wr *v1alpha1.WeightedRollout, o *route.Object) bool {
	desired := wr.Status.Share.Desired
	if desired == nil || o == nil {
		return false
	}
	share, err := desired.BasisPoints()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(wr.Spec.Routes, func(ref v1alpha1.RouteReference) bool {
		if keyOf(ref) != (routeKey{o.Kind, o.Name}) {
			return false
		}
		i := route.Inspect(o, ref.RuleNames, pairOf(wr))
		return len(i.Rules) > 0 && exceeds(i, weights.Share(share), wr.Status.Outcome == v1alpha1.OutcomeReturning)
	})
}

// ownedBy reports whether a route is, or was, managed by a rollout. A route that is new has
// been named by nobody.
func ownedBy(wr *v1alpha1.WeightedRollout, before, after client.Object) bool {
	if before == nil {
		return true
	}
	return slices.ContainsFunc([]client.Object{before, after}, func(o client.Object) bool {
		// The text may be long, and many may share the route.
		return strings.Contains(o.GetAnnotations()[v1alpha1.ManagedByAnnotation], wr.Name)
	})
}

// unresolved reports whether a gateway does not find a backend of a route.
func unresolved(o *route.Object) bool {
	return o != nil && slices.ContainsFunc(o.Parents, func(p gatewayv1.RouteParentStatus) bool {
		return meta.IsStatusConditionFalse(p.Conditions, string(gatewayv1.RouteConditionResolvedRefs))
	})
}

// objectOf shows a route of either kind; nil if it is none.
func objectOf(o client.Object) *route.Object {
	switch o := o.(type) {
	case *gatewayv1.HTTPRoute:
		return route.FromHTTPRoute(o)
	case *gatewayv1.GRPCRoute:
		return route.FromGRPCRoute(o)
	}
	return nil
}
