package health

import "time"

// Instant is a time to the millisecond, which is what metrics know, in a third of the
// space: an hour of evidence holds hundreds. Zero: there is none.
type Instant int64

// At returns the instant of a time; zero of the zero time.
func At(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixMilli())
}

// IsZero says whether there is no instant.
func (i Instant) IsZero() bool { return i == 0 }

// Time returns the time; the zero time of no instant.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(i))
}
