package telemetry

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/secrets"
)

// timeToVerdict is long enough for the evidence of a target's first windows.
const timeToVerdict = 3 * time.Minute

// vault is a fake of the Secrets.
type vault struct {
	mu   sync.Mutex
	data map[types.NamespacedName]map[string][]byte
	held map[types.NamespacedName]int
	err  error
}

// newVault has one Secret, namespace/name, with the given keys and values.
func newVault(name string, pairs ...string) *vault {
	v := &vault{data: map[types.NamespacedName]map[string][]byte{}, held: map[types.NamespacedName]int{}}
	v.put(name, pairs...)
	return v
}

func (v *vault) put(name string, pairs ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	data := map[string][]byte{}
	for i := 0; i+1 < len(pairs); i += 2 {
		data[pairs[i]] = []byte(pairs[i+1])
	}
	namespace, name, _ := strings.Cut(name, "/")
	v.data[types.NamespacedName{Namespace: namespace, Name: name}] = data
}

func (v *vault) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
}

func (v *vault) Hold(name types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.held[name]++
}

func (v *vault) Release(name types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.held[name]--; v.held[name] == 0 {
		delete(v.held, name)
	}
}

func (v *vault) Read(_ context.Context, name types.NamespacedName) (map[string][]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	data, ok := v.data[name]
	switch {
	case v.err != nil:
		return nil, v.err
	case v.held[name] <= 0:
		return nil, secrets.ErrUnavailable
	case !ok:
		return nil, secrets.ErrNotFound
	}
	return maps.Clone(data), nil
}

// holders is how often each Secret is held.
func (v *vault) holders() map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := map[string]int{}
	for name, count := range v.held {
		n[name.String()] = count
	}
	return n
}

func ref(name, key string) *v1alpha1.SecretKeyReference {
	return &v1alpha1.SecretKeyReference{Name: name, Key: key}
}

func withPrometheus(p v1alpha1.Prometheus) func(*Target) {
	return func(t *Target) { t.Health.Prometheus = p.DeepCopy() }
}

func inNamespace(namespace string) func(*Target) {
	return func(t *Target) { t.Key.Namespace = namespace }
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// demanding answers only requests that the check passes, and 401 otherwise. The body
// of a refusal repeats what it was sent.
func demanding(check func(*http.Request) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !check(r) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(w, "not with %v", r.Header)
			return
		}
		traffic(120, 0)(w, r)
	}
}

func bearer(token string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+token }
}

func TestCredentialsAreSent(t *testing.T) {
	basic := func(r *http.Request) bool {
		user, password, ok := r.BasicAuth()
		return ok && user == "reader" && password == "s3cr3t: ü"
	}
	tests := map[string]struct {
		spec  v1alpha1.Prometheus
		check func(*http.Request) bool
	}{
		"bearer token":      {v1alpha1.Prometheus{BearerToken: ref("metrics", "token")}, bearer("s3cr3t")},
		"trailing newlines": {v1alpha1.Prometheus{BearerToken: ref("metrics", "with-newline")}, bearer("s3cr3t")},
		"basic auth":        {v1alpha1.Prometheus{BasicAuth: &v1alpha1.BasicAuth{Username: *ref("metrics", "user"), Password: *ref("metrics", "password")}}, basic},
		"headers": {
			v1alpha1.Prometheus{Headers: []v1alpha1.Header{{Name: "X-Scope-OrgID", Value: "shop"}, {Name: "X-Api-Key", ValueFrom: ref("metrics", "token")}}},
			func(r *http.Request) bool {
				return r.Header.Get("X-Scope-OrgID") == "shop" && r.Header.Get("X-Api-Key") == "s3cr3t" && r.Header.Get("Authorization") == ""
			},
		},
		"token and header": {
			v1alpha1.Prometheus{BearerToken: ref("metrics", "token"), Headers: []v1alpha1.Header{{Name: "X-Scope-OrgID", Value: "shop"}}},
			func(r *http.Request) bool { return bearer("s3cr3t")(r) && r.Header.Get("X-Scope-OrgID") == "shop" },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newMetricsServer(t, demanding(tc.check))
			v := newVault("shop/metrics", "token", "s3cr3t", "with-newline", "s3cr3t\r\n", "user", "reader\n", "password", "s3cr3t: ü\n")
			f := newFixture(t, s.URL, func(c *Config) { c.Secrets = v })
			f.Track(target("web", withPrometheus(tc.spec)))
			f.step(timeToVerdict)
			if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictHealthy {
				t.Errorf("%+v", v)
			}
			f.Forget(key("web"))
			if diff := cmp.Diff(map[string]int{}, v.holders()); diff != "" {
				t.Errorf("Secrets that are still held: %s", diff)
			}
		})
	}
}

