package workloads

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// history is everything that happened to the routes, pods, endpoints and autoscalers of
// a namespace, in the order of the writes. The bed has one etcd, which numbers the
// writes to objects of every kind in one sequence.
type history struct {
	mu     sync.Mutex
	events []event
}

type event struct {
	number  uint64 // the resourceVersion
	object  client.Object
	deleted bool
}

// remembered are the kinds of objects in a history.
func remembered() []client.ObjectList {
	return []client.ObjectList{
		&gatewayv1.HTTPRouteList{}, &corev1.PodList{}, &discoveryv1.EndpointSliceList{}, &autoscalingv2.HorizontalPodAutoscalerList{},
	}
}

// record begins to write a history, which ends with the test.
func (w *world) record() *history {
	w.t.Helper()
	h := &history{}
	for _, list := range remembered() {
		// The test's own context is over before its watches can be waited for.
		watcher, err := w.Client.Watch(context.WithoutCancel(w.t.Context()), list, client.InNamespace(w.namespace))
		if err != nil {
			w.t.Fatalf("watching %T: %v", list, err)
		}
		var reader sync.WaitGroup
		reader.Go(func() {
			for e := range watcher.ResultChan() {
				h.note(e)
			}
		})
		w.t.Cleanup(func() {
			watcher.Stop()
			reader.Wait()
		})
	}
	return h
}

func (h *history) note(e watch.Event) {
	object, ok := e.Object.(client.Object)
	if !ok || e.Type == watch.Bookmark || e.Type == watch.Error {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event{numberOf(object), object, e.Type == watch.Deleted})
}

func numberOf(object client.Object) uint64 {
	number, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// upToNow returns the history, once it holds all that has happened.
func (w *world) upToNow(h *history) []event {
	w.t.Helper()
	var events []event
	w.eventually("the history to be complete", func() (bool, string) {
		var missing string
		for _, list := range remembered() {
			if err := w.Client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
				w.t.Fatal(err)
			}
			_ = meta.EachListItem(list, func(o runtime.Object) error {
				if object, ok := o.(client.Object); ok && !h.has(numberOf(object)) {
					missing = object.GetName()
				}
				return nil
			})
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		events = slices.Clone(h.events)
		return missing == "", missing
	})
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.number, b.number) })
	return events
}

func (h *history) has(number uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.events, func(e event) bool { return e.number == number })
}

// moment is what the history says about one point in time.
type moment struct {
	share   int32                          // of the canary, in percent; -1 before there is a route
	images  map[string]string              // by pod
	ready   map[string]map[string][]string // pods behind ready endpoints, by Service and slice
	minimum map[string]int32               // by autoscaler
}

// replay calls look for every change of the canary's share, with what was so just then,
// and the share before.
func replay(events []event, look func(before int32, now *moment)) {
	now := &moment{share: -1, images: map[string]string{}, ready: map[string]map[string][]string{}, minimum: map[string]int32{}}
	for _, e := range events {
		switch o := e.object.(type) {
		case *corev1.Pod:
			now.images[o.Name] = o.Spec.Containers[0].Image
		case *autoscalingv2.HorizontalPodAutoscaler:
			now.minimum[o.Name] = *o.Spec.MinReplicas
		case *discoveryv1.EndpointSlice:
			now.noteSlice(o, e.deleted)
		case *gatewayv1.HTTPRoute:
			if share := shareOf(o); share != now.share {
				before := now.share
				now.share = share
				look(before, now)
			}
		}
	}
}

func (m *moment) noteSlice(s *discoveryv1.EndpointSlice, deleted bool) {
	service := s.Labels[discoveryv1.LabelServiceName]
	if m.ready[service] == nil {
		m.ready[service] = map[string][]string{}
	}
	delete(m.ready[service], s.Name)
	if deleted {
		return
	}
	for _, e := range s.Endpoints {
		if e.Conditions.Ready != nil && *e.Conditions.Ready && e.TargetRef != nil {
			m.ready[service][s.Name] = append(m.ready[service][s.Name], e.TargetRef.Name)
		}
	}
}

// behind returns the images of the pods behind the ready endpoints of a Service.
func (m *moment) behind(service string) []string {
	var images []string
	for _, pods := range m.ready[service] {
		for _, pod := range pods {
			images = append(images, m.images[pod])
		}
	}
	return images
}

// shareOf is the canary's share in percent, of two weights that add up to 100.
func shareOf(r *gatewayv1.HTTPRoute) int32 { return *r.Spec.Rules[0].BackendRefs[1].Weight }
