package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/cli"
	"github.com/weightedrollout/weightedrollout/internal/diagnose"
	"github.com/weightedrollout/weightedrollout/internal/weights"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// TestTraffic holds a canary at 20 percent: Traefik's own counts show the share, and the
// status and diagnose say so. Then another route of the same host takes the requests, and
// sends them to the same Services by other weights: both say that, too.
func TestTraffic(t *testing.T) {
	s := newShop(t, "traffic")
	s.load(100)
	manager := startEvidence(t)
	s.must(bed.Client.Create(t.Context(), s.rollout(
		v1alpha1.Stage{Weight: "10", Soak: "1s"}, v1alpha1.Stage{Weight: "20", Soak: "1h"},
	)), "create the rollout")
	s.eventually("the requests are divided as the weights say", func() (bool, string) {
		st := s.status()
		c := trafficCondition(st)
		return s.weight() == 20 && c.Status == metav1.ConditionTrue && st.Share.ObservedFrom == v1alpha1.ShareFromRequests, describe(st)
	})
	st := s.status()
	if observed, err := weights.ShareFrom(*st.Share.Observed); err != nil || observed < 1300 || observed > 2700 {
		t.Errorf("the observed share is %s (%v), want about 20", *st.Share.Observed, err)
	}
	s.eventually("diagnose finds nothing wrong", func() (bool, string) {
		d, code := s.diagnose(manager)
		return code == 0 && d.Source.Live && d.Findings[0].Verdict == diagnose.OK, fmt.Sprintf("exit code %d: %+v", code, d)
	})
	if d, _ := s.diagnose(manager); d.Findings[2].Verdict != diagnose.OK || len(d.Findings[2].Numbers) < 3 {
		t.Errorf("diagnose does not find the changes of the share in the events: %+v", d.Findings[2])
	}

	s.must(bed.Client.Create(t.Context(), s.taker()), "create the other HTTPRoute")
	s.eventually("the status says that another rule sends to the same Services", func() (bool, string) {
		st := s.status()
		c := trafficCondition(st)
		return c.Status != metav1.ConditionTrue && strings.Contains(c.Message, "HTTPRoute traffic/taker"), describe(st)
	})
	s.eventually("diagnose finds the other route", func() (bool, string) {
		d, code := s.diagnose(manager)
		f := d.Findings[0]
		found := code == 1 && f.Verdict == diagnose.Problem && strings.HasPrefix(f.Remedies[0].Cause, "HTTPRoute traffic/taker, rule 0 sends requests to the same Services")
		return found, fmt.Sprintf("exit code %d: %+v", code, f)
	})
	if w := s.weight(); w != 20 {
		t.Errorf("the canary's weight is %d, want 20", w)
	}
}

// TestTrafficDiffers has a Service in another namespace whose name is, to Traefik, that of
// the canary: it counts the requests of both as one. No route of the rollout's Services
// shows why the canary has so many. The status says that they are not divided as the
// weights say, and so does diagnose.
func TestTrafficDiffers(t *testing.T) {
	s := newShop(t, "differs")
	twin := &shop{t: t, namespace: "differs-web", host: "twin.example"}
	s.must(bed.CreateNamespace(t.Context(), twin.namespace), "create the other namespace")
	s.must(bed.Gateway.Create(t.Context(), twin.namespace, gatewayName), "create its Gateway")
	other, err := bed.StartPodinfo(t.Context(), twin.namespace, "canary")
	s.must(err, "start the other service")
	t.Cleanup(func() { s.must(other.Stop(), "stop the other service") })
	route := twin.route()
	route.Spec.Rules[0].BackendRefs = []gatewayv1.HTTPBackendRef{backend("canary", 1)}
	s.must(bed.Client.Create(t.Context(), route), "create the other HTTPRoute")
	s.load(100)
	twin.load(60)
	manager := startEvidence(t)
	s.must(bed.Client.Create(t.Context(), s.rollout(
		v1alpha1.Stage{Weight: "10", Soak: "1s"}, v1alpha1.Stage{Weight: "20", Soak: "1h"},
	)), "create the rollout")
	s.eventually("the requests are not divided as the weights say", func() (bool, string) {
		st := s.status()
		c := trafficCondition(st)
		return s.weight() == 20 && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonTrafficDiffers, describe(st)
	})
	s.eventually("diagnose finds it, too", func() (bool, string) {
		d, code := s.diagnose(manager)
		f := d.Findings[0]
		return code == 1 && f.Verdict == diagnose.Problem && len(f.Remedies) > 0, fmt.Sprintf("exit code %d: %+v", code, f)
	})
}

// TestDiagnoseOfNothing asks a real API server for what is not there.
func TestDiagnoseOfNothing(t *testing.T) {
	var out, errOut bytes.Buffer
	code := cli.Main([]string{"diagnose", "nothing", "-n", "nowhere", "--kubeconfig", bed.Kubeconfig}, "test", genericiooptions.IOStreams{Out: &out, ErrOut: &errOut})
	if want := "error: there is no WeightedRollout \"nothing\" in the namespace \"nowhere\"\n"; code != 2 || errOut.String() != want || out.Len() > 0 {
		t.Errorf("exit code %d, out %q, error %q; want 2 and %q", code, out.String(), errOut.String(), want)
	}
}

func trafficCondition(st v1alpha1.WeightedRolloutStatus) metav1.Condition {
	if c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionTrafficMatchesWeights); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// taker is a route of the same host whose match is more specific, with weights of its own.
func (s *shop) taker() *gatewayv1.HTTPRoute {
	r := s.route()
	r.Name = "taker"
	r.Spec.Rules[0].BackendRefs = []gatewayv1.HTTPBackendRef{backend("web-stable", 1), backend("web-canary", 1)}
	prefix := gatewayv1.PathMatchPathPrefix
	r.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: &prefix, Value: new("/api")}}}
	return r
}

// diagnose runs the command as a user does, with the live evidence.
func (s *shop) diagnose(manager *testbed.Manager) (d cli.Diagnosis, code int) {
	s.t.Helper()
	token := filepath.Join(s.t.TempDir(), "token")
	s.must(os.WriteFile(token, []byte(bed.EvidenceToken()), 0o600), "write the token")
	var out, errOut bytes.Buffer
	code = cli.Main([]string{
		"diagnose", "web", "-n", s.namespace, "--kubeconfig", bed.Kubeconfig, "-o", "json",
		"--evidence", "https://" + manager.MetricsAddress, "--token-file", token, "--insecure-skip-tls-verify",
	}, "test", genericiooptions.IOStreams{Out: &out, ErrOut: &errOut})
	if errOut.Len() > 0 {
		s.t.Logf("diagnose: %s", errOut.String())
	}
	if err := json.Unmarshal(out.Bytes(), &d); err != nil || len(d.Findings) != 3 {
		s.t.Fatalf("diagnose: exit code %d: %s%s", code, out.String(), errOut.String())
	}
	return d, code
}
