package health

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// paced has windows of the given length, evaluated every interval.
func paced(window, interval time.Duration) Config {
	c := targets()
	c.Window, c.Interval = window, interval
	c.ErrorRate.Target, c.Latency.Target = nil, 0
	return c
}

// spell is a time in which the canary answers in slow seconds, and otherwise in fast.
type spell struct {
	from, to   time.Time
	fast, slow float64
}

// window is what an evaluation at end reads: one slow request in a hundred is enough for
// the percentile, so every window that overlaps the spell is slow.
func (s spell) window(c Config, end time.Time) Window {
	w := Window{Start: end.Add(-c.Window), End: end, Stable: reading(end, 1000, 1, 1)}
	p99 := s.fast
	if w.Start.Before(s.to) && end.After(s.from) {
		p99 = s.slow
	}
	latency(200, p99)(&w)
	return w
}

func (s spell) windows(c Config, from, to time.Time) (ws []Window) {
	for end := from; !end.After(to); end = end.Add(c.Interval) {
		ws = append(ws, s.window(c, end))
	}
	return ws
}

// average is the smoothed response time after all windows.
func average(t *testing.T, in Input) float64 {
	t.Helper()
	h := in.review(in.counted())
	value, known := h.signals.ema.Value()
	if !known {
		t.Fatal("there is no average")
	}
	return value
}

// One slow window moves the average by latency.smoothing of the step, however often
// windows are evaluated.
func TestOneSlowWindowMovesTheAverageBySmoothing(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute} {
		for _, smoothing := range []float64{0.1, 0.2, 0.3} {
			t.Run(fmt.Sprintf("every %s by %v", interval, smoothing), func(t *testing.T) {
				c := paced(time.Minute, interval)
				c.Latency.Smoothing = smoothing
				s := spell{from: epoch.Add(5 * time.Minute), to: epoch.Add(6 * time.Minute), fast: 0.2, slow: 0.4}
				ws := s.windows(c, epoch.Add(2*time.Minute), s.to)
				if got, want := average(t, input(c, ws))-0.2, 0.2*smoothing; math.Abs(got-want) > 1e-9 {
					t.Errorf("moved by %.4f of a step of 0.2, want %.4f", got, want)
				}
				// It is forgotten at the same pace.
				ws = s.windows(c, epoch.Add(2*time.Minute), s.to.Add(2*time.Minute))
				if got, want := average(t, input(c, ws))-0.2, 0.2*smoothing*(1-smoothing)*(1-smoothing); math.Abs(got-want) > 1e-9 {
					t.Errorf("two windows later %.4f of it is left, want %.4f", got, want)
				}
			})
		}
	}
}

// record reads windows as the controller does, at the given times.
func (s spell) record(c Config, r *Record, at ...time.Time) {
	for _, now := range at {
		if from, to, ok := r.Due(now); ok {
			r.Asked(to)
			r.Add(s.windows(c, from, to), to)
		}
	}
}

func every(step time.Duration, from, to time.Time) (all []time.Time) {
	for at := from; !at.After(to); at = at.Add(step) {
		all = append(all, at)
	}
	return all
}

// The average is the same for a record that grew with every evaluation, one that missed
// some, and one that was read back after a restart.
func TestTheAverageSurvivesARestart(t *testing.T) {
	c := paced(time.Minute, 15*time.Second)
	from, now := epoch.Add(time.Minute), epoch.Add(100*time.Minute)
	s := spell{from: now.Add(-20 * time.Minute), to: now.Add(-5 * time.Minute), fast: 0.2, slow: 0.4}
	averages := map[string]float64{}
	for name, at := range map[string][]time.Time{
		"every tick":      every(c.Interval, from, now),
		"seldom":          append(every(7*time.Minute, from, now), now),
		"not on the grid": append(every(time.Minute, from.Add(20*time.Second), now), now),
		"read back":       {now},
	} {
		r := Share{Config: c, Subject: TrackCanary, Unopposed: true, ConfirmedAt: epoch}.Record()
		s.record(c, &r, at...)
		averages[name] = average(t, r.Input(now))
	}
	want := 0.2 + 0.2*(1-math.Pow(0.8, 15))*math.Pow(0.8, 5)
	for name, got := range averages {
		if math.Abs(got-want) > 1e-4 {
			t.Errorf("%s: %.5f, want %.5f", name, got, want)
		}
	}
}

// A slow window weighs less and less, even where an hour holds few windows.
func TestALongWindowIsForgottenSlowly(t *testing.T) {
	for _, window := range []time.Duration{5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour} {
		c := paced(window, window/4)
		start := Ceil(epoch, window).Add(2 * window)
		s := spell{from: start.Add(window), to: start.Add(2 * window), fast: 0.2, slow: 0.4}
		r := Share{Config: c, Subject: TrackCanary, Unopposed: true, ConfirmedAt: epoch}.Record()
		s.record(c, &r, every(c.Interval, start, s.to)...)
		last := average(t, r.Input(s.to))
		for i := range 100 {
			now := s.to.Add(time.Duration(i) * c.Interval)
			s.record(c, &r, now)
			got := average(t, r.Input(now))
			if got > last+1e-9 {
				t.Fatalf("windows of %s: %d evaluations after the slow one the average rises from %.4f to %.4f", window, i, last, got)
			}
			last = got
		}
	}
}

// The checks of a spec are smoothed alike.
func TestOneBadAnswerMovesTheScoreBySmoothing(t *testing.T) {
	c := checksOnly()
	c.Checks = []Check{{Name: "queue", Max: new(10.0), Importance: 1}}
	c.DegradedBelow = 0.5
	ws := concat(windows(5, 20, check("queue", 0)), windows(21, 24, check("queue", 10)))
	if v := Evaluate(input(c, ws)); math.Abs(v.Score-0.8) > 1e-9 {
		t.Errorf("score %v after one window at the limit, want 0.8", v.Score)
	}
}

// The average judges targets only: a breach of latency.max is one however low it is.
func TestTheAverageHidesNoBreach(t *testing.T) {
	c := targets()
	c.For = time.Minute
	ws := concat(windows(5, 200, latency(1000, 0.1)), windows(201, 204, latency(1000, 0.9)))
	if got := average(t, input(c, ws)); got > 0.3 {
		t.Fatalf("the average is %v: it proves nothing here", got)
	}
	if v := Evaluate(input(c, ws)); v.State != v1alpha1.VerdictDegraded || v.Reason != v1alpha1.ReasonBreach {
		t.Errorf("%+v", v)
	}
	ws = concat(ws, windows(205, 205, latency(1000, 0.9)))
	if v := Evaluate(input(c, ws)); v.State != v1alpha1.VerdictUnhealthy || v.Check != CheckLatency {
		t.Errorf("a breach for %s: %+v", c.For, v)
	}
}
