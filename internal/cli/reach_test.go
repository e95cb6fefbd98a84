package cli_test

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/weightedrollout/weightedrollout/internal/cli"
)

// pointTo writes a kubeconfig for an address, and names it in KUBECONFIG.
func pointTo(t *testing.T, address string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: address}}, CurrentContext: "c",
		Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", Namespace: "shop"}},
	}, file); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
}

// nobodyAt is an address of this machine at which nobody listens.
func nobodyAt(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

// TestUnreachable: without an answer every command says what to look at, and status
// --wait asks again.
func TestUnreachable(t *testing.T) {
	address := "http://" + nobodyAt(t)
	pointTo(t, address)
	says := "the API server " + address + " cannot be reached: "
	for _, args := range [][]string{{"get"}, {"get", "checkout"}, {"status", "checkout"}, {"watch", "checkout"}, {"history", "checkout"}, {"events", "checkout"}, {"diagnose", "checkout"}, {"dashboard"}, {"pause", "checkout"}, {"abort", "checkout", "--yes"}} {
		if r := run(t, "", args...); r.code == 0 || !strings.Contains(r.errOut, says) || !strings.Contains(r.errOut, "is the cluster up, and is this the right --context?") {
			t.Errorf("%q: exit code %d, %q", args, r.code, r.errOut)
		}
	}
	r := run(t, "", "status", "checkout", "--wait", "--timeout", "5s")
	if r.code != 2 || strings.Count(r.errOut, "it is tried again: ") > 1 || !strings.Contains(r.errOut, "nothing was heard of the rollout") {
		t.Errorf("status --wait: exit code %d, %q", r.code, r.errOut)
	}
}

// TestStatusWaitsForTheAPIServer: one that comes up later has its answer taken, and the
// trouble is told once.
func TestStatusWaitsForTheAPIServer(t *testing.T) {
	address := nobodyAt(t)
	pointTo(t, "http://"+address)
	a := &apiServer{objects: objects(t, strings.Replace(healthyRollout, "outcome: InProgress", "outcome: Completed", 1), plainRoutes), changed: make(chan struct{})}
	comesUp := &hearer{word: "it is tried again: ", then: func() {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: a, ReadHeaderTimeout: time.Minute}}
		server.Start()
		t.Cleanup(server.Close)
	}}
	var out bytes.Buffer
	code := cli.Main([]string{"status", "checkout", "--wait", "--timeout", "1m"}, "test", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: comesUp})
	if text := comesUp.String(); code != 0 || strings.Count(text, comesUp.word) != 1 || !strings.Contains(text, "is completed") {
		t.Errorf("exit code %d, %q, %q", code, text, out.String())
	}
}

// hearer does something once it has heard a word.
type hearer struct {
	bytes.Buffer
	word string
	then func()
}

func (h *hearer) Write(p []byte) (int, error) {
	n, err := h.Buffer.Write(p)
	if h.then != nil && strings.Contains(h.String(), h.word) {
		h.then()
		h.then = nil
	}
	return n, err
}

// TestStatusDoesNotWaitForever: what time does not cure ends the wait at once.
func TestStatusDoesNotWaitForever(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	for name, test := range map[string]struct {
		address, says string
	}{
		"a certificate that nobody knows": {secure.URL, "x509"},
		"another protocol":                {strings.Replace(secure.URL, "https", "http", 1), "read the WeightedRollout"},
	} {
		t.Run(name, func(t *testing.T) {
			pointTo(t, test.address)
			if r := run(t, "", "status", "checkout", "--wait"); r.code != 1 || !strings.Contains(r.errOut, test.says) || strings.Contains(r.errOut, "tried again") {
				t.Errorf("exit code %d, %q", r.code, r.errOut)
			}
		})
	}
	for name, refuses := range map[string]metav1.Status{
		"nobody":   failure(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "who are you?"),
		"no right": failure(http.StatusForbidden, metav1.StatusReasonForbidden, "you may not"),
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, map[string]any{rolloutPath: refuses})
			if r := run(t, "", "status", "checkout", "--wait"); r.code != 1 || !strings.Contains(r.errOut, refuses.Message) || strings.Contains(r.errOut, "tried again") {
				t.Errorf("exit code %d, %q", r.code, r.errOut)
			}
		})
	}
}

// TestNoKubeconfig: it is told what was looked for, and how to name another file.
func TestNoKubeconfig(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	empty := filepath.Join(home, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		variable string
		args     []string
		says     string
	}{
		"the variable":  {"/nope", nil, "there is no kubeconfig /nope (from the environment variable KUBECONFIG)"},
		"two files":     {"/nope:/nor", nil, "there is no kubeconfig /nope, nor /nor ("},
		"the flag":      {empty, []string{"--kubeconfig", "/nope"}, "there is no kubeconfig /nope (from --kubeconfig)"},
		"a context":     {"/nope", []string{"--context", "mine"}, "there is no kubeconfig /nope"},
		"as somebody":   {"/nope", []string{"--as", "me"}, "there is no kubeconfig /nope"},
		"an empty file": {empty, nil, "the kubeconfig " + empty + " (from the environment variable KUBECONFIG) names no cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.variable)
			r := run(t, "", append([]string{"get"}, test.args...)...)
			if r.code != 1 || !strings.Contains(r.errOut, test.says) || !strings.Contains(r.errOut, "with --kubeconfig") || strings.Contains(r.errOut, "KUBERNETES_MASTER") {
				t.Errorf("exit code %d, %q", r.code, r.errOut)
			}
		})
	}
}
