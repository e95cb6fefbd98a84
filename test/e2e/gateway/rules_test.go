package gateway

import (
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// rulesShop has a canary that can be broken, and a route with rules of every sort.
func rulesShop(t *testing.T) (*shop, *front) {
	t.Helper()
	s := newEmptyShop(t, "rules")
	s.podinfo("web-stable")
	behind := s.podinfo("web-behind", "--ui-message=web-canary")
	canary, err := bed.CreateService(t.Context(), s.namespace, "web-canary")
	s.must(err, "create the canary")
	f := s.openFront("web-canary", net.JoinHostPort(canary.Address, strconv.Itoa(testbed.BackendPort)), behind.URL(), nil,
		func(r *http.Request) { r.URL.Path = "/status/500" })
	r := s.route()
	r.Labels = map[string]string{"team": "shop"}
	both := r.Spec.Rules[0].BackendRefs
	tester := []gatewayv1.HTTPHeaderMatch{{Name: "X-Tester", Value: "yes"}}
	r.Spec.Rules = []gatewayv1.HTTPRouteRule{
		serve(both, match("/a", nil)),
		serve(both, match("/b", nil)),
		serve([]gatewayv1.HTTPBackendRef{backend("web-stable", 1)}, match("/legacy", nil)),
		serve([]gatewayv1.HTTPBackendRef{backend("web-canary", 1)}, match("/a", tester)),
		redirect("/old", "/a/info"),
	}
	s.must(bed.Client.Create(t.Context(), r), "create the HTTPRoute")
	return s, f
}

func match(prefix string, headers []gatewayv1.HTTPHeaderMatch) gatewayv1.HTTPRouteMatch {
	kind := gatewayv1.PathMatchPathPrefix
	return gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: &kind, Value: &prefix}, Headers: headers}
}

// serve is a rule whose backends answer at podinfo's /api.
func serve(backends []gatewayv1.HTTPBackendRef, m gatewayv1.HTTPRouteMatch) gatewayv1.HTTPRouteRule {
	return gatewayv1.HTTPRouteRule{
		Matches: []gatewayv1.HTTPRouteMatch{m},
		Filters: []gatewayv1.HTTPRouteFilter{{
			Type: gatewayv1.HTTPRouteFilterURLRewrite,
			URLRewrite: &gatewayv1.HTTPURLRewriteFilter{
				Path: &gatewayv1.HTTPPathModifier{Type: gatewayv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: new("/api")},
			},
		}},
		BackendRefs: backends,
	}
}

func redirect(from, to string) gatewayv1.HTTPRouteRule {
	return gatewayv1.HTTPRouteRule{
		Matches: []gatewayv1.HTTPRouteMatch{match(from, nil)},
		Filters: []gatewayv1.HTTPRouteFilter{{
			Type: gatewayv1.HTTPRouteFilterRequestRedirect,
			RequestRedirect: &gatewayv1.HTTPRequestRedirectFilter{
				Scheme:     new("http"),
				Path:       &gatewayv1.HTTPPathModifier{Type: gatewayv1.FullPathHTTPPathModifier, ReplaceFullPath: &to},
				StatusCode: new(http.StatusFound),
			},
		}},
	}
}

