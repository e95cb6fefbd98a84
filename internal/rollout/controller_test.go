package rollout_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// controller is what the controller keeps in memory: what a crash loses.
type controller struct {
	// timer is when it wants to look again, by its own clock; zero: never.
	timer time.Time
	// refusals says why the last write to a route was refused.
	refusals map[string]string
	// owed is what was decided and could not be recorded; nil if there is nothing.
	owed *owed
	// seen is what the last pass saw of the health, and fleets of pods and workloads.
	seen   any
	fleets [2]int

	writes int
	crash  crash
	// race runs once, between a pass's reading and its first write to a route.
	race func()
	// beforePass and atRest run before every pass, and when nothing is left to write.
	beforePass, atRest func()
}

// crash says before or after which write the controller dies, once.
type crash struct {
	write int
	after bool
}

var never = crash{write: -1}

var (
	errCrashed  = errors.New("crashed")
	errRefused  = errors.New("refused")
	errConflict = errors.New("conflict")
)

// observe reads everything that a decision depends on, as the controller does.
func (w *world) observe() rollout.Observation {
	o := &w.object
	obs := rollout.Observation{
		Name: "web", Generation: o.generation, Spec: o.spec.DeepCopy(), Status: w.believed().DeepCopy(),
		Deleting: o.deleting, Orders: rollout.OrdersFrom(o.annotations), Owner: w.owner, SpecProblem: w.specProblem, Crossing: w.crossing,
	}
	w.observeFleets(&obs)
	for _, ref := range o.spec.Routes {
		if w.partOwner != "" && ref.Name == w.taken {
			continue
		}
		obs.Routes = append(obs.Routes, w.observeRoute(ref))
	}
	if len(obs.Routes) < len(o.spec.Routes) {
		obs.PartOwner, obs.Taken = w.partOwner, fmt.Sprintf("HTTPRoute %q", w.taken)
	}
	if len(obs.Routes) == 0 {
		// All that there were.
		obs.Owner, obs.PartOwner = w.partOwner, ""
		for _, ref := range o.spec.Routes {
			obs.Routes = append(obs.Routes, w.observeRoute(ref))
		}
	}
	if obs.Owner == "" && !obs.Deleting {
		obs.Verdict = rollout.Admit(w.verdict(), w.believed())
	}
	return obs
}

func (w *world) observeRoute(ref v1alpha1.RouteReference) rollout.Route {
	r := rollout.Route{Kind: ref.Kind, Name: ref.Name}
	served := w.route(ref.Name)
	if served == nil || served.stored == nil {
		return r
	}
	hr := served.stored
	r.Found, r.UID, r.Generation = true, hr.UID, hr.Generation
	shown := route.FromHTTPRoute(hr)
	r.Inspection = route.Inspect(shown, ref.RuleNames, route.Pair{
		Stable: route.Backend{Namespace: "shop", Service: w.object.spec.Stable.Service, Port: w.object.spec.Stable.Port},
		Canary: route.Backend{Namespace: "shop", Service: w.object.spec.Canary.Service, Port: w.object.spec.Canary.Port},
	})
	r.Acceptance = route.Accepted(shown, route.ConfirmGeneration, nil)
	r.Writer, r.WriteError = served.writer, w.controller.refusals[ref.Name]
	r.Mark = route.MarkOf(shown, rolloutUID)
	return r
}

func (w *world) route(name string) *servedRoute {
	for _, r := range w.routes {
		if r.name == name {
			return r
		}
	}
	return nil
}

// pass does what one Reconcile does: observe, decide, act. It tells whether it wrote.
func (w *world) pass() (wrote bool, err error) {
	if w.controller.beforePass != nil {
		w.controller.beforePass()
	}
	obs := w.observe()
	w.controller.seen = obs.Verdict.Signal()
	d := rollout.Decide(obs, w.clock())
	w.controller.timer = d.NextAt
	w.laws.decision(w, obs, d)
	before := w.controller.writes
	err = w.act(obs, d)
	wrote = w.controller.writes > before
	if errors.Is(err, errCrashed) {
		return wrote, err
	}
	if w.object.denied && w.controller.owed == nil && !w.object.deleting {
		// It is not stored, and does not stand: nobody is told.
		return wrote, err
	}
	if !wrote && len(d.Events) > 0 && !w.object.denied {
		w.tb.Fatalf("a pass that writes nothing has events, so they would be told again and again: %v", d.Events)
	}
	// The intent is on record, whatever became of the rest: people are told.
	w.journal.events(w, d.Events)
	return wrote, err
}

