package simulate

import (
	"fmt"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// knot is a moment at which a timeline bends or jumps: it comes from one value and
// goes on from another.
type knot struct {
	at         time.Duration
	from, onTo float64
}

// timeline is a value over time: straight between its knots, constant after the last
// one. It has a knot at 0.
type timeline []knot

// constant returns a timeline that never changes.
func constant(v float64) timeline { return timeline{{from: v, onTo: v}} }

// piece returns the index of the last knot that is not after t.
func (l timeline) piece(t time.Duration) int {
	low, high := 0, len(l)
	for high-low > 1 {
		if mid := (low + high) / 2; l[mid].at <= t {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// at returns the value at a time; at a jump, the value after it.
func (l timeline) at(t time.Duration) float64 {
	i := l.piece(t)
	return l.within(i, t)
}

// within returns the value at a time of the piece that begins with knot i.
func (l timeline) within(i int, t time.Duration) float64 {
	a := l[i]
	if i+1 == len(l) || t <= a.at {
		return a.onTo
	}
	b := l[i+1]
	part := float64(t-a.at) / float64(b.at-a.at)
	return a.onTo + (b.from-a.onTo)*part
}

// area returns the integral over a span, in values times seconds.
func (l timeline) area(from, to time.Duration) float64 {
	var sum float64
	for i := l.piece(from); i < len(l) && l[i].at < to; i++ {
		begin, end := max(from, l[i].at), to
		if i+1 < len(l) {
			end = min(end, l[i+1].at)
		}
		sum += (l.within(i, begin) + l.within(i, end)) / 2 * (end - begin).Seconds()
	}
	return sum
}

// mean returns the mean value over a span; of an empty one, the value there.
func (l timeline) mean(from, to time.Duration) float64 {
	if len(l) == 1 || to <= from {
		return l.at(from)
	}
	return l.area(from, to) / (to - from).Seconds()
}

// settled tells when the timeline has its last value.
func (l timeline) settled() time.Duration { return l[len(l)-1].at }

// change is one step of a timeline in numbers.
type change struct {
	at, over, lasts time.Duration
	value           float64
}

// end is when the step has come to rest.
func (c change) end() time.Duration {
	if c.lasts > 0 {
		return c.at + c.lasts + c.over
	}
	return c.at + c.over
}

// newTimeline builds a timeline that starts with a value and then changes. The error
// names the change by its place below the field.
func newTimeline(field string, start float64, changes []change) (timeline, error) {
	l := constant(start)
	var busy time.Duration
	value := start
	for i, c := range changes {
		if i > 0 && (c.at <= changes[i-1].at || c.at < busy) {
			return nil, fmt.Errorf("%s[%d].at: it begins at %s, before the step before it is over, at %s: put the steps in order of time and let them not overlap", field, i, c.at, max(busy, changes[i-1].at))
		}
		if c.lasts > 0 && c.over > c.lasts {
			return nil, fmt.Errorf("%s[%d]: the slope of %s (over) is longer than the spike of %s (for): shorten over", field, i, c.over, c.lasts)
		}
		l = l.move(c.at, c.over, value, c.value)
		if c.lasts > 0 {
			l = l.move(c.at+c.lasts, c.over, c.value, value)
		} else {
			value = c.value
		}
		busy = c.end()
	}
	return l, nil
}

// move appends a slope, or a jump, from one value to another.
func (l timeline) move(at, over time.Duration, from, to float64) timeline {
	if over == 0 {
		return l.add(knot{at: at, from: from, onTo: to})
	}
	l = l.add(knot{at: at, from: from, onTo: from})
	return l.add(knot{at: at + over, from: to, onTo: to})
}

// add appends a knot. One at the time of the last one continues it.
func (l timeline) add(k knot) timeline {
	if last := &l[len(l)-1]; last.at == k.at {
		last.onTo = k.onTo
		return l
	}
	return append(l, k)
}

// timesOf reads the times of a step.
func timesOf(field string, at, over, lasts v1alpha1.Duration) (change, error) {
	var c change
	for _, f := range []struct {
		name     string
		text     v1alpha1.Duration
		optional bool
		into     *time.Duration
	}{
		{"at", at, false, &c.at},
		{"over", over, true, &c.over},
		{"for", lasts, true, &c.lasts},
	} {
		if f.text == "" && f.optional {
			continue
		}
		d, err := spanOf(field+"."+f.name, f.text, 0, longest)
		if err != nil {
			return c, err
		}
		if d == 0 && f.optional {
			return c, fmt.Errorf("%s.%s is 0: leave it out", field, f.name)
		}
		*f.into = d
	}
	return c, nil
}

// spanOf reads a length of time between two limits, in whole milliseconds: the finest
// unit of the API and of the metrics' clock.
func spanOf(field string, text v1alpha1.Duration, lowest, highest time.Duration) (time.Duration, error) {
	if text == "" {
		return 0, fmt.Errorf("%s is missing: give a time such as 40m or 1h30m", field)
	}
	d, err := text.Parse()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", field, err)
	}
	if d < lowest || d > highest || d%time.Millisecond != 0 {
		return 0, fmt.Errorf("%s is %s: it must be from %s to %s, in whole milliseconds", field, d, lowest, highest)
	}
	return d, nil
}
