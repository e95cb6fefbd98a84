package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/test/testcluster"
)

const (
	gatewayNamespace    = "e2e-gateway"
	monitoringNamespace = "e2e-monitoring"
)

// site is the cluster under test: one that these tests started themselves, or a given one.
type site struct {
	// Client is an administrator's.
	Client client.WithWatch
	// Dir is for files.
	Dir string
	// own is nil where the cluster was given: nobody takes the API server of somebody
	// else's cluster away.
	own *testcluster.Cluster
	// config and kubeconfig reach a given cluster.
	config     *rest.Config
	kubeconfig string
	// interrupted ends the tests on a given cluster.
	interrupted atomic.Bool
}

var errInterrupted = errors.New("interrupted")

// Command returns a command that reaches the cluster, with KUBECONFIG set. A program of
// the folder of programs needs no path.
func (s *site) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	var cmd *exec.Cmd
	if s.own != nil {
		cmd = s.own.Command(ctx, name, args...)
	} else {
		if path := filepath.Join(binDir(), name); isProgram(path) {
			name = path
		}
		cmd = exec.CommandContext(ctx, name, args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
	}
	for _, kind := range []string{"CACHE", "CONFIG", "DATA"} {
		cmd.Env = append(cmd.Env, "HELM_"+kind+"_HOME="+filepath.Join(s.Dir, "helm", strings.ToLower(kind)))
	}
	return cmd
}

func binDir() string {
	if dir := os.Getenv("WEIGHTEDROLLOUT_BIN"); dir != "" {
		return dir
	}
	return filepath.Join(moduleDir, "bin")
}

func isProgram(path string) bool {
	_, err := exec.LookPath(path)
	return err == nil
}

// Err says which part of the cluster ended without having been told to, if that is known,
// or that somebody does not want to go on.
func (s *site) Err() error {
	switch {
	case s.interrupted.Load():
		return errInterrupted
	case s.own == nil:
		return nil
	}
	return s.own.Err()
}

// needsOwn ends a test that takes more of a cluster than may be taken of a given one.
func needsOwn(t *testing.T) {
	t.Helper()
	if cluster.own == nil {
		t.Skip("left out: this needs a cluster of its own, which make e2e-cluster starts without KUBECONFIG")
	}
}

// visitors returns how the gateway is reached from here, and at which URL. A given
// cluster is only known to be reached at its API server, which passes requests on.
func (s *site) visitors(t *testing.T) (http.RoundTripper, string) {
	t.Helper()
	if s.own != nil {
		return &http.Transport{DialContext: s.own.DialContext, MaxIdleConnsPerHost: 16},
			"http://" + net.JoinHostPort(s.address(t, gatewayNamespace, "traefik"), "80")
	}
	transport, err := rest.TransportFor(s.config)
	must(t, err, "reach the gateway through the API server")
	return transport, fmt.Sprintf("%s/api/v1/namespaces/%s/services/traefik:web/proxy", strings.TrimSuffix(s.config.Host, "/"), gatewayNamespace)
}

// address is that of a Service. Names do not do: the cluster of these tests has no DNS.
func (s *site) address(t *testing.T, namespace, name string) string {
	t.Helper()
	service := &corev1.Service{}
	must(t, s.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, service), "read Service "+name)
	return service.Spec.ClusterIP
}

func prometheusAddress(t *testing.T) string {
	t.Helper()
	return "http://" + net.JoinHostPort(cluster.address(t, monitoringNamespace, "prometheus"), "9090")
}
