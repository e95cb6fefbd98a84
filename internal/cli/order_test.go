package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// obeys plays a controller that carries every order out.
func obeys(wr map[string]any) {
	o := &unstructured.Unstructured{Object: wr}
	set(wr, o.GetGeneration(), "status", "observedGeneration")
	var c v1alpha1.Command
	if text := o.GetAnnotations()[v1alpha1.CommandAnnotation]; text != "" && json.Unmarshal([]byte(text), &c) == nil {
		set(wr, map[string]any{"id": c.ID, "verb": string(c.Verb), "accepted": true, "message": "carried out"}, "status", "command")
	}
	if o.GetAnnotations()[v1alpha1.AbortAnnotation] != "" {
		set(wr, "RolledBack", "status", "phase")
		set(wr, "RolledBack", "status", "outcome")
		set(wr, "Aborted", "status", "outcomeReason")
	}
}

// standing returns a rollout in which an order makes sense.
func standing(t *testing.T, verb string) map[string]any {
	t.Helper()
	wr := object(t, healthyRollout)
	switch verb {
	case "resume":
		set(wr, true, "spec", "paused")
	case "approve":
		set(wr, "AwaitingApproval", "status", "phase")
		set(wr, []any{map[string]any{"weight": int64(20), "soak": "30m", "approval": "Required"}}, "spec", "plan", "stages")
	case "retry":
		set(wr, "RolledBack", "status", "outcome")
		set(wr, "RolledBack", "status", "phase")
	case "finish":
		set(wr, "Promoted", "status", "outcome")
		set(wr, int64(100), "status", "share", "desired")
	}
	return wr
}

var anID = regexp.MustCompile(`kubectl-[A-Z0-9]+`)

// TestOrders: what each order writes, that it is bound to the attempt, the stage and the
// object that was seen, and that its effect is waited for.
func TestOrders(t *testing.T) {
	const bound = `"metadata":{%s"resourceVersion":"100","uid":"the-rollout"}`
	written := func(annotation, value string) string {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`{`+bound+`}`, fmt.Sprintf(`"annotations":{%q:%s},`, annotation, text))
	}
	ordered := func(verb, more string) string {
		return written(v1alpha1.CommandAnnotation, `{"id":"ID","verb":"`+verb+`","attempt":2`+more+`}`)
	}
	for verb, test := range map[string]struct{ patch, says string }{
		"pause":   {fmt.Sprintf(`{`+bound+`,"spec":{"paused":true}}`, ""), "the canary will stay at 20 percent"},
		"resume":  {fmt.Sprintf(`{`+bound+`,"spec":{"paused":false}}`, ""), "will go on from 20 percent"},
		"approve": {ordered("approve", `,"stage":0`), "stage 1/2 of attempt 2 will end"},
		"promote": {ordered("promote", ""), "as fast as ramp and gates allow"},
		"abort":   {written(v1alpha1.AbortAnnotation, "2"), "stable will get all traffic"},
		"retry":   {ordered("retry", ""), "a new attempt will start at 0 percent"},
		"skip":    {ordered("skip", `,"stage":0`), "will end as soon as its gate passes"},
		"finish":  {ordered("finish", ""), `be sure that it runs revision "2.4.1"`},
	} {
		t.Run(verb, func(t *testing.T) {
			a := inCluster(t, map[string]any{rolloutPath: standing(t, verb)})
			a.after = obeys
			args := []string{verb, "wr/checkout"}
			if verb == "abort" || verb == "promote" || verb == "finish" {
				args = append(args, "--yes")
			}
			r := run(t, "", args...)
			if r.code != 0 || !strings.Contains(r.errOut, test.says) || !strings.HasPrefix(r.out, verb+": ") {
				t.Errorf("exit code %d, %q, %q", r.code, r.out, r.errOut)
			}
			got := a.taken()
			for i := range got {
				got[i] = anID.ReplaceAllString(got[i], "ID")
			}
			if diff := cmp.Diff([]string{test.patch}, got); diff != "" {
				t.Errorf("what is written (-want +got):\n%s", diff)
			}
		})
	}
}

