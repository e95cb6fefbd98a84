package metrics

import (
	"fmt"
	"strings"
)

const documentHead = `# Metrics of the controller

<!-- Generated from internal/metrics: go test ./internal/metrics -update -->

The controller serves these at ` + "`/metrics`" + ` on port 8443, beside those of controller-runtime (` + "`controller_runtime_*`, `workqueue_*`, `rest_client_*`, `leader_election_*`" + `). Who may read them is a right on the API server: bind the ClusterRole ` + "`weightedrollout-metrics-reader`" + ` to the Prometheus' ServiceAccount, or every scrape is answered by 403. With the chart, ` + "`metrics.readers`" + ` binds it, and ` + "`serviceMonitor.enabled`, `prometheusRule.enabled` and `dashboard.enabled`" + ` set up the scraping, the alerts and a Grafana dashboard.

All of them have the labels ` + "`namespace` and `name`" + ` of the rollout (a Prometheus that sets its own ` + "`namespace`" + ` needs ` + "`honorLabels: true`" + `). Only the replica that works tells them, so nothing is counted twice. The gauges are read from the rollouts themselves with every scrape, and vanish with them; the counters begin anew when the controller does.

| metric | type | further labels | what it is | what for |
|---|---|---|---|---|
`

const documentTail = `
## Questions that they answer

| question | query |
|---|---|
| What is being released now? | ` + "`weightedrollout_share_desired_ratio * on (namespace, name) group_left (revision) weightedrollout_info and on (namespace, name) weightedrollout_phase{phase=\"Progressing\"}`" + ` |
| What waits for a person? | ` + "`weightedrollout_phase{phase=\"AwaitingApproval\"} or weightedrollout_stalled`" + ` |
| How often do we roll back? | ` + "`sum(increase(weightedrollout_transitions_total{reason=\"RolledBack\"}[30d]))`" + ` |
| What do releases spend their time on? | ` + "`sum by (reason) (avg_over_time(weightedrollout_waiting[7d]))`" + ` |
| Does the traffic follow the weights? | ` + "`abs(weightedrollout_share_observed_ratio - weightedrollout_share_written_ratio) > 0.05`" + ` |
| Can the metrics server be relied on? | ` + "`sum(rate(weightedrollout_evaluations_total{result=\"failed\"}[1h])) / sum(rate(weightedrollout_evaluations_total[1h]))`" + ` |
`

// Document is docs/metrics.md.
func Document() string {
	var b strings.Builder
	b.WriteString(documentHead)
	for _, d := range Definitions() {
		labels := "–"
		if len(d.Labels) > 0 {
			labels = "`" + strings.Join(d.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", d.Name, d.Kind, labels, d.Help, d.Use)
	}
	b.WriteString(documentTail)
	return b.String()
}
