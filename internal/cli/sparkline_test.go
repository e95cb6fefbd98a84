package cli

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSparkline(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, test := range map[string]struct {
		values []float64
		width  int
		top    float64
		want   string
	}{
		"nothing":                 {nil, 4, 1, "    "},
		"no room":                 {[]float64{1}, 0, 1, ""},
		"a negative width":        {[]float64{1}, -3, 1, ""},
		"rising":                  {[]float64{0, 1, 2, 3, 4, 5, 6, 7}, 8, 7, "▁▂▃▄▅▆▇█"},
		"the newest":              {[]float64{7, 7, 0, 7}, 2, 7, "▁█"},
		"few, at the right":       {[]float64{7}, 3, 7, "  █"},
		"a gap":                   {[]float64{7, nan, 7}, 3, 7, "█ █"},
		"above the top":           {[]float64{9, inf}, 2, 7, "██"},
		"little is not none":      {[]float64{0, 0.001}, 2, 100, "▁▂"},
		"no top":                  {[]float64{0, 1}, 2, 0, "▁▁"},
		"below 0":                 {[]float64{-1}, 1, 1, "▁"},
		"a top that is no number": {[]float64{1}, 1, nan, " "},
	} {
		if got := sparkline(test.values, test.width, test.top); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestSparklineKeepsItsWidth: whatever the numbers, it is as wide as asked for, and a
// higher value is never drawn lower.
func TestSparklineKeepsItsWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.Float64()).Draw(t, "values")
		width, top := rapid.IntRange(0, 200).Draw(t, "width"), rapid.Float64().Draw(t, "top")
		if got := cells(sparkline(values, width, top)); got != width {
			t.Fatalf("it is %d wide, want %d", got, width)
		}
		a, b := rapid.Float64().Draw(t, "a"), rapid.Float64().Draw(t, "b")
		rank := func(v float64) int { return strings.IndexRune(string(levels), level(v, top)) }
		if a <= b && rank(a) > rank(b) {
			t.Fatalf("%g is drawn higher than %g", a, b)
		}
	})
}

func TestTopOf(t *testing.T) {
	if got := topOf([]float64{1, math.NaN(), math.Inf(1)}, nil, []float64{3, -4}); got != 3 {
		t.Errorf("the top is %g", got)
	}
	if got := topOf(); got != 0 {
		t.Errorf("of nothing it is %g", got)
	}
}
