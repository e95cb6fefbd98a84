package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

func TestVerdictBecomesHealthyAndWakesOnce(t *testing.T) {
	s := newMetricsServer(t, traffic(120, 0))
	f := newFixture(t, s.URL)
	f.Track(target("web", withLatency))
	var seen []string
	for range 12 {
		f.step(15 * time.Second)
		f.Track(target("web", withLatency)) // every reconcile says it again
		if woken := f.wakes(); len(woken) > 0 {
			v := f.Verdict(key("web"))
			seen = append(seen, fmt.Sprintf("%s %s %s", f.clock.Since(start), v.State, v.Reason))
		}
	}
	// The first window that begins 15s after the confirmation ends at 75s; the first
	// of them on the grid at 120s.
	if diff := cmp.Diff([]string{"2m0s Healthy ChecksPassed"}, seen); diff != "" {
		t.Errorf("wakes (-want +got):\n%s", diff)
	}
	if got := len(f.Windows(key("web"))); got != 8 {
		t.Errorf("%d windows, want 8", got)
	}
	v := f.Verdict(key("web"))
	if v.Requests != 240 || !v.RampReady || !v.StageReady {
		t.Errorf("%+v", v)
	}
}

func TestBreachWakesAndActs(t *testing.T) {
	s := newMetricsServer(t, traffic(120, 0))
	f := newFixture(t, s.URL)
	f.Track(target("web"))
	var seen []string
	for i := range 20 {
		if i == 12 {
			s.answer(traffic(120, 60))
		}
		f.step(15 * time.Second)
		for range f.wakes() {
			v := f.Verdict(key("web"))
			seen = append(seen, fmt.Sprintf("%s %s %s", f.clock.Since(start), v.State, v.Check))
		}
	}
	// At 3m15s the server says so of the tick before as well, which is read again.
	want := []string{"2m0s Healthy ", "3m15s Degraded error-rate", "4m0s Unhealthy error-rate"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("wakes (-want +got):\n%s", diff)
	}
	if want := []bool{false, true, true}; !slices.Equal(f.bad, want) {
		t.Errorf("bad news %v, want %v", f.bad, want)
	}
}

func TestOneRequestPerKindAndThousand(t *testing.T) {
	s := newMetricsServer(t, traffic(50, 0))
	f := newFixture(t, s.URL)
	for i := range 1100 {
		f.Track(target(fmt.Sprintf("app-%04d", i), withLatency))
	}
	f.step(15 * time.Second)
	if asked := s.take(); len(asked) != 0 {
		t.Errorf("%d requests before there can be evidence", len(asked))
	}
	f.step(60 * time.Second)
	for range 2 {
		asked := s.take()
		if len(asked) != 4 {
			t.Fatalf("%d requests for 1100 rollouts and two kinds, want 4", len(asked))
		}
		for _, a := range asked {
			if n, ticks := len(backendNames(a.Get("query"))), len(steps(a)); n > 2000 || ticks > 2 {
				t.Errorf("%d backends at %d ticks", n, ticks)
			}
		}
		f.step(15 * time.Second)
	}
	for i := range 1100 {
		if n := len(f.Windows(key(fmt.Sprintf("app-%04d", i)))); n != 3 {
			t.Fatalf("rollout %d has %d windows", i, n)
		}
	}
	f.step(0)
	s.take()
	f.step(time.Second)
	if asked := s.take(); len(asked) != 0 {
		t.Errorf("%d requests between two ticks", len(asked))
	}
}

