package main

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// What anybody may write into an object costs the cache next to nothing, whichever of the
// kinds that the manager caches it is in.
func TestCachedObjectsAreSmall(t *testing.T) {
	const most = 4 << 10
	cached := managerOptions(options{}).Cache
	for _, o := range []client.Object{
		&v1alpha1.WeightedRollout{}, &gatewayv1.HTTPRoute{}, &gatewayv1.GRPCRoute{}, &discoveryv1.EndpointSlice{},
		&appsv1.Deployment{}, &appsv1.StatefulSet{}, &autoscalingv2.HorizontalPodAutoscaler{},
	} {
		t.Run(fmt.Sprintf("%T", o), func(t *testing.T) {
			crowd(o)
			kept := any(o)
			if cached.DefaultTransform != nil {
				var err error
				if kept, err = cached.DefaultTransform(o); err != nil {
					t.Fatal(err)
				}
			}
			text, err := json.Marshal(kept)
			if err != nil {
				t.Fatal(err)
			}
			if len(text) > most {
				t.Errorf("%d bytes are kept, want at most %d", len(text), most)
			}
		})
	}
}

// crowd fills what is not limited in number: 20,000 annotations and labels of every kind,
// and what the API server notes about who wrote them.
func crowd(o client.Object) {
	annotations, labels, fields := map[string]string{}, map[string]string{}, map[string]any{}
	for i := range 20_000 {
		key := fmt.Sprintf("example.com/%d", i)
		annotations[key], labels[key], fields["f:"+key] = "x", "x", struct{}{}
		annotations[fmt.Sprintf("weightedrollout.dev/%d", i)] = "x"
	}
	raw, _ := json.Marshal(map[string]any{"f:metadata": fields})
	o.SetName("web")
	o.SetAnnotations(annotations)
	o.SetLabels(labels)
	for i := range 5 {
		o.SetManagedFields(append(o.GetManagedFields(), metav1.ManagedFieldsEntry{
			Manager: fmt.Sprintf("tool-%d", i), Time: &metav1.Time{Time: time.Unix(int64(i), 0)}, FieldsV1: metav1.NewFieldsV1(string(raw)),
		}))
	}
}
