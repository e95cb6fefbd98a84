package window

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// When windows open and close around changes of the clock. All times but those of the
// windows are in UTC.
func TestChangesOfTheClock(t *testing.T) {
	every := func(zone, from, to string) v1alpha1.Window {
		return v1alpha1.Window{From: from, To: to, TimeZone: zone}
	}
	for name, c := range map[string]struct {
		window v1alpha1.Window
		after  string // when the search begins; nothing is open then
		begin  string
		end    string
	}{
		// Berlin skips 02:00 to 03:00 at 01:00 UTC on 2026-03-29, and repeats it until
		// 01:00 UTC on 2026-10-25.
		"Berlin, spring, around it":                                 {every("Europe/Berlin", "01:30", "03:30"), "2026-03-29 00:00", "2026-03-29 00:30", "2026-03-29 01:30"},
		"Berlin, spring, begins in it":                              {every("Europe/Berlin", "02:30", "04:00"), "2026-03-29 00:00", "2026-03-29 01:00", "2026-03-29 02:00"},
		"Berlin, spring, ends in it":                                {every("Europe/Berlin", "01:00", "02:30"), "2026-03-28 12:00", "2026-03-29 00:00", "2026-03-29 01:00"},
		"Berlin, spring, all of it is skipped":                      {every("Europe/Berlin", "02:00", "03:00"), "2026-03-28 12:00", "2026-03-30 00:00", "2026-03-30 01:00"},
		"Berlin, spring, night":                                     {every("Europe/Berlin", "22:00", "06:00"), "2026-03-28 20:00", "2026-03-28 21:00", "2026-03-29 04:00"},
		"Berlin, autumn, around it":                                 {every("Europe/Berlin", "01:30", "03:30"), "2026-10-24 12:00", "2026-10-24 23:30", "2026-10-25 02:30"},
		"Berlin, autumn, begins with the first, ends with the last": {every("Europe/Berlin", "02:15", "02:45"), "2026-10-24 12:00", "2026-10-25 00:15", "2026-10-25 01:45"},
		"Berlin, autumn, night":                                     {every("Europe/Berlin", "22:00", "06:00"), "2026-10-24 19:00", "2026-10-24 20:00", "2026-10-25 05:00"},
		"Berlin, autumn, whole Sunday": {
			v1alpha1.Window{Days: days("Sun"), TimeZone: "Europe/Berlin"}, "2026-10-22 00:00", "2026-10-24 22:00", "2026-10-25 23:00",
		},
		// New York skips 02:00 to 03:00 at 07:00 UTC on 2026-03-08, and repeats 01:00 to
		// 02:00 until 07:00 UTC on 2026-11-01.
		"New York, spring":           {every("America/New_York", "02:30", "05:00"), "2026-03-08 06:00", "2026-03-08 07:00", "2026-03-08 09:00"},
		"New York, autumn":           {every("America/New_York", "01:30", "01:45"), "2026-11-01 00:00", "2026-11-01 05:30", "2026-11-01 06:45"},
		"New York, autumn, the next": {every("America/New_York", "01:30", "01:45"), "2026-11-01 07:00", "2026-11-02 06:30", "2026-11-02 06:45"},
		// Lord Howe moves by half an hour: it skips 02:00 to 02:30 at 15:30 UTC on
		// 2026-10-03, and repeats 01:30 to 02:00 until 15:30 UTC on 2026-04-04.
		"Lord Howe, spring, begins in it": {every("Australia/Lord_Howe", "02:15", "03:00"), "2026-10-03 12:00", "2026-10-03 15:30", "2026-10-03 16:00"},
		"Lord Howe, spring, begins after": {every("Australia/Lord_Howe", "02:45", "03:00"), "2026-10-03 12:00", "2026-10-03 15:45", "2026-10-03 16:00"},
		"Lord Howe, autumn, in it":        {every("Australia/Lord_Howe", "01:40", "01:50"), "2026-04-04 12:00", "2026-04-04 14:40", "2026-04-04 15:20"},
		// Apia had no Friday 2011-12-30: the clock went from the end of the 29th, 10:00
		// UTC on the 30th, to the 31st.
		"Apia, Fridays": {
			v1alpha1.Window{Days: days("Fri"), From: "09:00", To: "17:00", TimeZone: "Pacific/Apia"}, "2011-12-29 00:00", "2012-01-05 19:00", "2012-01-06 03:00",
		},
		"Apia, Thursday night": {
			v1alpha1.Window{Days: days("Thu"), From: "22:00", To: "06:00", TimeZone: "Pacific/Apia"}, "2011-12-29 00:00", "2011-12-30 08:00", "2011-12-30 10:00",
		},
		"Apia, Saturdays": {
			v1alpha1.Window{Days: days("Sat"), TimeZone: "Pacific/Apia"}, "2011-12-29 00:00", "2011-12-30 10:00", "2011-12-31 10:00",
		},
		// Kwajalein had two days of 1969-09-30, the second from 13:00 UTC on.
		"Kwajalein, a day that comes twice": {
			v1alpha1.Window{Days: days("Tue"), From: "12:00", To: "13:00", TimeZone: "Pacific/Kwajalein"}, "1969-09-29 12:00", "1969-09-30 01:00", "1969-10-01 01:00",
		},
		// Havana goes back from 01:00 to 00:00, at 05:00 UTC on 2026-11-01.
		"Havana, a midnight that comes twice": {
			v1alpha1.Window{Days: days("Sun"), TimeZone: "America/Havana"}, "2026-10-28 00:00", "2026-11-01 04:00", "2026-11-02 05:00",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, after := parse(t, c.window), utc(t, c.after)
			if s.Open(after) {
				t.Fatal("it is open already")
			}
			begin := s.Next(after)
			if diff := cmp.Diff(utc(t, c.begin), begin); diff != "" {
				t.Errorf("it begins (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(utc(t, c.end), s.Until(begin)); diff != "" {
				t.Errorf("it ends (-want +got):\n%s", diff)
			}
			last := s.Until(begin).Add(-time.Second)
			if !s.Open(last) || !s.Open(begin) || s.Open(begin.Add(-time.Second)) || s.Open(s.Until(begin)) {
				t.Error("Open does not agree with Next and Until")
			}
		})
	}
}
