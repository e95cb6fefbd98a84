package controllers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// Names of the cache's indexes.
const (
	indexRoute        = "spec.routes"
	indexService      = "spec.services"
	indexSliceService = "metadata.labels.service"
	indexWorkload     = "spec.workloads"
	indexTarget       = "spec.scaleTargetRef"
)

// Wakeups carries the names of rollouts that something has changed for which is not watched,
// until the manager stops.
type Wakeups struct {
	events chan event.TypedGenericEvent[wakeup]
	done   <-chan struct{}
}

// wakeup is the name of a rollout, and whether the news may lower its share.
type wakeup struct {
	key types.NamespacedName
	bad bool
}

// NewWakeups returns an empty channel of wakeups that takes nothing more once ctx is
// done: nobody reads it then, and whoever writes must not wait for ever.
func NewWakeups(ctx context.Context) Wakeups {
	return Wakeups{events: make(chan event.TypedGenericEvent[wakeup], 1024), done: ctx.Done()}
}

// Notify wakes a rollout. Bad news puts it before all others.
func (w Wakeups) Notify(key types.NamespacedName, bad bool) {
	select {
	case w.events <- event.TypedGenericEvent[wakeup]{Object: wakeup{key, bad}}:
	case <-w.done:
	}
}

// wakeupEvents puts a rollout into the queue by the news.
func (r *Reconciler) wakeupEvents() handler.TypedEventHandler[wakeup, reconcile.Request] {
	return handler.TypedFuncs[wakeup, reconcile.Request]{
		GenericFunc: func(_ context.Context, e event.TypedGenericEvent[wakeup], q requestQueue) {
			priority := priorityDue
			if e.Object.bad {
				priority = priorityLower
			}
			r.enqueue(q, priority, reconcile.Request{NamespacedName: e.Object.key})
		},
	}
}

// SetupWithManager registers the controller, the indexes that it needs, and all
// that wakes it.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, wakeups Wakeups, workers int) error {
	if err := r.findServed(mgr.GetRESTMapper()); err != nil {
		return err
	}
	if err := r.findReadable(ctx); err != nil {
		return err
	}
	if err := r.addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	r.wake = wakeups.Notify
	b := ctrl.NewControllerManagedBy(mgr).
		Named("weightedrollout").
		For(&v1alpha1.WeightedRollout{}).
		Watches(&v1alpha1.WeightedRollout{}, r.rolloutEvents()).
		Watches(&discoveryv1.EndpointSlice{}, r.relatedEvents(r.rolloutsOfSlice, losesEndpoints)).
		Watches(&appsv1.Deployment{}, r.relatedEvents(r.rolloutsOfWorkload(deploymentKind), changesRevision)).
		Watches(&appsv1.StatefulSet{}, r.relatedEvents(r.rolloutsOfWorkload(statefulSetKind), changesRevision)).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, r.relatedEvents(r.rolloutsOfAutoscaler, neverLowers)).
		WatchesRawSource(source.TypedChannel(wakeups.events, r.wakeupEvents())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			// A rollback must never wait for long behind its own failures.
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, 30*time.Second),
		})
	for _, kind := range []v1alpha1.RouteKind{v1alpha1.HTTPRouteKind, v1alpha1.GRPCRouteKind} {
		if !r.unserved[kind] {
			empty, _ := newRoute(kind)
			b = b.Watches(empty, r.relatedEvents(r.rolloutsOfRoute(kind), r.strays))
		}
	}
	return r.watchGateways(b).Complete(r)
}

