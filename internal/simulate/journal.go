package simulate

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
)

// journal writes down what happens, as a Result.
type journal struct {
	result *Result
	// interval is ramp.interval, warmup is ramp.warmup.soak, and percentile is that of
	// the response times.
	interval, warmup time.Duration
	percentile       float64

	// stage is the index of the stage under way in the result, or -1, and met is the
	// number of requests that had met the canary when it began.
	stage int
	met   float64
	place place

	// sampled are the counters at the last sample.
	sampled   snapshot
	sampledAt time.Duration
}

// place names a stage under way.
type place struct {
	attempt int64
	index   int32
}

func newJournal(w *world, interval, warmup time.Duration) *journal {
	j := &journal{
		result: &Result{
			Name: w.options.Name, Start: w.script.start, Seed: w.options.Seed, Exact: w.options.Exact,
			Stages: []Stage{}, Adjustments: []Adjustment{}, Events: []Event{}, Samples: []Sample{},
		},
		interval: interval, warmup: warmup, percentile: 0.99, stage: -1,
		sampled: snapshot{w.stable.clone(), w.canary.clone()},
	}
	if !w.options.Exact {
		j.result.Picker = w.options.Picker
	}
	if l := w.evidence.config.Latency; l != nil {
		j.percentile = l.Percentile
	}
	return j
}

// status writes down what a new status says that the one before did not.
func (j *journal) status(w *world, before *v1alpha1.WeightedRolloutStatus, d rollout.Decision) {
	if w.status.Phase != before.Phase {
		j.result.Outcome.ReachedAt = Elapsed(w.now)
	}
	j.adjustment(w, before, d)
	j.stages(w)
	confirmed := w.status.Share.ConfirmedAt
	if confirmed == nil {
		return
	}
	if n := len(j.result.Adjustments); n > 0 && j.result.Adjustments[n-1].ConfirmedAt == nil {
		j.result.Adjustments[n-1].ConfirmedAt = elapsed(w.now)
	}
	if j.stage >= 0 {
		if s := &j.result.Stages[j.stage]; s.ReachedAt == nil && shareOf(&w.status) >= s.Weight {
			s.ReachedAt = elapsed(w.now)
		}
	}
}

func (j *journal) adjustment(w *world, before *v1alpha1.WeightedRolloutStatus, d rollout.Decision) {
	from, to := shareOf(before), shareOf(&w.status)
	if from == to {
		return
	}
	a := Adjustment{At: Elapsed(w.now), From: from, To: to, Weights: w.stored(), Attempt: w.status.Attempt}
	if s := w.status.Stage; s != nil {
		a.Stage = s.Position
	}
	// While the traffic returns to stable, it is stable's share that rises.
	if (to > from) != d.Returning {
		a.Cause, a.Bound = j.causeOfRaise(w, before, d), string(d.Bound)
	} else {
		a.Cause = causeOfLowering(&w.status, before, d)
	}
	j.result.Adjustments = append(j.result.Adjustments, a)
}

// causeOfRaise says what a raise has waited for last: what the condition Ready said
// before it.
func (j *journal) causeOfRaise(w *world, before *v1alpha1.WeightedRolloutStatus, d rollout.Decision) Cause {
	reason := readyOf(before).Reason
	if slices.ContainsFunc(d.Events, func(e rollout.Event) bool { return e.Reason == v1alpha1.ReasonCommandAccepted }) {
		switch reason {
		case v1alpha1.ReasonAwaitingApproval:
			return CauseApproval
		case v1alpha1.ReasonPaused, v1alpha1.ReasonUnhealthy:
			return CauseResume
		}
		return CauseCommand
	}
	switch reason {
	case v1alpha1.ReasonStarting:
		return CauseStart
	case v1alpha1.ReasonSoaking:
		return CauseSoak
	case v1alpha1.ReasonRamping, v1alpha1.ReasonReturning, v1alpha1.ReasonWarmingUp:
		return j.causeOfStep(before, w.clock())
	case v1alpha1.ReasonAwaitingEvidence, v1alpha1.ReasonDegraded:
		return CauseEvidence
	case v1alpha1.ReasonAwaitingApproval:
		return CauseApproval
	case v1alpha1.ReasonBreakerOpen:
		return CauseCooldown
	case v1alpha1.ReasonPaused:
		return CauseResume
	case v1alpha1.ReasonCanaryNotReady, v1alpha1.ReasonStableNotReady:
		return CauseReady
	}
	return Cause(reason)
}

// causeOfStep says what a step within a stage has waited for last, from the times that
// had to pass: the evidence takes longer than they do, or not.
func (j *journal) causeOfStep(before *v1alpha1.WeightedRolloutStatus, now time.Time) Cause {
	confirmed := before.Share.ConfirmedAt
	if confirmed == nil {
		return CauseEvidence
	}
	held := now.Sub(confirmed.Time)
	switch cold := before.Warmup; {
	case cold != nil && !cold.Soaked && held >= j.warmup && j.warmup > j.interval:
		return CauseWarmup
	case held > j.interval:
		return CauseEvidence
	}
	return CauseInterval
}

