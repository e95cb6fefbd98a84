package cli_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/internal/cli"
	"github.com/weightedrollout/weightedrollout/internal/diagnose"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

const healthyRollout = `
apiVersion: weightedrollout.dev/v1alpha1
kind: WeightedRollout
metadata:
  name: checkout
  namespace: shop
  uid: the-rollout
  generation: 3
  resourceVersion: "100"
spec:
  revision: "2.4.1"
  routes: [{name: checkout}]
  stable: {service: checkout-stable, port: 8080}
  canary: {service: checkout-canary, port: 8080}
  progressDeadline: 24h
  plan:
    stages: [{weight: 20, soak: 30m}]
    windows: [{timeZone: Europe/Berlin}]
  health: {preset: Traefik, errorRate: {maxPercent: 1}}
status:
  observedGeneration: 3
  phase: Progressing
  outcome: InProgress
  revision: "2.4.1"
  attempt: 2
  stage: {index: 0, position: 1/2, weight: 20}
  share: {desired: 20, observed: "20.4", observedFrom: Requests, confirmedAt: "2026-03-02T09:00:00.000000Z"}
  progress: {highest: 20, waitedFor: 30m}
  capacity: {replicas: 10, scaled: [{track: Canary, kind: Deployment, name: checkout-canary, from: 1, to: 2}]}
  conditions:
  - {type: Ready, status: "False", reason: Soaking, message: the soak of stage 1/2 runs, lastTransitionTime: "2026-03-02T09:00:00Z"}
  - {type: Reconciling, status: "True", reason: Soaking, message: the soak of stage 1/2 runs, lastTransitionTime: "2026-03-02T09:00:00Z"}
  - {type: Stalled, status: "False", reason: Soaking, message: the soak of stage 1/2 runs, lastTransitionTime: "2026-03-02T09:00:00Z"}
  - {type: Healthy, status: "True", reason: ChecksPassed, message: every check passes on 204 requests, lastTransitionTime: "2026-03-02T09:00:00Z"}
  - {type: TrafficMatchesWeights, status: "True", reason: TrafficMatches, message: "the canary had 20.4 percent of 1000 requests, and the weights give it 20", lastTransitionTime: "2026-03-02T09:00:00Z"}
`

const plainRoutes = `
items:
- metadata: {name: checkout, namespace: shop}
  spec:
    rules:
    - backendRefs: [{name: checkout-stable, port: 8080, weight: 80}, {name: checkout-canary, port: 8080, weight: 20}]
- metadata: {name: elsewhere, namespace: shop}
  spec:
    rules: [{backendRefs: [{name: other, port: 8080}, {group: example.dev, kind: Bucket, name: checkout-canary}]}]
`

const crossingRoutes = `
items:
- metadata: {name: checkout, namespace: shop}
  spec:
    rules:
    - name: main
      backendRefs: [{name: checkout-stable, port: 8080, weight: 80}, {name: checkout-canary, port: 8080, weight: 20}]
      sessionPersistence: {type: Cookie}
    - name: testers
      matches: [{headers: [{name: X-Tester, value: "yes"}]}]
      backendRefs: [{name: checkout-canary, port: 8080}]
- metadata: {name: api, namespace: shop}
  spec:
    rules: [{backendRefs: [{name: checkout-stable, port: 8080}, {name: checkout-canary, namespace: shop, port: 8080}]}]
`

// objects are those of a rollout, its routes and events.
func objects(t *testing.T, rollout, routes string, notes ...string) map[string]any {
	t.Helper()
	var list eventsv1.EventList
	for i, note := range notes {
		reason, text, _ := strings.Cut(note, ": ")
		e := eventsv1.Event{Reason: reason, Note: text, EventTime: metav1.NewMicroTime(time.Date(2026, time.March, 2, 9, i, 0, 0, time.UTC))}
		e.Regarding.Kind, e.Regarding.UID = "WeightedRollout", "the-rollout"
		// The API server sorts by name, and not by time.
		list.Items = append([]eventsv1.Event{e}, list.Items...)
	}
	old := eventsv1.Event{Reason: "ShareRaised", Note: "the canary's share goes from 0 to 99 percent in stage 1/2"}
	old.Regarding.Kind, old.Regarding.UID = "WeightedRollout", "an-earlier-one"
	list.Items = append(list.Items, old)
	return map[string]any{rolloutPath: object(t, rollout), routesPath: object(t, routes), eventsPath: list}
}

