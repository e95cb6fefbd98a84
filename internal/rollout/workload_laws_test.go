package rollout_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// What is promised of workloads, windows, deadlines and other writers. Each check of a
// decision returns what is wrong, or nothing.

// revision is what the spec says that the canary is to run.
func (s seen) revision() string {
	if w := s.obs.CanaryWorkload; s.obs.Spec.Revision == "" && w != nil {
		return w.Revision
	}
	return s.obs.Spec.Revision
}

// revised tells whether another revision than the recorded one is asked for.
func (s seen) revised() bool { return s.revision() != "" && s.revision() != s.was.Revision }

// bothWorkloads tells whether both tracks name a workload that can be read.
func (s seen) bothWorkloads() bool {
	st, c := s.obs.StableWorkload, s.obs.CanaryWorkload
	return st != nil && c != nil && st.Problem == "" && c.Problem == ""
}

// tracks returns the workload that serves, and the number of ready pods of the other
// one, which is under test.
func (s seen) tracks() (serving *rollout.Workload, ready int) {
	if s.returning {
		return s.obs.CanaryWorkload, len(s.obs.StablePods)
	}
	return s.obs.StableWorkload, len(s.obs.CanaryPods)
}

// raiseWithReplicas: each raise has the ready replicas that it takes, of those that the
// track that serves was asked to have when the attempt, or the return, began, and of
// those that it is asked to have now.
func (l *laws) raiseWithReplicas(s seen) string {
	if attemptOf(s.is) != l.serving.attempt || s.returning != l.serving.returning {
		l.serving.attempt, l.serving.returning, l.serving.replicas = attemptOf(s.is), s.returning, 0
		if w, _ := s.tracks(); s.bothWorkloads() {
			l.serving.replicas = w.Replicas
		}
	}
	if !l.disturbed.IsZero() {
		// Whoever tampers with the record makes it forget.
		l.serving.replicas = 0
	}
	if w := s.obs.CanaryWorkload; s.raised() && !s.returning && w != nil && w.Outdated != "" {
		return fmt.Sprintf("raised from %d to %d while pods of another template get it: %s", s.had, s.has, w.Outdated)
	}
	if !s.raised() || !s.bothWorkloads() || s.obs.Spec.Canary.Capacity == v1alpha1.CapacityIgnore {
		return ""
	}
	w, ready := s.tracks()
	all := int64(max(w.Replicas, l.serving.replicas, 1))
	if need := (int64(s.part(s.has))*all + 9999) / 10000; int64(ready) < need {
		return fmt.Sprintf("raised from %d to %d with %d ready replicas of %d for all of the traffic, which takes %d", s.had, s.has, ready, all, need)
	}
	return ""
}

// attemptOf tells attempts apart, also where a record that was tampered with counts them
// from 1 again.
func attemptOf(s *v1alpha1.WeightedRolloutStatus) string {
	return fmt.Sprintf("%d, begun at %v", s.Attempt, s.StartedAt)
}

// raiseInWindow: outside of the windows only skip and promote raise the share. The
// windows of these tests lie within a day.
func raiseInWindow(s seen) string {
	windows := s.obs.Spec.Plan.Windows
	if !s.raised() && !s.d.UpdateStable || len(windows) == 0 || slices.ContainsFunc(windows, func(w v1alpha1.Window) bool { return inOfficeHours(w, s.now) }) {
		return ""
	}
	switch allowed := s.was.Promote || s.is.Promote || s.skipped(); {
	case s.raised() && (s.returning || !allowed):
		return fmt.Sprintf("raised from %d to %d outside of the windows", s.had, s.has)
	case s.d.UpdateStable && s.was.StableUpdate == nil:
		return "stable is updated outside of the windows"
	}
	return ""
}

func skippedIn(s *v1alpha1.WeightedRolloutStatus) bool { return s.Stage != nil && s.Stage.Skipped }

// inOfficeHours tells whether a window that begins and ends on the same day is open.
func inOfficeHours(w v1alpha1.Window, now time.Time) bool {
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		return false
	}
	at := now.In(zone)
	clock := at.Format("15:04")
	return clock >= w.From && clock < w.To && (len(w.Days) == 0 || slices.Contains(w.Days, v1alpha1.Day(at.Format("Mon"))))
}