// write does one write to the API server, unless the controller dies first.
func (w *world) write(do func()) error {
	n, c := w.controller.writes, w.controller.crash
	w.controller.writes++
	if c.write != n {
		do()
		return nil
	}
	w.controller.crash = never
	if c.after {
		do()
	}
	return errCrashed
}

// act carries out a decision: finalizer, status, workloads, routes, and last the
// finalizer.
func (w *world) act(obs rollout.Observation, d rollout.Decision) error {
	o := &w.object
	if err := w.takeBack(obs, d); err != nil {
		return err
	}
	if !o.finalizer && !o.deleting && d.Writes != rollout.WriteNone {
		if err := w.write(func() { o.finalizer = true }); err != nil {
			return err
		}
	}
	if !equality.Semantic.DeepEqual(o.status, d.Status) {
		if w.object.denied && !o.deleting {
			return w.carryOn(obs, d)
		}
		if !w.object.denied {
			if err := w.write(func() { w.storeStatus(d) }); err != nil {
				return err
			}
		}
	}
	w.controller.owed = nil
	if w.sleeps(obs, d) {
		return errCrashed
	}
	if race := w.controller.race; race != nil {
		w.controller.race = nil
		race()
	}
	failed := w.writeWorkloads(obs, d)
	if errors.Is(failed, errCrashed) {
		return failed
	}
	for i := range obs.Routes {
		err := w.writeRoute(obs.Routes[i], d, nil)
		if errors.Is(err, errCrashed) {
			return err
		}
		// A route that is only to be let go of does not keep the object from going.
		if err != nil && (d.Writes != rollout.WriteForget || !errors.Is(err, errRefused)) {
			failed = err
		}
	}
	if failed != nil || !d.Release {
		return failed
	}
	return w.write(func() { o.finalizer, o.gone = false, o.deleting })
}

// storeStatus stores a status as it comes back from the API server.
func (w *world) storeStatus(d rollout.Decision) {
	text, err := json.Marshal(d.Status)
	if err != nil {
		w.tb.Fatalf("encode the status: %v", err)
	}
	w.object.status = v1alpha1.WeightedRolloutStatus{}
	if err := json.Unmarshal(text, &w.object.status); err != nil {
		w.tb.Fatalf("decode the status: %v", err)
	}
	w.journal.status(w)
}

func (w *world) writeRoute(o rollout.Route, d rollout.Decision, mark *route.Mark) error {
	r := w.route(o.Name)
	if !o.Found {
		return nil
	}
	if r.stored == nil {
		return errConflict
	}
	patch, err := w.patchFor(r.stored, o, d, mark)
	if err != nil {
		return err
	}
	if patch == nil {
		delete(w.controller.refusals, o.Name)
		return nil
	}
	if r.denied {
		w.controller.refusals[o.Name] = "httproutes is forbidden"
		return errRefused
	}
	delete(w.controller.refusals, o.Name)
	return w.write(func() {
		patched := applied(w.tb, r.stored, patch)
		w.laws.routeWrite(w, r, patched, d)
		w.store(r, patched)
		w.journal.route(w, r)
	})
}

func (w *world) patchFor(hr *gatewayv1.HTTPRoute, o rollout.Route, d rollout.Decision, mark *route.Mark) ([]byte, error) {
	if hr.ResourceVersion != o.Inspection.ResourceVersion {
		return nil, errConflict
	}
	change := route.Change{Owner: "web", UID: rolloutUID, Mark: mark}
	switch {
	case d.Writes == rollout.WriteForget:
		change.Release = true
	case d.Writes == rollout.WriteRelease:
		change.Release, change.Share = true, &d.Share
	case d.NeedsWrite(o):
		change.Share = &d.Share
	default:
		return nil, nil
	}
	patch, err := o.Inspection.Change(route.FromHTTPRoute(hr), change)
	if err != nil {
		w.tb.Fatalf("compute the patch: %v", err)
	}
	return patch, nil
}

