package cli

import (
	"math"
	"strings"
)

// levels are the heights of a sparkline, from 0 up to its top.
var levels = []rune("▁▂▃▄▅▆▇█")

// sparkline draws the newest values, one column each, as far as the width goes; fewer
// values stand at the right. The top is the value of the highest level; what is above it
// is drawn as high. A value that is not known (NaN) leaves its column empty, and so does
// whatever is no number at all.
func sparkline(values []float64, width int, top float64) string {
	if width <= 0 {
		return ""
	}
	values = values[max(0, len(values)-width):]
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", width-len(values)))
	for _, v := range values {
		b.WriteRune(level(v, top))
	}
	return b.String()
}

func level(v, top float64) rune {
	highest := len(levels) - 1
	switch {
	case math.IsNaN(v) || math.IsNaN(top):
		return ' '
	case v <= 0 || !(top > 0):
		return levels[0]
	case v >= top:
		return levels[highest]
	}
	// Whatever is above 0 can be told from 0.
	return levels[max(1, int(math.Round(v/top*float64(highest))))]
}

// topOf is the largest of the values that are known, or 0.
func topOf(lists ...[]float64) float64 {
	top := 0.0
	for _, values := range lists {
		for _, v := range values {
			if v > top && !math.IsInf(v, 1) { // false of NaN
				top = v
			}
		}
	}
	return top
}
