package gateway

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	vegeta "github.com/tsenart/vegeta/v12/lib"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// grpcShop has a GRPCRoute over two podinfos that speak gRPC. The canary can be broken:
// it then answers Unavailable.
func grpcShop(t *testing.T) (s *shop, canary *front, wr *v1alpha1.WeightedRollout) {
	t.Helper()
	s = newEmptyShop(t, "grpc")
	_, stablePort := s.grpcPodinfo("web-stable")
	behind, behindPort := s.grpcPodinfo("web-behind")
	b, canaryPort := s.h2cService("web-canary")
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	canary = s.openFront("web-canary", address(b, canaryPort), "http://"+address(behind, behindPort), &h2c, func(r *http.Request) {
		body := statusCall("Unavailable")
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	})
	r := &gatewayv1.GRPCRoute{}
	r.Namespace, r.Name = s.namespace, "web"
	r.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: gatewayName}}
	r.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(s.host)}
	refs := make([]gatewayv1.GRPCBackendRef, 2)
	refs[0].BackendRef = backend("web-stable", 100).BackendRef
	refs[1].BackendRef = backend("web-canary", 0).BackendRef
	refs[0].Port, refs[1].Port = new(stablePort), new(canaryPort)
	r.Spec.Rules = []gatewayv1.GRPCRouteRule{{BackendRefs: refs}}
	s.must(bed.Client.Create(t.Context(), r), "create the GRPCRoute")

	wr = s.rollout(stage("10"), withApproval("20"), stage("50"))
	wr.Spec.Routes[0].Kind = v1alpha1.GRPCRouteKind
	wr.Spec.Stable.Port, wr.Spec.Canary.Port = stablePort, canaryPort
	return s, canary, wr
}

// grpcPodinfo starts a podinfo that speaks gRPC at the port of its Service.
func (s *shop) grpcPodinfo(name string) (*testbed.Backend, int32) {
	s.t.Helper()
	b, port := s.h2cService(name)
	s.must(b.Start(s.t.Context(), "--grpc-port="+strconv.Itoa(int(port))), "start "+name)
	s.t.Cleanup(func() { s.must(b.Stop(), "stop "+name) })
	return b, port
}

func address(b *testbed.Backend, port int32) string {
	return net.JoinHostPort(b.Address, strconv.Itoa(int(port)))
}

// TestGRPCRoute promotes a canary behind a GRPCRoute, and rolls back one whose calls fail.
// The calls ask for NotFound: podinfo answers that in headers, where Traefik reads it, and
// it is no fault of the server.
func TestGRPCRoute(t *testing.T) {
	s, canary, wr := grpcShop(t)
	calls := newGRPCClient(s)
	s.eventually("the gateway serves the route", func() (bool, string) {
		got := calls.call("", "NotFound")
		return got == "5", got
	})
	before := s.snapshot("GRPCRoute", "web")
	seen := s.open(&gatewayv1.GRPCRouteList{}, "web")
	s.attack(vegeta.Target{
		Method: http.MethodPost, URL: bed.Gateway.URL + "/status.StatusService/Status", Body: statusCall("NotFound"),
		Header: http.Header{"Host": {s.host}, "Content-Type": {"application/grpc"}, "Te": {"trailers"}},
	}, 150, vegeta.H2C(true))
	startManager(t)
	s.must(bed.Client.Create(t.Context(), wr), "create the rollout")

	s.awaitApproval("v2", 1)
	s.eventually("the calls are divided as the weights say", func() (bool, string) {
		st := s.status()
		return trafficCondition(st).Status == metav1.ConditionTrue && st.Share.ObservedFrom == v1alpha1.ShareFromRequests, describe(st)
	})
	s.order(v1alpha1.VerbApprove)
	s.awaitPhase("v2", v1alpha1.PhasePromoted)
	s.wantCanary(seen, 0, 0, 10, 20, 40, 50, 80, 100)
	s.wantOnlyWeights("GRPCRoute", "web", before, map[int][]int64{0: {0, 100}})

	s.revise("v3")
	s.awaitApproval("v3", 1)
	canary.broken.Store(true)
	st := s.awaitPhase("v3", v1alpha1.PhaseRolledBack)
	if st.OutcomeReason != v1alpha1.ReasonUnhealthy || !strings.Contains(st.OutcomeMessage, "error-rate") {
		t.Errorf("rolled back because of %s: %s", st.OutcomeReason, st.OutcomeMessage)
	}
	s.wantCanary(seen, 0, 0, 10, 20, 40, 50, 80, 100, 0, 10, 20, 0)
	s.wantOnlyWeights("GRPCRoute", "web", before, nil)
	s.eventually("stable alone answers", func() (bool, string) {
		for i := range 20 {
			if got := calls.call("", "NotFound"); got != "5" {
				return false, fmt.Sprintf("call %d: %s", i, got)
			}
		}
		return true, ""
	})
}
