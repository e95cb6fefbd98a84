package route

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// parent is a parentRef with its defaults filled in, so that two can be compared.
type parent struct {
	group, kind, namespace, name, section string
	port                                  int32
}

func parentOf(ref gatewayv1.ParentReference, namespace string) parent {
	p := parent{group: gatewayv1.GroupName, kind: "Gateway", namespace: namespace, name: string(ref.Name)}
	if ref.Group != nil {
		// The empty group is the core group, and not the default.
		p.group = string(*ref.Group)
	}
	if ref.Kind != nil && *ref.Kind != "" {
		p.kind = string(*ref.Kind)
	}
	if ref.Namespace != nil && *ref.Namespace != "" {
		p.namespace = string(*ref.Namespace)
	}
	if ref.SectionName != nil {
		p.section = string(*ref.SectionName)
	}
	if ref.Port != nil {
		p.port = *ref.Port
	}
	return p
}

// String names the parent for people: `Gateway infra/public section "https"`.
func (p parent) String() string {
	s := p.kind
	if p.group != gatewayv1.GroupName && p.group != "" {
		s += "." + p.group
	}
	s += " " + p.namespace + "/" + p.name
	if p.section != "" {
		s += fmt.Sprintf(" section %q", p.section)
	}
	if p.port != 0 {
		s += fmt.Sprintf(" port %d", p.port)
	}
	return s
}

// Server says whose reports on a parent count. The zero value takes anybody's.
type Server struct {
	// Controllers are those whose reports count; with none, anybody's do.
	Controllers []gatewayv1.GatewayController
	// Source is what names the controllers, for messages: `GatewayClass "traefik"`.
	Source string
	// Problem says why nobody serves the parent, and the cure. No report counts then.
	Problem string
	// Doubt says why it is not known who serves the parent, and the cure. It goes with
	// a confirmation as a note.
	Doubt string
}

// GatewayOf names the Gateway that a parentRef of a route in the given namespace refers
// to. ok is false if it refers to anything else, such as a Service.
func GatewayOf(ref gatewayv1.ParentReference, namespace string) (key types.NamespacedName, ok bool) {
	p := parentOf(ref, namespace)
	return types.NamespacedName{Namespace: p.namespace, Name: p.name}, p.group == gatewayv1.GroupName && p.kind == "Gateway"
}

// counts reports whether what a controller reports on the parent counts.
func (s Server) counts(controller gatewayv1.GatewayController) bool {
	return len(s.Controllers) == 0 || slices.Contains(s.Controllers, controller)
}

// missing says that no report on the parent counts; others are controllers whose reports
// do not.
func (s Server) missing(p parent, others []string) string {
	text := fmt.Sprintf("no controller reports on %s", p)
	if len(s.Controllers) > 0 {
		text = fmt.Sprintf("%s, which %s names, does not report on %s: see that it runs and serves it", s.names(), s.Source, p)
	}
	if len(others) > 0 {
		text += fmt.Sprintf(" (a report by %s does not count)", strings.Join(others, ", "))
	}
	return text
}

func (s Server) names() string {
	names := make([]string, len(s.Controllers))
	for i, c := range s.Controllers {
		names[i] = bounded(string(c), maxQuoted)
	}
	return "controller " + strings.Join(names, " or ")
}
