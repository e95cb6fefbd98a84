package controllers

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

const (
	// ownPrefix begins the keys of the annotations that are ours.
	ownPrefix = "weightedrollout.dev/"
	// maxUnknown is how many annotations with our prefix are kept beside those that this
	// build knows.
	maxUnknown = 8
)

// Trim is the cache's transform for objects of every kind that the controller watches. It
// keeps the fields that are read, so that an object takes no more memory than it is worth:
// anybody may fill the annotations, labels and managed fields of what they own. What is
// missing in the cache is never removed from the cluster: every write is a patch of what
// was changed.
func Trim(o any) (any, error) {
	switch o := o.(type) {
	case *v1alpha1.WeightedRollout:
		return trimRollout(o), nil
	case *gatewayv1.HTTPRoute:
		return trimHTTPRoute(o), nil
	case *gatewayv1.GRPCRoute:
		return trimGRPCRoute(o), nil
	case *discoveryv1.EndpointSlice:
		return trimSlice(o), nil
	case *appsv1.Deployment:
		// The pod template stays whole: it is hashed, and copied to stable.
		return &appsv1.Deployment{
			ObjectMeta: identity(&o.ObjectMeta), Status: o.Status,
			Spec: appsv1.DeploymentSpec{Replicas: o.Spec.Replicas, Template: o.Spec.Template, Paused: o.Spec.Paused},
		}, nil
	case *appsv1.StatefulSet:
		return &appsv1.StatefulSet{
			ObjectMeta: identity(&o.ObjectMeta), Status: o.Status,
			Spec: appsv1.StatefulSetSpec{Replicas: o.Spec.Replicas, Template: o.Spec.Template, UpdateStrategy: o.Spec.UpdateStrategy},
		}, nil
	case *autoscalingv2.HorizontalPodAutoscaler:
		return trimAutoscaler(o), nil
	case *gatewayv1.Gateway:
		return &gatewayv1.Gateway{ObjectMeta: identity(&o.ObjectMeta), Spec: gatewayv1.GatewaySpec{GatewayClassName: o.Spec.GatewayClassName}}, nil
	case *gatewayv1.GatewayClass:
		return &gatewayv1.GatewayClass{ObjectMeta: identity(&o.ObjectMeta), Spec: gatewayv1.GatewayClassSpec{ControllerName: o.Spec.ControllerName}}, nil
	}
	// A tombstone, among others.
	return o, nil
}

// identity keeps of an object's metadata what tells which object it is, and which version.
func identity(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
	}
}

// trimRollout keeps the finalizers: a patch that changes one writes the whole list.
func trimRollout(wr *v1alpha1.WeightedRollout) *v1alpha1.WeightedRollout {
	kept := &v1alpha1.WeightedRollout{ObjectMeta: identity(&wr.ObjectMeta), Spec: wr.Spec, Status: wr.Status}
	kept.Finalizers, kept.Annotations = wr.Finalizers, ownAnnotations(wr.Annotations)
	return kept
}

func routeMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	kept := identity(m)
	kept.Annotations = ownAnnotations(m.Annotations)
	if last := lastWrite(m.ManagedFields); last != nil {
		kept.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: last.Manager, Time: last.Time}}
	}
	return kept
}

// ownAnnotations keeps the annotations that are ours. Of the others one key is kept, so
// that an annotation is added to the map that is there, and does not replace it.
func ownAnnotations(all map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	kept := map[string]string{}
	unknown := 0
	for _, key := range slices.Sorted(maps.Keys(all)) {
		switch {
		case slices.Contains(v1alpha1.OwnAnnotations(), key):
			kept[key] = all[key]
		case strings.HasPrefix(key, ownPrefix) && unknown < maxUnknown:
			unknown++
			kept[key] = all[key]
		}
	}
	if len(kept) == 0 {
		kept[slices.Min(slices.Collect(maps.Keys(all)))] = ""
	}
	return kept
}

func trimHTTPRoute(r *gatewayv1.HTTPRoute) *gatewayv1.HTTPRoute {
	kept := &gatewayv1.HTTPRoute{ObjectMeta: routeMeta(&r.ObjectMeta), Status: r.Status}
	kept.Spec.ParentRefs = r.Spec.ParentRefs
	for i := range r.Spec.Rules {
		rule := gatewayv1.HTTPRouteRule{Name: r.Spec.Rules[i].Name}
		for j := range r.Spec.Rules[i].BackendRefs {
			rule.BackendRefs = append(rule.BackendRefs, gatewayv1.HTTPBackendRef{BackendRef: r.Spec.Rules[i].BackendRefs[j].BackendRef})
		}
		kept.Spec.Rules = append(kept.Spec.Rules, rule)
	}
	return kept
}

func trimGRPCRoute(r *gatewayv1.GRPCRoute) *gatewayv1.GRPCRoute {
	kept := &gatewayv1.GRPCRoute{ObjectMeta: routeMeta(&r.ObjectMeta), Status: r.Status}
	kept.Spec.ParentRefs = r.Spec.ParentRefs
	for i := range r.Spec.Rules {
		rule := gatewayv1.GRPCRouteRule{Name: r.Spec.Rules[i].Name}
		for j := range r.Spec.Rules[i].BackendRefs {
			rule.BackendRefs = append(rule.BackendRefs, gatewayv1.GRPCBackendRef{BackendRef: r.Spec.Rules[i].BackendRefs[j].BackendRef})
		}
		kept.Spec.Rules = append(kept.Spec.Rules, rule)
	}
	return kept
}

func trimSlice(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	kept := &discoveryv1.EndpointSlice{ObjectMeta: identity(&s.ObjectMeta), AddressType: s.AddressType}
	if service, ok := s.Labels[discoveryv1.LabelServiceName]; ok {
		kept.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	}
	if len(s.Ports) > 0 {
		// That there is one is all that is asked.
		kept.Ports = []discoveryv1.EndpointPort{{}}
	}
	for i := range s.Endpoints {
		e := discoveryv1.Endpoint{Conditions: s.Endpoints[i].Conditions}
		if ref := s.Endpoints[i].TargetRef; ref != nil {
			e.TargetRef = &corev1.ObjectReference{Kind: ref.Kind, Name: ref.Name, UID: ref.UID}
		}
		// All addresses of an endpoint lead to the same pod.
		e.Addresses = slices.Clone(s.Endpoints[i].Addresses[:min(1, len(s.Endpoints[i].Addresses))])
		kept.Endpoints = append(kept.Endpoints, e)
	}
	return kept
}

func trimAutoscaler(h *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscaler {
	kept := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: identity(&h.ObjectMeta)}
	kept.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: h.Spec.ScaleTargetRef, MinReplicas: h.Spec.MinReplicas, MaxReplicas: h.Spec.MaxReplicas}
	if owner := metav1.GetControllerOf(h); owner != nil {
		kept.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return kept
}

// lastWrite is the newest write to the spec by a field manager other than us; nil if none
// is known.
func lastWrite(fields []metav1.ManagedFieldsEntry) *metav1.ManagedFieldsEntry {
	var last *metav1.ManagedFieldsEntry
	for i := range fields {
		f := &fields[i]
		if f.Manager == FieldOwner || f.Subresource != "" || f.Time == nil || last != nil && f.Time.Before(last.Time) {
			continue
		}
		last = f
	}
	return last
}
