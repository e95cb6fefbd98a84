package install

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

const (
	mayNotApprove  = " may not approve in "
	takesApproval  = "takes approval: Required away from the stage of weight "
	mayNotEdit     = "but not edit it"
	mayNotLetGo    = "but not remove the finalizer weightedrollout.dev/routes"
	notInTheRole   = "cannot "
	disguiseRefuse = editor + mayNotApprove
)

// TestWhoMayGiveCommands goes beyond the table of orders: other texts, and edits beside them.
func TestWhoMayGiveCommands(t *testing.T) {
	bed := cluster(t)
	people(t, bed, "commands")
	create(t, bed, plan("guarded", "commands", required("10", "50")...), v1alpha1.OutcomeInProgress)
	create(t, bed, plan("open", "commands", v1alpha1.Stage{Weight: "10"}), v1alpha1.OutcomeInProgress)
	drop := func(wr *v1alpha1.WeightedRollout) { delete(wr.Annotations, v1alpha1.CommandAnnotation) }
	tests := []struct {
		name, user, rollout, refusal string
		edit                         func(*v1alpha1.WeightedRollout)
	}{
		{"retry, spread out", editor, "guarded", "", order("{\n  \"verb\": \"retry\",\n  \"id\": \"2024-11-05 10:00\",\n  \"attempt\": 1\n}\n")},
		{"taking a command back", editor, "guarded", "", drop},
		{"an empty command", editor, "guarded", mayNotApprove, order("")},
		{"a disguised finish without approvals", editor, "open", mayNotApprove, order(`{"id":"1","verb":"fini\u0073h","attempt":1}`)},
		{"a command without end", editor, "guarded", mayNotApprove, order(`{"id":"` + strings.Repeat("1", 200<<10) + `","verb":"retry","attempt":1}`)},
		{"approving a plan while its approvals come", editor, "open", mayNotApprove, func(wr *v1alpha1.WeightedRollout) {
			wr.Spec.Plan.Stages = required("10")
			order(commandText(v1alpha1.VerbSkip))(wr)
		}},
		{"approving a plan while its approvals go", editor, "guarded", mayNotApprove, func(wr *v1alpha1.WeightedRollout) {
			wr.Spec.Plan.Stages = []v1alpha1.Stage{{Weight: "10", Soak: "1s"}}
			order(commandText(v1alpha1.VerbSkip))(wr)
		}},
		{"approve", approver, "guarded", "", order(commandText(v1alpha1.VerbApprove))},
		{"edit beside a command that stands", editor, "guarded", "", func(wr *v1alpha1.WeightedRollout) { wr.Spec.Paused = true }},
	}
	for _, tc := range tests {
		t.Run(tc.user+": "+tc.name, func(t *testing.T) {
			key := client.ObjectKey{Namespace: "commands", Name: tc.rollout}
			expect(t, change(t.Context(), as(t, bed, tc.user), key, true, tc.edit), tc.refusal)
		})
	}
}

// TestApprovalsComeAfterAnOrder that nobody has carried out, since the mode is Observe.
func TestApprovalsComeAfterAnOrder(t *testing.T) {
	bed := cluster(t)
	people(t, bed, "later")
	guard := func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Plan.Stages, wr.Spec.Mode = required("10"), v1alpha1.ModeEnforce
	}
	both := func(wr *v1alpha1.WeightedRollout) {
		guard(wr)
		delete(wr.Annotations, v1alpha1.CommandAnnotation)
	}
	taken := &v1alpha1.CommandStatus{ID: "promote-1", Verb: "promote"}
	for name, tc := range map[string]struct {
		user, text string
		taken      *v1alpha1.CommandStatus
		edit       func(*v1alpha1.WeightedRollout)
		refusal    string
	}{
		"not-taken":      {editor, commandText(v1alpha1.VerbPromote), nil, guard, mayNotApprove},
		"taken-back":     {editor, commandText(v1alpha1.VerbPromote), nil, both, ""},
		"by-who-may":     {lead, commandText(v1alpha1.VerbPromote), nil, guard, ""},
		"harmless":       {editor, commandText(v1alpha1.VerbRetry), nil, guard, ""},
		"taken":          {editor, commandText(v1alpha1.VerbPromote), taken, guard, ""},
		"another-id":     {editor, `{"id":"a-promote-1","verb":"promote","attempt":2}`, taken, guard, mayNotApprove},
		"two-ids":        {editor, `{"id":"promote-1","verb":"promote","attempt":2,"id":"2"}`, taken, guard, mayNotApprove},
		"without-an-id":  {editor, `{"verb":"promote","attempt":2}`, taken, guard, mayNotApprove},
		"an-id-disguise": {editor, `{"id":"promote-1","verb":"promote","attempt":2,"ID":"2"}`, taken, guard, mayNotApprove},
	} {
		t.Run(name, func(t *testing.T) {
			wr := plan(name, "later", v1alpha1.Stage{Weight: "10"})
			wr.Spec.Mode = v1alpha1.ModeObserve
			order(tc.text)(wr)
			create(t, bed, wr, "")
			wr.Status.Outcome, wr.Status.Attempt, wr.Status.Command = v1alpha1.OutcomeInProgress, 1, tc.taken
			if err := bed.Client.Status().Update(t.Context(), wr); err != nil {
				t.Fatal(err)
			}
			expect(t, change(t.Context(), as(t, bed, tc.user), client.ObjectKeyFromObject(wr), false, tc.edit), tc.refusal)
		})
	}
}

