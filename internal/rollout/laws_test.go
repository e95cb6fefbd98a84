package rollout_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// laws checks every decision and every write to a route of a world. It knows of
// rollout only what its documentation promises.
type laws struct {
	// off turns the checks off, where a test repeats a checked run many times.
	off bool
	// carried is since when, in true time, the routes have carried their present
	// shares, from the gateway's first confirmation on; zero before it.
	carried time.Time
	shares  []weights.Share
	// disturbed is when the clock jumped or the status was tampered with last.
	disturbed time.Time
	// edited is true once the deadline was edited, or its time could not be recorded.
	edited bool
	// serving is how many replicas the track that serves was asked to have when the
	// attempt, or the return to stable, began.
	serving struct {
		attempt   string
		returning bool
		replicas  int32
	}
	// updated is the last attempt in which stable's template was written.
	updated  string
	patience patience
	earned   earned
	excuse   excuse
	passes   int
}

// seen is what a decision started from and what it came to, in numbers.
type seen struct {
	obs       rollout.Observation
	now       time.Time
	was, is   *v1alpha1.WeightedRolloutStatus
	had, has  weights.Share
	known     bool
	returning bool
	// began is the share that a return to stable began at, by its record: what is above it
	// was never the canary's.
	began    weights.Share
	limits   rampLimits
	stages   []weights.Share
	interval time.Duration
	warmup   coldLimits
	planned  bool
	d        rollout.Decision
}

// rampLimits is what the documentation promises of a ramp, in basis points.
type rampLimits struct{ lowest, highest, change weights.Share }

func rampLimitsOf(r v1alpha1.Ramp) (rampLimits, error) {
	l := rampLimits{lowest: 100, highest: 1000, change: 2000}
	for text, into := range map[*v1alpha1.Percent]*weights.Share{&r.MinIncrease: &l.lowest, &r.MaxIncrease: &l.highest, &r.MaxChangePercent: &l.change} {
		if *text == "" {
			continue
		}
		share, err := weights.ShareFrom(*text)
		if err != nil {
			return l, err
		}
		*into = share
	}
	if l.lowest <= 0 || l.lowest > l.highest {
		return l, errors.New("minIncrease is 0 or above maxIncrease")
	}
	return l, nil
}

// raise is the most by which a warm track may be raised from a share: a part of it,
// in points between two bounds.
func (l rampLimits) raise(from weights.Share) weights.Share {
	part := from * l.change / 10000
	switch {
	case part < l.lowest:
		return l.lowest
	case part > l.highest:
		return l.highest
	}
	return part
}

// coldLimits is what the documentation promises of a cold canary: its first share and
// its raises in percent of the stage's share, and how long the first share is held.
type coldLimits struct {
	initial, increment weights.Share
	soak               time.Duration
}

func coldLimitsOf(w v1alpha1.Warmup) (c coldLimits, ok bool) {
	c = coldLimits{initial: 3000, increment: 2000, soak: 10 * time.Minute}
	ok = true
	if w.InitialPercent != "" {
		share, err := weights.ShareFrom(w.InitialPercent)
		c.initial, ok = share, err == nil && share > 0
	}
	if w.IncrementPercent != "" {
		share, err := weights.ShareFrom(w.IncrementPercent)
		c.increment, ok = share, ok && err == nil && share > 0
	}
	if w.Soak != "" {
		soak, err := w.Soak.Parse()
		c.soak, ok = soak, ok && err == nil
	}
	return c, ok
}

// largestRaise is the most by which the track under test may be raised.
func (s seen) largestRaise(stage weights.Share) weights.Share {
	from, w := s.part(s.had), s.was.Warmup
	if s.returning || from > 0 && w == nil {
		return s.limits.raise(from)
	}
	part := s.warmup.increment
	if from == 0 {
		part = s.warmup.initial
		if w != nil && w.Reason == v1alpha1.ColdBreak {
			part = 5000
		}
	}
	limit := max(s.limits.lowest, min(s.limits.highest, stage*part/weights.ShareAll))
	if from > 0 && (w.Recovered || w.Reason == v1alpha1.ColdBreak && s.obs.Verdict.Steady) {
		limit = max(limit, s.limits.raise(from))
	}
	return limit
}

