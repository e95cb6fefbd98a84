package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	appsv1 "k8s.io/api/apps/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/manifest"
	"github.com/weightedrollout/weightedrollout/internal/telemetry"
)

// crowded is the number of rollouts that are due at once.
const crowded = 300

// verdicts are what the metrics say: nothing but what is put in.
type verdicts struct {
	mu  sync.Mutex
	say map[types.NamespacedName]health.Verdict
}

func (*verdicts) Track(telemetry.Target)                   {}
func (*verdicts) Forget(types.NamespacedName)              {}
func (*verdicts) Problem(*v1alpha1.Health) *health.Problem { return nil }

func (v *verdicts) Verdict(k types.NamespacedName) health.Verdict {
	v.mu.Lock()
	defer v.mu.Unlock()
	if said, ok := v.say[k]; ok {
		return said
	}
	return health.Unknown(v1alpha1.ReasonNoData, "no data")
}

// crowd is a controller with many rollouts, each with a route of its own, on an API server
// that takes no write before the gate is open.
type crowd struct {
	*Reconciler
	t        *testing.T
	gate     chan struct{}
	verdicts *verdicts

	mu      sync.Mutex
	objects map[string][]byte
	version int
	// looks are the rollouts in the order in which they were looked at, and wrote what was
	// written.
	looks, wrote []string
	unready      map[string]bool
	conflicts    map[string]int
	queue        requestQueue
	looked       chan struct{}
}

func kindOf(o client.Object) string {
	if _, ok := o.(*v1alpha1.WeightedRollout); ok {
		return "WeightedRollout"
	}
	return "HTTPRoute"
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{
		Reconciler: reconcilerWith(t), t: t, gate: make(chan struct{}), verdicts: &verdicts{say: map[types.NamespacedName]health.Verdict{}},
		objects: map[string][]byte{}, unready: map[string]bool{}, conflicts: map[string]int{}, looked: make(chan struct{}, 100*crowded),
	}
	c.Evidence, c.Clock, c.Recorder = c.verdicts, clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0)), events.NewFakeRecorder(100*crowded)
	c.unserved = map[v1alpha1.RouteKind]bool{v1alpha1.GRPCRouteKind: true}
	c.intercepted(t, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			return c.read(kindOf(o)+" "+key.Name, o)
		},
		List: c.list,
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) error {
			return c.patch(kindOf(o)+" "+o.GetName(), "", o, p)
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, name string, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
			return c.patch(kindOf(o)+" "+o.GetName(), name+" of ", o, p)
		},
	})
	for i := range crowded {
		c.add(fmt.Sprintf("r%03d", i))
	}
	return c
}

// example is a rollout that has not begun, as the API server stores it.
var example = sync.OnceValues(func() (*v1alpha1.WeightedRollout, error) {
	return manifest.Decode(strings.NewReader(`
apiVersion: weightedrollout.dev/v1alpha1
kind: WeightedRollout
metadata: {name: web, namespace: shop}
spec:
  revision: v2
  routes: [{name: web}]
  stable: {service: web-stable, port: 80}
  canary: {service: web-canary, port: 80}
  health: {preset: Traefik, errorRate: {maxPercent: 5}}
`), "")
})

// add stores a rollout that has not begun, and its route.
func (c *crowd) add(name string) {
	c.t.Helper()
	decoded, err := example()
	if err != nil {
		c.t.Fatal(err)
	}
	wr := decoded.DeepCopy()
	wr.Name, wr.UID, wr.Generation, wr.CreationTimestamp = name, types.UID(name), 1, metav1.NewTime(time.Unix(1_600_000_000, 0))
	wr.Spec.Routes[0].Name, wr.Spec.Stable.Service, wr.Spec.Canary.Service = name, name+"-stable", name+"-canary"
	c.store(wr)
	h := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("route-" + name), Generation: 1}}
	h.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: refTo("", name+"-stable", new(int32(80)))}, {BackendRef: refTo("", name+"-canary", new(int32(20)))}}}}
	c.store(h)
}

func (c *crowd) store(o client.Object) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	o.SetResourceVersion(strconv.Itoa(c.version))
	text, err := json.Marshal(o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.objects[kindOf(o)+" "+o.GetName()] = text
}

