package rollout_test

import (
	"fmt"
	"slices"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// earned keeps account of the shares that an attempt has come to on evidence, by what the
// routes carry and not by what the status says of them.
type earned struct {
	attempt int64
	// carried is the highest share that every route carried, confirmed, with evidence that
	// allows a raise; allowed is the highest one that a raise from such a share led to.
	carried, allowed weights.Share
	// began is the least that a route gave the canary when the return to stable began.
	began weights.Share
	// promoted is true once the status has said so, and tampered once another hand has
	// written it: then nobody knows what was carried, up to the next attempt.
	promoted, tampered bool
}

// raisedFromEarned: without a record of a promotion the share is only raised from one that
// was carried on evidence, or from 0.
func (l *laws) raisedFromEarned(s seen) string {
	e := &l.earned
	if e.attempt != s.was.Attempt {
		*e = earned{attempt: s.was.Attempt}
	}
	e.promoted = e.promoted || s.was.Outcome == v1alpha1.OutcomePromoted
	carries := !l.carried.IsZero() && !slices.ContainsFunc(s.obs.Routes, func(r rollout.Route) bool { return !r.Inspection.Matches(s.had) })
	if carries && s.known && !s.returning && s.obs.Verdict.RampReady {
		e.carried = max(e.carried, s.had)
	}
	if s.is.Outcome == v1alpha1.OutcomeReturning && s.was.Outcome != v1alpha1.OutcomeReturning {
		e.attempt, e.began = s.is.Attempt, slices.Min(l.shares)
	}
	if !s.raised() || s.returning {
		return ""
	}
	if s.had > e.carried && !e.promoted && !e.tampered {
		return fmt.Sprintf("raised from %d to %d, and no more than %d was carried on evidence", s.had, s.has, e.carried)
	}
	e.allowed = max(e.allowed, s.has)
	return ""
}

// limit is the most that a write may give the canary.
func (e earned) limit() weights.Share {
	if e.promoted || e.tampered {
		return weights.ShareAll
	}
	return max(e.carried, e.allowed, e.began)
}
