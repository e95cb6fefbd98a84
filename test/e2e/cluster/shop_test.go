package cluster

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// shopHeader names the shop that a visitor wants: a request that the API server passes on
// cannot say so by its host.
const shopHeader = "X-Shop"

// track is one version of a shop's service.
type track struct {
	Name     string
	Replicas int
	Command  string // as a YAML list
}

// plan is what the shops' rollouts differ in.
type plan struct {
	Namespace   string
	Stages      []int
	Soak        string
	MinIncrease int
	MaxIncrease int
	// Workloads names the Deployments, has the canary scaled and stable updated.
	Workloads bool
	// Secret holds a token for Prometheus.
	Secret string
}

// shop is a service in two versions behind one route, in a namespace of its own, with
// visitors.
type shop struct {
	*ledger
	plan plan

	counting sync.Mutex
	answers  map[uint16]int // by status; 0 is none at all
}

// newShop makes a shop and sends so many visitors per second to it, until the test ends.
func newShop(t *testing.T, p plan, perSecond int, canaryArgs ...string) *shop {
	t.Helper()
	common := []string{"--port=9898", "--level=panic", "--config-path=/"}
	list := func(name string, more ...string) string {
		return fmt.Sprintf("%q", append(append([]string{"./podinfo", "--ui-message=" + name}, common...), more...))
	}
	tracks := []track{{"stable", 1, list("stable")}, {"canary", 1, list("canary", canaryArgs...)}}
	for i, tr := range tracks {
		tracks[i].Command = strings.ReplaceAll(tr.Command, `" "`, `", "`)
	}
	create(t, render(t, "shop.yaml.tmpl", map[string]any{"Namespace": p.Namespace, "Tracks": tracks}))
	for _, tr := range tracks {
		kubectl(t, "rollout", "status", "--namespace="+p.Namespace, "--timeout=5m", "deployment/checkout-"+tr.Name)
	}
	s := &shop{ledger: openLedger(t, p.Namespace), plan: p, answers: map[uint16]int{}}
	s.waitServed()
	s.visit(perSecond)
	return s
}

func render(t *testing.T, file string, data any) string {
	t.Helper()
	var text strings.Builder
	tmpl, err := template.ParseFiles(filepath.Join("testdata", file))
	if err == nil {
		err = tmpl.Execute(&text, data)
	}
	must(t, err, "write a manifest")
	return text.String()
}

// begin creates the rollout.
func (s *shop) begin() {
	s.t.Helper()
	create(s.t, render(s.t, "rollout.yaml.tmpl", struct {
		plan
		Prometheus string
	}{s.plan, prometheusAddress(s.t)}))
	s.say("the rollout begins")
}

func (s *shop) say(format string, args ...any) {
	s.t.Helper()
	s.t.Logf("%6.1fs  %s: %s", time.Since(s.began).Seconds(), s.namespace, fmt.Sprintf(format, args...))
}

// waitServed waits until the gateway has taken the route.
func (s *shop) waitServed() {
	s.t.Helper()
	transport, url := cluster.visitors(s.t)
	httpClient := &http.Client{Transport: transport, Timeout: patience}
	defer httpClient.CloseIdleConnections()
	eventually(s.t, "the gateway serves "+s.namespace, func() (bool, string) {
		req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url+"/api/info", nil)
		must(s.t, err, "make a request")
		req.Header.Set(shopHeader, s.namespace)
		resp, err := httpClient.Do(req)
		if err != nil {
			return false, err.Error()
		}
		must(s.t, resp.Body.Close(), "close the answer")
		return resp.StatusCode == http.StatusOK, resp.Status
	})
}

// visit sends requests to the gateway.
func (s *shop) visit(perSecond int) {
	transport, url := cluster.visitors(s.t)
	httpClient := &http.Client{Transport: transport, Timeout: patience}
	attacker := vegeta.NewAttacker(vegeta.Client(httpClient), vegeta.Workers(4), vegeta.MaxWorkers(32))
	target := vegeta.Target{Method: http.MethodGet, URL: url + "/api/info", Header: http.Header{shopHeader: {s.namespace}}}
	results := attacker.Attack(vegeta.NewStaticTargeter(target), vegeta.Rate{Freq: perSecond, Per: time.Second}, time.Hour, "")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for r := range results {
			s.counting.Lock()
			s.answers[r.Code]++
			s.counting.Unlock()
		}
	}()
	s.t.Cleanup(func() {
		attacker.Stop()
		<-done
		httpClient.CloseIdleConnections()
		s.say("the visitors' answers, by status (0: none): %v", s.answers)
	})
}

// wantNoServerError checks that no visitor has been told so far that the service fails.
func (s *shop) wantNoServerError() {
	s.t.Helper()
	s.counting.Lock()
	defer s.counting.Unlock()
	if s.answers[http.StatusOK] == 0 {
		s.t.Errorf("no visitor was served: %v", s.answers)
	}
	for status, times := range s.answers {
		if status >= http.StatusInternalServerError {
			s.t.Errorf("%d visitors were answered %d", times, status)
		}
	}
}

// status reads the rollout's status.
func (s *shop) status() v1alpha1.WeightedRolloutStatus {
	s.t.Helper()
	wr := &v1alpha1.WeightedRollout{}
	must(s.t, cluster.Client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "checkout"}, wr), "read the rollout")
	return wr.Status
}

// wantPhase waits for a phase of the rollout.
func (s *shop) wantPhase(phase v1alpha1.Phase) v1alpha1.WeightedRolloutStatus {
	s.t.Helper()
	var st v1alpha1.WeightedRolloutStatus
	eventually(s.t, fmt.Sprintf("%s is %s", s.namespace, phase), func() (bool, string) {
		st = s.status()
		return st.Phase == phase, describe(st)
	})
	s.say("%s", describe(st))
	return st
}

// describe puts a status in a line.
func describe(st v1alpha1.WeightedRolloutStatus) string {
	text := fmt.Sprintf("phase %s", st.Phase)
	if st.Stage != nil {
		text += " stage " + st.Stage.Position
	}
	if st.Share.Desired != nil {
		text += fmt.Sprintf(" at %s percent", *st.Share.Desired)
	}
	if st.Verdict != nil {
		text += fmt.Sprintf(", verdict %s %s", st.Verdict.State, st.Verdict.Reason)
	}
	if st.OutcomeMessage != "" {
		text += ": " + st.OutcomeMessage
	}
	for _, c := range st.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			text += fmt.Sprintf(" (%s: %s)", c.Reason, c.Message)
		}
	}
	return text
}
