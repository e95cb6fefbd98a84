package telemetry

import (
	"testing"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

func TestTraefikServices(t *testing.T) {
	tests := map[string]struct {
		track v1alpha1.Track
		want  string
	}{
		"plain":       {v1alpha1.Track{Service: "web-canary", Port: 8080}, "shop-web-canary-http-8080@kubernetesgateway|shop-web-canary-8080-grpc@kubernetesgateway"},
		"dots":        {v1alpha1.Track{Service: "web.v2", Port: 80}, "shop-web-v2-http-80@kubernetesgateway|shop-web-v2-80-grpc@kubernetesgateway"},
		"double dash": {v1alpha1.Track{Service: "web--v2", Port: 80}, "shop-web-v2-http-80@kubernetesgateway|shop-web-v2-80-grpc@kubernetesgateway"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := traefik.backend("shop", tc.track); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// A backend in another namespace goes by that one, in every preset.
func TestBackendInAnotherNamespace(t *testing.T) {
	track := v1alpha1.Track{Service: "web-canary", Namespace: "apps", Port: 8080}
	for name, want := range map[v1alpha1.Preset]string{
		v1alpha1.PresetTraefik: "apps-web-canary-http-8080@kubernetesgateway|apps-web-canary-8080-grpc@kubernetesgateway",
		v1alpha1.PresetIstio:   "apps/web-canary",
		v1alpha1.PresetLinkerd: "apps/web-canary:8080",
		v1alpha1.PresetPods:    "apps/web-canary",
	} {
		if got := presets[name].backend("shop", track); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestHTTPStatus(t *testing.T) {
	for code, want := range map[string]string{
		"200": "fine", "101": "fine", "404": "fine", "499": "fine", "2xx": "fine", "4XX": "fine",
		"500": "failed", "503": "failed", "599": "failed", "5xx": "failed",
		"600": "", "0": "", "14": "", "": "", "5000": "", "+50": "", "5x0": "", "x00": "",
	} {
		if got := word(httpStatus(code)); got != want {
			t.Errorf("%q: %q, want %q", code, got, want)
		}
	}
}

func TestGRPCStatus(t *testing.T) {
	for code, want := range map[string]string{
		"0": "fine", "OK": "fine", "Ok": "fine", "1": "fine", "Canceled": "fine", "CANCELLED": "fine",
		"5": "fine", "NotFound": "fine", "INVALID_ARGUMENT": "fine", "16": "fine", "Unauthenticated": "fine",
		"8": "fine", "ResourceExhausted": "fine", "10": "fine",
		"2": "failed", "Unknown": "failed", "UNKNOWN": "failed", "4": "failed", "DeadlineExceeded": "failed", "DEADLINE_EXCEEDED": "failed",
		"12": "failed", "Unimplemented": "failed", "13": "failed", "Internal": "failed", "14": "failed", "UNAVAILABLE": "failed", "15": "failed", "DataLoss": "failed",
		"17": "", "-1": "", "": "", "200": "", "Fine": "",
	} {
		if got := word(grpcStatus(code)); got != want {
			t.Errorf("%q: %q, want %q", code, got, want)
		}
	}
}

func word(failed, known bool) string {
	switch {
	case !known:
		return ""
	case failed:
		return "failed"
	}
	return "fine"
}

func TestStatusOfPresets(t *testing.T) {
	type labels = map[string]string
	tests := map[string]struct {
		judge  func(map[string]string) (failed, known bool)
		labels labels
		want   string
	}{
		"Traefik":                  {traefikStatus, labels{"code": "200", "protocol": "http"}, "fine"},
		"Traefik, failed":          {traefikStatus, labels{"code": "502", "protocol": "http"}, "failed"},
		"Traefik, websocket":       {traefikStatus, labels{"code": "101", "protocol": "websocket"}, "fine"},
		"Traefik, gRPC":            {traefikStatus, labels{"code": "0", "protocol": "grpc"}, "fine"},
		"Traefik, gRPC failed":     {traefikStatus, labels{"code": "14", "protocol": "grpc"}, "failed"},
		"Traefik, gRPC-Web failed": {traefikStatus, labels{"code": "13", "protocol": "grpc-web"}, "failed"},
		"Traefik, gRPC no status":  {traefikStatus, labels{"code": "2", "protocol": "grpc"}, ""},
		"Istio":                    {istioStatus, labels{"request_protocol": "http", "response_code": "404"}, "fine"},
		"Istio, failed":            {istioStatus, labels{"request_protocol": "http", "response_code": "503"}, "failed"},
		"Istio, client left":       {istioStatus, labels{"request_protocol": "http", "response_code": "0"}, "fine"},
		"Istio, no status":         {istioStatus, labels{"request_protocol": "http"}, ""},
		"Istio, gRPC":              {istioStatus, labels{"request_protocol": "grpc", "response_code": "200", "grpc_response_status": "0"}, "fine"},
		"Istio, gRPC failed":       {istioStatus, labels{"request_protocol": "grpc", "response_code": "200", "grpc_response_status": "14"}, "failed"},
		"Istio, gRPC by HTTP":      {istioStatus, labels{"request_protocol": "grpc", "response_code": "503"}, "failed"},
		"Istio, gRPC unfinished":   {istioStatus, labels{"request_protocol": "grpc", "response_code": "200"}, ""},
		"Linkerd":                  {linkerdHTTP, labels{"http_status": "204"}, "fine"},
		"Linkerd, failed":          {linkerdHTTP, labels{"http_status": "500"}, "failed"},
		"Linkerd, no response":     {linkerdHTTP, labels{"error": "FAIL_FAST"}, "failed"},
		"Linkerd, broken off":      {linkerdHTTP, labels{"http_status": "200", "error": "UNKNOWN"}, "failed"},
		"Linkerd, client left":     {linkerdHTTP, labels{"error": "CANCEL"}, "fine"},
		"Linkerd, nothing":         {linkerdHTTP, labels{}, ""},
		"Linkerd, gRPC":            {linkerdGRPC, labels{"grpc_status": "NOT_FOUND"}, "fine"},
		"Linkerd, gRPC failed":     {linkerdGRPC, labels{"grpc_status": "UNAVAILABLE"}, "failed"},
		"OpenTelemetry":            {openTelemetryStatus, labels{"http_response_status_code": "200"}, "fine"},
		"OpenTelemetry, failed":    {openTelemetryStatus, labels{"http_response_status_code": "500", "error_type": "500"}, "failed"},
		"OpenTelemetry, no answer": {openTelemetryStatus, labels{"error_type": "timeout"}, "failed"},
		"OpenTelemetry, nothing":   {openTelemetryStatus, labels{}, ""},
		"common, status":           {commonStatus, labels{"status": "500"}, "failed"},
		"common, code":             {commonStatus, labels{"code": "200"}, "fine"},
		"common, nothing":          {commonStatus, labels{}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := word(tc.judge(tc.labels)); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
