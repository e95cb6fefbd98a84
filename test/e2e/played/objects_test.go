package played

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// Every rollout NAME of these tests has the route NAME and the Services
// NAME-stable and NAME-canary, port 80.
func stableOf(name string) string { return name + "-stable" }
func canaryOf(name string) string { return name + "-canary" }

// newRoute returns a route with one rule, stable before canary. Nil weights are
// left out.
func newRoute(namespace, name string, stable, canary *int32) *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "gw"}}},
			Rules: []gatewayv1.HTTPRouteRule{{
				Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: ptr.To(gatewayv1.PathMatchPathPrefix), Value: new("/")}}},
				BackendRefs: []gatewayv1.HTTPBackendRef{
					newBackendRef(stableOf(name), stable), newBackendRef(canaryOf(name), canary),
				},
			}},
		},
	}
}

func newBackendRef(service string, weight *int32) gatewayv1.HTTPBackendRef {
	return gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(service), Port: ptr.To[gatewayv1.PortNumber](80)},
		Weight:                 weight,
	}}
}

// foreignRoute returns a route full of things that are none of the controller's
// business, some of them unknown to its Go types.
func foreignRoute(namespace, name string) *unstructured.Unstructured {
	route := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
		"spec": map[string]any{
			"parentRefs": []any{map[string]any{"name": "gw"}},
			"hostnames":  []any{"shop.example.com"},
			"rules": []any{
				map[string]any{
					"name":       "main",
					foreignField: "of the rule",
					"matches":    []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/"}}},
					"timeouts":   map[string]any{"request": "10s", "backendRequest": "2s"},
					"filters": []any{
						map[string]any{"type": "RequestMirror", "requestMirror": map[string]any{"backendRef": map[string]any{"name": canaryOf(name), "port": int64(80)}}},
						map[string]any{"type": "ResponseHeaderModifier", "responseHeaderModifier": map[string]any{"add": []any{map[string]any{"name": "x-rule", "value": "main"}}}},
					},
					"backendRefs": []any{
						map[string]any{"name": stableOf(name), "port": int64(80), "weight": int64(100), foreignField: "of stable"},
						map[string]any{"name": canaryOf(name), "port": int64(80), "weight": int64(0), foreignField: "of the canary",
							"filters": []any{map[string]any{"type": "RequestHeaderModifier", "requestHeaderModifier": map[string]any{"set": []any{map[string]any{"name": "x-track", "value": "canary"}}}}}},
					},
				},
				map[string]any{
					"name":        "testers",
					foreignField:  "of the header rule",
					"matches":     []any{map[string]any{"headers": []any{map[string]any{"name": "x-canary", "value": "yes"}}}},
					"backendRefs": []any{map[string]any{"name": canaryOf(name), "port": int64(80)}},
				},
				map[string]any{
					"name":        "static",
					"matches":     []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/static"}}},
					"backendRefs": []any{map[string]any{"name": "assets", "port": int64(8080), "weight": int64(7)}},
				},
			},
		},
	}}
	route.SetNamespace(namespace)
	route.SetName(name)
	route.SetLabels(map[string]string{"app.example.com/part-of": "shop"})
	route.SetAnnotations(map[string]string{"example.com/owner": "the shop's team"})
	return route
}

// newEndpoints says that a Service has one endpoint, at an address that is set
// aside for documentation.
func newEndpoints(namespace, service string, ready bool) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: service + "-played",
			Labels: map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "played.weightedrollout.dev"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{newEndpoint(service, 0, ready)},
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: ptr.To[int32](80), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
}

// newEndpoint is the i-th pod of a Service.
func newEndpoint(service string, i int, ready bool) discoveryv1.Endpoint {
	name := fmt.Sprintf("%s-%d", service, i)
	sum := sha256.Sum256([]byte(name))
	return discoveryv1.Endpoint{
		Addresses:  []string{fmt.Sprintf("192.0.2.%d", i+1)},
		Conditions: discoveryv1.EndpointConditions{Ready: new(ready)},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: name, UID: types.UID(hex.EncodeToString(sum[:16]))},
	}
}

// noWarmup lets a canary go up from 0 by the ramp alone.
var noWarmup = v1alpha1.Warmup{InitialPercent: "100"}

