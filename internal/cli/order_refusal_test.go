package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestOrdersUnderAPause: an order that a pause holds says so, whoever has made the pause.
func TestOrdersUnderAPause(t *testing.T) {
	for name, test := range map[string]struct {
		pause         func(*v1alpha1.WeightedRollout)
		approve, skip string
	}{
		"none":           {func(*v1alpha1.WeightedRollout) {}, "stage 1/2 of attempt 3 will end, once its soak is over and its gate passes", "stage 1/2 of attempt 3 will end as soon as its gate passes"},
		"a pause":        {func(wr *v1alpha1.WeightedRollout) { wr.Spec.Paused = true }, "stage 1/2 of attempt 3 will end, once the pause is over, its soak is over and its gate passes", "stage 1/2 of attempt 3 will end as soon as its gate passes, once the pause is over"},
		"a breach's own": {func(wr *v1alpha1.WeightedRollout) { wr.Status.Pause = &v1alpha1.PauseStatus{} }, "stage 1/2 of attempt 3 will end, once the pause is over, its soak is over and its gate passes", "stage 1/2 of attempt 3 will end as soon as its gate passes, once the pause is over"},
	} {
		wr := &v1alpha1.WeightedRollout{}
		wr.Status.Attempt, wr.Status.Stage = 3, &v1alpha1.StageStatus{Position: "1/2"}
		test.pause(wr)
		for _, o := range orders() {
			if want := map[string]string{"approve": test.approve, "skip": test.skip}[o.verb]; want != "" && o.effect(wr) != want {
				t.Errorf("%s: %s says %q, want %q", name, o.verb, o.effect(wr), want)
			}
		}
	}
}