func (r *Reconciler) addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	rollouts := map[string]func(*v1alpha1.WeightedRollout) []string{indexRoute: routesOf, indexService: servicesOf, indexWorkload: workloadsOf}
	for field, values := range rollouts {
		err := indexer.IndexField(ctx, &v1alpha1.WeightedRollout{}, field, func(o client.Object) []string {
			if wr, ok := o.(*v1alpha1.WeightedRollout); ok {
				return values(wr)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("index WeightedRollouts by %s: %w", field, err)
		}
	}
	err := indexer.IndexField(ctx, &discoveryv1.EndpointSlice{}, indexSliceService, func(o client.Object) []string {
		if service := o.GetLabels()[discoveryv1.LabelServiceName]; service != "" {
			return []string{service}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index EndpointSlices by Service: %w", err)
	}
	err = indexer.IndexField(ctx, &autoscalingv2.HorizontalPodAutoscaler{}, indexTarget, func(o client.Object) []string {
		if h, ok := o.(*autoscalingv2.HorizontalPodAutoscaler); ok {
			return []string{workloadIndex(h.Spec.ScaleTargetRef.Kind, h.Spec.ScaleTargetRef.Name)}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index HorizontalPodAutoscalers by their target: %w", err)
	}
	for _, kind := range []v1alpha1.RouteKind{v1alpha1.HTTPRouteKind, v1alpha1.GRPCRouteKind} {
		if r.unserved[kind] {
			continue
		}
		empty, _ := newRoute(kind)
		if err := indexer.IndexField(ctx, empty, indexBackend, backendsOf); err != nil {
			return fmt.Errorf("index %ss by their backends: %w", kind, err)
		}
		if err := indexer.IndexField(ctx, empty, indexGateway, gatewaysOf); err != nil {
			return fmt.Errorf("index %ss by their Gateways: %w", kind, err)
		}
	}
	return nil
}

// workloadsOf names the workloads of both tracks.
func workloadsOf(wr *v1alpha1.WeightedRollout) []string {
	var names []string
	if t := wr.Spec.Stable; t != nil && t.Workload != nil {
		names = append(names, workloadIndex(t.Workload.Kind, t.Workload.Name))
	}
	if t := wr.Spec.Canary; t != nil && t.Workload != nil {
		names = append(names, workloadIndex(t.Workload.Kind, t.Workload.Name))
	}
	return names
}

func workloadIndex(kind, name string) string { return cmp.Or(kind, deploymentKind) + "/" + name }

func (r *Reconciler) rolloutsOfWorkload(kind string) related {
	return func(ctx context.Context, o client.Object) []v1alpha1.WeightedRollout {
		return r.rolloutsToWake(ctx, o.GetNamespace(), indexWorkload, workloadIndex(kind, o.GetName()))
	}
}

func (r *Reconciler) rolloutsOfAutoscaler(ctx context.Context, o client.Object) []v1alpha1.WeightedRollout {
	h, ok := o.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok {
		return nil
	}
	target := h.Spec.ScaleTargetRef
	return r.rolloutsToWake(ctx, h.Namespace, indexWorkload, workloadIndex(target.Kind, target.Name))
}

func routesOf(wr *v1alpha1.WeightedRollout) []string {
	routes := make([]string, 0, len(wr.Spec.Routes))
	for _, ref := range wr.Spec.Routes {
		routes = append(routes, keyOf(ref).String())
	}
	return routes
}

// servicesOf names the Services of both tracks with their namespaces: they need not be
// in the rollout's own.
func servicesOf(wr *v1alpha1.WeightedRollout) []string {
	var services []string
	if wr.Spec.Stable != nil {
		services = append(services, serviceKey(backendOf(wr.Namespace, &wr.Spec.Stable.Track)))
	}
	if wr.Spec.Canary != nil {
		services = append(services, serviceKey(backendOf(wr.Namespace, &wr.Spec.Canary.Track)))
	}
	return services
}

func serviceKey(b route.Backend) string { return b.Namespace + "/" + b.Service }

func (r *Reconciler) rolloutsOfRoute(kind v1alpha1.RouteKind) related {
	return func(ctx context.Context, o client.Object) []v1alpha1.WeightedRollout {
		return r.rolloutsToWake(ctx, o.GetNamespace(), indexRoute, routeKey{kind, o.GetName()}.String())
	}
}

// rolloutsOfSlice looks in every namespace: a rollout may have a track in another one.
func (r *Reconciler) rolloutsOfSlice(ctx context.Context, o client.Object) []v1alpha1.WeightedRollout {
	return r.rolloutsToWake(ctx, metav1.NamespaceAll, indexService, serviceOfSlice(o))
}

// serviceOfSlice is the Service of an EndpointSlice, as the index of rollouts has it.
func serviceOfSlice(o client.Object) string {
	return serviceKey(route.Backend{Namespace: o.GetNamespace(), Service: o.GetLabels()[discoveryv1.LabelServiceName]})
}

func (r *Reconciler) rolloutsToWake(ctx context.Context, namespace, index, value string) []v1alpha1.WeightedRollout {
	rollouts, err := r.rolloutsBy(ctx, namespace, index, value)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot find the rollouts to wake", "index", index, "value", value)
	}
	return rollouts
}

// rolloutsBy finds rollouts in the cache. They share its memory, so they are not to be
// changed.
func (r *Reconciler) rolloutsBy(ctx context.Context, namespace, index, value string) ([]v1alpha1.WeightedRollout, error) {
	var list v1alpha1.WeightedRolloutList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return list.Items, nil
}
