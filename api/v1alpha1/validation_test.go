package v1alpha1_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// minimal is the least that the API server takes.
const minimal = `
revision: "2.4.1"
routes: [{name: checkout}]
stable: {service: checkout-stable, port: 8080}
canary: {service: checkout-canary, port: 8080}
health: {preset: Traefik, errorRate: {maxPercent: 1}}
`

// defaulted is what the API server makes of it: every default of the API.
const defaulted = `
revision: "2.4.1"
mode: Enforce
routes: [{kind: HTTPRoute, name: checkout}]
stable: {service: checkout-stable, port: 8080}
canary: {service: checkout-canary, port: 8080, capacity: Check}
plan:
  stages:
  - {weight: 1, soak: 30m, approval: None}
  - {weight: 5, soak: 30m, approval: None}
  - {weight: 10, soak: 30m, approval: None}
  - {weight: 20, soak: 30m, approval: None}
  - {weight: 50, soak: 30m, approval: None}
ramp: {minIncrease: 1, maxIncrease: 10, maxChangePercent: 20, interval: 1m, warmup: {initialPercent: 30, soak: 10m, incrementPercent: 20}}
health:
  preset: Traefik
  window: 1m
  interval: 15s
  sampleDelay: 15s
  minRequests: 100
  minRampRequests: 20
  errorRate: {maxPercent: 1, penalty: 2}
  degradedBelow: "0.9"
  confidence: 95
  require: NoBreach
  onNoData: Hold
  noDataTimeout: 1h
onUnhealthy: {action: Rollback, for: 1m}
promotion: {mode: Await}
onDelete: Restore
`

func TestDefaults(t *testing.T) {
	got := apply(t, newRollout(t, minimal))
	if diff := cmp.Diff(values(t, defaulted), got.Object["spec"]); diff != "" {
		t.Errorf("the defaulted spec differs (-want +got):\n%s", diff)
	}
	got = apply(t, newRollout(t, edited(t, `health: {latency: {max: 500ms}}`)))
	if percentile, _, _ := unstructured.NestedInt64(got.Object, "spec", "health", "latency", "percentile"); percentile != 99 {
		t.Errorf("health.latency.percentile = %d, want 99", percentile)
	}
}

