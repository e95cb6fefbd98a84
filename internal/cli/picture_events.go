package cli

import (
	"fmt"

	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// markerSize is the width of an event's marker.
const markerSize = 16.0

// markerRow is the height of a row of them.
const markerRow = 18.0

// rows spreads the markers of events over rows above the panels, so that none covers
// another: each goes to the lowest row that is free there.
func (p *picture) rows() []int {
	a := area{left: marginLeft, right: pictureWidth - marginRight, whole: p.whole}
	rows := make([]int, len(p.events))
	var taken []float64 // where the last marker of each row ends
	for i, e := range p.events {
		x := a.x(float64(e.At))
		row := 0
		for row < len(taken) && x-markerSize/2 < taken[row] {
			row++
		}
		if row == len(taken) {
			taken = append(taken, 0)
		}
		taken[row] = x + markerSize/2
		rows[i] = row
	}
	return rows
}

func largestRow(rows []int) int {
	most := 0
	for _, row := range rows {
		most = max(most, row)
	}
	return most
}

// markers draws the events over all panels.
func (p *picture) markers(upper, lower float64, rows []int) {
	a := area{left: marginLeft, right: pictureWidth - marginRight, whole: p.whole}
	for i, e := range p.events {
		x, y := a.x(float64(e.At)), upper-30-markerRow*float64(rows[i])
		b := &p.behind
		b.printf("<g><title>%s</title>", escape(eventText(e)))
		b.line(x, y+markerSize/2, x, lower, fmt.Sprintf(` stroke="%s" stroke-dasharray="2 3"`, eventInk(e)))
		b.printf(`<circle cx="%s" cy="%s" r="%s" fill="%s"/>`, at(x), at(y), at(markerSize/2-0.5), eventInk(e))
		b.text(x, y+4, "middle", ` font-size="11" fill="#ffffff"`, e.mark)
		b.printf("</g>")
	}
}

// legend lists the events below the panels.
func (p *picture) legend() {
	p.text(20, p.y, "start", boldText, "Events")
	for _, e := range p.events {
		p.y += lineHeight
		p.printf(`<circle cx="%s" cy="%s" r="%s" fill="%s"/>`, at(28), at(p.y-4), at(markerSize/2-0.5), eventInk(e))
		p.text(28, p.y, "middle", ` font-size="11" fill="#ffffff"`, e.mark)
		p.text(marginLeft+20, p.y, "end", smallText, clock(e.At))
		for i, l := range wrap(eventText(e), perLine, 0) {
			if i > 0 {
				p.y += lineHeight
			}
			p.text(marginLeft+32, p.y, "start", smallText, l)
		}
	}
}

func eventInk(e event) string {
	switch {
	case e.Warning:
		return unhealthy
	case e.Source == simulate.FromScenario:
		return "#7c3aed"
	default:
		return "#4b5563"
	}
}
