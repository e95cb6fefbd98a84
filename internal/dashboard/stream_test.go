package dashboard_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/dashboard"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

func keys(rows []dashboard.Row) []string {
	all := []string{}
	for _, r := range rows {
		all = append(all, r.Key)
	}
	slices.Sort(all)
	return all
}

// TestRows: all at first, then what changes.
func TestRows(t *testing.T) {
	wr, other := checkout(t), checkout(t)
	other.Name, other.UID = "search", "uid-2"
	c := newCluster(wr, other)
	s := open(t, c, nil)
	page := s.listen("/api/stream")
	if hello := next(page, "hello", whatever[dashboard.Hello]); hello.Actions || hello.Scope != "all namespaces" || hello.Now.Before(hello.Began) {
		t.Errorf("hello: %+v", hello)
	}
	first := next(page, "rows", whatever[dashboard.Rows])
	if diff := cmp.Diff([]string{"shop/checkout", "shop/search"}, keys(first.Rows)); diff != "" || !first.Reset {
		t.Errorf("reset %t, rows (-want +got):\n%s", first.Reset, diff)
	}
	wr.Status.Phase = v1alpha1.PhasePaused
	c.write(wr, "2")
	changed := next(page, "rows", whatever[dashboard.Rows])
	if changed.Reset || !slices.Equal(keys(changed.Rows), []string{"shop/checkout"}) || changed.Rows[0].Phase != "Paused" {
		t.Errorf("after a change: %+v", changed)
	}
	c.remove(other)
	gone := next(page, "rows", whatever[dashboard.Rows])
	if diff := cmp.Diff(dashboard.Rows{Rows: []dashboard.Row{}, Gone: []string{"shop/search"}}, gone); diff != "" {
		t.Errorf("after a deletion (-want +got):\n%s", diff)
	}
	if late := next(s.listen("/api/stream"), "rows", whatever[dashboard.Rows]); !late.Reset || !slices.Equal(keys(late.Rows), []string{"shop/checkout"}) {
		t.Errorf("another page: %+v", late)
	}
}

// TestBehind: a page says why nothing new comes, and gets what it has missed.
func TestBehind(t *testing.T) {
	wr, doomed := checkout(t), checkout(t)
	doomed.Name = "doomed"
	c := newCluster(wr, doomed)
	page := open(t, c, nil).listen("/api/stream")
	next(page, "rows", whatever[dashboard.Rows])
	c.fail(errDown)
	state := next(page, "state", func(s dashboard.State) bool { return s.Behind != "" })
	if !strings.Contains(state.Behind, "connection refused") || state.Fresh.IsZero() {
		t.Errorf("state: %+v", state)
	}
	c.remove(doomed)
	c.fail(nil)
	next(page, "state", func(s dashboard.State) bool { return s.Behind == "" })
	rows := next(page, "rows", func(r dashboard.Rows) bool { return r.Reset })
	if !slices.Equal(keys(rows.Rows), []string{"shop/checkout"}) {
		t.Errorf("after the return: %+v", rows)
	}
}

// TestOneWatch: ten pages share one watch.
func TestOneWatch(t *testing.T) {
	c := newCluster(checkout(t))
	s := open(t, c, nil)
	for range 10 {
		next(s.listen("/api/stream"), "rows", whatever[dashboard.Rows])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.watchers) != 1 || c.lists != 1 {
		t.Errorf("%d watches and %d lists", len(c.watchers), c.lists)
	}
}

// document is live evidence of checkout.
func document() *live.Document {
	return &live.Document{Namespace: "shop", Name: "checkout", Attempt: 3, Verdict: live.Verdict{State: "Healthy"}, Traffic: &live.Traffic{Canary: 1, Stable: 3}, Evaluations: []live.Evaluation{}}
}

