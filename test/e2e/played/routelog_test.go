package played

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// routeLog is every version that the routes of a namespace have had, and every
// combination of weights of their first rules, whoever wrote them.
type routeLog struct {
	mu     sync.Mutex
	names  []string
	seen   map[string][]pair
	stored map[string][]*unstructured.Unstructured
}

// newRouteLog watches the routes of a namespace until the test ends.
func newRouteLog(t *testing.T, c client.WithWatch, namespace string) *routeLog {
	t.Helper()
	l := &routeLog{seen: map[string][]pair{}, stored: map[string][]*unstructured.Unstructured{}}
	ctx, cancel := context.WithCancel(context.Background())
	var before gatewayv1.HTTPRouteList
	if err := c.List(ctx, &before, client.InNamespace(namespace)); err != nil {
		cancel()
		t.Fatalf("listing the routes of %s: %v", namespace, err)
	}
	// A watch that breaks is taken up where it broke, so that nothing is missed.
	w, err := toolswatch.NewRetryWatcherWithContext(ctx, before.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			routes := &unstructured.UnstructuredList{}
			routes.SetGroupVersionKind(schema.GroupVersionKind{Group: gatewayv1.GroupName, Version: "v1", Kind: "HTTPRouteList"})
			return c.Watch(ctx, routes, client.InNamespace(namespace), &client.ListOptions{Raw: &options})
		},
	})
	if err != nil {
		cancel()
		t.Fatalf("watching the routes of %s: %v", namespace, err)
	}
	broken := make(chan bool)
	go func() {
		defer close(broken)
		for event := range w.ResultChan() {
			l.note(event)
		}
		broken <- ctx.Err() == nil
	}()
	t.Cleanup(func() {
		cancel()
		if <-broken {
			t.Error("the watch of the routes ended early, so the test may have missed something")
		}
	})
	return l
}

func (l *routeLog) note(event watch.Event) {
	stored, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Deleted {
		return
	}
	route := &gatewayv1.HTTPRoute{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, route)
	l.mu.Lock()
	defer l.mu.Unlock()
	name := stored.GetName()
	if !slices.Contains(l.names, name) {
		l.names = append(l.names, name)
	}
	l.stored[name] = append(l.stored[name], stored)
	if err != nil || len(route.Spec.Rules) == 0 || len(route.Spec.Rules[0].BackendRefs) < 2 {
		return
	}
	p, past := pairOf(route), l.seen[name]
	if len(past) == 0 || past[len(past)-1] != p {
		l.seen[name] = append(past, p)
	}
}

// versions returns every version of a route so far, in order. They are not to be
// changed.
func (l *routeLog) versions(name string) []*unstructured.Unstructured {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.stored[name])
}

// of returns the weights that a route has had, in order and without repetitions.
func (l *routeLog) of(name string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	texts := make([]string, len(l.seen[name]))
	for i, p := range l.seen[name] {
		texts[i] = p.String()
	}
	return texts
}

func (l *routeLog) String() string {
	l.mu.Lock()
	names := slices.Clone(l.names)
	l.mu.Unlock()
	var lines []string
	for _, name := range names {
		lines = append(lines, fmt.Sprintf("%s: %s", name, strings.Join(l.of(name), " ")))
	}
	return strings.Join(lines[:min(len(lines), 12)], "; ")
}

func pairOf(route *gatewayv1.HTTPRoute) pair {
	refs := route.Spec.Rules[0].BackendRefs
	return pair{int(ptr.Deref(refs[0].Weight, 1)), int(ptr.Deref(refs[1].Weight, 1))}
}

// wantWeights waits until a route has had exactly the given weights, and no others.
func (w *world) wantWeights(name string, want ...string) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("weights %v of route %s", want, name), func() (bool, string) {
		got := w.routes.of(name)
		return len(got) >= len(want), fmt.Sprint(got)
	})
	if got := w.routes.of(name); !slices.Equal(got, want) {
		w.t.Errorf("route %s had the weights %v, want %v", name, got, want)
	}
}
