package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	wholejson "k8s.io/apimachinery/pkg/util/json" // whole numbers stay whole
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

const (
	rolloutsPath = "/apis/weightedrollout.dev/v1alpha1/namespaces/shop/weightedrollouts"
	rolloutPath  = rolloutsPath + "/checkout"
	routesPath   = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes"
	eventsPath   = "/apis/events.k8s.io/v1/namespaces/shop/events"
	proxyPath    = "/api/v1/namespaces/weightedrollout-system/services/https:weightedrollout-metrics:https/proxy/evidence/shop/checkout"
)

// apiServer answers as an API server with a few objects does.
type apiServer struct {
	mu      sync.Mutex
	objects map[string]any // by path
	changed chan struct{}  // closed with each change
	patches []string       // those that were taken

	// proxy plays the controller behind the API server's proxy.
	proxy http.HandlerFunc
	// before is called before a patch is looked at, and after once it is in force: they
	// play somebody else, and the controller.
	before, after func(wr map[string]any)
	// refuses is the answer to every patch.
	refuses *metav1.Status
	// onWatch is called once a watch has begun.
	onWatch func()
	// tellsEvents lets the events be watched: there is never a new one.
	tellsEvents bool
}

// object reads a manifest.
func object(t *testing.T, manifest string) map[string]any {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := wholejson.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// inCluster starts an API server with the objects, and names it in KUBECONFIG.
func inCluster(t *testing.T, objects map[string]any) *apiServer {
	t.Helper()
	a := &apiServer{objects: objects, changed: make(chan struct{})}
	server := httptest.NewServer(a)
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"fake": {Server: server.URL}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"me": {}},
		Contexts:       map[string]*clientcmdapi.Context{"fake": {Cluster: "fake", AuthInfo: "me", Namespace: "shop"}, "other": {Cluster: "fake", AuthInfo: "me"}},
		CurrentContext: "fake",
	}
	if err := clientcmd.WriteToFile(config, file); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	return a
}

func (a *apiServer) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	switch {
	case strings.Contains(r.URL.Path, "/proxy/"):
		if a.proxy == nil {
			say(rw, failure(http.StatusServiceUnavailable, "ServiceUnavailable", `no endpoints available for service "weightedrollout-metrics"`))
			return
		}
		a.proxy(rw, r)
	case r.Method == http.MethodPatch:
		a.patch(rw, r)
	case r.URL.Query().Get("watch") != "":
		a.watch(rw, r)
	default:
		a.get(rw, r)
	}
}

// failure is what the API server answers instead of an object.
func failure(code int32, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Code: code, Message: message}
}

func say(rw http.ResponseWriter, status metav1.Status) {
	rw.WriteHeader(int(status.Code))
	_ = json.NewEncoder(rw).Encode(status)
}

func (a *apiServer) get(rw http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	object, found := a.objects[r.URL.Path]
	if status, refuses := object.(metav1.Status); refuses {
		say(rw, status)
		return
	}
	if !found {
		parts := strings.Split(r.URL.Path, "/")
		if strings.HasSuffix(r.URL.Path, "/weightedrollouts") {
			_ = json.NewEncoder(rw).Encode(map[string]any{"kind": "WeightedRolloutList", "items": a.rollouts(r.URL.Path)})
			return
		}
		if parts[2] == "nothing.dev" || len(parts) < 8 {
			http.NotFound(rw, r)
			return
		}
		status := failure(http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
		status.Details = &metav1.StatusDetails{Name: parts[7], Group: "weightedrollout.dev", Kind: "weightedrollouts"}
		say(rw, status)
		return
	}
	_ = json.NewEncoder(rw).Encode(object)
}

// rollouts are the objects of a collection.
func (a *apiServer) rollouts(path string) []any {
	items := []any{}
	for at, o := range a.objects {
		everywhere := !strings.Contains(path, "/namespaces/") && strings.Contains(at, "/weightedrollouts/")
		if _, isObject := o.(map[string]any); isObject && (everywhere || strings.HasPrefix(at, path+"/")) {
			items = append(items, o)
		}
	}
	return items
}

// patch merges, unless the object has changed since.
func (a *apiServer) patch(rw http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	wr, _ := a.objects[r.URL.Path].(map[string]any)
	if a.before != nil {
		a.before(wr)
		touch(wr)
	}
	var patch unstructured.Unstructured
	err := json.Unmarshal(body, &patch.Object)
	switch {
	case a.refuses != nil:
		say(rw, *a.refuses)
		return
	case err != nil || r.Header.Get("Content-Type") != "application/merge-patch+json":
		say(rw, failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, "no merge patch"))
		return
	case patch.GetResourceVersion() != (&unstructured.Unstructured{Object: wr}).GetResourceVersion():
		say(rw, failure(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified"))
		return
	}
	text, _ := json.Marshal(wr)
	merged, err := jsonpatch.MergePatch(text, body)
	if err != nil {
		say(rw, failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error()))
		return
	}
	clear(wr)
	_ = wholejson.Unmarshal(merged, &wr)
	o := &unstructured.Unstructured{Object: wr}
	if patch.Object["spec"] != nil {
		o.SetGeneration(o.GetGeneration() + 1)
	}
	touch(wr)
	a.patches = append(a.patches, string(body))
	_, _ = rw.Write(merged)
	if a.after != nil {
		a.after(wr)
		touch(wr)
	}
	close(a.changed)
	a.changed = make(chan struct{})
}

// touch gives an object another resourceVersion.
func touch(wr map[string]any) {
	o := &unstructured.Unstructured{Object: wr}
	version, _ := strconv.Atoi(o.GetResourceVersion())
	o.SetResourceVersion(strconv.Itoa(version + 1))
}

// change changes the rollout, as a controller does.
func (a *apiServer) change(by func(wr map[string]any)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	wr, _ := a.objects[rolloutPath].(map[string]any)
	by(wr)
	touch(wr)
	close(a.changed)
	a.changed = make(chan struct{})
}

// reset puts other objects in place of all.
func (a *apiServer) reset(objects map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects = objects
}

// remove deletes the rollout.
func (a *apiServer) remove() {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.objects, rolloutPath)
	close(a.changed)
	a.changed = make(chan struct{})
}

// watch tells of each change of the rollout.
func (a *apiServer) watch(rw http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	changed := a.changed
	_, collection := a.objects[r.URL.Path].(metav1.Status)
	a.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/events") && a.tellsEvents {
		rw.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done()
		return
	}
	if collection || !strings.HasSuffix(r.URL.Path, "/weightedrollouts") {
		say(rw, failure(http.StatusForbidden, metav1.StatusReasonForbidden, "you may not watch"))
		return
	}
	rw.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(rw).Flush()
	if a.onWatch != nil {
		a.onWatch()
	}
	for last := any(nil); ; {
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
		a.mu.Lock()
		changed = a.changed
		next := map[string]any{"type": "MODIFIED", "object": a.objects[rolloutPath]}
		if _, there := a.objects[rolloutPath]; !there {
			next = map[string]any{"type": "DELETED", "object": last}
		}
		last = next["object"]
		err := json.NewEncoder(rw).Encode(next)
		a.mu.Unlock()
		if err != nil || http.NewResponseController(rw).Flush() != nil {
			return
		}
	}
}

// taken are the patches that were taken, with what differs each time taken out.
func (a *apiServer) taken() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string{}, a.patches...)
}

// set sets a field below the status.
func set(wr map[string]any, value any, path ...string) {
	_ = unstructured.SetNestedField(wr, value, path...)
}
