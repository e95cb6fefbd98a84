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
		"pause":   {fmt.Sprintf(`{`+bound+`,"spec":{"paused":true}}`, ""), "the canary stays at 20 percent"},
		"resume":  {fmt.Sprintf(`{`+bound+`,"spec":{"paused":false}}`, ""), "goes on from 20 percent"},
		"approve": {ordered("approve", `,"stage":0`), "stage 1/2 of attempt 2 may end"},
		"promote": {ordered("promote", ""), "as fast as ramp and gates allow"},
		"abort":   {written(v1alpha1.AbortAnnotation, "2"), "stable gets all traffic"},
		"retry":   {ordered("retry", ""), "a new attempt starts at 0 percent"},
		"skip":    {ordered("skip", `,"stage":0`), "ends as soon as its gate passes"},
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
	policy := failure(http.StatusForbidden, metav1.StatusReasonForbidden, `ValidatingAdmissionPolicy 'approvals' with binding 'approvals' denied request: no`)
	right := failure(http.StatusForbidden, metav1.StatusReasonForbidden, `User "me" cannot patch`)
	for name, test := range map[string]struct {
		args    []string
		after   func(map[string]any)
		refuses *metav1.Status
		code    int
		says    string
	}{
		"ignored":               {[]string{"skip", "checkout"}, ignores, nil, 1, "the controller has ignored it: it is for attempt 1"},
		"no controller":         {[]string{"skip", "checkout", "--timeout", "50ms"}, nil, nil, 2, "the controller has not taken it within 50ms"},
		"not waited for":        {[]string{"skip", "checkout", "--wait=false"}, nil, nil, 0, ""},
		"a policy":              {[]string{"skip", "checkout"}, nil, &policy, 1, "a policy of the cluster does not let you skip; for approvals it takes the role weightedrollout-approver"},
		"no right":              {[]string{"skip", "checkout"}, nil, &right, 1, "you may not skip: have the role weightedrollout-approver or weightedrollout-editor"},
		"no right to edit":      {[]string{"pause", "checkout"}, nil, &right, 1, "you may not pause: have the role weightedrollout-editor bound"},
		"the attempt's own end": {[]string{"abort", "checkout", "--yes"}, func(wr map[string]any) { set(wr, "Completed", "status", "outcome") }, nil, 1, "the attempt has ended before"},
		"a newer attempt":       {[]string{"abort", "checkout", "--yes"}, func(wr map[string]any) { set(wr, int64(3), "status", "attempt") }, nil, 1, "this is attempt 3"},
	} {
		t.Run(name, func(t *testing.T) {
			a := inCluster(t, map[string]any{rolloutPath: object(t, healthyRollout)})
			a.after, a.refuses = test.after, test.refuses
			r := run(t, "", test.args...)
			if r.code != test.code || !strings.Contains(r.errOut, test.says) {
				t.Errorf("exit code %d, %q; want %d with %q", r.code, r.errOut, test.code, test.says)
			}
		})
	}
}
