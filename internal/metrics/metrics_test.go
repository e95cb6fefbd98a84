package metrics_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/metrics"
)

var (
	update = flag.Bool("update", false, "write docs/metrics.md")
	now    = time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)
)

// cache holds rollouts, or fails.
type cache struct {
	client.Reader
	items []v1alpha1.WeightedRollout
	err   error
}

func (c *cache) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*v1alpha1.WeightedRolloutList).Items = c.items
	return c.err
}

// evidence knows the rollouts named in it.
type evidence map[string]time.Time

func (e evidence) Latest(k types.NamespacedName) (v1alpha1.VerdictState, time.Time, bool) {
	read, ok := e[k.Name]
	return v1alpha1.VerdictDegraded, read, ok
}

func rollouts() []v1alpha1.WeightedRollout {
	percent := func(p string) *v1alpha1.Percent { return new(v1alpha1.Percent(p)) }
	full := v1alpha1.WeightedRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout"}}
	full.Status = v1alpha1.WeightedRolloutStatus{
		Phase: v1alpha1.PhaseProgressing, Outcome: v1alpha1.OutcomeInProgress, Revision: "2.4.1", StableRevision: "2.4.0", Attempt: 2,
		Stage:  &v1alpha1.StageStatus{Index: 1, StartedAt: new(metav1.NewMicroTime(now.Add(-90 * time.Second)))},
		Share:  v1alpha1.ShareStatus{Desired: percent("5"), Observed: percent("4.87")},
		Routes: []v1alpha1.RouteStatus{{Name: "a", Written: percent("1")}, {Name: "b", Written: percent("5")}, {Name: "c"}},
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: "Soaking"},
			{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionFalse, Reason: "Soaking"},
		},
	}
	over := v1alpha1.WeightedRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "search"}}
	over.Status = v1alpha1.WeightedRolloutStatus{
		Phase: v1alpha1.PhaseRolledBack, Outcome: v1alpha1.OutcomeRolledBack, Revision: "7", Attempt: 1, Stage: full.Status.Stage,
		Share:      v1alpha1.ShareStatus{Desired: percent("0"), Observed: percent("nonsense")},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "Unhealthy"}},
	}
	return []v1alpha1.WeightedRollout{full, over, {ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "new"}}}
}

func state(items []v1alpha1.WeightedRollout) *metrics.State {
	return &metrics.State{
		Reader: &cache{items: items}, Evidence: evidence{"checkout": now.Add(-20 * time.Second), "new": {}},
		Leading: func() bool { return true }, Clock: clocktesting.NewFakePassiveClock(now),
	}
}

func TestState(t *testing.T) {
	want := `
weightedrollout_attempt{name="checkout",namespace="shop"} 2
weightedrollout_attempt{name="search",namespace="shop"} 1
weightedrollout_evaluation_age_seconds{name="checkout",namespace="shop"} 20
weightedrollout_info{name="checkout",namespace="shop",revision="2.4.1",stable_revision="2.4.0"} 1
weightedrollout_info{name="search",namespace="shop",revision="7",stable_revision=""} 1
weightedrollout_phase{name="checkout",namespace="shop",phase="Progressing"} 1
weightedrollout_phase{name="search",namespace="shop",phase="RolledBack"} 1
weightedrollout_share_desired_ratio{name="checkout",namespace="shop"} 0.05
weightedrollout_share_desired_ratio{name="search",namespace="shop"} 0
weightedrollout_share_observed_ratio{name="checkout",namespace="shop"} 0.0487
weightedrollout_share_written_ratio{name="checkout",namespace="shop"} 0.05
weightedrollout_stage{name="checkout",namespace="shop"} 2
weightedrollout_stage_seconds{name="checkout",namespace="shop"} 90
weightedrollout_stalled{name="search",namespace="shop",reason="Unhealthy"} 1
weightedrollout_verdict{name="checkout",namespace="shop",state="Degraded"} 1
weightedrollout_verdict{name="new",namespace="shop",state="Degraded"} 1
weightedrollout_waiting{name="checkout",namespace="shop",reason="Soaking"} 1
`
	s := state(rollouts())
	if err := testutil.CollectAndCompare(s, strings.NewReader(withTypes(want))); err != nil {
		t.Error(err)
	}
	s.Leading = func() bool { return false }
	if n := testutil.CollectAndCount(s); n != 0 {
		t.Errorf("a replica that does not work tells %d metrics", n)
	}
}

