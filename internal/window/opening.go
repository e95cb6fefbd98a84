package window

import "time"

const (
	// around is how many days before and after the present date an opening can begin that
	// is of the present: it ends on the next day, and a change of the clock can repeat one.
	around = 2
	// ahead is how many days are searched for the next opening. One comes every week,
	// unless the clock skips all of it, and it does not do that twice in a row.
	ahead = 5 * 7
	// lasting is how long an opening is followed: a year, with all changes of the clock.
	lasting = 400 * 24 * time.Hour
)

// opening is a span of time [begin, end) in which a window is open.
type opening struct {
	begin, end time.Time
}

func (o opening) holds(t time.Time) bool { return !t.Before(o.begin) && t.Before(o.end) }

// opening returns the one that begins on a date, which is given as its midnight in UTC.
// It is empty where the window does not begin on that day of the week, or the clock
// skips all of it.
func (w window) opening(day time.Time) opening {
	if !w.days[day.Weekday()] {
		return opening{}
	}
	var o opening
	o.begin, _ = instants(day, w.from, w.zone)
	to := w.to
	if to < w.from {
		to += minutesPerDay
	}
	_, o.end = instants(day, to, w.zone)
	return o
}

// date returns the date that the clock on the wall shows, as its midnight in UTC, moved
// by some days.
func (w window) date(now time.Time, days int) time.Time {
	year, month, day := now.In(w.zone).Date()
	return time.Date(year, month, day+days, 0, 0, 0, 0, time.UTC)
}

// endOfOpening returns when the latest of the openings that hold t ends, if one does.
func (s Schedule) endOfOpening(t time.Time) (end time.Time, open bool) {
	for _, w := range s.windows {
		for days := -around; days <= around; days++ {
			if o := w.opening(w.date(t, days)); o.holds(t) && o.end.After(end) {
				end, open = o.end, true
			}
		}
	}
	return end, open
}

// Open says whether the share may be raised now.
func (s Schedule) Open(now time.Time) bool {
	_, open := s.endOfOpening(now)
	return open || len(s.windows) == 0
}

// Next returns when the share may next be raised: now, if that is already so, or else
// when the next window begins. It is the zero time if none does, which no plan that
// Parse accepts can bring about.
func (s Schedule) Next(now time.Time) time.Time {
	if s.Open(now) {
		return now
	}
	var next time.Time
	for _, w := range s.windows {
		for days := -around; days <= ahead; days++ {
			o := w.opening(w.date(now, days))
			if !o.begin.Before(o.end) || !o.begin.After(now) {
				continue
			}
			if next.IsZero() || o.begin.Before(next) {
				next = o.begin
			}
			break
		}
	}
	return next.In(now.Location())
}

// Until returns when the present opening ends, over windows that adjoin or overlap. It
// is the zero time if nothing is open, or what is open does not end within a year.
func (s Schedule) Until(now time.Time) time.Time {
	end, open := s.endOfOpening(now)
	if !open {
		return time.Time{}
	}
	for end.Sub(now) < lasting {
		later, goesOn := s.endOfOpening(end)
		if !goesOn {
			return end.In(now.Location())
		}
		end = later
	}
	return time.Time{}
}