// scaledForNeed: replicas are raised only while a raise is due and only with Scale, and
// every raise is on record first.
func scaledForNeed(s seen) string {
	for _, scale := range s.d.Scales {
		var on v1alpha1.ScaledStatus
		if c := s.is.Capacity; c != nil {
			if i := slices.IndexFunc(c.Scaled, func(r v1alpha1.ScaledStatus) bool { return r.Track == scale.Track && r.Kind == scale.Kind }); i >= 0 {
				on = c.Scaled[i]
			}
		}
		open := s.is.Outcome == v1alpha1.OutcomeInProgress || s.is.Outcome == v1alpha1.OutcomeReturning ||
			s.is.Outcome == v1alpha1.OutcomePromoted && scale.Track == v1alpha1.TrackStable
		switch raise := scale.To > scale.From; {
		case s.obs.Owner != "" || s.obs.Spec.Mode == v1alpha1.ModeObserve:
			return fmt.Sprintf("%+v where nothing may be written", scale)
		case s.obs.PartOwner != "":
			return fmt.Sprintf("%+v of what serves another rollout's rules, too", scale)
		case raise && s.is.Outcome == v1alpha1.OutcomePromoted && !s.obs.SameTemplate:
			return fmt.Sprintf("%+v, and stable does not run the revision", scale)
		case raise && (!open || s.obs.Deleting || s.held() || s.obs.Spec.Canary.Capacity != v1alpha1.CapacityScale):
			return fmt.Sprintf("%+v, and no raise is due", scale)
		case raise && (on.To != scale.To || on.Kind != scale.Kind || on.Name != scale.Name):
			return fmt.Sprintf("%+v, and the record is %+v", scale, on)
		case !raise && open && !s.obs.Deleting:
			return fmt.Sprintf("%+v, and the rollout is not over", scale)
		case !raise && (on.To != scale.From || on.From != scale.To || on.Track != scale.Track):
			return fmt.Sprintf("given back %+v, and the record is %+v", scale, on)
		}
	}
	return ""
}

// givenBackWhenIdle: a workload keeps its replicas as long as a route sends it traffic.
func givenBackWhenIdle(s seen) string {
	for _, scale := range s.d.Scales {
		if scale.To > scale.From || scale.Kind == autoscalerKind {
			continue
		}
		for _, r := range s.obs.Routes {
			low, high := r.Inspection.Observed()
			if !r.Found || scale.Track == v1alpha1.TrackCanary && high == 0 || scale.Track == v1alpha1.TrackStable && low == weights.ShareAll {
				continue
			}
			return fmt.Sprintf("%+v while route %q sends it traffic (%d to %d)", scale, r.Name, low, high)
		}
	}
	return ""
}

// stableUpdatedWhenProved: the template of stable is written only while the canary has
// passed the plan and serves everything.
func stableUpdatedWhenProved(s seen) string {
	if !s.d.UpdateStable {
		return ""
	}
	switch {
	case s.is.Outcome != v1alpha1.OutcomePromoted, s.has != weights.ShareAll, s.is.Share.ConfirmedAt == nil:
		return fmt.Sprintf("stable is updated while %s at %d", s.is.Outcome, s.has)
	case s.obs.Spec.Promotion.Mode != v1alpha1.PromotionUpdateStable, s.obs.Spec.Paused, !s.bothWorkloads(), s.obs.SameTemplate:
		return "stable is updated where it should not be"
	case s.is.StableUpdate == nil:
		return "stable is updated, and there is no record of it"
	}
	return ""
}

// loweredForAReason: whoever loses traffic can read why. What has ended has lost it
// already.
func loweredForAReason(s seen) string {
	over := s.was.Outcome == v1alpha1.OutcomeRolledBack || s.was.Outcome == v1alpha1.OutcomeSuperseded || s.was.Outcome == v1alpha1.OutcomeCompleted
	if s.known && s.has < s.had && len(s.d.Events) == 0 && !s.obs.Deleting && !over {
		return fmt.Sprintf("lowered from %d to %d, and nobody is told", s.had, s.has)
	}
	return ""
}

