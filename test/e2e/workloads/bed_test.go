// Package workloads tests what the project says about Deployments, StatefulSets and
// autoscalers against the real things: an API server that fills in their templates and
// takes the patches, kube-controller-manager, which makes pods of them, a gateway, and
// the manager's binary, which takes a canary through its plan. Only the kubelet is
// played.
package workloads

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weightedrollout/weightedrollout/test/testbed"
)

const (
	// patience bounds every wait: it says when a test has failed, not how fast it has
	// to be.
	patience  = 3 * time.Minute
	pollEvery = 50 * time.Millisecond
)

// shared is what all tests of this package use.
type shared struct {
	*testbed.Bed
	kubelet *testbed.Kubelet
}

// start brings the bed up when the first test asks for it, so that -short and -list
// start nothing.
var start = sync.OnceValues(func() (*shared, error) {
	ctx := context.Background()
	bed, err := testbed.Start(ctx, testbed.Options{BinDir: os.Getenv("WEIGHTEDROLLOUT_BIN"), Gateway: true})
	if err != nil {
		return nil, err
	}
	s := &shared{Bed: bed}
	running.Store(s)
	if s.kubelet, err = bed.StartKubelet(ctx, 0); err != nil {
		return nil, err
	}
	if _, err = bed.StartControllerManager(ctx); err != nil {
		return nil, err
	}
	_, err = bed.StartManager(ctx, testbed.ManagerOptions{})
	return s, err
})

// running is what TestMain has to stop, if any test has started it.
var running atomic.Pointer[shared]

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	code := m.Run()
	if s := running.Load(); s != nil {
		if code != 0 {
			s.Keep()
			fmt.Fprintln(os.Stderr, "the bed's logs are kept in", s.LogDir())
		}
		if err := s.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the bed:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// world is what a test has for itself: a namespace.
type world struct {
	*shared
	t         *testing.T
	namespace string
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// newWorld makes a namespace in the bed that the tests of this package share.
func newWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	s, err := start()
	if err != nil {
		t.Fatalf("starting the bed: %v", err)
	}
	t.Parallel()
	return s.newWorld(t)
}

func (s *shared) newWorld(t *testing.T) *world {
	t.Helper()
	name := strings.ToLower(strings.TrimPrefix(t.Name(), "Test"))
	w := &world{shared: s, t: t, namespace: strings.Trim(notInNames.ReplaceAllString(name, "-"), "-")}
	if err := s.CreateNamespace(t.Context(), w.namespace); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	o.SetNamespace(w.namespace)
	if err := w.Client.Create(w.t.Context(), o); err != nil {
		w.t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	}
}

func (w *world) read(name string, o client.Object) {
	w.t.Helper()
	if err := w.Client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, o); err != nil {
		w.t.Fatalf("reading %T %s: %v", o, name, err)
	}
}

// eventually waits until a condition holds. The condition says what it has seen.
func (w *world) eventually(what string, condition func() (bool, string)) {
	w.t.Helper()
	var seen string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pollEvery) {
		var ok bool
		if ok, seen = condition(); ok {
			return
		}
		if err := w.Err(); err != nil {
			w.t.Fatalf("waiting for %s: %v", what, err)
		}
	}
	w.t.Fatalf("waiting for %s: %s", what, seen)
}
