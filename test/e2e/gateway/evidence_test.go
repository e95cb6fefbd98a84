package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/internal/live"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// TestEvidence counts what a gateway was sent, and asks the manager's binary for the
// same over HTTPS: with tokens of the API server, under the rights that they have there.
func TestEvidence(t *testing.T) {
	s := newShop(t, "evidence")
	s.eventually("the gateway serves the route", func() (bool, string) {
		answered, err := s.request()
		return answered == "web-stable", fmt.Sprint(answered, err)
	})
	manager := startEvidence(t)
	// The windows lie side by side, so that each request is in one of them.
	wr := s.rollout(stages("1h", "10")...)
	wr.Spec.Health.Window, wr.Spec.Health.Interval = "3s", "3s"
	wr.Spec.Health.MinRequests = 1000
	s.must(bed.Client.Create(t.Context(), wr), "create the rollout")
	s.eventually("10 percent, confirmed", func() (bool, string) {
		st := s.status()
		return s.weight() == 10 && st.Share.ConfirmedAt != nil, describe(st)
	})
	s.checkEvidenceRights(manager)
	s.checkEvidenceNumbers(manager)
}

// startEvidence starts a manager that serves evidence, with further flags.
func startEvidence(t *testing.T, args ...string) *testbed.Manager {
	t.Helper()
	manager, err := bed.StartManager(t.Context(), testbed.ManagerOptions{Metrics: true, Args: args})
	if err != nil {
		t.Fatalf("start the manager: %v", err)
	}
	t.Cleanup(func() {
		if err := manager.Stop(); err != nil {
			t.Errorf("stop the manager: %v", err)
		}
	})
	return manager
}

// checkEvidenceRights asks for paths with tokens that have the right to some of them.
func (s *shop) checkEvidenceRights(manager *testbed.Manager) {
	s.t.Helper()
	here := live.Prefix + s.namespace
	token := func(name string, urls ...string) string {
		s.t.Helper()
		token, err := bed.ServiceAccountToken(s.t.Context(), s.namespace, name)
		s.must(err, "make a token")
		for _, url := range urls {
			s.mayGet(name, url)
		}
		return token
	}
	nobody, shopkeeper := token("nobody"), token("shopkeeper", here+"/*")
	for _, test := range []struct {
		name, token, path string
		want              int
		says              string
	}{
		{"no token", "", here + "/web", http.StatusUnauthorized, ""},
		// So controller-runtime's filter answers when the API server refuses the token.
		{"a token that the API server does not know", "made-up", here + "/web", http.StatusInternalServerError, "Authentication failed"},
		{"a token without the right", nobody, here + "/web", http.StatusForbidden, ""},
		{"the right to one namespace", shopkeeper, here + "/web", http.StatusOK, `"name": "web"`},
		{"another namespace", shopkeeper, live.Prefix + "elsewhere/web", http.StatusForbidden, ""},
		{"a namespace that begins like it", shopkeeper, here + "-2/web", http.StatusForbidden, ""},
		{"a way out of the namespace", shopkeeper, here + "/../elsewhere/web", http.StatusTemporaryRedirect, ""},
		{"a hidden way out of the namespace", shopkeeper, here + "/%2e%2e%2felsewhere%2fweb", http.StatusNotFound, "NAMESPACE/NAME"},
		{"the metrics", shopkeeper, "/metrics", http.StatusForbidden, ""},
		{"the role of the manifests", bed.EvidenceToken(), here + "/web", http.StatusOK, `"name": "web"`},
		{"a rollout that does not exist", bed.EvidenceToken(), here + "/nothing", http.StatusNotFound, s.namespace + "/nothing"},
		{"no rollout at all", bed.EvidenceToken(), here, http.StatusNotFound, "NAMESPACE/NAME"},
	} {
		status, body, err := manager.Ask(s.t.Context(), test.path, test.token)
		if err != nil || status != test.want || !strings.Contains(string(body), test.says) {
			s.t.Errorf("%s: GET %s: %d, want %d with %q: %s %v", test.name, test.path, status, test.want, test.says, body, err)
		}
		if test.want != http.StatusOK && strings.Contains(string(body), `"verdict"`) {
			s.t.Errorf("%s: a refusal tells evidence: %s", test.name, body)
		}
	}
}

// mayGet gives a service account the right to get a path, and waits until it is in force.
func (s *shop) mayGet(account, path string) {
	s.t.Helper()
	name := s.namespace + "-" + account
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{path}, Verbs: []string{"get"}}},
	}
	s.must(bed.Client.Create(s.t.Context(), role), "create the role")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: account}},
	}
	s.must(bed.Client.Create(s.t.Context(), binding), "bind the role")
	s.eventually("the role is in force", func() (bool, string) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:                  "system:serviceaccount:" + s.namespace + ":" + account,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		}}
		s.must(bed.Client.Create(s.t.Context(), review), "review the access")
		return review.Status.Allowed, review.Status.Reason
	})
}