// TestC39bUnusableSecrets: what cannot be used is named, nothing is sent meanwhile,
// and all is well within an interval of its being put right.
func TestC39bUnusableSecrets(t *testing.T) {
	token := v1alpha1.Prometheus{BearerToken: ref("metrics", "token")}
	user := v1alpha1.Prometheus{BasicAuth: &v1alpha1.BasicAuth{Username: *ref("metrics", "user"), Password: *ref("metrics", "token")}}
	header := v1alpha1.Prometheus{Headers: []v1alpha1.Header{{Name: "X-Key", ValueFrom: ref("metrics", "token")}}}
	tests := map[string]struct {
		spec    v1alpha1.Prometheus
		secret  []string // of the Secret metrics; nil: there is none
		err     error
		message string
	}{
		"no Secret":         {token, nil, nil, `Secret "metrics" does not exist in namespace "shop"`},
		"no key":            {token, []string{"tokn", "s3cr3t"}, nil, `Secret "metrics" has no key "token"`},
		"no right":          {token, nil, secrets.ErrForbidden, `may not read Secret "metrics" in namespace "shop": bind ClusterRole weightedrollout-metrics-secrets in the namespace`},
		"no API server":     {token, nil, secrets.ErrUnavailable, `Secret "metrics" in namespace "shop" could not be read`},
		"empty":             {token, []string{"token", ""}, nil, `key "token" of Secret "metrics" is empty`},
		"only a newline":    {token, []string{"token", "\n"}, nil, `key "token" of Secret "metrics" is empty`},
		"line break inside": {token, []string{"token", "s3cr3t\nHost: x"}, nil, `key "token" of Secret "metrics" has a line break`},
		"blank inside":      {token, []string{"token", "Bearer s3cr3t"}, nil, `key "token" of Secret "metrics" has a blank`},
		"colon in user":     {user, []string{"user", "s3cr3t:x", "token", "s3cr3t"}, nil, `key "user" of Secret "metrics" has a colon`},
		"empty password":    {user, []string{"user", "s3cr3t", "token", ""}, nil, `key "token" of Secret "metrics" is empty`},
		"header":            {header, []string{"token", "s3cr3t\r\nHost: x"}, nil, `key "token" of Secret "metrics" has a line break`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newMetricsServer(t, traffic(120, 0))
			v := newVault("other/metrics", "token", "another", "user", "another")
			if tc.secret != nil {
				v.put("shop/metrics", tc.secret...)
			}
			v.fail(tc.err)
			f := newFixture(t, s.URL, func(c *Config) { c.Secrets = v })
			f.Track(target("web", withPrometheus(tc.spec)))
			f.step(timeToVerdict)
			got := f.Verdict(key("web"))
			if got.State != v1alpha1.VerdictUnknown || got.Reason != v1alpha1.ReasonProviderAuth || !strings.Contains(got.Message, tc.message) || got.RampReady {
				t.Errorf("%+v", got)
			}
			if n := len(s.take()); n != 0 {
				t.Errorf("%d queries were sent", n)
			}
			f.leaksNothing("s3cr3t")
			v.fail(nil)
			v.put("shop/metrics", "token", "s3cr3t", "user", "reader")
			f.step(15 * time.Second)
			if got := f.Verdict(key("web")); got.State != v1alpha1.VerdictHealthy {
				t.Errorf("it does not recover: %+v", got)
			}
		})
	}
}

// TestC39cRotation: the next query has the new token.
func TestC39cRotation(t *testing.T) {
	s := newMetricsServer(t, demanding(bearer("first")))
	v := newVault("shop/metrics", "token", "first")
	f := newFixture(t, s.URL, func(c *Config) { c.Secrets = v })
	f.Track(target("web", withPrometheus(v1alpha1.Prometheus{BearerToken: ref("metrics", "token")})))
	f.step(timeToVerdict)
	if got := f.Verdict(key("web")); got.State != v1alpha1.VerdictHealthy {
		t.Fatalf("%+v", got)
	}
	s.answer(demanding(bearer("second")))
	f.step(15 * time.Second)
	if got := f.Verdict(key("web")); got.Reason != v1alpha1.ReasonProviderAuth || !strings.Contains(got.Message, "refused the credentials (HTTP 401 or 403)") {
		t.Errorf("%+v", got)
	}
	v.put("shop/metrics", "token", "second")
	f.step(15 * time.Second)
	if got := f.Verdict(key("web")); got.State != v1alpha1.VerdictHealthy {
		t.Errorf("%+v", got)
	}
	f.leaksNothing("first")
	f.leaksNothing("second")
}

