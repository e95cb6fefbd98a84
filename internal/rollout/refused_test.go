package rollout_test

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

const rolloutUID = types.UID("uid-of-web")

// owed is a decision that the API server did not store.
type owed struct {
	stored, status v1alpha1.WeightedRolloutStatus
	mark           *route.Mark
}

// believed is the status that the controller goes by.
func (w *world) believed() *v1alpha1.WeightedRolloutStatus {
	if o := w.controller.owed; o != nil && equality.Semantic.DeepEqual(o.stored, w.object.status) {
		return &o.status
	}
	return &w.object.status
}

// carryOn does what the controller does about a decision that is not stored.
func (w *world) carryOn(obs rollout.Observation, d rollout.Decision) error {
	if !w.object.busy {
		obs.Unrecorded = true
		d = rollout.Decide(obs, w.clock())
	}
	var mark *route.Mark
	if !d.Raises {
		mark = w.controller.owed.markOf(&w.object.status, d)
		w.controller.owed = &owed{stored: *w.object.status.DeepCopy(), status: *d.Status.DeepCopy(), mark: mark}
	} else if w.controller.owed == nil {
		// An attempt that begins without a record begins again.
		w.laws.serving.attempt = ""
	}
	ended := mark != nil && mark.Ended && w.object.status.Attempt == mark.Attempt
	if ended && obs.Orders.Abort < mark.Attempt && !w.object.ordersDenied {
		if err := w.write(func() { w.abort(mark.Attempt) }); err != nil {
			return err
		}
	}
	err := errRefused
	for _, r := range obs.Routes {
		if !d.Lowers(r) {
			continue
		}
		if failed := w.writeRoute(r, d, mark); failed != nil {
			err = failed
		}
	}
	// After a conflict the next pass does the same.
	if !errors.Is(err, errCrashed) && !errors.Is(err, errConflict) {
		w.laws.loweredAll(w, obs, d)
	}
	if ended && !errors.Is(err, errCrashed) {
		if marked := w.markRoutes(obs, mark, func(o rollout.Route) bool { return o.Found && !d.Lowers(o) }); marked != nil {
			err = marked
		}
	}
	return err
}

// markOf is the mark of a decision that is not stored, or the owed one if that says more.
func (o *owed) markOf(stored *v1alpha1.WeightedRolloutStatus, d rollout.Decision) *route.Mark {
	mark := d.Mark
	if mark != nil {
		mark = mark.Instead(stored)
	}
	if o != nil && o.mark != nil && o.mark.Outlasts(mark) {
		return o.mark
	}
	return mark
}

// takeBack marks the routes whose raise may be under way.
func (w *world) takeBack(obs rollout.Observation, d rollout.Decision) error {
	if d.Mark == nil {
		return nil
	}
	for _, o := range obs.Routes {
		if r := w.route(o.Name); d.TakesBack(o) && r != nil && r.denied {
			// A route that refuses every write cannot be marked.
			w.sleeper = nil
		}
	}
	return w.markRoutes(obs, d.Mark.Plain(), d.TakesBack)
}

