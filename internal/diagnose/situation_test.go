package diagnose

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

var noon = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC) // a Monday

// rollout is one with a condition that is True.
func rollout(kind, reason, message string, change ...func(*v1alpha1.WeightedRollout)) *v1alpha1.WeightedRollout {
	wr := &v1alpha1.WeightedRollout{}
	wr.Status.Phase = v1alpha1.PhaseProgressing
	wr.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message},
		{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message},
	}
	for _, f := range change {
		f(wr)
	}
	return wr
}

func micro(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(noon.Add(d))) }

func TestSituate(t *testing.T) {
	soaking := func(change func(*v1alpha1.WeightedRollout)) *v1alpha1.WeightedRollout {
		return rollout(v1alpha1.ConditionReconciling, v1alpha1.ReasonSoaking, "it soaks", change)
	}
	with := func(numbers ...Number) Situation {
		return Situation{Phase: "Progressing", Verdict: OK, Reason: "Soaking", Says: "it soaks", Numbers: numbers}
	}
	problem := func(s Situation) Situation {
		s.Verdict = Problem
		return s
	}
	for name, c := range map[string]struct {
		wr   *v1alpha1.WeightedRollout
		want Situation
	}{
		"nothing said": {&v1alpha1.WeightedRollout{}, Situation{
			Phase: "Pending", Verdict: Problem, Says: "the controller has said nothing about it yet", Do: "look whether the controller runs, and whether it may read this namespace",
		}},
		"under way": {soaking(func(*v1alpha1.WeightedRollout) {}), with()},
		"approval": {
			rollout(v1alpha1.ConditionReconciling, v1alpha1.ReasonAwaitingApproval, "stage 1/2 waits"),
			Situation{Phase: "Progressing", Verdict: OK, Reason: "AwaitingApproval", Says: "stage 1/2 waits", Do: "give the command approve"},
		},
		"stalled": {
			rollout(v1alpha1.ConditionStalled, v1alpha1.ReasonRouteMissing, "no route"),
			Situation{Phase: "Progressing", Verdict: Problem, Reason: "RouteMissing", Says: "no route", Do: "create the route, or correct spec.routes"},
		},
		"an older spec": {
			soaking(func(wr *v1alpha1.WeightedRollout) { wr.Generation = 2 }),
			Situation{Phase: "Progressing", Verdict: OK, Reason: "Soaking", Says: "the controller has not taken in the last change of the spec; before, it said: it soaks", Do: "wait a moment; if it stays so, look whether the controller runs"},
		},
		"unwell": {soaking(func(wr *v1alpha1.WeightedRollout) {
			wr.Status.Conditions = append(wr.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionFalse, Reason: "Breach", Message: "9 of 9 failed"})
		}), problem(with(Number{"health", "Breach: 9 of 9 failed"}))},
		"place": {soaking(func(wr *v1alpha1.WeightedRollout) {
			wr.Status.Stage = &v1alpha1.StageStatus{Position: "2/3", Weight: "10"}
			wr.Status.Share = v1alpha1.ShareStatus{Desired: new(v1alpha1.Percent("7")), ConfirmedAt: micro(-90 * time.Second)}
			wr.Status.Warmup = &v1alpha1.WarmupStatus{Reason: v1alpha1.ColdBreak}
			wr.Status.Breaker = &v1alpha1.BreakerStatus{Trips: 2, Message: "9 of 9 failed"}
			wr.Status.NextTransitionTime = new(metav1.NewTime(noon.Add(time.Hour)))
		}), with(Number{"stage", "2/3, 10 percent"}, Number{"share", "7 percent, confirmed 1m30s ago"}, Number{"warm-up", "the canary is cold (Break)"},
			Number{"breaks", "2: 9 of 9 failed"}, Number{"not before", "2026-03-02T13:00:00Z, in 1h0m0s"})},
		"others": {soaking(func(wr *v1alpha1.WeightedRollout) {
			wr.Status.Share = v1alpha1.ShareStatus{Desired: new(v1alpha1.Percent("7"))}
			wr.Status.Contention = &v1alpha1.ContentionStatus{Manager: "argocd", Count: 4}
			wr.Status.Capacity = &v1alpha1.CapacityStatus{Replicas: 10}
			wr.Status.Routes = []v1alpha1.RouteStatus{{Kind: "HTTPRoute", Name: "ok"}, {Kind: "HTTPRoute", Name: "web", Reason: "NotAccepted", Message: "no listener"}}
			wr.Status.Command = &v1alpha1.CommandStatus{Verb: "approve", Message: "for another stage"}
		}), with(Number{"share", "7 percent, not confirmed by the gateways yet"}, Number{"contention", "argocd has changed the weights, 4 times in a row"},
			Number{"capacity", "all of the traffic takes 10 replicas"}, Number{"route", "HTTPRoute web: NotAccepted: no listener"}, Number{"command", "approve was ignored: for another stage"})},
		"window closed": {soaking(func(wr *v1alpha1.WeightedRollout) {
			wr.Spec.Plan.Windows = []v1alpha1.Window{{Days: []v1alpha1.Day{"Tue"}, From: "09:00", To: "17:00"}}
		}), with(Number{"windows", "closed until 2026-03-03T09:00:00Z (Tue 09:00-17:00 UTC)"})},
		"window open": {soaking(func(wr *v1alpha1.WeightedRollout) {
			wr.Spec.Plan.Windows = []v1alpha1.Window{{From: "09:00", To: "17:00"}}
		}), with(Number{"windows", "open until 2026-03-02T17:00:00Z (every day 09:00-17:00 UTC)"})},
		"window wrong": {soaking(func(wr *v1alpha1.WeightedRollout) {
			wr.Spec.Plan.Windows = []v1alpha1.Window{{Days: []v1alpha1.Day{"Doomsday"}}}
		}), with(Number{"windows", `spec.plan.windows[0].days: "Doomsday" is no day of the week: write Mon, Tue, Wed, Thu, Fri, Sat or Sun`})},
		"deadline": {soaking(func(wr *v1alpha1.WeightedRollout) {
			wr.Spec.ProgressDeadline = "2h"
			wr.Status.Progress = &v1alpha1.ProgressStatus{WaitedFor: "30m", WaitingSince: micro(-45 * time.Minute)}
		}), with(Number{"deadline", "45m0s of 2h left; it runs"})},
		"deadline over": {soaking(func(wr *v1alpha1.WeightedRollout) {
			wr.Spec.ProgressDeadline = "1h"
			wr.Status.Progress = &v1alpha1.ProgressStatus{WaitedFor: "90m"}
		}), with(Number{"deadline", "0s of 1h left; it stands still"})},
		"degraded": {soaking(func(wr *v1alpha1.WeightedRollout) {
			wr.Status.Progress = &v1alpha1.ProgressStatus{WaitingSince: micro(-45 * time.Minute)}
		}), with(Number{"deadline", "3h15m0s of 4h left; it runs"})},
		"never degraded": {soaking(func(wr *v1alpha1.WeightedRollout) {
			highest := v1alpha1.Percent("5")
			wr.Status.Progress = &v1alpha1.ProgressStatus{Highest: &highest}
		}), with()},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Situate(c.wr, noon)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Every reason that a person has to do something about comes with what to do. The
// reasons are read from the API, in the groups that it has them in.
func TestEveryReasonHasAdvice(t *testing.T) {
	passes := []string{
		v1alpha1.ReasonStarting, v1alpha1.ReasonRamping, v1alpha1.ReasonWarmingUp, v1alpha1.ReasonSoaking, v1alpha1.ReasonReturning, v1alpha1.ReasonDeleting,
		v1alpha1.ReasonCompleted, v1alpha1.ReasonSuperseded, v1alpha1.ReasonStableRevision,
	}
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/v1alpha1/conditions.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		about := strings.TrimSpace(group.Doc.Text())
		if !ok || !strings.HasPrefix(about, "Reasons of Reconciling") && !strings.HasPrefix(about, "Reasons of Stalled") && !strings.HasPrefix(about, "Reasons for the end") {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			reason := strings.Trim(value.Values[0].(*ast.BasicLit).Value, `"`)
			checked++
			if (Advice(reason) == "") != slices.Contains(passes, reason) {
				t.Errorf("the advice about %s is %q", reason, Advice(reason))
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d reasons were found", checked)
	}
}
