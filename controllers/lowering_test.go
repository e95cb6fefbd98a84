package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// refusals are the answers of an API server that does not store a status.
func refusals() map[string]error {
	what := schema.GroupResource{Group: "weightedrollout.dev", Resource: "weightedrollouts"}
	return map[string]error{
		"401": apierrors.NewUnauthorized("who are you"),
		"403": apierrors.NewForbidden(what, "web", errors.New("a policy")),
		"413": apierrors.NewRequestEntityTooLargeError("too much"),
		"422": apierrors.NewInvalid(schema.GroupKind{Group: "weightedrollout.dev", Kind: "WeightedRollout"}, "web", field.ErrorList{field.Invalid(field.NewPath("status"), "x", "no")}),
		"429": apierrors.NewTooManyRequests("later", 1),
		"500": apierrors.NewInternalError(errors.New("oops")),
		"504": apierrors.NewTimeoutError("slow", 1),
		// What a client says whose deadline has passed.
		"deadline": fmt.Errorf("patch: %w", context.DeadlineExceeded),
	}
}

// causes are what takes the canary's traffic away, and whether the attempt is over then.
func causes() map[string]struct {
	begin func(*passBench)
	ends  bool
} {
	type cause = struct {
		begin func(*passBench)
		ends  bool
	}
	edit := func(change func(*v1alpha1.WeightedRollout)) func(*passBench) {
		return func(b *passBench) {
			wr := b.rollout()
			change(wr)
			b.update(wr)
		}
	}
	return map[string]cause{
		"unhealthy": {func(b *passBench) { b.verdict = badVerdict }, true},
		"aborted":   {edit(func(wr *v1alpha1.WeightedRollout) { wr.Annotations = map[string]string{v1alpha1.AbortAnnotation: "3"} }), true},
		"revision":  {edit(func(wr *v1alpha1.WeightedRollout) { wr.Spec.Revision = "v3" }), true},
		"returned":  {returnedToStable, false},
		"unready":   {func(b *passBench) { b.unready("web-canary") }, false},
		"break": {func(b *passBench) {
			edit(func(wr *v1alpha1.WeightedRollout) {
				wr.Spec.OnUnhealthy = v1alpha1.OnUnhealthy{Action: v1alpha1.UnhealthyBreak, For: "1m", Cooldown: "1h", MaxTrips: 3}
			})(b)
			b.verdict = badVerdict
		}, false},
	}
}

// returnedToStable is a return that has come to its end.
func returnedToStable(b *passBench) {
	none := v1alpha1.Percent("0")
	wr := b.rollout()
	wr.Status.Outcome, wr.Status.Share.Desired, wr.Status.Routes[0].Written = v1alpha1.OutcomeReturning, &none, &none
	wr.Status.Stage.Weight, wr.Status.StableRevision = "100", "v2"
	if err := b.server.Status().Update(b.t.Context(), wr); err != nil {
		b.t.Fatal(err)
	}
	hr := b.route("web")
	hr.Spec.Rules = routeAt("web", 100, 0).Spec.Rules
	b.update(hr)
}

// refusing refuses these writes with an error.
func refusing(err error, writes ...string) func(string) error {
	return func(write string) error {
		if slices.Contains(writes, write) {
			return err
		}
		return nil
	}
}

