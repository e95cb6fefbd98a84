package v1alpha1

// Condition types.
const (
	// ConditionReady is True when nothing is left to do: the revision is promoted or
	// completed, or stable already runs it. `kubectl wait --for=condition=Ready` works.
	// Reasons: the outcome, or what Reconciling or Stalled say.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the controller works or waits for something
	// that comes by itself, or for an approval.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when a person has to do something.
	ConditionStalled = "Stalled"
	// ConditionRouteAccepted says whether the gateways accept every route and resolve
	// its backends, in the generation that was written last.
	ConditionRouteAccepted = "RouteAccepted"
	// ConditionHealthy says what the evidence says of the track under test.
	ConditionHealthy = "Healthy"
	// ConditionPaused is True while spec.paused, or onUnhealthy.action Pause, holds the
	// rollout.
	ConditionPaused = "Paused"
	// ConditionTrafficMatchesWeights says whether the requests that the gateway counts
	// for the two Services are divided as the weights say.
	ConditionTrafficMatchesWeights = "TrafficMatchesWeights"
)

// Reasons of Reconciling: what is being done or awaited.
const (
	// ReasonStarting: the routes are set to 0 percent before the first stage.
	ReasonStarting = "Starting"
	// ReasonRouteNotConfirmed: the route is written; wait for the gateway, or see the
	// route's status.parents if that takes long.
	ReasonRouteNotConfirmed = "RouteNotConfirmed"
	// ReasonRamping: the share rises towards the stage's weight.
	ReasonRamping = "Ramping"
	// ReasonWarmingUp: the canary is cold, so its share is limited by ramp.warmup.
	ReasonWarmingUp = "WarmingUp"
	// ReasonDegraded: the canary misses a target, or its health score is low, so its
	// share is held or scaled back, and the soak's clock stands still.
	ReasonDegraded = "Degraded"
	// ReasonBreakerOpen: the canary was unhealthy, so stable has all traffic for
	// onUnhealthy.cooldown; then the canary is tried again.
	ReasonBreakerOpen = "BreakerOpen"
	// ReasonSoaking: the stage's soak is running.
	ReasonSoaking = "Soaking"
	// ReasonAwaitingEvidence: time is up, and the verdict does not yet let the share
	// rise. The message names what is awaited.
	ReasonAwaitingEvidence = "AwaitingEvidence"
	// ReasonAwaitingApproval: give the approve command.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonCanaryNotReady: the canary has no ready endpoint; look at its pods.
	ReasonCanaryNotReady = "CanaryNotReady"
	// ReasonInsufficientCapacity: the track whose share is to rise has too few ready
	// replicas for it; the message says how many it has, and how many it needs.
	ReasonInsufficientCapacity = "InsufficientCapacity"
	// ReasonOutsideWindow: the share may be raised only in one of plan.windows; the
	// message says when the next one begins. Say skip or promote not to wait for it.
	ReasonOutsideWindow = "OutsideWindow"
	// ReasonUpdatingStable: stable's workload is given the canary's pod template, and
	// rolls out; look at its pods if that takes long.
	ReasonUpdatingStable = "UpdatingStable"
	// ReasonStableNotReady: the updated stable has no ready endpoint, so the traffic
	// cannot go back to it yet; look at its pods.
	ReasonStableNotReady = "StableNotReady"
	// ReasonReturning: the share ramps back to the updated stable.
	ReasonReturning = "Returning"
	// ReasonDeleting: the routes are being made safe before the object goes.
	ReasonDeleting = "Deleting"
	// ReasonPaused: set spec.paused to false to go on.
	ReasonPaused = "Paused"
	// ReasonObserving: spec.mode is Observe, so nothing is written.
	ReasonObserving = "Observing"
)

