package played

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

func revision(name string) change {
	return func(wr *v1alpha1.WeightedRollout) { wr.Spec.Revision = name }
}

// move is a change of the share, as the writes to status record it.
type move struct {
	share     float64
	attempt   float64
	intended  time.Time // when the manager sent the intent
	confirmed time.Time // as recorded; zero if it never was
	record    any       // the rollout's status after the intent
}

// moves lists the changes of a rollout's share, from the accepted writes to its status.
func (w *world) moves(name string) (all []move) {
	w.t.Helper()
	var object any
	for _, r := range w.api.inOrder() {
		if !r.isStatusWrite() || r.Name != name {
			continue
		}
		patch, err := r.patch()
		if err != nil {
			w.t.Fatal(err)
		}
		object = merged(object, patch)
		if has(patch, "status", "share", "desired") || has(patch, "status", "attempt") {
			all = append(all, move{
				share: number(at(object, "status", "share", "desired")), attempt: number(at(object, "status", "attempt")),
				intended: r.At, record: at(object, "status"),
			})
		}
		if text, ok := at(patch, "status", "share", "confirmedAt").(string); ok && len(all) > 0 {
			if all[len(all)-1].confirmed, err = time.Parse(time.RFC3339Nano, text); err != nil {
				w.t.Fatalf("request %d: %v", r.Number, err)
			}
		}
	}
	return all
}

// moveTo returns the change to the given share in an attempt, and the one after it;
// the latter is empty if there is none.
func (w *world) moveTo(name string, attempt, share float64) (this, next move) {
	w.t.Helper()
	all := w.moves(name)
	for i, m := range all {
		if m.attempt == attempt && m.share == share {
			if i+1 < len(all) {
				next = all[i+1]
			}
			return m, next
		}
	}
	w.t.Fatalf("%s: attempt %g never had %g percent", name, attempt, share)
	return move{}, move{}
}

// wantClean checks that an attempt begins at the first stage with nothing that an
// earlier one has left behind.
func (w *world) wantClean(name string, attempt float64) {
	w.t.Helper()
	begin, _ := w.moveTo(name, attempt, 0)
	if outcome := at(begin.record, "outcome"); outcome != string(v1alpha1.OutcomeInProgress) || number(at(begin.record, "stage", "index")) != 0 {
		w.t.Errorf("%s: attempt %g begins with outcome %v in stage %v", name, attempt, outcome, at(begin.record, "stage"))
	}
	for _, field := range []string{"verdict", "breaker", "pause", "comparison", "noDataSince", "promote"} {
		if left := at(begin.record, field); left != nil {
			w.t.Errorf("%s: attempt %g begins with %s %v", name, attempt, field, left)
		}
	}
}

// TestC14NewRevisionMidWay: another revision gets nothing before the canary's share was
// 0, and nothing of what was proved for the old one counts for it.
func TestC14NewRevisionMidWay(t *testing.T) {
	w := newWorld(t)
	const window = 2 * time.Second
	w.rollout("web", soak(3, "10m"), func(wr *v1alpha1.WeightedRollout) { wr.Spec.Health.Window = "2s" })
	w.startManager()
	w.awaitShare("web", "20")
	w.awaitVerdict("web", v1alpha1.VerdictHealthy, v1alpha1.ReasonChecksPassed)
	w.edit("web", revision("v3"))
	wr := w.await("web", "10 percent of the new revision", func(wr *v1alpha1.WeightedRollout) bool {
		return wr.Status.Revision == "v3" && desired(wr) == "10" && wr.Status.Share.ConfirmedAt != nil
	})
	w.wantWeights("web", "100/0", "99/1", "95/5", "90/10", "80/20", "100/0", "99/1", "95/5", "90/10")
	w.wantClean("web", 2)
	if len(wr.Status.History) != 1 || wr.Status.History[0].Revision != "v2" || wr.Status.History[0].Reason != v1alpha1.ReasonSuperseded {
		t.Errorf("the history is %+v", wr.Status.History)
	}
	w.awaitEvent("web", v1alpha1.ReasonSuperseded, `"v3"`)
	// The first window that lies wholly after the first share has to end first.
	first, second := w.moveTo("web", 2, 1)
	if second.share != 5 || second.intended.Sub(first.confirmed) < window {
		t.Errorf("the new revision had %g percent %s after its first share was confirmed; a window takes %s",
			second.share, second.intended.Sub(first.confirmed), window)
	}
}