// TestResumeOfAStop: what onUnhealthy.action Pause has stopped takes a command; a pause
// of the spec is taken away in the same write.
func TestResumeOfAStop(t *testing.T) {
	wr := object(t, healthyRollout)
	set(wr, map[string]any{"at": "2026-03-02T09:00:00.000000Z", "message": "slow"}, "status", "pause")
	set(wr, true, "spec", "paused")
	a := inCluster(t, map[string]any{rolloutPath: wr})
	a.after = obeys
	r := run(t, "", "resume", "checkout")
	if got := a.taken(); r.code != 0 || len(got) != 1 || !strings.Contains(got[0], `\"verb\":\"resume\"`) || !strings.Contains(got[0], `"paused":false`) {
		t.Errorf("exit code %d, %s, written %q", r.code, r.errOut, got)
	}
}

// TestOrdersThatAreNotWritten: nothing is written where it makes no sense, where nobody
// has agreed, or onto something else than what was seen.
func TestOrdersThatAreNotWritten(t *testing.T) {
	movedOn := func(wr map[string]any) { set(wr, int64(1), "status", "stage", "index") }
	for name, test := range map[string]struct {
		args   []string
		change func(map[string]any)
		before func(map[string]any)
		says   string
	}{
		"nothing waits for approval":  {args: []string{"approve", "checkout"}, says: "stage 1/2 waits for no approval"},
		"nobody to ask back":          {args: []string{"abort", "checkout"}, says: "there is no terminal to ask at: say --yes"},
		"no name":                     {args: []string{"skip"}, says: "give the name of one WeightedRollout"},
		"another kind":                {args: []string{"skip", "deployment/checkout"}, says: "is no WeightedRollout"},
		"a name that is none":         {args: []string{"skip", "../../nodes"}, says: "is no WeightedRollout"},
		"another stage than said":     {args: []string{"skip", "checkout", "--stage", "2/2"}, says: "the rollout is in stage 1/2, not 2/2, so nothing was written"},
		"another attempt than said":   {args: []string{"abort", "checkout", "--yes", "--attempt", "1"}, says: "the rollout is in attempt 2, not 1, so nothing was written"},
		"a stage after the last one":  {args: []string{"approve", "checkout", "--stage", "1/2"}, change: func(wr map[string]any) { unstructured.RemoveNestedField(wr, "status", "stage") }, says: "the rollout is in no stage"},
		"a stage that is none":        {args: []string{"skip", "checkout", "--stage", "2"}, says: `--stage "2" is no stage`},
		"an attempt that is none":     {args: []string{"skip", "checkout", "--attempt", "0"}, says: "--attempt 0 is no attempt"},
		"no stage to bind it to":      {args: []string{"abort", "checkout", "--yes", "--stage", "1/2"}, says: "unknown flag: --stage"},
		"no attempt to bind it to":    {args: []string{"pause", "checkout", "--attempt", "2"}, says: "unknown flag: --attempt"},
		"no such rollout":             {args: []string{"skip", "other"}, says: `there is no WeightedRollout "other"`},
		"no time":                     {args: []string{"skip", "checkout", "--timeout", "0s"}, says: "is not above 0"},
		"groups of nobody":            {args: []string{"skip", "checkout", "--as-group", "admins"}, says: "--as-group needs --as"},
		"another stage by then":       {args: []string{"skip", "checkout"}, before: movedOn, says: "moved on meanwhile"},
		"another attempt by then":     {args: []string{"abort", "checkout", "--yes"}, before: func(wr map[string]any) { set(wr, int64(3), "status", "attempt") }, says: "moved on meanwhile"},
		"another object by then":      {args: []string{"pause", "checkout"}, before: func(wr map[string]any) { set(wr, "another", "metadata", "uid") }, says: "moved on meanwhile"},
		"no sense any more by then":   {args: []string{"skip", "checkout"}, before: func(wr map[string]any) { set(wr, true, "status", "stage", "skipped") }, says: "skipped already"},
		"somebody who writes forever": {args: []string{"skip", "checkout"}, before: func(map[string]any) {}, says: "somebody else keeps writing"},
		"a command before it": {args: []string{"skip", "checkout"}, change: func(wr map[string]any) {
			set(wr, `{"id":"1","verb":"promote","attempt":2}`, "metadata", "annotations", v1alpha1.CommandAnnotation)
		}, says: `has not taken the command "promote" before it`},
	} {
		t.Run(name, func(t *testing.T) {
			wr := object(t, healthyRollout)
			if test.change != nil {
				test.change(wr)
			}
			a := inCluster(t, map[string]any{rolloutPath: wr})
			a.before = test.before
			r := run(t, "", test.args...)
			if got := a.taken(); r.code != 1 || !strings.Contains(r.errOut, test.says) || len(got) > 0 {
				t.Errorf("exit code %d, %q, written %q; want %q", r.code, r.errOut, got, test.says)
			}
		})
	}
}