// contentionHolds: once another writer has had its way too often there is no raise until
// a person says resume.
func contentionHolds(s seen) string {
	c := s.was.Contention
	if c == nil || c.At == nil || c.Count <= 5 || s.anew() || !s.raised() || s.told(v1alpha1.ReasonCommandAccepted) {
		return ""
	}
	return fmt.Sprintf("raised from %d to %d while another writer has changed the weights %d times", s.had, s.has, c.Count)
}

// waits are the reasons that the deadline counts, beside those of Stalled.
var waits = []string{
	v1alpha1.ReasonRouteNotConfirmed, v1alpha1.ReasonAwaitingEvidence, v1alpha1.ReasonCanaryNotReady,
	v1alpha1.ReasonInsufficientCapacity, v1alpha1.ReasonDegraded, v1alpha1.ReasonWeightContention,
}

// notWaits are reasons of Stalled that the deadline does not count: a person has been
// asked, or there is nowhere to go.
var notWaits = []string{v1alpha1.ReasonUnhealthy, v1alpha1.ReasonStableUnavailable, v1alpha1.ReasonRouteConflict}

// waiting tells whether a status says that the rollout waits for what should come by
// itself.
func waiting(s *v1alpha1.WeightedRolloutStatus) bool {
	stalled := conditionOf(s, v1alpha1.ConditionStalled)
	if stalled.Status == metav1.ConditionTrue {
		return !slices.Contains(notWaits, stalled.Reason)
	}
	return slices.Contains(waits, conditionOf(s, v1alpha1.ConditionReady).Reason)
}

// patience keeps account of how long an attempt has waited since it was highest, and
// how often a wait has ended, by the status as it is stored.
type patience struct {
	attempt int64
	highest weights.Share
	waited  time.Duration
	stops   int
	at      time.Time
	waiting bool
	// counts is true if the deadline was valid at the last decision, and held if a person
	// held the rollout then.
	counts, held bool
	// byDefault is true if there is no deadline in the spec: then only the time counts for
	// which the canary is degraded, or was when the present share began.
	byDefault, degraded bool
}

// pass takes over the time since the last decision, and what is stored now.
func (p *patience) pass(w *world, s seen) {
	if s.was.Attempt != p.attempt || s.was.Outcome != v1alpha1.OutcomeInProgress || s.had > p.highest {
		*p = patience{attempt: s.was.Attempt, highest: s.had, at: w.at}
	}
	waits := waiting(s.was) && !p.held
	if p.byDefault {
		waits = p.degraded
	}
	if waits && p.counts {
		p.waited += w.at.Sub(p.at)
	}
	if p.waiting && !waits {
		p.stops++
	}
	p.at, p.waiting = w.at, waits
}

// deadlineKept: a rollout is rolled back at the deadline, and not before: by the time
// that it has waited, as its status says, since the share was higher than ever before.
// Each wait counts in whole seconds.
func (l *laws) deadlineKept(w *world, s seen) string {
	p := &l.patience
	p.pass(w, s)
	text := cmp.Or(s.obs.Spec.ProgressDeadline, "4h")
	deadline, err := text.Parse()
	p.counts = err == nil && s.planned
	p.held = s.obs.Spec.Paused || s.is.Pause != nil
	p.byDefault = s.obs.Spec.ProgressDeadline == ""
	switch v := s.obs.Verdict; {
	case p.held || s.has == 0 || s.is.Attempt != s.was.Attempt:
		p.degraded = false
	case v.Reason != v1alpha1.ReasonAwaitingWindow:
		p.degraded = v.State == v1alpha1.VerdictDegraded && waiting(s.is)
	}
	walking := s.was.Outcome == v1alpha1.OutcomeInProgress && s.is.Attempt == s.was.Attempt
	overdue := walking && s.is.Outcome == v1alpha1.OutcomeRolledBack && s.is.OutcomeReason == v1alpha1.ReasonProgressDeadlineExceeded
	excused := s.obs.Owner != "" || s.obs.Spec.Mode == v1alpha1.ModeObserve || s.obs.Deleting || !s.obs.StableReady || s.told(v1alpha1.ReasonBreakerOpen)
	switch late := time.Duration(p.stops+1) * time.Second; {
	case overdue && !p.counts:
		return "rolled back at a deadline that there is not"
	case !l.disturbed.IsZero() || l.edited || !p.counts:
	case overdue && p.waited < deadline:
		return fmt.Sprintf("rolled back at the deadline of %s after waiting for %s", deadline, p.waited)
	case walking && s.is.Outcome == v1alpha1.OutcomeInProgress && p.waited > deadline+late && !excused:
		return fmt.Sprintf("it has waited for %s, and is not rolled back at the deadline of %s", p.waited, deadline)
	}
	return ""
}

