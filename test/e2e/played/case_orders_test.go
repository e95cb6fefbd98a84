package played

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// aborting sets the annotation that aborts the present attempt.
func aborting(wr *v1alpha1.WeightedRollout) {
	metav1.SetMetaDataAnnotation(&wr.ObjectMeta, v1alpha1.AbortAnnotation, fmt.Sprint(wr.Status.Attempt))
}

// ordering sets the annotation with a command for the present attempt.
func ordering(verb v1alpha1.Verb, id string) change {
	return func(wr *v1alpha1.WeightedRollout) {
		metav1.SetMetaDataAnnotation(&wr.ObjectMeta, v1alpha1.CommandAnnotation,
			fmt.Sprintf(`{"id":%q,"verb":%q,"attempt":%d}`, id, verb, wr.Status.Attempt))
	}
}

func (w *world) abort(name string) {
	w.t.Helper()
	w.edit(name, aborting)
}

// awaitAborted waits until a rollout is rolled back by an abort.
func (w *world) awaitAborted(name string) {
	w.t.Helper()
	w.await(name, "rolled back by the abort", func(wr *v1alpha1.WeightedRollout) bool {
		return wr.Status.Phase == v1alpha1.PhaseRolledBack && wr.Status.OutcomeReason == v1alpha1.ReasonAborted && desired(wr) == "0"
	})
}

// wantRefused orders a promotion, and waits until it is refused.
func (w *world) wantRefused(name, id string) {
	w.t.Helper()
	w.edit(name, ordering(v1alpha1.VerbPromote, id))
	w.await(name, "the promotion refused", func(wr *v1alpha1.WeightedRollout) bool {
		c := wr.Status.Command
		return c != nil && c.ID == id && !c.Accepted && strings.Contains(c.Message, "retry")
	})
	w.awaitEvent(name, v1alpha1.ReasonCommandIgnored, "retry")
	if wr := w.get(name); wr.Status.Phase != v1alpha1.PhaseRolledBack || desired(wr) != "0" {
		w.t.Errorf("after the refused promotion: %s", summary(wr))
	}
}

// TestC33AbortWhilePaused: an abort waits for nobody: not for the pause, nor for a
// gateway that says nothing, nor for metrics. After it a promotion is refused, until a
// person says retry.
func TestC33AbortWhilePaused(t *testing.T) {
	w := newWorld(t)
	w.rollout("web", stages("1s", "5", "10"), soak(0, "10m"))
	w.startManager()
	w.awaitShare("web", "5")
	w.edit("web", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Paused = true })
	w.awaitPhase("web", v1alpha1.PhasePaused)
	w.prom.fail(outage{refuse: true})
	w.gateway.set(w.namespace, gatewayMode{silent: true})
	w.abort("web")
	w.awaitAborted("web")
	w.wantWeights("web", "100/0", "95/5", "100/0")
	w.wantRefused("web", "too-late")
	w.prom.fail(outage{})
	w.gateway.set(w.namespace, gatewayMode{})
	w.edit("web", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Paused = false })
	w.wantRefused("web", "still-too-late")
	w.wantWeights("web", "100/0", "95/5", "100/0")

	w.edit("web", ordering(v1alpha1.VerbRetry, "again"))
	w.await("web", "another attempt at 5 percent", func(wr *v1alpha1.WeightedRollout) bool {
		return wr.Status.Attempt == 2 && desired(wr) == "5" && wr.Status.Share.ConfirmedAt != nil
	})
	// The abort was meant for the first attempt, and the first stage soaks for long.
	w.edit("web", ordering(v1alpha1.VerbPromote, "now"))
	w.awaitPhase("web", v1alpha1.PhasePromoted)
	w.wantWeights("web", "100/0", "95/5", "100/0", "95/5", "90/10", "60/40", "30/70", "0/100")
}

