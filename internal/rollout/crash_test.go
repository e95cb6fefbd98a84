package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestCrashAnywhere lets the controller die before and after every single write of
// a rollout, and start again. What it comes to then must be what it comes to without
// the crash, in every status, weight and timer. What follows from there is the same,
// since a decision depends on nothing else: so the routes never notice.
func TestCrashAnywhere(t *testing.T) {
	for name, spec := range map[string]v1alpha1.WeightedRolloutSpec{
		"default plan": defaultSpec(),
		"small plan":   smallSpec(),
		"two routes":   alsoRoute(smallSpec()),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, spec)
			crashes := crashEverywhere(w)
			for i := range w.routes {
				w.edit(i, weightsOf(1, 1), "kubectl-edit")
			}
			w.until(24*time.Hour, "the revision is promoted", w.reason(v1alpha1.ReasonPromoted))
			w.say(v1alpha1.VerbFinish)
			w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
			w.revise("v3")
			w.until(24*time.Hour, "v3 has 20 percent", w.atShare("20"))
			w.feel("canary", bad)
			w.runFor(10 * time.Minute)
			w.say(v1alpha1.VerbRetry)
			w.feel("canary", good)
			w.until(24*time.Hour, "v3 has 20 percent again", w.atShare("20"))
			w.remove()
			w.runFor(time.Minute)
			if !w.object.gone || w.wire() != wireOf(len(w.routes), "100/0") {
				t.Errorf("deleted: %s", w.summary())
			}
			if *crashes != 2*w.controller.writes {
				t.Errorf("%d crashes were tried, for %d writes", *crashes, w.controller.writes)
			}
			t.Logf("%d writes, %d of them to weights", w.controller.writes, len(w.journal.wires))
		})
	}
}

// crashEverywhere tries, in copies of the world, a crash before and after each write
// that the world makes from now on. It returns the number of crashes.
func crashEverywhere(w *world) *int {
	var tried int
	var crashed []*world
	w.controller.beforePass = func() {
		for write := w.controller.writes; ; write++ {
			before := w.fork(crash{write: write})
			before.settle()
			if before.controller.crash != never {
				return // there is no such write before the next rest
			}
			after := w.fork(crash{write: write, after: true})
			after.settle()
			if write >= tried/2 {
				tried += 2
			}
			crashed = append(crashed, before, after)
		}
	}
	w.controller.atRest = func() {
		for _, c := range crashed {
			if diff := cmp.Diff(w.state(), c.state()); diff != "" {
				w.tb.Fatalf("%s: after a crash (-undisturbed +crashed):\n%s", offset(w.at), diff)
			}
		}
		crashed = nil
	}
	return &tried
}

// fork returns a copy of the world in which the controller will crash.
func (w *world) fork(c crash) *world {
	f := *w
	f.object.status = *w.object.status.DeepCopy()
	f.stable, f.canary = w.stable.fork(), w.canary.fork()
	f.routes = nil
	for _, r := range w.routes {
		route := *r
		f.routes = append(f.routes, &route)
	}
	f.controller.crash, f.controller.refusals = c, maps.Clone(w.controller.refusals)
	f.controller.beforePass, f.controller.atRest = nil, nil
	f.laws.off = true
	f.journal.wires, f.journal.scaled = slices.Clone(w.journal.wires), slices.Clone(w.journal.scaled)
	return &f
}

// state is all that the future depends on, and the weights that were written so far.
// The observed share is for people: it may be reported a moment sooner or later.
func (w *world) state() []string {
	if w.object.gone {
		return w.journal.wires
	}
	status := w.object.status.DeepCopy()
	status.Share.Observed = nil
	state := []string{encoded(status), fmt.Sprint(w.object.finalizer), offset(w.controller.timer), strings.Join(w.journal.wires, ", "), encoded(w.journal.scaled)}
	for _, f := range []*fleet{w.stable, w.canary} {
		state = append(state, fmt.Sprint(f.track, f.template, f.replicas, f.generation, f.value(autoscalerKind), f.pods))
	}
	for _, r := range w.routes {
		state = append(state, fmt.Sprint(r.name, r.stored.Generation, r.due, encoded(r.stored.Spec), r.stored.Annotations))
	}
	return state
}

// TestWritesPerShare counts: a change of the share costs one write to each route and
// two to the status.
func TestWritesPerShare(t *testing.T) {
	for _, spec := range []v1alpha1.WeightedRolloutSpec{defaultSpec(), alsoRoute(defaultSpec())} {
		t.Run(fmt.Sprintf("%d routes", len(spec.Routes)), func(t *testing.T) {
			w := newWorld(t, spec)
			w.until(24*time.Hour, "the canary has 24 percent", w.atShare("24"))
			statusBefore, routesBefore := w.journal.statusWrites, len(w.journal.wires)
			w.until(time.Hour, "the canary has 46 percent", w.atShare("46"))
			steps := len(w.journal.wires[routesBefore:]) / len(spec.Routes)
			if got, want := w.journal.statusWrites-statusBefore, 2*steps; steps == 0 || got != want {
				t.Errorf("%d steps took %d writes to the status, want %d", steps, got, want)
			}
		})
	}
}