func see(obs rollout.Observation, now time.Time, d rollout.Decision) seen {
	s := seen{obs: obs, now: now, was: obs.Status, is: &d.Status, d: d}
	s.returning = d.Returning || s.was.Outcome == v1alpha1.OutcomeReturning && s.is.Attempt == s.was.Attempt
	var had bool
	s.had, had = desiredOf(s.was)
	s.has, s.known = desiredOf(s.is)
	s.known = s.known && had
	s.began = weights.ShareAll
	if share, err := weights.ShareFrom(stageWeightOf(s.was)); s.returning && s.was.Outcome == v1alpha1.OutcomeReturning && err == nil && share > 0 {
		s.began = share
	}
	s.had = min(s.had, s.began)
	s.planned = len(obs.Spec.Plan.Stages) > 0
	for _, stage := range obs.Spec.Plan.Stages {
		share, err := weights.ShareFrom(stage.Weight)
		soak, soakErr := stage.Soak.Parse()
		rises := len(s.stages) == 0 || share > s.stages[len(s.stages)-1]
		s.planned = s.planned && err == nil && soakErr == nil && soak > 0 && rises
		s.stages = append(s.stages, share)
	}
	if n := len(s.stages); n == 0 || s.stages[n-1] < weights.ShareAll {
		s.stages = append(s.stages, weights.ShareAll)
	}
	limits, err := rampLimitsOf(obs.Spec.Ramp)
	s.limits = limits
	interval, intervalErr := obs.Spec.Ramp.Interval.Parse()
	s.interval = interval
	cold, coldOK := coldLimitsOf(obs.Spec.Ramp.Warmup)
	s.warmup = cold
	s.planned = s.planned && err == nil && intervalErr == nil && coldOK
	return s
}

func desiredOf(s *v1alpha1.WeightedRolloutStatus) (weights.Share, bool) {
	if s.Share.Desired == nil || s.Attempt < 1 || !slices.Contains(outcomes, s.Outcome) {
		return 0, false
	}
	share, err := weights.ShareFrom(*s.Share.Desired)
	return share, err == nil
}

var outcomes = []v1alpha1.Outcome{
	v1alpha1.OutcomeInProgress, v1alpha1.OutcomePromoted, v1alpha1.OutcomeReturning,
	v1alpha1.OutcomeCompleted, v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeSuperseded,
}

// part is the share of the track under test.
func (s seen) part(share weights.Share) weights.Share {
	if s.returning {
		return weights.ShareAll - share
	}
	return share
}

func (s seen) told(reason string) bool {
	return slices.ContainsFunc(s.d.Events, func(e rollout.Event) bool { return e.Reason == reason })
}

// climbs tells whether the track under test is on its way up.
func (s seen) climbs() bool {
	return s.is.Outcome == v1alpha1.OutcomeInProgress || s.is.Outcome == v1alpha1.OutcomeReturning
}

// decision checks one decision.
func (l *laws) decision(w *world, obs rollout.Observation, d rollout.Decision) {
	if l.off {
		return
	}
	w.tb.Helper()
	l.watch(w)
	// It costs as much as all the rest, and what is not pure shows soon enough.
	if l.passes++; l.passes%3 == 0 {
		pure(w, obs, d)
	}
	s := see(obs, w.clock(), d)
	for _, check := range []func(seen) string{
		raiseWithinLimits, loweredInSteps, breakKept, stopKept, raiseOnEvidence, stageLeftOnEvidence, endOnEvidence, unresolvedGetsNothing, rollbackFinal, unhealthyRollsBack,
		unknownHolds, onlyToReady, conflictWritesNothing, conflictHolds, observeWritesNothing, deletionSafe, kstatus, boundedStatus,
		raiseInWindow, scaledForNeed, givenBackWhenIdle, stableUpdatedWhenProved, loweredForAReason, contentionHolds, oneAnswer, l.raiseWithReplicas,
		func(s seen) string { return l.deadlineKept(w, s) }, l.raisedFromEarned, wholeTransition, orderTookEffect,
		func(s seen) string { return l.excuseBounded(w, s) },
	} {
		if broken := check(s); broken != "" {
			w.tb.Fatalf("%s: %s\nfrom: %s\n  to: %s\ndoing: writes %s, events %v\n%s", offset(w.at), broken, brief(s.was), brief(s.is), d.Writes, d.Events, strings.Join(w.journal.lines, "\n"))
		}
	}
	l.raiseOnWireEvidence(w, s)
}

