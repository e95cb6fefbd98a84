package diagnose

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/window"
)

// Situation is what a rollout waits for.
type Situation struct {
	// Phase sums it up.
	Phase string `json:"phase"`
	// Verdict is a Problem if a person has to do something, or the version under test is
	// not well.
	Verdict Verdict `json:"verdict"`
	// Reason and Says are those of the rollout's conditions.
	Reason string `json:"reason,omitempty"`
	Says   string `json:"says"`
	// Do is what to do about it; empty: nothing.
	Do string `json:"do,omitempty"`
	// Numbers are what else is known.
	Numbers []Number `json:"numbers,omitempty"`
}

// Situate says what a rollout waits for.
func Situate(wr *v1alpha1.WeightedRollout, now time.Time) Situation {
	st := &wr.Status
	s := Situation{Phase: string(cmp.Or(st.Phase, v1alpha1.PhasePending)), Verdict: OK}
	said := decisive(st.Conditions)
	switch {
	case said == nil:
		s.Verdict, s.Says = Problem, "the controller has said nothing about it yet"
		s.Do = "look whether the controller runs, and whether it may read this namespace"
	case st.ObservedGeneration != wr.Generation:
		s.Reason, s.Says = said.Reason, fmt.Sprintf("the controller has not taken in the last change of the spec; before, it said: %s", said.Message)
		s.Do = "wait a moment; if it stays so, look whether the controller runs"
	default:
		s.Reason, s.Says, s.Do = said.Reason, said.Message, Advice(said.Reason)
	}
	if said != nil && said.Type == v1alpha1.ConditionStalled {
		s.Verdict = Problem
	}
	s.health(st)
	s.place(wr, now)
	s.others(st)
	s.limits(wr, now)
	return s
}

// decisive returns the condition that says what is going on, or nil.
func decisive(conditions []metav1.Condition) *metav1.Condition {
	for _, kind := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionReconciling, v1alpha1.ConditionReady} {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	return meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
}

func (s *Situation) number(what, format string, args ...any) {
	s.Numbers = append(s.Numbers, Number{what, fmt.Sprintf(format, args...)})
}

// health says how the version under test is.
func (s *Situation) health(st *v1alpha1.WeightedRolloutStatus) {
	c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionHealthy)
	if c == nil {
		return
	}
	s.number("health", "%s: %s", c.Reason, c.Message)
	if c.Status == metav1.ConditionFalse && s.Verdict == OK {
		s.Verdict = Problem
	}
}

// place says where in the plan the rollout is.
func (s *Situation) place(wr *v1alpha1.WeightedRollout, now time.Time) {
	st := &wr.Status
	if st.Stage != nil {
		s.number("stage", "%s, %s percent", cmp.Or(st.Stage.Position, "?"), st.Stage.Weight)
	}
	if sh := st.Share; sh.Desired != nil {
		confirmed := "not confirmed by the gateways yet"
		if sh.ConfirmedAt != nil {
			confirmed = "confirmed " + ago(now, sh.ConfirmedAt.Time)
		}
		s.number("share", "%s percent, %s", *sh.Desired, confirmed)
	}
	if w := st.Warmup; w != nil {
		s.number("warm-up", "the canary is cold (%s)", w.Reason)
	}
	if b := st.Breaker; b != nil {
		s.number("breaks", "%d: %s", b.Trips, b.Message)
	}
	if next := st.NextTransitionTime; next != nil && next.After(now) {
		s.number("not before", "%s, in %s", next.UTC().Format(time.RFC3339), next.Sub(now).Round(time.Second))
	}
}

// others says who else has to do with it: other writers, replicas.
func (s *Situation) others(st *v1alpha1.WeightedRolloutStatus) {
	if c := st.Contention; c != nil {
		s.number("contention", "%s has changed the weights, %d times in a row", cmp.Or(c.Manager, "another writer"), c.Count)
	}
	if c := st.Capacity; c != nil {
		if c.Replicas > 0 {
			s.number("capacity", "all of the traffic takes %s", many(int64(c.Replicas), "replica"))
		}
		for _, up := range c.Scaled {
			s.number("scaled", "%s %s of %s, from %d to %d", up.Kind, up.Name, up.Track, up.From, up.To)
		}
	}
	for _, r := range st.Routes {
		if r.Reason != "" {
			s.number("route", "%s %s: %s: %s", r.Kind, r.Name, r.Reason, r.Message)
		}
	}
	if c := st.Command; c != nil && !c.Accepted {
		s.number("command", "%s was ignored: %s", c.Verb, c.Message)
	}
}

// limits says what time allows: windows, and the deadline.
func (s *Situation) limits(wr *v1alpha1.WeightedRollout, now time.Time) {
	if len(wr.Spec.Plan.Windows) > 0 {
		schedule, err := window.Parse(wr.Spec.Plan.Windows)
		until, next := schedule.Until(now), schedule.Next(now)
		switch {
		case err != nil:
			s.number("windows", "%v", err)
		case !schedule.Open(now):
			s.number("windows", "closed until %s (%s)", next.UTC().Format(time.RFC3339), schedule)
		case until.IsZero():
			s.number("windows", "open (%s)", schedule)
		default:
			s.number("windows", "open until %s (%s)", until.UTC().Format(time.RFC3339), schedule)
		}
	}
	text := cmp.Or(wr.Spec.ProgressDeadline, v1alpha1.DefaultProgressDeadline)
	deadline, err := text.Parse()
	p := wr.Status.Progress
	if p == nil || err != nil || wr.Spec.ProgressDeadline == "" && p.WaitingSince == nil && p.WaitedFor == "" {
		return
	}
	waited, err := time.ParseDuration(cmp.Or(p.WaitedFor, "0s"))
	if err != nil {
		return
	}
	state := "stands still"
	if p.WaitingSince != nil {
		waited += now.Sub(p.WaitingSince.Time)
		state = "runs"
	}
	s.number("deadline", "%s of %s left; it %s", max(deadline-waited, 0).Round(time.Second), text, state)
}

// ago says how long something has been.
func ago(now, at time.Time) string {
	return max(now.Sub(at), 0).Round(time.Second).String() + " ago"
}
