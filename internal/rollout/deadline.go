package rollout

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// overdue rolls back a rollout that has come no further for spec.progressDeadline.
func overdue(d *draft) bool {
	p := d.status.Progress
	if p == nil || p.WaitingSince == nil || d.planErr != nil || d.plan.deadline <= 0 || !d.known || d.status.Outcome != v1alpha1.OutcomeInProgress {
		return false
	}
	if d.held() || d.plan.degradedOnly && !d.degradedNow() {
		return false // since it was recorded
	}
	at := p.WaitingSince.Add(d.plan.deadline - waited(p))
	if d.now.Before(at) {
		d.wakeAt(at)
		return false
	}
	if d.plan.degradedOnly {
		d.rollBack(v1alpha1.ReasonProgressDeadlineExceeded, fmt.Sprintf("degraded for %s without coming further (the default of spec.progressDeadline): %s", d.plan.deadlineText, d.badNews()))
		return true
	}
	what := "it waited"
	if c := meta.FindStatusCondition(d.status.Conditions, v1alpha1.ConditionReady); c != nil {
		what = fmt.Sprintf("%s: %s", c.Reason, c.Message)
	}
	d.rollBack(v1alpha1.ReasonProgressDeadlineExceeded, fmt.Sprintf("no progress for %s (spec.progressDeadline); %s", d.plan.deadlineText, what))
	return true
}

// waited is how long the deadline has run before.
func waited(p *v1alpha1.ProgressStatus) time.Duration {
	before, err := time.ParseDuration(p.WaitedFor)
	if err != nil || before < 0 {
		return 0
	}
	return before
}

// keepProgress lets the deadline run while the rollout waits for what should come by
// itself, and starts it anew once the share is higher than it ever was. A share that
// only comes back after it was lowered is no progress: a canary that crashes again and
// again would otherwise go on for ever.
func (d *draft) keepProgress() {
	s := &d.status
	if d.planErr != nil && s.Progress != nil {
		d.stopWaiting()
		return
	}
	if d.plan.deadline <= 0 || !d.known || s.Outcome != v1alpha1.OutcomeInProgress {
		s.Progress = nil
		return
	}
	counts := d.counts()
	if p := s.Progress; p == nil || d.share > highest(p) {
		if p == nil && !counts && d.share == 0 {
			return
		}
		reached := percent(d.share)
		s.Progress = &v1alpha1.ProgressStatus{Highest: &reached}
	}
	switch {
	case !counts:
		d.stopWaiting()
	case s.Progress.WaitingSince == nil:
		s.Progress.WaitingSince = micro(d.now)
	}
	if since := s.Progress.WaitingSince; since != nil {
		d.wakeAt(since.Add(d.plan.deadline - waited(s.Progress)))
	}
}

func highest(p *v1alpha1.ProgressStatus) weights.Share {
	if p.Highest == nil {
		return weights.ShareNone
	}
	share, err := weights.ShareFrom(*p.Highest)
	if err != nil {
		return weights.ShareNone
	}
	return share
}

func (d *draft) stopWaiting() {
	p := d.status.Progress
	if p.WaitingSince == nil {
		return
	}
	// Whole seconds, rounded down: a deadline is never early.
	p.WaitedFor = (waited(p) + d.now.Sub(p.WaitingSince.Time)).Truncate(time.Second).String()
	p.WaitingSince = nil
}

// counts reports whether the deadline runs: of the default, only while the canary is
// degraded. That a window is awaited, since the share or the controller is new, changes
// nothing about it.
func (d *draft) counts() bool {
	p := d.status.Progress
	switch {
	case !d.plan.degradedOnly:
		return d.waiting()
	case d.obs.Verdict.Reason == v1alpha1.ReasonAwaitingWindow && d.share > 0 && !d.held():
		return p != nil && p.WaitingSince != nil
	}
	return d.waiting() && d.degradedNow()
}

// held reports whether a person, or onUnhealthy.action Pause, holds the rollout.
func (d *draft) held() bool { return d.obs.Spec.Paused || d.status.Pause != nil }

// waiting tells whether the rollout waits for what should come by itself, or for a
// mistake to be mended.
func (d *draft) waiting() bool {
	if d.held() {
		return false
	}
	switch d.reason {
	case v1alpha1.ReasonRouteNotConfirmed, v1alpha1.ReasonAwaitingEvidence, v1alpha1.ReasonCanaryNotReady,
		v1alpha1.ReasonInsufficientCapacity, v1alpha1.ReasonDegraded, v1alpha1.ReasonWeightContention:
		return true
	case v1alpha1.ReasonUnhealthy, v1alpha1.ReasonStableUnavailable, v1alpha1.ReasonRouteConflict:
		// A person has been asked, or there is nowhere to go.
		return false
	}
	return d.state == stateStalled
}
