package telemetry

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// neighbours is how many rollouts behave badly beside a victim.
const neighbours = 20

// world is a collector that asks one server about a victim and its neighbours.
type world struct {
	*fixture
	server *metricsServer
	bad    atomic.Bool // the victim's canary fails
}

var victim = types.NamespacedName{Namespace: "victims", Name: "web"}

// newWorld has requests that are about a neighbour answered by evil, and the others well.
func newWorld(t *testing.T, evil http.HandlerFunc, change ...func(*Config)) *world {
	t.Helper()
	w := &world{}
	w.server = newMetricsServer(t, func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.Form.Get("query"), "evil"):
			evil(rw, r)
		case w.bad.Load() && ownCheck(r):
			values(rw, r, func(time.Time) float64 { return 9 })
		case w.bad.Load():
			traffic(120, 108)(rw, r)
		default:
			traffic(120, 0)(rw, r)
		}
	})
	w.fixture = newFixture(t, w.server.URL, change...)
	t.Cleanup(func() {
		for i := range neighbours {
			w.Forget(evilKey(i))
		}
		w.server.CloseClientConnections()
		w.inflight.Wait()
	})
	return w
}

func evilKey(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: fmt.Sprintf("evil-%02d", i), Name: "web"}
}

// track tracks the victim, and neighbours in namespaces of their own.
func (w *world) track(evil func(i int, t *Target), own ...func(*Target)) {
	w.Track(target("web", append([]func(*Target){func(t *Target) { t.Key, t.For = victim, "0s" }}, own...)...))
	for i := range neighbours {
		w.Track(target("evil", func(t *Target) {
			t.Key = evilKey(i)
			evil(i, t)
		}))
	}
}

// within moves the clock by intervals until the victim's canary is found to be unhealthy,
// and returns how many it took.
func (w *world) within(interval time.Duration, most int) int {
	w.t.Helper()
	unhealthy := func() bool {
		w.poll(w.t.Context())
		return w.Verdict(victim).State == v1alpha1.VerdictUnhealthy
	}
	for i := 1; i < most; i++ {
		w.clock.Step(interval)
		for range 100 {
			if unhealthy() {
				return i
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	w.clock.Step(interval)
	eventually(w.t, fmt.Sprintf("the victim's verdict within %d intervals", most), unhealthy)
	return most
}

// held answers nothing until its client does not wait any more.
func held(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// asked counts the requests that are about neighbours, and those that are not.
func (w *world) asked() (evil, others int) {
	for _, a := range w.server.take() {
		if strings.Contains(a.Get("query"), "evil") {
			evil++
		} else {
			others++
		}
	}
	return evil, others
}

// TestSlowCountsDelayNobodyElse: Services whose requests take too long to count spoil the
// request of all once, and then nobody's but their own.
func TestSlowCountsDelayNobodyElse(t *testing.T) {
	released := make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
		case <-r.Context().Done():
		}
		text(504, "")(rw, r)
	})
	w.track(func(int, *Target) {})
	w.bad.Store(true)
	w.shared(timeToVerdict)
	if took := w.within(15*time.Second, 1); took > 1 {
		t.Errorf("%d more intervals", took)
	}
	close(released)
	w.inflight.Wait()
	// From then on the victim is asked for by itself, and the others less and less often.
	w.server.take()
	const rounds = 16
	for range rounds {
		w.step(15 * time.Second)
		if v := w.Verdict(victim); v.State != v1alpha1.VerdictUnhealthy {
			t.Errorf("%+v", v)
		}
	}
	if evil, others := w.asked(); others != rounds || evil > neighbours*6 {
		t.Errorf("%d requests for others and %d for the slow ones in %d rounds", others, evil, rounds)
	}
}

// shared moves the clock to a tick, and waits until the request that all share is sent.
func (w *world) shared(d time.Duration) {
	w.t.Helper()
	w.clock.Step(d)
	w.poll(w.t.Context())
	eventually(w.t, "the request that all share", w.clock.HasWaiters)
}

// TestOneBatchWaitsForOneInterval: where the wait for an answer is longer than the interval,
// those that share a request wait no longer than that.
func TestOneBatchWaitsForOneInterval(t *testing.T) {
	w := newWorld(t, held)
	quick := func(t *Target) { t.Health.Window, t.Health.Interval, t.Health.SampleDelay = "1s", "1s", "0s" }
	w.track(func(_ int, t *Target) { quick(t) }, quick, func(t *Target) {
		t.Health.Checks = []v1alpha1.Check{{Name: "own", Query: "up", Max: new(v1alpha1.Decimal("2"))}}
	})
	w.bad.Store(true)
	w.shared(time.Second)
	w.clock.Step(time.Second)
	eventually(t, "the victim's verdict at the next tick", func() bool {
		w.poll(t.Context())
		v := w.Verdict(victim)
		if v.Reason == v1alpha1.ReasonProviderError {
			t.Errorf("what is only late is no failure: %+v", v)
		}
		return v.State == v1alpha1.VerdictUnhealthy
	})
	eventually(t, "the answers at both ticks", func() bool {
		windows := w.Windows(victim)
		return len(windows) == 2 && answeredAt(windows[0]) && answeredAt(windows[1])
	})
}

func answeredAt(w health.Window) bool { return len(w.Checks) == 1 && w.Checks[0].Value == 9 }

func ownWindow(i int, t *Target) {
	t.Health.Window = v1alpha1.Duration(fmt.Sprintf("%ds", 15*(i+5)))
	t.ConfirmedAt = start.Add(-time.Hour)
}

func sameNamespace(i int, t *Target) {
	t.Key = types.NamespacedName{Namespace: victim.Namespace, Name: fmt.Sprintf("evil-%d", i)}
}

// TestRestIsForOneAlone: a server that wants no more requests about some goes on to answer
// those about others, and those that it told so do not ask before.
func TestRestIsForOneAlone(t *testing.T) {
	for name, evil := range map[string]func(int, *Target){
		"windows of their own":   ownWindow,
		"in one request":         func(int, *Target) {},
		"checks":                 func(_ int, t *Target) { ownChecks(1, "evil")(t) },
		"in the same namespace":  sameNamespace,
		"and windows of its own": func(i int, t *Target) { sameNamespace(i, t); ownWindow(i, t) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, text(429, "", "Retry-After", "300"))
			w.track(evil, func(t *Target) {
				if name == "checks" {
					ownChecks(1, "up")(t)
				}
			})
			w.step(timeToVerdict)
			w.step(15 * time.Second)
			w.bad.Store(true)
			if took := w.within(15*time.Second, 2); took > 2 {
				t.Errorf("%d intervals", took)
			}
			w.step(15 * time.Second)
			w.server.take()
			for range 16 {
				w.step(15 * time.Second)
			}
			if evil, _ := w.asked(); evil > 0 {
				t.Errorf("%d requests while the server wanted none", evil)
			}
		})
	}
}