func (c *crowd) read(key string, into client.Object) error {
	c.mu.Lock()
	text, ok := c.objects[key]
	c.mu.Unlock()
	if !ok {
		return apierrors.NewNotFound(gatewayv1.Resource("httproutes"), key)
	}
	return json.Unmarshal(text, into)
}

func (c *crowd) rollout(name string) *v1alpha1.WeightedRollout {
	c.t.Helper()
	wr := &v1alpha1.WeightedRollout{}
	if err := c.read("WeightedRollout "+name, wr); err != nil {
		c.t.Fatal(err)
	}
	return wr
}

// list answers by name: everything of a rollout has a name that begins with its own.
func (c *crowd) list(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	value := options.FieldSelector.String()
	value = value[strings.LastIndex(value, "/")+1:]
	value = value[strings.LastIndex(value, "=")+1:]
	name, track, _ := strings.Cut(value, "-")
	switch list := list.(type) {
	case *discoveryv1.EndpointSliceList:
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.unready[name+"-"+track] {
			list.Items = append(list.Items, *sliceOf(name+"-"+track, "pod-"+value))
		}
	case *v1alpha1.WeightedRolloutList:
		list.Items = append(list.Items, *c.rollout(name))
	}
	return nil
}

// patch carries out a write, and tells the controller of it as a watch does.
func (c *crowd) patch(key, part string, into client.Object, p client.Patch) error {
	<-c.gate
	data, err := p.Data(into)
	if err != nil {
		return err
	}
	was, is := into.DeepCopyObject(), into
	old, _ := was.(client.Object)
	if err := c.read(key, old); err != nil {
		return err
	}
	c.mu.Lock()
	c.wrote = append(c.wrote, part+key)
	c.version++
	version := c.version
	text := c.objects[key]
	conflicts := c.conflicts[part+key]
	c.conflicts[part+key]--
	c.mu.Unlock()
	if conflicts > 0 {
		return conflict("any", key)
	}
	if p.Type() == types.JSONPatchType {
		steps, decodeErr := jsonpatch.DecodePatch(data)
		if decodeErr != nil {
			return decodeErr
		}
		text, err = steps.Apply(text)
	} else {
		text, err = jsonpatch.MergePatch(text, data)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, is); err != nil {
		return err
	}
	is.SetResourceVersion(strconv.Itoa(version))
	if kindOf(is) == "HTTPRoute" {
		is.SetGeneration(is.GetGeneration() + 1)
	}
	text, err = json.Marshal(is)
	c.mu.Lock()
	c.objects[key] = text
	c.mu.Unlock()
	c.changed(old, is)
	return err
}

// changed tells the controller of a change, as the watches do.
func (c *crowd) changed(was, is client.Object) {
	if c.queue == nil {
		return
	}
	e := event.UpdateEvent{ObjectOld: was, ObjectNew: is}
	switch is.(type) {
	case *v1alpha1.WeightedRollout:
		(&handler.EnqueueRequestForObject{}).Update(c.t.Context(), e, c.queue)
		c.rolloutEvents().Update(c.t.Context(), e, c.queue)
	case *gatewayv1.HTTPRoute:
		c.relatedEvents(c.rolloutsOfRoute(v1alpha1.HTTPRouteKind), c.strays).Update(c.t.Context(), e, c.queue)
	case *discoveryv1.EndpointSlice:
		c.relatedEvents(c.rolloutsOfSlice, losesEndpoints).Update(c.t.Context(), e, c.queue)
	}
}

// listed tells the controller of all rollouts and routes, as the watches do when it starts.
func (c *crowd) listed() {
	for i := range crowded {
		name := fmt.Sprintf("r%03d", i)
		e := event.CreateEvent{Object: c.rollout(name), IsInInitialList: true}
		(&handler.EnqueueRequestForObject{}).Create(c.t.Context(), e, c.queue)
		c.rolloutEvents().Create(c.t.Context(), e, c.queue)
		h := &gatewayv1.HTTPRoute{}
		if err := c.read("HTTPRoute "+name, h); err != nil {
			c.t.Error(err)
		}
		c.relatedEvents(c.rolloutsOfRoute(v1alpha1.HTTPRouteKind), c.strays).Create(c.t.Context(), event.CreateEvent{Object: h, IsInInitialList: true}, c.queue)
	}
}

