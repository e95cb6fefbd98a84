package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestCrashAnywhere lets the controller die before and after every single write of
// a rollout, and start again. The routes must not notice.
func TestCrashAnywhere(t *testing.T) {
	for name, spec := range map[string]v1alpha1.WeightedRolloutSpec{
		"default plan": defaultSpec(),
		"small plan":   smallSpec(),
		"two routes":   alsoRoute(smallSpec()),
	} {
		t.Run(name, func(t *testing.T) {
			play := func(c crash, unchecked bool) *world {
				w := newWorld(t, *spec.DeepCopy())
				w.laws.off = unchecked
				w.controller.crash = c
				for i := range w.routes {
					w.edit(i, weightsOf(1, 1), "kubectl-edit")
				}
				w.until(24*time.Hour, "the revision is promoted", w.reason(v1alpha1.ReasonPromoted))
				w.say(v1alpha1.VerbFinish)
				w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
				w.remove()
				w.runFor(time.Minute)
				if !w.object.gone {
					t.Fatalf("crash %+v: the object is still there", c)
				}
				return w
			}
			undisturbed := play(never, false)
			want := undisturbed.journal.wires
			t.Logf("%d writes, %d of them to routes", undisturbed.controller.writes, len(want))
			for write := range undisturbed.controller.writes {
				for _, after := range []bool{false, true} {
					w := play(crash{write: write, after: after}, true)
					if diff := cmp.Diff(want, w.journal.wires); diff != "" {
						t.Fatalf("crash at write %d (after it: %v) (-undisturbed +crashed):\n%s", write, after, diff)
					}
				}
			}
		})
	}
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