func TestGroupsShareNoRequests(t *testing.T) {
	s := newMetricsServer(t, traffic(50, 0))
	f := newFixture(t, s.URL)
	f.Track(target("a"))
	f.Track(target("b"))
	f.Track(target("c", func(t *Target) { t.Health.Window = "2m" }))
	f.Track(target("d", func(t *Target) { t.Health.Interval = "5s" }))
	f.Track(target("unconfirmed", func(t *Target) { t.ConfirmedAt = time.Time{} }))
	f.Track(target("disabled", func(t *Target) { t.Health = &v1alpha1.Health{Disabled: true} }))
	f.step(150 * time.Second)
	var asked []string
	for _, a := range s.take() {
		asked = append(asked, strings.Join(backendNames(a.Get("query")), " ")+" step "+a.Get("step"))
	}
	slices.Sort(asked)
	k := "@kubernetesgateway"
	want := []string{
		"shop-a-canary-http-80" + k + " shop-a-stable-http-80" + k + " shop-b-canary-http-80" + k + " shop-b-stable-http-80" + k + " step 15",
		"shop-c-canary-http-80" + k + " shop-c-stable-http-80" + k + " step 15",
		"shop-d-canary-http-80" + k + " shop-d-stable-http-80" + k + " step 5",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if v := f.Verdict(key("disabled")); v.State != v1alpha1.VerdictHealthy {
		t.Errorf("disabled: %+v", v)
	}
}

func TestRestartReadsBack(t *testing.T) {
	s := newMetricsServer(t, traffic(30, 0))
	f := newFixture(t, s.URL)
	f.clock.SetTime(start.Add(20*time.Minute + 3*time.Second))
	f.Track(target("web", withLatency))
	f.Track(target("old", withLatency, func(t *Target) { t.ConfirmedAt = start.Add(-24 * time.Hour) }))
	f.step(0)
	asked := s.take()
	if len(asked) != 2 {
		t.Fatalf("%d requests, want one per kind", len(asked))
	}
	for _, a := range asked {
		// The last hour, and the tick before it.
		if a.Get("start") != unixSeconds(start.Add(20*time.Minute-241*15*time.Second)) || a.Get("end") != unixSeconds(start.Add(20*time.Minute)) {
			t.Errorf("range from %s to %s", a.Get("start"), a.Get("end"))
		}
	}
	web := f.Windows(key("web"))
	// Of the older windows only those on the grid are kept.
	if len(web) == 0 || !web[0].End.Equal(start.Add(2*time.Minute)) {
		t.Errorf("the first of %d windows is not the first on the grid", len(web))
	}
	// 19 windows of 30 requests lie on the grid between 1m and 20m.
	if v := f.Verdict(key("web")); v.Requests != 19*30 || v.State != v1alpha1.VerdictHealthy {
		t.Errorf("%+v", v)
	}
	if v := f.Verdict(key("old")); v.Requests != 60*30 {
		t.Errorf("%+v", v)
	}
	f.step(15 * time.Second)
	for _, a := range s.take() {
		if n := len(steps(a)); n != 2 {
			t.Errorf("%d ticks are read, want the new one and the one before it: from %s to %s", n, a.Get("start"), a.Get("end"))
		}
	}
}

func TestOutageIsReadAfterwards(t *testing.T) {
	s := newMetricsServer(t, traffic(120, 0))
	f := newFixture(t, s.URL)
	f.Track(target("web"))
	f.step(2 * time.Minute)
	s.answer(text(http.StatusInternalServerError, "boom"))
	for range 4 {
		f.step(15 * time.Second)
		v := f.Verdict(key("web"))
		if v.State != v1alpha1.VerdictUnknown || v.Reason != v1alpha1.ReasonProviderError || v.RampReady {
			t.Errorf("%+v", v)
		}
	}
	s.answer(traffic(120, 0))
	s.take()
	f.step(15 * time.Second)
	asked := s.take()
	if len(asked) != 1 || asked[0].Get("start") != unixSeconds(start.Add(2*time.Minute)) || asked[0].Get("end") != unixSeconds(start.Add(3*time.Minute+15*time.Second)) {
		t.Errorf("after the outage %v was asked", asked)
	}
	for _, w := range f.Windows(key("web")) {
		if w.Problem != nil {
			t.Errorf("window to %s still has %+v", w.End.Sub(start), w.Problem)
		}
	}
	// The grid window within the outage counts as well.
	if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictHealthy || v.Requests != 240 {
		t.Errorf("%+v", v)
	}
}

func TestTrackDropsEvidenceOfAnotherTarget(t *testing.T) {
	changes := map[string]func(*Target){
		"uid":       func(t *Target) { t.UID = "other" },
		"attempt":   func(t *Target) { t.Attempt++ },
		"subject":   func(t *Target) { t.Subject = health.TrackStable },
		"confirmed": func(t *Target) { t.ConfirmedAt = t.ConfirmedAt.Add(time.Second) },
		"limit":     func(t *Target) { t.Health.ErrorRate.MaxPercent = "1" },
		"backend":   func(t *Target) { t.Canary.Port = 81 },
		"namespace": func(t *Target) { t.Canary.Namespace = "apps" },
		"workload":  func(t *Target) { t.Canary.Workload = &v1alpha1.WorkloadReference{Name: "web"} },
		"nothing":   func(t *Target) { t.ConfirmedAt = t.ConfirmedAt.In(time.FixedZone("x", 3600)) },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			s := newMetricsServer(t, traffic(120, 0))
			f := newFixture(t, s.URL)
			f.Track(target("web"))
			f.step(2 * time.Minute)
			before := len(f.Windows(key("web")))
			f.Track(target("web", change))
			after := len(f.Windows(key("web")))
			if kept := after == before; kept != (name == "nothing" || name == "workload") || before == 0 {
				t.Errorf("%d windows before, %d after", before, after)
			}
		})
	}
}

