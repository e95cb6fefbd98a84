package auditlog

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Grants lists each verb on each resource that rules grant, once. A star is kept.
func Grants(rules ...rbacv1.PolicyRule) []Use {
	var grants []Use
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, text := range rule.Resources {
					resource, subresource, _ := strings.Cut(text, "/")
					grants = append(grants, Use{Verb: verb, Group: group, Resource: resource, Subresource: subresource})
				}
			}
		}
	}
	slices.SortFunc(grants, func(a, b Use) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(grants)
}

// Covers says whether a grant, which may have stars, allows a use.
func (u Use) Covers(use Use) bool {
	match := func(granted, used string) bool { return granted == "*" || granted == used }
	return match(u.Verb, use.Verb) && match(u.Group, use.Group) &&
		match(u.Resource, use.Resource) && match(u.Subresource, use.Subresource)
}

// Unused are the grants that the log has no use of, though for a grant with stars it is
// enough that one of what it allows was used.
func (l *Log) Unused(grants []Use) []Use {
	return slices.DeleteFunc(slices.Clone(grants), func(grant Use) bool {
		return slices.ContainsFunc(l.Sorted(), grant.Covers)
	})
}

// Uncovered are the uses that no grant allows, but for those of a path, such as /version,
// which everybody may ask for.
func (l *Log) Uncovered(grants []Use) []Use {
	return slices.DeleteFunc(l.Sorted(), func(use Use) bool {
		return use.Resource == "" || slices.ContainsFunc(grants, func(grant Use) bool { return grant.Covers(use) })
	})
}
