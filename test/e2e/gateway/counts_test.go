package gateway

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/telemetry"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// tally is what a backend was sent, or is said to have been sent.
type tally struct{ Requests, Errors float64 }

// meter reads what the gateway's metrics say of two backends with the collector that
// the manager has.
type meter struct {
	t         *testing.T
	collector *telemetry.Collector
	key       types.NamespacedName
	since     time.Time // windows of the grid that start earlier do not count
}

const meterWindow = 4 * time.Second

// newMeter waits until the metrics of both backends are there and a window of the grid
// has ended.
func newMeter(t *testing.T, namespace string, stable, canary v1alpha1.Track) *meter {
	t.Helper()
	m := &meter{t: t, key: types.NamespacedName{Namespace: namespace, Name: canary.Service}}
	m.collector = telemetry.New(telemetry.Config{DefaultAddress: bed.Prometheus.URL})
	go func() { _ = m.collector.Start(t.Context()) }()
	limit := v1alpha1.ErrorRate{MaxPercent: "2"}
	m.collector.Track(telemetry.Target{
		Key: m.key, Stable: stable, Canary: canary, Subject: health.TrackCanary, ConfirmedAt: time.Now(),
		Health: &v1alpha1.Health{Preset: v1alpha1.PresetTraefik, Window: "4s", Interval: "1s", SampleDelay: "1s", ErrorRate: &limit},
	})
	m.eventually("a window with both backends", func() (bool, string) {
		windows := m.collector.Windows(m.key)
		for _, w := range windows {
			if onGrid(w.End) && w.Stable.Found && w.Canary.Found {
				m.since = w.End
			}
		}
		return !m.since.IsZero(), fmt.Sprintf("%d windows: %+v", len(windows), m.collector.Verdict(m.key))
	})
	return m
}

func onGrid(end time.Time) bool { return end.UnixMilli()%meterWindow.Milliseconds() == 0 }

// read sums up the windows of the grid, and returns the last end and the last problem.
func (m *meter) read() (stable, canary tally, end time.Time, problem *health.Problem) {
	for _, w := range m.collector.Windows(m.key) {
		if w.Start.Before(m.since) || !onGrid(w.End) {
			continue
		}
		stable.Requests, stable.Errors = stable.Requests+w.Stable.Requests, stable.Errors+w.Stable.Errors
		canary.Requests, canary.Errors = canary.Requests+w.Canary.Requests, canary.Errors+w.Canary.Errors
		end = w.End
		if w.Stable.Problem != nil {
			problem = w.Stable.Problem
		}
	}
	return stable, canary, end, problem
}

// want waits until the counts are as they should be, and checks that they stay so for
// two more windows.
func (m *meter) want(stable, canary tally) {
	m.t.Helper()
	var settled time.Time
	m.eventually("the counts", func() (bool, string) {
		s, c, end, problem := m.read()
		if problem != nil {
			m.t.Fatalf("the requests cannot be judged: %s", problem.Message)
		}
		if s == stable && c == canary && settled.IsZero() {
			settled = end
		}
		if !settled.IsZero() && (s != stable || c != canary) {
			m.t.Fatalf("stable %+v, canary %+v after they were right", s, c)
		}
		return !settled.IsZero() && !end.Before(settled.Add(2*meterWindow)), fmt.Sprintf("stable %+v, canary %+v; want %+v, %+v", s, c, stable, canary)
	})
}

func (m *meter) eventually(what string, check func() (bool, string)) {
	m.t.Helper()
	(&shop{t: m.t}).eventually(what, check)
}

