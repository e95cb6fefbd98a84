package played

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// routeLog is every combination of weights that the routes of a namespace have
// had, whoever wrote them.
type routeLog struct {
	mu    sync.Mutex
	names []string
	seen  map[string][]pair
	// broken tells that the watch ended, so that something may be missing.
	broken bool
}

// newRouteLog watches the routes of a namespace until the test ends.
func newRouteLog(t *testing.T, c client.WithWatch, namespace string) *routeLog {
	t.Helper()
	l := &routeLog{seen: map[string][]pair{}}
	ctx, cancel := context.WithCancel(context.Background())
	w, err := c.Watch(ctx, &gatewayv1.HTTPRouteList{}, client.InNamespace(namespace))
	if err != nil {
		cancel()
		t.Fatalf("watching the routes of %s: %v", namespace, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			l.note(event)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.broken = ctx.Err() == nil
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if l.broken {
			t.Error("the watch of the routes ended early, so the test may have missed something")
		}
	})
	return l
}

func (l *routeLog) note(event watch.Event) {
	route, ok := event.Object.(*gatewayv1.HTTPRoute)
	if !ok || event.Type == watch.Deleted {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.names, route.Name) {
		l.names = append(l.names, route.Name)
	}
	p, past := pairOf(route), l.seen[route.Name]
	if len(past) == 0 || past[len(past)-1] != p {
		l.seen[route.Name] = append(past, p)
	}
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