// steadily is what a rollout without trouble tells.
var steadily = []string{
	`AttemptStarted: attempt 2 of revision "2.4.1" starts at 0 percent`,
	"ShareRaised: the canary's share goes from 0 to 10 percent in stage 1/2",
	"VerdictChanged: verdict Healthy (ChecksPassed): every check passes",
	"ShareRaised: the canary's share goes from 10 to 20 percent in stage 1/2",
}

// swinging is what a rollout tells whose weight goes up and down.
var swinging = append(slices.Clip(steadily),
	"Degraded: the canary's share goes from 20 to 16 percent, since it is degraded: slow",
	"ShareRaised: the canary's share goes from 16 to 19 percent in stage 1/2",
	"ShareRaised: the canary's share goes from 19 to 20 percent in stage 1/2",
	"Degraded: the canary's share goes from 20 to 16 percent, since it is degraded: slow",
)

// evidence is what a controller tells of some minutes of traffic.
func evidence(canary, stable func(minute int) float64) live.Document {
	at := time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)
	d := live.Document{
		Namespace: "shop", Name: "checkout", At: at.Add(20 * time.Minute), Attempt: 2, Subject: "canary", ConfirmedAt: &at, Traffic: &live.Traffic{},
		Verdict: live.Verdict{State: "Healthy", Reason: "ChecksPassed", Message: "every check passes"}, Ramp: live.Awaited{Open: true}, Stage: live.Awaited{What: "about 5 more requests", AboutSeconds: 12},
	}
	for i := range 20 * 4 {
		start := at.Add(time.Duration(i) * 15 * time.Second)
		c, s := canary(i/4), stable(i/4)
		d.Evaluations = append(d.Evaluations, live.Evaluation{Start: start, End: start.Add(time.Minute), Outcome: "Passed", Canary: &live.Numbers{Requests: c}, Stable: &live.Numbers{Requests: s}})
		if i%4 == 0 {
			d.Traffic.Canary, d.Traffic.Stable = d.Traffic.Canary+int64(c), d.Traffic.Stable+int64(s)
		}
	}
	return d
}

func constant(f float64) func(int) float64 { return func(int) float64 { return f } }

// controller serves evidence to the bearer of a token, and returns its address, and files
// with the token and the certificate.
func controller(t *testing.T, answer any, code int) (address, token, ca string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/evidence/shop/checkout" || r.Header.Get("Authorization") != "Bearer secret" {
			rw.WriteHeader(http.StatusForbidden)
			return
		}
		rw.WriteHeader(code)
		_ = json.NewEncoder(rw).Encode(answer)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	token, ca = filepath.Join(dir, "token"), filepath.Join(dir, "ca.pem")
	for file, text := range map[string]string{token: "secret\n", ca: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return server.URL, token, ca
}

// without takes out of an output what depends on the time.
func without(text string) string {
	for _, pattern := range []string{`\d+h\d+m\d+s ago`, `"(at|ageSeconds)": [^,\n]+`} {
		text = regexp.MustCompile(pattern).ReplaceAllStringFunc(text, func(string) string { return "<time> ago" })
	}
	return text
}

