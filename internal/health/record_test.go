package health

import (
	"testing"
	"time"
)

func TestGrid(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, 7 * time.Second, 15 * time.Second, time.Hour} {
		for _, offset := range []time.Duration{0, time.Millisecond, interval - time.Millisecond, interval} {
			at := time.UnixMilli(0).Add(1000*interval + offset)
			low, high := Floor(at, interval), Ceil(at, interval)
			if low.After(at) || high.Before(at) || low.UnixMilli()%interval.Milliseconds() != 0 || high.UnixMilli()%interval.Milliseconds() != 0 {
				t.Errorf("%s lies between %s and %s on the grid of %s", at, low, high, interval)
			}
			if width := high.Sub(low); width != 0 && width != interval {
				t.Errorf("%s: the grid of %s is %s wide", at, interval, width)
			}
		}
	}
}

// Of everything that is due nothing is read twice, and nothing that counts is left
// out, whenever the record is looked at.
func TestRecordReadsEveryTickOnce(t *testing.T) {
	c := both()
	c.Checks = nil
	r := Share{Config: c, ConfirmedAt: epoch}.Record()
	read := map[time.Time]int{}
	now := epoch
	for _, pause := range []time.Duration{10 * time.Second, time.Minute, time.Second, time.Second, 20 * time.Minute, 15 * time.Second, 14 * time.Second, 3 * time.Hour} {
		now = now.Add(pause)
		from, to, ok := r.Due(now)
		if !ok {
			continue
		}
		r.Asked(to)
		if _, _, again := r.Due(now); again {
			t.Fatalf("%s is due twice", to)
		}
		var ws []Window
		for end := from; !end.After(to); end = end.Add(c.Interval) {
			read[end.UTC()]++
			ws = append(ws, Window{Start: end.Add(-c.Window), End: end, Canary: reading(end, 100, 0, 0)})
		}
		r.Add(ws, to)
	}
	for end, n := range read {
		if n != 1 || end.Before(epoch.Add(c.SampleDelay+c.Window)) {
			t.Errorf("%s was read %d times", end.Sub(epoch), n)
		}
	}
	// The pause of three hours is too long to read it all: an hour counts.
	first, last := epoch.Add(75*time.Second), now.Add(-Memory)
	for end := Ceil(first, c.Interval); end.Before(epoch.Add(22 * time.Minute)); end = end.Add(c.Interval) {
		if end.Before(epoch.Add(21*time.Minute)) && read[end.UTC()] != 1 {
			t.Errorf("%s was left out", end.Sub(epoch))
		}
	}
	for end := Ceil(last, c.Interval); !end.After(now); end = end.Add(c.Interval) {
		if read[end.UTC()] != 1 {
			t.Errorf("%s was left out", end.Sub(epoch))
		}
	}
}

// What could not be read is due again, and its place is taken by what is read later.
func TestRecordReadsAgain(t *testing.T) {
	c := errorsOnly()
	r := Share{Config: c, ConfirmedAt: epoch}.Record()
	tick := epoch.Add(75 * time.Second)
	r.Asked(tick)
	failed := Window{Start: tick.Add(-c.Window), End: tick, Problem: &Problem{Reason: "ProviderError"}, Checks: []CheckResult{{Name: "own", Value: 1}}}
	r.Add([]Window{failed}, time.Time{})
	from, to, ok := r.Due(tick.Add(c.Interval))
	if !ok || !from.Equal(tick) || !to.Equal(tick.Add(c.Interval)) {
		t.Fatalf("due from %s to %s: %v", from, to, ok)
	}
	r.Asked(to)
	r.Add([]Window{{Start: failed.Start, End: tick}, {Start: to.Add(-c.Window), End: to}}, to)
	if ws := r.Windows(); len(ws) != 2 || ws[0].Problem != nil || len(ws[0].Checks) != 1 {
		t.Errorf("%+v", ws)
	}
	// A clock that was set back far forgets the future.
	if _, _, ok := r.Due(epoch.Add(time.Minute)); ok {
		t.Error("something is due before its time")
	}
	if _, _, ok := r.Due(tick); !ok || len(r.Windows()) != 0 {
		t.Errorf("after the clock was set back: %+v", r.Windows())
	}
}