// TestLoweringWaitsForNoRecord: whatever takes the canary's traffic away, and however the
// API server refuses to store the status, the routes are lowered at once and stay so: with
// better numbers, after a restart, and once the status can be written again.
func TestLoweringWaitsForNoRecord(t *testing.T) {
	for refused, answer := range refusals() {
		for name, cause := range causes() {
			for _, restarts := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s restart %v", refused, name, restarts), func(t *testing.T) {
					b := newPassBench(t, atTwenty(), routeAt("web", 80, 20))
					cause.begin(b)
					b.answer = refusing(answer, "status")
					b.passes(1)
					if got := b.canary("web"); got != 0 {
						t.Fatalf("the canary keeps a weight of %d; written: %v", got, b.wrote)
					}
					if told := b.events(); len(told) == 0 {
						t.Error("nobody was told")
					}
					// The bad time is over, and nobody has seen it but the controller.
					b.verdict = goodVerdict
					b.passes(3)
					if restarts {
						b.restart()
						b.passes(3)
					}
					if got := b.canary("web"); got != 0 {
						t.Fatalf("the canary has a weight of %d again", got)
					}
					b.answer = refusing(nil)
					b.passes(1)
					s := b.rollout().Status
					if open := s.Attempt == 3 && s.Outcome == v1alpha1.OutcomeInProgress; cause.ends && open {
						t.Fatalf("attempt 3 goes on: %+v", s.Share)
					}
					b.clock.SetTime(b.clock.Now().Add(10 * time.Minute))
					b.passes(10)
					s = b.rollout().Status
					switch got := b.canary("web"); {
					case name == "revision":
						if s.Revision != "v3" || s.Attempt < 4 {
							t.Errorf("the other revision does not begin: attempt %d of %s", s.Attempt, s.Revision)
						}
					case got != 0:
						t.Errorf("the canary has a weight of %d again, in attempt %d, %s", got, s.Attempt, s.Outcome)
					}
					if rolledBack := s.Outcome == v1alpha1.OutcomeRolledBack; rolledBack && (name == "revision" || name == "returned") {
						t.Errorf("it is rolled back: %s", s.OutcomeMessage)
					}
					if name == "unhealthy" && !strings.Contains(s.OutcomeMessage, badVerdict.Message) {
						t.Errorf("the status does not say why: %s: %s", s.OutcomeReason, s.OutcomeMessage)
					}
				})
			}
		}
	}
}

// TestEndOutlivesAnyOnePlace: that an attempt is over is kept in the abort order and on the
// route: either alone is enough after a restart.
func TestEndOutlivesAnyOnePlace(t *testing.T) {
	forbidden := refusals()["403"]
	for name, tc := range map[string]struct {
		refused []string
		lose    func(*passBench)
	}{
		"a tool replaces the route": {[]string{"status"}, func(b *passBench) {
			hr := b.route("web")
			hr.Annotations = nil
			b.update(hr)
		}},
		"only routes can be written": {[]string{"status", "abort", "finalizer"}, func(*passBench) {}},
		"no finalizer": {[]string{"status", "finalizer"}, func(b *passBench) {
			wr := b.rollout()
			wr.Finalizers = nil
			b.update(wr)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newPassBench(t, atTwenty(), routeAt("web", 80, 20))
			b.verdict, b.answer = badVerdict, refusing(forbidden, tc.refused...)
			b.passes(1)
			tc.lose(b)
			b.verdict = goodVerdict
			b.restart()
			b.passes(3)
			b.answer = refusing(nil)
			b.clock.SetTime(b.clock.Now().Add(10 * time.Minute))
			b.passes(5)
			if s := b.rollout().Status; s.Outcome != v1alpha1.OutcomeRolledBack || b.canary("web") != 0 {
				t.Errorf("outcome %s, canary %d: %s", s.Outcome, b.canary("web"), s.OutcomeMessage)
			}
		})
	}
}

// TestLoweringWithoutOurAnnotation: a route that takes no more annotations, or whose
// annotations a policy keeps, is lowered by its weights alone.
func TestLoweringWithoutOurAnnotation(t *testing.T) {
	for name, answer := range map[string]error{"403": refusals()["403"], "422": refusals()["422"]} {
		t.Run(name, func(t *testing.T) {
			hr := routeAt("web", 80, 20)
			hr.Annotations = map[string]string{"example.com/note": "full"}
			b := newPassBench(t, atTwenty(), hr)
			b.verdict, b.answer = badVerdict, refusing(answer, "web with annotations")
			if err := b.pass(); err != nil {
				t.Error(err)
			}
			if got := b.canary("web"); got != 0 {
				t.Errorf("the canary keeps a weight of %d; written: %v", got, b.wrote)
			}
			wr := b.rollout()
			if err := b.server.Delete(t.Context(), wr); err != nil {
				t.Fatal(err)
			}
			b.passes(3)
			if err := b.server.Get(t.Context(), client.ObjectKeyFromObject(wr), wr); !apierrors.IsNotFound(err) {
				t.Errorf("the deleted rollout stays: %v", err)
			}
		})
	}
}

