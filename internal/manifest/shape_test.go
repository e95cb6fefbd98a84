package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/internal/manifest"
)

// TestDecodeShowsTheForm shows that a value of the wrong type is told with what to write,
// whichever field it is in.
func TestDecodeShowsTheForm(t *testing.T) {
	for name, test := range map[string]struct{ spec, want string }{
		"a number for a revision":       {`revision: 1.10`, `spec.revision: Invalid value: "number": spec.revision in body must be of type string: "number": it was read as the number 1.1: write the text that is meant in quotes`},
		"a whole number for a revision": {`revision: 2024_01`, `must be of type string: "integer": it was read as the number 202401: write the text that is meant in quotes`},
		"a large number":                {`revision: 20261130.5`, `it was read as the number 20261130.5: write`},
		"a boolean for a revision":      {`revision: on`, `must be of type string: "boolean": it was read as the boolean true: write the text that is meant in quotes`},
		"a number in a list":            {`plan: {windows: [{timeZone: 5}]}`, `spec.plan.windows[0].timeZone in body must be of type string: "integer": it was read as the number 5`},
		"a text for a workload":         {`canary: {service: c, port: 80, workload: web}`, `spec.canary.workload in body must be of type object: "string": write it as {name: web}`},
		"one of a field's choices":      {`promotion: UpdateStable`, `spec.promotion in body must be of type object: "string": write it as {mode: UpdateStable}`},
		"an action":                     {`onUnhealthy: Pause`, `spec.onUnhealthy in body must be of type object: "string": write it as {action: Pause}`},
		"a text that is none of them":   {`promotion: Never`, `write it as {mode: Await}`},
		"a text for a route":            {`routes: [web]`, `spec.routes[0] in body must be of type object: "string": write it as {name: web}`},
		"a text for the routes":         {`routes: 2web`, `spec.routes in body must be of type array: "string": write it as [{name: "2web"}]`},
		"a number for a window":         {`plan: {windows: [9]}`, `spec.plan.windows[0] in body must be of type object: "integer": write it as {days: …, from: "00:00", timeZone: UTC, to: "24:00"}`},
		"a map for a list":              {`plan: {stages: {}}`, `spec.plan.stages in body must be of type array: "object": write it as [{approval: None, soak: "30m", weight: …}]`},
		"a section with many fields":    {`health: Traefik`, `spec.health in body must be of type object: "string": write it as {preset: Traefik}`},
		"the same, and none of them":    {`health: 7`, `write it as {checks: …, confidence: 95, degradedBelow: "0.9", disabled: …, errorRate: …, interval: "15s", …}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := problems(t, edited(test.spec))
			if !strings.Contains(got[0], test.want) {
				t.Errorf("want %q, got\n%s", test.want, strings.Join(got, "\n"))
			}
			if strings.Count(got[0], ": write") > 1 {
				t.Errorf("there are two cures: %s", got[0])
			}
		})
	}
}

// TestDecodeKeepsAnOrder shows that the same file is refused by the same words every time.
func TestDecodeKeepsAnOrder(t *testing.T) {
	text := edited(`revision: 1.10, promotion: UpdateStable, onUnhealthy: Pause, plan: {stages: 7, windows: 7}, canary: {service: 7, port: a}`)
	first := problems(t, text)
	if len(first) < 6 {
		t.Fatalf("there are only %d problems: %q", len(first), first)
	}
	for range 20 {
		if diff := cmp.Diff(first, problems(t, text)); diff != "" {
			t.Fatalf("another order (-first +later):\n%s", diff)
		}
	}
}

// TestPlace shows that a rollout is found again by the number of its document.
func TestPlace(t *testing.T) {
	cart := strings.Replace(object+health, "{name: checkout}", "{name: cart}", 1)
	f, err := manifest.Read(strings.NewReader("# nothing\n---\n" + otherObjects + object + health + "---\n" + cart))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"checkout": 2, "cart": 3, "": 0, "search": 0} {
		if got := f.Place(name); got != want {
			t.Errorf("%q is in document %d, want %d", name, got, want)
		}
	}
	list := `{"kind":"A"} {"kind":"List","items":[{"kind":"B"},{"apiVersion":"weightedrollout.dev/v1alpha1","kind":"WeightedRollout"}]}`
	if f, err = manifest.Read(strings.NewReader(list)); err != nil || f.Place("") != 2 {
		t.Errorf("of a list it is document %d (%v), want 2", f.Place(""), err)
	}
}
