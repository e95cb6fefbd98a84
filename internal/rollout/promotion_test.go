package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// updatedWorld has a derived revision, and updates stable.
func updatedWorld(t *testing.T) *world {
	return newWorld(t, updating(derived(withWorkloads(smallSpec(), v1alpha1.CapacityCheck))))
}

// promotedHere tells whether the canary has passed the plan.
func (w *world) promotedHere() bool { return w.status().Outcome == v1alpha1.OutcomePromoted }

// TestUpdateStable: the template is copied once the plan is passed, the traffic returns
// when it is rolled out, gated on stable, and stable runs the revision in the end.
func TestUpdateStable(t *testing.T) {
	w := updatedWorld(t)
	w.until(24*time.Hour, "it is promoted", w.promotedHere)
	w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonUpdatingStable, "0/100")
	if w.stable.template != 2 || !w.told(v1alpha1.ReasonStableUpdated) || w.status().StableUpdate == nil {
		t.Fatalf("stable runs template %d, told %v", w.stable.template, w.journal.told)
	}
	updated, before := w.at, len(w.journal.wires)
	w.until(time.Hour, "the traffic returns", func() bool { return w.status().Outcome == v1alpha1.OutcomeReturning })
	if took := w.at.Sub(updated); took < w.stable.startup {
		t.Errorf("the traffic returns %s after the update, and stable is not rolled out", took)
	}
	w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	want := []string{"web 10/90", "web 20/80", "web 40/60", "web 60/40", "web 80/20", "web 100/0"}
	if diff := cmp.Diff(want, w.journal.wires[before:]); diff != "" {
		t.Errorf("the return (-want +got):\n%s", diff)
	}
	s := w.status()
	if s.StableRevision != "Canary-2" || s.Revision != "Canary-2" || s.StableUpdate == nil || !s.StableUpdate.Seen {
		t.Errorf("stable runs %q of %q, %s", s.StableRevision, s.Revision, encoded(s.StableUpdate))
	}
	w.canary.deploy(3)
	w.until(24*time.Hour, "the next revision is under way", func() bool { return w.status().Revision == "Canary-3" && w.wire() == "80/20" })
}

// TestUpdateStableOfAnUnhealthyStable: a stable that fails with the new template hands
// the traffic back, and is not written again.
func TestUpdateStableOfAnUnhealthyStable(t *testing.T) {
	w := updatedWorld(t)
	w.until(24*time.Hour, "half of the traffic is back", func() bool { return w.status().Outcome == v1alpha1.OutcomeReturning && w.wire() == "60/40" })
	w.feel("stable", bad)
	w.runFor(time.Hour)
	w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonPromoted, "0/100")
	if !strings.Contains(w.message(), "Repair stable, then give the finish command") {
		t.Errorf("message %q", w.message())
	}
	w.feel("stable", good)
	w.runFor(10 * time.Hour)
	w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonPromoted, "0/100")
	w.say(v1alpha1.VerbFinish)
	w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
}

// TestUpdateStableAfterACrash: the intent is on record before the write, and a crash on
// either side of it leads to the same.
func TestUpdateStableAfterACrash(t *testing.T) {
	for _, after := range []bool{false, true} {
		w := updatedWorld(t)
		w.until(24*time.Hour, "it soaks at 100 percent", w.atShare("100"))
		// The pass that promotes writes the status, and then the workload.
		w.controller.crash = crash{write: w.controller.writes + 1, after: after}
		w.until(24*time.Hour, "it is promoted", w.promotedHere)
		if w.controller.crash != never {
			w.runFor(time.Second)
		}
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
		if w.stable.template != 2 {
			t.Errorf("crash after the write %v: stable runs template %d", after, w.stable.template)
		}
	}
}

