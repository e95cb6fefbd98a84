package route_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// The plan of the examples, and the end of it.
var plan = []weights.Share{percent(1), percent(5), percent(10), percent(20), percent(50), percent(100)}

// Weights that are left out are 1 and not 0, and weights are no percentages.
func TestWeightsAreReadAsParts(t *testing.T) {
	const leftOut = `
  - backendRefs:
    - {name: web-stable, port: 80}
    - {name: web-canary, port: 80}
`
	for _, tc := range []struct {
		name string
		text string
		want weights.Share
	}{
		{"left out", withRules(leftOut), percent(50)},
		{"8 and 2", plain(8, 2), percent(20)},
		{"100 and 100", plain(100, 100), percent(50)},
		{"100 and 0", plain(100, 0), percent(0)},
		{"0 and 0", plain(0, 0), percent(0)},
		{"0 and 1", plain(0, 1), percent(100)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			doc := document(t, tc.text)
			if low, high := route.Inspect(decode(t, doc), nil, pair).Observed(); low != tc.want || high != tc.want {
				t.Errorf("observed %s to %s, want %s", low, high, tc.want)
			}
			after, _ := write(t, doc, nil, weights.ShareNone)
			for _, share := range append([]weights.Share{weights.ShareNone}, plan...) {
				after, _ = write(t, after, nil, share)
				i := route.Inspect(decode(t, after), nil, pair)
				want := []route.ManagedRule{{StableRef: 0, CanaryRef: 1, StableWeight: int32(100 - share/100), CanaryWeight: int32(share / 100)}}
				if diff := cmp.Diff(want, i.Rules); diff != "" {
					t.Errorf("at %s (-want +got):\n%s", share, diff)
				}
			}
		})
	}
}

