package played

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/telemetry"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// lockedPrometheus is the played Prometheus behind HTTPS and a bearer token. What it
// refuses, it repeats.
type lockedPrometheus struct {
	*httptest.Server
	token   atomic.Value
	strange atomic.Int64 // requests with any other token
}

func (w *world) lockPrometheus(token string) *lockedPrometheus {
	l := &lockedPrometheus{}
	l.token.Store(token)
	l.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+l.token.Load().(string) {
			l.strange.Add(1)
			rw.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(rw, "not with %v", r.Header)
			return
		}
		w.prom.handle(rw, r)
	}))
	l.Config.ErrorLog = log.New(io.Discard, "", 0)
	l.StartTLS()
	w.t.Cleanup(l.Close)
	return l
}

func (l *lockedPrometheus) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.Certificate().Raw}))
}

// locked has a rollout ask that server with what the Secret of the given name holds.
func (l *lockedPrometheus) locked(secret string) change {
	return func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Health.Prometheus = &v1alpha1.Prometheus{
			Address:     l.URL,
			BearerToken: &v1alpha1.SecretKeyReference{Name: secret, Key: "token"},
			TLS:         &v1alpha1.TLS{CA: &v1alpha1.SecretKeyReference{Name: secret, Key: "ca.crt"}},
		}
	}
}

// putSecret creates a Secret, or gives it other content.
func (w *world) putSecret(namespace, name string, content map[string]string) {
	w.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: content}
	err := w.client.Create(w.t.Context(), s)
	if apierrors.IsAlreadyExists(err) {
		err = w.client.Update(w.t.Context(), s)
	}
	if err != nil {
		w.t.Fatalf("putting Secret %s: %v", name, err)
	}
}

// mayReadSecrets binds the role to the manager, in this test's namespace.
func (w *world) mayReadSecrets() {
	w.t.Helper()
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: telemetry.SecretsRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: telemetry.SecretsRole},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: testbed.ManagerUser}},
	})
}

