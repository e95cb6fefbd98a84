package played

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// standDown runs the command that comes before the controller is uninstalled. It returns
// what was printed.
func (w *world) standDown(args ...string) (string, error) {
	w.t.Helper()
	return w.standDownBy(w.bed.Kubeconfig, args...)
}

// standDownBy is standDown by way of another API server.
func (w *world) standDownBy(kubeconfig string, args ...string) (string, error) {
	w.t.Helper()
	args = append([]string{"stand-down", "--kubeconfig=" + kubeconfig, "--namespaces=" + w.namespace}, args...)
	binaries := cmp.Or(os.Getenv("WEIGHTEDROLLOUT_BIN"), filepath.Join("..", "..", "..", "bin"))
	out, err := exec.CommandContext(w.t.Context(), filepath.Join(binaries, "manager"), args...).CombinedOutput()
	return string(out), err
}

// TestStandDown: what is under way is aborted, and stable serves everything once the
// command ends. What is promoted, only observed, or over is left as it is. Afterwards, with
// the controller gone, the rollouts can be deleted.
func TestStandDown(t *testing.T) {
	w := newWorld(t)
	w.rollout("running", stages("10m", "30"))
	w.rollout("paused", stages("10m", "30"))
	w.rollout("promoted", stages("1s", "50"))
	w.rollout("observed", stages("10m", "30"), func(wr *v1alpha1.WeightedRollout) { wr.Spec.Mode = v1alpha1.ModeObserve })
	w.startManager()
	w.awaitShare("running", "30")
	w.awaitShare("paused", "30")
	w.edit("paused", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Paused = true })
	w.awaitPhase("paused", v1alpha1.PhasePaused)
	w.awaitPhase("promoted", v1alpha1.PhasePromoted)

	out, err := w.standDown("--timeout=1m")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, line := range []string{"running: attempt 1 is aborted at 30 percent", "paused: attempt 1 is aborted", "4 rollouts are looked at", "no rollout is under way"} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}
	for name, weights := range map[string]pair{"running": {100, 0}, "paused": {100, 0}, "promoted": {0, 100}, "observed": {100, 0}} {
		if now := w.weightsNow(name); now != weights {
			t.Errorf("%s: %s, want %s", name, now, weights)
		}
	}

	w.killManager()
	if out, err := w.standDown("--finalizers"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"running", "paused", "promoted", "observed"} {
		if err := w.client.Delete(t.Context(), w.get(name)); err != nil {
			t.Error(err)
		}
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, &v1alpha1.WeightedRollout{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}

// TestStandDownDeletes: all are deleted, by what onDelete says, and the command waits for
// it.
func TestStandDownDeletes(t *testing.T) {
	w := newWorld(t)
	w.rollout("running", stages("10m", "30"))
	w.rollout("kept", stages("10m", "30"), func(wr *v1alpha1.WeightedRollout) { wr.Spec.OnDelete = v1alpha1.DeletionKeep })
	w.startManager()
	w.awaitShare("running", "30")
	w.awaitShare("kept", "30")
	if out, err := w.standDown("--delete", "--timeout=1m"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var all v1alpha1.WeightedRolloutList
	if err := w.client.List(t.Context(), &all, client.InNamespace(w.namespace)); err != nil || len(all.Items) > 0 {
		t.Errorf("%d are left, %v", len(all.Items), err)
	}
	for name, weights := range map[string]pair{"running": {100, 0}, "kept": {70, 30}} {
		if now := w.weightsNow(name); now != weights {
			t.Errorf("%s: %s, want %s", name, now, weights)
		}
	}
}

// wantUnsafe runs the command, which must fail and say why.
func (w *world) wantUnsafe(words ...string) {
	w.t.Helper()
	out, err := w.standDown("--timeout=4s")
	if err == nil || !strings.Contains(out, "not safe yet") || !strings.Contains(out, "--no-hooks") {
		w.t.Errorf("%v: %s", err, out)
	}
	for _, word := range words {
		if !strings.Contains(out, word) {
			w.t.Errorf("%q is not in\n%s", word, out)
		}
	}
}

// TestStandDownWithoutController: nobody carries the abort out, so that the command fails,
// and says which rollout is not safe, however often it is tried.
func TestStandDownWithoutController(t *testing.T) {
	w := newWorld(t)
	w.rollout("running", stages("10m", "30"))
	w.rollout("going", stages("10m", "30"))
	w.startManager()
	w.awaitShare("running", "30")
	w.awaitShare("going", "30")
	w.killManager()
	if err := w.client.Delete(t.Context(), w.get("going")); err != nil {
		t.Fatal(err)
	}
	w.rollout("unseen", stages("10m", "30"))
	for range 2 {
		w.wantUnsafe(
			w.namespace+"/running: at 30 percent",
			w.namespace+"/going: it is being deleted",
			w.namespace+"/unseen: the controller has not looked at it",
		)
	}
	if out, err := w.standDown("--finalizers"); err != nil || !strings.Contains(out, w.namespace+"/going: its deletion ends without the controller, and its routes keep the canary at 30 percent") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestStandDownWaitsForTheGateway: an abort that no gateway has taken is not safe yet, the
// second time neither. One whose route is gone has no traffic.
func TestStandDownWaitsForTheGateway(t *testing.T) {
	w := newWorld(t)
	w.rollout("running", stages("10m", "30"))
	w.startManager()
	w.awaitShare("running", "30")
	w.gateway.set(w.namespace, gatewayMode{silent: true})
	for range 2 {
		w.wantUnsafe(w.namespace + "/running: stable has been given everything, but not every gateway has taken that")
	}
	w.gateway.set(w.namespace, gatewayMode{})
	if out, err := w.standDown("--timeout=1m"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	w.gateway.set(w.namespace, gatewayMode{silent: true})
	if err := w.client.Delete(t.Context(), w.route("running")); err != nil {
		t.Fatal(err)
	}
	w.await("running", "its route is missing", func(wr *v1alpha1.WeightedRollout) bool {
		return len(wr.Status.Routes) == 1 && wr.Status.Routes[0].Reason == v1alpha1.ReasonRouteMissing
	})
	if out, err := w.standDown("--timeout=1m"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestStandDownSeesWhatBeginsMeanwhile: an attempt that begins after the command is aborted,
// too.
func TestStandDownSeesWhatBeginsMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.rollout("running", stages("10m", "30"))
	w.startManager()
	w.awaitShare("running", "30")
	w.gateway.set(w.namespace, gatewayMode{silent: true})
	type result struct {
		out string
		err error
	}
	done := make(chan result, 1)
	go func() {
		out, err := w.standDown("--timeout=1m")
		done <- result{out, err}
	}()
	w.awaitPhase("running", v1alpha1.PhaseRolledBack)
	w.edit("running", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Revision = "v3" })
	w.await("running", "another attempt", func(wr *v1alpha1.WeightedRollout) bool { return wr.Status.Attempt == 2 })
	w.gateway.set(w.namespace, gatewayMode{})
	r := <-done
	if r.err != nil || !strings.Contains(r.out, "running: attempt 2 is aborted") {
		t.Errorf("%v: %s", r.err, r.out)
	}
	if wr := w.get("running"); wr.Status.Outcome != v1alpha1.OutcomeRolledBack || wr.Status.Attempt != 2 {
		t.Errorf("attempt %d: %s", wr.Status.Attempt, summary(wr))
	}
}

// TestStandDownObserved: what was raised, and is only observed now, is nobody's.
func TestStandDownObserved(t *testing.T) {
	w := newWorld(t)
	w.rollout("running", stages("10m", "30"))
	w.startManager()
	w.awaitShare("running", "30")
	w.edit("running", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Mode = v1alpha1.ModeObserve })
	w.await("running", "it is observed", func(wr *v1alpha1.WeightedRollout) bool { return wr.Status.ObservedGeneration == wr.Generation })
	w.wantUnsafe(w.namespace+"/running: its mode is Observe", "30 percent", "set the mode to Enforce")
}

// TestStandDownMisused: wrong arguments end before a cluster is looked for.
func TestStandDownMisused(t *testing.T) {
	w := newWorld(t)
	for _, args := range [][]string{{"--delete", "--finalizers"}, {"now"}, {"--timeout=0s"}, {"--such"}, {"--namespaces=Bad Name"}} {
		out, err := w.standDown(args...)
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	if out, err := w.standDown("--namespaces=nowhere"); err != nil || !strings.Contains(out, "there is no rollout in the namespace nowhere") {
		t.Errorf("%v: %s", err, out)
	}
}
