package gateway

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// TestDemo runs the demo as a user does: a good canary has to be promoted by the
// exact ramp, a bad one rolled back, and the share measured at the gateway has to
// be right. The demo itself judges, and says so by its exit code.
func TestDemo(t *testing.T) {
	bin := os.Getenv("WEIGHTEDROLLOUT_BIN")
	if bin == "" {
		bin = filepath.Join("..", "..", "..", "bin")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "demo"), "--bin", bin)
	out, err := cmd.CombinedOutput()
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		t.Log(lines.Text())
	}
	if err != nil {
		t.Fatalf("the demo failed: %v", err)
	}
}

// TestManagerKilled kills the manager again and again while a canary walks through
// its plan: the weights on the route must rise as if nothing had happened.
func TestManagerKilled(t *testing.T) {
	s := newShop(t, "killed")
	s.load(200)
	seen := s.open(&gatewayv1.HTTPRouteList{}, "web")
	manager := startManager(t)
	s.must(bed.Client.Create(t.Context(), s.rollout(stages("2s", "1", "5", "10", "20", "50")...)), "create the rollout")
	killed := map[string]bool{}
	s.eventually("promotion", func() (bool, string) {
		st := s.status()
		if st.Phase == v1alpha1.PhasePromoted {
			return true, ""
		}
		// Once in every stage, and once in every share that is written but not confirmed.
		if at := place(st); at != "" && !killed[at] {
			killed[at] = true
			if err := manager.Kill(); err != nil {
				t.Logf("kill: %v", err)
			}
			manager = startManager(t)
		}
		return false, describe(st)
	})
	s.wantCanary(seen, 0, 0, 1, 5, 10, 20, 40, 50, 80, 100)
	if len(killed) < 6 {
		t.Errorf("the manager was killed at %d places only: %v", len(killed), killed)
	}
	t.Logf("killed at %v", killed)
}

func place(st v1alpha1.WeightedRolloutStatus) string {
	if st.Stage == nil || st.Share.Desired == nil {
		return ""
	}
	if st.Share.ConfirmedAt == nil {
		return string(*st.Share.Desired) + " unconfirmed"
	}
	return "stage " + st.Stage.Position
}

// TestPrometheusOutage takes Prometheus away for half a minute in mid-stage: the
// share is held, the verdict says why, and all goes on by itself afterwards.
func TestPrometheusOutage(t *testing.T) {
	s := newShop(t, "outage")
	s.load(200)
	startManager(t)
	s.must(bed.Client.Create(t.Context(), s.rollout(stages("20s", "10", "50")...)), "create the rollout")
	s.eventually("a healthy soak at 10 percent", func() (bool, string) {
		st := s.status()
		return s.weight() == 10 && st.Verdict != nil && st.Verdict.State == v1alpha1.VerdictHealthy, describe(st)
	})
	s.must(bed.Prometheus.Stop(), "stop Prometheus")
	s.eventually("verdict ProviderError", func() (bool, string) {
		st := s.status()
		return st.Verdict.State == v1alpha1.VerdictUnknown && st.Verdict.Reason == v1alpha1.ReasonProviderError, describe(st)
	})
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(250 * time.Millisecond) {
		if w := s.weight(); w != 10 {
			t.Fatalf("weight %d while Prometheus is away, want 10: %s", w, describe(s.status()))
		}
	}
	if st := s.status(); st.Phase != v1alpha1.PhaseProgressing || st.Verdict.Reason != v1alpha1.ReasonProviderError {
		t.Errorf("after 30s without Prometheus: %s", describe(st))
	}
	s.must(bed.Prometheus.Start(t.Context()), "start Prometheus again")
	s.eventually("the next stage", func() (bool, string) {
		st := s.status()
		return st.Stage.Index == 1 && s.weight() > 10, describe(st)
	})
}

func startManager(t *testing.T) *testbed.Manager {
	t.Helper()
	m, err := bed.StartManager(t.Context(), testbed.ManagerOptions{})
	if err != nil {
		t.Fatalf("start the manager: %v", err)
	}
	t.Cleanup(func() {
		if m.Running() {
			if err := m.Stop(); err != nil {
				t.Errorf("stop the manager: %v", err)
			}
		}
	})
	return m
}