func TestTrackCopiesTheSpec(t *testing.T) {
	s := newMetricsServer(t, traffic(120, 0))
	f := newFixture(t, s.URL)
	mine := target("web")
	f.Track(mine)
	f.step(2 * time.Minute)
	mine.Health.ErrorRate.MaxPercent = "1"
	f.Track(mine)
	if got := len(f.Windows(key("web"))); got != 0 {
		t.Errorf("a change through a shared pointer went unseen: %d windows", got)
	}
}

func TestForget(t *testing.T) {
	s := newMetricsServer(t, traffic(120, 0))
	f := newFixture(t, s.URL)
	f.Track(target("web"))
	f.step(2 * time.Minute)
	f.Forget(key("web"))
	f.Forget(key("web"))
	s.take()
	f.step(time.Minute)
	if len(s.take()) != 0 || f.Windows(key("web")) != nil {
		t.Error("a forgotten target is still read")
	}
	if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictUnknown || v.Reason != v1alpha1.ReasonAwaitingWindow {
		t.Errorf("%+v", v)
	}
	if len(f.servers)+len(f.intervals)+len(f.entries)+len(f.busy) != 0 {
		t.Errorf("left behind: %v %v %v %v", f.servers, f.intervals, f.entries, f.busy)
	}
}

func TestWhatCannotBeAskedIsSaidAtOnce(t *testing.T) {
	tests := map[string]struct {
		address string
		change  func(*Target)
		reason  string
		message string
	}{
		"no address":  {"", func(*Target) {}, v1alpha1.ReasonNoMetricsAddress, "set health.prometheus.address"},
		"user info":   {"http://user:s3cr3t@prom.test", func(*Target) {}, v1alpha1.ReasonNoMetricsAddress, "user name"},
		"in the spec": {"", func(t *Target) { t.Health.Prometheus = &v1alpha1.Prometheus{Address: "http://user:s3cr3t@prom.test"} }, v1alpha1.ReasonNoMetricsAddress, "user name"},
		"query":       {"http://prom.test?token=s3cr3t", func(*Target) {}, v1alpha1.ReasonNoMetricsAddress, "query"},
		"scheme":      {"s3cr3t://prom.test", func(*Target) {}, v1alpha1.ReasonNoMetricsAddress, "http or https"},
		"no URL":      {"http://s3cr3t:%zz", func(*Target) {}, v1alpha1.ReasonNoMetricsAddress, "http or https"},
		"bad spec":    {"http://prom.test", func(t *Target) { t.Health.Window = "x" }, v1alpha1.ReasonInvalidSpec, "health.window"},
		"no health":   {"http://prom.test", func(t *Target) { t.Health = nil }, v1alpha1.ReasonInvalidSpec, "health"},
		"same names":  {"http://prom.test", func(t *Target) { t.Canary = t.Stable }, v1alpha1.ReasonAmbiguousResult, "rename"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, tc.address)
			f.Track(target("web", tc.change))
			v := f.Verdict(key("web"))
			if v.State != v1alpha1.VerdictUnknown || v.Reason != tc.reason || !strings.Contains(v.Message, tc.message) || v.RampReady || v.StageReady {
				t.Errorf("%+v", v)
			}
			if strings.Contains(v.Message, "s3cr3t") {
				t.Errorf("the message leaks: %q", v.Message)
			}
			f.step(5 * time.Minute)
		})
	}
}