// direct makes a route that sends requests to the backend that their header names.
func direct(t *testing.T, namespace string, ports map[string]int32) (host string) {
	t.Helper()
	r := &gatewayv1.HTTPRoute{}
	r.Namespace, r.Name = namespace, "direct"
	host = "direct." + namespace + ".example"
	r.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: gatewayName}}
	r.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(host)}
	for service, port := range ports {
		var ref gatewayv1.HTTPBackendRef
		ref.Name, ref.Port = gatewayv1.ObjectName(service), new(port)
		r.Spec.Rules = append(r.Spec.Rules, gatewayv1.HTTPRouteRule{
			Matches:     []gatewayv1.HTTPRouteMatch{{Headers: []gatewayv1.HTTPHeaderMatch{{Name: "X-To", Value: service}}}},
			BackendRefs: []gatewayv1.HTTPBackendRef{ref},
		})
	}
	if err := bed.Client.Create(t.Context(), r); err != nil {
		t.Fatalf("create the HTTPRoute: %v", err)
	}
	return host
}

// TestTraefikCounts sends a known number of requests through the gateway: what the
// preset counts is exactly that, whatever the scrapes and windows.
func TestTraefikCounts(t *testing.T) {
	s := newShop(t, "counts")
	host := direct(t, s.namespace, map[string]int32{"web-stable": testbed.BackendPort, "web-canary": testbed.BackendPort})
	send := func(service string, status, times int) {
		t.Helper()
		for range times {
			if got := s.ask(host, service, status); got != status {
				t.Fatalf("%s answered %d, want %d", service, got, status)
			}
		}
	}
	for _, service := range []string{"web-stable", "web-canary"} {
		s.eventually("the gateway serves "+service, func() (bool, string) {
			got := s.ask(host, service, http.StatusOK)
			return got == http.StatusOK, strconv.Itoa(got)
		})
	}
	track := func(name string) v1alpha1.Track { return v1alpha1.Track{Service: name, Port: testbed.BackendPort} }
	m := newMeter(t, s.namespace, track("web-stable"), track("web-canary"))
	// The failures are series that the gateway has not had before.
	send("web-canary", 200, 40)
	send("web-canary", 500, 7)
	send("web-stable", 200, 25)
	send("web-canary", 404, 3)
	send("web-stable", 503, 2)
	m.want(tally{27, 2}, tally{50, 7})
	send("web-canary", 500, 1)
	m.want(tally{27, 2}, tally{51, 8})
}

// ask asks podinfo for a status, and returns the one that came.
func (s *shop) ask(host, service string, status int) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, bed.Gateway.URL+"/status/"+strconv.Itoa(status), nil)
	s.must(err, "make a request")
	req.Host = host
	req.Header.Set("X-To", service)
	resp, err := http.DefaultClient.Do(req)
	s.must(err, "send a request")
	_, _ = io.Copy(io.Discard, resp.Body)
	s.must(resp.Body.Close(), "close the answer")
	return resp.StatusCode
}

// TestTraefikCountsGRPC does the same with gRPC. Traefik reads the status from the
// headers of a response, and from its trailers if they were announced, as the canary
// does. podinfo announces none: what Traefik says of its successes is no status, and
// is not taken for one.
func TestTraefikCountsGRPC(t *testing.T) {
	const namespace = "counts-grpc"
	s := &shop{t: t, namespace: namespace}
	s.must(bed.CreateNamespace(t.Context(), namespace), "create the namespace")
	s.must(bed.Gateway.Create(t.Context(), namespace, gatewayName), "create the Gateway")
	stable, stablePort := s.h2cService("grpc-stable")
	s.must(stable.Start(t.Context(), "--grpc-port="+strconv.Itoa(int(stablePort))), "start podinfo")
	t.Cleanup(func() { s.must(stable.Stop(), "stop podinfo") })
	canary, canaryPort := s.h2cService("grpc-canary")
	s.announcing(net.JoinHostPort(canary.Address, strconv.Itoa(int(canaryPort))))
	s.host = direct(t, namespace, map[string]int32{"grpc-stable": stablePort, "grpc-canary": canaryPort})

	calls := newGRPCClient(s)
	for _, service := range []string{"grpc-stable", "grpc-canary"} {
		s.eventually("the gateway serves "+service, func() (bool, string) {
			got := calls.call(service, "NotFound")
			return got == "5", got
		})
	}
	m := newMeter(t, namespace, v1alpha1.Track{Service: "grpc-stable", Port: stablePort}, v1alpha1.Track{Service: "grpc-canary", Port: canaryPort})
	calls.send("grpc-canary", "Ok", "0", 30)
	calls.send("grpc-canary", "Unavailable", "14", 2)
	calls.send("grpc-canary", "NotFound", "5", 4)
	calls.send("grpc-stable", "Internal", "13", 3)
	calls.send("grpc-stable", "NotFound", "5", 2)
	m.want(tally{5, 3}, tally{36, 2})

	calls.send("grpc-stable", "Ok", "0", 1)
	m.eventually("what cannot be judged is seen", func() (bool, string) {
		stable, _, _, problem := m.read()
		return problem != nil && problem.Reason == v1alpha1.ReasonUnsupportedResult && stable == tally{6, 3}, fmt.Sprintf("%+v, %+v", stable, problem)
	})
}

