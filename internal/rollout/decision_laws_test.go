package rollout_test

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// Each check returns what is wrong, or nothing.

// raised tells whether the decision gives the track under test more. A rollback, a
// revert and a new attempt give it to stable, whatever was under test.
func (s seen) raised() bool {
	ended := s.is.Outcome == v1alpha1.OutcomeRolledBack || s.is.Outcome == v1alpha1.OutcomeSuperseded
	return s.known && s.is.Attempt == s.was.Attempt && !ended && s.part(s.has) > s.part(s.had)
}

// raiseWithinLimits is law 2.
func raiseWithinLimits(s seen) string {
	if s.is.Outcome == v1alpha1.OutcomeInProgress && s.planned && s.known && s.obs.Owner == "" && s.obs.Spec.Mode == v1alpha1.ModeEnforce {
		i := stageIndex(s.is)
		valid := i >= 0 && i < len(s.stages)
		if s.raised() && (!valid || s.has > s.stages[i]) {
			return fmt.Sprintf("law 2: the share %d is raised above the stage %d", s.has, i)
		}
	}
	if !s.raised() {
		return ""
	}
	stage := weights.ShareAll
	if i := stageIndex(s.is); s.planned && !s.returning && i >= 0 && i < len(s.stages) {
		stage = s.stages[i]
	}
	if rise, limit := s.part(s.has)-s.part(s.had), s.largestRaise(stage); rise > limit {
		return fmt.Sprintf("law 2: raised from %d to %d, by more than %d", s.had, s.has, limit)
	}
	pace := s.interval
	if w := s.was.Warmup; w != nil && !w.Soaked && s.had > 0 && !s.returning && s.was.Stage != nil && s.was.Stage.Index == s.is.Stage.Index && !recovered(s) {
		pace = max(pace, s.warmup.soak)
	}
	if c := s.was.Share.ConfirmedAt; c == nil || c.Add(pace).After(s.now) {
		return fmt.Sprintf("law 2: raised from %d to %d, confirmed at %v, before %s have passed", s.had, s.has, c, pace)
	}
	return ""
}

// recovered tells whether a canary has been well three times in a row after a break.
func recovered(s seen) bool {
	return s.was.Warmup.Reason == v1alpha1.ColdBreak && s.obs.Verdict.Steady
}

// loweredInSteps is law 2 for a degraded canary: it is the only one whose share falls
// by steps, which have limits and an end.
func loweredInSteps(s seen) string {
	told := s.told(v1alpha1.ReasonDrift) || s.told(v1alpha1.ReasonCanaryNotReady) || s.told(v1alpha1.ReasonBreakerOpen) || s.told(v1alpha1.ReasonPodsReplaced) || s.told(v1alpha1.ReasonNotResolved)
	if !s.known || s.has >= s.had || s.is.Attempt != s.was.Attempt || s.is.Outcome != v1alpha1.OutcomeInProgress || told || s.obs.Deleting {
		return ""
	}
	v := s.obs.Verdict
	if v.State != v1alpha1.VerdictDegraded || !v.ScaleBack {
		return fmt.Sprintf("lowered from %d to %d on the verdict %v", s.had, s.has, v.Signal())
	}
	stage := s.stages[stageIndex(s.is)]
	switch c := s.was.Share.ConfirmedAt; {
	case s.had-s.has > s.limits.raise(s.had):
		return fmt.Sprintf("scaled back from %d to %d, by more than %d", s.had, s.has, s.limits.raise(s.had))
	case s.has*5 < stage:
		return fmt.Sprintf("scaled back to %d, under a fifth of %d", s.has, stage)
	case c == nil || c.Add(s.interval).After(s.now):
		return fmt.Sprintf("scaled back from %d to %d before the interval of %s has passed", s.had, s.has, s.interval)
	}
	return ""
}

// anew tells whether a person, by a new revision or a retry, has started something
// else.
func (s seen) anew() bool {
	return s.is.Attempt != s.was.Attempt && (s.revised() || s.told(v1alpha1.ReasonCommandAccepted))
}