// A zero is written out: one that is left out would be read as 1.
func TestZeroIsOnTheWire(t *testing.T) {
	for _, tc := range []struct {
		name  string
		text  string
		share weights.Share
		want  string
	}{
		{
			"rollback", plain(90, 10), weights.ShareNone,
			`[{"op":"replace","path":"/metadata/resourceVersion","value":"7"},` +
				`{"op":"add","path":"/spec/rules/0/backendRefs/0/weight","value":100},` +
				`{"op":"add","path":"/spec/rules/0/backendRefs/1/weight","value":0},` +
				`{"op":"add","path":"/metadata/annotations","value":{"weightedrollout.dev/managed-by":"web"}}]`,
		},
		{
			"promotion", plain(50, 50), weights.ShareAll,
			`[{"op":"replace","path":"/metadata/resourceVersion","value":"7"},` +
				`{"op":"add","path":"/spec/rules/0/backendRefs/0/weight","value":0},` +
				`{"op":"add","path":"/spec/rules/0/backendRefs/1/weight","value":100},` +
				`{"op":"add","path":"/metadata/annotations","value":{"weightedrollout.dev/managed-by":"web"}}]`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, patch := write(t, document(t, tc.text), nil, tc.share)
			if diff := cmp.Diff(tc.want, string(patch)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

// A pair of zeros is not at the share 0, and is put right in one write.
func TestAllZeroIsHealed(t *testing.T) {
	for name, text := range map[string]string{
		"alone": plain(0, 0),
		"beside another that is 0 too": withRules(`
  - backendRefs:
    - {name: web-stable, port: 80, weight: 0}
    - {name: web-canary, port: 80, weight: 0}
    - {name: assets, port: 80, weight: 0}
`),
	} {
		t.Run(name, func(t *testing.T) {
			doc := document(t, text)
			if route.Inspect(decode(t, doc), nil, pair).Matches(weights.ShareNone) {
				t.Error("0 and 0 match a share of 0")
			}
			after, _ := write(t, doc, nil, weights.ShareNone)
			want := []string{annotated, "/spec/rules/0/backendRefs/0/weight: 0 -> 100"}
			if diff := cmp.Diff(want, changes(t, doc, after)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

const severalRules = `
  - matches: [{path: {value: /a}}]
    name: a
    backendRefs: [{name: web-stable, port: 80, weight: 100}, {name: web-canary, port: 80, weight: 0}]
  - matches: [{path: {value: /b}}]
    name: b
    backendRefs: [{name: web-stable, port: 80, weight: 100}, {name: web-canary, port: 80, weight: 0}]
  - matches: [{path: {value: /legacy}}]
    name: legacy
    backendRefs: [{name: web-stable, port: 80}]
  - matches: [{path: {value: /static}}]
    backendRefs: [{name: assets, port: 80, weight: 3}]
  - matches: [{path: {value: /c}}]
    backendRefs: [{name: web-canary, port: 80, weight: 0}, {name: web-stable, port: 80, weight: 100}]
`

// Every rule that holds both moves, in one write and in its own order; no other does.
func TestSeveralRules(t *testing.T) {
	doc := document(t, withRules(severalRules))
	for _, share := range plan {
		after, _ := write(t, doc, nil, share)
		canary, stable := string(share.Percent()), string((weights.ShareAll - share).Percent())
		want := []string{
			annotated,
			"/spec/rules/0/backendRefs/0/weight: 100 -> " + stable,
			"/spec/rules/0/backendRefs/1/weight: 0 -> " + canary,
			"/spec/rules/1/backendRefs/0/weight: 100 -> " + stable,
			"/spec/rules/1/backendRefs/1/weight: 0 -> " + canary,
			"/spec/rules/4/backendRefs/0/weight: 0 -> " + canary,
			"/spec/rules/4/backendRefs/1/weight: 100 -> " + stable,
		}
		if diff := cmp.Diff(want, changes(t, doc, after)); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", share, diff)
		}
		back, _ := write(t, after, nil, weights.ShareNone)
		if diff := cmp.Diff([]string{annotated}, changes(t, doc, back)); diff != "" {
			t.Errorf("after a rollback from %s (-want +got):\n%s", share, diff)
		}
	}
}

// Only a rule that does not match yet is written.
func TestOneRuleHasDrifted(t *testing.T) {
	doc, _ := write(t, document(t, withRules(severalRules)), nil, percent(5))
	drifted := bytes.Replace(doc, []byte(`"weight":95`), []byte(`"weight":20`), 1)
	i := route.Inspect(decode(t, drifted), nil, pair)
	if low, high := i.Observed(); low != percent(5) || high != percent(20) {
		t.Errorf("observed %s to %s, want 5%% to 20%%", low, high)
	}
	_, patch := write(t, drifted, nil, percent(5))
	want := `[{"op":"replace","path":"/metadata/resourceVersion","value":"7"},` +
		`{"op":"add","path":"/spec/rules/0/backendRefs/0/weight","value":95},` +
		`{"op":"add","path":"/spec/rules/0/backendRefs/1/weight","value":5}]`
	if diff := cmp.Diff(want, string(patch)); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
}

// A rule that pins testers to the canary by a header stays as it is.
func TestHeaderMatchedRule(t *testing.T) {
	doc := document(t, withRules(`
  - backendRefs:
    - {name: web-stable, port: 80, weight: 100}
    - {name: web-canary, port: 80, weight: 0}
  - matches: [{headers: [{name: x-canary, value: "yes"}]}]
    backendRefs: [{name: web-canary, port: 80, weight: 1}]
`))
	last := doc
	for _, share := range append(plan, weights.ShareNone) {
		last, _ = write(t, last, nil, share)
		for _, c := range changes(t, doc, last) {
			if strings.HasPrefix(c, "/spec/rules/1") {
				t.Errorf("at %s: %s", share, c)
			}
		}
	}
	if diff := cmp.Diff([]string{annotated}, changes(t, doc, last)); diff != "" {
		t.Errorf("after a rollback (-want +got):\n%s", diff)
	}
}

// A backend that a rule lists twice is refused, with the rule's index.
func TestDuplicateBackend(t *testing.T) {
	r := parse(t, withRules(`
  - backendRefs:
    - {name: web-stable, port: 80, weight: 100}
    - {name: web-canary, port: 80, weight: 0}
    - name: web-canary
      port: 80
      weight: 0
      filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: b}]}}]
`))
	i := route.Inspect(r, nil, pair)
	want := &route.Problem{
		Reason:  v1alpha1.ReasonDuplicateBackendRef,
		Message: "HTTPRoute shop/web: rule 0 lists shop/web-canary:80 2 times: keep one entry of each backend per rule",
	}
	if diff := cmp.Diff(want, i.Problem); diff != "" {
		t.Errorf("problem (-want +got):\n%s", diff)
	}
	if patch, err := i.Patch(r, percent(5), owner); patch != nil || err != nil {
		t.Errorf("Patch = %s, %v, want none", patch, err)
	}
}

// Everything that is not ours survives: fields that this build does not know, filters,
// mirrors, other annotations.
func TestUnknownFieldsSurvive(t *testing.T) {
	const head = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: web
  namespace: shop
  resourceVersion: "7"
  annotations: {team: checkout}
  labels: {app: web}
  managedFields: [{manager: kubectl, operation: Update, fieldsV1: {"f:spec": {}}}]
spec:
  x-test: keep
  parentRefs: [{name: gw, x-test: keep}]
  rules:
  - name: main
    x-test: {deep: [1, 2.5, null, "keep"]}
    timeouts: {request: 10s}
    retry: {codes: [503], attempts: 3, backoff: 100ms}
    sessionPersistence: {sessionName: s}
    filters:
    - type: RequestMirror
      requestMirror: {backendRef: {name: web-canary, port: 80}}
    backendRefs:
    - {name: web-stable, port: 80, weight: 100, x-test: keep}
    - name: web-canary
      port: 80
      weight: 0
      filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: b}]}}]
status: {parents: [], x-test: keep}
`
	doc := document(t, head)
	const named = `/metadata/annotations/weightedrollout.dev/managed-by: absent -> "web"`
	last := doc
	for _, share := range plan {
		last, _ = write(t, last, nil, share)
		want := []string{
			named,
			"/spec/rules/0/backendRefs/0/weight: 100 -> " + string((weights.ShareAll - share).Percent()),
			"/spec/rules/0/backendRefs/1/weight: 0 -> " + string(share.Percent()),
		}
		if diff := cmp.Diff(want, changes(t, doc, last)); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", share, diff)
		}
	}
	back, _ := write(t, last, nil, weights.ShareNone)
	if diff := cmp.Diff([]string{named}, changes(t, doc, back)); diff != "" {
		t.Errorf("after a rollback (-want +got):\n%s", diff)
	}
	r := decode(t, last)
	share := weights.ShareNone
	patch, err := route.Inspect(r, nil, pair).Release(r, &share, owner)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string(nil), changes(t, doc, apply(t, last, patch))); diff != "" {
		t.Errorf("after the release (-want +got):\n%s", diff)
	}
}

// One Service with two ports is two backends; one with one port is none.
func TestOneServiceForBoth(t *testing.T) {
	r := parse(t, withRules(`
  - backendRefs:
    - {name: web, port: 80, weight: 100}
    - {name: web, port: 8080, weight: 0}
`))
	ports := route.Pair{Stable: route.Backend{Service: "web", Port: 80}, Canary: route.Backend{Service: "web", Port: 8080}}
	i := route.Inspect(r, nil, ports)
	if diff := cmp.Diff([]route.ManagedRule{{StableRef: 0, CanaryRef: 1, StableWeight: 100}}, i.Rules); i.Problem != nil || diff != "" {
		t.Errorf("problem %v, rules (-want +got):\n%s", i.Problem, diff)
	}

	same := route.Pair{Stable: route.Backend{Service: "web", Port: 80}, Canary: route.Backend{Namespace: "shop", Service: "web", Port: 80}}
	i = route.Inspect(r, nil, same)
	want := &route.Problem{
		Reason:  v1alpha1.ReasonInvalidSpec,
		Message: "stable and canary are both shop/web:80: traffic cannot be divided between a backend and itself",
	}
	if diff := cmp.Diff(want, i.Problem); diff != "" || len(i.Rules) > 0 {
		t.Errorf("rules %v, problem (-want +got):\n%s", i.Rules, diff)
	}
}
