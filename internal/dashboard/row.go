package dashboard

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/diagnose"
)

// Row is a rollout at a glance. Shares are in percent, as the status writes them; empty:
// there is none yet.
type Row struct {
	Key       string `json:"key"` // namespace/name
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Phase     string `json:"phase"`
	// Tone is how the phase is drawn, and Urgency where the row stands: 0 comes first.
	Tone    Tone `json:"tone"`
	Urgency int  `json:"urgency"`
	// NeedsPerson says that it does not go on by itself.
	NeedsPerson bool   `json:"needsPerson"`
	Revision    string `json:"revision"`
	Attempt     int64  `json:"attempt"`
	Position    string `json:"position"`
	Stages      []Stop `json:"stages"`
	Desired     string `json:"desired"`
	Observed    string `json:"observed"`
	Verdict     string `json:"verdict"`
	// Reason and Says are what it waits for, and Do what to do about it.
	Reason string     `json:"reason"`
	Says   string     `json:"says"`
	Do     string     `json:"do"`
	Next   *time.Time `json:"next,omitempty"`
}

// Tone is how something is drawn. It never says more than the words beside it.
type Tone string

// The tones, from calm to urgent.
const (
	ToneQuiet  Tone = "quiet"
	ToneGood   Tone = "good"
	ToneActive Tone = "active"
	ToneWarn   Tone = "warn"
	ToneBad    Tone = "bad"
)

// Stop is a stage of the plan, and how far the rollout is with it.
type Stop struct {
	Weight string `json:"weight"`
	// State is done, here or ahead.
	State    string `json:"state"`
	Soak     string `json:"soak,omitempty"`
	Approval bool   `json:"approval,omitempty"`
}

// The states of a stop.
const (
	stopDone  = "done"
	stopHere  = "here"
	stopAhead = "ahead"
)

func key(wr *v1alpha1.WeightedRollout) string { return wr.Namespace + "/" + wr.Name }

// rowOf sums a rollout up.
func rowOf(wr *v1alpha1.WeightedRollout, now time.Time) Row {
	st := &wr.Status
	situation := diagnose.Situate(wr, now)
	phase := cmp.Or(st.Phase, v1alpha1.PhasePending)
	r := Row{
		Key: key(wr), Namespace: wr.Namespace, Name: wr.Name, Phase: string(phase), Tone: toneOf(phase),
		Revision: cmp.Or(st.Revision, wr.Spec.Revision), Attempt: st.Attempt, Stages: stops(wr),
		Desired: percent(st.Share.Desired), Observed: percent(st.Share.Observed), Verdict: string(v1alpha1.VerdictUnknown),
		Reason: situation.Reason, Says: situation.Says, Do: situation.Do,
	}
	r.Urgency, r.NeedsPerson = urgency(wr)
	if st.Stage != nil {
		r.Position = st.Stage.Position
	}
	if st.Verdict != nil {
		r.Verdict = string(st.Verdict.State)
	}
	if st.NextTransitionTime != nil {
		r.Next = new(st.NextTransitionTime.UTC())
	}
	return r
}

// urgency says how soon a person should look at a rollout, from 0, and whether it waits
// for one.
func urgency(wr *v1alpha1.WeightedRollout) (rank int, person bool) {
	st := &wr.Status
	phase := cmp.Or(st.Phase, v1alpha1.PhasePending)
	stalled := meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionStalled)
	switch {
	case stalled && phase != v1alpha1.PhaseRolledBack:
		return 0, true
	case phase == v1alpha1.PhaseAwaitingApproval:
		return 1, true
	case phase == v1alpha1.PhaseRolledBack:
		return 2, true
	case unwell(st):
		return 3, false
	}
	switch phase {
	case v1alpha1.PhasePaused:
		return 4, true
	case v1alpha1.PhasePromoted:
		return 5, wr.Spec.Promotion.Mode != v1alpha1.PromotionUpdateStable
	case v1alpha1.PhaseCompleted, v1alpha1.PhaseIdle:
		return 7, false
	case v1alpha1.PhasePending, v1alpha1.PhaseProgressing, v1alpha1.PhaseReturning, v1alpha1.PhaseCoolingDown, v1alpha1.PhaseAwaitingApproval, v1alpha1.PhaseRolledBack:
	}
	return 6, false
}

// unwell tells whether the version under test has trouble.
func unwell(st *v1alpha1.WeightedRolloutStatus) bool {
	if st.Phase == v1alpha1.PhaseCoolingDown || meta.IsStatusConditionFalse(st.Conditions, v1alpha1.ConditionHealthy) {
		return true
	}
	return st.Verdict != nil && st.Outcome == v1alpha1.OutcomeInProgress &&
		(st.Verdict.State == v1alpha1.VerdictDegraded || st.Verdict.State == v1alpha1.VerdictUnhealthy)
}

func toneOf(p v1alpha1.Phase) Tone {
	switch p {
	case v1alpha1.PhaseRolledBack:
		return ToneBad
	case v1alpha1.PhasePending, v1alpha1.PhasePaused, v1alpha1.PhaseCoolingDown, v1alpha1.PhaseAwaitingApproval:
		return ToneWarn
	case v1alpha1.PhasePromoted, v1alpha1.PhaseCompleted:
		return ToneGood
	case v1alpha1.PhaseIdle:
		return ToneQuiet
	case v1alpha1.PhaseProgressing, v1alpha1.PhaseReturning:
	}
	return ToneActive
}

// stops lists the stages of the plan with the implied last one. None is passed before an
// attempt has begun, nor after it was given up.
func stops(wr *v1alpha1.WeightedRollout) []Stop {
	all := []Stop{}
	for _, s := range wr.Spec.Plan.Stages {
		all = append(all, Stop{Weight: string(s.Weight), State: stopAhead, Soak: string(s.Soak), Approval: s.Approval == v1alpha1.ApprovalRequired})
	}
	if n := len(all); n == 0 || all[n-1].Weight != "100" {
		all = append(all, Stop{Weight: "100", State: stopAhead})
	}
	for i := range all {
		all[i].State = stateOf(&wr.Status, i)
	}
	return all
}

func stateOf(st *v1alpha1.WeightedRolloutStatus, i int) string {
	switch st.Outcome {
	case v1alpha1.OutcomePromoted, v1alpha1.OutcomeReturning, v1alpha1.OutcomeCompleted:
		return stopDone
	case v1alpha1.OutcomeInProgress:
		switch {
		case st.Stage == nil || i > int(st.Stage.Index):
			return stopAhead
		case i == int(st.Stage.Index):
			return stopHere
		}
		return stopDone
	case v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeSuperseded:
	}
	return stopAhead
}

func percent(p *v1alpha1.Percent) string {
	if p == nil {
		return ""
	}
	return string(*p)
}

func moment(t *metav1.MicroTime) *time.Time {
	if t == nil || t.IsZero() {
		return nil
	}
	return new(t.UTC())
}