// start runs the controller with so many workers. What is in the queue at first is put in
// by feed.
func (c *crowd) start(workers int, feed func()) {
	c.t.Helper()
	look := reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		c.mu.Lock()
		c.looks = append(c.looks, req.Name)
		c.mu.Unlock()
		c.looked <- struct{}{}
		return c.Reconcile(ctx, req)
	})
	running, err := controller.NewUnmanaged("crowd", controller.Options{Reconciler: look, MaxConcurrentReconciles: workers, SkipNameValidation: new(true)})
	if err != nil {
		c.t.Fatal(err)
	}
	err = running.Watch(source.Func(func(_ context.Context, q requestQueue) error {
		c.queue = q
		feed()
		return nil
	}))
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := running.Start(ctx); err != nil {
			c.t.Error(err)
		}
	})
	c.t.Cleanup(func() {
		stop()
		c.open()
		ended.Wait()
	})
}

// open lets all writes through.
func (c *crowd) open() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.gate:
	default:
		close(c.gate)
	}
}

// await waits for the controller to have looked n times.
func (c *crowd) await(n int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	for range n {
		select {
		case <-c.looked:
		case <-ctx.Done():
			c.t.Fatalf("no more looks than %d", len(c.looks))
		}
	}
}

// serving gives the canary of a rollout, which is under way, 20 percent.
func (c *crowd) serving(name string) {
	c.t.Helper()
	wr := c.rollout(name)
	long := metav1.NewMicroTime(time.Unix(1_690_000_000, 0))
	share := v1alpha1.Percent("20")
	wr.Finalizers = []string{v1alpha1.Finalizer}
	wr.Status = v1alpha1.WeightedRolloutStatus{
		ObservedGeneration: 1, Revision: "v2", Attempt: 1, Outcome: v1alpha1.OutcomeInProgress, StartedAt: &long,
		Stage: &v1alpha1.StageStatus{Index: 3, Weight: "20", StartedAt: &long},
		Share: v1alpha1.ShareStatus{Desired: &share, ChangedAt: &long, ConfirmedAt: &long},
	}
	c.store(wr)
}

// After a start every rollout is looked at once before any is looked at twice, and those
// whose canary has traffic come first.
func TestEachIsLookedAtOnceBeforeAnyTwice(t *testing.T) {
	c := newCrowd(t)
	var busy []string
	for i := range 10 {
		busy = append(busy, fmt.Sprintf("r%03d", 30*i+7))
		c.serving(busy[i])
	}
	c.open()
	c.start(1, c.listed)
	c.await(crowded + 100)
	c.mu.Lock()
	defer c.mu.Unlock()
	first := slices.Clone(c.looks[:crowded])
	if early := slices.Sorted(slices.Values(first[:len(busy)])); !slices.Equal(early, busy) {
		t.Errorf("looked at first: %v, want %v", early, busy)
	}
	slices.Sort(first)
	if different := len(slices.Compact(first)); different != crowded {
		t.Errorf("of the first %d looks %d were at rollouts that had been looked at", crowded, crowded-different)
	}
}