// breakKept checks that a break lasts for its time, and that an attempt has no more
// breaks than it may have.
func breakKept(s seen) string {
	b := s.was.Breaker
	if b == nil || b.OpenedAt == nil || !s.known || s.anew() || s.is.Outcome != v1alpha1.OutcomeInProgress {
		return ""
	}
	cooldown := 5 * time.Minute
	if text := s.obs.Spec.OnUnhealthy.Cooldown; text != "" {
		cooldown, _ = text.Parse()
	}
	if s.raised() && s.now.Before(b.OpenedAt.Add(cooldown)) {
		return fmt.Sprintf("raised from %d to %d before the break is over", s.had, s.has)
	}
	if now := s.is.Breaker; now == nil || now.Trips < b.Trips || now.Trips > b.Trips+1 {
		return fmt.Sprintf("the breaks are counted as %v after %d", now, b.Trips)
	}
	return ""
}

// stopKept checks that only a person gets a stopped canary going again, or a return to
// stable.
func stopKept(s seen) string {
	finished := s.returning && s.was.Outcome != v1alpha1.OutcomeReturning
	if s.was.Pause == nil || !s.known || s.anew() || finished {
		return ""
	}
	if s.raised() {
		return fmt.Sprintf("stopped, and raised from %d to %d", s.had, s.has)
	}
	broke := s.is.Breaker != nil && s.is.Breaker.OpenedAt != nil
	if s.is.Pause == nil && !broke && s.is.Outcome != v1alpha1.OutcomeRolledBack && s.is.Outcome != v1alpha1.OutcomeSuperseded && !s.told(v1alpha1.ReasonCommandAccepted) {
		return "stopped, and going again without a command"
	}
	return ""
}

// held tells whether a person wants the share held: spec.paused, unless promote was said
// to the spec as it is.
func (s seen) held() bool {
	return s.obs.Spec.Paused && (!s.is.Promote || s.is.PromoteGeneration != s.obs.Generation)
}

// raiseOnEvidence is law 3, and what else must be true of a raise.
func raiseOnEvidence(s seen) string {
	if !s.raised() {
		return ""
	}
	v := s.obs.Verdict
	switch {
	case s.part(s.had) > 0 && s.was.Stage != nil && s.was.Stage.ScaledBack && !s.returning && !v.StageReady && s.was.Outcome == v1alpha1.OutcomeInProgress && !s.told(v1alpha1.ReasonPlanChanged):
		return fmt.Sprintf("scaled back, and raised from %d to %d on the verdict %v", s.had, s.has, v.Signal())
	case s.part(s.had) > 0 && !v.RampReady:
		return fmt.Sprintf("law 3: raised from %d to %d on the verdict %v", s.had, s.has, v.Signal())
	case !s.returning && !s.obs.CanaryReady, s.returning && !s.obs.StableReady:
		return "law 7: raised on a track without a ready endpoint"
	case s.held():
		return "raised while paused"
	case s.obs.Deleting, s.obs.Owner != "", s.obs.SpecProblem != nil, !s.planned:
		return "raised where nothing may be raised"
	}
	for _, r := range s.obs.Routes {
		if !r.Found || r.Inspection.Problem != nil || r.Acceptance.State != route.Confirmed || !r.Inspection.Matches(s.had) {
			return fmt.Sprintf("law 3: raised while route %q does not carry the confirmed share", r.Name)
		}
	}
	return ""
}

// stageLeftOnEvidence is law 3 for the end of a stage.
func stageLeftOnEvidence(s seen) string {
	from, to := stageIndex(s.was), stageIndex(s.is)
	if !s.known || to <= from || s.is.Attempt != s.was.Attempt || s.told(v1alpha1.ReasonPlanChanged) ||
		s.was.Outcome != v1alpha1.OutcomeInProgress || s.is.Outcome != v1alpha1.OutcomeInProgress {
		return ""
	}
	old := s.was.Stage
	share, err := weights.ShareFrom(old.Weight)
	switch {
	case err != nil || to != from+1 || share != s.had:
		return fmt.Sprintf("law 3: stage %d at %d leads to stage %d", from, s.had, to)
	case !s.obs.Verdict.StageReady:
		return fmt.Sprintf("law 3: stage %d is left on the verdict %v", from, s.obs.Verdict.Signal())
	}
	promote := s.was.Promote || s.is.Promote || s.skipped()
	if soak, err := v1alpha1.Duration(old.Soak).Parse(); err == nil && !promote && s.now.Sub(s.was.Share.ConfirmedAt.Time) < soak {
		return fmt.Sprintf("law 9: stage %d is left before its soak", from)
	}
	approved := old.Approved || s.told(v1alpha1.ReasonCommandAccepted)
	if from < len(s.obs.Spec.Plan.Stages) && s.obs.Spec.Plan.Stages[from].Approval == v1alpha1.ApprovalRequired && !promote && !approved {
		return fmt.Sprintf("stage %d is left without approval", from)
	}
	return ""
}