// Reasons of Stalled: what a person has to put right.
const (
	// ReasonInvalidSpec: the spec cannot be carried out; the message names the field.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNoMetricsAddress: set health.prometheus.address, or start the controller
	// with --prometheus-address.
	ReasonNoMetricsAddress = "NoMetricsAddress"
	// ReasonMetricsAddressNotAllowed: the controller was not started to ask this metrics
	// server; use one that --metrics-address-allow lists, or have it listed.
	ReasonMetricsAddressNotAllowed = "MetricsAddressNotAllowed"
	// ReasonRouteMissing: the route does not exist; create it or correct its name.
	ReasonRouteMissing = "RouteMissing"
	// ReasonNoMatchingRule: no rule of the route holds both backends.
	ReasonNoMatchingRule = "NoMatchingRule"
	// ReasonDuplicateBackendRef: a rule lists one of the backends twice; remove one.
	ReasonDuplicateBackendRef = "DuplicateBackendRef"
	// ReasonWeightResolution: the sum of the pair's weights is too small for the
	// stage's share; the message says which sum would do.
	ReasonWeightResolution = "WeightResolution"
	// ReasonRouteConflict: an older rollout manages the same rule; the message names it.
	ReasonRouteConflict = "RouteConflict"
	// ReasonPartialRouteConflict: an older rollout manages some of the rules; the message
	// names it. The share is held in the others.
	ReasonPartialRouteConflict = "PartialRouteConflict"
	// ReasonRouteWriteFailed: the API server refused the write to a route.
	ReasonRouteWriteFailed = "RouteWriteFailed"
	// ReasonStableUnavailable: stable has no ready endpoint, so no traffic is moved.
	ReasonStableUnavailable = "StableUnavailable"
	// ReasonWeightContention: another writer keeps changing the weights, so they are not
	// raised any more. The message names its field manager: let it leave the weights
	// alone (docs/gitops.md), and say resume.
	ReasonWeightContention = "WeightContention"
	// ReasonWorkloadMissing: a workload that the spec names cannot be read: create it,
	// correct its name, or allow the controller to read it.
	ReasonWorkloadMissing = "WorkloadMissing"
	// ReasonWorkloadWriteFailed: a workload cannot be scaled or updated; the message says
	// why, and which right is missing.
	ReasonWorkloadWriteFailed = "WorkloadWriteFailed"
	// ReasonCapacityLimit: the replicas that the next share needs are more than the
	// autoscaler's maxReplicas; raise those.
	ReasonCapacityLimit = "CapacityLimit"
	// ReasonStableChanged: stable had the revision, and was changed again by another
	// writer: let it keep the revision; say finish once it runs it, or retry after the end.
	ReasonStableChanged = "StableChanged"
	// ReasonAdoptionAmbiguous: the route gives the canary most of the traffic and there
	// is no record of why. Say retry to start at 0, or finish if the canary's version
	// has been proved.
	ReasonAdoptionAmbiguous = "AdoptionAmbiguous"
	// ReasonInvalidStatus: the record in status does not add up; retry starts again.
	ReasonInvalidStatus = "InvalidStatus"
)

// Reasons for the end of an attempt.
const (
	// ReasonPromoted: every gate passed.
	ReasonPromoted = "Promoted"
	// ReasonCompleted: stable runs the revision and serves everything.
	ReasonCompleted = "Completed"
	// ReasonUnhealthy: a check failed for onUnhealthy.for; the message names it. With
	// onUnhealthy.action Pause the rollout is Stalled for this reason: say resume or
	// abort.
	ReasonUnhealthy = "Unhealthy"
	// ReasonAborted: a person aborted the attempt.
	ReasonAborted = "Aborted"
	// ReasonRouteNotResolved: a gateway rejected the route or could not resolve its
	// backends for onUnhealthy.for.
	ReasonRouteNotResolved = "RouteNotResolved"
	// ReasonProgressDeadlineExceeded: the rollout came no further for
	// spec.progressDeadline, or without one was degraded for 4h; the message says what it
	// waited for.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonSuperseded: another revision took its place.
	ReasonSuperseded = "Superseded"
	// ReasonStableRevision: the spec names the revision that stable runs.
	ReasonStableRevision = "StableRevision"
)

// Reasons of RouteAccepted.
const (
	// ReasonAccepted: every gateway takes the route in its present generation.
	ReasonAccepted = "Accepted"
	// ReasonNotAccepted: a gateway does not accept the route; the message is its own.
	ReasonNotAccepted = "NotAccepted"
	// ReasonNotResolved: a gateway cannot resolve a backend; the message is its own.
	ReasonNotResolved = "NotResolved"
)

// Reasons of TrafficMatchesWeights.
const (
	// ReasonTrafficMatches: the requests are divided as the weights say, as exactly as
	// their number can tell.
	ReasonTrafficMatches = "TrafficMatches"
	// ReasonTrafficDiffers: the requests are not divided as the weights say; see
	// `kubectl weightedrollout diagnose`.
	ReasonTrafficDiffers = "TrafficDiffers"
	// ReasonTrafficNotMeasured: it cannot be told; the message says why.
	ReasonTrafficNotMeasured = "TrafficNotMeasured"
)

