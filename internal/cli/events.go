package cli

import (
	"strings"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// marks are the signs of events below the chart, one each.
const marks = "123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// event is an event that is marked on the chart.
type event struct {
	simulate.Event
	mark string
}

// marked lists the events worth a mark: all but the raises and lowerings, which the
// chart itself shows. Those beyond the number of marks have none.
func marked(r *simulate.Result) []event {
	var all []event
	for _, e := range r.Events {
		if e.Source == simulate.FromController && (e.Reason == v1alpha1.ReasonShareRaised || e.Reason == v1alpha1.ReasonShareLowered) {
			continue
		}
		mark := "+"
		if n := len(all); n < len(marks) {
			mark = marks[n : n+1]
		}
		all = append(all, event{e, mark})
	}
	return all
}

// eventText says what happened.
func eventText(e event) string {
	from := e.Reason
	if e.Source == simulate.FromScenario {
		from = "scenario"
	}
	return clean(from + ": " + sentence(e.Message))
}

// drawEvents is the legend of the marks.
func drawEvents(s *screen, r *simulate.Result, events []event) {
	const indent = 12 // the mark and the time
	for _, e := range events {
		color := plain
		switch {
		case e.Warning:
			color = yellow
		case e.Source == simulate.FromScenario:
			color = cyan
		}
		for i, l := range wrap(eventText(e), s.width-indent, 0) {
			left := strings.Repeat(" ", indent)
			if i == 0 {
				left = pad(e.mark+"  "+pad(clock(e.At), 8, true), indent, false)
			}
			s.raw(left + s.paint(color, l))
		}
	}
	if quiet := len(r.Events) - len(events); quiet > 0 {
		are, them := "are", "them all"
		if quiet == 1 {
			are, them = "is", "it"
		}
		s.prose(0, "%s of the share %s not listed; -o json has %s.", plural(quiet, "change", "changes"), are, them)
	}
}
