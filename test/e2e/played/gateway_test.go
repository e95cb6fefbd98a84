package played

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// playedController is the controllerName of the played gateway.
const playedController = "example.com/played"

// gatewayMode is how the gateway behaves towards the routes of a namespace. The
// zero value accepts every generation at once.
type gatewayMode struct {
	silent       bool          // reports nothing
	noGeneration bool          // reports no generation
	lag          time.Duration // reports a generation only so long after it was seen
	notAccepted  bool
	notResolved  bool
}

// playedGateway watches every HTTPRoute and writes its status.parents.
type playedGateway struct {
	client client.WithWatch
	queue  workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu    sync.Mutex
	modes map[string]gatewayMode
	known map[types.NamespacedName]bool
	seen  map[string]time.Time // by uid and generation
}

func newPlayedGateway(c client.WithWatch) *playedGateway {
	return &playedGateway{
		client: c,
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](10*time.Millisecond, time.Second)),
		modes:  map[string]gatewayMode{}, known: map[types.NamespacedName]bool{}, seen: map[string]time.Time{},
	}
}

// start begins to watch. The gateway ends with the context.
func (g *playedGateway) start(ctx context.Context) error {
	w, err := g.client.Watch(ctx, &gatewayv1.HTTPRouteList{})
	if err != nil {
		return fmt.Errorf("watching routes as the gateway: %w", err)
	}
	for range 8 {
		go g.work(ctx)
	}
	go func() {
		defer g.queue.ShutDown()
		for ctx.Err() == nil {
			if err == nil {
				for event := range w.ResultChan() {
					g.note(event)
				}
			}
			// The API server ends a watch now and then, and a new one begins with all
			// that there is.
			time.Sleep(pollEvery)
			w, err = g.client.Watch(ctx, &gatewayv1.HTTPRouteList{})
		}
	}()
	return nil
}

func (g *playedGateway) note(event watch.Event) {
	route, ok := event.Object.(*gatewayv1.HTTPRoute)
	if !ok {
		return
	}
	key := client.ObjectKeyFromObject(route)
	g.mu.Lock()
	g.known[key] = event.Type != watch.Deleted
	g.mu.Unlock()
	g.queue.Add(key)
}

// set changes the behaviour towards a namespace.
func (g *playedGateway) set(namespace string, mode gatewayMode) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.modes[namespace] = mode
	for key, there := range g.known {
		if there && key.Namespace == namespace {
			g.queue.Add(key)
		}
	}
}

func (g *playedGateway) work(ctx context.Context) {
	for {
		key, shutdown := g.queue.Get()
		if shutdown {
			return
		}
		wait, err := g.report(ctx, key)
		switch {
		case err != nil && ctx.Err() == nil:
			g.queue.AddRateLimited(key)
		case wait > 0:
			g.queue.Forget(key)
			g.queue.AddAfter(key, wait)
		default:
			g.queue.Forget(key)
		}
		g.queue.Done(key)
	}
}

// report writes status.parents of one route, unless it says all already.
func (g *playedGateway) report(ctx context.Context, key types.NamespacedName) (wait time.Duration, err error) {
	route := &gatewayv1.HTTPRoute{}
	if err := g.client.Get(ctx, key, route); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	parents, wait := g.parents(route)
	if equality.Semantic.DeepEqual(route.Status.Parents, parents) {
		return wait, nil
	}
	before := route.DeepCopy()
	route.Status.Parents = parents
	err = g.client.Status().Patch(ctx, route, client.MergeFrom(before))
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return wait, err
}

func (g *playedGateway) parents(route *gatewayv1.HTTPRoute) ([]gatewayv1.RouteParentStatus, time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	mode := g.modes[route.Namespace]
	if mode.silent {
		return []gatewayv1.RouteParentStatus{}, 0
	}
	generation, wait := route.Generation, time.Duration(0)
	if mode.lag > 0 {
		id := fmt.Sprintf("%s/%d", route.UID, generation)
		if _, ok := g.seen[id]; !ok {
			g.seen[id] = time.Now()
		}
		if wait = mode.lag - time.Since(g.seen[id]); wait > 0 {
			generation--
		}
	}
	if mode.noGeneration {
		generation = 0
	}
	condition := func(kind gatewayv1.RouteConditionType, refused bool, reason gatewayv1.RouteConditionReason) metav1.Condition {
		status := metav1.ConditionTrue
		if refused {
			status = metav1.ConditionFalse
		} else {
			reason = gatewayv1.RouteConditionReason(kind)
		}
		return metav1.Condition{
			Type: string(kind), Status: status, Reason: string(reason), Message: "as the test wants it",
			ObservedGeneration: generation, LastTransitionTime: route.CreationTimestamp,
		}
	}
	var parents []gatewayv1.RouteParentStatus
	for _, ref := range route.Spec.ParentRefs {
		parents = append(parents, gatewayv1.RouteParentStatus{
			ParentRef: ref, ControllerName: playedController,
			Conditions: []metav1.Condition{
				condition(gatewayv1.RouteConditionAccepted, mode.notAccepted, gatewayv1.RouteReasonNotAllowedByListeners),
				condition(gatewayv1.RouteConditionResolvedRefs, mode.notResolved, gatewayv1.RouteReasonBackendNotFound),
			},
		})
	}
	return parents, wait
}
