package route

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// Object is what a route of any kind has in common with the others, and all that is
// looked at here. It shares its memory with the object that it was made from, so
// neither is to be changed. The JSON paths of what it shows are the same for every
// kind, which is why one patch fits all.
type Object struct {
	// Kind of the route, for messages.
	Kind v1alpha1.RouteKind
	// ObjectMeta is the route's metadata.
	metav1.ObjectMeta
	// ParentRefs is spec.parentRefs.
	ParentRefs []gatewayv1.ParentReference
	// Rules is spec.rules, in the route's order.
	Rules []Rule
	// Parents is status.parents.
	Parents []gatewayv1.RouteParentStatus
}

// Rule is a rule of a route, as far as it tells where requests go. Its filters are
// never looked at, so a mirror's backend is none of the rule's.
type Rule struct {
	// Name of the rule; empty if it has none.
	Name string
	// Backends is the rule's backendRefs, in the route's order.
	Backends []gatewayv1.BackendRef
}

// FromHTTPRoute shows an HTTPRoute. That of nil is nil.
func FromHTTPRoute(r *gatewayv1.HTTPRoute) *Object {
	if r == nil {
		return nil
	}
	o := &Object{Kind: v1alpha1.HTTPRouteKind, ObjectMeta: r.ObjectMeta, ParentRefs: r.Spec.ParentRefs, Parents: r.Status.Parents}
	for i := range r.Spec.Rules {
		rule := &r.Spec.Rules[i]
		o.Rules = append(o.Rules, newRule(rule.Name, rule.BackendRefs, func(ref *gatewayv1.HTTPBackendRef) gatewayv1.BackendRef { return ref.BackendRef }))
	}
	return o
}

// FromGRPCRoute shows a GRPCRoute. That of nil is nil.
func FromGRPCRoute(r *gatewayv1.GRPCRoute) *Object {
	if r == nil {
		return nil
	}
	o := &Object{Kind: v1alpha1.GRPCRouteKind, ObjectMeta: r.ObjectMeta, ParentRefs: r.Spec.ParentRefs, Parents: r.Status.Parents}
	for i := range r.Spec.Rules {
		rule := &r.Spec.Rules[i]
		o.Rules = append(o.Rules, newRule(rule.Name, rule.BackendRefs, func(ref *gatewayv1.GRPCBackendRef) gatewayv1.BackendRef { return ref.BackendRef }))
	}
	return o
}

// newRule takes from the references of a kind what all kinds have.
func newRule[R any](name *gatewayv1.SectionName, refs []R, backend func(*R) gatewayv1.BackendRef) Rule {
	rule := Rule{Backends: make([]gatewayv1.BackendRef, len(refs))}
	if name != nil {
		rule.Name = string(*name)
	}
	for i := range refs {
		rule.Backends[i] = backend(&refs[i])
	}
	return rule
}

// String names the route for people: "GRPCRoute shop/web".
func (o *Object) String() string {
	return fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name)
}
