package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/cli/schedule"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// TestReturn shows how long stable takes to get all traffic back after finish, and
// that the controller takes as long.
func TestReturn(t *testing.T) {
	for _, test := range []struct {
		name, fields string
		rps          float64
		steps        int
		duration     time.Duration
	}{
		{"the default plan", ``, 100, 25, 50 * time.Minute},
		{"at once", `ramp: {minIncrease: 100, maxIncrease: 100}`, 100, 1, 2 * time.Minute},
		{"nothing measured", `health: {disabled: true}`, 100, 25, 24 * time.Minute},
		// 1 % of 5 requests per second are 3 in a window, so that 20 take 7 windows.
		{"little traffic", `ramp: {minIncrease: 1, maxIncrease: 100, maxChangePercent: 100}`, 5, 8, (8 + 5 + 3 + 2 + 2 + 2 + 2 + 2) * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			wr := decode(t, test.fields)
			s, err := schedule.For(wr, schedule.Options{RPS: test.rps, ErrorPercent: 0.1})
			if err != nil {
				t.Fatal(err)
			}
			if s.Return == nil || s.Return.Stuck != "" {
				t.Fatalf("stuck %q, return %+v", s.Stuck, s.Return)
			}
			if got := time.Duration(s.Return.Duration); got != test.duration || s.Return.Steps != test.steps {
				t.Errorf("it takes %s in %d steps, want %s in %d", got, s.Return.Steps, test.duration, test.steps)
			}
			finish := finishAt(wr, s)
			r, err := simulate.Run(&wr.Spec, &simulate.Scenario{
				Gateway: simulate.Gateway{Delay: "0s"},
				Events:  []simulate.Happening{{At: v1alpha1.Duration(finish.String()), Command: simulate.Command(v1alpha1.VerbFinish)}},
			}, simulate.Options{Exact: true, Approve: true, RPS: test.rps})
			if err != nil {
				t.Fatal(err)
			}
			if at := told(r, v1alpha1.ReasonCompleted); at == nil || time.Duration(*at)-finish != test.duration {
				t.Errorf("the controller completes at %v, and finish was given at %s", at, finish)
			}
		})
	}
}

// TestReturnByItself shows where no command is needed for the return.
func TestReturnByItself(t *testing.T) {
	const stable, canary = `stable: {service: a, port: 80, workload: {name: a}}`, `canary: {service: b, port: 80, workload: {name: b}}`
	for fields, want := range map[string]string{
		``: "the finish command",
		stable + `, canary: {service: b, port: 80}`: "the finish command",
		stable + `, canary: {service: b, port: 80, workload: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: b}}`: "the finish command",
		stable + `, ` + canary: "stable is updated",
		stable + `, ` + canary + `, promotion: {mode: UpdateStable}`: "stable is updated",
	} {
		if got := scheduled(t, fields, schedule.Options{}).Return.Begins(); got != want {
			t.Errorf("with %q the return begins after %s, want %s", fields, got, want)
		}
	}
}

// TestReturnStuck shows a return whose requests are forgotten faster than they come:
// the canary began with enough, and stable begins with 1 %.
func TestReturnStuck(t *testing.T) {
	const fields = `plan: {stages: [{weight: 50, soak: 15m}]}, ramp: {warmup: {initialPercent: 100}, maxIncrease: 50}, health: {preset: Traefik, errorRate: {maxPercent: 1}, minRampRequests: 1000}`
	s := scheduled(t, fields, schedule.Options{RPS: 20})
	if s.Return == nil || !strings.Contains(s.Return.Stuck, "stable stays at 1%: it has 720 requests an hour, and never the 1000 of spec.health.minRampRequests within one") {
		t.Fatalf("stuck %q, return %+v", s.Stuck, s.Return)
	}
	if s.Return.Steps != 1 || s.Return.Duration != 0 {
		t.Errorf("it stops after %d steps and %s, want 1 and nothing", s.Return.Steps, s.Return.Duration)
	}
	// The other one is of the canary's own steps, which take several windows.
	if len(s.Warnings) != 2 || s.Warnings[1].Field != "spec.health.minRampRequests" || !strings.HasPrefix(s.Warnings[1].Message, "after the finish command stable stays at 1%") {
		t.Errorf("warnings %v, want the second to be of the return", s.Warnings)
	}
	wr := decode(t, fields)
	r, err := simulate.Run(&wr.Spec, &simulate.Scenario{
		Gateway: simulate.Gateway{Delay: "0s"}, Duration: "5h",
		Events: []simulate.Happening{{At: v1alpha1.Duration(finishAt(wr, s).String()), Command: simulate.Command(v1alpha1.VerbFinish)}},
	}, simulate.Options{Exact: true, RPS: 20})
	if err != nil {
		t.Fatal(err)
	}
	if r.Outcome.Phase != v1alpha1.PhaseReturning || r.Outcome.Share != 99 {
		t.Errorf("after 5h the controller is %s at %g %%: %s", r.Outcome.Phase, r.Outcome.Share, r.Outcome.Message)
	}
	const workloads = `, stable: {service: a, port: 80, workload: {name: a}}, canary: {service: b, port: 80, workload: {name: b}}`
	if s := scheduled(t, fields+workloads, schedule.Options{RPS: 20}); len(s.Warnings) != 2 || !strings.HasPrefix(s.Warnings[1].Message, "after stable is updated stable stays at 1%") {
		t.Errorf("where no command is needed the warnings are %v", s.Warnings)
	}
	if s := scheduled(t, ``, schedule.Options{RPS: 1}); s.Stuck == "" || s.Return != nil {
		t.Errorf("a rollout that is never promoted (%q) has the return %+v", s.Stuck, s.Return)
	}
}