func TestWhoSharesAServer(t *testing.T) {
	token := v1alpha1.Prometheus{BearerToken: ref("metrics", "token")}
	header := func(names ...string) v1alpha1.Prometheus {
		var p v1alpha1.Prometheus
		for _, name := range names {
			p.Headers = append(p.Headers, v1alpha1.Header{Name: name, Value: "shop"})
		}
		return p
	}
	tests := map[string]struct {
		a, b     []func(*Target)
		requests int
	}{
		"no credentials, two namespaces": {nil, []func(*Target){inNamespace("other")}, 1},
		"same reference, one namespace":  {[]func(*Target){withPrometheus(token)}, []func(*Target){withPrometheus(token)}, 1},
		"same name, two namespaces":      {[]func(*Target){withPrometheus(token)}, []func(*Target){withPrometheus(token), inNamespace("other")}, 2},
		"with and without":               {[]func(*Target){withPrometheus(token)}, nil, 2},
		"another key":                    {[]func(*Target){withPrometheus(token)}, []func(*Target){withPrometheus(v1alpha1.Prometheus{BearerToken: ref("metrics", "second")})}, 2},
		"literal header, two namespaces": {[]func(*Target){withPrometheus(header("X-Org"))}, []func(*Target){withPrometheus(header("X-Org")), inNamespace("other")}, 1},
		"headers in another order":       {[]func(*Target){withPrometheus(header("X-A", "X-B"))}, []func(*Target){withPrometheus(header("X-B", "X-A"))}, 1},
		"another header":                 {[]func(*Target){withPrometheus(header("X-A"))}, []func(*Target){withPrometheus(header("X-B"))}, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newMetricsServer(t, traffic(120, 0))
			v := newVault("shop/metrics", "token", "s3cr3t", "second", "another")
			v.put("other/metrics", "token", "s3cr3t")
			f := newFixture(t, s.URL, func(c *Config) { c.Secrets = v })
			a, b := target("a", tc.a...), target("b", tc.b...)
			f.Track(a)
			f.Track(b)
			f.step(timeToVerdict)
			if n := len(s.take()); n != tc.requests || len(f.servers) != tc.requests {
				t.Errorf("%d requests to %d servers, want %d", n, len(f.servers), tc.requests)
			}
			f.Forget(a.Key)
			f.Forget(b.Key)
			if len(f.servers) != 0 || len(v.holders()) != 0 {
				t.Errorf("left behind: %d servers, %v", len(f.servers), v.holders())
			}
		})
	}
}

// TestTheControllersOwnCredentials: they go to its own server only, and only for
// rollouts that name nothing themselves.
func TestTheControllersOwnCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	writeFile(t, file, "s3cr3t\n")
	var mu sync.Mutex
	sent := map[string]string{}
	s := newMetricsServer(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		for _, name := range []string{"plain", "address", "header", "token"} {
			if strings.Contains(r.Form.Get("query"), name+"-canary") {
				sent[name] = r.Header.Get("Authorization")
			}
		}
		traffic(120, 0)(w, r)
	})
	f := newFixture(t, s.URL, func(c *Config) {
		c.BearerTokenFile, c.Secrets = file, newVault("shop/metrics", "token", "tenant")
	})
	f.Track(target("plain"))
	f.Track(target("address", withPrometheus(v1alpha1.Prometheus{Address: s.URL})))
	f.Track(target("header", withPrometheus(v1alpha1.Prometheus{Headers: []v1alpha1.Header{{Name: "X-Org", Value: "other"}}})))
	f.Track(target("token", withPrometheus(v1alpha1.Prometheus{BearerToken: ref("metrics", "token")})))
	f.step(timeToVerdict)
	want := map[string]string{"plain": "Bearer s3cr3t", "address": "", "header": "", "token": "Bearer tenant"}
	compare := func() {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(want, sent); diff != "" {
			t.Error(diff)
		}
	}
	compare()
	writeFile(t, file, "rotated")
	f.step(15 * time.Second)
	want["plain"] = "Bearer rotated"
	compare()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.take()
	f.step(15 * time.Second)
	v := f.Verdict(key("plain"))
	if v.Reason != v1alpha1.ReasonProviderAuth || !strings.Contains(v.Message, "--prometheus-bearer-token-file cannot be read") || strings.Contains(v.Message, file) {
		t.Errorf("without the file: %+v", v)
	}
}

// TestPathPrefixAndTenant: a server that keeps tenants apart, below a path.
func TestPathPrefixAndTenant(t *testing.T) {
	for _, address := range []string{"/prometheus", "/prometheus/"} {
		s := newMetricsServer(t, func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/prometheus/api/v1/query") || r.Header.Get("X-Scope-OrgID") != "shop|eu" {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			traffic(120, 0)(w, r)
		})
		f := newFixture(t, "")
		f.Track(target("web", withPrometheus(v1alpha1.Prometheus{Address: s.URL + address, Headers: []v1alpha1.Header{{Name: "X-Scope-OrgID", Value: "shop|eu"}}})))
		f.step(timeToVerdict)
		if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictHealthy {
			t.Errorf("%s: %+v", address, v)
		}
	}
}

