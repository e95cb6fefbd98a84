package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// endpoint is one of an EndpointSlice; that of no pod has no uid.
func endpoint(address, uid string, ready, terminating *bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{
		Addresses:  []string{address},
		Conditions: discoveryv1.EndpointConditions{Ready: ready, Terminating: terminating},
	}
	if uid != "" {
		e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: "pod-" + uid, UID: types.UID(uid)}
	}
	return e
}

// endpoints are a slice of the Service shop/web-canary.
func endpoints(family discoveryv1.AddressType, all ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: "web-canary"}},
		AddressType: family, Endpoints: all, Ports: []discoveryv1.EndpointPort{{Port: new(int32(8080))}},
	}
}

func TestReadyPods(t *testing.T) {
	const v4, v6 = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	yes, no := new(true), new(false)
	elsewhere := endpoints(v4, endpoint("10.0.0.9", "z", yes, no))
	elsewhere.Namespace = "apps"
	of := endpoints(v4, endpoint("10.0.0.8", "y", yes, no))
	of.Labels[discoveryv1.LabelServiceName] = "web-stable"
	portless := endpoints(v4, endpoint("10.0.0.3", "c", yes, no))
	portless.Ports = nil
	unidentified := endpoint("10.0.0.1", "", yes, no)
	unidentified.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: "pod-a"}
	for _, tc := range []struct {
		name   string
		slices []*discoveryv1.EndpointSlice
		want   []string
	}{
		{"no slice", nil, nil},
		{"an empty slice", []*discoveryv1.EndpointSlice{endpoints(v4)}, nil},
		{"sorted", []*discoveryv1.EndpointSlice{endpoints(v4, endpoint("10.0.0.1", "b", yes, no), endpoint("10.0.0.2", "a", yes, no))}, []string{"a", "b"}},
		{"dual stack", []*discoveryv1.EndpointSlice{
			endpoints(v4, endpoint("10.0.0.1", "a", yes, no), endpoint("10.0.0.2", "b", yes, no)),
			endpoints(v6, endpoint("fd00::1", "a", yes, no), endpoint("fd00::2", "b", yes, no)),
		}, []string{"a", "b"}},
		{"several slices", []*discoveryv1.EndpointSlice{endpoints(v4, endpoint("10.0.0.1", "a", yes, no)), endpoints(v4, endpoint("10.0.0.2", "b", yes, no))}, []string{"a", "b"}},
		{"not known to be ready is ready", []*discoveryv1.EndpointSlice{endpoints(v4, endpoint("10.0.0.1", "a", nil, nil))}, []string{"a"}},
		{"not ready", []*discoveryv1.EndpointSlice{endpoints(v4, endpoint("10.0.0.1", "a", no, no), endpoint("10.0.0.2", "b", yes, nil))}, []string{"b"}},
		{"ready and being shut down", []*discoveryv1.EndpointSlice{endpoints(v4, endpoint("10.0.0.1", "a", yes, yes), endpoint("10.0.0.2", "b", nil, yes))}, nil},
		{"ready, and without the port", []*discoveryv1.EndpointSlice{portless}, nil},
		{"one of two without the port", []*discoveryv1.EndpointSlice{portless, endpoints(v4, endpoint("10.0.0.1", "a", yes, no))}, []string{"a"}},
		{"no pods, one family", []*discoveryv1.EndpointSlice{endpoints(v4, endpoint("10.0.0.2", "", yes, no), endpoint("10.0.0.1", "", nil, nil))}, []string{"10.0.0.1", "10.0.0.2"}},
		{"no pods, two families", []*discoveryv1.EndpointSlice{
			endpoints(v4, endpoint("10.0.0.1", "", yes, no), endpoint("10.0.0.2", "", no, no)),
			endpoints(v6, endpoint("fd00::1", "", yes, no), endpoint("fd00::2", "", yes, no)),
		}, []string{"fd00::1", "fd00::2"}},
		{"pods and others", []*discoveryv1.EndpointSlice{endpoints(v4, endpoint("10.0.0.1", "a", yes, no), endpoint("10.0.0.2", "", yes, no))}, []string{"10.0.0.2", "a"}},
		{"a pod without a uid", []*discoveryv1.EndpointSlice{endpoints(v4, unidentified), endpoints(v6, unidentified)}, []string{"pod-a"}},
		{"another namespace, and another Service", []*discoveryv1.EndpointSlice{elsewhere, of}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var objects []client.Object
			for i, s := range tc.slices {
				s = s.DeepCopy()
				s.Name = fmt.Sprintf("s-%d", i)
				objects = append(objects, s)
			}
			r := reconcilerWith(t, objects...)
			got, err := r.readyPods(t.Context(), route.Backend{Namespace: "shop", Service: "web-canary", Port: 80})
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

// Each track has its own pods, and endpoints that cannot be listed are not taken for none.
func TestObserveEndpoints(t *testing.T) {
	stable := endpoints(discoveryv1.AddressTypeIPv4, endpoint("10.0.0.1", "a", nil, nil))
	stable.Name, stable.Labels[discoveryv1.LabelServiceName] = "stable", "web-stable"
	r := reconcilerWith(t, stable)
	var obs observation
	if err := r.observeEndpoints(t.Context(), rolloutOf("web", 0), &obs); err != nil {
		t.Fatal(err)
	}
	if !obs.StableReady || obs.CanaryReady || !slices.Equal(obs.StablePods, []string{"a"}) || len(obs.CanaryPods) > 0 {
		t.Errorf("stable %v %v, canary %v %v", obs.StableReady, obs.StablePods, obs.CanaryReady, obs.CanaryPods)
	}
	r.intercepted(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("no answer")
	}})
	err := r.observeEndpoints(t.Context(), rolloutOf("web", 0), &obs)
	if want := "list the EndpointSlices of Service shop/web-stable: no answer"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

// A track in a namespace that the cache does not hold is told of, and always in the
// same words; nobody asks for its endpoints.
func TestNamespaceProblem(t *testing.T) {
	for _, tc := range []struct {
		name           string
		watched        []string
		stable, canary string
		want           string // the start of the message
	}{
		{"everything is watched", nil, "infra", "apps", ""},
		{"its own namespace", []string{"shop"}, "", "shop", ""},
		{"both are watched", []string{"apps", "shop", "infra"}, "infra", "apps", ""},
		{"the canary's is not", []string{"shop"}, "", "apps", `spec.canary.namespace is "apps", and the controller does not look there: add it to --namespaces`},
		{"stable's is not", []string{"shop", "apps"}, "infra", "apps", `spec.stable.namespace is "infra", and the controller does not look there: add it to --namespaces`},
		{"neither is", []string{"shop"}, "infra", "apps", "spec."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := reconcilerWith(t)
			r.Namespaces = tc.watched
			wr := rolloutOf("web", 0)
			wr.Spec.Stable.Namespace, wr.Spec.Canary.Namespace = tc.stable, tc.canary
			first := problemText(t, r.namespaceProblem(wr))
			if (first == "") != (tc.want == "") || !strings.HasPrefix(first, tc.want) {
				t.Errorf("message %q, want %q", first, tc.want)
			}
			for range 50 {
				if again := problemText(t, r.namespaceProblem(wr)); again != first {
					t.Fatalf("first %q, then %q", first, again)
				}
			}
		})
	}
	r := reconcilerWith(t).intercepted(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("the cache does not hold this namespace")
	}})
	r.Namespaces = []string{"shop"}
	if pods, err := r.readyPods(t.Context(), route.Backend{Namespace: "apps", Service: "web-canary", Port: 80}); err != nil || len(pods) > 0 {
		t.Errorf("endpoints in a namespace that is not watched: %v, %v", pods, err)
	}
}

func problemText(t *testing.T, p *route.Problem) string {
	t.Helper()
	if p == nil {
		return ""
	}
	if p.Reason != v1alpha1.ReasonInvalidSpec {
		t.Errorf("reason %s", p.Reason)
	}
	return p.Message
}