// checkEvidenceNumbers sends a number of requests, and then none, until the evidence
// has exactly as many. Where Prometheus missed a scrape, on a busy machine, the windows
// around it are no evidence; then it sends some more and counts those.
func (s *shop) checkEvidenceNumbers(manager *testbed.Manager) {
	s.t.Helper()
	const burst = 200
	// What comes before the first window does not count.
	s.eventually("the first evaluation", func() (bool, string) {
		d := s.evidence(manager)
		return len(d.Evaluations) > 0, d.Verdict.Message
	})
	for deadline, round := time.Now().Add(patience), 1; ; round++ {
		before := s.evidence(manager)
		sent := s.send(burst)
		if sent.stable+sent.canary != burst {
			s.t.Fatalf("the tracks answered %+v of %d requests", sent, burst)
		}
		counted, after := counts{}, live.Document{}
		s.eventually("two windows without a request", func() (bool, string) {
			after = s.evidence(manager)
			var quiet int
			counted, quiet = sum(after.Evaluations, before.At)
			return quiet >= 2, fmt.Sprintf("%+v in %d evaluations", counted, len(after.Evaluations))
		})
		if counted == sent {
			s.t.Logf("round %d: the evidence has all of %+v", round, sent)
			checkEvidenceWords(s.t, before, after, sent)
			return
		}
		s.t.Logf("round %d: the gateway had %+v, the evidence has %+v", round, sent, counted)
		if time.Now().After(deadline) {
			s.t.Fatalf("in %d rounds the evidence never had what was sent", round)
		}
	}
}

// checkEvidenceWords compares the sums in a document with each other.
func checkEvidenceWords(t *testing.T, before, after live.Document, sent counts) {
	t.Helper()
	if got := after.Verdict.Requests - before.Verdict.Requests; got != sent.canary {
		t.Errorf("the verdict counts %d more requests of the canary, want %d", got, sent.canary)
	}
	if got, want := after.Stage.Requests, 1000-after.Verdict.Requests; got != want {
		t.Errorf("the stage awaits %d more requests, want %d", got, want)
	}
	if want := fmt.Sprintf("about %d more requests (%d of 1000)", after.Stage.Requests, after.Verdict.Requests); after.Stage.What != want {
		t.Errorf("the stage awaits %q, want %q", after.Stage.What, want)
	}
	if after.Subject != "canary" || after.Attempt != 1 || after.Verdict.State != "Unknown" || after.Verdict.Reason != "InsufficientRequests" {
		t.Errorf("unexpected document %+v", after)
	}
	if c := after.Comparison; c == nil || c.Through == nil || c.Proof < 19.9 || c.Proof > 20.1 || c.Evidence >= c.Proof {
		t.Errorf("unexpected comparison %+v", c)
	}
}

// counts are requests by track.
type counts struct{ stable, canary int64 }

// sum adds up the evaluations that end after a time, and counts those without any
// request that have come last.
func sum(evaluations []live.Evaluation, after time.Time) (total counts, quiet int) {
	for _, e := range evaluations {
		if !e.End.After(after) || e.Stable == nil || e.Canary == nil {
			continue
		}
		total.stable += int64(e.Stable.Requests)
		total.canary += int64(e.Canary.Requests)
		if quiet++; e.Stable.Requests+e.Canary.Requests > 0 {
			quiet = 0
		}
	}
	return total, quiet
}

// evidence reads the rollout's evidence.
func (s *shop) evidence(manager *testbed.Manager) live.Document {
	s.t.Helper()
	status, body, err := manager.Ask(s.t.Context(), live.Prefix+s.namespace+"/web", bed.EvidenceToken())
	if err != nil || status != http.StatusOK {
		s.t.Fatalf("read the evidence: %d %s %v", status, body, err)
	}
	var document live.Document
	s.must(json.Unmarshal(body, &document), "read the evidence")
	return document
}

// send sends requests through the gateway, and counts who answered.
func (s *shop) send(requests int) counts {
	s.t.Helper()
	answered := counts{}
	for range requests {
		track, err := s.request()
		s.must(err, "send a request")
		switch track {
		case "web-stable":
			answered.stable++
		case "web-canary":
			answered.canary++
		}
	}
	return answered
}

// request sends one request through the gateway, and returns who answered.
func (s *shop) request() (service string, err error) {
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, bed.Gateway.URL+"/api/info", nil)
	if err != nil {
		return "", err
	}
	req.Host = s.host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var info struct{ Message string }
	if err := json.NewDecoder(resp.Body).Decode(&info); err != nil {
		return "", fmt.Errorf("%s: %w", resp.Status, err)
	}
	return info.Message, nil
}

// TestEvidenceNeedsASecureServer: where nobody is asked who he is, nothing is told.
func TestEvidenceNeedsASecureServer(t *testing.T) {
	manager := startEvidence(t, "--metrics-secure=false")
	s := &shop{t: t}
	status := func(path string) (int, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+manager.MetricsAddress+path, nil)
		s.must(err, "make a request")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	s.eventually("the metrics are served", func() (bool, string) {
		code, err := status("/metrics")
		return code == http.StatusOK, fmt.Sprint(code, err)
	})
	if code, err := status(live.Prefix + "evidence/web"); err != nil || code != http.StatusNotFound {
		t.Errorf("the evidence: %d %v, want %d", code, err, http.StatusNotFound)
	}
}

// TestEvidenceOfAnIdleReplica: only the replica with the lease gathers evidence.
func TestEvidenceOfAnIdleReplica(t *testing.T) {
	elect := []string{"--leader-elect=true", "--leader-election-namespace=weightedrollout-system"}
	s := &shop{t: t}
	answers := func(m *testbed.Manager, want int) {
		t.Helper()
		// A replica is ready a moment before it listens.
		s.eventually(fmt.Sprintf("the answer %d", want), func() (bool, string) {
			status, body, err := m.Ask(t.Context(), live.Prefix+"nowhere/web", bed.EvidenceToken())
			return status == want, fmt.Sprintf("%d %s %v", status, body, err)
		})
	}
	first := startEvidence(t, elect...)
	answers(first, http.StatusNotFound) // it works, and there is no such rollout
	second := startEvidence(t, elect...)
	answers(second, http.StatusServiceUnavailable)
	s.must(first.Stop(), "stop the first replica")
	answers(second, http.StatusNotFound)
}
