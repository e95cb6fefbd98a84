package cli_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/internal/cli"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

// tells plays a controller behind the API server's proxy: it tells the evidence to those
// who know the uid.
func tells(document live.Document) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != proxyPath || r.Header.Get(live.UIDHeader) != "the-rollout" || r.Method != http.MethodGet {
			refuses(http.StatusForbidden, "the uid is not that of this WeightedRollout")(rw, r)
			return
		}
		_ = json.NewEncoder(rw).Encode(document)
	}
}

// refuses plays a controller that says no.
func refuses(code int, message string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(code)
		_ = json.NewEncoder(rw).Encode(map[string]string{"error": message})
	}
}

// TestEvidenceThroughTheAPIServer: status and diagnose take the live evidence without a
// flag and without a token.
func TestEvidenceThroughTheAPIServer(t *testing.T) {
	a := inCluster(t, objects(t, healthyRollout, plainRoutes, steadily...))
	a.proxy = tells(evidence(constant(200), constant(800)))
	var report cli.Report
	decodeJSON(t, succeed(t, "status", "checkout", "-o", "json").out, &report)
	if !report.Source.Live || report.Evidence == nil || report.Requests != 20_000 || *report.MeasuredPercent != 20 || report.Verdict != "Healthy" || report.NotLive != "" {
		t.Errorf("status: %+v", report)
	}
	var d cli.Diagnosis
	decodeJSON(t, succeed(t, "diagnose", "wr/checkout", "-o", "json").out, &d)
	if !d.Source.Live || d.Problems != 0 {
		t.Errorf("diagnose: %+v", d)
	}
}

// TestReplicasAreAskedAgain: one that only waits for the lease is no reason to do without.
func TestReplicasAreAskedAgain(t *testing.T) {
	a := inCluster(t, objects(t, healthyRollout, plainRoutes))
	asked := 0
	a.proxy = func(rw http.ResponseWriter, r *http.Request) {
		if asked++; asked <= 3 {
			refuses(http.StatusServiceUnavailable, "ask the holder of the lease")(rw, r)
			return
		}
		tells(evidence(constant(200), constant(800)))(rw, r)
	}
	if r := succeed(t, "status", "checkout"); !strings.Contains(r.out, "Live numbers") || asked != 4 {
		t.Errorf("asked %d times:\n%s", asked, r.out)
	}
}

// TestWithoutEvidence: the status has to do, and it is said why, and what to do.
func TestWithoutEvidence(t *testing.T) {
	status := func(code int32, message string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			say(rw, failure(code, metav1.StatusReasonUnknown, message))
		}
	}
	plainly := func(code int, text string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, text, code) }
	}
	for name, test := range map[string]struct {
		proxy http.HandlerFunc
		says  string
	}{
		"no right":                   {status(http.StatusForbidden, "you may not"), "have the Role weightedrollout-evidence-proxy in the namespace weightedrollout-system bound to you"},
		"no Service":                 {status(http.StatusNotFound, "not found"), "name it with --controller-namespace and --controller-service"},
		"no endpoint":                {nil, "finds no controller behind the Service weightedrollout-metrics"},
		"another uid":                {refuses(http.StatusForbidden, "the uid is another"), "the uid is another"},
		"nothing gathered":           {refuses(http.StatusNotFound, "no evidence is gathered"), "no evidence is gathered"},
		"replicas that only wait":    {refuses(http.StatusServiceUnavailable, "ask the holder"), "no replica of the controller that was asked has evidence: ask the holder"},
		"an older controller":        {plainly(http.StatusUnauthorized, "Unauthorized"), "older than this program"},
		"a controller without guard": {plainly(http.StatusNotFound, "404 page not found"), "does that run with --metrics-secure?"},
		"an answer from elsewhere":   {plainly(http.StatusTeapot, "tea"), "answers 418"},
		"another protocol":           {status(http.StatusBadGateway, "error trying to reach service"), "cannot ask the Service weightedrollout-metrics in the namespace weightedrollout-system: error trying to reach service"},
		"no document":                {plainly(http.StatusOK, "text"), "the answer is no evidence"},
		"another attempt":            {tells(live.Document{Attempt: 1}), "it is about attempt 1"},
	} {
		t.Run(name, func(t *testing.T) {
			a := inCluster(t, objects(t, healthyRollout, plainRoutes))
			a.proxy = test.proxy
			// Lines may break anywhere.
			if r := succeed(t, "status", "checkout", "--width", "1000"); !strings.Contains(r.out, "Numbers of the status") || !strings.Contains(r.out, test.says) {
				t.Errorf("it does not say %q:\n%s", test.says, r.out)
			}
			if r := succeed(t, "diagnose", "checkout"); !strings.Contains(r.out, "those of the status") || !strings.Contains(r.errOut, test.says) {
				t.Errorf("it does not say %q:\n%s%s", test.says, r.out, r.errOut)
			}
		})
	}
}