// startTalkativeManager starts the manager with its log at the highest verbosity, and
// with its metrics, whose address it returns.
func (w *world) startTalkativeManager(args ...string) (metrics string) {
	w.t.Helper()
	m, err := w.bed.StartManager(context.WithoutCancel(w.t.Context()), testbed.ManagerOptions{
		Kubeconfig: w.kubeconfig, Metrics: true,
		Args: append([]string{"--namespaces=" + w.namespace, "--zap-log-level=10", "--metrics-secure=false"}, args...),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.manager = m
	return "http://" + m.MetricsAddress + "/metrics"
}

// awaitTrouble waits for a verdict that is Unknown for want of usable credentials.
func (w *world) awaitTrouble(name, message string) {
	w.t.Helper()
	w.await(name, "a verdict about "+message, func(wr *v1alpha1.WeightedRollout) bool {
		v := wr.Status.Verdict
		return v != nil && v.State == v1alpha1.VerdictUnknown && v.Reason == v1alpha1.ReasonProviderAuth && strings.Contains(v.Message, message)
	})
}

// TestC39Secrets takes a rollout from a Secret that may not be read to one that works,
// and changes it under way. TestC41: meanwhile nothing of it is seen anywhere.
func TestC39Secrets(t *testing.T) {
	w := newWorld(t)
	locked := w.lockPrometheus("first-s3cr3t")
	w.rollout("web", locked.locked("metrics"), soak(1, "10m"))
	metrics := w.startTalkativeManager()

	w.awaitTrouble("web", "bind ClusterRole "+telemetry.SecretsRole+" in the namespace")
	w.mayReadSecrets()
	w.putSecret(w.namespace, "no-key", map[string]string{"token": "first-s3cr3t"})
	w.putSecret(w.namespace, "broken", map[string]string{"token": "first-s3cr3t", "ca.crt": "-----BEGIN CERTIFICATE-----"})
	for name, message := range map[string]string{
		"missing": fmt.Sprintf("Secret \"missing\" does not exist in namespace %q", w.namespace),
		"no-key":  `Secret "no-key" has no key "ca.crt"`,
		"broken":  `key "ca.crt" of Secret "broken" is not a list of whole PEM certificates`,
	} {
		w.rollout(name, locked.locked(name), soak(1, "10m"))
		w.awaitTrouble(name, message)
	}
	if n := locked.strange.Load(); n != 0 {
		t.Errorf("%d requests were sent without the right credentials", n)
	}
	for _, name := range []string{"metrics", "missing", "no-key"} {
		w.putSecret(w.namespace, name, map[string]string{"token": "first-s3cr3t\n", "ca.crt": locked.ca()})
	}
	for _, name := range []string{"web", "missing", "no-key"} {
		w.awaitShare(name, "5")
	}

	// Rotation: the server goes first, so that the old token can be seen to fail.
	pid := w.pid()
	locked.token.Store("second-s3cr3t")
	w.awaitTrouble("web", "refused the credentials (HTTP 401 or 403)")
	w.putSecret(w.namespace, "metrics", map[string]string{"token": "second-s3cr3t", "ca.crt": locked.ca()})
	w.awaitVerdict("web", v1alpha1.VerdictHealthy, v1alpha1.ReasonChecksPassed)
	if w.pid() != pid {
		t.Error("the manager was restarted")
	}

	// From here on, waiting costs no call for the Secrets.
	before := w.api.count()
	w.awaitQuestions(held, canaryOf("web"))
	if calls := w.api.since(before, func(r *request) bool { return r.Resource == "secrets" && !r.isWatch() }); len(calls) > 0 {
		t.Errorf("a Secret that does not change is read again: %s", calls[0])
	}
	for _, r := range w.api.since(0, func(r *request) bool { return r.Resource == "secrets" }) {
		_, name, ok := strings.Cut(r.Query.Get("fieldSelector"), "metadata.name=")
		if r.Namespace != w.namespace || !ok || !slices.Contains([]string{"metrics", "missing", "no-key", "broken"}, name) || r.isWrite() {
			t.Errorf("a request for more than the one Secret: %s with %s", r, r.Query.Encode())
		}
	}
	w.wantNowhere(metrics, "first-s3cr3t", "second-s3cr3t", "BEGIN CERTIFICATE")
}

// wantNowhere looks for secrets in everything that the manager has written.
func (w *world) wantNowhere(metrics string, secrets ...string) {
	w.t.Helper()
	places := map[string]string{}
	var rollouts v1alpha1.WeightedRolloutList
	var events eventsv1.EventList
	for what, list := range map[string]client.ObjectList{"rollouts": &rollouts, "events": &events} {
		if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatalf("listing %s: %v", what, err)
		}
		text, err := yaml.Marshal(list)
		if err != nil {
			w.t.Fatal(err)
		}
		places[what] = string(text)
	}
	w.mu.Lock()
	path := w.manager.LogPath
	w.mu.Unlock()
	text, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	places["log"] = string(text)
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, metrics, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatalf("reading the manager's metrics: %v", err)
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(response.Body); err != nil {
		w.t.Fatalf("reading the manager's metrics: %v", err)
	}
	places["metrics"] = string(text)
	for what, must := range map[string]string{"rollouts": "ProviderAuth", "events": "reason:", "log": `"level":"Level(-`, "metrics": "workqueue_depth"} {
		if !strings.Contains(places[what], must) {
			w.t.Errorf("the %s do not even have %q: is this the right place to look?", what, must)
		}
	}
	for what, text := range places {
		for _, secret := range secrets {
			if i := strings.Index(text, secret); i >= 0 {
				w.t.Errorf("%q is in the %s: …%s…", secret, what, text[max(0, i-200):min(len(text), i+100)])
			}
		}
	}
}

// TestC39aAnotherNamespace: a reference cannot leave the rollout's namespace.
func TestC39aAnotherNamespace(t *testing.T) {
	w := newWorld(t)
	locked := w.lockPrometheus("their-s3cr3t")
	theirs := w.namespace + "-theirs"
	if err := w.bed.CreateNamespace(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	w.putSecret(theirs, "metrics", map[string]string{"token": "their-s3cr3t", "ca.crt": locked.ca()})
	w.mayReadSecrets()
	w.create(newRoute(w.namespace, "web", new(int32(100)), new(int32(0))))
	w.endpoints("web")

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(newRollout(w.namespace, "web", "", locked.locked("metrics")))
	if err != nil {
		t.Fatal(err)
	}
	wr := &unstructured.Unstructured{Object: content}
	wr.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("WeightedRollout"))
	if err := unstructured.SetNestedField(wr.Object, theirs, "spec", "health", "prometheus", "bearerToken", "namespace"); err != nil {
		t.Fatal(err)
	}
	err = w.client.Create(t.Context(), wr.DeepCopy(), client.FieldValidation(metav1.FieldValidationStrict))
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.health.prometheus.bearerToken.namespace"`) {
		t.Errorf("the API server takes a namespace in a reference: %v", err)
	}
	if err := w.client.Create(t.Context(), wr, client.FieldValidation(metav1.FieldValidationIgnore)); err != nil {
		t.Fatalf("creating it without strict validation: %v", err)
	}
	w.startManager()
	w.awaitTrouble("web", fmt.Sprintf("Secret \"metrics\" does not exist in namespace %q", w.namespace))
	if questions, n := w.prom.asked(0); n > 0 || locked.strange.Load() > 0 {
		t.Errorf("the server was asked: %+v", questions)
	}
	for _, r := range w.api.since(0, func(r *request) bool { return r.Resource == "secrets" && r.Namespace != w.namespace }) {
		t.Errorf("a request for another namespace's Secrets: %s", r)
	}
	if name, err := w.refused(v1alpha1.SecretKeyReference{Name: "../" + theirs + "/metrics", Key: "token"}); !apierrors.IsInvalid(err) {
		t.Errorf("the API server takes %q: %v", name, err)
	}
}

