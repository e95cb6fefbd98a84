// Package plugin tests the kubectl plugin against a real API server and the manager's
// binary, with the rights of ordinary people. Its way to the live evidence is the real
// one: the API server's proxy of the manager's Service.
package plugin

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/cli"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

const (
	patience  = 3 * time.Minute
	namespace = "shop"
	host      = "shop.example"
)

var bed *testbed.Bed

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("skipped by -short: tests with a real gateway")
		os.Exit(0)
	}
	os.Exit(testbed.RunTests(m, testbed.Options{BinDir: os.Getenv("WEIGHTEDROLLOUT_BIN"), Gateway: true, Prometheus: true, Log: os.Stderr}, &bed))
}

func must(t *testing.T, err error, what string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func eventually(t *testing.T, what string, check func() (bool, string)) {
	t.Helper()
	last := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		var ok bool
		if ok, last = check(); ok {
			return
		}
	}
	t.Fatalf("not within %s: %s; last seen: %s", patience, what, last)
}

// openShop starts two versions of a service behind a route, and traffic.
func openShop(t *testing.T) {
	t.Helper()
	must(t, bed.CreateNamespace(t.Context(), namespace), "create the namespace")
	must(t, bed.Gateway.Create(t.Context(), namespace, "public"), "create the Gateway")
	for _, name := range []string{"web-stable", "web-canary"} {
		b, err := bed.StartPodinfo(t.Context(), namespace, name)
		must(t, err, "start "+name)
		t.Cleanup(func() { must(t, b.Stop(), "stop "+name) })
	}
	r := &gatewayv1.HTTPRoute{}
	r.Namespace, r.Name = namespace, "web"
	r.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "public"}}
	r.Spec.Hostnames = []gatewayv1.Hostname{host}
	r.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{backend("web-stable", 100), backend("web-canary", 0)}}}
	must(t, bed.Client.Create(t.Context(), r), "create the HTTPRoute")
	attacker := vegeta.NewAttacker(vegeta.KeepAlive(true), vegeta.HTTP2(false), vegeta.MaxWorkers(64), vegeta.Timeout(5*time.Second))
	target := vegeta.Target{Method: http.MethodGet, URL: bed.Gateway.URL + "/api/info", Header: http.Header{"Host": {host}}}
	results := attacker.Attack(vegeta.NewStaticTargeter(target), vegeta.Rate{Freq: 60, Per: time.Second}, 30*time.Minute, "")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range results {
		}
	}()
	t.Cleanup(func() {
		attacker.Stop()
		<-done
	})
}

func backend(name string, weight int32) gatewayv1.HTTPBackendRef {
	port := gatewayv1.PortNumber(testbed.BackendPort)
	var ref gatewayv1.HTTPBackendRef
	ref.Name, ref.Port, ref.Weight = gatewayv1.ObjectName(name), &port, &weight
	return ref
}

// rollout stops for an approval at 10 percent, and soaks for long at 50.
func rollout() *v1alpha1.WeightedRollout {
	wr := &v1alpha1.WeightedRollout{}
	wr.Namespace, wr.Name = namespace, "web"
	wr.Spec = v1alpha1.WeightedRolloutSpec{
		Revision: "v2",
		Routes:   []v1alpha1.RouteReference{{Name: "web"}},
		Stable:   &v1alpha1.StableTrack{Track: v1alpha1.Track{Service: "web-stable", Port: testbed.BackendPort}},
		Canary:   &v1alpha1.CanaryTrack{Track: v1alpha1.Track{Service: "web-canary", Port: testbed.BackendPort}},
		Plan: v1alpha1.Plan{Stages: []v1alpha1.Stage{
			{Weight: "10", Soak: "3s", Approval: v1alpha1.ApprovalRequired}, {Weight: "50", Soak: "1h"},
		}},
		Ramp: v1alpha1.Ramp{MinIncrease: "10", MaxIncrease: "50", MaxChangePercent: "100", Interval: "1s", Warmup: v1alpha1.Warmup{InitialPercent: "100", Soak: "1s"}},
		Health: &v1alpha1.Health{
			Preset: v1alpha1.PresetTraefik, Window: "3s", Interval: "1s", SampleDelay: "1s",
			MinRequests: 10, MinRampRequests: 5, ErrorRate: &v1alpha1.ErrorRate{MaxPercent: "5"}, Latency: &v1alpha1.Latency{Max: "5s"},
		},
	}
	return wr
}

// person is somebody with a kubeconfig.
type person struct {
	t          *testing.T
	name       string
	kubeconfig string
}

// newPerson makes a service account without any right, and a kubeconfig for it.
func newPerson(t *testing.T, name string) *person {
	t.Helper()
	token, err := bed.ServiceAccountToken(t.Context(), namespace, name)
	must(t, err, "make a token")
	file := filepath.Join(t.TempDir(), name)
	must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"bed": {Server: bed.Config.Host, CertificateAuthorityData: bed.Config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"bed": {Cluster: "bed", AuthInfo: name, Namespace: namespace}},
		CurrentContext: "bed",
	}, file), "write a kubeconfig")
	return &person{t, name, file}
}

// said is what the plugin has printed.
type said struct {
	out, errOut string
	code        int
}

func (s said) String() string { return fmt.Sprintf("exit code %d\n%s%s", s.code, s.out, s.errOut) }

// says runs the plugin.
func (p *person) says(args ...string) said {
	var out, errOut bytes.Buffer
	verb := 1
	if args[0] == "__complete" {
		verb = 2
	}
	args = slices.Insert(slices.Clone(args), verb, "--kubeconfig", p.kubeconfig)
	code := cli.Main(args, "test", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	return said{out.String(), errOut.String(), code}
}

// expect runs the plugin, and wants an exit code and a text.
func (p *person) expect(code int, text string, args ...string) said {
	p.t.Helper()
	s := p.says(args...)
	if s.code != code || !strings.Contains(s.out+s.errOut, text) {
		p.t.Fatalf("%s says %q: %s\nwant exit code %d and %q", p.name, strings.Join(args, " "), s, code, text)
	}
	return s
}
