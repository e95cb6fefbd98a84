package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// ledger has every change of a route's weights, from a watch that outlives the API server.
// The route's generation, which the API server counts up with every change, tells that
// none was missed.
type ledger struct {
	t         *testing.T
	namespace string
	began     time.Time

	mu         sync.Mutex
	seen       []int32 // the canary's weights
	wrong      []string
	generation int64
}

// openLedger begins a ledger of a shop's route.
func openLedger(t *testing.T, namespace string) *ledger {
	t.Helper()
	l := &ledger{t: t, namespace: namespace, began: time.Now()}
	must(t, l.read(t.Context()), "read the route")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			l.follow(ctx)
			time.Sleep(pollEvery)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return l
}

func (l *ledger) read(ctx context.Context) error {
	route := &gatewayv1.HTTPRoute{}
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: "checkout"}, route)
	if err == nil {
		l.note(route)
	}
	return err
}

// follow watches the route until the watch ends, which it does with the API server.
func (l *ledger) follow(ctx context.Context) {
	// Without a version to begin at, the watch begins with the route as it is.
	w, err := cluster.Client.Watch(ctx, &gatewayv1.HTTPRouteList{}, client.InNamespace(l.namespace))
	if err != nil {
		return // the API server is away
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, open := <-w.ResultChan():
			if !open {
				return
			}
			if route, ok := e.Object.(*gatewayv1.HTTPRoute); ok && e.Type != watch.Deleted {
				l.note(route)
			}
		}
	}
}

func (l *ledger) note(route *gatewayv1.HTTPRoute) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.generation > 0 && route.Generation > l.generation+1 {
		l.wrong = append(l.wrong, fmt.Sprintf("changes were missed between generations %d and %d", l.generation, route.Generation))
	}
	if route.Generation < l.generation {
		return // a watch that begins may be behind
	}
	l.generation = route.Generation
	backends := route.Spec.Rules[0].BackendRefs
	stable, canary := *backends[0].Weight, *backends[1].Weight
	if len(l.seen) > 0 && l.seen[len(l.seen)-1] == canary {
		return
	}
	l.seen = append(l.seen, canary)
	l.t.Logf("%6.1fs  %s: stable %d, canary %d", time.Since(l.began).Seconds(), l.namespace, stable, canary)
	if stable+canary != 100 {
		l.wrong = append(l.wrong, fmt.Sprintf("weights %d and %d do not add up to 100", stable, canary))
	}
}

// shares returns the canary's weights so far.
func (l *ledger) shares() []int32 {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wrong) > 0 {
		l.t.Fatalf("%s: %v", l.namespace, l.wrong)
	}
	return slices.Clone(l.seen)
}

func (l *ledger) last() int32 {
	l.t.Helper()
	shares := l.shares()
	return shares[len(shares)-1]
}

// reaches waits until the canary's share is at least so many percent.
func (l *ledger) reaches(percent int32) {
	l.t.Helper()
	eventually(l.t, fmt.Sprintf("%s at %d percent", l.namespace, percent), func() (bool, string) {
		return l.last() >= percent, fmt.Sprint(l.shares())
	})
}

// wants waits until the shares have been these, and fails at the first other one.
func (l *ledger) wants(want ...int32) {
	l.t.Helper()
	eventually(l.t, fmt.Sprintf("%s has the shares %v", l.namespace, want), func() (bool, string) {
		got := l.shares()
		if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
			l.t.Fatalf("%s: the canary's shares were %v, want %v", l.namespace, got, want)
		}
		return len(got) == len(want), fmt.Sprint(got)
	})
}
