package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestMemoryIsShared: whatever one namespace takes, the next one gets something, and what
// is read for many together gets most.
func TestMemoryIsShared(t *testing.T) {
	const unit = 1000
	m := newMemory(1000 * unit)
	var rooms []*room
	takes := func(who string) (n int) {
		for m.fits(who, unit) {
			r, err := m.room(t.Context(), who, unit)
			if err != nil {
				t.Fatal(err)
			}
			rooms = append(rooms, r)
			n++
		}
		return n
	}
	if n := takes("evil"); n != 111 {
		t.Errorf("one takes %d of 1000", n)
	}
	for i := range 19 {
		if n := takes(fmt.Sprintf("evil-%d", i)); n == 0 {
			t.Errorf("number %d gets nothing", i)
		}
	}
	if n := takes("victim"); n < 10 {
		t.Errorf("beside 20 others %d of 1000 are left for one namespace", n)
	}
	if n := takes(""); n < 40 {
		t.Errorf("beside 21 others %d of 1000 are left for what is read together", n)
	}
	for _, r := range rooms {
		if err := r.grow(1000 * unit); !errors.Is(err, errNoRoom) {
			t.Errorf("too much: %v", err)
		}
		r.leave()
	}
	if m.used != 0 || len(m.by) != 0 {
		t.Errorf("not all is given back: %d, %v", m.used, m.by)
	}
	if n := takes(""); n != 500 {
		t.Errorf("what is read together takes %d of 1000", n)
	}
}

func TestMemoryIsWaitedFor(t *testing.T) {
	m := newMemory(1000)
	if _, err := m.room(t.Context(), "shop", 126); !errors.Is(err, errNoRoom) {
		t.Errorf("more than there can ever be: %v", err)
	}
	first, err := m.room(t.Context(), "shop", 75)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := m.room(short, "shop", 75); !errors.Is(err, errCrowded) {
		t.Errorf("nobody has left: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.room(gone, "shop", 75); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits any more: %v", err)
	}
	came := make(chan error)
	go func() {
		second, err := m.room(t.Context(), "shop", 75)
		if err == nil {
			second.leave()
		}
		came <- err
	}()
	first.leave()
	if err := <-came; err != nil {
		t.Error(err)
	}
	if m.used != 0 {
		t.Errorf("%d are used", m.used)
	}
}

// TestAnswersThatDoNotEnd leave the others' alone, and so does their number.
func TestAnswersThatDoNotEnd(t *testing.T) {
	slow := newMetricsServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, vectorBegins)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	good := newMetricsServer(t, vector("0.001"))
	f := newFixture(t, good.URL, func(c *Config) { c.Memory, c.Concurrency = 24*answerCost, 20 })
	for i := range 20 {
		f.Track(target(fmt.Sprintf("evil-%d", i), checksOnly("up"), func(t *Target) {
			t.Key.Namespace = "evil"
			t.Health.Prometheus = &v1alpha1.Prometheus{Address: slow.URL}
		}))
	}
	f.clock.Step(time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	defer f.inflight.Wait()
	defer cancel()
	f.poll(ctx)
	eventually(t, "all are asked", func() bool { slow.mu.Lock(); defer slow.mu.Unlock(); return len(slow.asked) == 20 })
	f.Track(target("web", checksOnly("up")))
	f.poll(ctx)
	eventually(t, "a verdict for another", func() bool { return f.Verdict(key("web")).State == v1alpha1.VerdictHealthy })
}

// TestMemoryOfATable: what a reply of another size than fits in is not kept, and the
// rollouts are read by parts.
func TestMemoryOfATable(t *testing.T) {
	s := newMetricsServer(t, traffic(120, 0))
	f := newFixture(t, s.URL, func(c *Config) { c.Memory = 64 * answerCost })
	const rollouts = 200
	for i := range rollouts {
		f.Track(target(fmt.Sprintf("web-%d", i), withLatency, func(t *Target) {
			t.Key.Namespace, t.ConfirmedAt = fmt.Sprintf("team-%d", i%2), start.Add(-time.Hour)
		}))
	}
	f.step(timeToVerdict)
	if asked := len(s.take()); asked < 10 || asked > 100 {
		t.Errorf("%d requests: too few, or one for each rollout", asked)
	}
	for i := range rollouts {
		k := key(fmt.Sprintf("web-%d", i))
		k.Namespace = fmt.Sprintf("team-%d", i%2)
		if v := f.Verdict(k); v.Reason == v1alpha1.ReasonProviderError {
			t.Fatalf("%s: %+v", k, v)
		}
	}
}
