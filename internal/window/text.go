package window

import (
	"fmt"
	"strings"
	"time"
)

// String writes the schedule for people: "Mon-Fri 09:00-17:00 Europe/Berlin; Sat, Sun
// all day UTC", or "any time".
func (s Schedule) String() string {
	if len(s.windows) == 0 {
		return "any time"
	}
	texts := make([]string, len(s.windows))
	for i, w := range s.windows {
		texts[i] = w.String()
	}
	return strings.Join(texts, "; ")
}

func (w window) String() string {
	hours := "all day"
	if w.from != 0 || w.to != minutesPerDay {
		hours = clock(w.from) + "-" + clock(w.to)
	}
	return strings.Join([]string{dayList(w.days), hours, w.zone.String()}, " ")
}

func clock(minutes int) string {
	return fmt.Sprintf("%02d:%02d", minutes/minutesPerHour, minutes%minutesPerHour)
}

// dayList writes the days from Monday on, three and more in a row as a range.
func dayList(days [7]bool) string {
	if days == [7]bool{true, true, true, true, true, true, true} {
		return "every day"
	}
	var texts []string
	name := func(i int) string { return string(dayNames[weekday(i)]) }
	for i := 0; i < 7; i++ {
		first := i
		for i < 7 && days[weekday(i)] {
			i++
		}
		switch i - first {
		case 0:
		case 1:
			texts = append(texts, name(first))
		case 2:
			texts = append(texts, name(first), name(first+1))
		default:
			texts = append(texts, name(first)+"-"+name(i-1))
		}
	}
	return strings.Join(texts, ", ")
}

// weekday returns the i-th day of a week that begins on Monday.
func weekday(i int) time.Weekday { return time.Weekday((i + 1) % 7) }