// However many changes are due, one that lowers is the next that is written.
func TestWhatLowersIsWrittenNext(t *testing.T) {
	const victim = "r299"
	for name, happens := range map[string]func(*crowd){
		"a bad verdict": func(c *crowd) {
			c.verdicts.mu.Lock()
			c.verdicts.say[types.NamespacedName{Namespace: "shop", Name: victim}] = health.Verdict{State: v1alpha1.VerdictUnhealthy, Check: "error-rate", Message: "too many"}
			c.verdicts.mu.Unlock()
			c.wakeupEvents().Generic(c.t.Context(), event.TypedGenericEvent[wakeup]{Object: wakeup{types.NamespacedName{Namespace: "shop", Name: victim}, true}}, c.queue)
		},
		"an abort":         edited(victim, func(wr *v1alpha1.WeightedRollout) { wr.Annotations = map[string]string{v1alpha1.AbortAnnotation: "1"} }),
		"another revision": edited(victim, func(wr *v1alpha1.WeightedRollout) { wr.Spec.Revision, wr.Generation = "v3", 2 }),
		"a deletion":       edited(victim, func(wr *v1alpha1.WeightedRollout) { wr.DeletionTimestamp, wr.Generation = &wr.CreationTimestamp, 2 }),
		"no endpoint left": func(c *crowd) {
			c.mu.Lock()
			c.unready[victim+"-canary"] = true
			c.mu.Unlock()
			c.changed(sliceOf(victim+"-canary", "a"), sliceOf(victim+"-canary"))
		},
		"an edit of the route": func(c *crowd) {
			was, is := &gatewayv1.HTTPRoute{}, &gatewayv1.HTTPRoute{}
			if err := errors.Join(c.read("HTTPRoute "+victim, was), c.read("HTTPRoute "+victim, is)); err != nil {
				c.t.Fatal(err)
			}
			was.Annotations = map[string]string{v1alpha1.ManagedByAnnotation: victim}
			is.Spec.Rules[0].BackendRefs[1].Weight, is.Generation = new(int32(80)), 2
			c.store(is)
			c.changed(was, is)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t)
			c.serving(victim)
			c.start(1, func() {
				for i := range crowded {
					c.enqueue(c.queue, priorityDue, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("r%03d", i)}})
				}
			})
			// The worker waits for its first write, and will finish what it has begun.
			c.await(1)
			happens(c)
			c.open()
			c.await(crowded - 1)
			c.mu.Lock()
			defer c.mu.Unlock()
			begun := c.looks[0]
			next := slices.IndexFunc(c.wrote, func(write string) bool { return !strings.HasSuffix(write, begun) })
			if next < 0 || !strings.HasSuffix(c.wrote[next], victim) || !slices.Contains(c.wrote, "HTTPRoute "+victim) {
				t.Errorf("written next: %v", c.wrote[max(next, 0):min(len(c.wrote), max(next, 0)+5)])
			}
			if place := slices.Index(c.looks, victim); place != 1 {
				t.Errorf("%d others were looked at before it", place-1)
			}
		})
	}
}

// edited changes a rollout, and the controller is told.
func edited(name string, edit func(*v1alpha1.WeightedRollout)) func(*crowd) {
	return func(c *crowd) {
		was, is := c.rollout(name), c.rollout(name)
		edit(is)
		c.store(is)
		c.changed(was, is)
	}
}

// What is tried again after a conflict keeps its place: what lowers always, and anything
// else once.
func TestConflictKeepsThePlace(t *testing.T) {
	for _, tc := range []struct {
		name    string
		abort   bool
		again   []int
		refused string
	}{
		{"a rollback, by its status", true, []int{priorityLower, priorityLower, priorityLower}, "status of WeightedRollout r001"},
		{"another change", false, []int{priorityRetry, priorityDue, priorityDue}, "status of WeightedRollout r001"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCrowd(t)
			c.open()
			req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "r001"}}
			for round := range 2 {
				c.add("r001")
				c.serving("r001")
				if tc.abort {
					edited("r001", func(wr *v1alpha1.WeightedRollout) { wr.Annotations = map[string]string{v1alpha1.AbortAnnotation: "1"} })(c)
				}
				c.conflicts[tc.refused] = len(tc.again)
				for i, want := range tc.again {
					got, err := c.Reconcile(t.Context(), req)
					if err != nil || got.Priority == nil || *got.Priority != want || got.RequeueAfter == 0 {
						t.Errorf("round %d, conflict %d: %+v, %v, want the priority %d", round, i, got, err, want)
					}
				}
				if got, err := c.Reconcile(t.Context(), req); err != nil || got.Priority != nil && *got.Priority != priorityDue {
					t.Errorf("round %d, in the end: %+v, %v", round, got, err)
				}
			}
		})
	}
}