func TestDiagnoseGolden(t *testing.T) {
	for name, c := range map[string]struct {
		rollout, routes string
		events          []string
		evidence        *live.Document
		code            int
	}{
		"diagnose-status":  {healthyRollout, plainRoutes, steadily, nil, 0},
		"diagnose-live":    {healthyRollout, plainRoutes, steadily, new(evidence(constant(200), constant(800))), 0},
		"diagnose-ignored": {healthyRollout, plainRoutes, steadily, new(evidence(constant(500), constant(500))), 1},
		"diagnose-crossed": {healthyRollout, crossingRoutes, swinging, new(evidence(func(minute int) float64 { return 100 + 300*float64(minute%2) }, constant(800))), 1},
		"diagnose-stalled": {strings.NewReplacer("phase: Progressing", "phase: RolledBack\n  outcomeReason: Unhealthy",
			`{type: Stalled, status: "False", reason: Soaking, message: the soak of stage 1/2 runs,`,
			`{type: Stalled, status: "True", reason: Unhealthy, message: "rolled back: 9 of 90 requests failed",`).Replace(healthyRollout), plainRoutes, nil, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, objects(t, c.rollout, c.routes, c.events...))
			args := []string{"diagnose", "checkout", "--width", "100"}
			if c.evidence != nil {
				address, token, ca := controller(t, c.evidence, http.StatusOK)
				args = append(args, "--evidence", address, "--token-file", token, "--ca-file", ca)
			}
			r := run(t, "", args...)
			if r.code != c.code {
				t.Errorf("exit code %d, want %d", r.code, c.code)
			}
			golden(t, name+".golden", without(r.out+r.errOut))
		})
	}
}

// TestDiagnoseAfterTheEnd: the evidence of an attempt that has ended is about nothing; that
// the gateways have confirmed 0 percent is in the status.
func TestDiagnoseAfterTheEnd(t *testing.T) {
	ended := strings.NewReplacer("phase: Progressing", "phase: RolledBack\n  outcomeReason: Unhealthy", "outcome: InProgress", "outcome: RolledBack",
		`desired: 20, observed: "20.4", observedFrom: Requests,`, "desired: 0,",
		`TrafficMatchesWeights, status: "True"`, `TrafficMatchesWeights, status: Unknown`).Replace(healthyRollout)
	routes := strings.NewReplacer("weight: 80", "weight: 100", "weight: 20", "weight: 0").Replace(plainRoutes)
	inCluster(t, objects(t, ended, routes, steadily...))
	d := evidence(constant(0), constant(800))
	d.ConfirmedAt, d.Evaluations, d.Traffic = nil, nil, &live.Traffic{NotCounted: "no attempt is under way"}
	address, token, ca := controller(t, d, http.StatusOK)
	r := run(t, "", "diagnose", "checkout", "-n", "shop", "--evidence", address, "--token-file", token, "--ca-file", ca)
	if strings.Contains(r.out, "have not confirmed") || strings.Count(r.out, "No attempt is under way") != 2 {
		t.Errorf("it says:\n%s", r.out)
	}
}

