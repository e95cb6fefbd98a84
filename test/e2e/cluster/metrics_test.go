package cluster

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// testMetrics reads the controller's metrics as a Prometheus in the cluster would: with
// the token of a service account, which gets them only once it has the role for it.
func testMetrics(t *testing.T) {
	needsOwn(t)
	service := &corev1.Service{}
	must(t, cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: release + "-metrics"}, service), "read the Service of the metrics")
	url := "https://" + net.JoinHostPort(service.Spec.ClusterIP, fmt.Sprint(service.Spec.Ports[0].Port)) + "/metrics"
	kubectl(t, "create", "serviceaccount", "--namespace="+monitoringNamespace, "scraper")
	token := strings.TrimSpace(kubectl(t, "create", "token", "--namespace="+monitoringNamespace, "scraper"))
	ask := func(token string) (int, string) {
		status, body, err := scrape(t, url, token)
		must(t, err, "ask for the metrics")
		return status, body
	}
	if status, _ := ask(""); status != http.StatusUnauthorized {
		t.Errorf("somebody without a token was answered %d, want 401", status)
	}
	if status, _ := ask(token); status != http.StatusForbidden {
		t.Errorf("a service account without the role was answered %d, want 403", status)
	}
	kubectl(t, "create", "clusterrolebinding", "scraper", "--clusterrole="+release+"-metrics-reader", "--serviceaccount="+monitoringNamespace+":scraper")
	eventually(t, "the metrics", func() (bool, string) {
		status, body := ask(token)
		return status == http.StatusOK && strings.Contains(body, "\nweightedrollout_"), fmt.Sprintf("status %d, %d bytes", status, len(body))
	})
}

func scrape(t *testing.T, url, token string) (status int, body string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	// The manager makes its own certificate.
	transport := &http.Transport{DialContext: cluster.own.DialContext, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	resp, err := (&http.Client{Transport: transport, Timeout: patience}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}
