package rollout

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// maxHistory is the number of ended attempts that status keeps.
const maxHistory = 10

// draft is a decision in the making. It works on a copy of the status.
type draft struct {
	obs     Observation
	now     time.Time
	plan    plan
	planErr error

	status v1alpha1.WeightedRolloutStatus
	// share is the desired share in numbers; known is false while there is no record
	// of one.
	share weights.Share
	known bool
	// judged is the part of the traffic that the observed verdict is about: what the
	// track under test had before this decision.
	judged weights.Share

	// fresh is true once this decision began with evidence of another kind, so that
	// the verdict that was observed is not about it.
	fresh bool
	// taken is the verb of the command that this decision carries out.
	taken v1alpha1.Verb
	// moved is true once this decision changed the share, the stage or the outcome.
	moved bool
	// calmed is true while a change of the weights by another writer is left as it is.
	calmed  bool
	bound   weights.Bound
	writes  Writes
	scales  []Scale
	updates bool
	release bool
	events  []Event
	nextAt  time.Time
	// transitionAt is when time alone lets the share change.
	transitionAt time.Time

	state   state
	reason  string
	message string
	// phase overrides the phase that follows from the outcome.
	phase v1alpha1.Phase
}

// state is what the Ready, Reconciling and Stalled conditions say.
type state int

const (
	stateReconciling state = iota
	stateStalled
	stateReady
)

func newDraft(obs Observation, now time.Time) *draft {
	d := &draft{obs: obs, now: now, writes: WriteNone}
	if obs.Status != nil {
		obs.Status.DeepCopyInto(&d.status)
	}
	d.plan, d.planErr = planFrom(obs.Spec)
	if d.status.Attempt < 0 {
		d.status.Attempt = 0
	}
	d.notInTheFuture()
	d.noteStableRevision()
	d.noteStableTemplate()
	if d.share, d.known = recorded(&d.status); d.known {
		d.judged = d.tested(d.share)
	}
	return d
}

// notInTheFuture takes every recorded time that is ahead of the clock as now: the
// clock went back, or another's was ahead. Nothing waits for such a time, and
// nothing is cut short by it.
func (d *draft) notInTheFuture() {
	s := &d.status
	times := []*metav1.MicroTime{s.StartedAt, s.Share.ChangedAt, s.Share.ConfirmedAt, s.NoDataSince}
	if s.Comparison != nil {
		times = append(times, s.Comparison.Through)
	}
	if s.Stage != nil {
		times = append(times, s.Stage.StartedAt, s.Stage.ClockStoppedSince)
	}
	if s.Breaker != nil {
		times = append(times, s.Breaker.OpenedAt)
	}
	if s.Progress != nil {
		times = append(times, s.Progress.WaitingSince)
	}
	if s.Warmup != nil {
		times = append(times, s.Warmup.HeldSince)
	}
	if s.Contention != nil {
		times = append(times, s.Contention.At)
	}
	for _, t := range times {
		if t != nil && t.After(d.now) {
			*t = *micro(d.now)
		}
	}
	for i := range s.Conditions {
		if c := &s.Conditions[i]; c.LastTransitionTime.After(d.now) {
			c.LastTransitionTime = second(d.now)
		}
	}
}

func knownOutcome(o v1alpha1.Outcome) bool {
	switch o {
	case v1alpha1.OutcomeInProgress, v1alpha1.OutcomePromoted, v1alpha1.OutcomeReturning,
		v1alpha1.OutcomeCompleted, v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeSuperseded:
		return true
	}
	return false
}

// returning is true while stable is the track under test.
func (d *draft) returning() bool { return d.status.Outcome == v1alpha1.OutcomeReturning }

// tested returns the part of the traffic that the track under test gets when the
// canary's share is s. It is its own inverse.
func (d *draft) tested(s weights.Share) weights.Share {
	if d.returning() {
		return weights.ShareAll - s
	}
	return s
}

// setShare records a new desired share. It refuses to take traffic to a track
// that has no ready endpoint, and then says so and returns false.
func (d *draft) setShare(s weights.Share) bool {
	if d.known && s == d.share {
		return true
	}
	if (!d.known || s < d.share) && !d.obs.StableReady {
		d.stallStableUnavailable()
		return false
	}
	if d.known && s > d.share && !d.obs.CanaryReady {
		d.wait(v1alpha1.ReasonCanaryNotReady, "the canary Service %q has no ready endpoint, so no traffic is sent to it", d.canaryService())
		return false
	}
	d.forceShare(s)
	return true
}

