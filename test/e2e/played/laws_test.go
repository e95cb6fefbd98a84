package played

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// checkLaws reads the laws off everything that the manager wrote, in order: both
// weights in one write, never 0 in sum, based on the version that was read, as
// recorded before, never above the stage; and no share confirmed that the API
// server has not accepted. It relies on every route being named like its rollout.
func (w *world) checkLaws() {
	w.t.Helper()
	type record struct {
		object  any  // the rollout, as far as the manager's patches tell
		written bool // a write of the route was accepted
		share   float64
	}
	records := map[string]*record{}
	of := func(name string) *record {
		if records[name] == nil {
			records[name] = &record{}
		}
		return records[name]
	}
	for _, r := range w.api.inOrder() {
		rec := of(r.Name)
		if r.isRolloutWrite() {
			patch, err := r.patch()
			if err != nil {
				w.t.Error(err)
				continue
			}
			rec.object = merged(rec.object, patch)
			desired := number(at(rec.object, "status", "share", "desired"))
			confirms := at(patch, "status", "share", "confirmedAt") != nil
			if confirms && rec.written && rec.share != desired {
				w.t.Errorf("request %d confirms %g percent, but the last accepted write to the route says %g", r.Number, desired, rec.share)
			}
			continue
		}
		share, ok := w.checkRouteWrite(r)
		if !ok {
			continue
		}
		// What lowers waits for its record no longer than half a second.
		lowers := share == 0 || rec.written && share < rec.share
		rec.written, rec.share = true, share
		desired := number(at(rec.object, "status", "share", "desired"))
		if share != desired && !lowers {
			w.t.Errorf("request %d writes %g percent, but the recorded intent is %g", r.Number, share, desired)
		}
		outcome, _ := at(rec.object, "status", "outcome").(string)
		stage := number(at(rec.object, "status", "stage", "weight"))
		if outcome == string(v1alpha1.OutcomeInProgress) && share > stage {
			w.t.Errorf("request %d writes %g percent in a stage of %g", r.Number, share, stage)
		}
	}
}

// checkRouteWrite checks one write to a route by itself, and returns the share
// that it gives the canary. ok is false if it sets no weights.
func (w *world) checkRouteWrite(r *request) (share float64, ok bool) {
	w.checkPaths(r)
	set, err := r.weights()
	if err != nil {
		w.t.Error(err)
		return 0, false
	}
	for rule, refs := range set {
		sum := 0
		for _, weight := range refs {
			sum += weight
		}
		if len(refs) != 2 || sum <= 0 {
			w.t.Errorf("request %d leaves rule %d with the weights %v", r.Number, rule, refs)
			return 0, false
		}
		share, ok = float64(refs[1])*100/float64(sum), true
	}
	return share, ok
}

// checkPaths checks that a write to a route is based on the version that was read, and
// touches nothing but weights and our annotation.
func (w *world) checkPaths(r *request) {
	ops, err := r.operations()
	if err != nil {
		w.t.Error(err)
		return
	}
	for i, op := range ops {
		switch {
		case i == 0:
			if op.Op != "replace" || op.Path != "/metadata/resourceVersion" {
				w.t.Errorf("request %d does not begin with the resourceVersion that it is based on: %s", r.Number, r.Body)
			}
		case weightPath.MatchString(op.Path) || op.Path == "/metadata/annotations" || op.Path == annotationPath || op.Path == markPath:
		default:
			w.t.Errorf("request %d touches %s", r.Number, op.Path)
		}
		if op.Path == "/metadata/annotations" {
			var set map[string]string
			if err := json.Unmarshal(op.Value, &set); err != nil || !slices.Equal(slices.Collect(maps.Keys(set)), []string{v1alpha1.ManagedByAnnotation}) {
				w.t.Errorf("request %d sets other annotations than ours: %s", r.Number, op.Value)
			}
		}
	}
}

// annotationPath is the path of our annotation in a JSON Patch, and markPath that of the one
// that a lowering leaves whose record took long.
const (
	annotationPath = "/metadata/annotations/weightedrollout.dev~1managed-by"
	markPath       = "/metadata/annotations/weightedrollout.dev~1lowered"
)
