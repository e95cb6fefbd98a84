package diagnose

import "github.com/weightedrollout/weightedrollout/api/v1alpha1"

// Advice says what to do about a reason of the conditions Reconciling, Stalled and Ready;
// it is empty if nothing is to be done.
func Advice(reason string) string { return advice[reason] }

// advice is what a person can do. Reasons that pass by themselves have none.
var advice = map[string]string{
	v1alpha1.ReasonRouteNotConfirmed:    "wait for the gateway; if it takes long, read status.parents of the route: does the gateway report observedGeneration?",
	v1alpha1.ReasonDegraded:             "look at the check that the message names; the share rises again by itself",
	v1alpha1.ReasonBreakerOpen:          "repair the canary before it is tried again, or abort",
	v1alpha1.ReasonAwaitingEvidence:     "if it takes long, give the stage more weight, or lower health.minRequests",
	v1alpha1.ReasonAwaitingApproval:     "give the command approve",
	v1alpha1.ReasonCanaryNotReady:       "look at the canary's pods: it has no ready endpoint",
	v1alpha1.ReasonInsufficientCapacity: "scale the workload that the message names, or set canary.capacity to Scale",
	v1alpha1.ReasonOutsideWindow:        "wait for the window, or give the command skip or promote",
	v1alpha1.ReasonUpdatingStable:       "if it takes long, look at stable's pods",
	v1alpha1.ReasonStableNotReady:       "look at stable's pods: it has no ready endpoint",
	v1alpha1.ReasonPaused:               "set spec.paused to false to go on",
	v1alpha1.ReasonObserving:            "set spec.mode to Enforce to let it write the routes",

	v1alpha1.ReasonInvalidSpec:              "correct the field that the message names",
	v1alpha1.ReasonNoMetricsAddress:         "set health.prometheus.address, or start the controller with --prometheus-address",
	v1alpha1.ReasonMetricsAddressNotAllowed: "use a metrics server that the controller's --metrics-address-allow lists, or have it listed",
	v1alpha1.ReasonRouteMissing:             "create the route, or correct spec.routes",
	v1alpha1.ReasonNoMatchingRule:           "put both backends into one rule; compare names and ports",
	v1alpha1.ReasonDuplicateBackendRef:      "remove one of the two entries of the same backend",
	v1alpha1.ReasonWeightResolution:         "multiply every weight of the rule by the number that the message names",
	v1alpha1.ReasonRouteConflict:            "delete one of the two rollouts, or give them different routes or ruleNames",
	v1alpha1.ReasonPartialRouteConflict:     "delete one of the two rollouts, or give them different routes or ruleNames",
	v1alpha1.ReasonRouteWriteFailed:         "give the controller the right to patch the route, or look at the admission policy that the message names",
	v1alpha1.ReasonStableUnavailable:        "make stable's pods ready: no traffic is moved before",
	v1alpha1.ReasonWeightContention:         "let the other writer leave backendRefs[].weight alone, then give the command resume",
	v1alpha1.ReasonWorkloadMissing:          "create the workload, correct its name, or let the controller read it",
	v1alpha1.ReasonWorkloadWriteFailed:      "grant the right that the message names",
	v1alpha1.ReasonCapacityLimit:            "raise maxReplicas of the autoscaler that the message names",
	v1alpha1.ReasonStableChanged:            "let the other writer keep the revision on stable; or give the command finish once stable runs it, or, after the end, the command retry",
	v1alpha1.ReasonAdoptionAmbiguous:        "give the command retry to start at 0 percent, or finish if stable runs the canary's version",
	v1alpha1.ReasonInvalidStatus:            "give the command retry to start again at 0 percent",

	v1alpha1.ReasonPromoted:                 "update stable to this revision, then give the command finish",
	v1alpha1.ReasonUnhealthy:                "repair the canary and set a new revision; or give the command retry (resume, if the rollout is only stopped) if the cause was elsewhere",
	v1alpha1.ReasonAborted:                  "set another revision, or give the command retry",
	v1alpha1.ReasonRouteNotResolved:         "repair the route or the Services as the gateway's message says, then give the command retry",
	v1alpha1.ReasonProgressDeadlineExceeded: "mend what the message says it waited for, then give the command retry",
	v1alpha1.ReasonNoData:                   noVerdict,
	v1alpha1.ReasonInsufficientRequests:     noVerdict,
	v1alpha1.ReasonStale:                    noVerdict,
	v1alpha1.ReasonProviderError:            noVerdict,
	v1alpha1.ReasonProviderAuth:             noVerdict,
	v1alpha1.ReasonAmbiguousResult:          noVerdict,
	v1alpha1.ReasonUnsupportedResult:        noVerdict,
}

const noVerdict = "mend the metrics, or give the canary more traffic; then give the command retry"