// TestApproveTwice: the same line given once more approves no other stage.
func TestApproveTwice(t *testing.T) {
	wr := standing(t, "approve")
	set(wr, []any{map[string]any{"weight": int64(20), "approval": "Required"}, map[string]any{"weight": int64(50), "approval": "Required"}}, "spec", "plan", "stages")
	set(wr, map[string]any{"index": int64(0), "position": "1/3"}, "status", "stage")
	a := inCluster(t, map[string]any{rolloutPath: wr})
	a.after = func(wr map[string]any) {
		obeys(wr)
		set(wr, map[string]any{"index": int64(1), "position": "2/3"}, "status", "stage")
		set(wr, "Progressing", "status", "phase")
	}
	line := []string{"approve", "checkout", "--attempt", "2", "--stage", "1/3"}
	if r := run(t, "", line...); r.code != 0 || len(a.taken()) != 1 {
		t.Fatalf("exit code %d, %s, written %q", r.code, r.errOut, a.taken())
	}
	for _, again := range [][]string{line, {"approve", "checkout"}} {
		if r := run(t, "", again...); r.code != 1 || len(a.taken()) != 1 {
			t.Errorf("%q: exit code %d, %s, written %q", again, r.code, r.errOut, a.taken())
		}
	}
	if r := run(t, "", "approve", "checkout", "--stage", "2/3"); r.code != 0 || len(a.taken()) != 2 {
		t.Errorf("before it is asked for: exit code %d, %s, written %q", r.code, r.errOut, a.taken())
	}
}