// markRoutes leaves a mark on routes, and changes nothing else in them.
func (w *world) markRoutes(obs rollout.Observation, mark *route.Mark, picked func(rollout.Route) bool) error {
	for i, o := range obs.Routes {
		r := w.route(o.Name)
		if !picked(o) || r.stored == nil || r.denied || r.stored.UID != o.UID {
			continue
		}
		shown := route.FromHTTPRoute(r.stored)
		is := route.Inspect(shown, w.object.spec.Routes[i].RuleNames, o.Inspection.Pair)
		patch, err := is.Change(shown, route.Change{Owner: "web", UID: rolloutUID, Mark: mark})
		if err != nil {
			w.tb.Fatalf("compute the patch: %v", err)
		}
		if patch == nil {
			continue
		}
		err = w.write(func() {
			patched := applied(w.tb, r.stored, patch)
			patched.ResourceVersion, patched.Generation = fmt.Sprint(w.journal.counter()), r.stored.Generation
			r.stored = patched
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sleeper is a leader that was stopped between its record and its first write to a route.
type sleeper struct {
	obs rollout.Observation
	d   rollout.Decision
}

// sleeps stops the controller before a raise, if that is to happen: another one takes over.
func (w *world) sleeps(obs rollout.Observation, d rollout.Decision) bool {
	if !w.sleepNext || !d.Raises || d.Writes != rollout.WriteAll {
		return false
	}
	w.sleepNext, w.sleeper = false, &sleeper{obs: obs, d: d}
	return true
}

// wakeSleeper lets the stopped leader go on where it was. After a conflict it reads the
// route, and then the rollout.
func (w *world) wakeSleeper() {
	s := w.sleeper
	w.sleeper = nil
	if s == nil || w.object.gone {
		return
	}
	for i, o := range s.obs.Routes {
		r := w.route(o.Name)
		if !o.Found || r == nil || r.stored == nil || r.denied || !s.d.NeedsWrite(o) {
			continue
		}
		if r.stored.ResourceVersion != o.Inspection.ResourceVersion {
			is := w.observeRoute(s.obs.Spec.Routes[i])
			low, high := o.Inspection.Observed()
			nowLow, nowHigh := is.Inspection.Observed()
			if is.UID != o.UID || s.d.Climbs(is) && (low != nowLow || high != nowHigh || !w.intends(s)) {
				continue
			}
			o = is
		}
		patch, err := w.patchFor(r.stored, o, s.d, nil)
		if err != nil || patch == nil {
			continue
		}
		before, _ := w.live(w.indexOf(o.Name)).shares()
		patched := applied(w.tb, r.stored, patch)
		w.store(r, patched)
		w.journal.route(w, r)
		_, after := w.live(w.indexOf(o.Name)).shares()
		if desired, known := desiredOf(w.status()); after > before && (!known || after > max(desired, before)) {
			w.tb.Fatalf("%s: a leader that was stopped raises the canary from %d to %d, and the record says %d (%v)", offset(w.at), before, after, desired, known)
		}
	}
}

// intends reports whether the rollout still carries the intent of the stopped leader.
func (w *world) intends(s *sleeper) bool {
	is, was := w.status(), s.d.Status
	return w.object.generation == s.obs.Generation && w.object.deleting == s.obs.Deleting && is.Attempt == was.Attempt && is.Outcome == was.Outcome && (is.Pause == nil) == (was.Pause == nil) &&
		rollout.OrdersFrom(w.object.annotations).Abort != was.Attempt &&
		equality.Semantic.DeepEqual(is.Share.Desired, was.Share.Desired) && is.Share.ChangedAt.Equal(was.Share.ChangedAt)
}

func (w *world) indexOf(name string) int {
	for i, r := range w.routes {
		if r.name == name {
			return i
		}
	}
	return -1
}

// shares are the canary's part of a pair of weights, rounded down and up.
func (p pair) shares() (low, high weights.Share) {
	weight := func(w *int32) int64 {
		if w == nil {
			return 1
		}
		return int64(*w)
	}
	return weights.Part(weight(p.canary), weight(p.stable)+weight(p.canary))
}

// endedIn names a place that says that the attempt of a status is over, or is empty.
func (w *world) endedIn(s *v1alpha1.WeightedRolloutStatus) string {
	if rollout.OrdersFrom(w.object.annotations).Abort == s.Attempt {
		return "the abort order"
	}
	for _, r := range w.routes {
		if m := route.MarkOf(route.FromHTTPRoute(r.stored), rolloutUID); m != nil && m.Ended && m.Attempt == s.Attempt && m.Revision == s.Revision {
			return "route " + r.name
		}
	}
	return ""
}

// loweredAll checks that what a decision lowers was lowered, though it is not recorded.
func (l *laws) loweredAll(w *world, obs rollout.Observation, d rollout.Decision) {
	w.tb.Helper()
	for _, o := range obs.Routes {
		r := w.route(o.Name)
		if l.off || r.stored == nil || r.denied || !d.Lowers(o) {
			continue
		}
		if d.Lowers(w.observeRoute(v1alpha1.RouteReference{Kind: o.Kind, Name: o.Name})) {
			w.tb.Fatalf("%s: the decision lowers route %s to %d, which has %s: the status cannot be written", offset(w.at), o.Name, d.Share, w.live(w.indexOf(o.Name)))
		}
	}
}