// change alters a rollout before it is created.
type change func(*v1alpha1.WeightedRollout)

// newRollout returns a rollout with the plan 1, 5, 10, 20, 50, fast enough for a
// test: soaks of a second, raises of at most 30 points, and the preset's metrics
// in windows of a second.
func newRollout(namespace, name, prometheus string, changes ...change) *v1alpha1.WeightedRollout {
	wr := &v1alpha1.WeightedRollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.WeightedRolloutSpec{
			Revision: "v2",
			Routes:   []v1alpha1.RouteReference{{Kind: v1alpha1.HTTPRouteKind, Name: name}},
			Stable:   &v1alpha1.StableTrack{Track: v1alpha1.Track{Service: stableOf(name), Port: 80}},
			Canary:   &v1alpha1.CanaryTrack{Track: v1alpha1.Track{Service: canaryOf(name), Port: 80}},
			Ramp:     v1alpha1.Ramp{MinIncrease: "30", MaxIncrease: "30", MaxChangePercent: "100", Interval: "1s", Warmup: noWarmup},
			Health: &v1alpha1.Health{
				Prometheus: &v1alpha1.Prometheus{Address: prometheus}, Preset: v1alpha1.PresetTraefik,
				Window: "1s", Interval: "1s", SampleDelay: "0s", MinRequests: 20, MinRampRequests: 10,
				ErrorRate: &v1alpha1.ErrorRate{MaxPercent: "2"}, Latency: &v1alpha1.Latency{Percentile: "99", Max: "500ms"},
			},
			OnUnhealthy: v1alpha1.OnUnhealthy{For: "1s"},
		},
	}
	stages("1s", "1", "5", "10", "20", "50")(wr)
	for _, c := range changes {
		c(wr)
	}
	return wr
}

// stages sets the plan.
func stages(soak v1alpha1.Duration, weights ...v1alpha1.Percent) change {
	return func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Plan.Stages = nil
		for _, w := range weights {
			wr.Spec.Plan.Stages = append(wr.Spec.Plan.Stages, v1alpha1.Stage{Weight: w, Soak: soak})
		}
	}
}

// soak sets the soak of one stage.
func soak(stage int, d v1alpha1.Duration) change {
	return func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Plan.Stages = slices.Clone(wr.Spec.Plan.Stages)
		wr.Spec.Plan.Stages[stage].Soak = d
	}
}

// ramp sets the raise per second.
func ramp(points v1alpha1.Percent) change {
	return func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Ramp = v1alpha1.Ramp{MinIncrease: points, MaxIncrease: points, MaxChangePercent: "100", Interval: "1s", Warmup: noWarmup}
	}
}

// Metric names of the spec's own checks.
const (
	errorRateMetric = "played_error_rate"
	latencyMetric   = "played_p99_seconds"
	successMetric   = "played_success_rate"
)

// ownChecks replaces the preset by two queries: an error rate of at most 2 % and a
// 99th percentile of at most 500 ms.
func ownChecks(wr *v1alpha1.WeightedRollout) {
	h := wr.Spec.Health
	h.Preset, h.ErrorRate, h.Latency = "", nil, nil
	addChecks(wr)
}

// addChecks adds the two queries to what is measured already.
func addChecks(wr *v1alpha1.WeightedRollout) {
	wr.Spec.Health.Checks = []v1alpha1.Check{
		{Name: "error-rate-query", Query: templateOf(errorRateMetric), Max: ptr.To[v1alpha1.Decimal]("0.02")},
		{Name: "p99-query", Query: templateOf(latencyMetric), Max: ptr.To[v1alpha1.Decimal]("0.5")},
	}
}

// successCheck replaces the error rate of ownChecks by a rate of success of at
// least 99 %.
func successCheck(wr *v1alpha1.WeightedRollout) {
	wr.Spec.Health.Checks[0] = v1alpha1.Check{Name: "success-rate-query", Query: templateOf(successMetric), Min: ptr.To[v1alpha1.Decimal]("0.99")}
}

// templateOf is the query of a check as the spec has it.
func templateOf(metric string) string { return metric + `{service="{{service}}"}` }

// metricOf is the query of a rollout's own check as the server is asked it.
func metricOf(metric, name string) string {
	return metric + `{service="` + canaryOf(name) + `"}`
}
