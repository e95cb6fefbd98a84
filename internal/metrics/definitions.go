// Package metrics is what the controller tells a Prometheus about rollouts. What a
// rollout's status says is read from the objects when the metrics are scraped, so that
// it cannot be out of date and vanishes with the object; what happens is counted.
package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Kind is a metric's type.
type Kind string

const (
	// Gauge goes up and down.
	Gauge Kind = "gauge"
	// Counter only goes up, apart from restarts.
	Counter Kind = "counter"
)

// Definition says what a metric is.
type Definition struct {
	Name string
	Kind Kind
	// Labels that it has beside namespace and name of the rollout.
	Labels []string
	Help   string
	// Use says what it is good for.
	Use string
}

// labels are all labels, those of the rollout first.
func (d Definition) labels() []string { return append([]string{"namespace", "name"}, d.Labels...) }

// desc describes it to Prometheus.
func (d Definition) desc() *prometheus.Desc {
	return prometheus.NewDesc(d.Name, d.Help, d.labels(), nil)
}

// What the status says.
var (
	info     = Definition{"weightedrollout_info", Gauge, []string{"revision", "stable_revision"}, "What is rolled out: always 1.", "Join it to the others to show the revision."}
	desired  = Definition{"weightedrollout_share_desired_ratio", Gauge, nil, "Canary's part of the traffic that the routes are to have, from 0 to 1.", "The record: what the routes must follow."}
	written  = Definition{"weightedrollout_share_written_ratio", Gauge, nil, "Canary's part of the traffic that was last confirmed in the routes, from 0 to 1: the highest, where routes differ.", "Differs from the desired share while a gateway has not taken the weights."}
	observed = Definition{"weightedrollout_share_observed_ratio", Gauge, nil, "Canary's part of the requests, or of the weights where requests cannot tell, when the status was last written, from 0 to 1.", "Differs from the desired share where the traffic does not follow the weights."}
	phase    = Definition{"weightedrollout_phase", Gauge, []string{"phase"}, "1 for the phase that the rollout is in.", "Alert on RolledBack; count what is Progressing."}
	attempt  = Definition{"weightedrollout_attempt", Gauge, nil, "Number of the attempt, from 1.", "Rises with each new revision and each retry."}
	stage    = Definition{"weightedrollout_stage", Gauge, nil, "Number of the stage that an attempt under way is in, from 1.", "Where in the plan it is."}
	inStage  = Definition{"weightedrollout_stage_seconds", Gauge, nil, "Seconds since the stage of an attempt under way began.", "Alert on a stage that takes far longer than its soak."}
	stalled  = Definition{"weightedrollout_stalled", Gauge, []string{"reason"}, "1 while the rollout is Stalled, with the reason: a person must do something.", "Alert on it. A rollback is Stalled as well."}
	waiting  = Definition{"weightedrollout_waiting", Gauge, []string{"reason"}, "1 while the rollout is Reconciling, with the reason: what it waits for.", "sum by (reason) shows what releases spend their time on."}
)

// What the evidence says.
var (
	verdict = Definition{"weightedrollout_verdict", Gauge, []string{"state"}, "1 for the state of the present verdict, while evidence is gathered.", "Live, unlike the snapshot in the status."}
	age     = Definition{"weightedrollout_evaluation_age_seconds", Gauge, nil, "Seconds since the newest tick whose metrics were read, while evidence is gathered.", "Alert on it: metrics are lost."}
)

// What happens.
var (
	transitions   = Definition{"weightedrollout_transitions_total", Counter, []string{"reason"}, "Events of the rollout, by reason.", "Rollbacks per day: increase with reason RolledBack."}
	routeWrites   = Definition{"weightedrollout_route_writes_total", Counter, []string{"result"}, "Writes to routes, by result: written, conflict or failed.", "Conflicts say that somebody else writes the same routes."}
	unrecorded    = Definition{"weightedrollout_unrecorded_total", Counter, nil, "Decisions that could not be stored in the rollout's status.", "Alert on it: what lowers the share is done all the same, and nothing is raised."}
	evaluations   = Definition{"weightedrollout_evaluations_total", Counter, []string{"result"}, "Evaluations, by whether the metrics could be read: read or failed.", "The part that failed is how far the metrics server can be relied on."}
	providerFault = Definition{"weightedrollout_provider_errors_total", Counter, []string{"reason"}, "Evaluations whose metrics could not be read, by reason.", "Tells an outage from refused credentials."}
	notifications = Definition{"weightedrollout_notifications_total", Counter, []string{"result"}, "Notifications about the rollout, by result: sent, failed (given up after the last attempt) or dropped (too many were waiting, or it had waited for over 15 minutes).", "Alert on those that were not sent."}
)

// Definitions returns all metrics of the controller's own, by name.
func Definitions() []Definition {
	all := []Definition{
		info, desired, written, observed, phase, attempt, stage, inStage, stalled, waiting,
		verdict, age, transitions, routeWrites, unrecorded, evaluations, providerFault, notifications,
	}
	slices.SortFunc(all, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	return all
}
