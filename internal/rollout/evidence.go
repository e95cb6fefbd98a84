package rollout

import (
	"cmp"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// Subject returns the track whose health decides: canary, or stable while the
// traffic returns to it.
func Subject(status *v1alpha1.WeightedRolloutStatus) health.Track {
	if status.Outcome == v1alpha1.OutcomeReturning {
		return health.TrackStable
	}
	return health.TrackCanary
}

// MeasuredFrom is when the evidence starts that the present share is judged by: its
// confirmation. Until then it is the time of the decision, so that bad news counts
// even if a gateway never confirms; Admit keeps it from opening a gate. It is zero
// if there is nothing to measure: the track under test has no traffic, or the
// attempt has ended.
func MeasuredFrom(status *v1alpha1.WeightedRolloutStatus) time.Time {
	nothing := v1alpha1.Percent("0")
	switch status.Outcome {
	case v1alpha1.OutcomeInProgress, v1alpha1.OutcomePromoted:
	case v1alpha1.OutcomeReturning:
		nothing = "100"
	case v1alpha1.OutcomeCompleted, v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeSuperseded:
		return time.Time{}
	}
	switch share := status.Share; {
	case share.Desired == nil || *share.Desired == nothing:
	case share.ConfirmedAt != nil:
		return share.ConfirmedAt.Time
	case share.ChangedAt != nil:
		return share.ChangedAt.Time
	}
	return time.Time{}
}

// CanaryShare is the share of the canary that is desired, 0 without a record.
func CanaryShare(status *v1alpha1.WeightedRolloutStatus) weights.Share {
	if status.Share.Desired == nil {
		return weights.ShareNone
	}
	share, err := weights.ShareFrom(*status.Share.Desired)
	if err != nil {
		return weights.ShareNone
	}
	return share
}

// Unopposed says that the track under test has all traffic, so that there is nothing to
// compare it with.
func Unopposed(status *v1alpha1.WeightedRolloutStatus) bool {
	everything := v1alpha1.Percent("100")
	if Subject(status) == health.TrackStable {
		everything = "0"
	}
	return status.Share.Desired != nil && *status.Share.Desired == everything
}

// unconfirmedFor is how long a share that no gateway confirms is not compared: as long as a
// cold canary by default.
const unconfirmedFor = 10 * time.Minute

// ComparedFrom is when the comparison of the canary with stable begins, for the present
// share. A cold canary is excused from it until it has had its traffic for
// ramp.warmup.soak, and no longer, whatever holds the warm-up. A share that is not
// confirmed is not compared at first: in a window in which it changes the two tracks have
// not had the same times. But a gateway that never confirms it is no excuse either.
func ComparedFrom(spec *v1alpha1.WeightedRolloutSpec, status *v1alpha1.WeightedRolloutStatus) time.Time {
	w, at := status.Warmup, status.Share.ConfirmedAt
	switch {
	case Subject(status) != health.TrackCanary:
		return time.Time{}
	case at == nil && status.Share.ChangedAt == nil:
		return health.Never()
	case at == nil:
		return status.Share.ChangedAt.Add(unconfirmedFor)
	case w == nil:
		return time.Time{}
	case w.HeldSince != nil:
		at = w.HeldSince
	}
	soak, err := cmp.Or(spec.Ramp.Warmup.Soak, defaultWarmupSoak).Parse()
	if err != nil {
		soak = 0 // the spec is invalid: nothing excuses
	}
	return at.Add(max(soak-held(w), 0))
}

// held is how long a cold canary had its traffic before the warm-up was interrupted.
func held(w *v1alpha1.WarmupStatus) time.Duration {
	before, err := time.ParseDuration(w.HeldFor)
	if err != nil || before < 0 {
		return 0
	}
	return before
}

// Compared is what the earlier shares of the attempt have shown of the canary beside
// stable.
func Compared(status *v1alpha1.WeightedRolloutStatus) health.Comparison {
	return health.ComparisonFrom(status.Comparison)
}

// keepComparison records what the evidence about the present share has shown, before it
// is dropped: the comparison goes on over the whole attempt.
func (d *draft) keepComparison() {
	k := d.obs.Verdict.Compared
	if d.fresh || !d.known || k.Through.IsZero() || d.returning() {
		return
	}
	if was := d.status.Comparison; was != nil && was.Through != nil && !k.Through.After(was.Through.Time) {
		return
	}
	d.status.Comparison = k.Status()
}

// Admit returns a verdict as far as it may count. Evidence from before the share's
// confirmation can condemn the share, but opens no gate and shows no recovery: the
// next pass may be the very one that confirms it.
func Admit(v health.Verdict, status *v1alpha1.WeightedRolloutStatus) health.Verdict {
	if status.Share.ConfirmedAt != nil || v.Reason == v1alpha1.ReasonChecksDisabled {
		return v
	}
	const wait = "the share is not confirmed yet"
	v.RampReady, v.RampWait = false, wait
	v.StageReady, v.StageWait = false, wait
	v.Steady = false
	return v
}
