package route

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// Problem says why a route cannot be managed, or not as asked.
type Problem struct {
	// Reason is one of the v1alpha1 reasons of the condition Stalled:
	// ReasonRouteMissing, ReasonInvalidSpec, ReasonNoMatchingRule,
	// ReasonDuplicateBackendRef or ReasonWeightResolution.
	Reason string
	// Message says where, and what to do. It is stable and at most 500 bytes long.
	Message string
}

// ManagedRule is a rule of the route that holds both backends once.
type ManagedRule struct {
	// Index of the rule in spec.rules.
	Index int
	// Name of the rule; empty if it has none.
	Name string
	// StableRef and CanaryRef are the indexes of the two in the rule's backendRefs.
	StableRef, CanaryRef int
	// StableWeight and CanaryWeight are as the route has them; 1 where left out.
	StableWeight, CanaryWeight int32
	// Others says that a third backend shares the rule.
	Others bool
	// OthersWeight is the sum of the weights of the other backends.
	OthersWeight int64
}

// Inspection is what one version of a route says about a pair of backends.
type Inspection struct {
	// Route is the kind, namespace and name of the route, for messages.
	Route string
	// ResourceVersion is that of the route that was read; indexes hold for no other.
	ResourceVersion string
	// Pair is the pair that was looked for, its namespaces filled in.
	Pair Pair
	// Rules are the managed rules, in the route's order. With a Problem, they are
	// the ones that can be managed nevertheless: enough to lower the canary's share,
	// never to raise it.
	Rules []ManagedRule
	// Problem is nil if everything that was asked for can be managed.
	Problem *Problem
}

// Inspect finds the rules of r that hold both backends of the pair. With ruleNames,
// it looks only at rules of these names, and each of them must hold both. A rule
// that holds only one of the two is not managed: it may pin testers to the canary
// by a header, or serve a path that has no canary. Filters are never looked at, so a
// mirror's backend is none of the pair. A nil route is a Problem.
func Inspect(r *Object, ruleNames []string, pair Pair) Inspection {
	if r == nil {
		return Inspection{Problem: problemf(v1alpha1.ReasonRouteMissing, "the route does not exist")}
	}
	i := Inspection{
		Route:           r.String(),
		ResourceVersion: r.ResourceVersion,
		Pair:            Pair{Stable: pair.Stable.in(r.Namespace), Canary: pair.Canary.in(r.Namespace)},
	}
	if i.Pair.Stable == i.Pair.Canary {
		i.Problem = problemf(v1alpha1.ReasonInvalidSpec, "stable and canary are both %s: traffic cannot be divided between a backend and itself", i.Pair.Stable)
		return i
	}

	holding := map[string]bool{}
	var duplicates []string
	for index, rule := range r.Rules {
		if len(ruleNames) > 0 && !slices.Contains(ruleNames, rule.Name) {
			continue
		}
		stable, canary := refsTo(rule, r.Namespace, i.Pair.Stable), refsTo(rule, r.Namespace, i.Pair.Canary)
		if len(stable) == 0 || len(canary) == 0 {
			continue
		}
		holding[rule.Name] = true
		if len(stable) > 1 || len(canary) > 1 {
			duplicates = append(duplicates, i.describeDuplicate(index, rule.Name, len(stable), len(canary)))
			continue
		}
		i.Rules = append(i.Rules, managedRule(rule, index, stable[0], canary[0]))
	}
	i.Problem = i.problem(r, ruleNames, holding, duplicates)
	return i
}

// Without returns the inspection without the rules that another one of the same route
// has.
func (i Inspection) Without(other Inspection) Inspection {
	i.Rules = slices.DeleteFunc(slices.Clone(i.Rules), func(m ManagedRule) bool {
		return slices.ContainsFunc(other.Rules, func(o ManagedRule) bool { return o.Index == m.Index })
	})
	return i
}