// endOnEvidence is law 3 for the end of the plan and of the return.
func endOnEvidence(s seen) string {
	if s.is.Outcome == s.was.Outcome || !s.known {
		return ""
	}
	ready := s.obs.Verdict.StageReady
	switch {
	case s.is.Outcome == v1alpha1.OutcomePromoted && s.was.Outcome == v1alpha1.OutcomeInProgress && (!ready || s.had != weights.ShareAll):
		return fmt.Sprintf("law 3: promoted at %d on the verdict %v", s.had, s.obs.Verdict.Signal())
	case s.is.Outcome == v1alpha1.OutcomeCompleted && (s.was.Outcome != v1alpha1.OutcomeReturning || !ready || s.had != weights.ShareNone):
		return fmt.Sprintf("law 3: completed from %s at %d on the verdict %v", s.was.Outcome, s.had, s.obs.Verdict.Signal())
	case s.is.Outcome == v1alpha1.OutcomeReturning && !s.told(v1alpha1.ReasonCommandAccepted) && !s.stableFollows():
		return "returning without the finish command, and stable does not run the revision"
	}
	return ""
}

// skipped tells whether a person has said skip in the stage that is left.
func (s seen) skipped() bool {
	accepted := s.told(v1alpha1.ReasonCommandAccepted) && s.is.Command != nil && s.is.Command.Verb == string(v1alpha1.VerbSkip)
	return skippedIn(s.was) || accepted
}

// stableFollows tells whether stable runs what the canary has proved.
func (s seen) stableFollows() bool {
	return s.bothWorkloads() && s.obs.SameTemplate && s.obs.StableWorkload.Unready == "" && !s.obs.Spec.Paused
}

// unresolvedGetsNothing: in one pass, a track in another namespace that a gateway may not
// be able to resolve gives its traffic to the other one, if that is ready.
func unresolvedGetsNothing(s seen) string {
	elsewhere, other := s.obs.CanaryElsewhere, s.obs.StableReady
	if s.returning {
		elsewhere, other = s.obs.StableElsewhere, s.obs.CanaryReady
	}
	unresolved := slices.ContainsFunc(s.obs.Routes, func(r rollout.Route) bool { return r.Found && r.Acceptance.Unresolved })
	blocked := s.obs.Owner != "" || s.obs.Spec.Mode == v1alpha1.ModeObserve || s.obs.Deleting || s.told(v1alpha1.ReasonPodsReplaced) || s.told(v1alpha1.ReasonCommandAccepted)
	least := weights.ShareNone
	if s.returning && s.was.Stage != nil {
		// Stable keeps what it had when the return began.
		if began, err := weights.ShareFrom(s.was.Stage.Weight); err == nil {
			least = weights.ShareAll - began
		}
	}
	if !s.known || !elsewhere || !other || !unresolved || blocked || s.part(s.has) <= least {
		return ""
	}
	return fmt.Sprintf("a gateway cannot resolve a backend, and the track under test keeps %d", s.part(s.has))
}

// rollbackFinal is law 5.
func rollbackFinal(s seen) string {
	if s.was.Outcome != v1alpha1.OutcomeRolledBack || !s.known {
		return ""
	}
	again := s.revised() || s.told(v1alpha1.ReasonCommandAccepted)
	if s.is.Outcome != v1alpha1.OutcomeRolledBack && !again {
		return fmt.Sprintf("law 5: rolled back, and then %s without a new revision or a retry", s.is.Outcome)
	}
	if s.is.Outcome == v1alpha1.OutcomeInProgress && (s.is.Attempt != s.was.Attempt+1 || s.has != 0 || s.planned && stageIndex(s.is) != 0) {
		return "law 5: a new attempt must start at 0 percent, before stage 0"
	}
	if s.has > s.had {
		return "law 5: raised after a rollback"
	}
	return ""
}

