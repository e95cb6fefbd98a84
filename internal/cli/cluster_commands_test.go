package cli_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/internal/cli"
	"github.com/weightedrollout/weightedrollout/internal/workload"
)

func TestGet(t *testing.T) {
	other := object(t, strings.NewReplacer("checkout", "search", "namespace: shop", "namespace: find").Replace(healthyRollout))
	inCluster(t, map[string]any{
		rolloutPath: object(t, healthyRollout),
		"/apis/weightedrollout.dev/v1alpha1/namespaces/find/weightedrollouts/search": other,
	})
	for name, test := range map[string]struct {
		args  []string
		has   []string
		lacks string
	}{
		"a namespace": {nil, []string{"NAME", "OBSERVED", "REVISION", "checkout  Progressing  1/2        20      20.4"}, "search"},
		"by its name": {[]string{"wr/checkout"}, []string{"checkout  Progressing"}, "search"},
		"everywhere":  {[]string{"-A"}, []string{"NAMESPACE", "find       search", "shop       checkout"}, "\x1b"},
		"wide":        {[]string{"-o", "wide"}, []string{"ATTEMPT", "STATUS", "the soak of stage 1/2 runs"}, "search"},
		"names":       {[]string{"-o", "name"}, []string{"weightedrollout.weightedrollout.dev/checkout\n"}, "NAME"},
		"as YAML":     {[]string{"checkout", "-o", "yaml"}, []string{"generation: 3\n", "observed: \"20.4\"\n"}, "e+00"},
		"a list":      {[]string{"-o", "json"}, []string{`"kind": "WeightedRolloutList"`, `"uid": "the-rollout"`}, "search"},
		"nothing":     {[]string{"-n", "empty"}, nil, "NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			r := succeed(t, append([]string{"get"}, test.args...)...)
			for _, want := range test.has {
				if !strings.Contains(r.out, want) {
					t.Errorf("it does not say %q:\n%s", want, r.out)
				}
			}
			if strings.Contains(r.out, test.lacks) {
				t.Errorf("it says %q:\n%s", test.lacks, r.out)
			}
		})
	}
	if r := succeed(t, "get", "-n", "empty"); r.out != "" || !strings.Contains(r.errOut, `no WeightedRollout in the namespace "empty"`) {
		t.Errorf("of an empty namespace it says %q, %q", r.out, r.errOut)
	}
}

func TestClusterErrors(t *testing.T) {
	forbidden := failure(http.StatusForbidden, metav1.StatusReasonForbidden, "you may not")
	for name, test := range map[string]struct {
		objects map[string]any
		args    []string
		says    string
	}{
		"get of two":             {nil, []string{"get", "a", "b"}, "accepts at most 1 arg"},
		"a name and everywhere":  {nil, []string{"get", "a", "-A"}, "leave out -A and -l"},
		"get without the right":  {map[string]any{rolloutsPath: forbidden}, []string{"get"}, "list the WeightedRollouts: you may not"},
		"get of nothing":         {nil, []string{"get", "a"}, `there is no WeightedRollout "a"`},
		"an unknown format":      {nil, []string{"get", "-o", "xml"}, "use one of table, wide, json, yaml, name"},
		"status of nothing":      {nil, []string{"status", "a"}, `there is no WeightedRollout "a"`},
		"a goal that is none":    {nil, []string{"status", "a", "--wait", "--for", "ever"}, "use one of promoted, completed"},
		"a negative wait":        {nil, []string{"status", "a", "--wait", "--timeout", "-1s"}, "is negative"},
		"a goal without a wait":  {nil, []string{"status", "a", "--for", "completed"}, "need --wait"},
		"a Service that is none": {nil, []string{"status", "a", "--controller-service", "a/b"}, `--controller-service "a/b" is no name`},
		"watch of nothing":       {nil, []string{"watch", "a"}, `there is no WeightedRollout "a"`},
		"history of nothing":     {nil, []string{"history", "a"}, `there is no WeightedRollout "a"`},
		"events of nothing":      {nil, []string{"events", "a"}, `there is no WeightedRollout "a"`},
		"events in a format":     {nil, []string{"events", "a", "-w", "-o", "json"}, "leave out --output"},
		"events without a right": {map[string]any{rolloutPath: object(t, healthyRollout), eventsPath: forbidden}, []string{"events", "checkout"}, `read the events of the namespace "shop": you may not`},
		"a watch of them":        {objects(t, healthyRollout, plainRoutes), []string{"events", "checkout", "-w"}, "you may not watch"},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, test.objects)
			r := run(t, "", test.args...)
			if r.code != 1 || !strings.Contains(r.errOut, test.says) {
				t.Errorf("exit code %d, %q, want %q", r.code, r.errOut, test.says)
			}
		})
	}
}