// TestStableChanged: a template that another writer takes back is not fought about.
func TestStableChanged(t *testing.T) {
	changed := func(t *testing.T) *world {
		w := updatedWorld(t)
		w.until(24*time.Hour, "it is promoted", w.promotedHere)
		w.stable.deploy(1)
		w.runFor(10 * time.Hour)
		w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonStableChanged, "0/100")
		if w.stable.template != 1 {
			t.Errorf("stable was written again: template %d", w.stable.template)
		}
		return w
	}
	t.Run("and let be", func(t *testing.T) {
		w := changed(t)
		w.stable.deploy(2)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
	t.Run("finish", func(t *testing.T) {
		w := changed(t)
		w.say(v1alpha1.VerbFinish)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
}

// TestUpdateStableRefused: it is said what is refused; what else happens to stable in
// the meantime is no reason to give up; and it goes on once it is allowed.
func TestUpdateStableRefused(t *testing.T) {
	refused := func(t *testing.T) *world {
		w := updatedWorld(t)
		w.stable.denied = true
		w.until(24*time.Hour, "it is refused", w.reason(v1alpha1.ReasonWorkloadWriteFailed))
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonWorkloadWriteFailed, "0/100")
		if w.stable.template != 1 {
			t.Errorf("stable runs template %d", w.stable.template)
		}
		return w
	}
	t.Run("then allowed", func(t *testing.T) {
		w := refused(t)
		w.stable.denied = false
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
	t.Run("scaled in by its autoscaler, then allowed", func(t *testing.T) {
		w := refused(t)
		w.stable.scaleTo(2)
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonWorkloadWriteFailed, "0/100")
		w.stable.denied = false
		w.until(24*time.Hour, "stable is updated", func() bool { return w.stable.template == 2 })
		w.stable.scaleTo(10)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
	t.Run("then finish", func(t *testing.T) {
		w := refused(t)
		w.say(v1alpha1.VerbFinish)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
}

// TestUnhealthyWhilePromoted: a canary that breaks after the plan is rolled back, and
// if stable has its template by then that is said.
func TestUnhealthyWhilePromoted(t *testing.T) {
	w := updatedWorld(t)
	w.stable.startup = time.Hour
	w.until(24*time.Hour, "it is promoted", w.promotedHere)
	w.runFor(time.Minute)
	w.feel("canary", bad)
	w.until(time.Hour, "it is rolled back", w.reason(v1alpha1.ReasonUnhealthy))
	w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy, "100/0")
	if m := w.status().OutcomeMessage; !strings.Contains(m, "Stable was given this revision's pod template: undo that, too (kubectl rollout undo)") {
		t.Errorf("message %q", m)
	}
	if w.status().StableUpdate != nil || w.status().StableRevision != "" {
		t.Errorf("%s, stable runs %q", encoded(w.status().StableUpdate), w.status().StableRevision)
	}
}

// TestUpdateStableIsHeldByAPause: neither the update nor the return begins.
func TestUpdateStableIsHeldByAPause(t *testing.T) {
	w := updatedWorld(t)
	w.until(24*time.Hour, "the canary has everything", w.atShare("100"))
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true })
	w.runFor(10 * time.Hour)
	if w.stable.template != 1 {
		t.Fatalf("updated while paused: %s", w.summary())
	}
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = false })
	w.until(time.Hour, "stable is updated", func() bool { return w.stable.template == 2 })
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true })
	w.runFor(10 * time.Hour)
	w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonPromoted, "0/100")
	w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = false })
	w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
}

// TestAwaitWithWorkloads: the traffic returns by itself once stable has the template and
// is rolled out, and waits for a person where the templates differ.
func TestAwaitWithWorkloads(t *testing.T) {
	for name, spec := range map[string]v1alpha1.WeightedRolloutSpec{
		"a named revision": withWorkloads(smallSpec(), v1alpha1.CapacityCheck), "a derived one": derived(withWorkloads(smallSpec(), v1alpha1.CapacityIgnore)),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, spec)
			w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
			w.stable.deploy(3)
			w.runFor(10 * time.Hour)
			w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonPromoted, "0/100")
			w.stable.deploy(2)
			w.runFor(10 * time.Second)
			w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonUpdatingStable, "0/100")
			if !strings.Contains(w.message(), `Deployment "web-stable" has its pod template: `) {
				t.Errorf("message %q", w.message())
			}
			w.runFor(time.Minute)
			if w.status().Outcome != v1alpha1.OutcomeReturning || !w.told(v1alpha1.ReasonReturning) {
				t.Errorf("told %v: %s", w.journal.told, w.summary())
			}
			w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
			if w.status().StableRevision != w.status().Revision {
				t.Errorf("stable runs %q", w.status().StableRevision)
			}
		})
	}
	t.Run("the templates differ on purpose", func(t *testing.T) {
		w := newWorld(t, withWorkloads(smallSpec(), v1alpha1.CapacityCheck))
		w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
		w.say(v1alpha1.VerbFinish)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
}

// TestCrashAnywhereWithWorkloads lets the controller die before and after every write of
// a rollout that scales both workloads and updates stable.
func TestCrashAnywhereWithWorkloads(t *testing.T) {
	spec := updating(derived(withWorkloads(smallSpec(), v1alpha1.CapacityScale)))
	for name, autoscaled := range map[string]bool{"replicas": false, "autoscalers": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, spec)
			w.canary = newFleet(v1alpha1.TrackCanary, 2, 1)
			if autoscaled {
				w.canary.bound(1, 20)
				w.stable.bound(2, 20)
			}
			crashes := crashEverywhere(w)
			w.until(24*time.Hour, "it is promoted", w.promotedHere)
			w.stable.replicas = 3
			w.stable.changed()
			w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
			w.runFor(time.Minute)
			w.canary.deploy(3)
			w.until(24*time.Hour, "the next one has 40 percent", w.atShare("40"))
			w.canary.restart()
			w.runFor(time.Minute)
			w.remove()
			w.runFor(time.Minute)
			if !w.object.gone || w.wire() != "100/0" || w.canary.replicas != 1 && !autoscaled || autoscaled && w.canary.autoscaler.min != 1 {
				t.Errorf("%d replicas are left: %s", w.canary.replicas, w.summary())
			}
			if *crashes != 2*w.controller.writes {
				t.Errorf("%d crashes were tried, for %d writes", *crashes, w.controller.writes)
			}
			if diff := cmp.Diff(autoscaled, strings.HasPrefix(w.scales()[0], autoscalerKind)); diff != "" {
				t.Errorf("scaled: %v", w.scales())
			}
		})
	}
}

