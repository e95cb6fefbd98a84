package played

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestC23RouteMadeAgain: a route that is gone is no success, and costs no calls. One of
// the same name that comes later is another route: the plan starts again from 0,
// whatever weights it has.
func TestC23RouteMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.loose = true // a route that is made again carries what the manager did not write
	again := map[string]pair{"at-zero": {100, 0}, "at-half": {50, 50}}
	for name := range again {
		w.rollout(name, stages("1s", "10", "50"), soak(1, "10m"))
	}
	w.startManager()
	pid := w.pid()
	for name := range again {
		w.awaitShare(name, "50")
	}
	for name := range again {
		if err := w.client.Delete(t.Context(), w.route(name)); err != nil {
			t.Fatalf("deleting HTTPRoute %s: %v", name, err)
		}
		wr := w.awaitStalled(name, v1alpha1.ReasonRouteMissing, name)
		if wr.Status.Outcome != v1alpha1.OutcomeInProgress {
			t.Errorf("without its route: %s", summary(wr))
		}
	}
	// It waits, and does not ask again and again.
	noWatch := func(r *request) bool { return !r.isWatch() }
	eventually(t, "3 s without a request", func() (bool, string) {
		requests := w.api.since(0, noWatch)
		last := requests[len(requests)-1]
		return time.Since(last.At) > 3*time.Second, last.String()
	})
	for name, p := range again {
		w.create(newRoute(w.namespace, name, new(int32(p.stable)), new(int32(p.canary))))
	}
	for name, p := range again {
		wr := w.await(name, "50 percent of another attempt", func(wr *v1alpha1.WeightedRollout) bool {
			return wr.Status.Attempt == 2 && desired(wr) == "50" && wr.Status.Share.ConfirmedAt != nil
		})
		w.wantClean(name, 2)
		if h := wr.Status.History; len(h) != 1 || h[0].Reason != v1alpha1.ReasonRouteReplaced {
			t.Errorf("%s: the history is %+v", name, h)
		}
		w.awaitEvent(name, v1alpha1.ReasonRouteReplaced, "starts again from its first stage")
		want := []string{"100/0", "90/10", "60/40", "50/50", "100/0", "90/10", "60/40", "50/50"}
		w.wantWeights(name, want...)
		if uid := w.route(name).UID; wr.Status.Routes[0].UID != uid {
			t.Errorf("%s: status speaks of route %s, which is %s (made again at %s)", name, wr.Status.Routes[0].UID, uid, p)
		}
	}
	if w.pid() != pid {
		t.Error("the manager was started anew")
	}
}

// loseRecord takes a rollout away as somebody does who removes its finalizer. The
// manager must not be running.
func (w *world) loseRecord(name string) {
	w.t.Helper()
	if w.hasManager() {
		w.t.Fatal("the manager would tidy up")
	}
	w.remove(name)
	w.edit(name, func(wr *v1alpha1.WeightedRollout) { wr.Finalizers = nil })
	w.awaitGone(name)
}

// TestC26RecordLost: a rollout that is made anew, while the route still has the weights
// of the lost one, starts at 0 with the first stage.
func TestC26RecordLost(t *testing.T) {
	w := newWorld(t)
	w.rollout("web", soak(3, "10m"))
	w.startManager()
	w.awaitShare("web", "20")
	w.killManager()
	w.loseRecord("web")
	w.create(newRollout(w.namespace, "web", w.prom.url(), soak(1, "10m")))
	w.startManager()
	if wr := w.awaitShare("web", "5"); wr.Status.Attempt != 1 || wr.Status.Stage.Index != 1 {
		t.Errorf("attempt %d, stage %+v", wr.Status.Attempt, wr.Status.Stage)
	}
	w.wantWeights("web", "100/0", "99/1", "95/5", "90/10", "80/20", "100/0", "99/1", "95/5")
}

// TestC26MostTrafficWithoutRecord: a route that gives the canary most of the traffic,
// without a record of why, is left as it is until a person says what is meant.
func TestC26MostTrafficWithoutRecord(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"retried", "finished"} {
		w.create(newRoute(w.namespace, name, ptr.To[int32](20), ptr.To[int32](80)))
		w.rolloutFor(name, stages("10m", "10"))
	}
	w.rollout("other", stages("1s", "50"))
	w.startManager()
	for _, name := range []string{"retried", "finished"} {
		w.awaitStalled(name, v1alpha1.ReasonAdoptionAmbiguous, "80 percent")
	}
	w.awaitPhase("other", v1alpha1.PhasePromoted)
	for _, name := range []string{"retried", "finished"} {
		if writes := w.routeWrites(name, 0); len(writes) > 0 {
			t.Errorf("%s: the route is written: %v", name, writes)
		}
	}
	w.command("retried", v1alpha1.VerbRetry)
	w.awaitShare("retried", "10")
	w.wantWeights("retried", "20/80", "100/0", "90/10")
	w.command("finished", v1alpha1.VerbFinish)
	w.awaitPhase("finished", v1alpha1.PhaseCompleted)
	w.wantWeights("finished", "20/80", "50/50", "80/20", "100/0")
}