// A rollout that was put first stays there while the cache is behind, and one that was not
// waits for the watch.
func TestUrgentIsNotForgottenWhileTheCacheIsBehind(t *testing.T) {
	c := newCrowd(t)
	c.open()
	c.serving("r001")
	wr := c.rollout("r001")
	req := requestFor(wr)
	version := wr.ResourceVersion
	wr.ResourceVersion = "1000000"
	c.writes.wrote(req.NamespacedName, wr)
	if got, err := c.Reconcile(t.Context(), req); err != nil || got != (reconcile.Result{}) {
		t.Errorf("not urgent: %+v, %v", got, err)
	}
	c.urgent.Store(req.NamespacedName, nil)
	for range 2 {
		if got, err := c.Reconcile(t.Context(), req); err != nil || got.Priority == nil || *got.Priority != priorityLower || got.RequeueAfter != conflictRequeue {
			t.Errorf("urgent: %+v, %v", got, err)
		}
	}
	wr.ResourceVersion = version
	c.writes.wrote(req.NamespacedName, wr)
	if _, err := c.Reconcile(t.Context(), req); err != nil {
		t.Error(err)
	}
	if _, urgent := c.urgent.Load(req.NamespacedName); urgent {
		t.Error("it is still urgent once something was decided")
	}
}

// exposedTo is a rollout of namespace shop with a share of the traffic.
func exposedTo(share v1alpha1.Percent, edits ...func(*v1alpha1.WeightedRollout)) *v1alpha1.WeightedRollout {
	wr := rolloutOf("web", 0, httpRef("web"))
	wr.Spec.Revision, wr.Status.Revision, wr.Status.Attempt, wr.Status.Outcome = "v2", "v2", 3, v1alpha1.OutcomeInProgress
	wr.Status.Share.Desired = &share
	for _, edit := range edits {
		edit(wr)
	}
	return wr
}

