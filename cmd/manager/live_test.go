package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

// nobodyPasses is a guard that turns everybody away.
func nobodyPasses(*rest.Config, *http.Client) (metricsserver.Filter, error) {
	return func(logr.Logger, http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusUnauthorized) }), nil
	}, nil
}

// TestOnlyAUIDGoesRoundTheGuard: nothing but a request for evidence with a uid and
// without a token comes to a handler that nobody was authenticated for.
func TestOnlyAUIDGoesRoundTheGuard(t *testing.T) {
	filter, err := unlessByUID(nobodyPasses)(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTeapot) }))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		path    string
		headers map[string]string
		want    int
	}{
		"a uid":                 {"/evidence/shop/checkout", map[string]string{live.UIDHeader: "u"}, http.StatusTeapot},
		"no uid":                {"/evidence/shop/checkout", nil, http.StatusUnauthorized},
		"an empty uid":          {"/evidence/shop/checkout", map[string]string{live.UIDHeader: ""}, http.StatusUnauthorized},
		"a uid and a token":     {"/evidence/shop/checkout", map[string]string{live.UIDHeader: "u", "Authorization": "Bearer t"}, http.StatusUnauthorized},
		"a uid and no real one": {"/evidence/shop/checkout", map[string]string{live.UIDHeader: "u", "Authorization": ""}, http.StatusUnauthorized},
		"the metrics":           {"/metrics", map[string]string{live.UIDHeader: "u"}, http.StatusUnauthorized},
		"a path like it":        {"/evidences", map[string]string{live.UIDHeader: "u"}, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, test.path, nil)
			for k, v := range test.headers {
				r.Header.Set(k, v)
			}
			rec := httptest.NewRecorder()
			handler.ServeHTTP(rec, r)
			if rec.Code != test.want {
				t.Errorf("the answer is %d, want %d", rec.Code, test.want)
			}
		})
	}
}

// TestAGuardThatCannotBeMade: without a guard nothing is served.
func TestAGuardThatCannotBeMade(t *testing.T) {
	broken := errors.New("broken")
	if _, err := unlessByUID(func(*rest.Config, *http.Client) (metricsserver.Filter, error) { return nil, broken })(nil, nil); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	filter, err := unlessByUID(func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
		return func(logr.Logger, http.Handler) (http.Handler, error) { return nil, broken }, nil
	})(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if handler, err := filter(logr.Discard(), http.NotFoundHandler()); handler != nil || !errors.Is(err, broken) {
		t.Errorf("the handler is %v, the error %v", handler, err)
	}
}

func TestCachedUID(t *testing.T) {
	wr := &v1alpha1.WeightedRollout{}
	wr.Namespace, wr.Name, wr.UID = "shop", "checkout", "its-uid"
	lookup := cachedUID(fake.NewClientBuilder().WithScheme(managerOptions(options{}).Scheme).WithObjects(wr).Build())
	if uid, err := lookup(t.Context(), types.NamespacedName{Namespace: "shop", Name: "checkout"}); err != nil || uid != "its-uid" {
		t.Errorf("the uid is %q, %v", uid, err)
	}
	if uid, err := lookup(t.Context(), types.NamespacedName{Namespace: "shop", Name: "other"}); err == nil || uid != "" {
		t.Errorf("of what there is none, the uid is %q", uid)
	}
}