func TestHistory(t *testing.T) {
	wr := object(t, strings.Replace(healthyRollout, "  conditions:", `  startedAt: "2026-03-02T08:00:00.000000Z"
  history:
  - {attempt: 1, revision: "2.4.0", outcome: RolledBack, reason: Unhealthy, message: 9 of 90 requests failed, weight: 5, startedAt: "2026-03-01T08:00:00.000000Z", endedAt: "2026-03-01T09:30:00.000000Z"}
  conditions:`, 1))
	inCluster(t, map[string]any{rolloutPath: wr})
	r := succeed(t, "history", "checkout")
	for _, want := range []string{"ATTEMPT  REVISION  OUTCOME", "2  2.4.1     InProgress      20", "1  2.4.0     RolledBack       5   90m", "Unhealthy: 9 of 90"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("it does not say %q:\n%s", want, r.out)
		}
	}
	var data struct{ Attempts []cli.Attempt }
	decodeJSON(t, succeed(t, "history", "checkout", "-o", "json").out, &data)
	if len(data.Attempts) != 2 || data.Attempts[0].EndedAt != nil || data.Attempts[1].Weight != "5" || data.Attempts[1].Reason != "Unhealthy" {
		t.Errorf("as data: %+v", data)
	}
	inCluster(t, map[string]any{rolloutPath: object(t, "{metadata: {name: checkout, namespace: shop}}")})
	if r := succeed(t, "history", "checkout"); !strings.Contains(r.out, "no attempt") {
		t.Errorf("of a new rollout it says %q", r.out)
	}
}

// TestEvents: those of this rollout only, by time.
func TestEvents(t *testing.T) {
	inCluster(t, objects(t, healthyRollout, plainRoutes, steadily...))
	var data struct{ Events []cli.Event }
	decodeJSON(t, succeed(t, "events", "checkout", "-o", "json").out, &data)
	var reasons []string
	for _, e := range data.Events {
		reasons = append(reasons, e.Reason)
	}
	if diff := cmp.Diff([]string{"AttemptStarted", "ShareRaised", "VerdictChanged", "ShareRaised"}, reasons); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := succeed(t, "events", "checkout"); strings.Contains(r.out, "99 percent") || !strings.Contains(r.out, "ago  ShareRaised: the canary's share goes from 10 to 20") {
		t.Errorf("it says\n%s", r.out)
	}
	inCluster(t, objects(t, healthyRollout, plainRoutes))
	if r := succeed(t, "events", "checkout"); !strings.Contains(r.out, "There is no event") {
		t.Errorf("of a rollout without events it says %q", r.out)
	}
}

// TestEventsEndWithTheRollout: those that are watched end once it is gone.
func TestEventsEndWithTheRollout(t *testing.T) {
	a := inCluster(t, objects(t, healthyRollout, plainRoutes, steadily...))
	a.tellsEvents = true
	a.onWatch = func() { a.onWatch = nil; go a.remove() }
	r := run(t, "", "events", "checkout", "-w")
	if r.code != 0 || !strings.Contains(r.errOut, "The rollout is gone.") || !strings.Contains(r.out, "ShareRaised: the canary's share goes from 10 to 20") {
		t.Errorf("exit code %d:\n%s\n%s", r.code, r.out, r.errOut)
	}
}