// unhealthyRollsBack is law 6: in one pass, whatever else is the case.
func unhealthyRollsBack(s seen) string {
	blocked := s.obs.Owner != "" || s.obs.Spec.Mode == v1alpha1.ModeObserve || s.obs.Deleting || !s.planned && s.returning
	subject := s.was.Outcome == v1alpha1.OutcomeInProgress || s.was.Outcome == v1alpha1.OutcomePromoted
	if s.obs.Verdict.State != v1alpha1.VerdictUnhealthy || !s.known || !s.obs.StableReady || blocked || !subject || s.had == 0 {
		return ""
	}
	anew := s.is.Attempt > s.was.Attempt || s.is.Outcome == v1alpha1.OutcomeSuperseded
	unready := s.told(v1alpha1.ReasonCanaryNotReady)
	switch action := s.obs.Spec.OnUnhealthy.Action; {
	case anew || s.is.Outcome == v1alpha1.OutcomeRolledBack:
	case action == v1alpha1.UnhealthyPause:
		if s.has > s.had || s.is.Pause == nil && !s.told(v1alpha1.ReasonCommandAccepted) {
			return fmt.Sprintf("law 6: unhealthy at %d, action Pause, and the share is %d, stopped %v", s.had, s.has, s.is.Pause)
		}
		return ""
	case action == v1alpha1.UnhealthyBreak && !unready:
		limit := s.obs.Spec.OnUnhealthy.MaxTrips
		if limit == 0 {
			limit = 3
		}
		if s.planned && (s.is.Breaker == nil || s.is.Breaker.OpenedAt == nil || s.is.Breaker.Trips > limit) {
			return fmt.Sprintf("law 6: unhealthy at %d, action Break, and the breaker is %v", s.had, s.is.Breaker)
		}
		anew = true
	}
	if s.is.Outcome != v1alpha1.OutcomeRolledBack && !anew {
		return fmt.Sprintf("law 6: unhealthy at %d, and the outcome is %s", s.had, s.is.Outcome)
	}
	if s.has != 0 {
		return fmt.Sprintf("law 6: unhealthy, and the share is %d", s.has)
	}
	for _, r := range s.obs.Routes {
		if _, high := r.Inspection.Observed(); r.Found && high > 0 && !s.d.NeedsWrite(r) {
			return fmt.Sprintf("law 6: unhealthy, and route %q is not written", r.Name)
		}
	}
	return ""
}

// unknownHolds is law 4.
func unknownHolds(s seen) string {
	v := s.obs.Verdict
	if v.State != v1alpha1.VerdictUnknown || s.is.Outcome == s.was.Outcome {
		return ""
	}
	// What a break was for was no unknown verdict, nor what a route has kept the end of.
	broke := s.was.Breaker != nil && s.was.Breaker.OpenedAt != nil ||
		slices.ContainsFunc(s.obs.Routes, func(r rollout.Route) bool { return r.Mark != nil && (r.Mark.Ended || r.Mark.Break) })
	switch {
	case s.is.Outcome == v1alpha1.OutcomeRolledBack && s.is.OutcomeReason == v1alpha1.ReasonUnhealthy && !broke:
		return "law 4: rolled back as unhealthy on an unknown verdict"
	case s.is.Outcome == v1alpha1.OutcomeCompleted, s.is.Outcome == v1alpha1.OutcomePromoted && s.was.Outcome == v1alpha1.OutcomeInProgress:
		return "law 4: ended well on an unknown verdict"
	}
	return ""
}

// onlyToReady is law 7, for the share that is recorded. What a person's edit did to
// the routes already may be recorded.
func onlyToReady(s seen) string {
	edited := s.told(v1alpha1.ReasonDrift)
	if s.known && s.has < s.had && !s.obs.StableReady && !edited {
		return "law 7: lowered while stable has no ready endpoint"
	}
	if s.known && s.has > s.had && !s.obs.CanaryReady && !edited {
		return "law 7: raised while the canary has no ready endpoint"
	}
	idle := s.was.Outcome == v1alpha1.OutcomeReturning || s.was.Outcome == v1alpha1.OutcomePromoted || s.obs.Owner != "" || s.obs.Spec.Mode == v1alpha1.ModeObserve
	if c := conditionOf(s.is, v1alpha1.ConditionStalled); !s.obs.StableReady && !idle && (c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonStableUnavailable) {
		return fmt.Sprintf("law 7: stable is not ready, and the condition is %s %s", c.Status, c.Reason)
	}
	return ""
}

// conflictHolds is law 14 for a rollout that is left with some of its rules.
func conflictHolds(s seen) string {
	if s.obs.PartOwner == "" {
		return ""
	}
	begins := !s.known && s.d.Writes != rollout.WriteNone && s.d.Writes != rollout.WriteForget
	if s.raised() || begins {
		return "law 14: another rollout manages some of the rules, and this one begins or goes on"
	}
	return ""
}