func TestPostThatIsRefused(t *testing.T) {
	var mu sync.Mutex
	var methods []string
	takes := http.MethodGet
	s := newSecureServer(t, nil, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		methods = append(methods, r.Method)
		if r.Method != takes {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		traffic(120, 0)(w, r)
	})
	f := newFixture(t, s.URL)
	f.Track(target("web"))
	f.step(timeToVerdict)
	f.step(15 * time.Second)
	if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictHealthy {
		t.Errorf("%+v", v)
	}
	mu.Lock()
	takes = http.MethodPost
	mu.Unlock()
	f.step(15 * time.Second)
	f.step(15 * time.Second)
	if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictHealthy {
		t.Errorf("it does not go back to POST: %+v", v)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"POST", "GET", "GET", "GET", "POST"}, methods); diff != "" {
		t.Error(diff)
	}
}

func TestSettingsThatCannotBeCarriedOut(t *testing.T) {
	tests := map[string]struct {
		spec    v1alpha1.Prometheus
		message string
	}{
		"TLS over http":      {v1alpha1.Prometheus{TLS: &v1alpha1.TLS{CA: ref("metrics", "ca")}}, "health.prometheus.tls is of no use with an http address"},
		"one header twice":   {v1alpha1.Prometheus{Headers: []v1alpha1.Header{{Name: "X-Org", Value: "a"}, {Name: "x-org", Value: "b"}}}, `has "x-org" twice`},
		"half a certificate": {v1alpha1.Prometheus{Address: "https://prom.test", TLS: &v1alpha1.TLS{Certificate: ref("metrics", "crt")}}, "only one of certificate and key"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "http://prom.test")
			web := target("web", withPrometheus(tc.spec))
			f.Track(web)
			p, v := f.Problem(web.Health), f.Verdict(web.Key)
			if p == nil || p.Reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(p.Message, tc.message) || v.Message != p.Message {
				t.Errorf("%+v, %+v", p, v)
			}
		})
	}
}

// TestC41NothingLeaks: whatever goes wrong, what is secret is in no message and in no
// log, even at the highest verbosity.
func TestC41NothingLeaks(t *testing.T) {
	refused := newMetricsServer(t, traffic(120, 0))
	refused.Close()
	echo := newMetricsServer(t, demanding(bearer("something else")))
	broken := newMetricsServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"status":"error","errorType":%q,"error":%q}`, r.Header.Get("Authorization"), r.Header.Get("X-Key"))
	})
	all := v1alpha1.Prometheus{BearerToken: ref("metrics", "token"), Headers: []v1alpha1.Header{{Name: "X-Key", ValueFrom: ref("metrics", "token")}}}
	password := strings.Replace(refused.URL, "http://", "http://user:s3cr3t@", 1)
	tests := map[string]struct {
		address string
		reason  string
	}{
		"password in the address":  {password, v1alpha1.ReasonNoMetricsAddress},
		"token in the address":     {echo.URL + "/?token=s3cr3t", v1alpha1.ReasonNoMetricsAddress},
		"fragment in the address":  {echo.URL + "/#s3cr3t", v1alpha1.ReasonNoMetricsAddress},
		"refused connection":       {refused.URL, v1alpha1.ReasonProviderError},
		"401 that echoes":          {echo.URL, v1alpha1.ReasonProviderAuth},
		"error reply that echoes":  {broken.URL, v1alpha1.ReasonProviderError},
		"name that is not there":   {"http://metrics.invalid", v1alpha1.ReasonProviderError},
		"certificate not expected": {strings.Replace(echo.URL, "http://", "https://", 1), v1alpha1.ReasonProviderError},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := all
			spec.Address = tc.address
			f := newFixture(t, "", func(c *Config) { c.Secrets = newVault("shop/metrics", "token", "s3cr3t") })
			web := target("web", withPrometheus(spec), func(t *Target) {
				limit := v1alpha1.Decimal("1")
				t.Health.Checks = []v1alpha1.Check{{Name: "own", Query: `up{key="s3cr3t"}`, Max: &limit}}
			})
			f.Track(web)
			f.step(timeToVerdict)
			v := f.Verdict(web.Key)
			if v.State != v1alpha1.VerdictUnknown || v.Reason != tc.reason {
				t.Errorf("%+v", v)
			}
			if p := f.Problem(web.Health); p != nil && strings.Contains(p.Message, "s3cr3t") {
				t.Errorf("%+v", p)
			}
			f.leaksNothing("s3cr3t")
		})
	}
}