// TestAgeOfAnAttempt: a second attempt begins at the share of the first, which it does not
// change.
func TestAgeOfAnAttempt(t *testing.T) {
	hour := time.Now().Add(-time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z")
	began := time.Now().Add(-2 * time.Second).UTC().Format("2006-01-02T15:04:05.000000Z")
	rollout := strings.NewReplacer("reason: Soaking", "reason: Starting", "desired: 20,", `desired: 0, changedAt: "`+hour+`",`,
		"attempt: 2", `attempt: 2`+"\n  startedAt: \""+began+`"`).Replace(healthyRollout)
	inCluster(t, objects(t, rollout, plainRoutes, steadily...))
	r := run(t, "", "status", "checkout", "-n", "shop")
	if !regexp.MustCompile(`For \d+s`).MatchString(r.out) || strings.Contains(r.out, "For 1h") {
		t.Errorf("it says:\n%s", r.out)
	}
}

func TestDiagnoseAsData(t *testing.T) {
	inCluster(t, objects(t, healthyRollout, plainRoutes, steadily...))
	address, token, ca := controller(t, evidence(constant(500), constant(500)), http.StatusOK)
	r := run(t, "", "diagnose", "checkout", "-n", "shop", "-o", "json", "--evidence", address, "--token-file", token, "--ca-file", ca)
	var d cli.Diagnosis
	decodeJSON(t, r.out, &d)
	if r.code != 1 || d.Namespace != "shop" || d.Attempt != 2 || !d.Source.Live || d.Problems != 1 || len(d.Findings) != 3 {
		t.Errorf("exit code %d, %+v", r.code, d)
	}
	if f := d.Findings[0]; f.Verdict != diagnose.Problem || len(f.Remedies) == 0 {
		t.Errorf("the ignored weights are not found: %+v", f)
	}
}

func TestDiagnoseErrors(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	forbidden := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden,
		Message: "you may not",
	}
	for name, c := range map[string]struct {
		objects map[string]any
		args    []string
		says    string
	}{
		"no name":            {nil, nil, "give the name of one WeightedRollout"},
		"two names":          {nil, []string{"a", "b"}, "there are 2 arguments"},
		"unknown flag":       {nil, []string{"a", "--nonsense"}, "unknown flag: --nonsense"},
		"unknown format":     {nil, []string{"a", "-o", "xml"}, `there is no output format "xml"`},
		"no such rollout":    {nil, []string{"a", "-n", "elsewhere"}, `there is no WeightedRollout "a" in the namespace "elsewhere"`},
		"no right":           {map[string]any{rolloutPath: forbidden}, []string{"checkout"}, `read the WeightedRollout "checkout" in the namespace "shop": you may not`},
		"no such context":    {nil, []string{"a", "--context", "b"}, `context "b" does not exist`},
		"no kubeconfig":      {nil, []string{"a", "--kubeconfig", "/nonexistent"}, "there is no kubeconfig /nonexistent (from --kubeconfig)"},
		"no address":         {nil, []string{"a", "--evidence", "localhost:8443"}, "--evidence \"localhost:8443\" is no address"},
		"token without it":   {nil, []string{"a", "--token-file", "x"}, "need --evidence"},
		"no token file":      {nil, []string{"a", "--evidence", "https://localhost", "--token-file", "/nonexistent"}, "--token-file: open /nonexistent"},
		"empty token":        {nil, []string{"a", "--evidence", "https://localhost", "--token-file", empty}, "is empty"},
		"token in the clear": {nil, []string{"a", "--evidence", "http://localhost", "--token-file", "testdata/default.yaml"}, "in clear text"},
		"no certificate":     {nil, []string{"a", "--evidence", "https://localhost", "--ca-file", empty}, "has no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, c.objects)
			r := run(t, "", append([]string{"diagnose"}, c.args...)...)
			if r.code != 2 || !strings.Contains(r.errOut, c.says) || r.out != "" {
				t.Errorf("exit code %d, out %q, error %q; want 2 and %q", r.code, r.out, r.errOut, c.says)
			}
		})
	}
}

// What cannot be read is said, and the rest is shown.
func TestDiagnoseMakesDo(t *testing.T) {
	forbidden := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "you may not",
	}
	wrong := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(wrong, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	inCluster(t, map[string]any{rolloutPath: object(t, healthyRollout), routesPath: forbidden, eventsPath: forbidden})
	for name, c := range map[string]struct {
		answer any
		code   int
		args   []string
		says   string
	}{
		"another replica": {map[string]string{"error": "this replica is not the one that works"}, http.StatusServiceUnavailable, nil, "this replica is not the one that works"},
		"no evidence":     {"not found", http.StatusNotFound, nil, "is this the address of the controller's metrics?"},
		"another attempt": {live.Document{Attempt: 1}, http.StatusOK, nil, "it is about attempt 1"},
		"no document":     {"text", http.StatusOK, nil, "the answer is no evidence"},
		"a wrong token":   {nil, http.StatusOK, []string{"--token-file", wrong}, "weightedrollout-evidence-reader"},
	} {
		t.Run(name, func(t *testing.T) {
			address, token, ca := controller(t, c.answer, c.code)
			r := run(t, "", append([]string{"diagnose", "checkout", "--evidence", address, "--token-file", token, "--ca-file", ca}, c.args...)...)
			for _, want := range []string{"you may not", "events of the namespace", "routes of the namespace", c.says} {
				if !strings.Contains(r.errOut, want) {
					t.Errorf("the warnings do not say %q:\n%s", want, r.errOut)
				}
			}
			if r.code != 0 || !strings.Contains(r.out, "those of the status") {
				t.Errorf("exit code %d\n%s", r.code, r.out)
			}
		})
	}
}