// refused tries to create a rollout with a reference.
func (w *world) refused(ref v1alpha1.SecretKeyReference) (name string, err error) {
	return ref.Name, w.client.Create(w.t.Context(), newRollout(w.namespace, "refused", "https://metrics.test", func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Health.Prometheus.BearerToken = &ref
	}), client.DryRunAll)
}

// TestC41PasswordInTheAddress: it is not admitted, and the refusal does not repeat it.
func TestC41PasswordInTheAddress(t *testing.T) {
	w := newWorld(t)
	for _, address := range []string{"http://user:s3cr3t@prom.test", "http://prom.test?token=s3cr3t", "http://prom.test/#s3cr3t"} {
		err := w.client.Create(t.Context(), newRollout(w.namespace, "web", address), client.DryRunAll)
		if !apierrors.IsInvalid(err) || strings.Contains(err.Error(), "s3cr3t") || !strings.Contains(err.Error(), "without user name, password or query") {
			t.Errorf("the API server says %v", err)
		}
	}
}

// TestAddressNotAllowed: a server that is not on the list is never asked, and the
// rollout says what to do.
func TestAddressNotAllowed(t *testing.T) {
	w := newWorld(t)
	w.rollout("web")
	w.rollout("default", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Health.Prometheus = nil }, stages("10m", "50"))
	own := newPlayedPrometheus(t)
	w.startManager("--prometheus-address="+own.url(), "--metrics-address-allow=https://*.metrics.example.com")
	wr := w.await("web", "Stalled", func(wr *v1alpha1.WeightedRollout) bool {
		return condition(wr, v1alpha1.ConditionStalled).Reason == v1alpha1.ReasonMetricsAddressNotAllowed
	})
	message := condition(wr, v1alpha1.ConditionStalled).Message
	if !strings.Contains(message, w.prom.address) || !strings.Contains(message, "--metrics-address-allow") {
		t.Errorf("the message names neither the server nor what to do: %q", message)
	}
	// The controller's own server is on every list.
	w.awaitShare("default", "50")
	if questions, n := w.prom.asked(0); n > 0 {
		t.Errorf("a server off the list was asked: %+v", questions[0])
	}
	w.edit("web", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Health.Prometheus.Address = own.url() })
	w.awaitShare("web", "1")
}