// ownChecks gives a target checks of its own alone.
func ownChecks(n int, query string) func(*Target) {
	return func(t *Target) {
		t.Health = &v1alpha1.Health{}
		for i := range n {
			t.Health.Checks = append(t.Health.Checks, v1alpha1.Check{Name: fmt.Sprintf("own-%d", i), Query: query, Max: new(v1alpha1.Decimal("2"))})
		}
	}
}

// TestSlowRefusalsDelayNobodyElse: rollouts whose metrics are refused are read beside the
// others, not before them, however long their refusals take.
func TestSlowRefusalsDelayNobodyElse(t *testing.T) {
	refusal := text(422, `{"status":"error","errorType":"execution","error":"many-to-many matching not allowed"}`)
	var slow atomic.Bool
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if slow.Load() {
			held(rw, r)
		}
		refusal(rw, r)
	})
	w.track(func(int, *Target) {})
	w.step(timeToVerdict)
	if evil, others := w.asked(); evil+others > 2*(neighbours+1) {
		t.Errorf("%d requests to find out which of %d are refused", evil+others, neighbours)
	}
	w.step(15 * time.Second)
	slow.Store(true)
	w.bad.Store(true)
	if took := w.within(15*time.Second, 1); took > 1 {
		t.Errorf("%d intervals", took)
	}
}

// TestManySlowChecksDelayNobodyElse: every namespace has its turn, however many slow checks
// others have.
func TestManySlowChecksDelayNobodyElse(t *testing.T) {
	w := newWorld(t, held)
	w.track(func(_ int, t *Target) { ownChecks(20, "evil")(t) }, ownChecks(3, "up"))
	w.bad.Store(true)
	// The victim is the last to come.
	w.Forget(victim)
	w.clock.Step(timeToVerdict)
	w.poll(t.Context())
	eventually(t, "the slow checks", func() bool {
		w.server.mu.Lock()
		defer w.server.mu.Unlock()
		return len(w.server.asked) >= defaultConcurrency
	})
	w.Track(target("web", ownChecks(3, "up"), func(t *Target) { t.Key, t.For = victim, "0s" }))
	if took := w.within(15*time.Second, 1); took > 1 {
		t.Errorf("%d intervals", took)
	}
}