func TestFirstLook(t *testing.T) {
	abort := func(attempt string) func(*v1alpha1.WeightedRollout) {
		return func(wr *v1alpha1.WeightedRollout) {
			wr.Annotations = map[string]string{v1alpha1.AbortAnnotation: attempt}
		}
	}
	deleted := func(wr *v1alpha1.WeightedRollout) { wr.DeletionTimestamp = &wr.CreationTimestamp }
	another := func(wr *v1alpha1.WeightedRollout) { wr.Spec.Revision = "v3" }
	observed := func(wr *v1alpha1.WeightedRollout) { wr.Status.Share.Observed = new(v1alpha1.Percent("0.1")) }
	for _, tc := range []struct {
		name string
		wr   *v1alpha1.WeightedRollout
		want int
	}{
		{"nothing is known", rolloutOf("web", 0), priorityFirst},
		{"no traffic", exposedTo("0"), priorityFirst},
		{"traffic", exposedTo("0.01"), priorityServing},
		{"traffic that is left", exposedTo("0", observed), priorityServing},
		{"a share that cannot be read", exposedTo("much"), priorityServing},
		{"aborted", exposedTo("5", abort("3")), priorityLower},
		{"another attempt aborted", exposedTo("5", abort("2")), priorityServing},
		{"aborted without traffic", exposedTo("0", abort("3")), priorityFirst},
		{"deleted", exposedTo("5", deleted), priorityLower},
		{"deleted without traffic", exposedTo("0", deleted), priorityFirst},
		{"another revision", exposedTo("5", another), priorityLower},
		{"a derived revision", exposedTo("5", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Revision = "" }), priorityServing},
	} {
		if got := firstLook(tc.wr); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestLosesEndpoints(t *testing.T) {
	unready := sliceOf("web-canary", "a", "b")
	unready.Endpoints[1].Conditions.Ready = new(false)
	leaving := sliceOf("web-canary", "a", "b")
	leaving.Endpoints[0].Conditions.Terminating = new(true)
	nameless := sliceOf("web-canary", "a")
	nameless.Endpoints[0].TargetRef = nil
	moved := nameless.DeepCopy()
	moved.Endpoints[0].Addresses = []string{"10.9.9.9"}
	returning := func(wr *v1alpha1.WeightedRollout) { wr.Status.Outcome = v1alpha1.OutcomeReturning }
	for _, tc := range []struct {
		name    string
		wr      *v1alpha1.WeightedRollout
		was, is client.Object
		want    bool
	}{
		{"the last", exposedTo("5"), sliceOf("web-canary", "a"), sliceOf("web-canary"), true},
		{"the slice", exposedTo("5"), sliceOf("web-canary", "a"), nil, true},
		{"one of two", exposedTo("5"), sliceOf("web-canary", "a", "b"), sliceOf("web-canary", "b"), true},
		{"another pod instead", exposedTo("5"), sliceOf("web-canary", "a"), sliceOf("web-canary", "b"), true},
		{"unready", exposedTo("5"), sliceOf("web-canary", "a", "b"), unready, true},
		{"shutting down", exposedTo("5"), sliceOf("web-canary", "a", "b"), leaving, true},
		{"what is no pod", exposedTo("5"), nameless, moved, true},
		{"none", exposedTo("5"), sliceOf("web-canary", "a"), sliceOf("web-canary", "b", "a"), false},
		{"one that was unready", exposedTo("5"), unready, sliceOf("web-canary", "a"), false},
		{"a new slice", exposedTo("5"), nil, sliceOf("web-canary", "a"), false},
		{"stable's", exposedTo("5"), sliceOf("web-stable", "a"), nil, false},
		{"without traffic", exposedTo("0"), sliceOf("web-canary", "a"), nil, false},
		{"stable's on the way back", exposedTo("5", returning), sliceOf("web-stable", "a"), nil, true},
		{"the canary's on the way back", exposedTo("5", returning), sliceOf("web-canary", "a"), nil, false},
	} {
		if got := losesEndpoints(tc.wr, tc.was, tc.is); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func TestChangesRevision(t *testing.T) {
	derived := func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Revision, wr.Spec.Canary.Workload = "", &v1alpha1.WorkloadReference{Name: "web-canary"}
	}
	at := func(generation int64, name, image string) *appsv1.Deployment {
		d := deployment(name, 4, image)
		d.Generation = generation
		return d
	}
	for _, tc := range []struct {
		name    string
		wr      *v1alpha1.WeightedRollout
		was, is client.Object
		want    bool
	}{
		{"another image", exposedTo("5", derived), at(3, "web-canary", "web:2"), at(4, "web-canary", "web:3"), true},
		{"scaled", exposedTo("5", derived), at(3, "web-canary", "web:2"), at(4, "web-canary", "web:2"), false},
		{"status alone", exposedTo("5", derived), at(3, "web-canary", "web:2"), at(3, "web-canary", "web:3"), false},
		{"stable's", exposedTo("5", derived), at(3, "web-stable", "web:2"), at(4, "web-stable", "web:3"), false},
		{"without traffic", exposedTo("0", derived), at(3, "web-canary", "web:2"), at(4, "web-canary", "web:3"), false},
		{"a revision that is stated", exposedTo("5"), at(3, "web-canary", "web:2"), at(4, "web-canary", "web:3"), false},
		{"new", exposedTo("5", derived), nil, at(4, "web-canary", "web:3"), false},
		{"gone", exposedTo("5", derived), at(4, "web-canary", "web:3"), nil, false},
	} {
		if got := changesRevision(tc.wr, tc.was, tc.is); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func TestStrays(t *testing.T) {
	at := func(generation int64, canary int32, owner string, edits ...func(*gatewayv1.HTTPRoute)) *gatewayv1.HTTPRoute {
		h := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: generation, Annotations: map[string]string{v1alpha1.ManagedByAnnotation: owner}}}
		h.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: refTo("", "web-stable", new(100-canary))}, {BackendRef: refTo("", "web-canary", &canary)}}}}
		for _, edit := range edits {
			edit(h)
		}
		return h
	}
	broken := func(h *gatewayv1.HTTPRoute) {
		h.Status.Parents = []gatewayv1.RouteParentStatus{{Conditions: []metav1.Condition{{Type: string(gatewayv1.RouteConditionResolvedRefs), Status: metav1.ConditionFalse}}}}
	}
	returning := func(wr *v1alpha1.WeightedRollout) { wr.Status.Outcome = v1alpha1.OutcomeReturning }
	for _, tc := range []struct {
		name    string
		wr      *v1alpha1.WeightedRollout
		was, is client.Object
		want    bool
	}{
		{"more", exposedTo("5"), at(1, 5, "web"), at(2, 6, "web"), true},
		{"more, where it had none", exposedTo("0"), at(1, 0, "web"), at(2, 6, "web"), true},
		{"more, by who took our name away", exposedTo("5"), at(1, 5, "web"), at(2, 50, ""), true},
		{"a new route with more", exposedTo("5"), nil, at(1, 50, ""), true},
		{"as much", exposedTo("5"), at(1, 5, "web"), at(2, 5, "web"), false},
		{"less", exposedTo("5"), at(1, 5, "web"), at(2, 4, "web"), false},
		{"status alone", exposedTo("5"), at(2, 5, "web"), at(2, 6, "web"), false},
		{"another's route", exposedTo("5"), at(1, 5, "other"), at(2, 50, "other"), false},
		{"no record", rolloutOf("web", 0, httpRef("web")), at(1, 5, "web"), at(2, 50, "web"), false},
		{"gone", exposedTo("5"), at(1, 5, "web"), nil, false},
		{"more for the canary on the way back", exposedTo("5", returning), at(1, 5, "web"), at(2, 50, "web"), false},
		{"more for stable on the way back", exposedTo("50", returning), at(1, 50, "web"), at(2, 5, "web"), true},
		{"a backend is not found", exposedTo("5"), at(1, 5, "web"), at(1, 5, "web", broken), true},
		{"a backend is still not found", exposedTo("5"), at(1, 5, "web", broken), at(1, 5, "web", broken), false},
		{"a backend without traffic is not found", exposedTo("0"), at(1, 0, "web"), at(1, 0, "web", broken), false},
	} {
		r := &Reconciler{}
		if got := r.strays(tc.wr, tc.was, tc.is); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
		// What is seen in the route may be our own write, which the status does not show yet.
		later := tc.wr.DeepCopy()
		later.ResourceVersion, tc.wr.ResourceVersion = "8", "7"
		r.writes.wrote(client.ObjectKeyFromObject(later), later)
		if r.strays(tc.wr, tc.was, tc.is) {
			t.Errorf("%s: decided by a status that is older than the last write", tc.name)
		}
	}
}

