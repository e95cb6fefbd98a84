// Package secrets keeps the Secrets that rollouts name up to date in memory: one
// watch for each, of that one object, for as long as somebody holds it. Nothing else
// is read, and nothing that a Secret holds is ever logged.
package secrets

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Why a Secret cannot be read. The errors are fixed texts, and name nothing.
var (
	// ErrNotFound: there is no such Secret.
	ErrNotFound = errors.New("the Secret does not exist")
	// ErrForbidden: the controller has no right to it.
	ErrForbidden = errors.New("the controller may not read the Secret")
	// ErrUnavailable: the API server has not answered, or nobody holds the Secret.
	ErrUnavailable = errors.New("the Secret could not be read")
)

// Source lists and watches one Secret.
type Source func(types.NamespacedName) cache.ListerWatcher

// FromAPI returns a source that asks the API server, with a client for core/v1.
func FromAPI(core cache.Getter) Source {
	return func(name types.NamespacedName) cache.ListerWatcher {
		only := fields.OneTermEqualSelector("metadata.name", name.Name)
		return cache.NewListWatchFromClient(core, "secrets", name.Namespace, only)
	}
}

// Watcher watches the Secrets that are held. Its methods may be called by several
// goroutines.
type Watcher struct {
	source Source
	ctx    context.Context

	mu   sync.Mutex
	held map[types.NamespacedName]*held
}

// NewWatcher returns a Watcher that holds nothing. Its watches end with the context.
func NewWatcher(ctx context.Context, source Source) *Watcher {
	// At a high verbosity client-go logs what the API server sends. Not these replies.
	ctx = klog.NewContext(ctx, logr.Discard())
	return &Watcher{source: source, ctx: ctx, held: map[types.NamespacedName]*held{}}
}

// Hold has a Secret kept up to date until it is released as often as it was held. It
// does not wait for the API server.
func (w *Watcher) Hold(name types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.held[name]
	if h == nil {
		h = &held{name: name, known: make(chan struct{})}
		h.ctx, h.stop = context.WithCancel(w.ctx)
		w.held[name] = h
		go h.watch(w.source(name))
	}
	h.holders++
}

// Release is the opposite of Hold. The last one ends the watch and forgets the Secret.
func (w *Watcher) Release(name types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.held[name]
	if h == nil {
		return
	}
	if h.holders--; h.holders <= 0 {
		h.stop()
		delete(w.held, name)
	}
}

// Read returns the present data of a Secret that is held, which must not be changed.
// Right after Hold it waits for the API server's first answer. The errors are those
// of this package.
func (w *Watcher) Read(ctx context.Context, name types.NamespacedName) (map[string][]byte, error) {
	w.mu.Lock()
	h := w.held[name]
	w.mu.Unlock()
	if h == nil {
		return nil, ErrUnavailable
	}
	select {
	case <-h.known:
	case <-h.ctx.Done():
		return nil, ErrUnavailable
	case <-ctx.Done():
		return nil, ErrUnavailable
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.data, h.err
}

// held is a Secret that somebody holds. It is the store of its own reflector.
type held struct {
	name    types.NamespacedName
	holders int // guarded by Watcher.mu
	ctx     context.Context
	stop    context.CancelFunc
	known   chan struct{} // closed once data or err is set

	mu   sync.Mutex
	data map[string][]byte
	err  error
}

// retries are the pauses after failures. A role that was bound is noticed within
// about the default interval of evaluations.
var retries = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Steps: 6, Cap: 15 * time.Second, Jitter: 0.1}

func (h *held) watch(source cache.ListerWatcher) {
	from, backoff := cache.ToListerWatcherWithContext(source), retries
	// A watch that fails is always followed by a list, and the list says why.
	heard := &cache.ListWatch{
		WatchFuncWithContext: from.WatchWithContext,
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := from.ListWithContext(ctx, options)
			if err != nil {
				h.failed(err)
			}
			return list, err
		},
	}
	cache.NewReflectorWithOptions(heard, &corev1.Secret{}, h, cache.ReflectorOptions{
		Name: "named-secret", Backoff: &backoff,
	}).RunWithContext(h.ctx)
}

// failed notes why there is no answer. What is known stays known while the API server
// cannot be reached, but not once it says that it is none of our business.
func (h *held) failed(err error) {
	h.mu.Lock()
	first := h.data == nil && h.err == nil
	h.mu.Unlock()
	switch {
	case apierrors.IsForbidden(err):
		h.set(nil, ErrForbidden)
	case first:
		h.set(nil, ErrUnavailable)
	}
}

func (h *held) set(data map[string][]byte, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.data == nil && h.err == nil {
		close(h.known)
	}
	h.data, h.err = data, err
}

// put takes a Secret over, if it is the one that is held.
func (h *held) put(o any) bool {
	s, ok := o.(*corev1.Secret)
	if !ok || s.Namespace != h.name.Namespace || s.Name != h.name.Name {
		return false
	}
	data := s.Data
	if data == nil {
		data = map[string][]byte{}
	}
	h.set(data, nil)
	return true
}

// Add takes over a Secret that has appeared.
func (h *held) Add(o any) error {
	h.put(o)
	return nil
}

// Update takes over a Secret that has changed.
func (h *held) Update(o any) error {
	h.put(o)
	return nil
}

// Delete forgets a Secret that has gone.
func (h *held) Delete(o any) error {
	if s, ok := o.(*corev1.Secret); ok && s.Namespace == h.name.Namespace && s.Name == h.name.Name {
		h.set(nil, ErrNotFound)
	}
	return nil
}

// Replace takes over the reply to a list: the Secret, or nothing.
func (h *held) Replace(all []any, _ string) error {
	if !slices.ContainsFunc(all, h.put) {
		h.set(nil, ErrNotFound)
	}
	return nil
}

// Resync has nothing to do.
func (h *held) Resync() error { return nil }