// TestOneThatComesAndGoes: a neighbour that is slow in company, and not by itself, is let in
// again and again. The others are read at every other tick then.
func TestOneThatComesAndGoes(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Form.Get("query"), "victims") {
			text(504, "")(rw, r)
			return
		}
		traffic(120, 0)(rw, r)
	})
	w.track(func(int, *Target) {})
	w.clock.Step(timeToVerdict - 15*time.Second)
	for i := range 12 {
		w.step(15 * time.Second)
		_, read, _ := w.Latest(victim)
		if age := w.clock.Now().Sub(read); i > 0 && age > 15*time.Second {
			t.Errorf("the newest evidence is %s old", age)
		}
	}
}

// TestOutageWhileOneIsSought: a server that answers nobody just when each is asked for by
// itself does not hide who is slow.
func TestOutageWhileOneIsSought(t *testing.T) {
	w := newWorld(t, text(504, ""))
	good := w.server.reply
	w.track(func(int, *Target) {})
	w.step(timeToVerdict)
	w.server.answer(text(500, ""))
	w.step(15 * time.Second)
	w.server.answer(good)
	w.bad.Store(true)
	if took := w.within(15*time.Second, 2); took > 2 {
		t.Errorf("%d intervals", took)
	}
}

// TestOutageIsNobodysFault: of a server that answers nobody nothing is found out, and it is
// asked no more than before, but for once.
func TestOutageIsNobodysFault(t *testing.T) {
	for name, down := range map[string]http.HandlerFunc{
		"errors": text(500, ""), "refusals": text(422, `{"status":"error","errorType":"execution"}`),
		"silence": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.server.answer(traffic(120, 0))
			w.track(func(int, *Target) {})
			w.step(timeToVerdict)
			w.server.answer(down)
			w.step(15 * time.Second)
			w.step(15 * time.Second)
			w.step(15 * time.Second)
			w.server.take()
			for range 10 {
				w.step(15 * time.Second)
			}
			if evil, others := w.asked(); evil+others > 2*10 {
				t.Errorf("%d requests in 10 rounds to a server that is down", evil+others)
			}
			w.server.answer(traffic(120, 108))
			if took := w.within(15*time.Second, 1); took > 1 {
				t.Errorf("%d intervals", took)
			}
		})
	}
}

// TestLane: no tenant waits for another one, nor what is asked now for what comes last.
func TestLane(t *testing.T) {
	f := newFixture(t, "http://prom.test")
	l := newLane(2, f.clock)
	var leaves []func()
	take := func(n int, by caller) (got int) {
		for range n {
			l.mu.Lock()
			u := l.tenants[by.tenant]
			if u == nil {
				u = &tenant{name: by.tenant}
			}
			free := l.admits(u, by.last)
			l.mu.Unlock()
			if !free {
				continue
			}
			leave, err := l.enter(t.Context(), by)
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
			got++
		}
		return got
	}
	if n := take(9, caller{tenant: "a"}); n != 2 {
		t.Errorf("one tenant has %d", n)
	}
	for i := range 6 {
		want := 1
		if i == 0 {
			want = 2 // there still is room for more than one
		}
		if n := take(9, caller{tenant: fmt.Sprintf("b%d", i)}); n != want {
			t.Errorf("tenant %d beside others has %d", i, n)
		}
	}
	if n := take(9, caller{tenant: "a", last: true}) + take(9, caller{tenant: "c", last: true}) + take(9, caller{tenant: "d", last: true}); n != 2 {
		t.Errorf("%d of those that come last", n)
	}
	if n := take(30, caller{}); n != 5 {
		t.Errorf("%d of everybody, within the bound on all", n)
	}
	if n := take(9, caller{tenant: "z"}); n != 0 {
		t.Errorf("%d beyond the bound on all", n)
	}
	var order []string
	var mu sync.Mutex
	var waiters sync.WaitGroup
	for i, by := range []caller{{"late", true}, {"first", false}, {"second", false}} {
		waiters.Go(func() {
			leave, err := l.enter(t.Context(), by)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, by.tenant)
			mu.Unlock()
			leave()
		})
		eventually(t, "it waits", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.waiting) == i+1 })
	}
	for i, leave := range leaves {
		leave()
		if i == 0 {
			eventually(t, "the two that are asked now", func() bool { mu.Lock(); defer mu.Unlock(); return len(order) == 2 })
		}
	}
	waiters.Wait()
	if !slices.Equal(order, []string{"first", "second", "late"}) {
		t.Errorf("order %v", order)
	}
	if l.running != 0 || l.behind != 0 || len(l.tenants) != 0 || len(l.waiting) != 0 {
		t.Errorf("left behind: %+v", l)
	}
}