// TestDetail: what is looked at comes in full, with evidence and events.
func TestDetail(t *testing.T) {
	c := newCluster(checkout(t))
	c.evidence = document()
	began := time.Now().Add(-time.Hour)
	c.events = []eventsv1.Event{
		{EventTime: metav1.NewMicroTime(began), Reason: v1alpha1.ReasonShareRaised, Note: "the canary's share goes from 5 to 12.5 percent in stage 2/4", Type: "Normal"},
		{EventTime: metav1.NewMicroTime(began.Add(time.Minute)), Reason: v1alpha1.ReasonVerdictChanged, Note: "verdict Degraded", Type: "Warning"},
	}
	page := open(t, c, &orders{}).listen("/api/stream?rollout=shop/checkout")
	d := next(page, "detail", func(d dashboard.Detail) bool { return d.Evidence != nil && len(d.Events) == 2 })
	if diff := cmp.Diff(dashboard.Stand{UID: "uid-1", Revision: "2.4.1", Attempt: 3, Stage: 1}, d.Stand); diff != "" {
		t.Errorf("stand (-want +got):\n%s", diff)
	}
	if d.Events[0].Reason != v1alpha1.ReasonVerdictChanged || !d.Events[0].Warning || d.Events[1].Warning {
		t.Errorf("events: %+v", d.Events)
	}
	// Before it looked: what the event says, of which there is a value before as well.
	var told []float64
	for _, p := range d.Weight.Reported {
		told = append(told, *p.Desired)
	}
	if diff := cmp.Diff([]float64{5, 12.5}, told); diff != "" {
		t.Errorf("reported weights (-want +got):\n%s", diff)
	}
	// Since then: the status, and the requests of the evidence, a quarter of which were the
	// canary's.
	last := d.Weight.Seen[len(d.Weight.Seen)-1]
	if *last.Desired != 20 || *last.Written != 12.5 || *last.Observed != 25 || *d.Weight.Seen[0].Observed != 12.5 {
		t.Errorf("seen weights: %+v", d.Weight.Seen)
	}
	// Only the order that makes sense is there.
	if diff := cmp.Diff([]dashboard.Order{{Verb: "abort", Short: "end it", Effect: "attempt 2.4.1 ends"}}, d.Orders); diff != "" {
		t.Errorf("orders (-want +got):\n%s", diff)
	}
	wr := checkout(t)
	wr.Status.Attempt = 4
	c.write(wr, "2")
	next(page, "detail", func(d dashboard.Detail) bool { return d.Stand.Attempt == 4 })
	c.remove(wr)
	next(page, "detail", func(d dashboard.Detail) bool { return d.Missing && d.Key == "shop/checkout" })
}

// TestNoRight: who may not read the evidence sees the rest, and why.
func TestNoRight(t *testing.T) {
	c := newCluster(checkout(t))
	page := open(t, c, nil).listen("/api/stream?rollout=shop/checkout")
	d := next(page, "detail", func(d dashboard.Detail) bool { return d.EvidenceTrouble != "" })
	if d.Evidence != nil || !strings.Contains(d.EvidenceTrouble, "no right") || d.Desired != "20" || len(d.Orders) != 0 {
		t.Errorf("detail: %+v", d)
	}
}

// TestEvidenceOnDemand: the controller is asked only while somebody looks at a rollout, and
// once for all who do.
func TestEvidenceOnDemand(t *testing.T) {
	c := newCluster(checkout(t))
	c.evidence = document()
	s := open(t, c, nil)
	next(s.listen("/api/stream"), "rows", whatever[dashboard.Rows])
	if n := c.questions(); n != 0 {
		t.Errorf("%d questions, and nobody looks at a rollout", n)
	}
	s.server.AskEvery(time.Millisecond)
	pages := []*stream{s.listen("/api/stream?rollout=shop/checkout"), s.listen("/api/stream?rollout=shop/checkout")}
	for _, p := range pages {
		next(p, "detail", func(d dashboard.Detail) bool { return d.Evidence != nil })
	}
	eventually(t, "it is asked again", func() bool { return c.questions() > 5 })
	if n := s.server.Lookouts(); n != 1 {
		t.Errorf("%d rollouts are asked about, for two pages on one", n)
	}
	for _, p := range pages {
		_ = p.close()
	}
	eventually(t, "nobody asks any more", func() bool { return s.server.Lookouts() == 0 })
}
