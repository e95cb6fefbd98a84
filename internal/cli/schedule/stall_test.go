package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"pgregory.net/rapid"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/cli/schedule"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// ref is a backend of a rule with its weight.
func ref(service string, weight int32) gatewayv1.HTTPBackendRef {
	r, port := gatewayv1.HTTPBackendRef{}, gatewayv1.PortNumber(80)
	r.Name, r.Port, r.Weight = gatewayv1.ObjectName(service), &port, &weight
	return r
}

// inspected looks at a route with one rule as the plan and the controller do.
func inspected(wr *v1alpha1.WeightedRollout, refs ...gatewayv1.HTTPBackendRef) route.Inspection {
	hr := &gatewayv1.HTTPRoute{}
	hr.Namespace, hr.Name = "shop", "web"
	hr.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: refs}}
	backend := func(t *v1alpha1.Track) route.Backend { return route.Backend{Service: t.Service, Port: t.Port} }
	return route.Inspect(route.FromHTTPRoute(hr), nil, route.Pair{Stable: backend(&wr.Spec.Stable.Track), Canary: backend(&wr.Spec.Canary.Track)})
}

// stalledAtStart is what the controller says of a new rollout on this route.
func stalledAtStart(wr *v1alpha1.WeightedRollout, found route.Inspection) *schedule.Stall {
	d := rollout.Decide(rollout.Observation{
		Name: wr.Name, Generation: 1, Spec: &wr.Spec, Status: &v1alpha1.WeightedRolloutStatus{}, StableReady: true, CanaryReady: true,
		Routes: []rollout.Route{{Kind: v1alpha1.HTTPRouteKind, Name: "web", Found: true, UID: "1", Generation: 1, Inspection: found}},
	}, time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC))
	c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionStalled)
	if c == nil || c.Status != "True" {
		return nil
	}
	return &schedule.Stall{Reason: c.Reason, Message: c.Message}
}

// TestStalled shows which faults of a route keep a rollout from starting, in the
// controller's own words.
func TestStalled(t *testing.T) {
	const warmUp = `plan: {stages: [{weight: 20, soak: 15m}]}`
	for _, test := range []struct {
		name, fields string
		refs         []gatewayv1.HTTPBackendRef
		reason       string
	}{
		{"in order", ``, []gatewayv1.HTTPBackendRef{ref("web-stable", 1), ref("web-canary", 0)}, ""},
		{"fine enough", ``, []gatewayv1.HTTPBackendRef{ref("web-stable", 100), ref("web-canary", 0), ref("old", 1)}, ""},
		{"too coarse", ``, []gatewayv1.HTTPBackendRef{ref("web-stable", 30), ref("web-canary", 0), ref("old", 1)}, v1alpha1.ReasonWeightResolution},
		// The first share is 6 %, which 30 can express, and the smallest step 1 %, which it cannot.
		{"too coarse for a step", warmUp, []gatewayv1.HTTPBackendRef{ref("web-stable", 30), ref("web-canary", 0), ref("old", 1)}, v1alpha1.ReasonWeightResolution},
		{"no rule", ``, []gatewayv1.HTTPBackendRef{ref("web-stable", 1)}, v1alpha1.ReasonNoMatchingRule},
		{"a backend twice", ``, []gatewayv1.HTTPBackendRef{ref("web-stable", 1), ref("web-canary", 0), ref("web-canary", 0)}, v1alpha1.ReasonDuplicateBackendRef},
	} {
		t.Run(test.name, func(t *testing.T) {
			wr := decode(t, test.fields)
			found := inspected(wr, test.refs...)
			s, err := schedule.For(wr, schedule.Options{Routes: map[string]route.Inspection{"HTTPRoute/web": found}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(stalledAtStart(wr, found), s.Stalled); diff != "" {
				t.Errorf("(-controller +schedule):\n%s", diff)
			}
			if test.reason == "" {
				if s.Stalled != nil {
					t.Errorf("stalled: %+v", *s.Stalled)
				}
				return
			}
			if s.Stalled == nil || s.Stalled.Reason != test.reason {
				t.Fatalf("stalled: %+v, want %s", s.Stalled, test.reason)
			}
			if len(s.Warnings) != 1 || !strings.HasSuffix(s.Stalled.Message, s.Warnings[0].Message) {
				t.Errorf("warnings %v, want one of the same fault", s.Warnings)
			}
		})
	}
}

// TestStalledAgreesWithTheController draws plans and the weights of a rule with a
// third backend: the schedule never starts where the controller does not.
func TestStalledAgreesWithTheController(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wr := drawRollout(t)
		found := inspected(wr, ref("web-stable", rapid.Int32Range(0, 300).Draw(t, "weight")), ref("web-canary", 0), ref("old", 1))
		s, err := schedule.For(wr, schedule.Options{Routes: map[string]route.Inspection{"HTTPRoute/web": found}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(stalledAtStart(wr, found), s.Stalled); diff != "" {
			t.Fatalf("(-controller +schedule):\n%s", diff)
		}
	})
}
