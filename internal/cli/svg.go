package cli

import (
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Colours of the picture: those of Okabe and Ito, which people with any colour vision
// can tell apart.
const (
	inkColor    = "#222222"
	quietColor  = "#6b7280"
	gridColor   = "#e5e7eb"
	stableColor = "#0072b2"
	canaryColor = "#d55e00"
	healthy     = "#009e73"
	degradedInk = "#f0b400"
	unhealthy   = "#b00020"
	unknownInk  = "#d1d5db"
)

// svg writes the elements of a picture. Numbers have one place, so that the same
// picture has the same bytes everywhere.
type svg struct{ strings.Builder }

// at writes a coordinate.
func at(f float64) string {
	return strconv.FormatFloat(math.Round(f*10)/10, 'f', -1, 64)
}

// escape makes a text safe within an element or an attribute.
func escape(text string) string {
	var b strings.Builder
	// A strings.Builder never fails.
	_ = xml.EscapeText(&b, []byte(clean(text)))
	return b.String()
}

// halo keeps a text readable on the lines below it.
const halo = ` paint-order="stroke" stroke="#ffffff" stroke-width="3"`

func (v *svg) printf(format string, args ...any) {
	fmt.Fprintf(v, format+"\n", args...)
}

// text writes a line of text at a point; anchor is start, middle or end.
func (v *svg) text(x, y float64, anchor, style, text string) {
	v.printf(`<text x="%s" y="%s" text-anchor="%s"%s>%s</text>`, at(x), at(y), anchor, style, escape(text))
}

func (v *svg) line(x1, y1, x2, y2 float64, style string) {
	v.printf(`<line x1="%s" y1="%s" x2="%s" y2="%s"%s/>`, at(x1), at(y1), at(x2), at(y2), style)
}

func (v *svg) rect(x, y, width, height float64, fill string) {
	v.printf(`<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>`, at(x), at(y), at(width), at(height), fill)
}

// path writes a line without fill through points that are given as SVG commands.
func (v *svg) path(commands, color string, width float64) {
	if commands == "" {
		return
	}
	v.printf(`<path d="%s" fill="none" stroke="%s" stroke-width="%s" stroke-linejoin="round"/>`, commands, color, at(width))
}

// area is the part of the picture that a panel draws values in: times from left to
// right, values from 0 to top upwards.
type area struct {
	left, right, upper, lower float64
	whole                     float64 // of the time
	top                       float64 // of the values
}

func (a area) x(time float64) float64 { return a.left + (a.right-a.left)*time/a.whole }

func (a area) y(value float64) float64 {
	return a.lower - (a.lower-a.upper)*min(value, a.top)/a.top
}

// beyond marks with triangles where values lie above the end of the scale: one for
// each run of such values, in its middle.
func (v *svg) beyond(a area, values []float64, color string) {
	first, last := -1, -1
	mark := func() {
		if first >= 0 {
			x := a.x(a.whole * (float64(first+last)/2 + 0.5) / float64(len(values)))
			v.printf(`<path d="M%s %sl-5 8h10z" fill="%s"/>`, at(x), at(a.upper), color)
		}
		first = -1
	}
	for i, value := range values {
		switch {
		case math.IsNaN(value):
		case value <= a.top:
			mark()
		default:
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	mark()
}

// curve returns the commands of a line through values at equal distances. A negative
// value is a gap; one that is no number is passed over.
func (a area) curve(values []float64) string {
	var b strings.Builder
	command := "M"
	for i, value := range values {
		switch {
		case math.IsNaN(value):
		case value < 0:
			command = "M"
		default:
			x := a.x(a.whole * (float64(i) + 0.5) / float64(len(values)))
			fmt.Fprintf(&b, "%s%s %s", command, at(x), at(a.y(value)))
			if command == "M" {
				b.WriteString("h0.1") // so that a value between two gaps is seen
			}
			command = "L"
		}
	}
	return b.String()
}