// TestPhaseOfALaterVersion: whatever it is, it makes no mess of a terminal.
func TestPhaseOfALaterVersion(t *testing.T) {
	odd := strings.Replace(healthyRollout, "phase: Progressing", `phase: "a\u001b[31m`+strings.Repeat("long", 500)+`"`, 1)
	inCluster(t, objects(t, odd, plainRoutes, steadily...))
	for _, args := range [][]string{{"status", "checkout", "--width", "80"}, {"get"}} {
		r := run(t, "", args...)
		for line := range strings.Lines(r.out) {
			if strings.Contains(line, "\x1b[31m") || args[0] == "status" && len(line) > 400 {
				t.Errorf("%v writes %q", args, line)
			}
		}
	}
}

// TestStatusWait: the exit code says how it ended, and each change is told once.
func TestStatusWait(t *testing.T) {
	end := func(outcome string) func(map[string]any) {
		return func(wr map[string]any) { set(wr, outcome, "status", "outcome"); set(wr, outcome, "status", "phase") }
	}
	for name, test := range map[string]struct {
		args   []string
		change func(map[string]any)
		code   int
		says   string
	}{
		"promoted":    {nil, end("Promoted"), 0, `revision "2.4.1" is promoted`},
		"completed":   {[]string{"--for", "completed"}, end("Completed"), 0, "is completed"},
		"rolled back": {nil, end("RolledBack"), 3, "was rolled back"},
		"stalled": {nil, func(wr map[string]any) {
			set(wr, []any{map[string]any{"type": "Stalled", "status": "True", "reason": "RouteMissing", "message": "no route"}}, "status", "conditions")
		}, 3, "RouteMissing: no route"},
		"nothing to do": {[]string{"--for", "completed"}, func(wr map[string]any) { end("Superseded")(wr); set(wr, "StableRevision", "status", "outcomeReason") }, 0, "there is nothing to roll out"},
		"stable ran it": {[]string{"--for", "completed"}, func(wr map[string]any) {
			end("Superseded")(wr)
			set(wr, "StableRevision", "status", "outcomeReason")
			set(wr, []any{map[string]any{"type": "Stalled", "status": "True", "reason": "StableChanged", "message": "it was changed"}}, "status", "conditions")
		}, 3, "StableChanged: it was changed"},
		"too long":           {[]string{"--timeout", "2s"}, func(map[string]any) {}, 2, "not promoted within 2s"},
		"promoted only":      {[]string{"--for", "completed", "--timeout", "2s"}, end("Promoted"), 2, "not completed within 2s"},
		"an older outcome":   {[]string{"--timeout", "2s"}, func(wr map[string]any) { end("Promoted")(wr); set(wr, int64(4), "metadata", "generation") }, 2, "not promoted"},
		"another superseded": {[]string{"--timeout", "2s"}, end("Superseded"), 2, "not promoted"},
	} {
		t.Run(name, func(t *testing.T) {
			a := inCluster(t, objects(t, healthyRollout, plainRoutes))
			a.onWatch = func() { a.onWatch = nil; go a.change(test.change) }
			r := run(t, "", append([]string{"status", "checkout", "--wait"}, test.args...)...)
			if r.code != test.code || !strings.Contains(r.errOut, test.says) {
				t.Errorf("exit code %d, want %d with %q:\n%s", r.code, test.code, test.says, r.errOut)
			}
			if n := strings.Count(r.errOut, "Progressing 1/2, 20 percent"); n < 1 || n > 2 {
				t.Errorf("the start is told %d times:\n%s", n, r.errOut)
			}
		})
	}
}

