package route

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

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

// Change is what a write makes of a route.
type Change struct {
	// Share is what the canary gets in every managed rule; nil leaves the weights.
	Share *weights.Share
	// Owner is the name of the rollout.
	Owner string
	// Release takes the owner's name and mark out of the annotations, rather than put them
	// in.
	Release bool
	// UID is the rollout's. Mark is what it leaves on the route; nil takes a mark away.
	UID  types.UID
	Mark *Mark
	// WeightsOnly leaves the annotations as they are.
	WeightsOnly bool
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
	return i.Change(r, Change{Share: &share, Owner: owner})
}

// Release returns the JSON Patch that takes the owner's name out of the route's
// annotation, and the annotation away with the last name. With a share, it also sets
// the weights as Patch does; without (nil), it leaves them. It returns nil if nothing
// changes, and fails as Patch does. A route without a managed rule is released too.
func (i Inspection) Release(r *Object, share *weights.Share, owner string) ([]byte, error) {
	return i.Change(r, Change{Share: share, Owner: owner, Release: true})
}

// Change returns the JSON Patch for a change; see Patch and Release.
func (i Inspection) Change(r *Object, c Change) ([]byte, error) {
	if r == nil || !c.Release && len(i.Rules) == 0 {
		return nil, nil
	}
	if err := checkOwner(c.Owner); err != nil {
		return nil, err
	}
	var steps []any
	if c.Share != nil {
		steps = i.weightSteps(*c.Share)
	}
	if !c.WeightsOnly {
		steps = append(steps, ownerSteps(r.Annotations, c)...)
		steps = append(steps, markSteps(r.Annotations, c.UID, c.Mark)...)
	}
	return i.encode(r, steps)
}

// ownerSteps puts the owner's name into the annotation, or takes it out.
func ownerSteps(annotations map[string]string, c Change) []any {
	value := annotations[v1alpha1.ManagedByAnnotation]
	next := withOwner(value, c.Owner)
	if c.Release {
		next = withoutOwner(value, c.Owner)
	}
	switch next {
	case value:
		return nil
	case "":
		return []any{removal{Op: "remove", Path: annotationPath(v1alpha1.ManagedByAnnotation)}}
	}
	return []any{setAnnotation(annotations, next)}
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
