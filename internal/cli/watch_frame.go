package cli

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weightedrollout/weightedrollout/internal/diagnose"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

// The narrowest and the widest that a frame is laid out for: beyond, lines are cut or
// the rest of the screen is left empty.
const (
	narrowFrame = 40
	widestFrame = 160
	// roomyFrame is how high a screen is that has room for what is not needed at once.
	roomyFrame = 30
)

// watchFrame draws a view on a screen of so many columns and lines, at a time. It is at
// most as high, and no line is wider.
func watchFrame(v *view, width, height int, now time.Time, color bool) []string {
	f := &frame{v: v, now: now, s: &screen{width: min(max(width, narrowFrame), widestFrame), color: color}}
	tight := height < 22
	f.header()
	f.shares(tight)
	f.tracks(tight)
	if height >= roomyFrame {
		f.comparison()
	}
	f.words(tight)
	body := f.lines()
	if room := height - 1 - len(body); room > 1 {
		f.eventLines(room)
		body = append(body, f.lines()...)
	}
	footer := f.footer()
	if len(body) > height-1 {
		body = body[:max(height-1, 0)]
	}
	for len(body) < height-1 {
		body = append(body, "")
	}
	body = append(body, footer)
	body = body[len(body)-min(max(height, 1), len(body)):]
	if width < narrowFrame {
		for i := range body {
			body[i] = cutPainted(body[i], width)
		}
	}
	return body
}

// frame is a screen that is being drawn.
type frame struct {
	v   *view
	now time.Time
	s   *screen
}