// TestRejected shows that what cannot work is refused with one sentence that names
// the field and says what to do.
func TestRejected(t *testing.T) {
	const (
		notPercent  = `must be a percentage from 0 to 100, written as an integer (5) or as a decimal string with up to two places ("0.5"), without a percent sign`
		notDecimal  = `must be a number, written as an integer (3) or as a decimal string ("0.25")`
		notRising   = `the weights of plan.stages must rise strictly from stage to stage: put them in rising order and remove repeated ones`
		noTraffic   = `the weight of a stage must be above 0, since a canary without traffic proves nothing: raise the weight or remove the stage`
		badSoak     = `soak must be a duration from 1s to 720h, such as 30m or 1h30m`
		unseen      = `the soak of a stage is shorter than spec.health.interval, so the stage would end unmeasured: lengthen plan.stages[].soak or shorten health.interval`
		noCheck     = `health has no check, so nothing could ever be told about the canary: set health.errorRate, health.latency or health.checks, or say health.disabled: true`
		noPreset    = `health.preset is required by health.errorRate and health.latency: name the gateway whose metrics are to be read, such as Traefik`
		notMultiple = `health.window must be a whole multiple of health.interval, such as a window of 1m and an interval of 15s`
		badVariable = `query uses an unknown variable: only {{namespace}}, {{service}}, {{route}} and {{window}} can be used, written exactly so`
		badName     = `the name of a check must be lower-case letters, digits and '-', such as queue-depth`
		badAddress  = `health.prometheus.address must be an http or https URL without user name, password or query, such as http://prometheus.monitoring:9090`
		minAboveMax = `ramp.minIncrease (default 1) is above ramp.maxIncrease (default 10): lower minIncrease or raise maxIncrease`
		sameBackend = `spec.stable and spec.canary name the same Service and port: traffic cannot be divided between a backend and itself; give one of them another Service or port`
		noService   = `service is required: name the Service that the route's backendRefs refer to`
		noPort      = `port is required: give the Service port that the route's backendRefs refer to, such as 8080`
		noQuery     = `query is required: give a PromQL expression that yields one number`
	)
	stage := "spec.plan.stages[0]"
	check := "spec.health.checks[0]"
	tests := []struct {
		name, edit  string
		field, says string
	}{
		// The tracks.
		{"no revision and no workload", `{revision: null}`, "spec", `spec.revision is required: name the version that the canary runs, such as "2.4.1"; changing it starts a rollout. Or name the canary's Deployment or StatefulSet in spec.canary.workload, and the revision follows from its pod template`},
		{"no revision, and a workload without a template", `{revision: null, canary: {workload: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: a}}}`, "spec", `spec.revision is required: name the version that the canary runs, such as "2.4.1"; changing it starts a rollout. Or name the canary's Deployment or StatefulSet in spec.canary.workload, and the revision follows from its pod template`},
		{"a workload without a name", `{canary: {workload: {kind: Deployment}}}`, "spec.canary.workload", `name is required: name the Deployment, StatefulSet or other scalable object that runs the pods`},
		{"a Deployment of another group", `{canary: {workload: {apiVersion: extensions/v1beta1, name: a}}}`, "spec.canary.workload", `a Deployment or StatefulSet has apiVersion apps/v1: leave apiVersion out`},
		{"no apiVersion", `{canary: {workload: {apiVersion: "apps", kind: Rollout, name: a}}}`, "spec.canary.workload.apiVersion", `apiVersion must be a group and version, such as apps/v1`},
		{"no kind", `{canary: {workload: {kind: deployments, name: a}}}`, "spec.canary.workload.kind", `kind must be the name of a kind, such as Deployment`},
		{"a workload of another namespace", `{canary: {namespace: other, workload: {name: a}}}`, "spec.canary", `workload is looked for in the rollout's own namespace only: remove workload, or namespace`},
		{"stable's workload of another namespace", `{stable: {namespace: other, workload: {name: a}}}`, "spec.stable", `workload is looked for in the rollout's own namespace only: remove workload, or namespace`},
		{"scale one workload", `{canary: {capacity: Scale, workload: {name: a}}}`, "spec", `canary.capacity Scale needs canary.workload, a Deployment or StatefulSet to be scaled, and stable.workload, whose replicas say how many a share takes: name both, or use capacity Check`},
		{"update stable without workloads", `{promotion: {mode: UpdateStable}}`, "spec", `promotion.mode UpdateStable copies the canary's pod template to stable, so stable.workload and canary.workload must name two Deployments or StatefulSets: name both, or use mode Await`},
		{"update stable by itself", `{promotion: {mode: UpdateStable}, stable: {workload: {name: a}}, canary: {workload: {name: a}}}`, "spec", `promotion.mode UpdateStable copies the canary's pod template to stable, so stable.workload and canary.workload must name two Deployments or StatefulSets: name both, or use mode Await`},
		{"no capacity of this kind", `{canary: {capacity: Guess}}`, "spec.canary.capacity", `Unsupported value: "Guess"`},
		// Times.
		{"deadline 0s", `{progressDeadline: 0s}`, "spec.progressDeadline", `progressDeadline must be a duration from 1s to 720h, such as 24h`},
		{"deadline without unit", `{progressDeadline: "24"}`, "spec.progressDeadline", `progressDeadline must be a duration from 1s to 720h, such as 24h`},
		{"window at 24:00", `{plan: {windows: [{from: "24:00"}]}}`, "spec.plan.windows[0].from", `from must be a time of day from "00:00" to "23:59", such as "09:00"`},
		{"window to 25:00", `{plan: {windows: [{to: "25:00"}]}}`, "spec.plan.windows[0].to", `to must be a time of day from "00:00" to "24:00", such as "17:00"`},
		{"window at 9 o'clock", `{plan: {windows: [{from: "9:00"}]}}`, "spec.plan.windows[0].from", `from must be a time of day from "00:00" to "23:59", such as "09:00"`},
		{"window without time", `{plan: {windows: [{from: "09:00", to: "09:00"}]}}`, "spec.plan.windows[0]", `from and to of a window are the same, which leaves no time in it: leave both out for the whole day`},
		{"window on a holiday", `{plan: {windows: [{days: [Monday]}]}}`, "spec.plan.windows[0].days[0]", `Unsupported value: "Monday"`},
		{"window of a path", `{plan: {windows: [{timeZone: ../etc/passwd}]}}`, "spec.plan.windows[0].timeZone", `timeZone must be a name of the IANA time zone database, such as Europe/Berlin or UTC`},
		{"window of the machine", `{plan: {windows: [{timeZone: Local}]}}`, "spec.plan.windows[0].timeZone", `timeZone must be a name of the IANA time zone database, such as Europe/Berlin or UTC`},
		// The plan.
		{"falling weights", `plan: {stages: [{weight: 20}, {weight: 5}]}`, "spec.plan.stages", notRising},
		{"repeated weights", `plan: {stages: [{weight: 5}, {weight: 5}]}`, "spec.plan.stages", notRising},
		{"the same weight written otherwise", `plan: {stages: [{weight: 5}, {weight: "5.0"}]}`, "spec.plan.stages", notRising},
		{"weight 0", `plan: {stages: [{weight: 0}]}`, stage + ".weight", noTraffic},
		{"weight 0.00", `plan: {stages: [{weight: "0.00"}]}`, stage + ".weight", noTraffic},
		{"weight 101", `plan: {stages: [{weight: 101}]}`, stage + ".weight", notPercent},
		{"weight 2^31", `plan: {stages: [{weight: 2147483648}]}`, stage + ".weight", notPercent},
		{"weight 100.01", `plan: {stages: [{weight: "100.01"}]}`, stage + ".weight", notPercent},
		{"weight with a percent sign", `plan: {stages: [{weight: "5%"}]}`, stage + ".weight", notPercent},
		{"weight with a percent sign among others", `plan: {stages: [{weight: "5%"}, {weight: 10}]}`, stage + ".weight", notPercent},
		{"weight in words", `plan: {stages: [{weight: "5 percent"}]}`, stage + ".weight", notPercent},
		{"weight -1", `plan: {stages: [{weight: -1}]}`, stage + ".weight", notPercent},
		{"weight 5.255", `plan: {stages: [{weight: "5.255"}]}`, stage + ".weight", notPercent},
		{"weight empty", `plan: {stages: [{weight: ""}]}`, stage + ".weight", notPercent},
		{"weight 5.5 without quotes", `plan: {stages: [{weight: 5.5}]}`, stage + ".weight", `must be of type integer,string: "number"`},
		{"weight missing", `plan: {stages: [{soak: 30m}]}`, stage, `weight is required: give the canary's share of the traffic in percent, such as 5`},
		{"no stage", `plan: {stages: []}`, "spec.plan.stages", `plan.stages is empty: give at least one stage, as in [{weight: 10, soak: 30m}], or leave it out for the default plan`},
		{"21 stages", `plan: {stages: [` + stages(21) + `]}`, "spec.plan.stages", "must have at most 20 items"},
		{"soak 0s", `plan: {stages: [{weight: 5, soak: 0s}]}`, stage + ".soak", badSoak},
		{"soak -5m", `plan: {stages: [{weight: 5, soak: -5m}]}`, stage + ".soak", badSoak},
		{"soak empty", `plan: {stages: [{weight: 5, soak: ""}]}`, stage + ".soak", badSoak},
		{"soak without unit", `plan: {stages: [{weight: 5, soak: "5"}]}`, stage + ".soak", badSoak},
		{"soak as a number", `plan: {stages: [{weight: 5, soak: 5}]}`, stage + ".soak", `must be of type string: "integer"`},
		{"soak in words", `plan: {stages: [{weight: 5, soak: 5 minutes}]}`, stage + ".soak", badSoak},
		{"soak with a point", `plan: {stages: [{weight: 5, soak: 1.5h}]}`, stage + ".soak", badSoak},
		{"soak 9999999h", `plan: {stages: [{weight: 5, soak: 9999999h}]}`, stage + ".soak", badSoak},
		{"soak 721h", `plan: {stages: [{weight: 5, soak: 721h}]}`, stage + ".soak", badSoak},
		{"unknown approval", `plan: {stages: [{weight: 5, approval: Maybe}]}`, stage + ".approval", `supported values: "None", "Required"`},
		{"soak below health.interval", `plan: {stages: [{weight: 5}, {weight: 10, soak: 10s}]}`, "spec", unseen},
		{"health.interval above a soak", `{plan: {stages: [{weight: 5, soak: 1m}]}, health: {interval: 2m, window: 2m}}`, "spec", unseen},

		// The ramp.
		{"minIncrease above maxIncrease", `ramp: {minIncrease: 11}`, "spec.ramp", minAboveMax},
		{"maxIncrease below minIncrease", `ramp: {maxIncrease: "0.5"}`, "spec.ramp", minAboveMax},
		{"minIncrease 0", `ramp: {minIncrease: 0}`, "spec.ramp.minIncrease", `ramp.minIncrease must be above 0, or the share would never rise: raise it, or leave it out for 1`},
		{"minIncrease 0.00", `ramp: {minIncrease: "0.00"}`, "spec.ramp.minIncrease", `ramp.minIncrease must be above 0`},
		{"maxIncrease 0", `ramp: {maxIncrease: 0}`, "spec.ramp.maxIncrease", `ramp.maxIncrease must be above 0, or the share would never rise: raise it, or leave it out for 10`},
		{"maxIncrease 1000", `ramp: {maxIncrease: 1000}`, "spec.ramp.maxIncrease", notPercent},
		{"maxIncrease -1", `ramp: {maxIncrease: -1}`, "spec.ramp.maxIncrease", notPercent},
		{"maxChangePercent 0", `ramp: {maxChangePercent: 0}`, "spec.ramp.maxChangePercent", `ramp.maxChangePercent must be above 0: raise it, or leave it out for 20`},
		{"warmup.initialPercent 0", `ramp: {warmup: {initialPercent: 0}}`, "spec.ramp.warmup.initialPercent", `ramp.warmup.initialPercent must be above 0, since a canary without traffic never warms up: raise it, or leave it out for 30; 100 switches the warm-up off`},
		{"warmup.initialPercent with a percent sign", `ramp: {warmup: {initialPercent: "30%"}}`, "spec.ramp.warmup.initialPercent", notPercent},
		{"warmup.incrementPercent 0.0", `ramp: {warmup: {incrementPercent: "0.0"}}`, "spec.ramp.warmup.incrementPercent", `ramp.warmup.incrementPercent must be above 0, or the canary would never warm up: raise it, or leave it out for 20`},
		{"warmup.soak 25h", `ramp: {warmup: {soak: 25h}}`, "spec.ramp.warmup.soak", `ramp.warmup.soak must be a duration from 0s to 24h, such as 10m`},
		{"ramp.interval 1ms", `ramp: {interval: 1ms}`, "spec.ramp.interval", `ramp.interval must be a duration from 1s to 24h, such as 1m`},

		// The backends and routes.
		{"one backend for both", `canary: {service: checkout-stable}`, "spec", sameBackend},
		{"stable missing", `stable: null`, "spec", `spec.stable is required: name the Service and port of the version that serves now`},
		{"canary missing", `canary: null`, "spec", `spec.canary is required: name the Service and port of the version under test`},
		{"service missing", `stable: {service: null}`, "spec.stable", noService},
		{"service empty", `canary: {service: ""}`, "spec.canary", noService},
		{"port missing", `stable: {port: null}`, "spec.stable", noPort},
		{"port 0", `canary: {port: 0}`, "spec.canary.port", `should be greater than or equal to 1`},
		{"port by name", `canary: {port: http}`, "spec.canary.port", `must be of type integer: "string"`},
		{"revision missing", `revision: null`, "spec", `spec.revision is required: name the version that the canary runs, such as "2.4.1"; changing it starts a rollout`},
		{"revision empty", `revision: ""`, "spec", `spec.revision is required`},
		{"revision without quotes", `revision: 2.4`, "spec.revision", `must be of type string: "number"`},
		{"routes missing", `routes: null`, "spec", `spec.routes is required: name the HTTPRoute or GRPCRoute whose weights are to be managed, as in routes: [{name: checkout}]`},
		{"routes empty", `routes: []`, "spec", `spec.routes is required`},
		{"route without a name", `routes: [{}]`, "spec.routes[0]", `name is required: name the route whose weights are to be managed`},
		{"the same route twice", `routes: [{name: a}, {name: a}]`, "spec.routes[1]", `Duplicate value: {"kind":"HTTPRoute","name":"a"}`},
		{"nine routes", `routes: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}, {name: f}, {name: g}, {name: h}, {name: i}]`, "spec.routes", `must have at most 8 items`},
		{"a kind of route that is not supported", `routes: [{kind: TCPRoute, name: a}]`, "spec.routes[0].kind", `supported values: "HTTPRoute", "GRPCRoute"`},

		// Health.
		{"health missing", `health: null`, "spec", `spec.health is required: set health.errorRate, health.latency or health.checks, or say health.disabled: true to run without any check`},
		{"health without a check", `health: {errorRate: null}`, "spec.health", noCheck},
		{"health with an empty list of checks", `health: {errorRate: null, checks: []}`, "spec.health", noCheck},
		{"health that is not disabled and has no check", `health: {errorRate: null, disabled: false}`, "spec.health", noCheck},
		{"errorRate without preset", `health: {preset: null}`, "spec.health", noPreset},
		{"latency without preset", `health: {preset: null, errorRate: null, latency: {max: 500ms}}`, "spec.health", noPreset},
		{"unknown preset", `health: {preset: Nginx}`, "spec.health.preset", `supported values: "Traefik", "Istio", "Linkerd", "Pods"`},
		{"maxPercent missing", `health: {errorRate: {maxPercent: null}}`, "spec.health.errorRate", `maxPercent is required: give the highest error rate in percent that is still acceptable, such as 1 or "0.5"`},
		{"maxPercent with a percent sign", `health: {errorRate: {maxPercent: "1%"}}`, "spec.health.errorRate.maxPercent", notPercent},
		{"latency without max", `health: {latency: {percentile: 99}}`, "spec.health.latency", `max is required: give the longest acceptable response time at the percentile, such as 500ms`},
		{"latency.max 0s", `health: {latency: {max: 0s}}`, "spec.health.latency.max", `latency.max must be a duration from 1ms to 10m, such as 500ms`},
		{"percentile 100", `health: {latency: {max: 500ms, percentile: 100}}`, "spec.health.latency.percentile", `latency.percentile must be at least 50 and below 100, such as 99`},
		{"percentile 49", `health: {latency: {max: 500ms, percentile: 49}}`, "spec.health.latency.percentile", `latency.percentile must be at least 50`},
		{"window not a multiple of interval", `health: {window: 50s}`, "spec.health", notMultiple},
		{"window below interval", `health: {window: 10s}`, "spec.health", notMultiple},
		{"window 0s", `health: {window: 0s}`, "spec.health.window", `health.window must be a duration from 1s to 1h, such as 1m`},
		{"interval 0s", `health: {interval: 0s}`, "spec.health.interval", `health.interval must be a duration from 1s to 1h, such as 15s`},
		{"interval 500ms", `health: {interval: 500ms}`, "spec.health.interval", `health.interval must be a duration from 1s to 1h`},
		{"sampleDelay -1s", `health: {sampleDelay: -1s}`, "spec.health.sampleDelay", `health.sampleDelay must be a duration from 0s to 10m, such as 15s`},
		{"minRequests 0", `health: {minRequests: 0}`, "spec.health.minRequests", `should be greater than or equal to 1`},
		{"errorRate.targetPercent above maxPercent", `health: {errorRate: {targetPercent: 2, maxPercent: "1.5"}}`, "spec.health.errorRate", `errorRate.targetPercent is above errorRate.maxPercent: the target must be the lower of the two`},
		{"errorRate.targetPercent with a percent sign", `health: {errorRate: {targetPercent: "1%"}}`, "spec.health.errorRate.targetPercent", notPercent},
		{"errorRate.penalty 5", `health: {errorRate: {penalty: 5}}`, "spec.health.errorRate.penalty", `errorRate.penalty must be from 1 to 3, such as 2: a larger one makes recovery a long climb`},
		{"errorRate.penalty 0.5", `health: {errorRate: {penalty: "0.5"}}`, "spec.health.errorRate.penalty", `errorRate.penalty must be from 1 to 3`},
		{"errorRate.penalty in words", `health: {errorRate: {penalty: two}}`, "spec.health.errorRate.penalty", notDecimal},
		{"latency.target above max", `health: {latency: {max: 500ms, target: 1s}}`, "spec.health.latency", `latency.target is above latency.max: the target must be the shorter of the two`},
		{"latency.target 0s", `health: {latency: {max: 500ms, target: 0s}}`, "spec.health.latency.target", `latency.target must be a duration from 1ms to 10m, such as 400ms`},
		{"latency.smoothing 0.5", `health: {latency: {max: 500ms, smoothing: "0.5"}}`, "spec.health.latency.smoothing", `latency.smoothing must be from 0.1 to 0.3, such as "0.2"`},
		{"latency.smoothing 1", `health: {latency: {max: 500ms, smoothing: 1}}`, "spec.health.latency.smoothing", `latency.smoothing must be from 0.1 to 0.3`},
		{"latency.penalty -1", `health: {latency: {max: 500ms, penalty: -1}}`, "spec.health.latency.penalty", `latency.penalty must be from 0 to 3, such as "0.5"`},
		{"degradedBelow 0.1", `health: {degradedBelow: "0.1"}`, "spec.health.degradedBelow", `health.degradedBelow must be from 0.2, the lowest score, to 1, such as "0.9"`},
		{"degradedBelow 2", `health: {degradedBelow: 2}`, "spec.health.degradedBelow", `health.degradedBelow must be from 0.2`},
		{"errorRate.maxAboveStablePercent 0", `health: {errorRate: {maxAboveStablePercent: 0}}`, "spec.health.errorRate.maxAboveStablePercent", `errorRate.maxAboveStablePercent must be above 0, such as "0.5"`},
		{"errorRate.maxAboveStablePercent with a percent sign", `health: {errorRate: {maxAboveStablePercent: "1%"}}`, "spec.health.errorRate.maxAboveStablePercent", notPercent},
		{"latency.maxRatioToStable 1", `health: {latency: {max: 500ms, maxRatioToStable: 1}}`, "spec.health.latency.maxRatioToStable", `latency.maxRatioToStable must be above 1 and at most 100, such as "1.2"`},
		{"latency.maxRatioToStable 0.5", `health: {latency: {max: 500ms, maxRatioToStable: "0.5"}}`, "spec.health.latency.maxRatioToStable", `latency.maxRatioToStable must be above 1`},
		{"confidence 100", `health: {confidence: 100}`, "spec.health.confidence", `health.confidence must be from 80 to "99.9" percent, such as 95`},
		{"confidence 79.99", `health: {confidence: "79.99"}`, "spec.health.confidence", `health.confidence must be from 80`},
		{"confidence as a part", `health: {confidence: "0.95"}`, "spec.health.confidence", `health.confidence must be from 80`},
		{"a requirement that is not known", `health: {require: Better}`, "spec.health.require", `supported values: "NoBreach", "NotWorse"`},
		{"NotWorse without requests", `health: {require: NotWorse, errorRate: null, checks: [{name: a, query: up, max: 1}]}`, "spec.health", `health.require NotWorse compares requests with those of stable: set health.errorRate or health.latency, or require NoBreach`},
		{"onNoData that is not known", `health: {onNoData: Promote}`, "spec.health.onNoData", `supported values: "Hold", "Rollback"`},
		{"onNoData Rollback too soon", `health: {onNoData: Rollback, noDataTimeout: 1m}`, "spec.health", `health.noDataTimeout is too short for a first verdict, so that every canary would be rolled back: it must be at least twice health.window plus health.sampleDelay`},
		{"NotWorse by nothing", `health: {require: NotWorse, errorRate: {maxPercent: 0}}`, "spec.health", `health.require NotWorse could never be proven within errorRate.maxPercent 0: give a margin in errorRate.maxAboveStablePercent, such as "0.1"`},
		{"NotWorse by 0.00", `health: {require: NotWorse, errorRate: {maxPercent: "0.00"}}`, "spec.health", `health.require NotWorse could never be proven`},
		{"noDataTimeout 0s", `health: {noDataTimeout: 0s}`, "spec.health.noDataTimeout", `health.noDataTimeout must be a duration from 1s to 720h, such as 1h`},
		{"importance -1", `health: {checks: [{name: a, query: up, max: 1, importance: -1}]}`, check + ".importance", `importance must be from 0 to 100, such as "0.5"`},
		{"importance 101", `health: {checks: [{name: a, query: up, max: 1, importance: 101}]}`, check + ".importance", `importance must be from 0 to 100`},
		{"an action that is not known", `onUnhealthy: {action: Explode}`, "spec.onUnhealthy.action", `supported values: "Rollback", "Pause", "Break"`},
		{"cooldown without Break", `onUnhealthy: {cooldown: 5m}`, "spec.onUnhealthy", `onUnhealthy.cooldown and onUnhealthy.maxTrips belong to action Break: set action: Break, or remove them`},
		{"maxTrips without Break", `onUnhealthy: {action: Pause, maxTrips: 2}`, "spec.onUnhealthy", `onUnhealthy.cooldown and onUnhealthy.maxTrips belong to action Break`},
		{"cooldown 0s", `onUnhealthy: {action: Break, cooldown: 0s}`, "spec.onUnhealthy.cooldown", `onUnhealthy.cooldown must be a duration from 1s to 24h, such as 5m`},
		{"maxTrips 21", `onUnhealthy: {action: Break, maxTrips: 21}`, "spec.onUnhealthy.maxTrips", `should be less than or equal to 20`},
		{"onUnhealthy.for 25h", `onUnhealthy: {for: 25h}`, "spec.onUnhealthy.for", `onUnhealthy.for must be a duration from 0s to 24h, such as 1m`},

		// Checks.
		{"query empty", `health: {checks: [{name: a, query: "", max: 1}]}`, check, noQuery},
		{"query missing", `health: {checks: [{name: a, max: 1}]}`, check, noQuery},
		{"no limit", `health: {checks: [{name: a, query: up}]}`, check, `a check needs a limit: set min, max or both`},
		{"min above max", `health: {checks: [{name: a, query: up, min: 2, max: "1.5"}]}`, check, `min is above max: no value could pass`},
		{"limit that is no number", `health: {checks: [{name: a, query: up, max: NaN}]}`, check + ".max", notDecimal},
		{"limit with an exponent", `health: {checks: [{name: a, query: up, max: "1e3"}]}`, check + ".max", notDecimal},
		{"unknown variable", `health: {checks: [{name: a, query: 'up{a="{{foo}}"}', max: 1}]}`, check, badVariable},
		{"variable with spaces", `health: {checks: [{name: a, query: 'up{a="{{ service }}"}', max: 1}]}`, check, badVariable},
		{"variable within a variable", `health: {checks: [{name: a, query: 'up{a="{{win{{service}}dow}}"}', max: 1}]}`, check, badVariable},
		{"bad name", `health: {checks: [{name: Queue_Depth, query: up, max: 1}]}`, check + ".name", badName},
		{"empty name", `health: {checks: [{name: "", query: up, max: 1}]}`, check + ".name", badName},
		{"name missing", `health: {checks: [{query: up, max: 1}]}`, check + ".name", `Required value`},
		{"name of a built-in check", `health: {checks: [{name: latency, query: up, max: 1}]}`, check + ".name", `error-rate, latency and requests are the names of the built-in checks: choose another name`},
		{"duplicate name", `health: {checks: [{name: a, query: up, max: 1}, {name: a, query: up, max: 2}]}`, "spec.health.checks[1]", `Duplicate value: {"name":"a"}`},

		// The address of Prometheus.
		{"address with a user and a password", `health: {prometheus: {address: "http://user:password@prometheus:9090"}}`, "spec.health.prometheus.address", badAddress},
		{"address with a user", `health: {prometheus: {address: "http://user@prometheus:9090"}}`, "spec.health.prometheus.address", badAddress},
		{"address without a scheme", `health: {prometheus: {address: "prometheus:9090"}}`, "spec.health.prometheus.address", badAddress},
		{"address that is no URL", `health: {prometheus: {address: "http://the server"}}`, "spec.health.prometheus.address", badAddress},
		{"address without a host", `health: {prometheus: {address: "http://:9090"}}`, "spec.health.prometheus.address", badAddress},
		{"address with a port that is none", `health: {prometheus: {address: "http://prometheus:web"}}`, "spec.health.prometheus.address", badAddress},
		{"address with another scheme", `health: {prometheus: {address: "ftp://prometheus"}}`, "spec.health.prometheus.address", badAddress},
		{"a Secret without a key", `health: {prometheus: {bearerToken: {name: metrics}}}`, "spec.health.prometheus.bearerToken.key", `Required value`},
		{"a Secret whose name is none", `health: {prometheus: {bearerToken: {name: "a/b", key: token}}}`, "spec.health.prometheus.bearerToken.name", `must be the name of a Secret in the rollout's own namespace: lower-case letters, digits, '-' and '.'`},
		{"a key that is none", `health: {prometheus: {bearerToken: {name: a, key: "a b"}}}`, "spec.health.prometheus.bearerToken.key", `must be a key of the Secret: letters, digits, '-', '_' and '.'`},
		{"two kinds of credentials", `health: {prometheus: {bearerToken: {name: a, key: b}, basicAuth: {username: {name: a, key: b}, password: {name: a, key: b}}}}`, "spec.health.prometheus", `health.prometheus.bearerToken and basicAuth exclude each other: remove one of them`},
		{"a header without a value", `health: {prometheus: {headers: [{name: X-Scope-OrgID}]}}`, "spec.health.prometheus.headers[0]", `a header needs either value or valueFrom`},
		{"a header with two values", `health: {prometheus: {headers: [{name: X-Scope-OrgID, value: a, valueFrom: {name: a, key: b}}]}}`, "spec.health.prometheus.headers[0]", `a header needs either value or valueFrom`},
		{"credentials as a header", `health: {prometheus: {headers: [{name: AUTHORIZATION, value: a}]}}`, "spec.health.prometheus.headers[0].name", `this header cannot be set here: credentials belong into bearerToken or basicAuth, and the others are the client's own`},
		{"a header with a line break", `health: {prometheus: {headers: [{name: X-A, value: "a\nb"}]}}`, "spec.health.prometheus.headers[0].value", `the value of a header must be printable ASCII without blanks at its ends`},
		{"a header whose name is none", `health: {prometheus: {headers: [{name: "X A", value: a}]}}`, "spec.health.prometheus.headers[0].name", `the name of a header must be letters, digits and '-', such as X-Scope-OrgID`},
		{"a client certificate without its key", `health: {prometheus: {tls: {certificate: {name: a, key: b}}}}`, "spec.health.prometheus.tls", `a client certificate needs its key: set tls.certificate and tls.key, or neither`},
		{"a CA that means nothing", `health: {prometheus: {tls: {ca: {name: a, key: b}, insecureSkipVerify: true}}}`, "spec.health.prometheus.tls", `tls.insecureSkipVerify trusts every server, so tls.ca would mean nothing: remove one of them`},
		{"TLS without https", `health: {prometheus: {address: "http://prometheus:9090", tls: {serverName: a}}}`, "spec.health.prometheus", `health.prometheus.tls is for https: give an address that begins with https://, or remove tls`},
		{"a server name that is none", `health: {prometheus: {tls: {serverName: "a/b"}}}`, "spec.health.prometheus.tls.serverName", `tls.serverName must be a host name, such as prometheus.example.com`},
		{"address with a query", `health: {prometheus: {address: "http://prometheus?token=1"}}`, "spec.health.prometheus.address", badAddress},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := try(t, newRollout(t, edited(t, test.edit)))
			got := complaints(t, err)
			if len(got) != 1 {
				t.Fatalf("%d complaints, want one that names the field %s and says %q; got:\n%s", len(got), test.field, test.says, strings.Join(got, "\n"))
			}
			if !strings.HasPrefix(got[0], test.field+": ") || !strings.Contains(got[0], test.says) {
				t.Errorf("want the field %s and %q; got\n%s", test.field, test.says, got[0])
			}
			if strings.Contains(err.Error(), "password@") {
				t.Errorf("the password is repeated in %q, which others may come to read", err)
			}
		})
	}
}

