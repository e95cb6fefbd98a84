package simulate

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// maxPasses is how many passes the controller may need to come to rest at one moment.
// Three are usual.
const maxPasses = 24

// controller does what the reconciler does: observe, decide, act, report.
type controller struct {
	world   *world
	journal *journal
	// timer is when it wants to look again, as a time since the start; below 0: never.
	timer time.Duration

	passes, statusWrites, routeWrites int
}

// never is the timer of a controller that waits for an event.
const never = time.Duration(-1)

// observe reads everything that a decision depends on.
func (c *controller) observe() rollout.Observation {
	w := c.world
	obs := rollout.Observation{
		Name: w.options.Name, Generation: w.generation, Spec: &w.spec, Status: &w.status,
		Orders:      rollout.OrdersFrom(w.annotations),
		StableReady: w.stableReady, CanaryReady: w.canaryReady,
	}
	for i, ref := range w.spec.Routes {
		r := w.routes[i]
		shown := r.show()
		obs.Routes = append(obs.Routes, rollout.Route{
			Kind: shown.Kind, Name: ref.Name, Found: true, UID: r.stored.UID, Generation: r.stored.Generation,
			Inspection: route.Inspect(shown, ref.RuleNames, pairOf(&w.spec)),
			Acceptance: route.Accepted(shown, route.ConfirmGeneration, nil),
			Writer:     r.writer,
		})
	}
	w.evidence.track(targetOf(&w.spec, &w.status), w.clock())
	obs.Verdict = rollout.Admit(w.evidence.verdict(w.clock()), &w.status)
	return obs
}

func pairOf(spec *v1alpha1.WeightedRolloutSpec) route.Pair {
	backend := func(t *v1alpha1.Track) route.Backend {
		return route.Backend{Namespace: cmp.Or(t.Namespace, namespace), Service: t.Service, Port: t.Port}
	}
	return route.Pair{Stable: backend(&spec.Stable.Track), Canary: backend(&spec.Canary.Track)}
}

// settle decides until nothing is left to write: every write brings another pass.
func (c *controller) settle() error {
	for range maxPasses {
		wrote, err := c.pass()
		if err != nil {
			return err
		}
		if !wrote {
			return nil
		}
	}
	return fmt.Errorf("at %s the controller has not come to rest after %d passes: %s", Elapsed(c.world.now), maxPasses, readyText(&c.world.status))
}

// pass is one reconciliation: the status first, and then the routes. It tells whether
// it wrote anything.
func (c *controller) pass() (wrote bool, err error) {
	w := c.world
	obs := c.observe()
	d := rollout.Decide(obs, w.clock())
	c.passes++
	c.timer = never
	if !d.NextAt.IsZero() {
		c.timer = d.NextAt.Sub(w.script.start)
	}
	if !equality.Semantic.DeepEqual(w.status, d.Status) {
		before := w.status
		w.status = d.Status
		c.statusWrites++
		wrote = true
		c.journal.status(w, &before, d)
	}
	for i := range obs.Routes {
		done, err := c.writeRoute(i, obs.Routes[i], d)
		if err != nil {
			return wrote, err
		}
		wrote = wrote || done
	}
	c.journal.told(w, d.Events)
	return wrote, nil
}

// writeRoute brings a route to the decided share, by the same patch that goes to an
// API server.
func (c *controller) writeRoute(i int, o rollout.Route, d rollout.Decision) (bool, error) {
	w, r := c.world, c.world.routes[i]
	if !d.NeedsWrite(o) {
		return false, nil
	}
	patch, err := o.Inspection.Patch(r.show(), d.Share, w.options.Name)
	if err != nil || patch == nil {
		return false, err
	}
	hr, err := patched(r.stored, patch)
	if err != nil {
		return false, err
	}
	r.store(hr, w.now+w.script.delay)
	c.routeWrites++
	c.journal.route(w)
	return true, nil
}