// TestWhatAnApproverMayNot tries to use the verb patch for more than commands.
func TestWhatAnApproverMayNot(t *testing.T) {
	bed := cluster(t)
	people(t, bed, "approver")
	const name = "guarded"
	wr := plan(name, "approver", required("10")...)
	wr.Labels = map[string]string{"team": "shop"}
	wr.Annotations = map[string]string{"note": "of the editor"}
	create(t, bed, wr, v1alpha1.OutcomeInProgress)
	key, c := client.ObjectKeyFromObject(wr), as(t, bed, approver)
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "00000000-0000-0000-0000-000000000000"}
	tests := map[string]struct {
		edit    func(*v1alpha1.WeightedRollout)
		refusal string
	}{
		"spec":                  {func(wr *v1alpha1.WeightedRollout) { wr.Spec.Paused = true }, mayNotEdit},
		"plan":                  {func(wr *v1alpha1.WeightedRollout) { wr.Spec.Plan.Stages = required("20") }, mayNotEdit},
		"a label":               {func(wr *v1alpha1.WeightedRollout) { wr.Labels["team"] = "other" }, mayNotEdit},
		"no labels":             {func(wr *v1alpha1.WeightedRollout) { wr.Labels = nil }, mayNotEdit},
		"another annotation":    {annotate("other", "x"), mayNotEdit},
		"a changed annotation":  {annotate("note", "of the approver"), mayNotEdit},
		"a removed annotation":  {func(wr *v1alpha1.WeightedRollout) { delete(wr.Annotations, "note") }, mayNotEdit},
		"an owner that is gone": {func(wr *v1alpha1.WeightedRollout) { wr.OwnerReferences = []metav1.OwnerReference{owner} }, mayNotEdit},
		"spec behind an approval": {func(wr *v1alpha1.WeightedRollout) {
			wr.Spec.Paused = true
			order(commandText(v1alpha1.VerbApprove))(wr)
		}, mayNotEdit},
		"another finalizer": {func(wr *v1alpha1.WeightedRollout) { wr.Finalizers = append(wr.Finalizers, "example.com/x") }, ""},
		"an abort":          {annotate(v1alpha1.AbortAnnotation, "1"), ""},
	}
	for what, tc := range tests {
		t.Run(what, func(t *testing.T) {
			expect(t, change(t.Context(), c, key, true, tc.edit), tc.refusal)
		})
	}
	t.Run("by a whole update", func(t *testing.T) {
		expect(t, change(t.Context(), c, key, false, order(commandText(v1alpha1.VerbApprove))), notInTheRole+"update")
	})
	t.Run("deletion", func(t *testing.T) {
		expect(t, c.Delete(t.Context(), wr.DeepCopy()), notInTheRole+"delete")
	})
	t.Run("creation", func(t *testing.T) {
		expect(t, c.Create(t.Context(), plan("new", "approver", required("10")...)), notInTheRole+"create")
	})
	t.Run("the status", func(t *testing.T) {
		before := wr.DeepCopy()
		wr.Status.Outcome = v1alpha1.OutcomePromoted
		expect(t, c.Status().Patch(t.Context(), wr, client.MergeFrom(before)), notInTheRole+"patch")
	})
}