// withTypes adds the help and type of each metric, as an exposition has them.
func withTypes(text string) string {
	var b strings.Builder
	for _, d := range metrics.Definitions() {
		if strings.Contains(text, "\n"+d.Name+"{") {
			fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", d.Name, d.Help, d.Name, d.Kind)
		}
	}
	return b.String() + text
}

// TestScrapeFailsWithTheCache: a rollout that is not told of would look like one that is
// gone.
func TestScrapeFailsWithTheCache(t *testing.T) {
	s := state(nil)
	s.Reader = &cache{err: errors.New("the cache is not there")}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s)
	if _, err := registry.Gather(); err == nil || !strings.Contains(err.Error(), "the cache is not there") {
		t.Errorf("%v", err)
	}
}

func TestCounters(t *testing.T) {
	c := metrics.NewCounters()
	checkout, search := types.NamespacedName{Namespace: "shop", Name: "checkout"}, types.NamespacedName{Namespace: "shop", Name: "search"}
	c.Transition(checkout, "ShareRaised")
	c.Transition(checkout, "ShareRaised")
	c.RouteWrite(checkout, metrics.RouteWritten)
	c.RouteWrite(checkout, metrics.RouteConflict)
	c.Evaluated(checkout, "")
	c.Evaluated(checkout, "ProviderError")
	c.Notification(checkout, metrics.NotificationSent)
	c.Transition(search, "RolledBack")
	want := `
weightedrollout_evaluations_total{name="checkout",namespace="shop",result="failed"} 1
weightedrollout_evaluations_total{name="checkout",namespace="shop",result="read"} 1
weightedrollout_notifications_total{name="checkout",namespace="shop",result="sent"} 1
weightedrollout_provider_errors_total{name="checkout",namespace="shop",reason="ProviderError"} 1
weightedrollout_route_writes_total{name="checkout",namespace="shop",result="conflict"} 1
weightedrollout_route_writes_total{name="checkout",namespace="shop",result="written"} 1
weightedrollout_transitions_total{name="checkout",namespace="shop",reason="ShareRaised"} 2
weightedrollout_transitions_total{name="search",namespace="shop",reason="RolledBack"} 1
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(withTypes(want))); err != nil {
		t.Error(err)
	}
	c.Forget(checkout)
	if n := testutil.CollectAndCount(c); n != 1 {
		t.Errorf("%d series are left, want the one of the other rollout", n)
	}

	var none *metrics.Counters
	none.Transition(checkout, "x")
	none.RouteWrite(checkout, "x")
	none.Unrecorded(checkout)
	none.Evaluated(checkout, "x")
	none.Notification(checkout, "x")
	none.Forget(checkout)
}

// TestNames: names and help as Prometheus wants them, and everything is defined.
func TestNames(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	c := metrics.NewCounters()
	k := types.NamespacedName{Namespace: "shop", Name: "checkout"}
	c.Transition(k, "x")
	c.RouteWrite(k, "x")
	c.Unrecorded(k)
	c.Evaluated(k, "x")
	c.Notification(k, "x")
	registry.MustRegister(state(rollouts()), c)
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != len(metrics.Definitions()) {
		t.Errorf("%d metrics are told, and %d defined", len(families), len(metrics.Definitions()))
	}
}

// TestDocument holds docs/metrics.md to the code; -update writes it.
func TestDocument(t *testing.T) {
	const path = "../../docs/metrics.md"
	want := metrics.Document()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("docs/metrics.md is not what the code says (%v): go test ./internal/metrics -update", err)
	}
}
