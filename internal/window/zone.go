package window

import (
	"fmt"
	"sync"
	"time"
	_ "time/tzdata" // the time zone database, for images that have none
)

// zones holds what loadZone has found, since that may read a file and a plan is parsed
// again and again. Only names of the database get here, so it stays small.
var zones sync.Map

// loadZone returns a time zone by its name in the IANA time zone database.
func loadZone(name string) (*time.Location, error) {
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	// "Local" is what the machine is set to, which the plan does not say.
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("%q is not in the IANA time zone database: write a name such as Europe/Berlin, America/New_York or UTC", name)
	}
	zones.Store(name, zone)
	return zone, nil
}

// clockRange is more than any clock on a wall has ever differed from UTC.
const clockRange = 26 * time.Hour

// instants returns the first and the last moment at which the clock on the wall shows
// the given minute of a day. The day is the midnight, in UTC, of a date. The two differ
// where the clock was set back. A minute that it skips is taken as the moment of the
// change.
func instants(day time.Time, minute int, zone *time.Location) (first, last time.Time) {
	wall := day.Add(time.Duration(minute) * time.Minute)
	for at := wall.Add(-clockRange); ; {
		local := at.In(zone)
		begins, ends := local.ZoneBounds()
		_, offset := local.Zone()
		ahead := time.Duration(offset) * time.Second
		moment := wall.Add(-ahead)
		switch {
		case moment.Before(begins) && first.IsZero():
			return begins, begins // the clock went from before the minute to after it
		case !moment.Before(begins) && (ends.IsZero() || moment.Before(ends)):
			if first.IsZero() {
				first = moment
			}
			last = moment
		}
		if ends.IsZero() || ends.After(wall.Add(clockRange)) {
			return first, last
		}
		at = ends
	}
}
