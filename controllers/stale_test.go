package controllers

import (
	"strings"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// stopped is a leader that is stopped just before it writes a route, as by SIGSTOP, until
// it is woken.
type stopped struct {
	*passBench
	wake chan struct{}
	done chan struct{}
}

// stopBeforeRoute lets a leader pass until it is about to write the route.
func stopBeforeRoute(b *passBench) *stopped {
	b.t.Helper()
	s := &stopped{passBench: &passBench{t: b.t, server: b.server, clock: b.clock, verdict: b.verdict}, wake: make(chan struct{}), done: make(chan struct{})}
	reached, once := make(chan struct{}), false
	s.answer = func(write string) error {
		if strings.HasPrefix(write, "web") && !once {
			once = true
			close(reached)
			<-s.wake
		}
		return nil
	}
	s.restart()
	go func() {
		defer close(s.done)
		_ = s.pass()
	}()
	select {
	case <-reached:
	case <-s.done:
		b.t.Fatal("the leader writes no route")
	}
	return s
}

// goOn wakes the leader and waits until its pass is over.
func (s *stopped) goOn() {
	s.t.Helper()
	close(s.wake)
	select {
	case <-s.done:
	case <-time.After(10 * time.Second):
		s.t.Fatal("the pass does not end")
	}
}

// beforeRaise is a rollout that is about to be raised from 10 to 20 percent.
func beforeRaise(t *testing.T) *passBench {
	t.Helper()
	wr := atTwenty(func(wr *v1alpha1.WeightedRollout) {
		ten := v1alpha1.Percent("10")
		wr.Status.Share.Desired = &ten
	})
	ten := v1alpha1.Percent("10")
	wr.Status.Routes[0].Written = &ten
	return newPassBench(t, wr, routeAt("web", 90, 10))
}

// TestStaleLeaderRaisesNothing: a leader is stopped before its write, another one takes
// over, raises, and takes everything back; then the first is woken. That the weights are
// those that it expects says nothing: it reads that the rollout was decided on since.
func TestStaleLeaderRaisesNothing(t *testing.T) {
	for name, ending := range map[string]func(b *passBench){
		"unhealthy": func(b *passBench) { b.verdict = badVerdict },
		"aborted": func(b *passBench) {
			wr := b.rollout()
			wr.Annotations = map[string]string{v1alpha1.AbortAnnotation: "3"}
			b.update(wr)
		},
		"unready": func(b *passBench) { b.unready("web-canary") },
	} {
		t.Run(name, func(t *testing.T) {
			b := beforeRaise(t)
			first := stopBeforeRoute(b)
			b.restart()
			b.passes(2) // the other leader writes 20 percent
			if got := b.canary("web"); got != 20 {
				t.Fatalf("the second leader has not raised: %d", got)
			}
			ending(b)
			b.passes(2)
			// By hand, so that the route says just what the first leader expects.
			hr := b.route("web")
			ten, ninety := int32(10), int32(90)
			hr.Spec.Rules[0].BackendRefs[0].Weight, hr.Spec.Rules[0].BackendRefs[1].Weight = &ninety, &ten
			b.update(hr)
			first.goOn()
			if got := b.canary("web"); got > 10 {
				t.Errorf("the first leader gives the canary %d: %v", got, first.wrote)
			}
			b.passes(2)
			if got := b.canary("web"); got != 0 {
				t.Errorf("the canary keeps %d", got)
			}
		})
	}
}

// TestStaleLeaderMeetsAConflict: the intent to raise is recorded, and its leader is stopped
// before the write. The next one takes the intent back, and finds that the route has the
// right weights already: nothing but a mark on it keeps the first leader's write out.
func TestStaleLeaderMeetsAConflict(t *testing.T) {
	for name, end := range map[string]struct {
		begin func(b *passBench)
		open  bool
	}{
		"aborted": {func(b *passBench) {
			wr := b.rollout()
			wr.Annotations = map[string]string{v1alpha1.AbortAnnotation: "3"}
			b.update(wr)
		}, false},
		"unready":  {func(b *passBench) { b.unready("web-canary") }, true},
		"revision": {func(b *passBench) { wr := b.rollout(); wr.Spec.Revision = "v3"; b.update(wr) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			wr := atTwenty(func(wr *v1alpha1.WeightedRollout) {
				none := v1alpha1.Percent("0")
				wr.Status.Share.Desired = &none
			})
			none := v1alpha1.Percent("0")
			wr.Status.Routes[0].Written = &none
			b := newPassBench(t, wr, routeAt("web", 100, 0))
			first := stopBeforeRoute(b)
			if s := b.rollout().Status; *s.Share.Desired == "0" {
				t.Fatal("the intent is not recorded")
			}
			b.restart()
			end.begin(b)
			b.passes(2)
			first.goOn()
			if got := b.canary("web"); got != 0 {
				t.Errorf("the first leader gives the canary %d: %v", got, first.wrote)
			}
			if s := b.rollout().Status; (s.Outcome == v1alpha1.OutcomeInProgress) != end.open || *s.Share.Desired != "0" {
				t.Errorf("outcome %s, share %s", s.Outcome, *s.Share.Desired)
			}
		})
	}
}

// TestMarkIsWrittenBesideOthers: somebody else writes the route while it is marked.
func TestMarkIsWrittenBesideOthers(t *testing.T) {
	wr := atTwenty(func(wr *v1alpha1.WeightedRollout) { wr.Status.Share.ConfirmedAt = nil })
	none := v1alpha1.Percent("0")
	wr.Status.Routes[0].Written = &none
	b := newPassBench(t, wr, routeAt("web", 100, 0))
	b.unready("web-canary")
	edited := false
	b.answer = func(write string) error {
		if write == "web with annotations" && !edited {
			edited = true
			hr := b.route("web")
			hr.Labels = map[string]string{"edited": "yes"}
			b.update(hr)
		}
		return nil
	}
	if err := b.pass(); err != nil {
		t.Fatal(err)
	}
	if b.route("web").Annotations[v1alpha1.LoweredAnnotation] == "" {
		t.Errorf("the route is not marked; written: %v", b.wrote)
	}
}
