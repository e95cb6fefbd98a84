package route

import (
	"fmt"

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