// applied returns the route as the API server would store it after the patch.
func applied(tb failer, hr *gatewayv1.HTTPRoute, patch []byte) *gatewayv1.HTTPRoute {
	before, err := json.Marshal(hr)
	if err != nil {
		tb.Fatalf("encode the route: %v", err)
	}
	steps, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		tb.Fatalf("decode the patch %s: %v", patch, err)
	}
	after, err := steps.Apply(before)
	if err != nil {
		tb.Fatalf("apply the patch %s: %v", patch, err)
	}
	patched := &gatewayv1.HTTPRoute{}
	if err := json.Unmarshal(after, patched); err != nil {
		tb.Fatalf("decode the patched route: %v", err)
	}
	return patched
}

// restart is what the controller does after a crash: it has forgotten everything.
func (w *world) restart() {
	w.controller.timer, w.controller.seen = time.Time{}, nil
	w.controller.refusals = map[string]string{}
	if w.controller.owed != nil {
		w.controller.owed, w.laws.serving.attempt = nil, ""
	}
}

// settle lets the controller work until it has nothing more to write, as its
// watches do: every write brings another pass. The last pass sees what the one
// before has written and writes nothing: that is law 11.
func (w *world) settle() {
	w.tb.Helper()
	if w.controller.atRest != nil {
		defer w.controller.atRest()
	}
	var last error
	for range 12 {
		if w.object.gone {
			return
		}
		wrote, err := w.pass()
		switch {
		case errors.Is(err, errCrashed):
			w.restart()
		case err == nil && !wrote:
			return
		case errors.Is(err, errRefused) && errors.Is(last, errRefused) && !wrote:
			// The queue tries again, slower and slower.
			w.controller.timer = w.clock().Add(30 * time.Second)
			return
		}
		last = err
	}
	w.tb.Fatalf("%s: the controller does not come to rest: %+v", offset(w.at), w.status())
}

// runFor lets time pass: the gateway confirms, evidence grows, and the controller
// wakes up when it has asked for it or when something has happened.
func (w *world) runFor(d time.Duration) {
	w.tb.Helper()
	end := w.at.Add(d)
	w.runSync()
	w.journal.served(w, w.serve())
	w.settle()
	for !w.object.gone {
		next := w.nextEvent(end)
		if !next.Before(end) {
			break
		}
		w.at = next
		w.wake()
	}
	w.at = end
	w.wake()
}

// wake lets the controller look, if there is anything to see or it has asked for it.
func (w *world) wake() {
	w.tb.Helper()
	if w.object.gone {
		return
	}
	synced := w.runSync()
	changed := w.serve()
	w.journal.served(w, changed)
	w.tend()
	timer := w.controller.timer
	due := !timer.IsZero() && !timer.After(w.clock())
	if synced || len(changed) > 0 || due || w.controller.fleets != w.fleets() || w.controller.seen != w.verdictSignal() {
		w.settle()
	}
}

func (w *world) verdictSignal() any {
	if w.owner != "" || w.object.deleting {
		return rollout.Observation{}.Verdict.Signal()
	}
	return w.verdict().Signal()
}

// nextEvent returns the first time after now at which something may happen by
// itself, or end.
func (w *world) nextEvent(end time.Time) time.Time {
	next := end
	consider := func(t time.Time) {
		if t.After(w.at) && t.Before(next) {
			next = t
		}
	}
	if t := w.controller.timer; !t.IsZero() {
		consider(t.Add(-w.skew))
	}
	for _, r := range w.routes {
		if r.stored != nil && !w.gateway.silent {
			consider(r.due)
		}
	}
	for _, t := range slices.Concat(w.nextSignal(), w.stable.next(), w.canary.next()) {
		consider(t)
	}
	if t := w.syncTool; t != nil {
		consider(t.next)
	}
	return next
}

// until lets time pass, a little at a time, until the condition holds.
func (w *world) until(limit time.Duration, what string, holds func() bool) {
	w.tb.Helper()
	end := w.at.Add(limit)
	for w.settle(); !holds(); {
		next := w.nextEvent(end)
		if !next.Before(end) {
			w.tb.Fatalf("%s: after %s it is not so that %s: %s", offset(w.at), limit, what, w.summary())
		}
		w.at = next
		w.wake()
	}
}

func (w *world) summary() string {
	s := w.status()
	desired := v1alpha1.Percent("none")
	if s.Share.Desired != nil {
		desired = *s.Share.Desired
	}
	return fmt.Sprintf("attempt %d, %s, %s, %s percent, routes %s", s.Attempt, s.Phase, s.Outcome, desired, w.wire())
}
