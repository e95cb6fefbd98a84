package telemetry

import (
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

func TestReach(t *testing.T) {
	for query, want := range map[string]time.Duration{
		`up`:                                    0,
		`rate(x[5m])`:                           5 * time.Minute,
		`rate(x{a="b[9h]"}[1m]) / rate(y[10m])`: 10 * time.Minute,
		`x offset 1h`:                           time.Hour,
		`rate(x[5m] OFFSET 1h) > rate(y[2h])`:   3 * time.Hour,
		`max_over_time(rate(x[5m])[30m:1m])`:    35 * time.Minute,
		"# [1w]\nrate(x[1h30m]) + count({a='[1d]', b=`[2d]`})": 90 * time.Minute,
		`x[`:       0,
		`x[abc]`:   0,
		`x[9z]`:    0,
		`x offset`: 0,
	} {
		if got := reachOf(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// TestLongQueriesWait: a query that looks further back than the window is no evidence
// before all that it looks at lies after the confirmation.
func TestLongQueriesWait(t *testing.T) {
	s := newMetricsServer(t, traffic(120, 0))
	f := newFixture(t, s.URL)
	f.Track(target("long", checksOnly("rate(x[10m])"), func(t *Target) {
		t.Health.Window, t.Health.Interval, t.Health.SampleDelay = "1m", "15s", "15s"
		t.Health.Checks[0].Max = new(v1alpha1.Decimal("2"))
	}))
	for range 41 {
		f.step(15 * time.Second)
		v := f.Verdict(key("long"))
		since := f.clock.Now().Sub(start)
		if early := since < 10*time.Minute+15*time.Second; early && (v.Reason != v1alpha1.ReasonAwaitingWindow || v.RampReady) {
			t.Fatalf("after %s: %+v", since, v)
		}
	}
	for range 8 {
		f.step(15 * time.Second)
	}
	if v := f.Verdict(key("long")); v.State != v1alpha1.VerdictHealthy {
		t.Errorf("at the end: %+v", v)
	}
}
