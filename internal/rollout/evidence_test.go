package rollout_test

import (
	"fmt"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
)

// mood is how a track does.
type mood string

const (
	good     mood = "good"
	quiet    mood = "quiet"    // too few requests
	blind    mood = "blind"    // the metrics server fails
	degraded mood = "degraded" // above a limit, but never for long enough
	poor     mood = "poor"     // above a target, for long enough to scale back
	rising   mood = "rising"   // no limit is exceeded, but one soon will be
	worse    mood = "worse"    // above a target, and worse than stable, which the comparison proves
	bad      mood = "bad"
)

var moods = []mood{good, quiet, blind, degraded, poor, rising, worse, bad}

// evidence is how a track does, and since when.
type evidence struct {
	mood  mood
	since time.Time
}

// windows say how long evidence must be to mean something.
type windows struct {
	// one full window, enough for a ramp step
	ramp time.Duration
	// enough requests for a stage to end
	stage time.Duration
	// a breach that has lasted
	unhealthy time.Duration
	// good for long enough to be steady
	steady time.Duration
}

var defaultWindows = windows{ramp: 75 * time.Second, stage: 2 * time.Minute, unhealthy: 135 * time.Second, steady: 150 * time.Second}

func (w *world) feel(track health.Track, m mood) {
	w.evidence[track] = &evidence{mood: m, since: w.at}
}

// subject is the evidence that the verdict is about, and how long it is. Samples
// are stamped with the true time; those from the controller's future are not used.
func (w *world) subject() (e *evidence, length time.Duration, ok bool) {
	from := measuredFrom(w.believed())
	if from.IsZero() {
		return nil, 0, false
	}
	e = w.evidence[rollout.Subject(w.believed())]
	if e.since.After(from) {
		from = e.since
	}
	end := w.at
	if w.skew < 0 {
		end = w.clock()
	}
	return e, end.Sub(from), true
}

// measuredFrom is when the evidence for the present share begins; zero if there is
// nothing to measure. The controller has the same rule.
func measuredFrom(s *v1alpha1.WeightedRolloutStatus) time.Time {
	none := v1alpha1.Percent("0")
	switch s.Outcome {
	case v1alpha1.OutcomeInProgress, v1alpha1.OutcomePromoted:
	case v1alpha1.OutcomeReturning:
		none = "100"
	case v1alpha1.OutcomeCompleted, v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeSuperseded:
		return time.Time{}
	}
	switch share := s.Share; {
	case share.Desired == nil || *share.Desired == none:
	case share.ConfirmedAt != nil:
		return share.ConfirmedAt.Time
	case share.ChangedAt != nil:
		return share.ChangedAt.Time
	}
	return time.Time{}
}

// verdict judges the evidence. Its messages have numbers that change all the time,
// as those of real evidence have.
func (w *world) verdict() health.Verdict {
	v := w.judged()
	v.Traffic = w.traffic(v)
	if w.comparedFor() >= w.windows.ramp {
		v.Compared.Through = w.at
	}
	return v
}

// comparedFor is how long the evidence is that the canary is compared with stable by.
func (w *world) comparedFor() time.Duration {
	_, length, ok := w.subject()
	if !ok || rollout.Subject(w.status()) != health.TrackCanary || rollout.Unopposed(w.status()) {
		return 0
	}
	return min(length, w.clock().Sub(rollout.ComparedFrom(&w.object.spec, w.status())))
}

func (w *world) judged() health.Verdict {
	e, length, ok := w.subject()
	if !ok {
		return health.Unknown(v1alpha1.ReasonAwaitingWindow, "the share is not confirmed yet")
	}
	if length < w.windows.ramp {
		return health.Unknown(v1alpha1.ReasonAwaitingWindow, "waiting for the first full window of 1m0s since the share was confirmed")
	}
	requests := int64(length / time.Second)
	switch e.mood {
	case quiet:
		return short(requests, "canary is quiet")
	case blind:
		return health.Unknown(v1alpha1.ReasonProviderError, fmt.Sprintf("the metrics server failed %d times", requests))
	case degraded, bad:
		v := health.Verdict{
			State: v1alpha1.VerdictDegraded, Reason: v1alpha1.ReasonBreach, Check: "error-rate",
			Message:  fmt.Sprintf("%d of %d requests failed, above the limit of 1%%", requests/4, requests),
			RampWait: "the breach to end", StageWait: "the breach to end",
		}
		if e.mood == bad && length >= w.windows.unhealthy {
			v.State = v1alpha1.VerdictUnhealthy
		}
		return v
	case poor, worse:
		if e.mood == worse && w.comparedFor() >= w.windows.unhealthy {
			v := health.Verdict{State: v1alpha1.VerdictUnhealthy, Reason: v1alpha1.ReasonWorseThanStable, Check: "error-rate", Message: fmt.Sprintf("%d of %d requests failed", requests/33, requests)}
			v.RampWait, v.StageWait = "another attempt", "another attempt"
			return v
		}
		return health.Verdict{
			State: v1alpha1.VerdictDegraded, Reason: v1alpha1.ReasonAboveTarget, Check: "latency", Score: w.score, ScaleBack: length >= w.windows.unhealthy,
			Message: fmt.Sprintf("%d requests were slow", requests), RampWait: "the target", StageWait: "the target",
		}
	case rising:
		return health.Unknown(v1alpha1.ReasonTrendingUp, fmt.Sprintf("%d requests, slower and slower", requests))
	case good:
	}
	if length < w.windows.stage {
		v := short(requests, "")
		v.RampReady, v.RampWait = true, ""
		return v
	}
	return health.Verdict{
		State: v1alpha1.VerdictHealthy, Reason: v1alpha1.ReasonChecksPassed, RampReady: true, StageReady: true,
		Message: fmt.Sprintf("every check passes on %d requests", requests), Score: 1, Steady: length >= w.windows.steady,
	}
}

func short(requests int64, _ string) health.Verdict {
	v := health.Unknown(v1alpha1.ReasonInsufficientRequests, fmt.Sprintf("%d of 100000 requests", requests))
	v.Check = health.CheckRequests
	v.RampWait = fmt.Sprintf("about %d more requests", 100000-requests)
	v.StageWait = v.RampWait
	return v
}

// nextSignal returns the times at which the evidence may say something else.
func (w *world) nextSignal() []time.Time {
	_, length, ok := w.subject()
	if !ok {
		return nil
	}
	begin := w.at.Add(-length)
	times := []time.Time{begin.Add(w.windows.ramp), begin.Add(w.windows.stage), begin.Add(w.windows.unhealthy), begin.Add(w.windows.steady)}
	if from := rollout.ComparedFrom(&w.object.spec, w.status()); from.After(w.clock().Add(-w.windows.unhealthy)) && from.Before(health.Never()) {
		times = append(times, from.Add(w.windows.unhealthy-w.skew))
	}
	return times
}
