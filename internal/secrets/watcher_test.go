package secrets

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
)

var (
	token     = types.NamespacedName{Namespace: "shop", Name: "token"}
	forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "token", errors.New("no right"))
)

func secret(namespace, name, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string][]byte{"key": []byte(value)},
	}
}

// api is a source that tests change, and that counts the watches that were started.
type api struct {
	*fcache.FakeControllerSource
	mu      sync.Mutex
	started map[types.NamespacedName]int
}

func newWatcher(t *testing.T) (*Watcher, *api) {
	t.Helper()
	a := &api{FakeControllerSource: fcache.NewFakeControllerSource(), started: map[types.NamespacedName]int{}}
	t.Cleanup(a.Shutdown)
	return NewWatcher(t.Context(), func(name types.NamespacedName) cache.ListerWatcher {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.started[name]++
		return a.FakeControllerSource
	}), a
}

// eventually waits until the Secret is as wanted.
func eventually(t *testing.T, w *Watcher, name types.NamespacedName, want string, problem error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		data, err := w.Read(t.Context(), name)
		if string(data["key"]) == want && errors.Is(err, problem) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is %q, %v; want %q, %v", name, data["key"], err, want, problem)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func TestReadWaitsForTheFirstAnswer(t *testing.T) {
	w, a := newWatcher(t)
	a.Add(secret("shop", "token", "first"))
	// The source lists these too, as one that ignores field selectors would.
	a.Add(secret("shop", "another", "wrong"))
	a.Add(secret("other", "token", "wrong"))
	w.Hold(token)
	data, err := w.Read(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]byte{"key": []byte("first")}, data); diff != "" {
		t.Error(diff)
	}
}

func TestASecretIsFollowed(t *testing.T) {
	w, a := newWatcher(t)
	w.Hold(token)
	eventually(t, w, token, "", ErrNotFound)
	a.Add(secret("shop", "token", "first"))
	eventually(t, w, token, "first", nil)
	a.Modify(secret("shop", "token", "second"))
	a.Modify(secret("other", "token", "wrong"))
	eventually(t, w, token, "second", nil)
	a.Delete(secret("other", "token", "wrong"))
	a.Delete(secret("shop", "token", "second"))
	eventually(t, w, token, "", ErrNotFound)
	a.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "token"}})
	eventually(t, w, token, "", nil)
	if a.started[token] != 1 {
		t.Errorf("%d watches were started", a.started[token])
	}
}

func TestFailures(t *testing.T) {
	tests := map[string]struct{ cause, want error }{
		"no right":      {forbidden, ErrForbidden},
		"no API server": {errors.New("connection to s3cr3t refused"), ErrUnavailable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, a := newWatcher(t)
			a.ListError = tc.cause
			w.Hold(token)
			if _, err := w.Read(t.Context(), token); !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
}

// TestAfterFailures asks the store itself, without the pauses between attempts.
func TestAfterFailures(t *testing.T) {
	h := &held{name: token, known: make(chan struct{})}
	steps := []struct {
		what string
		do   func()
		want string
		err  error
	}{
		{"the API server is down", func() { h.failed(errors.New("down")) }, "", ErrUnavailable},
		{"the Secret is there", func() { _ = h.Replace([]any{secret("shop", "token", "first")}, "1") }, "first", nil},
		{"the API server is down again", func() { h.failed(errors.New("down")) }, "first", nil},
		{"the right is taken away", func() { h.failed(forbidden) }, "", ErrForbidden},
		{"the API server is down once more", func() { h.failed(errors.New("down")) }, "", ErrForbidden},
		{"the right is given back", func() { _ = h.Replace(nil, "2") }, "", ErrNotFound},
	}
	for _, step := range steps {
		step.do()
		if string(h.data["key"]) != step.want || !errors.Is(h.err, step.err) {
			t.Errorf("%s: %q, %v", step.what, h.data["key"], h.err)
		}
	}
}

func TestHoldersAreCounted(t *testing.T) {
	w, a := newWatcher(t)
	a.Add(secret("shop", "token", "first"))
	w.Release(token)
	if _, err := w.Read(t.Context(), token); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a Secret that nobody holds is read: %v", err)
	}
	w.Hold(token)
	w.Hold(token)
	eventually(t, w, token, "first", nil)
	w.Release(token)
	eventually(t, w, token, "first", nil)
	ended := w.held[token].ctx
	w.Release(token)
	if ended.Err() == nil || len(w.held) != 0 {
		t.Errorf("the watch goes on: %v, %d held", ended.Err(), len(w.held))
	}
	if _, err := w.Read(t.Context(), token); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a released Secret is read: %v", err)
	}
	w.Hold(token)
	eventually(t, w, token, "first", nil)
	if a.started[token] != 2 {
		t.Errorf("%d watches were started", a.started[token])
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	w := NewWatcher(t.Context(), func(types.NamespacedName) cache.ListerWatcher {
		return &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
				<-never
				return nil, ctx.Err()
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return nil, errors.New("not today")
			},
		}
	})
	w.Hold(token)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Read(ctx, token); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

// TestRequests looks at what the API server is asked: that one Secret, and no other.
func TestRequests(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Method+" "+r.URL.Path+"?"+r.URL.Query().Get("fieldSelector"))
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusForbidden)
		_, _ = rw.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
	}))
	t.Cleanup(server.Close)
	core, err := corev1client.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	w := NewWatcher(t.Context(), FromAPI(core.RESTClient()))
	w.Hold(token)
	if _, err := w.Read(t.Context(), token); !errors.Is(err, ErrForbidden) {
		t.Errorf("%v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, request := range asked {
		if want := "GET /api/v1/namespaces/shop/secrets?metadata.name=token"; request != want {
			t.Errorf("%s, want %s", request, want)
		}
	}
	if len(asked) == 0 {
		t.Error("nothing was asked")
	}
}