// A rollout that time alone will lower comes first when the time has come, and what happens
// before that has no such place.
func TestTimeThatLowersComesFirst(t *testing.T) {
	for _, tc := range []struct {
		name     string
		deadline v1alpha1.Duration
		edit     func(*v1alpha1.WeightedRollout)
		alarm    bool
	}{
		{"no deadline", "", nil, false},
		{"a deadline", "30m", nil, true},
		{"a deadline that does not run", "30m", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Paused = true }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCrowd(t)
			c.open()
			c.serving("r001")
			type call struct {
				key types.NamespacedName
				bad bool
			}
			woken := make(chan call, 1)
			c.wake = func(key types.NamespacedName, bad bool) { woken <- call{key, bad} }
			now := c.Clock.Now()
			edited("r001", func(wr *v1alpha1.WeightedRollout) {
				wr.Spec.ProgressDeadline = tc.deadline
				if since := metav1.NewMicroTime(now.Add(20*time.Millisecond - 30*time.Minute)); tc.deadline != "" {
					wr.Status.Progress = &v1alpha1.ProgressStatus{WaitingSince: &since, Highest: new(v1alpha1.Percent("20"))}
				}
				if tc.edit != nil {
					tc.edit(wr)
				}
			})(c)
			req := requestFor(c.rollout("r001"))
			for range 2 {
				if got, err := c.Reconcile(t.Context(), req); err != nil || got.Priority != nil && *got.Priority != priorityDue {
					t.Fatalf("%+v, %v", got, err)
				}
			}
			if _, alarm := c.alarms.Load(req.NamespacedName); alarm != tc.alarm {
				t.Fatalf("an alarm is set: %v, want %v", alarm, tc.alarm)
			}
			if !tc.alarm {
				return
			}
			if got := <-woken; got != (call{req.NamespacedName, true}) {
				t.Errorf("woken: %+v", got)
			}
			c.forget(req.NamespacedName)
			if _, alarm := c.alarms.Load(req.NamespacedName); alarm {
				t.Error("an alarm is left of a rollout that is gone")
			}
		})
	}
}
