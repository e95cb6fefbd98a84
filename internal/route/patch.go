package route

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// operation is one step of a JSON Patch (RFC 6902). Its value has no omitempty: a
// weight of 0 that is left out would be read as 1.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// removal is the one step that has no value.
type removal struct {
	Op   string `json:"op"`
	Path string `json:"path"`
}

// Patch returns the JSON Patch that gives the canary the share in every managed rule
// and names the owner, a rollout, in the route's annotation; nil if the route says
// all that already, or if it has no managed rule.
//
// A rule's two weights are always written together. The patch first replaces the
// resourceVersion by the one that the indexes were read from, so the API server
// answers a stale one with a conflict and never writes to the wrong entry. It touches
// nothing else, so fields that this build does not know survive it.
//
// It fails if r is not the version that was inspected, has no resourceVersion to be
// checked against, or if owner is no object name.
func (i Inspection) Patch(r *Object, share weights.Share, owner string) ([]byte, error) {
	if r == nil || len(i.Rules) == 0 {
		return nil, nil
	}
	if err := checkOwner(owner); err != nil {
		return nil, err
	}
	steps := i.weightSteps(share)
	value := r.Annotations[v1alpha1.ManagedByAnnotation]
	if next := withOwner(value, owner); next != value {
		steps = append(steps, setAnnotation(r.Annotations, next))
	}
	return i.encode(r, steps)
}

// Release returns the JSON Patch that takes the owner's name out of the route's
// annotation, and the annotation away with the last name. With a share, it also sets
// the weights as Patch does; without (nil), it leaves them. It returns nil if nothing
// changes, and fails as Patch does. A route without a managed rule is released too.
func (i Inspection) Release(r *Object, share *weights.Share, owner string) ([]byte, error) {
	if r == nil {
		return nil, nil
	}
	if err := checkOwner(owner); err != nil {
		return nil, err
	}
	var steps []any
	if share != nil {
		steps = i.weightSteps(*share)
	}
	value := r.Annotations[v1alpha1.ManagedByAnnotation]
	switch next := withoutOwner(value, owner); next {
	case value:
	case "":
		steps = append(steps, removal{Op: "remove", Path: annotationPath(v1alpha1.ManagedByAnnotation)})
	default:
		steps = append(steps, setAnnotation(r.Annotations, next))
	}
	return i.encode(r, steps)
}

// weightSteps sets both weights of every managed rule that does not match the share.
func (i Inspection) weightSteps(share weights.Share) []any {
	var steps []any
	for _, m := range i.Rules {
		if m.matches(share) {
			continue
		}
		stable, canary := m.Target(share)
		// "add" sets a member of an object whether it is there or not.
		steps = append(steps,
			operation{Op: "add", Path: weightPath(m.Index, m.StableRef), Value: stable},
			operation{Op: "add", Path: weightPath(m.Index, m.CanaryRef), Value: canary},
		)
	}
	return steps
}

// setAnnotation sets our annotation. A member can only be added to a map that exists,
// so without any annotation the map is added with it.
func setAnnotation(annotations map[string]string, value string) operation {
	if len(annotations) == 0 {
		return operation{Op: "add", Path: "/metadata/annotations", Value: map[string]string{v1alpha1.ManagedByAnnotation: value}}
	}
	return operation{Op: "add", Path: annotationPath(v1alpha1.ManagedByAnnotation), Value: value}
}

func (i Inspection) encode(r *Object, steps []any) ([]byte, error) {
	if r.ResourceVersion != i.ResourceVersion {
		return nil, fmt.Errorf("%s: inspected at resourceVersion %q, but the patch is for %q", i.Route, i.ResourceVersion, r.ResourceVersion)
	}
	if len(steps) == 0 {
		return nil, nil
	}
	if r.ResourceVersion == "" {
		return nil, errors.New(i.Route + " has no resourceVersion, so a stale write could not be told")
	}
	guard := operation{Op: "replace", Path: "/metadata/resourceVersion", Value: r.ResourceVersion}
	patch, err := json.Marshal(append([]any{guard}, steps...))
	if err != nil {
		return nil, fmt.Errorf("%s: encode the patch: %w", i.Route, err)
	}
	return patch, nil
}

func weightPath(rule, ref int) string {
	return fmt.Sprintf("/spec/rules/%d/backendRefs/%d/weight", rule, ref)
}

// annotationPath writes a key as RFC 6901 demands it.
func annotationPath(key string) string {
	return "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