// forceShare records a share without asking for ready endpoints: for what a route
// carries already.
func (d *draft) forceShare(s weights.Share) {
	d.share, d.known, d.moved = s, true, true
	p := percent(s)
	d.status.Share.Desired = &p
	d.status.Share.ChangedAt = micro(d.now)
	if s == weights.ShareNone {
		d.holdEnds()
	}
	d.unconfirm()
}

// unconfirm says that the routes have to be confirmed anew: soak and evidence
// start again.
func (d *draft) unconfirm() {
	d.keepComparison()
	d.status.NoDataSince = nil
	d.status.Share.ConfirmedAt = nil
	if s := d.status.Stage; s != nil {
		s.ClockStoppedSince, s.ClockStoppedFor = nil, ""
	}
}

func (d *draft) confirmed() bool { return d.status.Share.ConfirmedAt != nil }

// cannotLower tells whether the canary's share would have to fall and stable has
// no ready endpoint to take it.
func (d *draft) cannotLower() bool {
	return !d.obs.StableReady && (!d.known || d.share > weights.ShareNone)
}

// startAttempt begins a new walk through the plan, at 0 percent; or says why it cannot,
// and changes nothing.
func (d *draft) startAttempt() {
	if d.cannotLower() {
		d.stallStableUnavailable()
		return
	}
	d.status.Attempt++
	d.fresh = true
	for i, r := range d.obs.Routes {
		if s := d.routeStatus(i); r.Found && s.UID != r.UID {
			s.UID, s.Written, s.ConfirmedAt = r.UID, nil, nil
		}
	}
	d.status.Revision = d.obs.revision()
	d.status.Outcome = v1alpha1.OutcomeInProgress
	d.status.OutcomeReason, d.status.OutcomeMessage = "", ""
	d.status.StartedAt = micro(d.now)
	d.status.Promote, d.status.PromoteGeneration = false, 0
	d.status.Verdict = nil
	d.status.Stage = nil
	d.status.Warmup = &v1alpha1.WarmupStatus{Reason: v1alpha1.ColdStarted}
	d.status.Breaker, d.status.Pause = nil, nil
	d.status.Comparison, d.status.NoDataSince = nil, nil
	d.status.Progress, d.status.Contention, d.status.StableUpdate = nil, nil, nil
	d.status.WarmPods, d.status.WarmPodsDueAt = nil, nil
	d.forgetCapacity()
	d.setStage(0)
	d.setShare(weights.ShareNone)
	d.unconfirm()
	d.moved = true
	d.writes = WriteAll
	d.event(false, v1alpha1.ReasonAttemptStarted, "attempt %d of revision %q starts at 0 percent", d.status.Attempt, d.status.Revision)
	if h := d.obs.Spec.Health; h != nil && h.Prometheus != nil && h.Prometheus.TLS != nil && h.Prometheus.TLS.InsecureSkipVerify {
		d.event(true, v1alpha1.ReasonMetricsNotVerified, "health.prometheus.tls.insecureSkipVerify is true: whoever sits between the controller and the metrics server can read the credentials and forge the evidence. Set tls.ca instead")
	}
	d.waitForRoutes()
}

// setStage moves to a stage of the plan, which must be valid.
func (d *draft) setStage(i int) {
	if d.planErr != nil {
		return
	}
	s := d.plan.stages[i]
	d.status.Stage = &v1alpha1.StageStatus{
		Index: int32(i), Position: d.plan.position(i), Weight: percent(s.share), Soak: s.soakText, StartedAt: micro(d.now), //nolint:gosec // a plan has at most 21 stages
	}
	d.moved = true
}

// end closes the attempt with the given outcome and keeps a record of it.
func (d *draft) end(outcome v1alpha1.Outcome, reason, message string) {
	d.record(outcome, reason, message)
	d.status.Outcome = outcome
	d.status.OutcomeReason = reason
	d.status.OutcomeMessage = clip(message)
	d.calm()
	d.moved = true
}

// record puts the present attempt into the history.
func (d *draft) record(outcome v1alpha1.Outcome, reason, message string) {
	r := v1alpha1.AttemptRecord{
		Attempt: d.status.Attempt, Revision: d.status.Revision, Outcome: outcome, Reason: reason, Message: clip(message),
		StartedAt: d.status.StartedAt, EndedAt: *micro(d.now),
	}
	if d.known {
		p := percent(d.share)
		r.Weight = &p
	}
	d.status.History = append([]v1alpha1.AttemptRecord{r}, d.status.History...)
	if len(d.status.History) > maxHistory {
		d.status.History = d.status.History[:maxHistory]
	}
}

