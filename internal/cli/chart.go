package cli

import (
	"strings"
	"time"

	"github.com/guptarohit/asciigraph"

	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

const (
	// chartRows is the height of the chart of the share.
	chartRows = 10
	// gutter is the width of the labels at the left, with the axis.
	gutter = 9
	// tickWidth is the room that a label of the time axis needs.
	tickWidth = 9
)

// chart draws lines that share one time axis, one bucket of time per column.
type chart struct {
	*screen
	buckets []bucket
	whole   simulate.Elapsed
}

// drawChart draws the canary's share, and below it verdicts, failures, response times
// and events.
func drawChart(s *screen, r *simulate.Result, l limits, events []event) {
	if r.Outcome.Duration <= 0 || len(r.Samples) == 0 {
		s.line(plain, "Nothing happened, so there is no chart.")
		return
	}
	c := chart{s, buckets(r, s.width-gutter), r.Outcome.Duration}
	c.line(bold, "Canary's share of the traffic")
	c.shares(r)
	c.axis()
	c.verdicts()
	var failed, slow []float64
	for _, b := range c.buckets {
		failed, slow = append(failed, b.canary.failed), append(slow, b.canary.slow)
	}
	mostFailed, longest := largest(failed), largest(slow)
	c.strip("failed", red, failed, mostFailed)
	c.strip("latency", plain, slow, longest)
	c.marks(events)
	c.prose(0, "verdict: = Healthy, ~ Degraded, # Unhealthy, · Unknown. failed: the canary's failed requests, █ is %s %%. latency: the canary's %s by histogram, interpolated in its buckets, █ is %s. events: see below, + is several.",
		significant(mostFailed, 2), l.percentile, milliseconds(longest))
}

// label fills a label up to the gutter.
func (c *chart) label(text, axis string) string { return pad(text, gutter-1, true) + axis }

// shares draws the canary's share as a line, scaled to the largest share there is.
func (c *chart) shares(r *simulate.Result) {
	var most float64
	for _, a := range r.Adjustments {
		most = max(most, a.To)
	}
	top := niceTop(max(most, 1))
	values := make([]float64, len(c.buckets))
	for i, b := range c.buckets {
		values[i] = b.share
	}
	drawn := asciigraph.Plot(values, asciigraph.Height(chartRows), asciigraph.LowerBound(0), asciigraph.UpperBound(top))
	for i, row := range strings.Split(drawn, "\n") {
		label := ""
		if i%2 == 0 {
			label = points(top-top*float64(i)/chartRows) + " % "
		}
		c.raw(c.label(label, "┤") + c.paint(cyan, afterAxis(row)))
	}
}

// afterAxis returns what the plot has to the right of its axis. The curve itself may
// be drawn into the axis.
func afterAxis(line string) string {
	if i := strings.IndexAny(line, "┤┼"); i >= 0 {
		return line[i+len("┤"):]
	}
	return ""
}

// axis draws the time axis with its labels.
func (c *chart) axis() {
	columns := len(c.buckets)
	step := tickStep(c.whole, columns/tickWidth)
	line, labels := []rune(strings.Repeat("─", columns)), []rune(strings.Repeat(" ", gutter+columns))
	for t := time.Duration(0); t <= time.Duration(c.whole); t += step {
		at := columnOf(simulate.Elapsed(t), c.whole, columns)
		line[at] = '┬'
		if text := []rune(clockLabel(t, step)); at+len(text) <= columns {
			copy(labels[gutter+at:], text)
		}
	}
	c.raw(c.label("", "└") + string(line))
	unit := "h:mm"
	if step%time.Minute != 0 {
		unit = "h:mm:ss"
	}
	copy(labels, []rune(unit))
	c.raw(string(labels))
}

// verdicts draws a strip with the worst verdict of each column.
func (c *chart) verdicts() {
	var strip strings.Builder
	for _, b := range c.buckets {
		sign, color := verdictSign(b.state)
		strip.WriteString(c.paint(color, sign))
	}
	c.raw(c.label("verdict", " ") + strip.String())
}

// strip draws values from 0 to top as blocks; negative ones are left out.
func (c *chart) strip(label, color string, values []float64, top float64) {
	signs := []rune("▁▂▃▄▅▆▇█")
	var strip strings.Builder
	for _, v := range values {
		switch {
		case v < 0:
			strip.WriteByte(' ')
		case top == 0:
			strip.WriteRune(signs[0])
		default:
			strip.WriteRune(signs[min(int(v/top*float64(len(signs))), len(signs)-1)])
		}
	}
	c.raw(c.label(label, " ") + c.paint(color, strip.String()))
}

// marks draws the signs of the events.
func (c *chart) marks(events []event) {
	strip := []rune(strings.Repeat(" ", len(c.buckets)))
	for _, e := range events {
		at := columnOf(e.At, c.whole, len(strip))
		if strip[at] != ' ' {
			strip[at] = '+'
			continue
		}
		strip[at] = []rune(e.mark)[0]
	}
	c.raw(c.label("events", " ") + string(strip))
}

// milliseconds writes a response time that is given in seconds.
func milliseconds(seconds float64) string {
	if seconds >= 10 {
		return significant(seconds, 3) + " s"
	}
	return significant(seconds*1000, 3) + " ms"
}

// clockLabel writes a tick of a time axis: h:mm, or h:mm:ss where ticks are not whole
// minutes.
func clockLabel(t, step time.Duration) string {
	text := clock(simulate.Elapsed(t))
	if step%time.Minute == 0 {
		return text[:len(text)-len(":00")]
	}
	return text
}
