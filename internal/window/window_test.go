package window

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// days writes a list of days.
func days(names ...v1alpha1.Day) []v1alpha1.Day { return names }

// parse reads windows that are known to be right.
func parse(t interface{ Fatalf(string, ...any) }, windows ...v1alpha1.Window) Schedule {
	s, err := Parse(windows)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return s
}

// utc reads a time such as "2026-03-29 01:00".
func utc(t *testing.T, text string) time.Time {
	t.Helper()
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	good := v1alpha1.Window{}
	for name, c := range map[string]struct {
		window v1alpha1.Window
		want   string
	}{
		"day":           {v1alpha1.Window{Days: days("Mon", "Tues")}, `spec.plan.windows[1].days: "Tues" is no day of the week: write Mon, Tue, Wed, Thu, Fri, Sat or Sun`},
		"from":          {v1alpha1.Window{From: "9:00"}, `spec.plan.windows[1].from: "9:00" is no time of day: write one from "00:00" to "23:59", such as "09:00"`},
		"from 24:00":    {v1alpha1.Window{From: "24:00"}, `spec.plan.windows[1].from: "24:00" is no time of day: write one from "00:00" to "23:59", such as "09:00"`},
		"to":            {v1alpha1.Window{To: "24:01"}, `spec.plan.windows[1].to: "24:01" is no time of day: write one from "00:00" to "24:00", such as "17:00"`},
		"minute":        {v1alpha1.Window{To: "12:60"}, `spec.plan.windows[1].to: "12:60" is no time of day: write one from "00:00" to "24:00", such as "17:00"`},
		"no digits":     {v1alpha1.Window{To: "aa:bb"}, `spec.plan.windows[1].to: "aa:bb" is no time of day: write one from "00:00" to "24:00", such as "17:00"`},
		"no colon":      {v1alpha1.Window{To: "12-00"}, `spec.plan.windows[1].to: "12-00" is no time of day: write one from "00:00" to "24:00", such as "17:00"`},
		"no time":       {v1alpha1.Window{From: "09:00", To: "09:00"}, `spec.plan.windows[1]: from and to are both "09:00", which leaves no time between them: leave both out for the whole day`},
		"zone":          {v1alpha1.Window{TimeZone: "Europe/Berln"}, `spec.plan.windows[1].timeZone: "Europe/Berln" is not in the IANA time zone database: write a name such as Europe/Berlin, America/New_York or UTC`},
		"machine's own": {v1alpha1.Window{TimeZone: "Local"}, `spec.plan.windows[1].timeZone: "Local" is not in the IANA time zone database: write a name such as Europe/Berlin, America/New_York or UTC`},
		"path":          {v1alpha1.Window{TimeZone: "../../etc/passwd"}, `spec.plan.windows[1].timeZone: "../../etc/passwd" is not in the IANA time zone database: write a name such as Europe/Berlin, America/New_York or UTC`},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := Parse([]v1alpha1.Window{good, c.window}); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestString(t *testing.T) {
	for name, c := range map[string]struct {
		windows []v1alpha1.Window
		want    string
	}{
		"empty":    {nil, "any time"},
		"defaults": {[]v1alpha1.Window{{}}, "every day all day UTC"},
		"weekdays": {[]v1alpha1.Window{{Days: days("Fri", "Mon", "Wed", "Tue", "Thu"), From: "09:00", To: "17:00", TimeZone: "Europe/Berlin"}}, "Mon-Fri 09:00-17:00 Europe/Berlin"},
		"several": {[]v1alpha1.Window{
			{Days: days("Sun", "Sat"), To: "24:00", TimeZone: "Asia/Tokyo"},
			{Days: days("Sun", "Mon", "Wed", "Thu"), From: "22:00", To: "06:00"},
		}, "Sat, Sun all day Asia/Tokyo; Mon, Wed, Thu, Sun 22:00-06:00 UTC"},
		"from Monday": {[]v1alpha1.Window{{Days: days("Mon", "Tue", "Wed", "Sun"), To: "12:30"}}, "Mon-Wed, Sun 00:00-12:30 UTC"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parse(t, c.windows...).String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAnEmptyScheduleIsAlwaysOpen(t *testing.T) {
	now := utc(t, "2026-10-04 12:00")
	var s Schedule
	if !s.Open(now) || !s.Next(now).Equal(now) || !s.Until(now).IsZero() {
		t.Errorf("Open %v, Next %v, Until %v", s.Open(now), s.Next(now), s.Until(now))
	}
}

// The times of a week without any change of the clock. 2026-10-05 is a Monday.
func TestOpenNextUntil(t *testing.T) {
	office := v1alpha1.Window{Days: days("Mon", "Tue", "Wed", "Thu", "Fri"), From: "09:00", To: "17:00", TimeZone: "Europe/Berlin"}
	night := v1alpha1.Window{Days: days("Sun", "Fri"), From: "22:00", To: "06:00"}
	weekend := v1alpha1.Window{Days: days("Sat", "Sun")}
	for name, c := range map[string]struct {
		windows []v1alpha1.Window
		now     string // all in UTC; Berlin is two hours ahead
		next    string // empty: it is open
		until   string // empty: it does not end, or is not open
	}{
		"before work":           {[]v1alpha1.Window{office}, "2026-10-05 06:59", "2026-10-05 07:00", ""},
		"work begins":           {[]v1alpha1.Window{office}, "2026-10-05 07:00", "", "2026-10-05 15:00"},
		"work ends":             {[]v1alpha1.Window{office}, "2026-10-05 15:00", "2026-10-06 07:00", ""},
		"after work on Friday":  {[]v1alpha1.Window{office}, "2026-10-09 15:00", "2026-10-12 07:00", ""},
		"weekend":               {[]v1alpha1.Window{weekend}, "2026-10-10 12:00", "", "2026-10-12 00:00"},
		"weekend is over":       {[]v1alpha1.Window{weekend}, "2026-10-12 00:00", "2026-10-17 00:00", ""},
		"Friday night":          {[]v1alpha1.Window{night}, "2026-10-09 23:00", "", "2026-10-10 06:00"},
		"Saturday morning":      {[]v1alpha1.Window{night}, "2026-10-10 05:59", "", "2026-10-10 06:00"},
		"Saturday night":        {[]v1alpha1.Window{night}, "2026-10-10 23:00", "2026-10-11 22:00", ""},
		"Monday morning":        {[]v1alpha1.Window{night}, "2026-10-12 03:00", "", "2026-10-12 06:00"},
		"two that adjoin":       {[]v1alpha1.Window{night, {From: "06:00", To: "08:00"}}, "2026-10-10 01:00", "", "2026-10-10 08:00"},
		"one within another":    {[]v1alpha1.Window{{From: "10:00", To: "11:00"}, {From: "09:00", To: "12:00"}}, "2026-10-05 10:30", "", "2026-10-05 12:00"},
		"always":                {[]v1alpha1.Window{{}}, "2026-10-05 10:30", "", ""},
		"always, in two halves": {[]v1alpha1.Window{weekend, {Days: days("Mon", "Tue", "Wed", "Thu", "Fri")}}, "2026-10-05 10:30", "", ""},
		"the nearer of two":     {[]v1alpha1.Window{weekend, {Days: days("Thu"), From: "12:00"}}, "2026-10-06 00:00", "2026-10-08 12:00", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, now := parse(t, c.windows...), utc(t, c.now)
			next := utc(t, c.next)
			if open := s.Open(now); open != next.IsZero() {
				t.Errorf("Open is %v", open)
			}
			if next.IsZero() {
				next = now
			}
			if diff := cmp.Diff(next, s.Next(now)); diff != "" {
				t.Errorf("Next (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(utc(t, c.until), s.Until(now)); diff != "" {
				t.Errorf("Until (-want +got):\n%s", diff)
			}
		})
	}
}
