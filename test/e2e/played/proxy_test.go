package played

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// request is one request of the manager to the API server.
type request struct {
	Number int
	At     time.Time
	Method string
	Path   string
	Query  url.Values
	Body   []byte

	Resource, Namespace, Name, Subresource string

	// Code of the answer; 0 if the manager has had none.
	Code int
	// Answered is when the answer came from the API server.
	Answered time.Time
}

func (r *request) isWatch() bool {
	return r.Query.Get("watch") != "" && r.Query.Get("watch") != "false"
}
func (r *request) isWrite() bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// isRouteWrite and the others tell what a write is about. Events are none of them.
func (r *request) isRouteWrite() bool  { return r.isWrite() && r.Resource == "httproutes" }
func (r *request) isStatusWrite() bool { return r.isRolloutWrite() && r.Subresource == "status" }
func (r *request) isRolloutWrite() bool {
	return r.isWrite() && r.Resource == "weightedrollouts"
}
func (r *request) isOurWrite() bool { return r.isRouteWrite() || r.isRolloutWrite() }
func (r *request) accepted() bool   { return r.Code/100 == 2 }

func (r *request) String() string {
	body := string(r.Body)
	if len(body) > 1500 {
		body = body[:1500] + "…"
	}
	return fmt.Sprintf("%3d %s %s %s -> %d %s", r.Number, r.At.Format("15:04:05.000"), r.Method, r.Path, r.Code, body)
}

// verdict says what becomes of a request before it is forwarded.
type verdict struct {
	drop   bool // no answer: the connection breaks
	refuse int  // this HTTP status, without asking the API server
}

// apiProxy stands between the manager and the API server. It keeps a record, and
// lets a test step in before a request is forwarded and before it is answered.
type apiProxy struct {
	url    string
	server *http.Server

	mu       sync.Mutex
	requests []*request
	before   func(*request) verdict
	after    func(*request) (drop bool)
}

type requestKey struct{}

// newAPIProxy starts a proxy to the API server, as the user that config names, with
// plain HTTP towards the manager.
func newAPIProxy(t *testing.T, config *rest.Config) *apiProxy {
	t.Helper()
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatalf("reading the API server's address: %v", err)
	}
	// The transport adds the manager's token: client-go sends none over plain HTTP.
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatalf("making a transport to the API server: %v", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening for the manager: %v", err)
	}
	p := &apiProxy{url: "http://" + listener.Addr().String()}
	reverse := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		FlushInterval:  -1,
		ModifyResponse: p.answered,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = &http.Server{Handler: p.record(reverse), ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(listener) }()
	t.Cleanup(func() { _ = p.server.Close() })
	return p
}

// writeKubeconfig writes a kubeconfig with which the manager reaches the proxy.
func (p *apiProxy) writeKubeconfig(t *testing.T) string {
	t.Helper()
	const name = "proxy"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: p.url}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name}},
		CurrentContext: name,
	}, path)
	if err != nil {
		t.Fatalf("writing a kubeconfig: %v", err)
	}
	return path
}

func (p *apiProxy) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, hr *http.Request) {
		body, err := io.ReadAll(hr.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		hr.Body = io.NopCloser(bytes.NewReader(body))
		r := &request{At: time.Now(), Method: hr.Method, Path: hr.URL.Path, Query: hr.URL.Query(), Body: body}
		r.locate()
		p.mu.Lock()
		r.Number = len(p.requests)
		p.requests = append(p.requests, r)
		before := p.before
		p.mu.Unlock()
		var v verdict
		if before != nil {
			v = before(r)
		}
		switch {
		case v.drop:
			panic(http.ErrAbortHandler)
		case v.refuse != 0:
			p.refuse(rw, r, v.refuse)
		default:
			next.ServeHTTP(rw, hr.WithContext(contextWith(hr, r)))
		}
	})
}

// answered notes the API server's answer, before the manager has it.
func (p *apiProxy) answered(response *http.Response) error {
	r, ok := response.Request.Context().Value(requestKey{}).(*request)
	if !ok {
		return nil
	}
	p.mu.Lock()
	r.Code, r.Answered = response.StatusCode, time.Now()
	after := p.after
	p.mu.Unlock()
	if after != nil && after(r) {
		_ = response.Body.Close()
		return fmt.Errorf("request %d is left without an answer", r.Number)
	}
	return nil
}

func (p *apiProxy) refuse(rw http.ResponseWriter, r *request, code int) {
	p.mu.Lock()
	r.Code, r.Answered = code, time.Now()
	p.mu.Unlock()
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reasons[code], Message: refusal,
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(code)
	_ = json.NewEncoder(rw).Encode(status)
}

// refusal is the message of every answer that the proxy gives by itself.
const refusal = "refused by the test"

var reasons = map[int]metav1.StatusReason{
	http.StatusConflict: metav1.StatusReasonConflict, http.StatusForbidden: metav1.StatusReasonForbidden,
	http.StatusUnprocessableEntity: metav1.StatusReasonInvalid, http.StatusGatewayTimeout: metav1.StatusReasonTimeout,
}

// locate reads what the path is about: /api/v1/… or /apis/GROUP/VERSION/…, then
// namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE.
func (r *request) locate() {
	parts := strings.Split(strings.Trim(r.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		r.Namespace, parts = parts[1], parts[2:]
	}
	for i, into := range []*string{&r.Resource, &r.Name, &r.Subresource} {
		if i < len(parts) {
			*into = parts[i]
		}
	}
}

// onRequest sets what happens before a request is forwarded; nil ends it.
func (p *apiProxy) onRequest(f func(*request) verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = f
}

// onAnswer sets what happens after the API server has answered and before the
// manager has the answer; nil ends it.
func (p *apiProxy) onAnswer(f func(*request) (drop bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = f
}

// count is the number of requests so far.
func (p *apiProxy) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.requests)
}

// since returns copies of the requests from the given number on that match.
func (p *apiProxy) since(number int, match func(*request) bool) []*request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []*request
	for _, r := range p.requests[number:] {
		if match == nil || match(r) {
			c := *r
			found = append(found, &c)
		}
	}
	return found
}

// inOrder returns the accepted writes for rollouts and routes in the order in
// which the API server answered them.
func (p *apiProxy) inOrder() []*request {
	writes := p.since(0, func(r *request) bool { return r.isOurWrite() && r.accepted() })
	slices.SortStableFunc(writes, func(a, b *request) int { return a.Answered.Compare(b.Answered) })
	return writes
}
