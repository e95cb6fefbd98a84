package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

const (
	// outage is how long a part of the cluster stays away once the controller has noticed.
	outage = 10 * time.Second
	// apiOutage is longer than a leader keeps its lease without renewing it.
	apiOutage = 20 * time.Second
)

// testOutages takes Prometheus, the gateway and the API server away in turn, in the
// middle of a rollout. The share must not rise meanwhile, and the rollout must go on by
// itself afterwards.
func testOutages(t *testing.T) {
	s := newShop(t, plan{Namespace: "e2e-outages", Stages: []int{10, 30, 60}, Soak: "1s", MinIncrease: 10, MaxIncrease: 10}, 60)
	before := restarts(t)
	s.begin()
	s.reaches(10)
	s.without(monitoringNamespace, "prometheus")
	s.reaches(s.last() + 10)
	s.without(gatewayNamespace, "traefik")
	s.reaches(s.last() + 10)
	for name, count := range restarts(t) {
		if count != before[name] {
			t.Errorf("%s has restarted %d times because it had no metrics", name, count-before[name])
		}
	}
	if cluster.own != nil {
		s.withoutAPIServer()
		s.reaches(s.last() + 10)
	}
	settled := restarts(t)
	s.wants(0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
	s.wantPhase(v1alpha1.PhasePromoted)
	for name, count := range restarts(t) {
		s.say("%s has restarted %d times, %d of them since all was well again", name, count-before[name], count-settled[name])
		// A process that does not find the API server ends, and the kubelet waits twice as
		// long each time before it starts it again: the last such wait may end later.
		if count-settled[name] > 1 {
			t.Errorf("%s is in a crash loop: it has restarted %d times since all was well again", name, count-settled[name])
		}
	}
}

// without takes the pod of a Deployment away, and brings another one back.
func (s *shop) without(namespace, name string) {
	s.t.Helper()
	s.say("%s is taken away at %d percent", name, s.last())
	kubectl(s.t, "scale", "--namespace="+namespace, "--replicas=0", "deployment/"+name)
	kubectl(s.t, "delete", "pod", "--namespace="+namespace, "--selector=app="+name, "--force", "--grace-period=0")
	eventually(s.t, "the verdict is Unknown", func() (bool, string) {
		st := s.status()
		return st.Verdict != nil && st.Verdict.State == v1alpha1.VerdictUnknown, describe(st)
	})
	share := s.last()
	s.say("%s", describe(s.status()))
	for end := time.Now().Add(outage); time.Now().Before(end); time.Sleep(pollEvery) {
		if now := s.last(); now != share {
			s.t.Fatalf("the share went from %d to %d percent without %s", share, now, name)
		}
	}
	kubectl(s.t, "scale", "--namespace="+namespace, "--replicas=1", "deployment/"+name)
	kubectl(s.t, "rollout", "status", "--namespace="+namespace, "--timeout=5m", "deployment/"+name)
	s.say("%s is back, still at %d percent", name, s.last())
}

// withoutAPIServer kills the API server twice: it is back at once, and after longer than
// a leader keeps its lease. Both times the share has just been confirmed, so that it is
// the controller alone that has to go on, and not what the gateway failed to write.
func (s *shop) withoutAPIServer() {
	s.t.Helper()
	s.confirmed()
	s.say("the API server is killed at %d percent, and started again", s.last())
	must(s.t, cluster.own.KillAPIServer(), "kill the API server")
	must(s.t, cluster.own.StartAPIServer(s.t.Context()), "start the API server")
	s.reaches(s.last() + 10)
	s.confirmed()
	s.say("the API server is killed at %d percent, and stays away for %s", s.last(), apiOutage)
	must(s.t, cluster.own.KillAPIServer(), "kill the API server")
	time.Sleep(apiOutage)
	must(s.t, cluster.own.StartAPIServer(s.t.Context()), "start the API server")
	s.say("the API server is back")
}

// confirmed waits until the gateway has taken the present share.
func (s *shop) confirmed() {
	s.t.Helper()
	eventually(s.t, "the share is confirmed", func() (bool, string) {
		st := s.status()
		return st.Share.ConfirmedAt != nil && st.Share.Desired != nil && string(*st.Share.Desired) == fmt.Sprint(s.last()), describe(st)
	})
}
