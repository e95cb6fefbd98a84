package install

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

type alert struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func readAlerts(t *testing.T) []alert {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	if err := yaml.Unmarshal([]byte(readFile(t, chart+"/files/alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// dashboardQueries are the expressions of the panels, with Grafana's variables filled in.
func dashboardQueries(t *testing.T) []string {
	t.Helper()
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(readFile(t, chart+"/files/dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$namespace", ".*", "$name", ".*", "$__rate_interval", "5m")
	var all []string
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all = append(all, fill.Replace(target.Expr))
		}
	}
	return all
}

// served are the names of the controller's metrics.
func served(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{"leader_election_master_status": true} // controller-runtime's own
	for _, m := range regexp.MustCompile("(?m)^\\| `(weightedrollout_\\w+)` \\|").FindAllStringSubmatch(readFile(t, root+"/docs/metrics.md"), -1) {
		names[m[1]] = true
	}
	return names
}

// TestAlertsAndDashboardAskForWhatIsServed looks for each metric among the controller's.
func TestAlertsAndDashboardAskForWhatIsServed(t *testing.T) {
	known := served(t)
	queries := dashboardQueries(t)
	if len(queries) < 10 {
		t.Errorf("the dashboard has %d queries, want more", len(queries))
	}
	alerts := readAlerts(t)
	for _, a := range alerts {
		queries = append(queries, a.Expr)
		if a.For != "" {
			if _, err := time.ParseDuration(a.For); err != nil {
				t.Errorf("%s: %v", a.Alert, err)
			}
		}
		if a.Labels["severity"] == "" || a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s has no severity, summary or description", a.Alert)
		}
	}
	if len(alerts) < 6 {
		t.Errorf("there are %d alerts, want more", len(alerts))
	}
	for _, query := range queries {
		names := regexp.MustCompile(`\b(weightedrollout|leader_election)_\w+`).FindAllString(query, -1)
		if len(names) == 0 {
			t.Errorf("%q asks for none of the controller's metrics", query)
		}
		for _, name := range names {
			if !known[name] {
				t.Errorf("%q asks for %s, which docs/metrics.md does not have", query, name)
			}
		}
	}
}

// series are what a controller could serve: each of these rollouts but the last ones
// has one thing that is wrong.
const series = `
weightedrollout_phase{namespace="shop",name="bad",phase="RolledBack"} 1
weightedrollout_stalled{namespace="shop",name="bad",reason="Unhealthy"} 1
weightedrollout_stalled{namespace="shop",name="stuck",reason="RouteMissing"} 1
weightedrollout_stalled{namespace="shop",name="fought",reason="WeightContention"} 1
weightedrollout_stage_seconds{namespace="shop",name="slow"} 30000
weightedrollout_evaluation_age_seconds{namespace="shop",name="blind"} 400
weightedrollout_stage_seconds{namespace="shop",name="asking"} 30000
weightedrollout_waiting{namespace="shop",name="asking",reason="AwaitingApproval"} 1
weightedrollout_phase{namespace="shop",name="good",phase="Progressing"} 1
weightedrollout_stage_seconds{namespace="shop",name="good"} 60
weightedrollout_evaluation_age_seconds{namespace="shop",name="good"} 10
`

// TestAlertsInPrometheus has a real Prometheus judge these series by the alerts, and read
// the dashboard's queries.
func TestAlertsInPrometheus(t *testing.T) {
	var leader atomic.Bool
	var refusals atomic.Int64
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text := strings.TrimPrefix(series, "\n")
		if leader.Load() {
			text += "leader_election_master_status{name=\"weightedrollout.dev\"} 1\n"
		}
		// What cannot be stored is tried again and again.
		text += fmt.Sprintf("weightedrollout_unrecorded_total{namespace=\"shop\",name=\"refused\"} %d\n", refusals.Add(1))
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, text)
	}))
	defer exporter.Close()
	address := prometheus(t, exporter.Listener.Addr().String())

	rollouts := []string{
		"WeightedRolloutContention shop/fought", "WeightedRolloutMetricsLost shop/blind", "WeightedRolloutRolledBack shop/bad",
		"WeightedRolloutStalled shop/stuck", "WeightedRolloutUnrecorded shop/refused", "WeightedRolloutWithoutProgress shop/slow",
	}
	alerted := func(want []string) func() (bool, string) {
		return func() (bool, string) {
			got, err := alertsOf(t.Context(), address)
			return err == nil && slices.Equal(got, want), fmt.Sprint(got, err)
		}
	}
	eventually(t, "the alerts of these rollouts, and that no controller works", alerted(append([]string{"WeightedRolloutContention shop/fought", "WeightedRolloutControllerDown /"}, rollouts[1:]...)))
	leader.Store(true)
	eventually(t, "the alerts of these rollouts", alerted(rollouts))
	for _, query := range dashboardQueries(t) {
		ask(t, address, query)
	}
}

// prometheus starts a Prometheus that has the chart's alerts and scrapes one target, and
// returns its address.
func prometheus(t *testing.T, target string) string {
	t.Helper()
	alerts, err := filepath.Abs(chart + "/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
  - {job_name: controller, honor_labels: true, static_configs: [{targets: ["%s"]}]}
`, alerts, target)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	logFile, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer logFile.Close() // the process has its own descriptor
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(binDir(), "prometheus"),
		"--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	cmd.Stdout, cmd.Stderr = logFile, logFile
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Logf("Prometheus says:\n%s", readFile(t, logFile.Name()))
		}
	})
	var listen string
	eventually(t, "Prometheus says where it listens", func() (bool, string) {
		log := readFile(t, logFile.Name())
		if found := regexp.MustCompile(`msg="Listening on" .*address=(127\.0\.0\.1:[0-9]+)`).FindStringSubmatch(log); found != nil {
			listen = found[1]
		}
		return listen != "", log
	})
	return "http://" + listen
}

// alertsOf lists the alerts that fire or are about to, sorted.
func alertsOf(ctx context.Context, address string) ([]string, error) {
	var answer struct {
		Data struct {
			Alerts []struct{ Labels map[string]string }
		}
	}
	if err := get(ctx, address+"/api/v1/alerts", &answer); err != nil {
		return nil, err
	}
	var names []string
	for _, a := range answer.Data.Alerts {
		names = append(names, a.Labels["alertname"]+" "+a.Labels["namespace"]+"/"+a.Labels["name"])
	}
	slices.Sort(names)
	return names, nil
}

// ask has Prometheus read a query; the answer may be empty.
func ask(t *testing.T, address, query string) {
	t.Helper()
	var answer struct{ Status, Error string }
	if err := get(t.Context(), address+"/api/v1/query?query="+url.QueryEscape(query), &answer); err != nil || answer.Status != "success" {
		t.Errorf("%q: %s %s (%v)", query, answer.Status, answer.Error, err)
	}
}

func get(ctx context.Context, address string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}
