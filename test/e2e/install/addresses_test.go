package install

import (
	"testing"

	"github.com/weightedrollout/weightedrollout/internal/telemetry"
)

// TestAddressesAreCheckedBeforeTheController: what the controller refuses at its start the
// chart refuses before, since the controller's pods would only crash.
func TestAddressesAreCheckedBeforeTheController(t *testing.T) {
	addresses := []string{
		"http://prometheus", "http://prometheus.monitoring:9090", "https://thanos.example.com/tenants/a-1/", "http://10.0.0.1:9090",
		"http://[fd00::1]:9090/p", "https://[::1]", "http://My_Host-1/api", "http://a/.well-known/..x/...", "http://a/b..c",
		"http://prometheus:9090/graph?x=1", "http://prometheus:9090/?", "http://prometheus/#top", "http://user:secret@prometheus", "ftp://prometheus",
		"prometheus:9090", "http://", "http:///path", "http://prom etheus", "http://prometheus/%zz", "http://prometheus:port", "http://prometheus:-1",
	}
	entries := append([]string{
		"*", "https://*.example.com/prometheus", "http://*.example.com:9090", "http://*.1.2.3",
		"http://a/..", "http://a/../b", "http://a/b/./c", "http://a//b", "http://a/b%20c", "http://a/b;c", "http://a/*",
		"http://*.10.0.0.1", "http://*.10.0.0.1:80/x", "http://a.*.example.com", "http://*", "http://a..b", "http://a.", "http://.a",
		"http://a:0", "http://a:65535", "http://a:65536/b", "http://a:99999", "http://a/b:99999/",
	}, addresses...)
	for _, address := range addresses {
		agree(t, map[string]any{"prometheus": map[string]any{"address": address}}, address, telemetry.CheckAddress(address, false))
	}
	for _, entry := range entries {
		_, err := telemetry.ParseAllowlist(entry)
		agree(t, map[string]any{"metricsAddressAllow": []string{entry}}, entry, err)
	}
}

// agree has the chart take what the controller takes, and nothing else.
func agree(t *testing.T, values map[string]any, text string, controller error) {
	t.Helper()
	_, err := tryRender(t, values, "--show-only", "templates/deployment.yaml")
	if (err == nil) != (controller == nil) {
		t.Errorf("%q: the chart says %v, and the controller %v", text, err, controller)
	}
}
