package rollout_test

import (
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// TestLawsOverRandomHistories lets people, pods, gateways, metrics, clocks and
// crashes do their worst, in any order, and checks the laws at every decision and
// every write. It is 1,600 histories by default, and 240 with -race; for more:
//
//	go test ./internal/rollout -run TestLaws -rapid.checks=100000
//
// A failure prints the seed and the history that is left after shrinking.
func TestLawsOverRandomHistories(t *testing.T) {
	specs := map[string]func(*rapid.T) v1alpha1.WeightedRolloutSpec{
		"one route":  func(*rapid.T) v1alpha1.WeightedRolloutSpec { return smallSpec() },
		"two routes": func(*rapid.T) v1alpha1.WeightedRolloutSpec { return alsoRoute(smallSpec()) },
		"slow plan":  func(*rapid.T) v1alpha1.WeightedRolloutSpec { return defaultSpec() },
		"any plan":   anySpec,
		"scale":      func(*rapid.T) v1alpha1.WeightedRolloutSpec { return withWorkloads(smallSpec(), v1alpha1.CapacityScale) },
		"check":      func(*rapid.T) v1alpha1.WeightedRolloutSpec { return withWorkloads(smallSpec(), v1alpha1.CapacityCheck) },
		"update":     updatedSpec,
		"office":     officeSpec,
	}
	histories(t, len(specs))
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				h := newHistory(t, spec(t))
				for range rapid.IntRange(5, 40).Draw(t, "length") {
					h.step()
				}
				h.settleDown()
			})
		})
	}
}

// histories divides the number of histories among so many kinds of them.
func histories(t *testing.T, kinds int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	given := checks.Value.String()
	total, err := strconv.Atoi(given)
	if err != nil {
		t.Fatal(err)
	}
	if err := checks.Value.Set(strconv.Itoa(max(total, leastHistories) / kinds)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Value.Set(given) })
}

// anySpec draws a plan, a ramp and a warm-up.
func anySpec(t *rapid.T) v1alpha1.WeightedRolloutSpec {
	spec := defaultSpec()
	spec.Plan.Stages = nil
	unit := rapid.SampledFrom([]int{100, 1}).Draw(t, "unit")
	soak := rapid.SampledFrom([]v1alpha1.Duration{"1s", "45s", "4m", "30m", "26h"})
	for at := 0; len(spec.Plan.Stages) < 6; {
		at += rapid.IntRange(1, 4000/unit).Draw(t, "rise") * unit
		if at > 10000 {
			break
		}
		spec.Plan.Stages = append(spec.Plan.Stages, stageOf(v1alpha1.PercentFromBasisPoints(at), soak.Draw(t, "soak")))
	}
	percent := func(lowest, highest int) func(string) v1alpha1.Percent {
		return func(label string) v1alpha1.Percent {
			return v1alpha1.PercentFromBasisPoints(rapid.IntRange(max(lowest/unit, 1), highest/unit).Draw(t, label) * unit)
		}
	}
	lowest := rapid.IntRange(max(50/unit, 1), 1000/unit).Draw(t, "minIncrease") * unit
	spec.Ramp = v1alpha1.Ramp{
		MinIncrease: v1alpha1.PercentFromBasisPoints(lowest), MaxIncrease: percent(lowest, 10000)("maxIncrease"), MaxChangePercent: percent(1, 10000)("maxChange"),
		Interval: rapid.SampledFrom([]v1alpha1.Duration{"1s", "1m", "1h"}).Draw(t, "interval"),
		Warmup: v1alpha1.Warmup{
			InitialPercent: percent(1, 10000)("initial"), IncrementPercent: percent(1, 10000)("increment"),
			Soak: rapid.SampledFrom([]v1alpha1.Duration{"0s", "90s", "10m"}).Draw(t, "warm-up"),
		},
	}
	return spec
}

// history is a world and the source of what happens in it.
type history struct {
	t *rapid.T
	*world
	// wild turns on what no healthy cluster does: jumping clocks and a status that
	// was tampered with.
	wild bool
}

