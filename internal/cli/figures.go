package cli

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// count writes a number of requests: "1,234,567". Expected values are rounded.
func count(f float64) string {
	text := strconv.FormatFloat(math.Round(f), 'f', 0, 64)
	var groups []string
	for len(text) > 3 {
		groups = append([]string{text[len(text)-3:]}, groups...)
		text = text[:len(text)-3]
	}
	return strings.Join(append([]string{text}, groups...), ",")
}

// points writes a percentage or a difference of two with at most two places.
func points(f float64) string {
	return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64)
}

// rate writes a percentage with exactly two places, so that a column lines up.
func rate(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

// significant writes a number with so many significant digits, without an exponent.
func significant(f float64, digits int) string {
	if f == 0 || math.IsInf(f, 0) || math.IsNaN(f) {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	places := max(0, digits-1-int(math.Floor(math.Log10(math.Abs(f)))))
	return strconv.FormatFloat(f, 'f', places, 64)
}

// span writes a length of time without the units that are 0: "1h30m", "45s".
func span(e simulate.Elapsed) string {
	d := time.Duration(e).Round(time.Millisecond)
	if d >= time.Minute {
		d = d.Round(time.Second)
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// clock writes a point in time as h:mm:ss, to the second.
func clock(e simulate.Elapsed) string {
	return simulate.Elapsed(time.Duration(e).Round(time.Second)).String()
}

// clockOr writes a point in time, or a dash where there is none.
func clockOr(e *simulate.Elapsed) string {
	if e == nil {
		return "–"
	}
	return clock(*e)
}

// plural writes a number with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// significantUpTo writes a number with at most three significant digits.
func significantUpTo(f float64) string {
	text := significant(f, 3)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
