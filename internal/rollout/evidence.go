package rollout

import (
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
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
