package cli

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// Measures of the picture, in its own units.
const (
	pictureWidth = 1000.0
	marginLeft   = 76.0
	marginRight  = 24.0
	shareHeight  = 210.0
	panelHeight  = 120.0
	bandHeight   = 16.0
	panelGap     = 34.0
	lineHeight   = 17.0
	// perLine is how many characters of a text surely fit into a line.
	perLine = 140
	// pictureBuckets is the number of points of a line.
	pictureBuckets = 300
)

const (
	smallText = ` font-size="11"` + halo
	quietText = ` font-size="11" fill="` + quietColor + `"` + halo
	boldText  = ` font-size="12" font-weight="bold"` + halo
)

// picture draws a simulation from top to bottom.
type picture struct {
	svg
	// behind is drawn below all else.
	behind  svg
	result  *simulate.Result
	limits  limits
	events  []event
	buckets []bucket
	whole   float64
	y       float64
}

// svgOf returns a picture of a simulation as SVG: the canary's share, the verdicts,
// failures and response times of both tracks over one time axis, and the events. It
// names fonts but holds none, and the same simulation gives the same bytes.
func svgOf(r *simulate.Result, l limits) []byte {
	p := picture{
		result: r, limits: l, events: marked(r), buckets: buckets(r, pictureBuckets),
		whole: float64(max(r.Outcome.Duration, 1)), y: 30,
	}
	p.heading()
	rows := p.rows()
	p.y += 20 + markerRow*float64(1+largestRow(rows))
	upper := p.y
	p.shares()
	p.band()
	p.failures()
	p.latencies()
	p.timeAxis(upper, p.y)
	p.markers(upper, p.y, rows)
	p.y += 40
	p.legend()
	return p.document()
}

// document puts the elements into a file of the right size.
func (p *picture) document() []byte {
	var b strings.Builder
	height := at(p.y + 10)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif" fill="%s">`+"\n",
		at(pictureWidth), height, at(pictureWidth), height, inkColor)
	fmt.Fprintf(&b, "<title>%s</title>\n", escape(p.title()))
	fmt.Fprintf(&b, `<rect width="%s" height="%s" fill="#ffffff"/>`+"\n", at(pictureWidth), height)
	b.WriteString(p.behind.String())
	b.WriteString(p.String())
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func (p *picture) title() string { return fmt.Sprintf("Simulation of rollout %q", p.result.Name) }

func (p *picture) heading() {
	p.text(20, p.y, "start", ` font-size="18" font-weight="bold"`, p.title())
	_, verb, rest := outcomeOf(p.result)
	for _, l := range wrap(clean(modeNote(p.result)+" "+verb+" "+rest), perLine, 0) {
		p.y += lineHeight
		p.text(20, p.y+4, "start", ` font-size="13"`, l)
	}
	p.y += 14
}

// panel draws the frame of a panel: title, grid and labels. It returns where to draw.
func (p *picture) panel(title string, height, top float64, unit string) area {
	a := area{left: marginLeft, right: pictureWidth - marginRight, upper: p.y, lower: p.y + height, whole: p.whole, top: top}
	p.text(marginLeft, a.upper-7, "start", boldText, title)
	parts := 4
	if strings.Trim(significant(top, 1), "0.") == "5" {
		parts = 5
	}
	for i := range parts + 1 {
		value := top * float64(i) / float64(parts)
		p.line(a.left, a.y(value), a.right, a.y(value), ` stroke="`+gridColor+`"`)
		p.text(a.left-8, a.y(value)+4, "end", quietText, significantUpTo(value)+" "+unit)
	}
	p.y = a.lower
	return a
}

// shares draws the canary's share as steps, and what the traffic made of it.
func (p *picture) shares() {
	values := []float64{1}
	var observed []float64
	for _, a := range p.result.Adjustments {
		values = append(values, a.To)
	}
	for _, b := range p.buckets {
		part := -1.0
		if all := b.stable.traffic.Requests + b.canary.traffic.Requests; all > 0 {
			part = b.canary.traffic.Requests / all * 100
		}
		observed = append(observed, part)
	}
	a := p.panel("Canary's share of the traffic", shareHeight, niceTop(max(largest(values), largest(observed))), "%")
	p.path(a.curve(observed), "#f2b48a", 3)
	var steps strings.Builder
	fmt.Fprintf(&steps, "M%s %s", at(a.left), at(a.y(0)))
	for _, change := range p.result.Adjustments {
		fmt.Fprintf(&steps, "H%sV%s", at(a.x(float64(change.At))), at(a.y(change.To)))
	}
	fmt.Fprintf(&steps, "H%s", at(a.right))
	p.path(steps.String(), canaryColor, 1.5)
	p.key(a, keyed{"by weight", canaryColor}, keyed{"by requests", "#f2b48a"})
}

// keyed is a line's name and colour.
type keyed struct{ name, color string }

// key names the lines of a panel, at the right of its title.
func (p *picture) key(a area, lines ...keyed) {
	x := a.right
	for _, l := range slices.Backward(lines) {
		p.text(x, a.upper-7, "end", smallText, l.name)
		x -= 6*float64(len(l.name)) + 8
		p.line(x-18, a.upper-11, x, a.upper-11, fmt.Sprintf(` stroke="%s" stroke-width="3"`, l.color))
		x -= 32
	}
}