// TestRefusals: which orders make sense when. What is not listed is refused with a
// reason.
func TestRefusals(t *testing.T) {
	type wr = v1alpha1.WeightedRollout
	stall := func(r *wr, reason string) {
		r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: reason}}
	}
	progressing := func(r *wr) {
		r.Status.Attempt, r.Status.Outcome, r.Status.Stage = 1, v1alpha1.OutcomeInProgress, &v1alpha1.StageStatus{Index: 0, Position: "1/2"}
		r.Status.Share.Desired = new(v1alpha1.Percent("5"))
	}
	promoted := func(share v1alpha1.Percent) func(*wr) {
		return func(r *wr) {
			r.Status.Attempt, r.Status.Outcome, r.Status.Share.Desired = 1, v1alpha1.OutcomePromoted, &share
		}
	}
	ended := func(outcome v1alpha1.Outcome, stable string) func(*wr) {
		return func(r *wr) {
			promoted("0")(r)
			r.Status.Outcome, r.Status.Revision, r.Status.StableRevision = outcome, "v2", stable
		}
	}
	for name, test := range map[string]struct {
		state func(*wr)
		makes string // the orders that make sense
	}{
		"no attempt yet":       {func(*wr) {}, "pause retry"},
		"under way":            {progressing, "pause promote abort skip"},
		"under way and paused": {func(r *wr) { progressing(r); r.Spec.Paused = true }, "resume promote abort skip"},
		"with approval":        {func(r *wr) { progressing(r); r.Spec.Plan.Stages[0].Approval = v1alpha1.ApprovalRequired }, "pause approve promote abort skip"},
		"approved": {func(r *wr) {
			progressing(r)
			r.Spec.Plan.Stages[0].Approval = v1alpha1.ApprovalRequired
			r.Status.Stage.Approved = true
		}, "pause promote abort skip"},
		"skipped":                  {func(r *wr) { progressing(r); r.Status.Stage.Skipped = true }, "pause promote abort"},
		"promote said":             {func(r *wr) { progressing(r); r.Status.Promote = true }, "pause abort"},
		"promote, and then paused": {func(r *wr) { progressing(r); r.Status.Promote, r.Spec.Paused, r.Generation = true, true, 2 }, "resume promote abort"},
		"the implied last stage":   {func(r *wr) { progressing(r); r.Status.Stage.Index = 1 }, "pause promote abort skip"},
		"a stage that is none":     {func(r *wr) { progressing(r); r.Status.Stage.Index = -5 }, "pause promote abort skip"},
		"no stage on record":       {func(r *wr) { progressing(r); r.Status.Stage = nil }, "pause promote abort"},
		"stopped":                  {func(r *wr) { progressing(r); r.Status.Pause = &v1alpha1.PauseStatus{} }, "pause resume promote abort skip"},
		"contended": {func(r *wr) {
			progressing(r)
			r.Status.Contention = &v1alpha1.ContentionStatus{At: &metav1.MicroTime{}, Count: 6}
		}, "pause resume promote abort skip"},
		"promoted":               {promoted("100"), "pause abort finish"},
		"promoted, at 60":        {promoted("60"), "pause abort"},
		"returning":              {func(r *wr) { promoted("60")(r); r.Status.Outcome = v1alpha1.OutcomeReturning }, "pause abort"},
		"completed":              {ended(v1alpha1.OutcomeCompleted, "v2"), "pause"},
		"completed, stable left": {ended(v1alpha1.OutcomeCompleted, ""), "pause retry"},
		"rolled back":            {ended(v1alpha1.OutcomeRolledBack, "v1"), "pause retry"},
		"stable runs it":         {ended(v1alpha1.OutcomeSuperseded, "v2"), "pause"},
		"stable ran it":          {ended(v1alpha1.OutcomeSuperseded, ""), "pause retry"},
		"adoption":               {func(r *wr) { stall(r, v1alpha1.ReasonAdoptionAmbiguous) }, "pause retry finish"},
		"a broken record":        {func(r *wr) { r.Status.Attempt = 1; stall(r, v1alpha1.ReasonInvalidStatus) }, "pause retry"},
		"another owner":          {func(r *wr) { progressing(r); stall(r, v1alpha1.ReasonRouteConflict) }, "pause"},
		"observed only":          {func(r *wr) { progressing(r); r.Spec.Mode = v1alpha1.ModeObserve }, "pause"},
		"being deleted":          {func(r *wr) { progressing(r); r.DeletionTimestamp = &metav1.Time{} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rollout := planned("", 0, "50")
			rollout.Status = v1alpha1.WeightedRolloutStatus{}
			test.state(rollout)
			makes := strings.Fields(test.makes)
			for _, o := range orders() {
				why := o.refusal(rollout)
				if sense := slices.Contains(makes, o.verb); sense != (why == "") {
					t.Errorf("%s: refused with %q, want sense %t", o.verb, why, sense)
				}
				if o.effect(rollout) == "" {
					t.Errorf("%s does not say what it does", o.verb)
				}
			}
		})
	}
}

// TestConfirm: a grave order is given only to whoever says yes.
func TestConfirm(t *testing.T) {
	for answer, agreed := range map[string]bool{"y\n": true, "YES\n": true, " yes ": true, "n\n": false, "\n": false, "": false, "maybe\n": false} {
		var errOut bytes.Buffer
		o := &OrderOptions{
			IOStreams: genericiooptions.IOStreams{In: strings.NewReader(answer), ErrOut: &errOut},
			order:     order{verb: "abort", grave: true}, terminal: func() bool { return true },
		}
		if err := o.confirm(planned("", 0, "50")); (err == nil) != agreed || !strings.Contains(errOut.String(), "[y/N]") {
			t.Errorf("%q: %v, asked %q", answer, err, errOut.String())
		}
	}
}

