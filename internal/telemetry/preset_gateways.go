package telemetry

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// traefik reads the metrics of Traefik's services, as its documentation names them
// (Observability, Metrics). Their code is the HTTP status, but for the protocols grpc
// and grpc-web, where it is the gRPC status.
var traefik = preset{
	names: naming{joined: "service", join: traefikServices},
	families: []family{{
		requests: "traefik_service_requests_total",
		buckets:  "traefik_service_request_duration_seconds_bucket",
		status:   []string{"code", "protocol"},
		judge:    traefikStatus,
		bound:    "le",
		unit:     1,
	}},
	hint: "Traefik has them with --metrics.prometheus=true and --metrics.prometheus.addserviceslabels=true only",
}

// traefikServices returns the names that Traefik's Gateway provider (v3) gives to a
// backend of an HTTPRoute and to one of a GRPCRoute. They are the same with and
// without native load balancing. Traefik joins the parts by '-' and turns every other
// character into one, so two Services in different namespaces can have the same name
// (a/b-c and a-b/c); they then share their metrics, and in Traefik itself their
// endpoints.
func traefikServices(namespace string, t v1alpha1.Track) []string {
	name := func(parts ...string) string {
		fields := strings.FieldsFunc(strings.Join(parts, "-"), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsNumber(r)
		})
		return strings.Join(fields, "-") + "@kubernetesgateway"
	}
	port := strconv.Itoa(int(t.Port))
	return []string{name(namespace, t.Service, "http", port), name(namespace, t.Service, port, "grpc")}
}

// istio reads Istio's standard metrics. They are taken from the side that sends a
// request (reporter="source"), which a gateway is: only that side sees the requests
// that a dead canary never got, it knows which Service the route chose, and a request
// that both sides report must count once. The destination names the first Service that
// a pod belongs to, which need not be the one that the route chose. The metrics do not
// tell the ports of a Service apart.
var istio = preset{
	names: naming{namespace: "destination_service_namespace", service: "destination_service_name"},
	families: []family{{
		requests: "istio_requests_total",
		buckets:  "istio_request_duration_milliseconds_bucket",
		only:     `reporter="source"`,
		status:   []string{"request_protocol", "response_code", "grpc_response_status"},
		judge:    istioStatus,
		bound:    "le",
		unit:     0.001,
	}},
	hint: "the proxies that send the requests, such as the gateway's, must be scraped",
}

// linkerd reads the metrics that Linkerd's proxies keep of the backends of a route.
// Those of the older kind, such as response_total, name the Service that the client
// asked for and not the backend that the route chose.
var linkerd = preset{
	names: naming{namespace: "backend_namespace", service: "backend_name", port: "backend_port"},
	families: []family{
		{
			requests: "outbound_http_route_backend_response_statuses_total",
			buckets:  "outbound_http_route_backend_response_duration_seconds_bucket",
			only:     `backend_kind="Service"`,
			status:   []string{"http_status", "error"},
			judge:    linkerdHTTP,
			bound:    "le",
			unit:     1,
		},
		{
			requests: "outbound_grpc_route_backend_response_statuses_total",
			buckets:  "outbound_grpc_route_backend_response_duration_seconds_bucket",
			only:     `backend_kind="Service"`,
			status:   []string{"grpc_status", "error"},
			judge:    linkerdGRPC,
			bound:    "le",
			unit:     1,
		},
	},
	hint: "the proxies of the pods that send the requests must be scraped, and the route's parent must be a Service",
}