// band draws the verdicts as a coloured band, neighbours of one colour as one piece.
func (p *picture) band() {
	p.y += 10
	p.text(marginLeft-8, p.y+12, "end", quietText, "verdict")
	width := (pictureWidth - marginLeft - marginRight) / float64(len(p.buckets))
	for i := 0; i < len(p.buckets); {
		end := i + 1
		for end < len(p.buckets) && p.buckets[end].state == p.buckets[i].state {
			end++
		}
		p.rect(marginLeft+width*float64(i), p.y, width*float64(end-i), bandHeight, verdictInk(p.buckets[i].state))
		i = end
	}
	p.y += bandHeight + 14
	x := marginLeft
	for _, state := range []v1alpha1.VerdictState{v1alpha1.VerdictHealthy, v1alpha1.VerdictDegraded, v1alpha1.VerdictUnhealthy, v1alpha1.VerdictUnknown} {
		p.rect(x, p.y-9, 10, 10, verdictInk(state))
		p.text(x+14, p.y, "start", smallText, string(state))
		x += 90
	}
	p.y += panelGap
}

func verdictInk(v v1alpha1.VerdictState) string {
	switch v {
	case v1alpha1.VerdictHealthy:
		return healthy
	case v1alpha1.VerdictDegraded:
		return degradedInk
	case v1alpha1.VerdictUnhealthy:
		return unhealthy
	default:
		return unknownInk
	}
}

// failures draws the failed requests of both tracks.
func (p *picture) failures() {
	p.lanes("Failed requests", "%", p.limits.failed, 0.1, func(l lane) float64 { return l.traffic.FailedPercent() })
	p.y += panelGap
}

// latencies draws the response times of both tracks.
func (p *picture) latencies() {
	p.lanes("Response time, "+p.limits.percentile+" by histogram", "ms", p.limits.slow*1000, 1, func(l lane) float64 { return l.slow * 1000 })
}

// lanes draws a value of both tracks, in a unit, and its limit unless that is 0. The
// scale ends at least at the given value. What lies beyond its end is marked there, and
// the title has the highest.
func (p *picture) lanes(title, unit string, limit, least float64, value func(lane) float64) {
	var stable, canary []lane
	for _, b := range p.buckets {
		stable, canary = append(stable, b.stable), append(canary, b.canary)
	}
	stableLine, canaryLine := thick(stable, value), thick(canary, value)
	highest := max(largest(stableLine), largest(canaryLine), least)
	// A single spike must not flatten what happens around the limit.
	const aboveLimit = 5
	top := niceTop(max(highest, limit))
	if limit > 0 {
		top = min(top, niceTop(aboveLimit*limit))
	}
	if highest > top {
		title += fmt.Sprintf(" (triangles are off the scale, up to %s %s)", significantUpTo(highest), unit)
	}
	a := p.panel(title, panelHeight, top, unit)
	for _, l := range []struct {
		values []float64
		color  string
	}{{stableLine, stableColor}, {canaryLine, canaryColor}} {
		p.path(a.curve(l.values), l.color, 1.5)
		p.beyond(a, l.values, l.color)
	}
	lines := []keyed{{"stable", stableColor}, {"canary", canaryColor}}
	if limit > 0 {
		p.line(a.left, a.y(limit), a.right, a.y(limit), ` stroke="`+unhealthy+`" stroke-dasharray="6 4"`)
		lines = append(lines, keyed{"limit " + significantUpTo(limit) + " " + unit, unhealthy})
	}
	p.key(a, lines...)
}

// thick works out a value for as many neighbours together as it takes to have enough
// requests for one: fewer only show noise. Only the last of them gets the value, the
// others are no numbers; where there is no request at all, it is -1.
func thick(lanes []lane, value func(lane) float64) []float64 {
	const (
		enough = 100
		few    = 20 // before a gap or the end
	)
	values := make([]float64, len(lanes))
	var sum lane
	for i, l := range lanes {
		values[i] = math.NaN()
		if l.traffic.Requests == 0 {
			values[i], sum = -1, lane{}
			continue
		}
		sum.traffic.Requests += l.traffic.Requests
		sum.traffic.Failed += l.traffic.Failed
		sum.slow = max(sum.slow, l.slow)
		last := i+1 == len(lanes) || lanes[i+1].traffic.Requests == 0
		if sum.traffic.Requests >= enough || last && sum.traffic.Requests >= few {
			values[i], sum = value(sum), lane{}
		}
	}
	return values
}

// timeAxis labels the time below all panels.
func (p *picture) timeAxis(upper, lower float64) {
	a := area{left: marginLeft, right: pictureWidth - marginRight, whole: p.whole}
	step := tickStep(simulate.Elapsed(p.whole), 12)
	for t := time.Duration(0); float64(t) <= p.whole; t += step {
		x := a.x(float64(t))
		p.line(x, lower, x, lower+5, ` stroke="`+quietColor+`"`)
		p.text(x, lower+18, "middle", quietText, clockLabel(t, step))
	}
	unit := "h:mm"
	if step%time.Minute != 0 {
		unit = "h:mm:ss"
	}
	p.text(20, lower+18, "start", quietText, unit)
	for _, x := range []float64{a.left, a.right} {
		p.line(x, upper, x, lower, ` stroke="`+gridColor+`"`)
	}
}
