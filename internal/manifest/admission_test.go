package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weightedrollout/weightedrollout/internal/manifest"
)

// TestDecodeRefuses shows that an object is refused as the API server refuses it:
// with the field and with its own sentence.
func TestDecodeRefuses(t *testing.T) {
	const (
		notPercent = `must be a percentage from 0 to 100, written as an integer (5) or as a decimal string with up to two places ("0.5"), without a percent sign`
		noTraffic  = `the weight of a stage must be above 0, since a canary without traffic proves nothing: raise the weight or remove the stage`
		notRising  = `the weights of plan.stages must rise strictly from stage to stage: put them in rising order and remove repeated ones`
		badSoak    = `soak must be a duration from 1s to 720h, such as 30m or 1h30m`
		unseen     = `the soak of a stage is shorter than spec.health.interval, so the stage would end unmeasured: lengthen plan.stages[].soak or shorten health.interval`
		weight     = "spec.plan.stages[0].weight"
		soak       = "spec.plan.stages[0].soak"
		check      = "spec.health.checks[0]"
	)
	for _, test := range []struct{ name, spec, field, says string }{
		{"weight with a percent sign", `plan: {stages: [{weight: "5%"}]}`, weight, notPercent},
		{"weight without quotes", `plan: {stages: [{weight: 5.5}]}`, weight, `must be of type integer,string: "number": write decimals in quotes, as in "0.5"`},
		{"limit without quotes", `health: {preset: Traefik, errorRate: {maxPercent: 0.5}}`, "spec.health.errorRate.maxPercent", `must be of type integer,string: "number": write decimals in quotes, as in "0.5"`},
		{"weight -1", `plan: {stages: [{weight: -1}]}`, weight, notPercent},
		{"weight 0", `plan: {stages: [{weight: 0}]}`, weight, noTraffic},
		{"weight 101", `plan: {stages: [{weight: 101}]}`, weight, notPercent},
		{"weight beyond any integer", `plan: {stages: [{weight: 99999999999999999999}]}`, weight, `must be of type integer,string: "number"`},
		{"weight empty", `plan: {stages: [{weight: ""}]}`, weight, notPercent},
		{"weight true", `plan: {stages: [{weight: yes}]}`, weight, `must be of type integer,string: "boolean"`},
		{"weight missing", `plan: {stages: [{soak: 5m}]}`, "spec.plan.stages[0]", `weight is required: give the canary's share of the traffic in percent, such as 5`},
		{"weights unsorted", `plan: {stages: [{weight: 20}, {weight: 5}]}`, "spec.plan.stages", notRising},
		{"weights repeated", `plan: {stages: [{weight: 5}, {weight: "5.0"}]}`, "spec.plan.stages", notRising},
		{"no stage", `plan: {stages: []}`, "spec.plan.stages", `plan.stages is empty: give at least one stage`},
		{"21 stages", `plan: {stages: [` + strings.Repeat("{weight: 5}, ", 21) + `]}`, "spec.plan.stages", "must have at most 20 items"},
		{"a stage that is none", `plan: {stages: [5]}`, "spec.plan.stages[0]", `must be of type object: "integer"`},
		{"soak 0s", `plan: {stages: [{weight: 5, soak: 0s}]}`, soak, badSoak},
		{"soak -5m", `plan: {stages: [{weight: 5, soak: -5m}]}`, soak, badSoak},
		{"soak without unit", `plan: {stages: [{weight: 5, soak: "5"}]}`, soak, badSoak},
		{"soak in words", `plan: {stages: [{weight: 5, soak: 5 minutes}]}`, soak, badSoak},
		{"soak 9999999h", `plan: {stages: [{weight: 5, soak: 9999999h}]}`, soak, badSoak},
		{"soak as a number", `plan: {stages: [{weight: 5, soak: 5}]}`, soak, `must be of type string: "integer"`},
		{"interval above soak", `plan: {stages: [{weight: 5, soak: 10s}]}`, "spec", unseen},
		{"approval unknown", `plan: {stages: [{weight: 5, approval: Maybe}]}`, "spec.plan.stages[0].approval", `supported values: "None", "Required"`},
		{"maxIncrease 0", `ramp: {maxIncrease: 0}`, "spec.ramp.maxIncrease", `ramp.maxIncrease must be above 0, or the share would never rise`},
		{"minIncrease above maxIncrease", `ramp: {minIncrease: 11}`, "spec.ramp", `ramp.minIncrease (default 1) is above ramp.maxIncrease (default 10)`},
		{"ramp interval 0s", `ramp: {interval: 0s}`, "spec.ramp.interval", `ramp.interval must be a duration from 1s to 24h, such as 1m`},
		{"one backend for both", `canary: {service: checkout-stable, port: 8080}`, "spec", `spec.stable and spec.canary name the same Service and port`},
		{"canary missing", `canary: null`, "spec", `spec.canary is required: name the Service and port of the version under test`},
		{"port missing", `canary: {service: a}`, "spec.canary", `port is required: give the Service port`},
		{"revision missing", `revision: null`, "spec", `spec.revision is required: name the version that the canary runs`},
		{"revision without quotes", `revision: 2.4`, "spec.revision", `must be of type string: "number"`},
		{"routes missing", `routes: []`, "spec", `spec.routes is required: name the HTTPRoute or GRPCRoute whose weights are to be managed`},
		{"the same route twice", `routes: [{name: a}, {name: a}]`, "spec.routes[1]", `Duplicate value: {"kind":"HTTPRoute","name":"a"}`},
		{"health missing", `health: null`, "spec", `spec.health is required: set health.errorRate, health.latency or health.checks`},
		{"health without a check", `health: {preset: Traefik}`, "spec.health", `health has no check, so nothing could ever be told about the canary`},
		{"window no multiple of interval", `health: {disabled: true, window: 50s}`, "spec.health", `health.window must be a whole multiple of health.interval`},
		{"minRequests 0", `health: {disabled: true, minRequests: 0}`, "spec.health.minRequests", `should be greater than or equal to 1`},
		{"check without a limit", `health: {checks: [{name: a, query: up}]}`, check, `a check needs a limit: set min, max or both`},
		{"address with a password", `health: {disabled: true, prometheus: {address: "http://user:password@prometheus:9090"}}`, "spec.health.prometheus.address", `health.prometheus.address must be an http or https URL without user name, password or query`},
		{"unknown field", `plan: {stages: [{weight: 5, soke: 5m}]}`, `unknown field "spec.plan.stages[0].soke"`, `remove it or correct its name`},
		{"unknown section", `strategy: {}`, `unknown field "spec.strategy"`, `remove it or correct its name`},
		{"a field of another case", `onDelete: Restore, ondelete: Keep`, `unknown field "spec.ondelete"`, `remove it`},
		{"field twice", `paused: true, paused: false`, "line 1", `key "paused" already set in map`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := problems(t, edited(test.spec))
			if !strings.HasPrefix(got[0], test.field+": ") || !strings.Contains(got[0], test.says) {
				t.Errorf("want the field %s and %q; got\n%s", test.field, test.says, got[0])
			}
			if len(got) != 1 {
				t.Errorf("want one problem, got\n%s", strings.Join(got, "\n"))
			}
			if strings.Contains(got[0], "password@") {
				t.Errorf("the password is repeated in %q", got[0])
			}
		})
	}
}