// TestLoweringWaitsForNoOtherRoute: a route that cannot be written, or takes its time, keeps
// no other from being lowered.
func TestLoweringWaitsForNoOtherRoute(t *testing.T) {
	b := newPassBench(t, atTwenty(func(wr *v1alpha1.WeightedRollout) { wr.Spec.Routes = append(wr.Spec.Routes, httpRef("api")) }), routeAt("web", 80, 20), routeAt("api", 80, 20))
	b.verdict = badVerdict
	lowered := make(chan struct{})
	b.answer = func(write string) error {
		switch {
		case strings.HasPrefix(write, "web"):
			select {
			case <-lowered:
			case <-time.After(10 * time.Second):
				return errors.New("the other route waits for this one")
			}
		case strings.HasPrefix(write, "api"):
			close(lowered)
		}
		return nil
	}
	if err := b.pass(); err != nil {
		t.Fatal(err)
	}
	if b.canary("web") != 0 || b.canary("api") != 0 {
		t.Errorf("web %d, api %d", b.canary("web"), b.canary("api"))
	}
}

// TestLoweringWaitsForNoSlowRecord: while the API server thinks about the status, the route
// is lowered.
func TestLoweringWaitsForNoSlowRecord(t *testing.T) {
	b := newPassBench(t, atTwenty(), routeAt("web", 80, 20))
	b.verdict = badVerdict
	lowered := make(chan struct{})
	b.answer = func(write string) error {
		switch {
		case write == "status":
			select {
			case <-lowered:
			case <-time.After(10 * time.Second):
				return errors.New("the route waits for the status")
			}
		case strings.HasPrefix(write, "web"):
			close(lowered)
		}
		return nil
	}
	if err := b.pass(); err != nil {
		t.Fatal(err)
	}
	if s := b.rollout().Status; s.Outcome != v1alpha1.OutcomeRolledBack || b.canary("web") != 0 {
		t.Errorf("outcome %s, canary %d", s.Outcome, b.canary("web"))
	}
}

// TestLoweringBesideABusyWriter: somebody who writes the rollout's labels all the time keeps
// it neither from being lowered nor, if there is a gap, from being recorded.
func TestLoweringBesideABusyWriter(t *testing.T) {
	for _, gap := range []int{1, 1 << 30} {
		b := newPassBench(t, atTwenty(), routeAt("web", 80, 20))
		b.verdict = badVerdict
		writes := 0
		b.answer = func(write string) error {
			if write != "status" {
				return nil
			}
			if writes++; writes <= gap {
				wr := b.rollout()
				wr.Labels = map[string]string{"n": fmt.Sprint(writes)}
				b.update(wr)
			}
			return nil
		}
		err := b.pass()
		if b.canary("web") != 0 {
			t.Errorf("gap %d: the canary keeps its weight: %v", gap, err)
		}
		if s := b.rollout().Status; (s.Outcome == v1alpha1.OutcomeRolledBack) != (gap == 1) {
			t.Errorf("gap %d: outcome %s, %v", gap, s.Outcome, err)
		}
	}
}

// TestRaiseWaitsForItsRecord: what raises is nothing before it is recorded.
func TestRaiseWaitsForItsRecord(t *testing.T) {
	for refused, answer := range refusals() {
		b := newPassBench(t, atTwenty(), routeAt("web", 80, 20))
		b.answer = refusing(answer, "status")
		b.passes(4)
		b.restart()
		b.passes(4)
		if got := b.canary("web"); got != 20 {
			t.Errorf("%s: the canary's weight is %d", refused, got)
		}
	}
}
