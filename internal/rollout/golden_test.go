package rollout_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares the journal of a world with testdata/<name>.golden.
func golden(t *testing.T, name string, w *world) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	got := strings.Join(w.journal.lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got); read it, and if it is right run the test with -update:\n%s", file, diff)
	}
}

// recorded returns a world that keeps a journal.
func recorded(t *testing.T, spec v1alpha1.WeightedRolloutSpec) *world {
	w := newWorld(t, spec)
	w.journal.keep = true
	return w
}

func (w *world) atShare(percent v1alpha1.Percent) func() bool {
	return func() bool {
		s := w.status().Share
		return s.Desired != nil && *s.Desired == percent && s.ConfirmedAt != nil
	}
}

func (w *world) reason(reason string) func() bool {
	return func() bool { return conditionOf(w.status(), v1alpha1.ConditionReady).Reason == reason }
}

func TestGolden(t *testing.T) {
	for _, tc := range []struct {
		name string
		run  func(*testing.T) *world
	}{
		{"all-good", func(t *testing.T) *world {
			w := recorded(t, defaultSpec())
			w.until(24*time.Hour, "the revision is promoted", w.reason(v1alpha1.ReasonPromoted))
			w.runFor(10 * time.Minute)
			return w
		}},
		{"breach-at-10", func(t *testing.T) *world {
			w := recorded(t, defaultSpec())
			w.until(24*time.Hour, "it soaks at 10 percent", w.atShare("10"))
			w.runFor(5 * time.Minute)
			w.note("one request in four fails")
			w.feel(health.TrackCanary, bad)
			w.runFor(time.Hour)
			w.note("all is well again, and the controller restarts")
			w.feel(health.TrackCanary, good)
			w.restart()
			w.runFor(time.Hour)
			w.note("retry")
			w.say(v1alpha1.VerbRetry)
			w.runFor(10 * time.Minute)
			return w
		}},
		{"pause", func(t *testing.T) *world {
			w := recorded(t, smallSpec())
			w.until(time.Hour, "it soaks at 10 percent", w.atShare("10"))
			w.runFor(time.Minute)
			w.note("spec.paused: true")
			w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true })
			w.runFor(time.Hour)
			w.note("spec.paused: false")
			w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = false })
			w.runFor(5 * time.Minute)
			w.note("spec.paused: true, and one request in four fails")
			w.change(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true })
			w.feel(health.TrackCanary, bad)
			w.runFor(10 * time.Minute)
			return w
		}},
		{"hand-edits", func(t *testing.T) *world {
			w := recorded(t, defaultSpec())
			w.until(24*time.Hour, "it soaks at 10 percent", w.atShare("10"))
			w.runFor(20 * time.Minute)
			w.note("kubectl-edit sets the weights to 96/4")
			w.edit(0, weightsOf(96, 4), "kubectl-edit")
			w.runFor(15 * time.Minute)
			w.note("kubectl-edit sets the weights to 20/80")
			w.edit(0, weightsOf(20, 80), "kubectl-edit")
			w.runFor(5 * time.Minute)
			w.note("kubectl-edit sets the weights to 0/0")
			w.edit(0, weightsOf(0, 0), "kubectl-edit")
			w.runFor(5 * time.Minute)
			return w
		}},
		{"canary-unready", func(t *testing.T) *world {
			w := recorded(t, defaultSpec())
			w.until(24*time.Hour, "it soaks at 10 percent", w.atShare("10"))
			w.runFor(time.Minute)
			w.note("the canary's pods are gone")
			w.canaryReady = false
			w.runFor(10 * time.Minute)
			w.note("the canary's pods are ready again")
			w.canaryReady = true
			w.runFor(20 * time.Minute)
			return w
		}},
		{"finish", func(t *testing.T) *world {
			w := recorded(t, smallSpec())
			w.until(24*time.Hour, "the revision is promoted", w.reason(v1alpha1.ReasonPromoted))
			w.note("finish, with the canary's pods on their way out of date")
			w.say(v1alpha1.VerbFinish)
			w.until(time.Hour, "stable gets 40 percent", w.atShare("60"))
			w.note("stable fails")
			w.feel(health.TrackStable, bad)
			w.runFor(10 * time.Minute)
			w.note("stable is repaired, finish again")
			w.feel(health.TrackStable, good)
			w.say(v1alpha1.VerbFinish)
			w.until(24*time.Hour, "it is completed", w.reason(v1alpha1.ReasonCompleted))
			w.runFor(time.Hour)
			return w
		}},
		{"approval-and-no-data", func(t *testing.T) *world {
			spec := smallSpec()
			spec.Plan.Stages[0] = approvedAfter(spec.Plan.Stages[0])
			w := recorded(t, spec)
			w.until(time.Hour, "it waits for approval", w.reason(v1alpha1.ReasonAwaitingApproval))
			w.note("approve, for another stage")
			other := int32(2)
			w.command(v1alpha1.Command{ID: "a", Verb: v1alpha1.VerbApprove, Attempt: 1, Stage: &other})
			w.runFor(time.Minute)
			w.note("approve, while the metrics server fails")
			w.feel(health.TrackCanary, blind)
			w.say(v1alpha1.VerbApprove)
			w.runFor(10 * time.Minute)
			w.note("the metrics server is back, but there are hardly any requests")
			w.feel(health.TrackCanary, quiet)
			w.runFor(10 * time.Minute)
			w.note("requests come in again")
			w.feel(health.TrackCanary, good)
			w.runFor(5 * time.Minute)
			return w
		}},
		{"gateway", func(t *testing.T) *world {
			w := recorded(t, smallSpec())
			w.until(time.Hour, "it soaks at 10 percent", w.atShare("10"))
			w.note("the gateway cannot resolve the backends for a moment")
			w.gateway.rejects = "BackendNotFound"
			w.runFor(30 * time.Second)
			w.note("the gateway can again")
			w.gateway.rejects = ""
			w.runFor(2 * time.Minute)
			w.note("writes to the route are refused")
			w.routes[0].denied = true
			w.until(time.Hour, "a write is refused", w.reason(v1alpha1.ReasonRouteWriteFailed))
			w.runFor(2 * time.Minute)
			w.note("writes are allowed, but the gateway is silent")
			w.routes[0].denied, w.gateway.silent = false, true
			w.runFor(10 * time.Minute)
			w.note("the gateway speaks, and cannot resolve the backends")
			w.gateway.silent, w.gateway.rejects = false, "BackendNotFound"
			w.runFor(10 * time.Minute)
			return w
		}},
	} {
		t.Run(tc.name, func(t *testing.T) { golden(t, tc.name, tc.run(t)) })
	}
}

// TestGoldenOfficeHours is the default plan with office hours in Berlin, over a weekend
// on which the clock is put forward there: the lines begin with the time in Berlin.
func TestGoldenOfficeHours(t *testing.T) {
	spec := defaultSpec()
	spec.Plan.Windows = officeHours()
	w := recorded(t, spec)
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	w.journal.zone = zone
	w.at = time.Date(2026, time.March, 27, 15, 0, 0, 0, zone)
	w.until(100*time.Hour, "the revision is promoted", w.reason(v1alpha1.ReasonPromoted))
	golden(t, "office-hours", w)
}