// TestApprovalsStayInAPlanUnderWay edits plans; a weight counts, not how it is written.
func TestApprovalsStayInAPlanUnderWay(t *testing.T) {
	bed := cluster(t)
	people(t, bed, "plans")
	soft := func(weights ...v1alpha1.Percent) []v1alpha1.Stage {
		stages := required(weights...)
		for i := range stages {
			stages[i].Approval = v1alpha1.ApprovalNone
		}
		return stages
	}
	const flying, over = v1alpha1.OutcomeInProgress, v1alpha1.OutcomeRolledBack
	tests := []struct {
		name, user    string
		outcome       v1alpha1.Outcome
		before, after []v1alpha1.Stage
		refusal       string
	}{
		{"softened", editor, flying, required("10", "50"), append(required("10"), soft("50")...), takesApproval + "50"},
		{"removed", editor, flying, required("10", "50"), required("10"), takesApproval + "50"},
		{"moved", editor, flying, required("1.5"), required("1.6"), takesApproval + "1.5"},
		{"all of them", editor, flying, required("10", "50"), soft("10", "50"), takesApproval + "10, 50"},
		{"default plan", editor, flying, required("10"), nil, takesApproval + "10"},
		{"while promoted", editor, v1alpha1.OutcomePromoted, required("10"), soft("10"), takesApproval + "10"},
		{"while returning", editor, v1alpha1.OutcomeReturning, required("10"), soft("10"), takesApproval + "10"},
		{"rolled back", editor, over, required("10"), soft("10"), ""},
		{"completed", editor, v1alpha1.OutcomeCompleted, required("10"), soft("10"), ""},
		{"not begun", editor, "", required("10"), soft("10"), ""},
		{"more of them", editor, flying, required("10"), required("10", "50"), ""},
		{"another stage", editor, flying, required("10"), append(required("10"), soft("20")...), ""},
		{"a number, and the same as text", editor, flying, required("1"), required("1.00"), ""},
		{"text, and the same as a number", editor, flying, required("1.0"), required("1"), ""},
		{"fewer places", editor, flying, required("1.50"), required("1.5"), ""},
		{"by an approver who may edit", lead, flying, required("10"), soft("10"), ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			name := regexp.MustCompile(`[^a-z]+`).ReplaceAllString(tc.name, "-")
			create(t, bed, plan(name, "plans", tc.before...), tc.outcome)
			err := change(t.Context(), as(t, bed, tc.user), client.ObjectKey{Namespace: "plans", Name: name}, false, func(wr *v1alpha1.WeightedRollout) {
				wr.Spec.Plan.Stages = tc.after
			})
			expect(t, err, tc.refusal)
		})
	}
}

// TestRefusalsCarryTheReason looks at one refusal as a whole: it is what a person reads.
func TestRefusalsCarryTheReason(t *testing.T) {
	bed := cluster(t)
	people(t, bed, "words")
	create(t, bed, plan("guarded", "words", required("10")...), v1alpha1.OutcomeInProgress)
	err := change(t.Context(), as(t, bed, editor), client.ObjectKey{Namespace: "words", Name: "guarded"}, true, order(commandText(v1alpha1.VerbApprove)))
	if !apierrors.IsForbidden(err) {
		t.Fatalf("%v, want it forbidden", err)
	}
	for _, part := range []string{
		"eve may not approve in words", "can take the place of an approval", "plainly written, these are open to you now: retry, resume;",
		"finish once the rollout is Promoted",
		"the verb update on weightedrollouts/approval", "weightedrollout-approver",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the refusal does not say %q:\n%v", part, err)
		}
	}
}

// TestTheLargestRolloutIsJudged gives a command to a rollout as large as the API allows:
// judging it must not cost more than the API server spends on a policy.
func TestTheLargestRolloutIsJudged(t *testing.T) {
	bed := cluster(t)
	people(t, bed, "large")
	var weights []v1alpha1.Percent
	for i := range 20 {
		weights = append(weights, v1alpha1.PercentFromBasisPoints(500*(i+1)))
	}
	wr := plan("large", "large", required(weights...)...)
	for i := range wr.Spec.Plan.Stages {
		wr.Spec.Plan.Stages[i].Soak = "1h"
	}
	wr.Spec.Health.Disabled = false
	limit := v1alpha1.Decimal("1")
	for i := range 20 {
		wr.Spec.Health.Checks = append(wr.Spec.Health.Checks, v1alpha1.Check{
			Name: fmt.Sprintf("check-%d", i), Query: strings.Repeat("x", 4096), Max: &limit,
		})
	}
	wr.Annotations, wr.Labels = map[string]string{}, map[string]string{}
	wr.Finalizers = []string{v1alpha1.Finalizer}
	for i := range 500 {
		wr.Annotations[fmt.Sprintf("example.com/note-%d", i)] = strings.Repeat("x", 400)
		wr.Labels[fmt.Sprintf("example.com/label-%d", i)] = strings.Repeat("x", 63)
	}
	create(t, bed, wr, v1alpha1.OutcomeInProgress)
	key := client.ObjectKeyFromObject(wr)
	expect(t, change(t.Context(), as(t, bed, approver), key, true, order(commandText(v1alpha1.VerbApprove))), "")
	expect(t, change(t.Context(), as(t, bed, editor), key, true, order(commandText(v1alpha1.VerbSkip))), mayNotApprove)
	expect(t, change(t.Context(), as(t, bed, approver), key, true, func(wr *v1alpha1.WeightedRollout) { wr.Spec.Paused = true }), mayNotEdit)
	expect(t, change(t.Context(), as(t, bed, editor), key, false, func(wr *v1alpha1.WeightedRollout) { wr.Spec.Paused = true }), "")
	letGo := func(wr *v1alpha1.WeightedRollout) { wr.Finalizers = nil }
	expect(t, change(t.Context(), as(t, bed, approver), key, true, letGo), mayNotLetGo)
	expect(t, change(t.Context(), as(t, bed, editor), key, true, letGo), "")
}