// Reasons of a verdict.
const (
	// ReasonChecksPassed: every check passed on enough requests.
	ReasonChecksPassed = "ChecksPassed"
	// ReasonChecksDisabled: health.disabled is true.
	ReasonChecksDisabled = "ChecksDisabled"
	// ReasonBreach: a limit is exceeded beyond doubt.
	ReasonBreach = "Breach"
	// ReasonAboveLimit: since the share was confirmed more requests failed, or were slow,
	// than the limit allows, though not beyond doubt, or not in the newest window. It
	// holds the share, and is no breach.
	ReasonAboveLimit = "AboveLimit"
	// ReasonAboveTarget: the error rate or the response time is above its target, though
	// not above its limit.
	ReasonAboveTarget = "AboveTarget"
	// ReasonLowScore: the health score is below health.degradedBelow.
	ReasonLowScore = "LowScore"
	// ReasonTrendingUp: no limit is exceeded yet, but the response times rise so that
	// latency.max will be by the time of the next step.
	ReasonTrendingUp = "TrendingUp"
	// ReasonWorseThanStable: the canary's requests fail, or are slow, more often than
	// those of stable, beyond doubt. It is Unhealthy at once.
	ReasonWorseThanStable = "WorseThanStable"
	// ReasonNotProven: health.require is NotWorse, and it is not proven yet that the
	// canary is not worse than stable. The message says about how many requests that
	// takes.
	ReasonNotProven = "NotProven"
	// ReasonAwaitingWindow: no full window has passed since the share was confirmed.
	ReasonAwaitingWindow = "AwaitingWindow"
	// ReasonNoData: the query gave no series, or NaN.
	ReasonNoData = "NoData"
	// ReasonInsufficientRequests: fewer canary requests than needed.
	ReasonInsufficientRequests = "InsufficientRequests"
	// ReasonAmbiguousResult: the query gave several series; aggregate them.
	ReasonAmbiguousResult = "AmbiguousResult"
	// ReasonUnsupportedResult: the query gave something that is not a number.
	ReasonUnsupportedResult = "UnsupportedResult"
	// ReasonStale: the newest sample is too old.
	ReasonStale = "Stale"
	// ReasonProviderError: the metrics server failed or could not be reached.
	ReasonProviderError = "ProviderError"
	// ReasonProviderAuth: the metrics server refused the credentials.
	ReasonProviderAuth = "ProviderAuth"
)

// Reasons of events that are not also condition reasons.
const (
	// ReasonAttemptStarted: a walk through the plan begins.
	ReasonAttemptStarted = "AttemptStarted"
	// ReasonShareRaised: the canary's share was raised.
	ReasonShareRaised = "ShareRaised"
	// ReasonShareLowered: the canary's share was lowered.
	ReasonShareLowered = "ShareLowered"
	// ReasonStageStarted: a stage of the plan begins.
	ReasonStageStarted = "StageStarted"
	// ReasonRolledBack: stable has all traffic again.
	ReasonRolledBack = "RolledBack"
	// ReasonDrift: somebody else changed the weights.
	ReasonDrift = "WeightsChanged"
	// ReasonRouteReplaced: the route was deleted and made again.
	ReasonRouteReplaced = "RouteReplaced"
	// ReasonPlanChanged: the plan was edited in mid-way.
	ReasonPlanChanged = "PlanChanged"
	// ReasonCommandAccepted: a command was carried out.
	ReasonCommandAccepted = "CommandAccepted"
	// ReasonCommandIgnored: a command did not apply; the message says why.
	ReasonCommandIgnored = "CommandIgnored"
	// ReasonPodsReplaced: every pod of the canary was replaced in mid-stage, so that it is
	// cold.
	ReasonPodsReplaced = "PodsReplaced"
	// ReasonStableUndersized: traffic went back to stable, which has fewer ready replicas
	// than that takes; scale it.
	ReasonStableUndersized = "StableUndersized"
	// ReasonSharedPods: the two Services pick the same pods, so that stable's pods get the
	// canary's traffic; correct their selectors.
	ReasonSharedPods = "SharedPods"
	// ReasonScaled: replicas were raised for the next share, or given back.
	ReasonScaled = "Scaled"
	// ReasonStableUpdated: stable's workload was given the canary's pod template.
	ReasonStableUpdated = "StableUpdated"
	// ReasonMetricsNotVerified: the metrics server's certificate is not verified, since
	// health.prometheus.tls.insecureSkipVerify is true.
	ReasonMetricsNotVerified = "MetricsNotVerified"
	// ReasonVerdictChanged: the verdict on the canary changed.
	ReasonVerdictChanged = "VerdictChanged"
)