// TestEffects: what an order will do is told as something to come: it may be refused yet.
func TestEffects(t *testing.T) {
	for name, outcome := range map[string]v1alpha1.Outcome{"none": "", "under way": v1alpha1.OutcomeInProgress, "promoted": v1alpha1.OutcomePromoted, "rolled back": v1alpha1.OutcomeRolledBack, "completed": v1alpha1.OutcomeCompleted} {
		for _, stopped := range []bool{false, true} {
			rollout := planned(outcome, 0, "50")
			if stopped {
				rollout.Status.Pause = &v1alpha1.PauseStatus{}
			}
			for _, o := range orders() {
				if says := o.effect(rollout); !strings.Contains(says, " will ") {
					t.Errorf("%s, stopped %t: %s tells as a fact: %q", name, stopped, o.verb, says)
				}
			}
		}
	}
	paused := planned(v1alpha1.OutcomeCompleted, 0, "50")
	paused.Spec.Paused = true
	if says := resumeEffect(paused); !strings.Contains(says, "the next attempt will not be held") {
		t.Errorf("of a resume after the end it says %q", says)
	}
}

// TestEarlyApproval: whoever approves before that is asked for is asked back, unless the
// stage is named.
func TestEarlyApproval(t *testing.T) {
	approve := order{verb: "approve", asksBack: tooEarly}
	for name, test := range map[string]struct {
		phase    v1alpha1.Phase
		yes      bool
		stage    string
		terminal bool
		answer   string
		fails    string
		asks     bool
	}{
		"asked for":             {phase: v1alpha1.PhaseAwaitingApproval},
		"early, nobody there":   {phase: v1alpha1.PhaseProgressing, fails: "stage 1/2 does not ask for approval yet: the rollout is Progressing, and there is no terminal to ask at: say --yes, or --stage 1/2"},
		"paused, nobody there":  {phase: v1alpha1.PhasePaused, fails: "the rollout is Paused"},
		"early, with --yes":     {phase: v1alpha1.PhaseProgressing, yes: true},
		"early, with the stage": {phase: v1alpha1.PhaseProgressing, stage: "1/2"},
		"early, and agreed":     {phase: v1alpha1.PhaseProgressing, terminal: true, answer: "y\n", asks: true},
		"early, and not agreed": {phase: v1alpha1.PhaseProgressing, terminal: true, answer: "\n", asks: true, fails: "nothing was done"},
	} {
		t.Run(name, func(t *testing.T) {
			var errOut bytes.Buffer
			o := &OrderOptions{
				IOStreams: genericiooptions.IOStreams{In: strings.NewReader(test.answer), ErrOut: &errOut},
				order:     approve, yes: test.yes, bound: bound{stage: test.stage}, terminal: func() bool { return test.terminal },
			}
			rollout := planned(v1alpha1.OutcomeInProgress, 0, "50")
			rollout.Status.Phase, rollout.Status.Stage.Position = test.phase, "1/2"
			err := o.confirm(rollout)
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%v, want %q", err, test.fails)
			}
			if asks := strings.Contains(errOut.String(), "does not ask for approval yet: the rollout is Progressing.\nGo on? [y/N]"); asks != test.asks {
				t.Errorf("it asks %t: %q", asks, errOut.String())
			}
		})
	}
}

// TestEarlyApprovalOnThePage: the dashboard's question says it, too.
func TestEarlyApprovalOnThePage(t *testing.T) {
	for phase, says := range map[v1alpha1.Phase]bool{v1alpha1.PhaseProgressing: true, v1alpha1.PhaseAwaitingApproval: false} {
		rollout := planned(v1alpha1.OutcomeInProgress, 0, "50")
		rollout.Status.Phase, rollout.Spec.Plan.Stages[0].Approval = phase, v1alpha1.ApprovalRequired
		rollout.Status.Attempt, rollout.Status.Share.Desired = 1, new(v1alpha1.Percent("50"))
		for _, o := range (&dashboardOrders{}).For(rollout) {
			if got := strings.Contains(o.Effect, "does not ask for approval yet"); got != (says && o.Verb == "approve") {
				t.Errorf("%s: of %s it says %q, refused with %q", phase, o.Verb, o.Effect, o.Refusal)
			}
		}
	}
}