// TestDecodeListsEveryProblem shows that one run says all that is wrong.
func TestDecodeListsEveryProblem(t *testing.T) {
	got := problems(t, `apiVersion: weightedrollout.dev/v1alpha1
kind: WeightedRollout
metadata: {name: Checkout_1, labels: {"a b": c}}
spec:
  revision: "1"
  foo: 1
  plan: {stages: [{weight: 5, soak: 0s}, {weight: "10%"}]}
  plan: {stages: [{weight: 5, soak: 0s}, {weight: "10%"}]}
  health: {}
`)
	text := strings.Join(got, "\n")
	for _, want := range []string{
		`line 8: key "plan" already set in map`,
		`unknown field "spec.foo"`,
		`metadata.name: Invalid value: "Checkout_1"`,
		`metadata.labels: Invalid value: "a b"`,
		`spec.plan.stages[0].soak: Invalid value: "0s"`,
		`spec.plan.stages[1].weight: Invalid value: "10%"`,
		`spec.routes is required`,
		`spec.stable is required`,
		`spec.canary is required`,
		`health has no check`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	if len(got) != 10 {
		t.Errorf("%d problems, want 10:\n%s", len(got), text)
	}
}

func TestDecodeRefusesOddObjects(t *testing.T) {
	const head = "apiVersion: weightedrollout.dev/v1alpha1\nkind: WeightedRollout\n"
	for _, test := range []struct{ name, text, want string }{
		{"no metadata", head + "spec: {health: {disabled: true}}", "metadata.name: Required value: name or generateName is required"},
		{"metadata that is none", head + "metadata: 7", "metadata"},
		{"a name that is none", head + "metadata: {name: [1]}", "metadata"},
		{"no spec", head + "metadata: {name: a}", "spec is required"},
		{"spec that is none", head + "metadata: {name: a}\nspec: 7", `spec in body must be of type object: "integer"`},
		{"an unknown field beside spec", object + health + "sepc: {}", `unknown field "sepc"`},
		{"an unknown field of the metadata", strings.Replace(object+health, "name: checkout}", "name: checkout, label: {}}", 1), `unknown field "metadata.label"`},
		{"a field of a JSON object twice", `{"apiVersion":"weightedrollout.dev/v1alpha1","kind":"WeightedRollout","spec":{"paused":true,"paused":true}}`, `duplicate field "spec.paused"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.Join(problems(t, test.text), "\n"); !strings.Contains(got, test.want) {
				t.Errorf("want %q in\n%s", test.want, got)
			}
		})
	}
}

// TestDecodeSaysWhatItLeftOut shows that rules which were not looked at, because of the
// object's shape, are told beside the problems and are none of them.
func TestDecodeSaysWhatItLeftOut(t *testing.T) {
	for fields, want := range map[string]bool{`revision: 2.4`: true, `plan: {stages: [{weight: 0}]}`: false} {
		_, err := manifest.Decode(strings.NewReader(edited(fields)), "")
		invalid, ok := errors.AsType[*manifest.InvalidError](err)
		if !ok {
			t.Fatalf("%s: got %v", fields, err)
		}
		if len(invalid.Problems) != 1 || invalid.Incomplete != want || strings.HasSuffix(err.Error(), "\nnote: "+manifest.IncompleteNote) != want {
			t.Errorf("%s: incomplete should be %t, got %t: %v", fields, want, invalid.Incomplete, err)
		}
	}
}

// TestDecodeClipsProblems shows that an error stays short, however much is wrong.
func TestDecodeClipsProblems(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	got := problems(t, edited(`onDelete: `+long))
	if len(got[0]) > 700 || !strings.HasPrefix(got[0], `spec.onDelete: Unsupported value: "xxx`) || !strings.Contains(got[0], `x": supported values: "`) {
		t.Errorf("a long value: %d bytes: %s", len(got[0]), got[0])
	}
	var unknown strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&unknown, "x%d: 1, ", i)
	}
	got = problems(t, edited(unknown.String()+`paused: true`))
	if len(got) != 51 || got[50] != "… and 19950 more" {
		t.Errorf("%d problems, the last is %q", len(got), got[len(got)-1])
	}
}

// TestDecodeMerges shows that a field beside a merge key replaces what is merged.
func TestDecodeMerges(t *testing.T) {
	got := decode(t, edited(`plan: {stages: [&first {weight: 1, soak: 5m}, {<<: *first, weight: 10}]}`))
	if s := got.Spec.Plan.Stages; len(s) != 2 || s[1].Weight != "10" || s[1].Soak != "5m" {
		t.Errorf("the stages are %+v", s)
	}
}

// edited returns an object whose spec has the given fields, in flow style, in place
// of its own.
func edited(fields string) string {
	spec := []string{fields}
	for _, field := range []string{`revision: "2.4.1"`, `routes: [{name: checkout}]`, `stable: {service: checkout-stable, port: 8080}`,
		`canary: {service: checkout-canary, port: 8080}`, `health: {preset: Traefik, errorRate: {maxPercent: 1}}`} {
		name, _, _ := strings.Cut(field, ":")
		if !strings.HasPrefix(fields, name+":") {
			spec = append(spec, field)
		}
	}
	return "{apiVersion: weightedrollout.dev/v1alpha1, kind: WeightedRollout, metadata: {name: checkout}, spec: {" + strings.Join(spec, ", ") + "}}"
}
