package telemetry

// pods reads the metrics that the pods themselves expose, by the labels namespace and
// service that a ServiceMonitor gives them: those of OpenTelemetry's semantic
// conventions for HTTP servers, or those that Prometheus client libraries commonly
// have, or those of the gRPC middleware for Go.
var pods = preset{
	names: naming{namespace: "namespace", service: "service"},
	families: []family{
		{
			requests: "http_server_request_duration_seconds_count",
			buckets:  "http_server_request_duration_seconds_bucket",
			status:   []string{"http_response_status_code", "error_type"},
			judge:    openTelemetryStatus,
			bound:    "le",
			unit:     1,
		},
		{
			requests: "http_requests_total",
			buckets:  "http_request_duration_seconds_bucket",
			status:   []string{"status", "code"},
			judge:    commonStatus,
			bound:    "le",
			unit:     1,
		},
		{
			requests: "grpc_server_handled_total",
			buckets:  "grpc_server_handling_seconds_bucket",
			// Probes are no traffic.
			only:   `grpc_service!="grpc.health.v1.Health"`,
			status: []string{"grpc_code"},
			judge:  func(l map[string]string) (failed, known bool) { return grpcStatus(l["grpc_code"]) },
			bound:  "le",
			unit:   1,
		},
	},
	alternatives: true,
	hint:         "the pods must be scraped, with the labels namespace and service as a ServiceMonitor gives them",
}