func newHistory(t *rapid.T, spec v1alpha1.WeightedRolloutSpec) *history {
	spec = *spec.DeepCopy()
	if n := len(spec.Plan.Stages); rapid.Bool().Draw(t, "approval") {
		spec.Plan.Stages[n/2] = approvedAfter(spec.Plan.Stages[n/2])
	}
	spec.OnUnhealthy = rapid.SampledFrom([]v1alpha1.OnUnhealthy{
		{Action: v1alpha1.UnhealthyRollback, For: "1m"}, {Action: v1alpha1.UnhealthyPause, For: "1m"},
		{Action: v1alpha1.UnhealthyBreak, For: "1m", Cooldown: "3m", MaxTrips: 2},
	}).Draw(t, "onUnhealthy")
	if last := spec.Plan.Stages[len(spec.Plan.Stages)-1]; last.Weight != "100" && rapid.Bool().Draw(t, "last stage soaks") {
		spec.Plan.Stages = append(spec.Plan.Stages, stageOf("100", "2m"))
	}
	if spec.Health != nil {
		silence := *spec.Health
		silence.OnNoData = rapid.SampledFrom([]v1alpha1.NoDataAction{v1alpha1.NoDataHold, v1alpha1.NoDataRollback}).Draw(t, "onNoData")
		silence.NoDataTimeout = "20m"
		spec.Health = &silence
	}
	if len(spec.Routes) == 1 && rapid.IntRange(0, 2).Draw(t, "routes") == 2 {
		spec = alsoRoute(spec)
	}
	spec.Paused = rapid.IntRange(0, 9).Draw(t, "paused") == 9
	spec.OnDelete = rapid.SampledFrom([]v1alpha1.DeletionPolicy{v1alpha1.DeletionRestore, v1alpha1.DeletionKeep}).Draw(t, "onDelete")
	h := &history{t: t, world: newWorld(t, spec), wild: rapid.Bool().Draw(t, "wild")}
	for i := range h.routes {
		h.createRoute(i, h.pair(), h.third()...)
	}
	h.drawFleets()
	return h
}

// step does one thing, and lets the controller see it.
func (h *history) step() {
	if h.object.gone {
		h.again()
	}
	actions := append([]string{
		"wait", "wait", "wait", "wait", "look", "edit", "mood", "pods", "order", "order", "abort", "spec", "spec",
		"gateway", "route", "crash", "restart", "owner", "delete", "sync", "counts", "replaced", "refuse", "refuse", "sleep", "wake",
	}, h.workloadActions()...)
	if h.wild {
		actions = append(actions, "jump", "tamper")
	}
	h.do(rapid.SampledFrom(actions).Draw(h.t, "action"))
	if !h.object.gone {
		h.settle()
	}
	h.t.Logf("%s %s", offset(h.at), h.summary())
}

func (h *history) do(action string) {
	switch action {
	case "wait":
		h.wait()
	case "look":
		h.look()
	case "edit":
		h.byHand()
	case "mood":
		h.feel(draw(h, "track", health.TrackCanary, health.TrackCanary, health.TrackStable), draw(h, "mood", moods...))
		h.score = draw(h, "score", 0, 0.2, 0.5, 0.89, 1)
	case "pods":
		h.pods()
	case "order":
		h.order()
	case "abort":
		h.object.annotations[v1alpha1.AbortAnnotation] = draw(h, "attempt", fmt.Sprint(h.status().Attempt), fmt.Sprint(h.status().Attempt-1), "garbage", "99")
	case "spec":
		h.specChange()
	case "gateway":
		h.gatewayTrouble()
	case "route":
		h.routeTrouble()
	case "crash":
		h.controller.crash = crash{write: h.controller.writes + rapid.IntRange(0, 3).Draw(h.t, "write"), after: rapid.Bool().Draw(h.t, "after")}
	case "restart":
		h.restart()
	case "owner":
		h.owner = draw(h, "owner", "", "", "", "older")
		h.partOwner, h.taken = draw(h, "owner of some", "", "older"), draw(h, "taken", "web", "api")
	case "delete":
		if rapid.IntRange(0, 2).Draw(h.t, "delete") == 2 {
			h.remove()
		}
	case "refuse":
		h.object.denied, h.laws.edited = !h.object.denied, true
		h.object.busy = rapid.Bool().Draw(h.t, "busy")
		h.object.ordersDenied = h.object.denied && rapid.IntRange(0, 2).Draw(h.t, "orders") == 2
	case "sleep":
		h.sleepNext = true
	case "wake":
		h.wakeSleeper()
	case "jump":
		h.jump()
	case "tamper":
		h.tamper()
	default:
		h.doWithWorkloads(action)
	}
}

func draw[T any](h *history, label string, of ...T) T {
	return rapid.SampledFrom(of).Draw(h.t, label)
}

func (h *history) wait() {
	h.runFor(draw(h, "wait", time.Second, 40*time.Second, 3*time.Minute, 12*time.Minute, 2*time.Hour))
}

