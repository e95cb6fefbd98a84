// Package window says when plan.windows lets the share rise. It is pure: it has no
// clock, and the time zone database is part of the program, so that an image without
// one will do.
package window

import (
	"fmt"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

const (
	minutesPerHour = 60
	minutesPerDay  = 24 * minutesPerHour
)

// Schedule is the parsed form of plan.windows. The zero value has no window, and is
// always open.
type Schedule struct {
	windows []window
}

// window is a time of the week in a time zone.
type window struct {
	days     [7]bool // by time.Weekday
	from, to int     // minutes after midnight; to is from 0 to 1440, and another than from
	zone     *time.Location
}

// Parse reads plan.windows. Fields that are left out get the API's defaults. The
// error names the field that is wrong, and says what to write.
func Parse(windows []v1alpha1.Window) (Schedule, error) {
	var s Schedule
	for i, w := range windows {
		parsed, err := parseWindow(w)
		if err != nil {
			return Schedule{}, fmt.Errorf("spec.plan.windows[%d]%w", i, err)
		}
		s.windows = append(s.windows, parsed)
	}
	return s, nil
}

// dayNames are the API's names of the days, by time.Weekday.
var dayNames = [7]v1alpha1.Day{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// parseWindow reads one window. Its error begins with the rest of the field's path.
func parseWindow(w v1alpha1.Window) (window, error) {
	var p window
	var err error
	if p.days, err = parseDays(w.Days); err != nil {
		return window{}, fmt.Errorf(".days: %w", err)
	}
	if p.from, err = parseClock(orDefault(w.From, "00:00")); err != nil || p.from == minutesPerDay {
		return window{}, fmt.Errorf(".from: %q is no time of day: write one from \"00:00\" to \"23:59\", such as \"09:00\"", w.From)
	}
	if p.to, err = parseClock(orDefault(w.To, "24:00")); err != nil {
		return window{}, fmt.Errorf(".to: %q is no time of day: write one from \"00:00\" to \"24:00\", such as \"17:00\"", w.To)
	}
	if p.from == p.to {
		return window{}, fmt.Errorf(": from and to are both %q, which leaves no time between them: leave both out for the whole day", w.From)
	}
	if p.zone, err = loadZone(orDefault(w.TimeZone, "UTC")); err != nil {
		return window{}, fmt.Errorf(".timeZone: %w", err)
	}
	return p, nil
}

func orDefault(text, def string) string {
	if text == "" {
		return def
	}
	return text
}

func parseDays(names []v1alpha1.Day) (days [7]bool, err error) {
	for _, name := range names {
		known := false
		for d, day := range dayNames {
			if day == name {
				days[d], known = true, true
			}
		}
		if !known {
			return days, fmt.Errorf("%q is no day of the week: write Mon, Tue, Wed, Thu, Fri, Sat or Sun", string(name))
		}
	}
	if len(names) == 0 {
		days = [7]bool{true, true, true, true, true, true, true}
	}
	return days, nil
}

// parseClock reads a time of day from "00:00" to "24:00" as minutes after midnight.
func parseClock(text string) (int, error) {
	digit := func(i int) int {
		if text[i] < '0' || text[i] > '9' {
			return minutesPerDay // more than any time has
		}
		return int(text[i] - '0')
	}
	if len(text) != len("00:00") || text[2] != ':' {
		return 0, fmt.Errorf("%q is not written as HH:MM", text)
	}
	hour, minute := 10*digit(0)+digit(1), 10*digit(3)+digit(4)
	if minute >= minutesPerHour || hour*minutesPerHour+minute > minutesPerDay {
		return 0, fmt.Errorf("%q is after 24:00, or no time at all", text)
	}
	return hour*minutesPerHour + minute, nil
}
