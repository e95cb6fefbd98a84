package telemetry

import (
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

func TestQueries(t *testing.T) {
	p := presets[v1alpha1.PresetTraefik]
	backends := []string{"shop-web-canary-http-80@kubernetesgateway", `odd.name"\`}
	tests := map[string]struct{ got, want string }{
		"requests": {p.requestsQuery(backends, time.Minute),
			`sum by (service, code) (increase(traefik_service_requests_total{service=~"shop-web-canary-http-80@kubernetesgateway|odd\\.name\"\\\\"}[60000ms]))` +
				` or label_replace(max by (service) (timestamp(traefik_service_requests_total{service=~"shop-web-canary-http-80@kubernetesgateway|odd\\.name\"\\\\"})), "wr_kind", "newest", "", "")`},
		"buckets": {p.bucketsQuery(backends[:1], 1500*time.Millisecond),
			`sum by (service, le) (increase(traefik_service_request_duration_seconds_bucket{service=~"shop-web-canary-http-80@kubernetesgateway"}[1500ms]))`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("got  %s\nwant %s", tc.got, tc.want)
			}
		})
	}
}

func TestTraefikBackend(t *testing.T) {
	tests := map[string]struct {
		namespace string
		track     v1alpha1.Track
		want      string
	}{
		"plain":       {"shop", v1alpha1.Track{Service: "web-canary", Port: 8080}, "shop-web-canary-http-8080@kubernetesgateway"},
		"dots":        {"shop", v1alpha1.Track{Service: "web.v2", Port: 80}, "shop-web-v2-http-80@kubernetesgateway"},
		"double dash": {"shop", v1alpha1.Track{Service: "web--v2", Port: 80}, "shop-web-v2-http-80@kubernetesgateway"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := traefikBackend(tc.namespace, tc.track); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestHTTPStatus(t *testing.T) {
	type answer struct{ failed, known bool }
	for code, want := range map[string]answer{
		"200": {false, true}, "101": {false, true}, "404": {false, true}, "499": {false, true},
		"500": {true, true}, "503": {true, true}, "599": {true, true},
		"600": {false, false}, "0": {false, false}, "14": {false, false}, "": {false, false}, "5xx": {false, false}, "5000": {false, false}, "+50": {false, false},
	} {
		failed, known := httpStatus(code)
		if known != want.known || known && failed != want.failed {
			t.Errorf("%q: failed %v, known %v", code, failed, known)
		}
	}
}

func FuzzFill(f *testing.F) {
	for _, q := range []string{"up", "{{service}}", "{{ x }}", "{{{service}}}", "{{service", "}}{{", "{{{{service}}}}", `sum(x{a="{{namespace}}"})`} {
		f.Add(q, "web")
	}
	f.Fuzz(func(t *testing.T, query, service string) {
		got, p := fill(query, map[string]string{"namespace": "shop", "service": service, "route": "r", "window": "1m"})
		if p != nil && got != "" || p == nil && variable.MatchString(got) {
			t.Errorf("%q became %q, %v", query, got, p)
		}
	})
}
