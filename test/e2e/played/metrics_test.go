package played

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// scrape reads the controller's own metrics about rollouts.
func (w *world) scrape(url string) string {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.t.Fatalf("the metrics: %d, %v: %s", resp.StatusCode, err, body)
	}
	var ours []string
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "weightedrollout_") {
			ours = append(ours, line)
		}
	}
	return strings.Join(ours, "")
}

// TestControllerMetrics: what the controller tells about a rollout is what its status says,
// at every turn; and nothing is told of one that is deleted.
func TestControllerMetrics(t *testing.T) {
	w := newWorld(t)
	w.rollout("web", stages("10m", "30"))
	w.rollout("bad", stages("10m", "50"))
	address := w.startTalkativeManager()
	web, bad := fmt.Sprintf("{name=%q,namespace=%q", "web", w.namespace), fmt.Sprintf("{name=%q,namespace=%q", "bad", w.namespace)
	told := func(lines ...string) {
		t.Helper()
		eventually(t, "the metrics tell it", func() (bool, string) {
			text := w.scrape(address)
			for _, line := range lines {
				if !strings.Contains(text, line) {
					return false, "no " + line + " in\n" + text
				}
			}
			return true, ""
		})
	}
	w.awaitShare("web", "30")
	told(
		"weightedrollout_phase"+web+`,phase="Progressing"} 1`,
		"weightedrollout_share_desired_ratio"+web+"} 0.3",
		"weightedrollout_share_written_ratio"+web+"} 0.3",
		"weightedrollout_stage"+web+"} 1",
		"weightedrollout_stage_seconds"+web+"} ",
		"weightedrollout_waiting"+web+`,reason="Soaking"} 1`,
		"weightedrollout_verdict"+web+`,state="Healthy"} 1`,
		"weightedrollout_evaluation_age_seconds"+web+"} ",
		"weightedrollout_transitions_total"+web+`,reason="ShareRaised"} 1`,
		"weightedrollout_route_writes_total"+web+`,result="written"} 1`,
		"weightedrollout_evaluations_total"+web+`,result="read"} `,
		"weightedrollout_info"+web+`,revision="v2"`,
	)
	w.awaitShare("bad", "50")
	w.prom.set(w.namespace, canaryOf("bad"), traffic{perSecond: 50, failed: 0.25})
	w.awaitPhase("bad", v1alpha1.PhaseRolledBack)
	told(
		"weightedrollout_phase"+bad+`,phase="RolledBack"} 1`,
		"weightedrollout_stalled"+bad+`,reason="Unhealthy"} 1`,
		"weightedrollout_share_desired_ratio"+bad+"} 0",
		"weightedrollout_transitions_total"+bad+`,reason="RolledBack"} 1`,
	)
	w.prom.fail(outage{refuse: true})
	told("weightedrollout_provider_errors_total"+web+`,reason="ProviderError"} `, "weightedrollout_verdict"+web+`,state="Unknown"} 1`)

	if err := w.client.Delete(t.Context(), w.get("bad")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is told of a rollout that is gone", func() (bool, string) {
		text := w.scrape(address)
		return !strings.Contains(text, bad), text
	})
	// Nothing comes back either, once the last request about it has been answered.
	time.Sleep(2 * time.Second)
	if text := w.scrape(address); strings.Contains(text, bad) {
		t.Errorf("it is told of again: %s", text)
	}
}
