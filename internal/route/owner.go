package route

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// ownerSeparator stands between the names of several rollouts in the annotation.
// No object's name contains it.
const ownerSeparator = ","

// Owners returns the names of the rollouts that the route's annotation says manage
// it, sorted. Rollouts may manage different rules of one route, so there may be
// several: with one name only, each would replace the other's for ever.
func Owners(r *Object) []string {
	if r == nil {
		return nil
	}
	return owners(r.Annotations[v1alpha1.ManagedByAnnotation])
}

func owners(value string) []string {
	var names []string
	for name := range strings.SplitSeq(value, ownerSeparator) {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// withOwner returns the annotation's value with the owner in it. A value that has it
// is returned as it is: a tidier text is not worth a write.
func withOwner(value, owner string) string {
	names := owners(value)
	if slices.Contains(names, owner) {
		return value
	}
	names = append(names, owner)
	slices.Sort(names)
	return strings.Join(names, ownerSeparator)
}

// withoutOwner returns the annotation's value without the owner; empty if no other
// is left.
func withoutOwner(value, owner string) string {
	names := owners(value)
	if !slices.Contains(names, owner) {
		return value
	}
	return strings.Join(slices.DeleteFunc(names, func(name string) bool { return name == owner }), ownerSeparator)
}

// checkOwner refuses what could not be told apart again.
func checkOwner(owner string) error {
	if owner == "" || strings.Contains(owner, ownerSeparator) || strings.TrimSpace(owner) != owner {
		return fmt.Errorf("%q is no name of a rollout", owner)
	}
	return nil
}