// scaleWrite checks a write to the replicas, or to the minimum of an autoscaler: they
// are raised, or given back to what another hand had left, if they are still ours; and
// the intent is on record before. What the controller has asked for last is its own.
func (l *laws) scaleWrite(w *world, s rollout.Scale, asked int32, d rollout.Decision) {
	if l.off {
		return
	}
	w.tb.Helper()
	f := w.fleet(s.Track)
	l.intentFirst(w, d)
	now := f.value(s.Kind)
	if s.To < now && asked != now && asked != s.To {
		w.tb.Fatalf("%s: %+v: another hand has set it to %d since", offset(w.at), s, now)
	}
	if s.To < now && !slices.Contains(f.found, s.To) && l.disturbed.IsZero() {
		w.tb.Fatalf("%s: %+v: nobody ever left it at %d, but at %v", offset(w.at), s, s.To, f.found)
	}
}

// stableWrite checks a write to the template of stable: once per attempt.
func (l *laws) stableWrite(w *world, d rollout.Decision) {
	if l.off {
		return
	}
	w.tb.Helper()
	l.intentFirst(w, d)
	if w.status().StableUpdate == nil {
		w.tb.Fatalf("%s: stable is written before the intent", offset(w.at))
	}
	if l.updated == attemptOf(w.status()) && l.disturbed.IsZero() {
		w.tb.Fatalf("%s: stable is written twice in attempt %s", offset(w.at), l.updated)
	}
	l.updated = attemptOf(w.status())
}

// intentFirst: the status that the decision asks for is stored before anything else is
// written.
func (l *laws) intentFirst(w *world, d rollout.Decision) {
	w.tb.Helper()
	if w.object.denied && w.object.deleting {
		return // nobody will read it
	}
	stored := w.status().Share.Desired
	if want := d.Status.Share.Desired; want != nil && (stored == nil || *stored != *want) || w.status().Attempt != d.Status.Attempt || w.status().Outcome != d.Status.Outcome {
		w.tb.Fatalf("%s: written before the intent:\nstored %s\nwanted %s", offset(w.at), encoded(w.status()), encoded(d.Status))
	}
}

// excuse keeps account of since when the canary has its traffic, without a break in it.
type excuse struct {
	attempt int64
	since   time.Time
}

// excuseBounded: a canary that is worse than stable is found so once it has had its
// traffic for the time of a warm-up, and its present share for long enough to be seen,
// whatever the warm-up waits for.
func (l *laws) excuseBounded(w *world, s seen) string {
	e := &l.excuse
	if s.is.Attempt != e.attempt || s.is.Outcome != v1alpha1.OutcomeInProgress || s.has == 0 || s.told(v1alpha1.ReasonPodsReplaced) {
		*e = excuse{attempt: s.is.Attempt}
	}
	confirmed := s.is.Share.ConfirmedAt
	if confirmed != nil && s.has > 0 && e.since.IsZero() {
		e.since = w.at
	}
	if e.since.IsZero() || confirmed == nil || !l.disturbed.IsZero() || !s.planned || s.has == weights.ShareAll || s.obs.Verdict.State == "" {
		return ""
	}
	canary := w.evidence[health.TrackCanary]
	from := slices.MaxFunc([]time.Time{e.since.Add(s.warmup.soak), confirmed.Time, canary.since}, time.Time.Compare)
	if canary.mood == worse && w.at.Sub(from) > w.windows.unhealthy+time.Second && s.obs.Verdict.State != v1alpha1.VerdictUnhealthy {
		return fmt.Sprintf("at %d the canary has had its traffic since %s, and is not found to be worse than stable", s.has, offset(e.since))
	}
	return ""
}
