package diagnose

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/manifest"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// course is a rollout whose share goes through these, in percent, each for a reason.
func course(steps ...any) Input {
	in := Input{Changes: []Change{{Started: true, Why: v1alpha1.ReasonAttemptStarted}}}
	before := weights.ShareNone
	for i := 0; i < len(steps); i += 2 {
		to := weights.Share(steps[i].(int)) * weights.SharePoint
		in.Changes = append(in.Changes, Change{At: time.Unix(int64(i)*60, 0), From: before, To: to, Why: steps[i+1].(string)})
		before = to
	}
	return in
}

func TestSwings(t *testing.T) {
	const up, degraded, drift, back = v1alpha1.ReasonShareRaised, v1alpha1.ReasonDegraded, v1alpha1.ReasonDrift, v1alpha1.ReasonRolledBack
	outcome := func(in Input, reason string) Input {
		in.Outcome = reason
		return in
	}
	for name, c := range map[string]struct {
		in   Input
		want Verdict
		says []string
	}{
		"nothing known":       {Input{}, CannotTell, []string{"no change of the share is on record"}},
		"up":                  {course(1, up, 5, up, 10, up), OK, []string{"moved 3 times, and turned 0 times", "5% to 10% (ShareRaised)", "an attempt begins"}},
		"up, down and up":     {course(10, up, 20, up, 16, degraded, 20, up), OK, []string{"turned 2 times"}},
		"a saw":               {course(20, up, 16, degraded, 20, up, 16, degraded), Problem, []string{"changed its direction 3 times", "health.latency.smoothing", "health.degradedBelow", "health.latency.penalty"}},
		"a saw of drift":      {course(20, up, 5, drift, 20, up, 5, drift), Problem, []string{"another writer changes the weights"}},
		"a saw of breaks":     {course(20, up, 0, v1alpha1.ReasonBreakerOpen, 5, up, 0, v1alpha1.ReasonBreakerOpen), Problem, []string{"onUnhealthy.maxTrips"}},
		"a saw of a grant":    {course(20, up, 0, v1alpha1.ReasonNotResolved, 5, up, 0, v1alpha1.ReasonNotResolved), Problem, []string{"ReferenceGrants"}},
		"a saw of pods":       {course(20, up, 0, v1alpha1.ReasonCanaryNotReady, 5, up, 0, v1alpha1.ReasonCanaryNotReady), Problem, []string{"probes"}},
		"down later":          {outcome(course(1, up, 5, up, 0, back), v1alpha1.ReasonUnhealthy), OK, []string{"turned 1 time"}},
		"fell at once":        {outcome(course(5, up, 0, back), v1alpha1.ReasonUnhealthy), CannotTell, []string{"fell with its first traffic, 5% (RolledBack)", "ramp.warmup.initialPercent"}},
		"aborted at once":     {outcome(course(5, up, 0, back), v1alpha1.ReasonAborted), OK, nil},
		"fell in an earlier":  {Input{Changes: append(course(5, up, 0, v1alpha1.ReasonBreakerOpen).Changes, course(5, up, 10, up).Changes...)}, OK, []string{"moved 2 times"}},
		"turns of an earlier": {Input{Changes: append(course(5, up, 10, up, 0, back).Changes, append(course(5, up, 10, up, 0, back).Changes, course(5, up).Changes...)...)}, OK, []string{"moved 1 time, and turned 0 times"}},
		"a saw of attempts":   {Input{Changes: slices.Concat(course(5, up, 0, back, 5, up, 0, back).Changes, course(5, up, 10, up).Changes)}, OK, []string{"turned 0 times"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := Swings(c.in)
			if f.Verdict != c.want {
				t.Errorf("verdict %s, want %s", f.Verdict, c.want)
			}
			for _, want := range c.says {
				if !strings.Contains(text(f), want) {
					t.Errorf("%q is not in\n%s", want, text(f))
				}
			}
			if f.Verdict == OK && len(f.Remedies) > 0 || f.Verdict == Problem && len(f.Remedies) == 0 {
				t.Errorf("verdict %s with %d remedies", f.Verdict, len(f.Remedies))
			}
		})
	}
}

// What the controller's own events tell is every change of the share, and no other.
func TestChangesAreInTheEvents(t *testing.T) {
	file, err := os.Open("../../config/samples/first.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, scenario := range map[string]string{
		"promoted":    "",
		"rolled back": "{canary: {errorPercent: [{at: 0s, value: 0}, {at: 40m, value: 9}]}}",
		"not ready":   "{events: [{at: 20m, canary: Unready, for: 2m}]}",
		"drift":       "{events: [{at: 30m, routeWeights: 97/3}, {at: 50m, routeWeights: 20/80}]}",
		"finished":    `{events: [{at: 4h, command: finish}], duration: 8h}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := file.Seek(0, 0); err != nil {
				t.Fatal(err)
			}
			wr, err := manifest.Decode(file, "")
			if err != nil {
				t.Fatal(err)
			}
			world, err := simulate.ParseScenario([]byte(scenario))
			if err != nil && scenario != "" {
				t.Fatal(err)
			}
			result, err := simulate.Run(&wr.Spec, world, simulate.Options{Exact: true, Approve: true, RPS: 200})
			if err != nil {
				t.Fatal(err)
			}
			var want, got []weights.Share
			for _, a := range result.Adjustments {
				want = append(want, weights.Share(math.Round(a.To*100)))
			}
			before := weights.ShareNone
			for _, e := range result.Events {
				if e.Source != simulate.FromController {
					continue
				}
				c, ok := ChangeIn(time.Time{}, e.Reason, e.Message, before)
				if !ok || c.Started {
					continue
				}
				if c.From != before {
					t.Errorf("%s: from %s, and before it was %s", e.Message, c.From, before)
				}
				got = append(got, c.To)
				before = c.To
			}
			if len(want) < 2 {
				t.Errorf("only %d changes", len(want))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-share +events):\n%s", diff)
			}
		})
	}
}
