package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// abbreviations are names of the time zone database for a clock that never changes, which
// people also use for places where it does.
var abbreviations = []string{"EST", "HST", "MST"}

// offsets begins the names of the time zone database that stand for a distance from UTC
// and for no place. Their sign is that of POSIX: Etc/GMT+5 is five hours behind UTC.
const offsets = "Etc/GMT"

// areas are well-known places, one for most distances from UTC.
var areas = []string{
	"Pacific/Pago_Pago", "Pacific/Honolulu", "America/Anchorage", "America/Los_Angeles", "America/Denver", "America/Chicago",
	"America/New_York", "America/Halifax", "America/Sao_Paulo", "Atlantic/Azores", "Europe/Berlin", "Europe/Athens",
	"Europe/Istanbul", "Asia/Dubai", "Asia/Karachi", "Asia/Dhaka", "Asia/Bangkok", "Asia/Shanghai", "Asia/Tokyo",
	"Australia/Sydney", "Pacific/Noumea", "Pacific/Auckland", "Pacific/Apia", "Pacific/Kiritimati",
}

// warnOfZones looks for time zones without daylight saving that were probably meant to
// have it.
func warnOfZones(windows []v1alpha1.Window, add adder) {
	for i, w := range windows {
		posix := strings.HasPrefix(w.TimeZone, offsets)
		if !posix && !slices.Contains(abbreviations, w.TimeZone) {
			continue
		}
		offset, known := standardOffset(w.TimeZone)
		if !known || offset == 0 {
			continue // the latter is UTC by another name
		}
		text := fmt.Sprintf("%s is %s all year, without daylight saving", w.TimeZone, distance(offset))
		if posix {
			text += ", and its sign is the other way round than in UTC+1"
		}
		text += ": write the area that is meant"
		if area := areaAt(offset); area != "" {
			text += ", such as " + area
		}
		if area := areaAt(-offset); posix && area != "" {
			text += fmt.Sprintf(", or %s if %s is meant", area, distance(-offset))
		}
		add(fmt.Sprintf("spec.plan.windows[%d].timeZone", i), "%s", text)
	}
}

// standardOffset returns how far a zone is ahead of UTC outside daylight saving.
func standardOffset(name string) (time.Duration, bool) {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return 0, false
	}
	// Daylight saving is in July north of the equator, and in January south of it.
	_, winter := time.Date(2026, time.January, 1, 0, 0, 0, 0, zone).Zone()
	_, summer := time.Date(2026, time.July, 1, 0, 0, 0, 0, zone).Zone()
	return time.Duration(min(winter, summer)) * time.Second, true
}

// areaAt returns the area at a distance from UTC, or "".
func areaAt(offset time.Duration) string {
	for _, area := range areas {
		if at, known := standardOffset(area); known && at == offset {
			return area
		}
	}
	return ""
}

// distance says where a zone is by its hours: "5 hours behind UTC".
func distance(offset time.Duration) string {
	hours, side := int(offset.Abs().Hours()), "ahead of"
	if offset < 0 {
		side = "behind"
	}
	if hours == 1 {
		return "1 hour " + side + " UTC"
	}
	return fmt.Sprintf("%d hours %s UTC", hours, side)
}