// TestC14BreachIsNotInherited: the time for which the old revision was in breach does
// not count against the new one.
func TestC14BreachIsNotInherited(t *testing.T) {
	w := newWorld(t)
	const lasts = 10 * time.Second
	w.rollout("web", stages("1s", "10", "20"), soak(1, "10m"), func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.OnUnhealthy.For = v1alpha1.Duration(lasts.String())
	})
	w.startManager()
	w.awaitShare("web", "20")
	// Both fail, so that the canary is not rolled back at once as the worse one.
	for _, service := range []string{stableOf("web"), canaryOf("web")} {
		w.prom.set(w.namespace, service, traffic{perSecond: 50, failed: 0.25})
	}
	w.awaitVerdict("web", v1alpha1.VerdictDegraded, v1alpha1.ReasonBreach)
	w.edit("web", revision("v3"))
	wr := w.awaitPhase("web", v1alpha1.PhaseRolledBack)
	if wr.Status.Revision != "v3" || wr.Status.Attempt != 2 {
		t.Fatalf("it was revision %q that was rolled back, in attempt %d", wr.Status.Revision, wr.Status.Attempt)
	}
	first, rollback := w.moveTo("web", 2, 10)
	if rollback.share != 0 || rollback.intended.Sub(first.confirmed) < lasts {
		t.Errorf("the new revision went to %g percent %s after its first share was confirmed; a breach has to last for %s",
			rollback.share, rollback.intended.Sub(first.confirmed), lasts)
	}
	w.wantWeights("web", "100/0", "90/10", "80/20", "100/0", "90/10", "100/0")
}

// TestC15BackToStablesRevision: naming the revision that stable runs, in mid-way, is no
// rollout: one write gives stable everything, and nothing is measured any more. What
// stable runs is in the spec, or known since a rollout was completed.
func TestC15BackToStablesRevision(t *testing.T) {
	w := newWorld(t)
	walk := func(wr *v1alpha1.WeightedRollout) {
		stages("1s", "1", "5", "10", "20", "50")(wr)
		soak(3, "10m")(wr)
		ramp("30")(wr)
		revision("v2")(wr)
	}
	w.rollout("by-spec", walk, func(wr *v1alpha1.WeightedRollout) { wr.Spec.Stable.Revision = "v1" })
	w.rollout("completed", stages("1s", "100"), ramp("100"), revision("v1"))
	w.startManager()
	w.awaitPhase("completed", v1alpha1.PhasePromoted)
	w.command("completed", v1alpha1.VerbFinish)
	if wr := w.awaitPhase("completed", v1alpha1.PhaseCompleted); wr.Status.StableRevision != "v1" {
		t.Fatalf("stable runs %q by the record", wr.Status.StableRevision)
	}
	w.edit("completed", walk)
	begin := map[string][]string{"by-spec": {"100/0"}, "completed": {"100/0", "0/100", "100/0"}}
	from := map[string]int{}
	for name := range begin {
		w.awaitShare(name, "20")
		from[name] = w.api.count()
		w.edit(name, revision("v1"))
	}
	for name := range begin {
		wr := w.await(name, "idle and confirmed", func(wr *v1alpha1.WeightedRollout) bool {
			return wr.Status.Phase == v1alpha1.PhaseIdle && wr.Status.Share.ConfirmedAt != nil
		})
		if wr.Status.Outcome != v1alpha1.OutcomeSuperseded || wr.Status.OutcomeReason != v1alpha1.ReasonStableRevision ||
			condition(wr, v1alpha1.ConditionReady).Status != metav1.ConditionTrue {
			t.Errorf("%s: %s", name, summary(wr))
		}
		if h := wr.Status.History[0]; h.Revision != "v2" || h.Reason != v1alpha1.ReasonSuperseded || h.Weight == nil || *h.Weight != "20" {
			t.Errorf("%s: the history says %+v", name, h)
		}
		w.prom.set(w.namespace, canaryOf(name), traffic{perSecond: 50, failed: 0.25})
	}
	w.awaitNoQuestions(3 * time.Second)
	for name, weights := range begin {
		if writes := w.routeWrites(name, from[name]); len(writes) != 1 {
			t.Errorf("%s: the return took %d writes, want one: %v", name, len(writes), writes)
		}
		w.wantWeights(name, append(weights, "99/1", "95/5", "90/10", "80/20", "100/0")...)
		if wr := w.get(name); wr.Status.Phase != v1alpha1.PhaseIdle {
			t.Errorf("%s: %s", name, summary(wr))
		}
	}
}