// TestC26RecordTamperedWith: a record that was changed by hand is not trusted: the
// weight goes no higher than the lower of record and route, the next raise is earned as
// always, people are told, and nothing crashes.
func TestC26RecordTamperedWith(t *testing.T) {
	walked := []string{"100/0", "99/1", "95/5", "90/10", "80/20"}
	tests := map[string]struct {
		edit   func(*v1alpha1.WeightedRolloutStatus)
		reason string   // of the event
		after  []string // the weights that follow
		share  v1alpha1.Percent
		stage  int32
	}{
		"beyond-the-plan": {
			edit: func(s *v1alpha1.WeightedRolloutStatus) {
				s.Stage.Index, s.Share.Desired = 99, new(v1alpha1.Percent("73"))
			},
			reason: v1alpha1.ReasonDrift, share: "20", stage: 3,
		},
		"beyond-the-plan-with-its-stage": {
			edit: func(s *v1alpha1.WeightedRolloutStatus) {
				s.Stage.Index, s.Stage.Weight, s.Share.Desired = 99, "100", new(v1alpha1.Percent("73"))
			},
			reason: v1alpha1.ReasonDrift, share: "20", stage: 3,
		},
		"unconfirmed": {
			edit: func(s *v1alpha1.WeightedRolloutStatus) {
				s.Stage.Index, s.Stage.Weight, s.Share.Desired, s.Share.ConfirmedAt = 99, "100", new(v1alpha1.Percent("73")), nil
			},
			reason: v1alpha1.ReasonDrift, share: "20", stage: 3,
		},
		"before-the-plan": {
			edit:   func(s *v1alpha1.WeightedRolloutStatus) { s.Stage.Index = -1 },
			reason: v1alpha1.ReasonPlanChanged, share: "20", stage: 3,
		},
		"below-the-route": {
			edit:   func(s *v1alpha1.WeightedRolloutStatus) { s.Share.Desired = new(v1alpha1.Percent("7")) },
			reason: v1alpha1.ReasonDrift, after: []string{"93/7", "80/20"}, share: "20", stage: 3,
		},
		"no-attempt": {
			edit:   func(s *v1alpha1.WeightedRolloutStatus) { s.Attempt = -1 },
			reason: v1alpha1.ReasonAttemptStarted, after: []string{"100/0", "99/1", "95/5", "90/10", "80/20"}, share: "20", stage: 3,
		},
	}
	w := newWorld(t)
	w.loose = true // the manager's writes do not tell what others have recorded
	for name := range tests {
		w.rollout(name, soak(3, "10m"))
	}
	w.startManager()
	for name := range tests {
		w.awaitShare(name, "20")
	}
	w.killManager()
	for name, test := range tests {
		w.editStatus(name, test.edit)
	}
	w.rollout("other", stages("1s", "50"))
	w.startManager()
	w.awaitPhase("other", v1alpha1.PhasePromoted)
	for name, test := range tests {
		want := append(append([]string{}, walked...), test.after...)
		w.wantWeights(name, want...)
		w.await(name, "a confirmed share in a stage of the plan", func(wr *v1alpha1.WeightedRollout) bool {
			return wr.Status.Attempt == 1 && desired(wr) == test.share && wr.Status.Share.ConfirmedAt != nil &&
				wr.Status.Stage != nil && wr.Status.Stage.Index == test.stage
		})
		w.wantWeights(name, want...)
		w.awaitEvent(name, test.reason, "")
	}
	// While the manager looks on.
	w.editStatus("before-the-plan", tests["beyond-the-plan"].edit)
	w.await("before-the-plan", "its own share again", func(wr *v1alpha1.WeightedRollout) bool {
		return desired(wr) == "20" && wr.Status.Share.ConfirmedAt != nil && wr.Status.Stage.Index == 3
	})
	w.wantWeights("before-the-plan", walked...)
}

// editStatus changes the record of a rollout, as no one should.
func (w *world) editStatus(name string, c func(*v1alpha1.WeightedRolloutStatus)) {
	w.t.Helper()
	wr := w.get(name)
	before := wr.DeepCopy()
	c(&wr.Status)
	if err := w.client.Status().Patch(w.t.Context(), wr, client.MergeFrom(before)); err != nil && !apierrors.IsConflict(err) {
		w.t.Fatalf("editing the status of WeightedRollout %s: %v", name, err)
	}
}
