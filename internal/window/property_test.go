package window

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

func drawWindow(t *rapid.T) v1alpha1.Window {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "Africa/Casablanca"}
	w := v1alpha1.Window{
		Days:     rapid.SliceOfNDistinct(rapid.SampledFrom(dayNames[:]), 0, 7, rapid.ID).Draw(t, "days"),
		TimeZone: rapid.SampledFrom(zones).Draw(t, "zone"),
	}
	// Hours about a change of the clock come more often.
	minutes := rapid.OneOf(rapid.IntRange(0, 4*60), rapid.IntRange(0, minutesPerDay-1))
	from := minutes.Draw(t, "from")
	to := rapid.OneOf(minutes, rapid.Just(minutesPerDay)).Filter(func(to int) bool { return to != from }).Draw(t, "to")
	w.From, w.To = clock(from), clock(to)
	return w
}

// drawTime is a time about a change of the clock, or any of ten years.
func drawTime(t *rapid.T) time.Time {
	changes := []string{"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z", "2026-10-03T15:30:00Z", "2026-04-04T15:00:00Z", "2011-12-30T10:00:00Z"}
	if rapid.Bool().Draw(t, "about a change") {
		at, err := time.Parse(time.RFC3339, rapid.SampledFrom(changes).Draw(t, "change"))
		if err != nil {
			t.Fatal(err)
		}
		return at.Add(time.Duration(rapid.IntRange(-3*24*60, 3*24*60).Draw(t, "minutes")) * time.Minute)
	}
	return time.Unix(rapid.Int64Range(1704067200, 2019686400).Draw(t, "second"), 0).UTC()
}

// shows says, from the clock on the wall alone, whether a window is open in a minute. It
// holds where the clock does not change within the day before and the day after.
func shows(w window, at time.Time) bool {
	local := at.In(w.zone)
	minute, today := local.Hour()*60+local.Minute(), local.Weekday()
	if w.from < w.to {
		return w.days[today] && minute >= w.from && minute < w.to
	}
	yesterday := (today + 6) % 7
	return w.days[today] && minute >= w.from || w.days[yesterday] && minute < w.to
}

func steady(w window, at time.Time) bool {
	_, before := at.Add(-48 * time.Hour).In(w.zone).Zone()
	_, after := at.Add(48 * time.Hour).In(w.zone).Zone()
	begins, ends := at.In(w.zone).ZoneBounds()
	return before == after && (begins.IsZero() || at.Sub(begins) > 48*time.Hour) && (ends.IsZero() || ends.Sub(at) > 48*time.Hour)
}

// Next is open, and nothing between now and Next is. Until is closed, and nothing between
// now and Until is.
func TestPropertyNextAndUntil(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		windows := rapid.SliceOfN(rapid.Custom(drawWindow), 1, 4).Draw(t, "windows")
		s, now := parse(t, windows...), drawTime(t)
		next := s.Next(now)
		if next.Before(now) || !s.Open(next) {
			t.Fatalf("Next(%v) is %v, which is before, or not open", now, next)
		}
		wait := next.Sub(now)
		for range 20 {
			between := now.Add(time.Duration(rapid.Float64Range(0, 0.9999).Draw(t, "part") * float64(wait)))
			if between.Before(next) && s.Open(between) {
				t.Fatalf("open at %v, before Next(%v), which is %v", between, now, next)
			}
		}
		until := s.Until(next)
		if until.IsZero() {
			until = next.Add(lasting)
		} else if s.Open(until) || !until.After(next) {
			t.Fatalf("Until(%v) is %v, which is open, or not after", next, until)
		}
		for range 20 {
			during := next.Add(time.Duration(rapid.Float64Range(0, 0.9999).Draw(t, "part") * float64(until.Sub(next))))
			if !s.Open(during) {
				t.Fatalf("closed at %v, before Until(%v), which is %v", during, next, until)
			}
		}
	})
}

// Far from any change, a window is open when the clock on the wall says so.
func TestPropertyOpenIsWhatTheClockShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, now := parse(t, rapid.Custom(drawWindow).Draw(t, "window")), drawTime(t)
		w := s.windows[0]
		if !steady(w, now) {
			return
		}
		if got, want := s.Open(now), shows(w, now); got != want {
			t.Fatalf("Open(%v) is %v, and the clock says %v", now.In(w.zone), got, want)
		}
	})
}

// What is refused leaves no schedule, and what is accepted opens within five weeks.
func FuzzParse(f *testing.F) {
	f.Add("Mon", "09:00", "17:00", "Europe/Berlin", int64(1_790_000_000))
	f.Add("Sun", "02:00", "03:00", "America/New_York", int64(1_772_953_200))
	f.Add("", "", "", "", int64(-1<<62))
	f.Add("Fri", "24:00", "xx:yy", "../UTC", int64(1<<62))
	f.Fuzz(func(t *testing.T, day, from, to, zone string, second int64) {
		w := v1alpha1.Window{From: from, To: to, TimeZone: zone}
		if day != "" {
			w.Days = days(v1alpha1.Day(day))
		}
		s, err := Parse([]v1alpha1.Window{w})
		if err != nil {
			if len(s.windows) != 0 {
				t.Fatal("a refused schedule has windows")
			}
			return
		}
		now := time.Unix(second, 0)
		next := s.Next(now)
		if far := int64(1) << 37; second > -far && second < far && (next.Before(now) || next.Sub(now) > ahead*24*time.Hour) {
			t.Fatalf("Next(%v) is %v", now, next)
		}
		_, _ = s.Open(now), s.Until(now)
	})
}