// TestForbidden: who may not give an order is told once what it takes.
func TestForbidden(t *testing.T) {
	const sentence = "this plan has a stage with approval: Required: ask somebody with the role weightedrollout-approver"
	policy := failure(http.StatusForbidden, metav1.StatusReasonForbidden, `weightedrollouts.weightedrollout.dev "checkout" is forbidden: ValidatingAdmissionPolicy 'approvals' with binding 'ours' denied request: `+sentence)
	invalid := failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `ValidatingAdmissionPolicy 'others' with binding 'b' denied request: failed expression: false`)
	hook := failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, `admission webhook "freeze.example" denied the request: no changes today`)
	silent := failure(http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "freeze.example" denied the request without explanation`)
	right := failure(http.StatusForbidden, metav1.StatusReasonForbidden, `User "me" cannot patch`)
	const approver, either, editor = "have the role weightedrollout-approver bound", "have the role weightedrollout-approver or weightedrollout-editor bound", "have the role weightedrollout-editor bound"
	for name, test := range map[string]struct {
		args     []string
		refuses  metav1.Status
		approval bool
		says     string
	}{
		"a policy":                    {[]string{"skip"}, policy, false, `error: the policy "approvals" refuses skip: ` + sentence + "\n"},
		"a policy that is short":      {[]string{"skip"}, invalid, false, `error: the policy "others" refuses skip: failed expression: false` + "\n"},
		"a webhook":                   {[]string{"pause"}, hook, false, `error: the admission webhook "freeze.example" refuses pause: no changes today` + "\n"},
		"a webhook that is short":     {[]string{"pause"}, silent, false, `refuses pause: without explanation` + "\n"},
		"skip":                        {[]string{"skip"}, right, false, either},
		"promote":                     {[]string{"promote", "--yes"}, right, false, either},
		"skip of a plan to approve":   {[]string{"skip"}, right, true, approver},
		"approve":                     {[]string{"approve"}, right, true, approver},
		"abort":                       {[]string{"abort", "--yes"}, right, true, editor},
		"pause":                       {[]string{"pause"}, right, true, editor},
		"an error of the API server":  {[]string{"pause"}, failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "no"), false, `write pause onto the WeightedRollout "checkout"`},
		"a rollout that has gone now": {[]string{"pause"}, failure(http.StatusNotFound, metav1.StatusReasonNotFound, "gone"), false, "the cluster does not serve this kind"},
	} {
		t.Run(name, func(t *testing.T) {
			wr := standing(t, "")
			if test.approval {
				wr = standing(t, "approve")
			}
			a := inCluster(t, map[string]any{rolloutPath: wr})
			a.refuses = &test.refuses
			r := run(t, "", append([]string{test.args[0], "checkout"}, test.args[1:]...)...)
			if r.code != 1 || !strings.Contains(r.errOut, test.says) || strings.Count(r.errOut, "weightedrollout-approver") > 1 {
				t.Errorf("exit code %d, %q; want %q", r.code, r.errOut, test.says)
			}
		})
	}
}

// TestOrderBesideAnotherWriter: a status that was written meanwhile is no reason not to
// give the order, and a command that has been taken is none either.
func TestOrderBesideAnotherWriter(t *testing.T) {
	wr := object(t, healthyRollout)
	set(wr, `{"id":"1","verb":"promote","attempt":2}`, "metadata", "annotations", v1alpha1.CommandAnnotation)
	set(wr, map[string]any{"id": "1", "accepted": false}, "status", "command")
	a := inCluster(t, map[string]any{rolloutPath: wr})
	a.before = func(map[string]any) { a.before = nil } // once
	a.after = obeys
	if r := run(t, "", "skip", "checkout"); r.code != 0 || len(a.taken()) != 1 {
		t.Errorf("exit code %d, %s, written %q", r.code, r.errOut, a.taken())
	}
}

// TestWhatCameOfAnOrder: exit codes and words where it is not carried out.
func TestWhatCameOfAnOrder(t *testing.T) {
	ignores := func(wr map[string]any) {
		obeys(wr)
		set(wr, false, "status", "command", "accepted")
		set(wr, "it is for attempt 1", "status", "command", "message")
	}
	for name, test := range map[string]struct {
		args  []string
		after func(map[string]any)
		code  int
		says  string
	}{
		"ignored":               {[]string{"skip", "checkout"}, ignores, 1, "the controller has ignored it: it is for attempt 1"},
		"no controller":         {[]string{"skip", "checkout", "--timeout", "50ms"}, nil, 2, "the controller has not taken it within 50ms"},
		"not waited for":        {[]string{"skip", "checkout", "--wait=false"}, nil, 0, ""},
		"the attempt's own end": {[]string{"abort", "checkout", "--yes"}, func(wr map[string]any) { set(wr, "Completed", "status", "outcome") }, 1, "the attempt has ended before"},
		"a newer attempt":       {[]string{"abort", "checkout", "--yes"}, func(wr map[string]any) { set(wr, int64(3), "status", "attempt") }, 1, "this is attempt 3"},
	} {
		t.Run(name, func(t *testing.T) {
			a := inCluster(t, map[string]any{rolloutPath: object(t, healthyRollout)})
			a.after = test.after
			r := run(t, "", test.args...)
			if r.code != test.code || !strings.Contains(r.errOut, test.says) {
				t.Errorf("exit code %d, %q; want %d with %q", r.code, r.errOut, test.code, test.says)
			}
		})
	}
}