// TestStatusWaitsForTheVersionThatRuns: where the revision follows from the pod template a
// new image changes nothing in the rollout, whose status may be that of the version before.
func TestStatusWaitsForTheVersionThatRuns(t *testing.T) {
	const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {template: {spec: {containers: [{name: web, image: "web:2"}]}}}}`
	var template corev1.PodTemplateSpec
	if err := yaml.Unmarshal([]byte(`{spec: {containers: [{name: web, image: "web:2"}]}}`), &template); err != nil {
		t.Fatal(err)
	}
	follows := strings.NewReplacer("outcome: InProgress", "outcome: Completed", `revision: "2.4.1"`+"\n  routes", "routes",
		"canary: {service: checkout-canary, port: 8080}", "canary: {service: checkout-canary, port: 8080, workload: {name: web}}").Replace(healthyRollout)
	now := strings.Replace(follows, `revision: "2.4.1"`, "revision: "+workload.Revision(&template), 1)
	for name, test := range map[string]struct {
		rollout string
		there   bool
		change  func(map[string]any)
		code    int
		says    string
	}{
		"the version before":        {follows, true, func(map[string]any) {}, 2, "the status is about"},
		"the present one":           {now, true, nil, 0, "is completed"},
		"the controller catches up": {follows, true, func(wr map[string]any) { set(wr, workload.Revision(&template), "status", "revision") }, 0, "is completed"},
		"stalled":                   {strings.Replace(strings.Replace(follows, "outcome: Completed", `outcome: ""`, 1), `{type: Stalled, status: "False", reason: Soaking`, `{type: Stalled, status: "True", reason: RouteMissing`, 1), true, nil, 3, "a person has to do something"},
		"it cannot be known":        {follows, false, nil, 0, "is not known"},
		"the revision is given":     {strings.Replace(healthyRollout, "outcome: InProgress", "outcome: Completed", 1), true, nil, 0, "is completed"},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(t, test.rollout, plainRoutes)
			if test.there {
				all["/apis/apps/v1/namespaces/shop/deployments/web"] = object(t, deployment)
			}
			a := inCluster(t, all)
			if test.change != nil {
				a.onWatch = func() { a.onWatch = nil; go a.change(test.change) }
			}
			r := run(t, "", "status", "checkout", "--wait", "--for", "completed", "--timeout", "5s")
			if r.code != test.code || !strings.Contains(r.errOut, test.says) {
				t.Errorf("exit code %d, want %d with %q:\n%s", r.code, test.code, test.says, r.errOut)
			}
		})
	}
}

// TestStatusWaitsForWhatIsThere: a rollout that is deleted has no end to wait for, and
// without the right to watch it is read again.
func TestStatusWaitsForWhatIsThere(t *testing.T) {
	a := inCluster(t, objects(t, healthyRollout, plainRoutes))
	a.onWatch = func() { a.onWatch = nil; go a.remove() }
	if r := run(t, "", "status", "checkout", "--wait"); r.code != 1 || !strings.Contains(r.errOut, "there is no WeightedRollout") {
		t.Errorf("deleted: exit code %d, %s", r.code, r.errOut)
	}
}

// TestWatchLines: where there is no terminal, each change is a line, and --exit ends with
// the rollout.
func TestWatchLines(t *testing.T) {
	for outcome, code := range map[string]int{"Promoted": 0, "RolledBack": 3} {
		a := inCluster(t, objects(t, healthyRollout, plainRoutes, steadily...))
		a.onWatch = func() {
			a.onWatch = nil
			go func() {
				a.change(func(wr map[string]any) { set(wr, int64(30), "status", "share", "desired") })
				a.change(func(wr map[string]any) { set(wr, outcome, "status", "outcome"); set(wr, outcome, "status", "phase") })
			}()
		}
		r := run(t, "", "watch", "checkout", "--exit")
		if r.code != code || !strings.Contains(r.out, "Progressing 1/2, 20 percent, Unknown: Soaking") || !strings.Contains(r.out, outcome+" 1/2, 30 percent") || strings.Contains(r.out, "\x1b") {
			t.Errorf("%s: exit code %d\n%s%s", outcome, r.code, r.out, r.errOut)
		}
	}
	a := inCluster(t, objects(t, healthyRollout, plainRoutes))
	a.onWatch = func() { a.onWatch = nil; go a.remove() }
	if r := run(t, "", "watch", "checkout"); r.code != 1 || !strings.Contains(r.errOut, "there is no WeightedRollout") {
		t.Errorf("deleted: exit code %d, %s", r.code, r.errOut)
	}
}