// problem reports duplicates before absent rules: they are the more particular fault.
func (i Inspection) problem(r *Object, ruleNames []string, holding map[string]bool, duplicates []string) *Problem {
	if len(duplicates) > 0 {
		return problemf(v1alpha1.ReasonDuplicateBackendRef, "%s: %s: keep one entry of each backend per rule", i.Route, strings.Join(duplicates, "; "))
	}
	if len(ruleNames) == 0 {
		if len(i.Rules) > 0 {
			return nil
		}
		return problemf(v1alpha1.ReasonNoMatchingRule, "no rule of %s holds both %s and %s%s", i.Route, i.Pair.Stable, i.Pair.Canary, i.nearMiss(r))
	}

	var absent, lacking []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(ruleNames))) {
		switch {
		case holding[name]:
		case slices.ContainsFunc(r.Rules, func(rule Rule) bool { return rule.Name == name }):
			lacking = append(lacking, fmt.Sprintf("%q", name))
		default:
			absent = append(absent, fmt.Sprintf("%q", name))
		}
	}
	var parts []string
	if len(absent) > 0 {
		parts = append(parts, "there is no rule named "+strings.Join(absent, " or "))
	}
	if len(lacking) > 0 {
		parts = append(parts, fmt.Sprintf("the rule named %s does not hold both %s and %s%s", strings.Join(lacking, " or "), i.Pair.Stable, i.Pair.Canary, i.nearMiss(r)))
	}
	if len(parts) == 0 {
		return nil
	}
	return problemf(v1alpha1.ReasonNoMatchingRule, "%s: %s", i.Route, strings.Join(parts, "; "))
}

// nearMiss names the ports under which the route refers to the pair's Services, if
// they are not the pair's: the likeliest slip, and hard to see otherwise.
func (i Inspection) nearMiss(r *Object) string {
	var found []string
	for _, rule := range r.Rules {
		for _, ref := range rule.Backends {
			b, ok := backendOf(ref.BackendObjectReference, r.Namespace)
			if !ok {
				continue
			}
			for _, want := range []Backend{i.Pair.Stable, i.Pair.Canary} {
				if b.Namespace == want.Namespace && b.Service == want.Service && b != i.Pair.Stable && b != i.Pair.Canary {
					found = append(found, b.String())
				}
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	return "; the route has " + strings.Join(slices.Compact(found), ", ")
}

func (i Inspection) describeDuplicate(index int, name string, stable, canary int) string {
	var parts []string
	if stable > 1 {
		parts = append(parts, fmt.Sprintf("%s %d times", i.Pair.Stable, stable))
	}
	if canary > 1 {
		parts = append(parts, fmt.Sprintf("%s %d times", i.Pair.Canary, canary))
	}
	return fmt.Sprintf("%s lists %s", ruleLabel(index, name), strings.Join(parts, " and "))
}

// refsTo returns the indexes of the rule's references to the backend.
func refsTo(rule Rule, namespace string, want Backend) []int {
	var indexes []int
	for index, ref := range rule.Backends {
		if b, ok := backendOf(ref.BackendObjectReference, namespace); ok && b == want {
			indexes = append(indexes, index)
		}
	}
	return indexes
}

func managedRule(rule Rule, index, stable, canary int) ManagedRule {
	m := ManagedRule{
		Index:        index,
		Name:         rule.Name,
		StableRef:    stable,
		CanaryRef:    canary,
		StableWeight: weightOf(rule.Backends[stable]),
		CanaryWeight: weightOf(rule.Backends[canary]),
		Others:       len(rule.Backends) > 2,
	}
	for other, ref := range rule.Backends {
		if other != stable && other != canary {
			m.OthersWeight += int64(max(weightOf(ref), 0))
		}
	}
	return m
}

// ruleLabel names a rule by its index, and its name if it has one.
func ruleLabel(index int, name string) string {
	if name == "" {
		return fmt.Sprintf("rule %d", index)
	}
	return fmt.Sprintf("rule %d (%q)", index, name)
}

func problemf(reason, format string, args ...any) *Problem {
	return &Problem{Reason: reason, Message: bounded(fmt.Sprintf(format, args...), maxMessage)}
}