// look wakes the controller for no reason, twice: while nothing happens, nothing is
// written.
func (h *history) look() {
	if h.object.denied {
		return
	}
	for _, r := range h.routes {
		if r.denied {
			return
		}
	}
	for _, f := range []*fleet{h.stable, h.canary} {
		if f != nil && f.denied {
			return
		}
	}
	h.settle()
	signal := h.verdictSignal()
	for range 2 {
		before := h.controller.writes
		h.at = h.at.Add(700 * time.Millisecond)
		h.tend()
		due := !h.controller.timer.IsZero() && !h.controller.timer.After(h.clock())
		if due || signal != h.verdictSignal() || h.controller.fleets != h.fleets() || len(h.serve()) > 0 {
			return
		}
		if _, err := h.pass(); err != nil || h.controller.writes != before {
			h.t.Fatalf("law 11: nothing has happened, and the controller writes (%v): %s\n%s", err, h.summary(), encoded(h.status()))
		}
	}
}

func (h *history) pair() pair {
	return weightsFrom(draw(h, "weights", "100/0", "-/-", "8/2", "100/100", "0/0", "20/80", "97/3", "0/100", "9/1", "900/100", "2/1", "33/67"))
}

func (h *history) byHand() {
	i := rapid.IntRange(0, len(h.routes)-1).Draw(h.t, "route")
	p := h.pair()
	edit := func() { h.edit(i, p, draw(h, "writer", "", "kubectl-edit")) }
	if rapid.Bool().Draw(h.t, "race") {
		h.controller.race = edit
		return
	}
	edit()
}

// again creates the rollout again after it was deleted, with any annotation.
func (h *history) again() {
	spec := *h.object.spec.DeepCopy()
	spec.OnDelete = draw(h, "onDelete", v1alpha1.DeletionRestore, v1alpha1.DeletionKeep)
	h.createAgain(spec)
	for _, f := range []*fleet{h.stable, h.canary} {
		f.found = append(f.found, f.replicas)
	}
	if rapid.Bool().Draw(h.t, "abort") {
		h.abort(1)
	}
	if rapid.Bool().Draw(h.t, "ordered") {
		h.command(v1alpha1.Command{
			ID: draw(h, "id", "1", "again"), Verb: draw(h, "verb", v1alpha1.VerbFinish, v1alpha1.VerbFinish, v1alpha1.VerbRetry, v1alpha1.VerbPromote, v1alpha1.VerbApprove, v1alpha1.VerbSkip),
			Attempt: draw[int64](h, "attempt", 0, 0, 1), Stage: new(int32),
		})
	}
	h.settle()
}

func (h *history) pods() {
	h.stableReady = rapid.IntRange(0, 3).Draw(h.t, "stable") > 0
	h.canaryReady = rapid.IntRange(0, 2).Draw(h.t, "canary") > 0
}

func (h *history) order() {
	if rapid.IntRange(0, 3).Draw(h.t, "sane") > 0 {
		h.say(draw(h, "verb", v1alpha1.VerbApprove, v1alpha1.VerbSkip, v1alpha1.VerbPromote, v1alpha1.VerbRetry, v1alpha1.VerbFinish, v1alpha1.VerbResume))
		return
	}
	switch rapid.IntRange(0, 2).Draw(h.t, "order") {
	case 0:
		stage := rapid.Int32Range(-1, 5).Draw(h.t, "stage")
		h.command(v1alpha1.Command{
			ID: draw(h, "id", "1", "2", "new"), Verb: draw(h, "any verb", v1alpha1.VerbApprove, v1alpha1.VerbSkip, v1alpha1.VerbRetry, v1alpha1.VerbFinish, v1alpha1.VerbResume, "dance"),
			Attempt: rapid.Int64Range(-1, 4).Draw(h.t, "attempt"), Stage: &stage,
		})
	case 1:
		h.object.annotations[v1alpha1.CommandAnnotation] = draw(h, "garbage", "", "{", "null", `{"id":""}`, `{"id":"x","attempt":"one"}`)
	case 2:
		delete(h.object.annotations, v1alpha1.CommandAnnotation)
	}
}