// TestSeveralRules promotes a canary and rolls another one back. The two rules that hold
// both backends follow the weights; testers reach the canary and the old path reaches
// stable at every moment, and nobody has an answer that does not belong to him.
func TestSeveralRules(t *testing.T) {
	s, canary := rulesShop(t)
	before := s.snapshot("HTTPRoute", "web")
	s.eventually("the gateway serves the route", func() (bool, string) {
		answer := s.answer(t.Context(), "/b/info", nil)
		return answer == "200 web-stable", answer
	})
	a, b := s.visit("/a/info", 5*time.Millisecond, nil), s.visit("/b/info", 5*time.Millisecond, nil)
	tester := s.visit("/a/info", 10*time.Millisecond, http.Header{"X-Tester": {"yes"}})
	legacy, old := s.visit("/legacy/info", 20*time.Millisecond, nil), s.visit("/old", 20*time.Millisecond, nil)
	seen := s.open(&gatewayv1.HTTPRouteList{}, "web")
	startManager(t)
	s.must(bed.Client.Create(t.Context(), s.rollout(stage("10"), withApproval("20"), stage("50"))), "create the rollout")

	s.awaitApproval("v2", 1)
	for _, v := range []*visitor{a, b} {
		v.sees(500, map[string]float64{"200 web-stable": 80, "200 web-canary": 20})
	}
	s.eventually("the status says that the other rules' requests cannot be told apart", func() (bool, string) {
		st := s.status()
		c := trafficCondition(st)
		return c.Status == metav1.ConditionUnknown && strings.Contains(c.Message, "rule 2 of HTTPRoute rules/web"), describe(st)
	})
	s.order(v1alpha1.VerbApprove)
	s.awaitPhase("v2", v1alpha1.PhasePromoted)
	for _, v := range []*visitor{a, b} {
		v.sees(100, map[string]float64{"200 web-canary": 100})
		v.only(0, "200 web-stable", "200 web-canary")
	}
	s.wantOnlyWeights("HTTPRoute", "web", before, map[int][]int64{0: {0, 100}, 1: {0, 100}})

	s.revise("v3")
	s.awaitApproval("v3", 1)
	tester.only(0, "200 web-canary")
	canary.broken.Store(true)
	st := s.awaitPhase("v3", v1alpha1.PhaseRolledBack)
	if st.OutcomeReason != v1alpha1.ReasonUnhealthy {
		t.Errorf("rolled back because of %s: %s", st.OutcomeReason, st.OutcomeMessage)
	}
	for _, v := range []*visitor{a, b} {
		v.sees(100, map[string]float64{"200 web-stable": 100})
	}
	s.wantOnlyWeights("HTTPRoute", "web", before, nil)
	for rule := range 2 {
		s.wantCanary(seen, rule, 0, 10, 20, 40, 50, 80, 100, 0, 10, 20, 0)
	}
	for _, weights := range seen.entries() {
		if weights[2][0] != 1 || weights[3][0] != 1 || len(weights[4]) > 0 {
			t.Errorf("rules that are not the rollout's had the weights %v", weights)
		}
	}
	from := tester.count()
	tester.next(20)
	tester.only(from, "500 web-canary") // as bad as the canary is, testers are still sent to it
	tester.only(0, "200 web-canary", "500 web-canary")
	legacy.only(0, "200 web-stable")
	old.only(0, "302 http://"+s.host+"/a/info")
}

// TestThirdBackend has a third backend beside the two. At each share it has three of ten
// requests, as before: weights of 700 for the two and 300 for the third add up to 1000 at
// every moment. Traefik takes turns, by earliest deadline first: of any number of
// requests in a row, a backend's count is at most 3 away from its part, and 2 more for
// each time that Traefik reads its configuration in between. Of 1500, a point is 15.
func TestThirdBackend(t *testing.T) {
	s := newEmptyShop(t, "third")
	for _, name := range []string{"web-stable", "web-canary", "web-third"} {
		s.podinfo(name)
	}
	r := s.route()
	r.Spec.Rules[0].BackendRefs = []gatewayv1.HTTPBackendRef{backend("web-stable", 700), backend("web-canary", 0), backend("web-third", 300)}
	s.must(bed.Client.Create(t.Context(), r), "create the HTTPRoute")
	before := s.snapshot("HTTPRoute", "web")
	s.eventually("the gateway serves the route", func() (bool, string) {
		answer := s.answer(t.Context(), "/api/info", nil)
		return strings.HasPrefix(answer, "200 "), answer
	})
	seen := s.open(&gatewayv1.HTTPRouteList{}, "web")
	v := s.visit("/api/info", 2*time.Millisecond, nil)
	third := func(share string) {
		t.Helper()
		const requests, part, point = 1500, 450, 15
		counted := v.next(requests)
		if off := counted["200 web-third"] - part; off <= -point || off >= point {
			t.Errorf("at %s percent the third backend had %d of %d requests, want %d: %v", share, counted["200 web-third"], requests, part, counted)
		}
		t.Logf("at %s percent: %v", share, counted)
	}
	third("0")
	startManager(t)
	s.must(bed.Client.Create(t.Context(), s.rollout(withApproval("10"), withApproval("50"))), "create the rollout")
	s.awaitApproval("v2", 0)
	third("10")
	v.sees(1000, map[string]float64{"200 web-stable": 63, "200 web-canary": 7, "200 web-third": 30})
	s.order(v1alpha1.VerbApprove)
	s.awaitApproval("v2", 1)
	third("50")
	s.eventually("the requests of the two are divided as the weights say", func() (bool, string) {
		st := s.status()
		return trafficCondition(st).Status == metav1.ConditionTrue && st.Share.ObservedFrom == v1alpha1.ShareFromRequests, describe(st)
	})
	s.order(v1alpha1.VerbApprove)
	s.awaitPhase("v2", v1alpha1.PhasePromoted)
	third("100")
	v.only(0, "200 web-stable", "200 web-canary", "200 web-third")
	s.wantCanary(seen, 0, 0, 70, 140, 280, 350, 560, 700)
	for _, weights := range seen.entries() {
		if w := weights[0]; w[0]+w[1] != 700 || w[2] != 300 {
			t.Errorf("the weights were %v: the two do not add up to 700, or the third's is not 300", w)
		}
	}
	s.wantOnlyWeights("HTTPRoute", "web", before, map[int][]int64{0: {0, 700, 300}})
}
