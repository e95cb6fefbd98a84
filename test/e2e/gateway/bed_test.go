// Package gateway tests the whole product for real: the manager's binary, an API
// server, Traefik, Prometheus, two versions of a service, and traffic.
package gateway

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

const (
	gatewayName = "public"
	patience    = 3 * time.Minute
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

// shop is a service in two versions behind one route, in a namespace of its own.
type shop struct {
	t         *testing.T
	namespace string
	host      string
}

func newShop(t *testing.T, namespace string, canary ...string) *shop {
	t.Helper()
	s := newEmptyShop(t, namespace)
	s.podinfo("web-stable")
	s.podinfo("web-canary", canary...)
	s.must(bed.Client.Create(t.Context(), s.route()), "create the HTTPRoute")
	return s
}

// newEmptyShop has a Gateway, and neither services nor routes.
func newEmptyShop(t *testing.T, namespace string) *shop {
	t.Helper()
	s := &shop{t: t, namespace: namespace, host: namespace + ".example"}
	s.must(bed.CreateNamespace(t.Context(), namespace), "create the namespace")
	s.must(bed.Gateway.Create(t.Context(), namespace, gatewayName), "create the Gateway")
	return s
}

// podinfo starts a service, until the test ends.
func (s *shop) podinfo(name string, args ...string) *testbed.Backend {
	s.t.Helper()
	b, err := bed.StartPodinfo(s.t.Context(), s.namespace, name, args...)
	s.must(err, "start "+name)
	s.t.Cleanup(func() { s.must(b.Stop(), "stop "+name) })
	return b
}

func (s *shop) must(err error, what string) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

func (s *shop) key() client.ObjectKey { return client.ObjectKey{Namespace: s.namespace, Name: "web"} }

func (s *shop) route() *gatewayv1.HTTPRoute {
	r := &gatewayv1.HTTPRoute{}
	r.Namespace, r.Name = s.namespace, "web"
	r.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: gatewayName}}
	r.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(s.host)}
	r.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{backend("web-stable", 100), backend("web-canary", 0)}}}
	return r
}

func backend(name string, weight int32) gatewayv1.HTTPBackendRef {
	port := gatewayv1.PortNumber(testbed.BackendPort)
	var ref gatewayv1.HTTPBackendRef
	ref.Name, ref.Port, ref.Weight = gatewayv1.ObjectName(name), &port, &weight
	return ref
}

// rollout has the stages of the default plan, with seconds for minutes.
func (s *shop) rollout(stages ...v1alpha1.Stage) *v1alpha1.WeightedRollout {
	limit := v1alpha1.ErrorRate{MaxPercent: "2"}
	wr := &v1alpha1.WeightedRollout{}
	wr.Namespace, wr.Name = s.namespace, "web"
	wr.Spec = v1alpha1.WeightedRolloutSpec{
		Revision: "v2",
		Routes:   []v1alpha1.RouteReference{{Name: "web"}},
		Stable:   &v1alpha1.StableTrack{Track: v1alpha1.Track{Service: "web-stable", Port: testbed.BackendPort}},
		Canary:   &v1alpha1.CanaryTrack{Track: v1alpha1.Track{Service: "web-canary", Port: testbed.BackendPort}},
		Plan:     v1alpha1.Plan{Stages: stages},
		Ramp:     v1alpha1.Ramp{MinIncrease: "10", MaxIncrease: "30", MaxChangePercent: "100", Interval: "1s"},
		Health: &v1alpha1.Health{
			Preset: v1alpha1.PresetTraefik, Window: "3s", Interval: "1s", SampleDelay: "1s",
			MinRequests: 20, MinRampRequests: 5, ErrorRate: &limit,
			Latency: &v1alpha1.Latency{Max: "500ms"},
		},
		OnUnhealthy: v1alpha1.OnUnhealthy{For: "2s"},
	}
	return wr
}

func stages(soak v1alpha1.Duration, percents ...v1alpha1.Percent) []v1alpha1.Stage {
	var all []v1alpha1.Stage
	for _, p := range percents {
		all = append(all, v1alpha1.Stage{Weight: p, Soak: soak})
	}
	return all
}

// load sends a steady load to the service until the test ends.
func (s *shop) load(perSecond int) {
	s.t.Helper()
	s.eventually("the gateway serves the route", func() (bool, string) {
		req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, bed.Gateway.URL+"/healthz", nil)
		s.must(err, "make a request")
		req.Host = s.host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false, err.Error()
		}
		s.must(resp.Body.Close(), "close the answer")
		return resp.StatusCode == http.StatusOK, resp.Status
	})
	s.attack(vegeta.Target{Method: http.MethodGet, URL: bed.Gateway.URL + "/api/info", Header: http.Header{"Host": {s.host}}}, perSecond)
}

// attack sends the same request again and again until the test ends.
func (s *shop) attack(target vegeta.Target, perSecond int, options ...func(*vegeta.Attacker)) {
	options = append([]func(*vegeta.Attacker){
		vegeta.KeepAlive(true), vegeta.HTTP2(false), vegeta.Workers(4), vegeta.MaxWorkers(64), vegeta.Timeout(5 * time.Second),
	}, options...)
	attacker := vegeta.NewAttacker(options...)
	results := attacker.Attack(vegeta.NewStaticTargeter(target), vegeta.Rate{Freq: perSecond, Per: time.Second}, 10*time.Minute, "")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range results {
		}
	}()
	s.t.Cleanup(func() {
		attacker.Stop()
		<-done
	})
}

// status reads the rollout's status.
func (s *shop) status() v1alpha1.WeightedRolloutStatus {
	s.t.Helper()
	wr := &v1alpha1.WeightedRollout{}
	s.must(bed.Client.Get(s.t.Context(), s.key(), wr), "read the rollout")
	return wr.Status
}

// weight reads the canary's weight from the route.
func (s *shop) weight() int32 {
	s.t.Helper()
	r := &gatewayv1.HTTPRoute{}
	s.must(bed.Client.Get(s.t.Context(), s.key(), r), "read the route")
	return *r.Spec.Rules[0].BackendRefs[1].Weight
}

func (s *shop) eventually(what string, check func() (bool, string)) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	var last string
	for time.Now().Before(deadline) {
		var ok bool
		if ok, last = check(); ok {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.t.Fatalf("not within %s: %s; last seen: %s", patience, what, last)
}

func describe(st v1alpha1.WeightedRolloutStatus) string {
	text := fmt.Sprintf("phase %s", st.Phase)
	if st.Stage != nil {
		text += " stage " + st.Stage.Position
	}
	if st.Share.Desired != nil {
		text += fmt.Sprintf(" at %s percent", *st.Share.Desired)
	}
	for _, c := range st.Conditions {
		text += fmt.Sprintf("; %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	return text
}