func (h *history) specChange() {
	h.change(func(s *v1alpha1.WeightedRolloutSpec) {
		switch rapid.IntRange(0, 9).Draw(h.t, "spec") {
		case 0, 1:
			h.revise(s)
		case 2, 3:
			s.Paused = !s.Paused
		case 4:
			s.Plan.Stages = draw(h, "plan", [][]v1alpha1.Stage{
				{stageOf("5", "1m"), stageOf("30", "2m")}, {stageOf("50", "3m")}, {stageOf("0.5", "1m"), stageOf("25", "9m"), stageOf("100", "1m")},
				{approvedAfter(stageOf("20", "1m")), stageOf("60", "1m")},
			}...)
		case 5:
			s.Ramp.MaxIncrease, s.Ramp.Interval = draw(h, "maxIncrease", v1alpha1.Percent("10"), "20", "100"), draw(h, "interval", v1alpha1.Duration("1s"), "30s", "5m")
		case 6:
			s.Plan.Stages = draw(h, "broken plan", [][]v1alpha1.Stage{{}, {stageOf("20", "1m"), stageOf("5", "1m")}, {stageOf("x", "1m")}, {stageOf("5", "soon")}}...)
		case 7:
			s.Mode = draw(h, "mode", v1alpha1.ModeEnforce, v1alpha1.ModeEnforce, v1alpha1.ModeObserve)
		case 8:
			s.OnDelete = draw(h, "onDelete", v1alpha1.DeletionRestore, v1alpha1.DeletionKeep)
		case 9:
			s.OnUnhealthy.Action = draw(h, "action", v1alpha1.UnhealthyRollback, v1alpha1.UnhealthyPause, v1alpha1.UnhealthyBreak)
			s.OnUnhealthy.Cooldown = draw(h, "cooldown", v1alpha1.Duration(""), "1s", "3m", "2h")
			s.OnUnhealthy.MaxTrips = draw[int32](h, "maxTrips", 0, 1, 5)
		}
	})
}

func (h *history) gatewayTrouble() {
	h.gateway = gateway{
		delay:   draw(h, "delay", 0, 2*time.Second, 50*time.Second),
		silent:  rapid.IntRange(0, 3).Draw(h.t, "silent") == 0,
		rejects: draw(h, "rejects", "", "", "BackendNotFound"), ignoresIdle: draw(h, "ignoresIdle", false, true),
	}
	h.stableElsewhere, h.canaryElsewhere = draw(h, "stable elsewhere", false, true), draw(h, "canary elsewhere", false, true)
	h.serve()
}

func (h *history) routeTrouble() {
	i := rapid.IntRange(0, len(h.routes)-1).Draw(h.t, "route")
	switch rapid.IntRange(0, 3).Draw(h.t, "trouble") {
	case 0:
		h.routes[i].stored = nil
	case 1:
		h.createRoute(i, h.pair(), h.third()...)
	case 2:
		h.routes[i].denied = !h.routes[i].denied
	case 3:
		h.createRoute(i, h.pair(), backendRef("web-canary", nil))
	}
}

func (h *history) jump() {
	h.skew += draw(h, "jump", -time.Hour, -90*time.Second, 90*time.Second, time.Hour, 10*365*24*time.Hour)
	h.laws.disturbed = h.at
}

func (h *history) tamper() {
	s := h.status()
	percent := draw(h, "desired", v1alpha1.Percent("73"), "abc", "0", "100", "")
	switch rapid.IntRange(0, 11).Draw(h.t, "tamper") {
	case 0:
		s.Share.Desired = &percent
	case 1:
		if s.Stage != nil {
			s.Stage.Index = draw[int32](h, "index", 99, -1, 0)
		}
	case 2:
		s.Attempt = draw[int64](h, "attempt", -1, 0, 7)
	case 3:
		s.Outcome = draw(h, "outcome", "", "Lost", v1alpha1.OutcomePromoted, v1alpha1.OutcomeReturning, v1alpha1.OutcomeInProgress)
	case 4:
		h.object.status = v1alpha1.WeightedRolloutStatus{}
	case 5:
		s.Stage = nil
	case 6:
		s.Warmup = draw(h, "warmup", nil, &v1alpha1.WarmupStatus{}, &v1alpha1.WarmupStatus{Reason: "Lost", Soaked: true})
	case 7:
		s.Breaker = draw(h, "breaker", nil, &v1alpha1.BreakerStatus{Trips: -5}, &v1alpha1.BreakerStatus{Trips: 99})
	case 8:
		if s.Stage != nil {
			s.Stage.ClockStoppedFor = draw(h, "clockStoppedFor", "-1h", "x", "1h")
		}
	case 9:
		since := metav1.NewMicroTime(h.at.Add(draw(h, "noDataSince", -24*time.Hour, time.Hour)))
		s.NoDataSince = &since
	case 11:
		h.tamperWithWorkloads(s)
	case 10:
		s.Comparison = draw(h, "comparison", nil, &v1alpha1.ComparisonStatus{}, &v1alpha1.ComparisonStatus{Errors: "x", Slow: "+Inf"})
	}
	h.laws.disturbed = h.at
	h.laws.earned.attempt, h.laws.earned.tampered = h.status().Attempt, true
}