// causeOfLowering names the reason for which the track under test gets less.
func causeOfLowering(s, before *v1alpha1.WeightedRolloutStatus, d rollout.Decision) Cause {
	if s.Outcome == v1alpha1.OutcomeRolledBack && before.Outcome != v1alpha1.OutcomeRolledBack {
		return Cause(s.OutcomeReason)
	}
	for _, e := range d.Events {
		switch e.Reason {
		case v1alpha1.ReasonShareLowered, v1alpha1.ReasonVerdictChanged, v1alpha1.ReasonCommandAccepted, v1alpha1.ReasonCommandIgnored:
			continue
		}
		return Cause(e.Reason)
	}
	return Cause(readyOf(s).Reason)
}

// stages follows the stage under way.
func (j *journal) stages(w *world) {
	s := &w.status
	var here place
	if s.Outcome == v1alpha1.OutcomeInProgress && s.Stage != nil {
		here = place{s.Attempt, s.Stage.Index}
	}
	if j.stage >= 0 && here == j.place {
		return
	}
	if j.stage >= 0 {
		j.result.Stages[j.stage].EndedAt = elapsed(w.now)
		j.leave(w)
		j.stage = -1
	}
	if here.attempt == 0 {
		return
	}
	j.place, j.stage, j.met = here, len(j.result.Stages), w.canary.requests
	j.result.Stages = append(j.result.Stages, Stage{
		Attempt: here.attempt, Position: s.Stage.Position, Weight: percentOf(s.Stage.Weight), BeganAt: Elapsed(w.now),
	})
}

// leave closes the account of the stage under way.
func (j *journal) leave(w *world) {
	s := &j.result.Stages[j.stage]
	s.Lasted = Elapsed(w.now) - s.BeganAt
	s.CanaryRequests = w.canary.requests - j.met
}

// route writes down what the routes carry after a write.
func (j *journal) route(w *world) {
	if n := len(j.result.Adjustments); n > 0 {
		j.result.Adjustments[n-1].Weights = w.stored()
	}
}

// stored lists the weights of the routes as they are stored.
func (w *world) stored() []RouteWeights {
	list := make([]RouteWeights, len(w.routes))
	for i, r := range w.routes {
		list[i] = r.weights(r.stored)
	}
	return list
}

func (j *journal) told(w *world, events []rollout.Event) {
	for _, e := range events {
		j.result.Events = append(j.result.Events, Event{
			At: Elapsed(w.now), Source: FromController, Warning: e.Warning, Reason: e.Reason, Message: e.Message,
		})
	}
}

// happened writes down what the scenario did.
func (j *journal) happened(w *world, message string) {
	j.result.Events = append(j.result.Events, Event{At: Elapsed(w.now), Source: FromScenario, Message: message})
}

// sample writes down the traffic since the last sample, and where the rollout is now.
func (j *journal) sample(w *world, v health.Verdict) {
	if w.now == j.sampledAt {
		return
	}
	stable, canary := w.stable.since(j.sampled.stable), w.canary.since(j.sampled.canary)
	j.sampled, j.sampledAt = snapshot{w.stable.clone(), w.canary.clone()}, w.now
	s := Sample{
		At: Elapsed(w.now), Phase: w.status.Phase, Desired: shareOf(&w.status),
		Stable: j.track(w, stable), Canary: j.track(w, canary),
		Verdict: Verdict{State: v.State, Reason: v.Reason, Check: v.Check, Score: v.Score},
	}
	if all := stable.requests + canary.requests; all > 0 {
		s.Share = canary.requests / all * 100
	}
	j.result.Samples = append(j.result.Samples, s)
}

func (j *journal) track(w *world, c counts) TrackSample {
	t := Traffic{Requests: c.requests, Failed: c.failed}
	return TrackSample{Traffic: t, FailedPercent: t.FailedPercent(), Latency: quantile(w.dice.bounds, c, j.percentile)}
}

// finish closes every account.
func (j *journal) finish(w *world, c *controller, ending Ending) *Result {
	if j.stage >= 0 {
		j.leave(w)
	}
	s := &w.status
	ready := readyOf(s)
	o := &j.result.Outcome
	o.Ending, o.Phase, o.State, o.Revision, o.Attempt = ending, s.Phase, s.Outcome, s.Revision, s.Attempt
	o.Share, o.Reason, o.Message, o.Duration = shareOf(s), ready.Reason, ready.Message, Elapsed(w.now)
	o.Stable = Traffic{Requests: w.stable.requests, Failed: w.stable.failed}
	o.Canary = Traffic{Requests: w.canary.requests, Failed: w.canary.failed}
	o.Passes, o.StatusWrites, o.RouteWrites = c.passes, c.statusWrites, c.routeWrites
	return j.result
}

func elapsed(d time.Duration) *Elapsed {
	e := Elapsed(d)
	return &e
}

// shareOf returns the desired share in percent; 0 if there is none.
func shareOf(s *v1alpha1.WeightedRolloutStatus) float64 {
	if s.Share.Desired == nil {
		return 0
	}
	return percentOf(*s.Share.Desired)
}

func percentOf(p v1alpha1.Percent) float64 {
	bp, err := p.BasisPoints()
	if err != nil {
		return 0
	}
	return float64(bp) / 100
}

// readyOf returns the condition Ready.
func readyOf(s *v1alpha1.WeightedRolloutStatus) metav1.Condition {
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func readyText(s *v1alpha1.WeightedRolloutStatus) string {
	c := readyOf(s)
	return c.Reason + ": " + c.Message
}
