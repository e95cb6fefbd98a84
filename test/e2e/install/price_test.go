package install

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

const (
	// budget is what one write may cost in the API server's own unit, in which it spends
	// up to a million on one expression; the questions for a right, which have a price of
	// their own, are on top. Loops are what costs: one turn over a map is about ten, and
	// takes the longer the more turns there were before.
	budget      = 30_000
	perQuestion = 350_000
	// many is as many annotations as cost the API server seconds when they were looped over.
	many = 30_000

	controllers = "the controller"
)

// rightsOf are those on weightedrollouts that the policy asks for.
var rightsOf = map[string][]string{
	editor:      {"update"},
	approver:    {"update approval"},
	lead:        {"update", "update approval"},
	controllers: {"patch status"},
}

// judge is the policy as the API server has it.
func judge(t *testing.T) validating.Validator {
	t.Helper()
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	if err := yaml.UnmarshalStrict([]byte(readFile(t, root+"/config/approval/policy.yaml")), &policy); err != nil {
		t.Fatal(err)
	}
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	withAuthorizer := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range policy.Spec.Variables {
		variable := &validating.Variable{Name: v.Name, Expression: v.Expression}
		if err := compiler.CompileAndStoreVariable(variable, withAuthorizer, environment.StoredExpressions).Error; err != nil {
			t.Fatalf("variable %s: %v", v.Name, err)
		}
	}
	var conditions, validations, messages []cel.ExpressionAccessor
	for _, c := range policy.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&c))
	}
	for _, v := range policy.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	compile := func(all []cel.ExpressionAccessor, declarations cel.OptionalVariableDeclarations) cel.ConditionEvaluator {
		compiled := compiler.CompileCondition(all, declarations, environment.StoredExpressions)
		for _, err := range compiled.CompilationErrors() {
			t.Fatal(err)
		}
		return compiled
	}
	var matcher matchconditions.Matcher
	if len(conditions) > 0 {
		matcher = matchconditions.NewMatcher(compile(conditions, withAuthorizer), policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	}
	return validating.NewValidator(compile(validations, withAuthorizer), matcher, compile(nil, withAuthorizer),
		compile(messages, cel.OptionalVariableDeclarations{}), policy.Spec.FailurePolicy, nil)
}

// large is a rollout under way with as much as the API allows of what the policy compares.
func large(annotations int) *v1alpha1.WeightedRollout {
	var weights []v1alpha1.Percent
	for i := range 20 {
		weights = append(weights, v1alpha1.PercentFromBasisPoints(500*(i+1)))
	}
	wr := plan("large", "price", required(weights...)...)
	wr.Annotations, wr.Labels = map[string]string{}, map[string]string{}
	wr.Finalizers = []string{v1alpha1.Finalizer}
	for i := range annotations {
		wr.Annotations[fmt.Sprintf("n%d", i)] = ""
		if i < 1000 {
			wr.Labels[fmt.Sprintf("n%d", i)] = strings.Repeat("x", 63)
		}
	}
	wr.Status.Outcome, wr.Status.Attempt = v1alpha1.OutcomeInProgress, 1
	return wr
}

// refusal is what the policy says to an edit by somebody, within the budget; empty if it
// lets the edit pass.
func refusal(t *testing.T, policy validating.Validator, who string, before *v1alpha1.WeightedRollout, edit func(*v1alpha1.WeightedRollout)) string {
	t.Helper()
	after := before.DeepCopy()
	edit(after)
	kind := v1alpha1.GroupVersion.WithKind("WeightedRollout")
	attributes := admission.NewAttributesRecord(asUnstructured(t, after), asUnstructured(t, before), kind, before.Namespace, before.Name,
		v1alpha1.GroupVersion.WithResource("weightedrollouts"), "", admission.Update, &metav1.UpdateOptions{}, false, &user.DefaultInfo{Name: who})
	versioned, err := admission.NewVersionedAttributes(attributes, kind, nil)
	if err != nil {
		t.Fatal(err)
	}
	asked := int64(0)
	rights := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetSubresource() != "status" { // the condition, which has a budget of its own
			asked++
		}
		for _, right := range rightsOf[who] {
			if right == strings.TrimSpace(a.GetVerb()+" "+a.GetSubresource()) && a.GetNamespace() == before.Namespace {
				return authorizer.DecisionAllow, "", nil
			}
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	validate := func(budget int64) []validating.PolicyDecision {
		asked = 0
		return policy.Validate(t.Context(), attributes.GetResource(), versioned, nil, nil, budget, rights).Decisions
	}
	validate(celconfig.RuntimeCELCostBudget)
	var refusals []string
	for _, d := range validate(budget + asked*perQuestion) {
		if d.Action != validating.ActionAdmit {
			refusals = append(refusals, d.Message)
		}
	}
	return strings.Join(refusals, "; ")
}

// TestPolicyIsCheap holds what a write costs with as many annotations as there can be, and
// that neither the controller nor an abort is ever refused for their number.
func TestPolicyIsCheap(t *testing.T) {
	policy := judge(t)
	abort := annotate(v1alpha1.AbortAnnotation, "1")
	pause := func(wr *v1alpha1.WeightedRollout) { wr.Spec.Paused = true }
	letGo := func(wr *v1alpha1.WeightedRollout) { wr.Finalizers = nil }
	hold := func(wr *v1alpha1.WeightedRollout) { wr.Finalizers = append(wr.Finalizers, "example.com/x") }
	note := func(wr *v1alpha1.WeightedRollout) { wr.Annotations["n1"] = "x" }
	swap := func(wr *v1alpha1.WeightedRollout) {
		delete(wr.Annotations, "n1")
		abort(wr)
	}
	const tooMany = "more than 1000 annotations"
	for _, tc := range []struct {
		who, name   string
		annotations int
		edit        func(*v1alpha1.WeightedRollout)
		refusal     string
	}{
		{controllers, "lets go", many, letGo, ""},
		{controllers, "holds", many, hold, ""},
		{controllers, "aborts", many, abort, ""},
		{editor, "aborts", many, abort, ""},
		{editor, "pauses", many, pause, ""},
		{editor, "lets go", many, letGo, ""},
		{editor, "annotates", many, note, ""},
		{editor, "approves", many, order(commandText(v1alpha1.VerbApprove)), mayNotApprove},
		{lead, "approves", many, order(commandText(v1alpha1.VerbApprove)), ""},
		{approver, "aborts", many, abort, ""},
		{approver, "holds", many, hold, ""},
		{approver, "lets go", many, letGo, mayNotLetGo},
		{approver, "pauses", many, pause, mayNotEdit},
		{approver, "annotates", many, note, mayNotEdit},
		{approver, "aborts for another annotation", many, swap, mayNotEdit},
		{approver, "approves", many, order(commandText(v1alpha1.VerbApprove)), tooMany},
		{approver, "approves", 998, order(commandText(v1alpha1.VerbApprove)), ""},
		{approver, "aborts", 998, abort, ""},
		{approver, "annotates", 998, note, mayNotEdit},
	} {
		t.Run(fmt.Sprintf("%s %s of %d", tc.who, tc.name, tc.annotations), func(t *testing.T) {
			got := refusal(t, policy, tc.who, large(tc.annotations), tc.edit)
			if (tc.refusal == "") != (got == "") || !strings.Contains(got, tc.refusal) {
				t.Errorf("%q, want a refusal with %q", got, tc.refusal)
			}
		})
	}
}