// awaitNoQuestions waits until Prometheus has not been asked for so long.
func (w *world) awaitNoQuestions(quiet time.Duration) {
	w.t.Helper()
	began, last := time.Now(), 0
	eventually(w.t, fmt.Sprintf("%s without a question", quiet), func() (bool, string) {
		if _, n := w.prom.asked(0); n != last {
			began, last = time.Now(), n
		}
		return time.Since(began) > quiet, fmt.Sprintf("question %d, %s ago", last, time.Since(began))
	})
}

// TestC34RolledBackStaysSo: time, a restart, the same spec again and another label do
// not bring a failed revision back; retry does, from the first stage and without what
// was held against it.
func TestC34RolledBackStaysSo(t *testing.T) {
	w := newWorld(t)
	w.rollout("web", stages("1s", "10", "50"))
	w.prom.set(w.namespace, canaryOf("web"), traffic{perSecond: 50, failed: 0.25})
	w.startManager()
	w.await("web", "a confirmed rollback", func(wr *v1alpha1.WeightedRollout) bool {
		return wr.Status.Phase == v1alpha1.PhaseRolledBack && wr.Status.Share.ConfirmedAt != nil
	})
	w.prom.set(w.namespace, canaryOf("web"), fine)
	before := w.get("web")
	const fiveSoaks = 5 * time.Second
	for _, test := range []struct {
		name string
		do   func()
	}{
		{"waiting", func() { time.Sleep(fiveSoaks) }},
		// A start lists every object, as a resync does.
		{"a restart", func() { w.killManager(); w.startManager() }},
		{"the same spec", func() { w.applyAgain(before) }},
		{"another label", func() {
			w.edit("web", func(wr *v1alpha1.WeightedRollout) { wr.Labels = map[string]string{"team": "shop"} })
		}},
	} {
		test.do()
		// Whatever follows from it follows within the time of a stage.
		time.Sleep(time.Second)
		wr := w.get("web")
		if wr.Status.Phase != v1alpha1.PhaseRolledBack || wr.Status.Attempt != 1 || desired(wr) != "0" {
			t.Fatalf("%s has moved the rollout: %s", test.name, summary(wr))
		}
	}
	w.wantWeights("web", "100/0", "90/10", "100/0")
	w.command("web", v1alpha1.VerbRetry)
	wr := w.awaitPhase("web", v1alpha1.PhasePromoted)
	if wr.Status.Attempt != 2 || wr.Status.Revision != "v2" {
		t.Errorf("attempt %d of %q is promoted", wr.Status.Attempt, wr.Status.Revision)
	}
	w.wantClean("web", 2)
	w.wantWeights("web", "100/0", "90/10", "100/0", "90/10", "60/40", "50/50", "20/80", "0/100")
}

// applyAgain writes the spec of an object that was read earlier, as it was.
func (w *world) applyAgain(before *v1alpha1.WeightedRollout) {
	w.t.Helper()
	again := w.get(before.Name)
	again.Spec = *before.Spec.DeepCopy()
	if err := w.client.Update(w.t.Context(), again); err != nil {
		w.t.Fatalf("writing WeightedRollout %s again: %v", before.Name, err)
	}
}

// TestC34BackToAFailedRevision: after another revision, one that has failed starts anew
// from the first stage.
func TestC34BackToAFailedRevision(t *testing.T) {
	w := newWorld(t)
	w.rollout("web", stages("1s", "10", "20"))
	w.prom.set(w.namespace, canaryOf("web"), traffic{perSecond: 50, failed: 0.25})
	w.startManager()
	w.awaitPhase("web", v1alpha1.PhaseRolledBack)
	w.prom.set(w.namespace, canaryOf("web"), fine)
	w.edit("web", revision("v3"))
	w.edit("web", soak(1, "10m"))
	w.awaitShare("web", "20")
	w.edit("web", revision("v2"))
	wr := w.await("web", "20 percent of v2", func(wr *v1alpha1.WeightedRollout) bool {
		return wr.Status.Revision == "v2" && desired(wr) == "20" && wr.Status.Share.ConfirmedAt != nil
	})
	w.wantClean("web", 3)
	w.wantWeights("web", "100/0", "90/10", "100/0", "90/10", "80/20", "100/0", "90/10", "80/20")
	var ends []string
	for _, h := range wr.Status.History {
		ends = append(ends, fmt.Sprintf("%d %s %s", h.Attempt, h.Revision, h.Outcome))
	}
	if got, want := fmt.Sprint(ends), "[2 v3 Superseded 1 v2 RolledBack]"; got != want {
		t.Errorf("the history is %s, want %s", got, want)
	}
}