// shrunk is a promoted world whose stable has been scaled in, and gets the template.
func shrunk(t *testing.T, capacity v1alpha1.CapacityMode) *world {
	w := newWorld(t, updating(derived(withWorkloads(smallSpec(), capacity))))
	w.until(24*time.Hour, "the canary has everything", w.atShare("100"))
	w.stable.scaleTo(2)
	w.until(24*time.Hour, "stable is updated", func() bool { return w.stable.template == 2 })
	return w
}

// TestUpdateStableThatHasShrunk: the return begins once stable has the replicas for all
// of the traffic. Until then the canary serves, and is watched.
func TestUpdateStableThatHasShrunk(t *testing.T) {
	t.Run("Check", func(t *testing.T) {
		w := shrunk(t, v1alpha1.CapacityCheck)
		w.runFor(time.Hour)
		w.expect(v1alpha1.OutcomePromoted, v1alpha1.ReasonInsufficientCapacity, "0/100")
		if !strings.Contains(w.message(), `Deployment "web-stable" needs 10 ready replicas, and has 2`) {
			t.Errorf("message %q", w.message())
		}
		w.stable.scaleTo(10)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
	t.Run("Check, and the canary fails", func(t *testing.T) {
		w := shrunk(t, v1alpha1.CapacityCheck)
		w.runFor(time.Minute)
		w.feel("canary", bad)
		w.until(time.Hour, "it is rolled back", w.reason(v1alpha1.ReasonUnhealthy))
		w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy, "100/0")
		if !w.told(v1alpha1.ReasonStableUndersized) {
			t.Errorf("told %v", w.journal.told)
		}
	})
	t.Run("Scale", func(t *testing.T) {
		w := shrunk(t, v1alpha1.CapacityScale)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
		if diff := cmp.Diff([]string{"Deployment web-stable 2-10"}, w.scales()); diff != "" {
			t.Errorf("scaled (-want +got):\n%s", diff)
		}
	})
	t.Run("Ignore", func(t *testing.T) {
		w := shrunk(t, v1alpha1.CapacityIgnore)
		w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	})
}

// TestStableChangedOnTheWayBack: a stable that is given another template while the
// traffic returns to it gets no more of it.
func TestStableChangedOnTheWayBack(t *testing.T) {
	w := updatedWorld(t)
	w.until(24*time.Hour, "part of the traffic is back", func() bool { return w.status().Outcome == v1alpha1.OutcomeReturning && w.wire() == "40/60" })
	w.stable.deploy(3)
	w.runFor(10 * time.Hour)
	w.expect(v1alpha1.OutcomeReturning, v1alpha1.ReasonStableChanged, "40/60")
	t.Run("abort", func(t *testing.T) {
		f := w.fork(never)
		f.tb = t
		f.object.annotations = map[string]string{v1alpha1.AbortAnnotation: "1"}
		f.runFor(time.Minute)
		f.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonAborted, "100/0")
	})
	w.stable.deploy(2)
	w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
	if w.stable.template != 2 {
		t.Errorf("stable runs template %d", w.stable.template)
	}
}