// brief writes a status down without what only people read.
func brief(s *v1alpha1.WeightedRolloutStatus) string {
	s = s.DeepCopy()
	ready := conditionOf(s, v1alpha1.ConditionReady)
	s.History, s.OutcomeMessage, s.Conditions = nil, "", nil
	return encoded(s) + " " + ready.Reason + ": " + ready.Message
}

func encoded(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// pure checks that the decision changed nothing that it was given, and that it
// comes out the same again.
func pure(w *world, obs rollout.Observation, d rollout.Decision) {
	w.tb.Helper()
	if !reflect.DeepEqual(obs.Spec, &w.object.spec) || !reflect.DeepEqual(obs.Status, w.believed()) {
		w.tb.Fatalf("%s: the decision changed its input", offset(w.at))
	}
	again := rollout.Decide(obs, w.clock())
	if !reflect.DeepEqual(d, again) {
		w.tb.Fatalf("%s: the same input gives two decisions: %s and %s", offset(w.at), encoded(d), encoded(again))
	}
}

// watch keeps account of what the routes carry, independently of the status.
func (l *laws) watch(w *world) {
	var shares []weights.Share
	for _, r := range w.routes {
		low, high := weights.ShareNone, weights.ShareNone
		if r.stored != nil {
			stable, canary, _ := weightsIn(r.stored)
			low, high = weights.Part(canary, stable+canary)
		}
		shares = append(shares, low, high)
	}
	if !slices.Equal(shares, l.shares) {
		l.shares, l.carried = shares, time.Time{}
	}
	if !l.carried.IsZero() {
		return
	}
	for _, r := range w.routes {
		if r.stored == nil || route.Accepted(route.FromHTTPRoute(r.stored), route.ConfirmGeneration, nil).State != route.Confirmed {
			return
		}
	}
	l.carried = w.at
}

// raiseOnWireEvidence is law 3 seen from outside: since the routes carry the share
// there has been time for the evidence, and to leave a stage, for its soak.
func (l *laws) raiseOnWireEvidence(w *world, s seen) {
	w.tb.Helper()
	if !s.raised() || s.part(s.had) == 0 || !l.disturbed.Before(l.carried) && !l.disturbed.IsZero() {
		return
	}
	need := w.windows.ramp
	if stageIndex(s.is) > stageIndex(s.was) && s.is.Attempt == s.was.Attempt && !s.told(v1alpha1.ReasonPlanChanged) && s.was.Outcome == v1alpha1.OutcomeInProgress {
		need = w.windows.stage
		if soak, err := v1alpha1.Duration(s.was.Stage.Soak).Parse(); err == nil && !s.was.Promote && !s.is.Promote && !s.skipped() {
			need = max(need, soak)
		}
	}
	if held := w.at.Sub(l.carried); l.carried.IsZero() || held < need {
		w.tb.Fatalf("%s: raised from %d to %d after the routes carried the share for %s, but %s is needed", offset(w.at), s.had, s.has, held, need)
	}
}

func stageWeightOf(s *v1alpha1.WeightedRolloutStatus) v1alpha1.Percent {
	if s.Stage == nil {
		return ""
	}
	return s.Stage.Weight
}

func stageIndex(s *v1alpha1.WeightedRolloutStatus) int {
	if s.Stage == nil {
		return -1
	}
	return int(s.Stage.Index)
}

// routeWrite checks one write to a route.
func (l *laws) routeWrite(w *world, r *servedRoute, after *gatewayv1.HTTPRoute, d rollout.Decision) {
	if l.off {
		return
	}
	w.tb.Helper()
	before := r.stored
	if !reflect.DeepEqual(withoutWeights(before), withoutWeights(after)) {
		w.tb.Fatalf("%s: law 10: the write changed more than weights and annotation:\n%s\n%s", offset(w.at), encoded(before), encoded(after))
	}
	stable, canary, sum := weightsIn(after)
	oldStable, oldCanary, _ := weightsIn(before)
	if stable == oldStable && canary == oldCanary {
		return
	}
	if sum <= 0 {
		w.tb.Fatalf("%s: law 1: all weights are 0 in %s", offset(w.at), encoded(after))
	}
	_, high := weights.Part(canary, stable+canary)
	low, _ := weights.Part(canary, stable+canary)
	_, oldHigh := weights.Part(oldCanary, oldStable+oldCanary)
	oldLow, _ := weights.Part(oldCanary, oldStable+oldCanary)
	s := see(w.observe(), w.clock(), d)
	if limit := l.earned.limit(); high > oldHigh && high > limit {
		w.tb.Fatalf("%s: nothing is promoted, and the route goes from %d to %d, above the %d that evidence has carried", offset(w.at), oldHigh, high, limit)
	}
	oldLow = min(oldLow, s.began)
	stage := weights.ShareAll
	if s.is.Outcome == v1alpha1.OutcomeInProgress && s.is.Stage != nil {
		stage, _ = weights.ShareFrom(s.is.Stage.Weight)
	}
	if where := w.endedIn(s.is); high > oldHigh && where != "" {
		w.tb.Fatalf("%s: %s says that attempt %d is over, and the canary is raised from %d to %d", offset(w.at), where, s.is.Attempt, oldHigh, high)
	}
	if more := high > oldHigh || s.returning && low < oldLow; more || !w.object.denied {
		l.intentFirst(w, d)
	}
	if high > d.Share && !d.Returning || high > stage {
		w.tb.Fatalf("%s: law 2: the route gets %d, above the share of %d or the stage of %d", offset(w.at), high, d.Share, stage)
	}
	if high > oldHigh && !w.canaryReady {
		w.tb.Fatalf("%s: law 7: raised from %d to %d on a canary that is not ready", offset(w.at), oldHigh, high)
	}
	if low < oldLow && !w.stableReady {
		w.tb.Fatalf("%s: law 7: lowered from %d to %d onto a stable that is not ready", offset(w.at), oldLow, low)
	}
	// Beside a third backend the pair keeps its sum, and no step is finer than its unit.
	unit := weights.Share(int64(weights.ShareAll)/(stable+canary) + 1)
	// The record is up to a unit above what the old weight stands for, and the ramp
	// goes by the record.
	limit := s.limits.raise(s.part(oldLow) + unit)
	if !s.returning && (s.is.Warmup != nil || oldLow == 0) {
		limit = s.limits.highest
	}
	if rise := s.part(d.Share) - s.part(oldLow); s.planned && s.climbs() && s.part(low) > s.part(oldHigh) && rise > limit+unit {
		w.tb.Fatalf("%s: law 2: the route goes from %d to %d, more than the ramp allows", offset(w.at), oldLow, d.Share)
	}
}

// withoutWeights is a route without all that the controller may change.
func withoutWeights(hr *gatewayv1.HTTPRoute) *gatewayv1.HTTPRoute {
	hr = hr.DeepCopy()
	delete(hr.Annotations, v1alpha1.ManagedByAnnotation)
	delete(hr.Annotations, v1alpha1.LoweredAnnotation)
	if len(hr.Annotations) == 0 {
		hr.Annotations = nil
	}
	hr.Spec.Rules[1].BackendRefs[0].Weight, hr.Spec.Rules[1].BackendRefs[1].Weight = nil, nil
	return hr
}

func weightsIn(hr *gatewayv1.HTTPRoute) (stable, canary, sum int64) {
	weight := func(ref gatewayv1.HTTPBackendRef) int64 {
		if ref.Weight == nil {
			return 1
		}
		return int64(*ref.Weight)
	}
	refs := hr.Spec.Rules[1].BackendRefs
	for _, ref := range refs {
		sum += weight(ref)
	}
	return weight(refs[0]), weight(refs[1]), sum
}
