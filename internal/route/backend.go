package route

import (
	"fmt"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Backend is a port of a core Service, as a route refers to it.
type Backend struct {
	// Namespace of the Service. Empty means the route's own.
	Namespace string
	// Service is its name.
	Service string
	// Port is the Service port, 1 to 65535.
	Port int32
}

// Pair is the two backends among which a rollout divides traffic.
type Pair struct {
	Stable, Canary Backend
}

// String writes the backend for people: "shop/web-stable:80".
func (b Backend) String() string {
	return fmt.Sprintf("%s/%s:%d", b.Namespace, b.Service, b.Port)
}

// in returns the backend with its namespace filled in.
func (b Backend) in(namespace string) Backend {
	if b.Namespace == "" {
		b.Namespace = namespace
	}
	return b
}

// backendOf reads a reference of a route in the given namespace. It is no backend
// of ours (ok is false) if it refers to anything but a port of a core Service: the
// same name in another group or kind is another thing.
func backendOf(ref gatewayv1.BackendObjectReference, namespace string) (b Backend, ok bool) {
	if ref.Group != nil && *ref.Group != "" {
		return Backend{}, false
	}
	if ref.Kind != nil && *ref.Kind != "Service" {
		return Backend{}, false
	}
	if ref.Port == nil {
		return Backend{}, false
	}
	if ref.Namespace != nil && *ref.Namespace != "" {
		namespace = string(*ref.Namespace)
	}
	return Backend{Namespace: namespace, Service: string(ref.Name), Port: *ref.Port}, true
}

// weightOf returns a reference's weight. One that is left out is 1, by the Gateway
// API's definition, and not 0.
func weightOf(ref gatewayv1.BackendRef) int32 {
	if ref.Weight == nil {
		return 1
	}
	return *ref.Weight
}