// TestC33AbortWithoutReadyCanary: a promotion sends nothing to a canary that is not
// ready, and an abort does not wait for its pods. Pods that come later change nothing.
func TestC33AbortWithoutReadyCanary(t *testing.T) {
	w := newWorld(t)
	w.rollout("never-ready", stages("10m", "10"))
	w.setEndpoints(canaryOf("never-ready"), endpoint{})
	w.rollout("no-longer-ready", stages("10m", "10"))
	w.startManager()
	w.await("never-ready", "waiting for the canary", isWaitingForCanary)
	w.awaitShare("no-longer-ready", "10")
	w.setEndpoints(canaryOf("no-longer-ready"))
	w.await("no-longer-ready", "waiting for the canary", isWaitingForCanary)
	for _, name := range []string{"never-ready", "no-longer-ready"} {
		w.edit(name, ordering(v1alpha1.VerbPromote, "now"))
		w.await(name, "the promotion accepted, and nothing moved", func(wr *v1alpha1.WeightedRollout) bool {
			return wr.Status.Promote && isWaitingForCanary(wr)
		})
		w.abort(name)
	}
	for _, name := range []string{"never-ready", "no-longer-ready"} {
		w.awaitAborted(name)
		w.setEndpoints(canaryOf(name), endpoint{ready: true})
		w.wantRefused(name, "too-late")
	}
	w.rollout("other", stages("1s", "50"))
	w.awaitPhase("other", v1alpha1.PhasePromoted)
	w.wantWeights("never-ready", "100/0")
	w.wantWeights("no-longer-ready", "100/0", "90/10", "100/0")
}

// TestC33PromoteWhilePaused: one command promotes a paused rollout, by every gate.
func TestC33PromoteWhilePaused(t *testing.T) {
	w := newWorld(t)
	w.rollout("web", stages("10m", "5", "50"))
	w.startManager()
	w.awaitShare("web", "5")
	w.edit("web", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Paused = true })
	w.awaitPhase("web", v1alpha1.PhasePaused)
	w.edit("web", ordering(v1alpha1.VerbPromote, "now"))
	w.await("web", "the promotion accepted", func(wr *v1alpha1.WeightedRollout) bool {
		return wr.Status.Command != nil && wr.Status.Command.Accepted
	})
	w.awaitQuestions(held, "requests_total")
	if wr := w.get("web"); desired(wr) == "5" {
		t.Fatalf("the promotion was accepted, and yet nothing moves: %s", summary(wr))
	}
	w.awaitPhase("web", v1alpha1.PhasePromoted)
	w.wantWeights("web", "100/0", "95/5", "65/35", "50/50", "20/80", "0/100")
}

// TestC33AbortWins: of an abort and a promotion that are asked for at once, or one
// shortly after the other, the abort wins.
func TestC33AbortWins(t *testing.T) {
	w := newWorld(t)
	names := []string{"at-once", "promote-first"}
	for _, name := range names {
		w.rollout(name, stages("10m", "5", "50"))
	}
	w.startManager()
	for _, name := range names {
		w.awaitShare(name, "5")
	}
	w.edit("promote-first", ordering(v1alpha1.VerbPromote, "now"))
	w.abort("promote-first")
	w.edit("at-once", func(wr *v1alpha1.WeightedRollout) {
		ordering(v1alpha1.VerbPromote, "now")(wr)
		aborting(wr)
	})
	for _, name := range names {
		w.awaitAborted(name)
	}
	w.await("at-once", "the promotion refused", func(wr *v1alpha1.WeightedRollout) bool {
		c := wr.Status.Command
		return c != nil && c.ID == "now" && !c.Accepted
	})
	w.awaitEvent("at-once", v1alpha1.ReasonCommandIgnored, "retry")
	w.rollout("other", stages("1s", "50"))
	w.awaitPhase("other", v1alpha1.PhasePromoted)
	w.wantWeights("at-once", "100/0", "95/5", "100/0")
	if got := w.routes.of("promote-first"); got[len(got)-1] != "100/0" {
		t.Errorf("promote-first had the weights %v", got)
	}
	for _, name := range names {
		if wr := w.get(name); wr.Status.Phase != v1alpha1.PhaseRolledBack {
			t.Errorf("%s: %s", name, summary(wr))
		}
	}
}