// calm drops what is said of a walk through the plan that is over.
func (d *draft) calm() {
	d.status.Promote, d.status.PromoteGeneration = false, 0
	d.status.Warmup, d.status.Pause = nil, nil
	d.status.Comparison, d.status.NoDataSince = nil, nil
	d.status.Progress, d.status.StableUpdate = nil, nil
	d.status.WarmPods, d.status.WarmPodsDueAt = nil, nil
	// The way back to stable is not held up by what the way up has come to.
	d.status.Contention = nil
	if b := d.status.Breaker; b != nil {
		b.OpenedAt = nil
	}
}

// rollBack gives stable all traffic for good, and says why.
func (d *draft) rollBack(reason, message string) {
	if d.cannotLower() {
		// There is nowhere to go: the attempt stays open, so that the rollback happens
		// as soon as there is.
		d.stallStableUnavailable()
		return
	}
	from := d.share
	if d.status.StableUpdate != nil {
		message += ". Stable was given this revision's pod template: undo that, too (kubectl rollout undo)"
	}
	d.undersized()
	d.record(v1alpha1.OutcomeRolledBack, reason, message)
	d.setShare(weights.ShareNone)
	d.status.Outcome = v1alpha1.OutcomeRolledBack
	d.status.OutcomeReason, d.status.OutcomeMessage = reason, clip(message)
	d.calm()
	d.moved = true
	d.writes = WriteAll
	d.stall(reason, "rolled back: %s. Set another revision, or give the retry command", message)
	d.event(true, v1alpha1.ReasonRolledBack, "revision %q rolled back from %s percent: %s", d.status.Revision, percent(from), message)
}

// wait says what the rollout is doing or waiting for.
func (d *draft) wait(reason, format string, args ...any) {
	d.state, d.reason, d.message = stateReconciling, reason, fmt.Sprintf(format, args...)
}

// stall says what a person has to put right.
func (d *draft) stall(reason, format string, args ...any) {
	d.state, d.reason, d.message = stateStalled, reason, fmt.Sprintf(format, args...)
}

// done says that nothing is left to do.
func (d *draft) done(reason, format string, args ...any) {
	d.state, d.reason, d.message = stateReady, reason, fmt.Sprintf(format, args...)
}

func (d *draft) stallStableUnavailable() {
	d.writes = WriteNone
	if p := d.obs.SpecProblem; p != nil && p.Reason == v1alpha1.ReasonInvalidSpec {
		d.stall(v1alpha1.ReasonStableUnavailable, "nothing is known of the endpoints of the stable Service %q, so no traffic is moved: %s", d.stableService(), p.Message)
		return
	}
	d.stall(v1alpha1.ReasonStableUnavailable, "the stable Service %q has no ready endpoint, so no traffic is moved: make its pods ready", d.stableService())
}

// wakeAt asks for another look at the given time, or before.
func (d *draft) wakeAt(t time.Time) {
	if d.nextAt.IsZero() || t.Before(d.nextAt) {
		d.nextAt = t
	}
}

// transitionsAt says that time alone is awaited, until t.
func (d *draft) transitionsAt(t time.Time) {
	d.transitionAt = t
	d.wakeAt(t)
}

func percent(s weights.Share) v1alpha1.Percent { return v1alpha1.PercentFromBasisPoints(int(s)) }

// stableService names stable's Service, for messages. The schema demands a track, but
// nothing that was stored may make a decision panic.
func (d *draft) stableService() string {
	if t := d.obs.Spec.Stable; t != nil {
		return t.Service
	}
	return ""
}

// canaryService names the canary's Service, for messages.
func (d *draft) canaryService() string {
	if t := d.obs.Spec.Canary; t != nil {
		return t.Service
	}
	return ""
}

// second cuts a time to the whole seconds that conditions keep.
func second(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }

// micro cuts a time to what survives the wire, so that a decision compares equal
// to its own reading.
func micro(t time.Time) *metav1.MicroTime {
	m := metav1.NewMicroTime(t.UTC().Truncate(time.Microsecond))
	return &m
}

// messageLimit is the most that a message may have before it is cut, in characters. The
// schema takes a few more.
const messageLimit = 1000

// clip bounds a message to what the schema takes, and marks the cut.
func clip(s string) string {
	runes := []rune(s)
	if len(runes) <= messageLimit {
		return s
	}
	return string(runes[:messageLimit]) + "…"
}