func TestAccepted(t *testing.T) {
	for _, test := range []struct{ name, edit string }{
		{"one Service with two ports", `canary: {service: checkout-stable, port: 8081}`},
		{"weight as text", `plan: {stages: [{weight: "5"}]}`},
		{"weight as number", `plan: {stages: [{weight: 5}]}`},
		{"weight with two places", `plan: {stages: [{weight: "0.01"}, {weight: "5.25"}, {weight: 6}]}`},
		{"100 alone", `plan: {stages: [{weight: 100}]}`},
		{"100 as text", `plan: {stages: [{weight: 33}, {weight: "100.00"}]}`},
		{"33 and 66", `plan: {stages: [{weight: 33}, {weight: 66}]}`},
		{"rising in value, not as text", `plan: {stages: [{weight: 9}, {weight: "9.5"}, {weight: 10}]}`},
		{"20 stages", `plan: {stages: [` + stages(20) + `]}`},
		{"soak 1h30m", `plan: {stages: [{weight: 5, soak: 1h30m}]}`},
		{"soak 720h", `plan: {stages: [{weight: 5, soak: 720h}]}`},
		{"soak as long as the interval", `plan: {stages: [{weight: 5, soak: 15s}]}`},
		{"a short soak, as nothing is measured", `{plan: {stages: [{weight: 5, soak: 1s}]}, health: {disabled: true}}`},
		{"disabled, without any check", `health: {preset: null, errorRate: null, disabled: true}`},
		{"checks without preset", `health: {preset: null, errorRate: null, checks: [{name: a, query: up, min: "-0.5", max: 3}]}`},
		{"every variable", `health: {checks: [{name: a, query: 'up{a="{{service}}", b="{{route}}", c="{{namespace}}"}[{{window}}]', max: 1}]}`},
		{"a variable between braces", `health: {checks: [{name: a, query: 'up{{{service}}}', max: 1}]}`},
		{"address with a path", `health: {prometheus: {address: "https://metrics.example.com/prometheus"}}`},
		{"address by number", `health: {prometheus: {address: "http://[::1]:9090"}}`},
		{"address empty", `health: {prometheus: {address: ""}}`},
		{"maxPercent 0", `health: {errorRate: {maxPercent: 0}}`},
		{"percentile with places", `health: {latency: {max: 500ms, percentile: "99.9"}}`},
		{"onUnhealthy.for 0s", `onUnhealthy: {for: 0s}`},
		{"Pause", `onUnhealthy: {action: Pause}`},
		{"Break", `onUnhealthy: {action: Break, cooldown: 1h, maxTrips: 20}`},
		{"Break with its defaults", `onUnhealthy: {action: Break}`},
		{"targets", `health: {errorRate: {targetPercent: "0.5", maxPercent: "0.5", penalty: "1.5"}, latency: {target: 500ms, max: 500ms, smoothing: "0.1", penalty: 0}, degradedBelow: 1}`},
		{"target 0", `health: {errorRate: {targetPercent: 0}}`},
		{"no warm-up", `ramp: {warmup: {initialPercent: 100, soak: 0s}}`},
		{"route of 253 characters", `routes: [{name: ` + strings.Repeat("r", 253) + `}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			apply(t, newRollout(t, edited(t, test.edit)))
		})
	}
	for _, length := range []int{63, 64, 200, 253} {
		t.Run(fmt.Sprintf("object's name of %d characters", length), func(t *testing.T) {
			u := newRollout(t, minimal)
			u.SetName(strings.Repeat("n", length))
			apply(t, u)
		})
	}
}

// TestMissingSpec shows that each section that is missing is asked for.
func TestMissingSpec(t *testing.T) {
	u := newRollout(t, minimal)
	u.Object["spec"] = map[string]any{}
	_, err := try(t, u)
	got := strings.Join(complaints(t, err), "\n")
	for _, want := range []string{"spec.revision is required", "spec.routes is required", "spec.stable is required", "spec.canary is required", "spec.health is required"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	delete(u.Object, "spec")
	_, err = try(t, u)
	if got := complaints(t, err); len(got) != 1 || !strings.Contains(got[0], "spec is required") {
		t.Errorf("without a spec: want %q, got\n%s", "spec is required", strings.Join(got, "\n"))
	}
}

// TestTracksAndRoutesAreImmutable shows that the backends of an object stay, and that all
// else may be edited.
func TestTracksAndRoutesAreImmutable(t *testing.T) {
	c := apiServer(t).Client
	u := newRollout(t, minimal)
	u.SetName("immutable")
	if err := c.Create(t.Context(), u); err != nil {
		t.Fatalf("create the object: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.WithoutCancel(t.Context()), u); err != nil {
			t.Errorf("delete the object: %v", err)
		}
	})
	for _, track := range []string{"stable", "canary"} {
		for field, value := range map[string]any{"service": "another", "port": int64(9090), "namespace": "another"} {
			changed := u.DeepCopy()
			if err := unstructured.SetNestedField(changed.Object, value, "spec", track, field); err != nil {
				t.Fatal(err)
			}
			got := complaints(t, c.Update(t.Context(), changed, client.DryRunAll))
			want := "service, namespace and port of spec." + track + " cannot be changed: delete this WeightedRollout, which gives stable all traffic unless the canary is promoted, and create one for the other Service"
			if len(got) != 1 || !strings.HasPrefix(got[0], "spec."+track+": ") || !strings.Contains(got[0], want) {
				t.Errorf("%s.%s changed: want %q, got\n%s", track, field, want, strings.Join(got, "\n"))
			}
		}
	}
	changed := u.DeepCopy()
	changed.Object["spec"] = values(t, edited(t, `{revision: "2.5.0", paused: true, plan: {stages: [{weight: 50}]}, stable: {revision: "2.4.1", workload: {name: a}}, canary: {capacity: Ignore, workload: {name: b}}}`))
	if err := c.Update(t.Context(), changed, client.DryRunAll); err != nil {
		t.Errorf("another revision and plan, paused: %v", err)
	}
	// A route that is dropped would keep its weights, a rollback would miss it.
	changed.Object["spec"] = values(t, edited(t, `{routes: [{name: other}]}`))
	got := complaints(t, c.Update(t.Context(), changed, client.DryRunAll))
	if want := "spec.routes cannot be changed"; len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("another route: want %q, got\n%s", want, strings.Join(got, "\n"))
	}
}

// stages writes n stages of 1, 2, 3 … percent.
func stages(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("{weight: %d}", i+1)
	}
	return strings.Join(all, ", ")
}

// values reads YAML as the API server's JSON decoder would.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(`{"object":` + string(toJSON(t, text)) + `,"apiVersion":"v1","kind":"Test"}`))
	if err != nil {
		t.Fatalf("the test's YAML: %v", err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatalf("the test's YAML: %v", err)
	}
	object, ok := u.Object["object"].(map[string]any)
	if !ok {
		t.Fatalf("the test's YAML is no object: %s", text)
	}
	return object
}

func toJSON(t *testing.T, text string) []byte {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("the test's YAML: %v in\n%s", err, text)
	}
	return data
}

// newRollout returns an object with the given spec.
func newRollout(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": values(t, spec)}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("WeightedRollout"))
	u.SetNamespace(metav1.NamespaceDefault)
	u.SetName("checkout")
	return u
}

// edited returns the minimal spec with a JSON merge patch on it: null removes.
func edited(t *testing.T, patch string) string {
	t.Helper()
	merged, err := jsonpatch.MergePatch(toJSON(t, minimal), toJSON(t, patch))
	if err != nil {
		t.Fatalf("merge the test's YAML: %v", err)
	}
	return string(merged)
}

// try asks the API server what it would do with the object, as kubectl apply does:
// unknown fields are errors. It returns the object with its defaults.
func try(t *testing.T, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	u = u.DeepCopy()
	err := apiServer(t).Client.Create(t.Context(), u, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	return u, err
}

// apply is try for an object that must be accepted.
func apply(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	got, err := try(t, u)
	if err != nil {
		t.Fatalf("%s %s is refused: %v", u.GetKind(), u.GetName(), err)
	}
	return got
}

// complaints lists what the API server has against an object, as "field: message".
func complaints(t *testing.T, err error) []string {
	t.Helper()
	var status *apierrors.StatusError
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		t.Fatalf("want the object to be found invalid, got: %v", err)
	}
	var all []string
	for _, c := range status.ErrStatus.Details.Causes {
		// The API server's own remark that a wrong type kept it from looking further.
		if !strings.Contains(c.Message, "some validation rules were not checked") {
			all = append(all, c.Field+": "+c.Message)
		}
	}
	slices.Sort(all)
	return all
}