func TestClockSetBack(t *testing.T) {
	s := newMetricsServer(t, traffic(120, 0))
	f := newFixture(t, s.URL)
	f.Track(target("web"))
	f.step(10 * time.Minute)
	if v := f.Verdict(key("web")); !v.StageReady {
		t.Fatalf("%+v", v)
	}
	f.clock.SetTime(start.Add(4 * time.Minute))
	f.step(0)
	v := f.Verdict(key("web"))
	if !v.RampReady || v.To.After(start.Add(4*time.Minute)) {
		t.Errorf("%+v", v)
	}
	for _, w := range f.Windows(key("web")) {
		if w.End.After(f.clock.Now()) {
			t.Errorf("a window of the future is left: %s", w.End.Sub(start))
		}
	}
	// Before the confirmation there is no evidence.
	f.clock.SetTime(start.Add(-time.Hour))
	f.step(0)
	if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictUnknown {
		t.Errorf("%+v", v)
	}
}

func TestClockJumpsForward(t *testing.T) {
	s := newMetricsServer(t, traffic(120, 0))
	f := newFixture(t, s.URL)
	f.Track(target("web"))
	f.step(10 * time.Minute)
	s.take()
	f.step(10 * 365 * 24 * time.Hour)
	asked := s.take()
	if len(asked) != 1 || len(steps(asked[0])) != 242 {
		t.Errorf("%d requests of %d ticks", len(asked), len(steps(asked[0])))
	}
}

func TestStartTicksByItself(t *testing.T) {
	s := newMetricsServer(t, traffic(120, 0))
	f := newFixture(t, s.URL)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Start(ctx) }()
	f.Track(target("web"))
	for i := range 10 {
		eventually(t, "a timer", f.clock.HasWaiters)
		f.clock.Step(15 * time.Second)
		if want := max(0, i+2-5); want > 0 {
			eventually(t, "a window", func() bool { return len(f.Windows(key("web"))) >= want })
		}
	}
	eventually(t, "a verdict", func() bool { return f.Verdict(key("web")).StageReady })
	// A target that is due at once does not wait for the next tick.
	f.Track(target("late"))
	eventually(t, "read-back", func() bool { return f.Verdict(key("late")).StageReady })
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Start does not end")
	}
	if !f.NeedLeaderElection() {
		t.Error("every replica would ask")
	}
}

func TestSlowServerDelaysNobodyElse(t *testing.T) {
	release := make(chan struct{})
	slow := newMetricsServer(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		traffic(120, 0)(w, r)
	})
	quick := newMetricsServer(t, traffic(120, 0))
	f := newFixture(t, quick.URL, func(c *Config) { c.Timeout = time.Minute })
	f.Track(target("quick"))
	f.Track(target("slow", func(t *Target) { t.Health.Prometheus = &v1alpha1.Prometheus{Address: slow.URL} }))
	for i := range 20 {
		f.clock.Step(15 * time.Second)
		f.poll(t.Context())
		if want := i + 2 - 5; want > 0 {
			// The loop would poll again when the round before has ended.
			eventually(t, "a quick window", func() bool { f.poll(t.Context()); return len(f.Windows(key("quick"))) >= want })
		}
	}
	eventually(t, "the slow request", func() bool { slow.mu.Lock(); defer slow.mu.Unlock(); return len(slow.asked) > 0 })
	if n := len(slow.take()); n != 1 {
		t.Errorf("the slow server got %d requests at once", n)
	}
	close(release)
	f.inflight.Wait()
	f.step(0)
	if v := f.Verdict(key("slow")); !v.StageReady {
		t.Errorf("%+v", v)
	}
}

func TestEvidenceIsBounded(t *testing.T) {
	s := newMetricsServer(t, traffic(120, 0))
	f := newFixture(t, s.URL)
	f.Track(target("web", withLatency))
	for range 400 {
		f.step(15 * time.Second)
	}
	windows := f.Windows(key("web"))
	if n := len(windows); n > 120 {
		t.Errorf("%d windows are kept", n)
	}
	if v := f.Verdict(key("web")); v.Requests != 60*120 {
		t.Errorf("%d requests of an hour", v.Requests)
	}
	for _, w := range windows {
		if len(w.Canary.Buckets) != 2 {
			t.Fatalf("%d buckets are kept", len(w.Canary.Buckets))
		}
	}
}