// lines takes what has been drawn.
func (f *frame) lines() []string {
	text := strings.TrimSuffix(f.s.text.String(), "\n")
	f.s.text.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// header is the rollout's name and its phase at the right.
func (f *frame) header() {
	wr := f.v.rollout
	phase := shownPhase(wr)
	name := clean(fmt.Sprintf("%s/%s", wr.Namespace, wr.Name))
	if st := wr.Status; st.Revision != "" {
		name += clean(fmt.Sprintf(", revision %q, attempt %d", st.Revision, st.Attempt))
	}
	room := f.s.width - cells(phase) - 2
	name = pad(cut(name, room), room, false)
	f.s.raw(f.s.paint(bold, name) + "  " + f.s.paint(colorOf(phaseOf(wr)), phase))
	f.s.line(plain, stageBar(stops(wr), f.s.width))
}

// shares are the weight in the routes and what the canary really gets.
func (f *frame) shares(tight bool) {
	const label = 10
	width := f.s.width - label - 9
	bar := func(what, color string, percent float64, text string) {
		f.s.raw(pad(what, label, false) + f.s.paint(color, shareBar(percent, width)) + pad(text+" %", 9, true))
	}
	f.space(tight)
	if wr := f.v.rollout; wr.Status.Share.Desired != nil {
		color := cyan
		if wr.Status.Share.ConfirmedAt == nil {
			color = yellow
		}
		bar("weight", color, number(desiredShare(wr)), string(desiredShare(wr)))
	} else {
		f.s.raw(pad("weight", label, false) + "none yet")
	}
	if percent, _, ok := f.v.measured(); ok {
		bar("measured", cyan, percent, points(percent))
	} else if o := f.v.rollout.Status.Share.Observed; o != nil {
		bar("observed", cyan, number(*o), string(*o))
	} else {
		f.s.raw(pad("measured", label, false) + "not yet")
	}
}

func (f *frame) space(tight bool) {
	if !tight {
		f.s.gap()
	}
}

// track is what the evaluations say of one track.
type track struct {
	name            string
	errors, latency []float64 // percent, and seconds
	last            *live.Numbers
}

func trackOf(name string, evaluations []live.Evaluation, pick func(live.Evaluation) *live.Numbers) track {
	t := track{name: name}
	for _, e := range evaluations {
		n := pick(e)
		errors, latency := math.NaN(), math.NaN()
		if n != nil {
			t.last = n
			if n.Requests > 0 {
				errors = 100 * n.Errors / n.Requests
			}
			if n.QuantileSeconds != nil {
				latency = *n.QuantileSeconds
			}
		}
		t.errors, t.latency = append(t.errors, errors), append(t.latency, latency)
	}
	return t
}

// tracks are the error rates and response times of both versions, drawn to the same
// scale.
func (f *frame) tracks(tight bool) {
	f.space(tight)
	d := f.v.document
	if d == nil || len(d.Evaluations) == 0 {
		f.s.line(grey, f.noTracks())
		return
	}
	stable := trackOf("stable", d.Evaluations, func(e live.Evaluation) *live.Numbers { return e.Stable })
	canary := trackOf("canary", d.Evaluations, func(e live.Evaluation) *live.Numbers { return e.Canary })
	const label, number = 8, 9
	spark := min(max((f.s.width-label-2*number-4)/2, 0), health.MaxEvaluations)
	percentile := "latency"
	if l := f.v.rollout.Spec.Health; l != nil && l.Latency != nil && l.Latency.Percentile != "" {
		percentile = "p" + string(l.Latency.Percentile)
	}
	f.s.line(grey, pad("", label, false)+pad("errors", number, true)+pad("", spark+2, false)+pad(percentile, number, true))
	topErrors, topLatency := topOf(stable.errors, canary.errors), topOf(stable.latency, canary.latency)
	for _, t := range []track{stable, canary} {
		errors, latency := "–", "–"
		if t.last != nil && t.last.Requests > 0 {
			errors = rate(100*t.last.Errors/t.last.Requests) + " %"
		}
		if t.last != nil && t.last.QuantileSeconds != nil {
			latency = milliseconds(*t.last.QuantileSeconds)
		}
		f.s.raw(pad(t.name, label, false) + pad(errors, number, true) + " " + f.s.paint(yellow, sparkline(t.errors, spark, topErrors)) + " " +
			pad(latency, number, true) + " " + f.s.paint(cyan, sparkline(t.latency, spark, topLatency)))
	}
}

// noTracks says why there is nothing to draw of the two versions.
func (f *frame) noTracks() string {
	switch {
	case f.v.document == nil && f.v.documentErr != nil:
		return "The live evidence cannot be read: " + f.v.documentErr.Error()
	case f.v.document == nil:
		return "The live evidence has not come yet."
	case !underWay(f.v.rollout):
		return "Nothing is evaluated: no attempt is under way."
	}
	return "No evaluation at this share yet."
}

// comparison is how far the comparison of the two versions has come.
func (f *frame) comparison() {
	d := f.v.document
	if d == nil || d.Comparison == nil {
		return
	}
	c := d.Comparison
	text := fmt.Sprintf("evidence that the canary is worse: %s, and %s prove it", significantUpTo(c.Evidence), significantUpTo(c.Proof))
	if c.NotWorse {
		text = "it is proven that the canary is not worse"
	}
	if c.Waits != "" {
		text += "; " + c.Waits
	}
	f.s.line(plain, pad("compared", 10, false)+clean(text))
}

// words are the verdict, what the rollout waits for, and what comes next.
func (f *frame) words(tight bool) {
	f.space(tight)
	most := 3
	if tight {
		most = 2
	}
	const margin = 10
	inLines := func(text string) []string { return wrap(clean(text), f.s.width-margin, 0) }
	say := func(label, color, text string) {
		wrapped := inLines(text)
		if len(wrapped) > most {
			wrapped = append(wrapped[:most-1], cut(strings.Join(wrapped[most-1:], " "), f.s.width-margin))
		}
		for i, l := range wrapped {
			left := ""
			if i == 0 {
				left = label
			}
			f.s.raw(pad(left, margin, false) + f.s.paint(color, l))
		}
	}
	state, why := f.v.verdictWords()
	say("verdict", verdictColor(state), state+", "+why)
	situation := situate(f.v.rollout, f.now)
	color := plain
	if situation.Verdict == diagnose.Problem {
		color = red
	}
	say("now", color, f.v.waits(situation, f.now))
	if next := f.v.next(f.now); next != "" {
		say("next", plain, next)
	}
	if situation.Do != "" {
		do := asCommand(situation.Do, f.v.rollout)
		if len(inLines(do)) > most {
			do = situation.Do
		}
		say("do", plain, do)
	}
}

// eventLines are the newest events that there is room for, with a line before them.
func (f *frame) eventLines(room int) {
	f.s.gap()
	room--
	if f.v.eventsErr != nil {
		f.s.line(grey, "The events cannot be read: "+f.v.eventsErr.Error())
		return
	}
	for _, e := range newest(f.v.events, room) {
		color := plain
		if e.warning() {
			color = yellow
		}
		f.s.raw(f.s.paint(color, cut(pad(human(f.now.Sub(e.At)), 8, true)+"  "+clean(e.words()), f.s.width)))
	}
}

// footer says how to end it, and where the numbers come from.
func (f *frame) footer() string {
	text, color := "q quits · "+f.v.sourceLine(f.now), grey
	if f.v.trouble != nil {
		text, color = "q quits · the API server cannot be asked, it is tried again: "+f.v.trouble.Error(), red
	}
	return f.s.paint(color, cut(clean(text), f.s.width))
}

// cutPainted shortens a line that may have colours; those are dropped where it is cut.
func cutPainted(line string, width int) string {
	bare := unpainted(line)
	if cells(bare) <= width {
		return line
	}
	return cut(bare, width)
}

// unpainted takes the colours out of a line.
func unpainted(line string) string {
	var b strings.Builder
	for len(line) > 0 {
		before, after, found := strings.Cut(line, "\x1b[")
		b.WriteString(before)
		if !found {
			break
		}
		_, line, _ = strings.Cut(after, "m")
	}
	return b.String()
}