// h2cService makes a Service whose only port speaks HTTP/2 without TLS.
func (s *shop) h2cService(name string) (*testbed.Backend, int32) {
	s.t.Helper()
	backend, err := bed.CreateService(s.t.Context(), s.namespace, name)
	s.must(err, "create the Service")
	l, err := (&net.ListenConfig{}).Listen(s.t.Context(), "tcp", net.JoinHostPort(backend.Address, "0"))
	s.must(err, "find a free port")
	_, text, err := net.SplitHostPort(l.Addr().String())
	s.must(err, "read the port")
	s.must(l.Close(), "free the port")
	number, err := strconv.ParseInt(text, 10, 32)
	s.must(err, "read the port")
	port := int32(number)
	service := &corev1.Service{}
	s.must(bed.Client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, service), "read the Service")
	service.Spec.Ports = []corev1.ServicePort{{Name: "grpc", Port: port, TargetPort: intstr.FromInt32(port), AppProtocol: new("kubernetes.io/h2c")}}
	s.must(bed.Client.Update(s.t.Context(), service), "update the Service")
	return backend, port
}

// announcing serves podinfo's status service at an address, and announces its trailers.
func (s *shop) announcing(address string) {
	s.t.Helper()
	statuses := map[string]string{"Ok": "0", "NotFound": "5", "Unavailable": "14"}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	l, err := (&net.ListenConfig{}).Listen(s.t.Context(), "tcp", address)
	s.must(err, "listen")
	server := &http.Server{Protocols: &protocols, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = w.Write(frame(nil))
		w.Header().Set("Grpc-Status", statuses[string(body[min(7, len(body)):])])
	})}
	go func() { _ = server.Serve(l) }()
	s.t.Cleanup(func() { _ = server.Close() })
}

// frame is a gRPC message that is not compressed.
func frame(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// statusCall asks podinfo's status service for a status. The message has one field, the
// text with number 1.
func statusCall(status string) []byte {
	return frame(append([]byte{1<<3 | 2, byte(len(status))}, status...))
}

// grpcClient calls podinfo's status service through the gateway.
type grpcClient struct {
	*shop
	http http.Client
}

func newGRPCClient(s *shop) *grpcClient {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &grpcClient{shop: s, http: http.Client{Transport: transport}}
}

// call asks for a status, and returns the number of the one that came.
func (c *grpcClient) call(service, status string) string {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, bed.Gateway.URL+"/status.StatusService/Status", bytes.NewReader(statusCall(status)))
	c.must(err, "make a request")
	req.Host = c.host
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	req.Header.Set("X-To", service)
	resp, err := c.http.Do(req)
	c.must(err, "send a request")
	_, _ = io.Copy(io.Discard, resp.Body)
	c.must(resp.Body.Close(), "close the answer")
	if got := resp.Header.Get("Grpc-Status"); got != "" {
		return got
	}
	return resp.Trailer.Get("Grpc-Status")
}

func (c *grpcClient) send(service, status, want string, times int) {
	c.t.Helper()
	for range times {
		if got := c.call(service, status); got != want {
			c.t.Fatalf("%s answered %q, want %s", service, got, want)
		}
	}
}