// conflictWritesNothing is law 14.
func conflictWritesNothing(s seen) string {
	if s.obs.Owner == "" {
		return ""
	}
	if s.d.Writes != rollout.WriteNone || s.d.Release != s.obs.Deleting || s.known && s.has != s.had {
		return "law 14: another rollout manages the rule, and this one writes"
	}
	return ""
}

func observeWritesNothing(s seen) string {
	if s.obs.Spec.Mode == v1alpha1.ModeObserve && s.obs.Owner == "" && (s.d.Writes != rollout.WriteNone || s.is.Outcome != s.was.Outcome || s.known && s.has != s.had || s.is.Attempt != s.was.Attempt && s.was.Attempt >= 0) {
		return "mode is Observe, and something is written or advanced"
	}
	return ""
}

// deletionSafe is law 12.
func deletionSafe(s seen) string {
	if !s.obs.Deleting || s.obs.Owner != "" || s.obs.Spec.Mode == v1alpha1.ModeObserve || !s.known {
		return ""
	}
	// A return that was adopted began at less than everything.
	returned := s.was.Outcome == v1alpha1.OutcomeReturning && s.was.Stage != nil && s.was.Stage.Weight == "100"
	proved := s.was.Outcome == v1alpha1.OutcomePromoted || returned || s.was.Outcome == v1alpha1.OutcomeCompleted
	if proved || s.obs.Spec.OnDelete == v1alpha1.DeletionKeep || !s.obs.StableReady {
		if s.d.Writes != rollout.WriteForget || !s.d.Release {
			return "law 12: deleted, and the routes are not left as they are"
		}
		return ""
	}
	for _, r := range s.obs.Routes {
		if _, high := r.Inspection.Observed(); r.Found && high > 0 && s.d.Release {
			return fmt.Sprintf("law 12: released while route %q gives the canary %d", r.Name, high)
		}
	}
	if s.d.Writes != rollout.WriteRelease || s.has != 0 {
		return "law 12: deleted, and the routes are not made safe"
	}
	return ""
}

// kstatus checks that the conditions are such as kubectl wait and the GitOps tools
// understand.
func kstatus(s seen) string {
	ready, reconciling, stalled := conditionOf(s.is, v1alpha1.ConditionReady), conditionOf(s.is, v1alpha1.ConditionReconciling), conditionOf(s.is, v1alpha1.ConditionStalled)
	isTrue := func(c metav1.Condition) bool { return c.Status == metav1.ConditionTrue }
	switch {
	case isTrue(reconciling) && isTrue(stalled):
		return "kstatus: Reconciling and Stalled are both True"
	case isTrue(ready) == (isTrue(reconciling) || isTrue(stalled)):
		return "kstatus: Ready must be True exactly if neither Reconciling nor Stalled is"
	case s.is.ObservedGeneration != s.obs.Generation:
		return "kstatus: status.observedGeneration is not the generation"
	case s.is.Phase == "":
		return "there is no phase"
	}
	if slices.Contains([]v1alpha1.Phase{v1alpha1.PhaseRolledBack}, s.is.Phase) && !isTrue(stalled) && s.obs.Spec.Mode == v1alpha1.ModeEnforce && !s.obs.Deleting {
		return "rolled back must be Stalled"
	}
	for _, c := range s.is.Conditions {
		if c.ObservedGeneration != s.obs.Generation || c.Reason == "" || c.Reason == "Unknown" || c.Message == "" || c.LastTransitionTime.After(s.now) {
			return fmt.Sprintf("condition %s is not filled in: %s", c.Type, encoded(c))
		}
	}
	return ""
}

// boundedStatus checks that the schema takes the status.
func boundedStatus(s seen) string {
	const limit = 1024
	texts := []string{s.is.OutcomeMessage}
	for _, r := range s.is.Routes {
		texts = append(texts, r.Message)
	}
	for _, t := range texts {
		if len([]rune(t)) > limit {
			return "a message is longer than the schema takes"
		}
	}
	if len(s.is.History) > 10 || len(s.is.Conditions) > 16 || len(s.is.Routes) > 8 {
		return "a list is longer than the schema takes"
	}
	return ""
}

func conditionOf(s *v1alpha1.WeightedRolloutStatus, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(s.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}
