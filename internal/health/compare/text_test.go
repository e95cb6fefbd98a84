package compare

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestInferiorityText(t *testing.T) {
	if got := (Inferiority{}).String(); got != "" {
		t.Errorf("the zero value is %q", got)
	}
	if got, err := ParseInferiority(""); err != nil || got != (Inferiority{}) {
		t.Errorf("an empty text is %v, %v", got, err)
	}
	if got, want := NewInferiority(0.005).String(), "0.0000 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000 0.005 0 0"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := (Inferiority{}).Add(block(119, 11_880, 7, 120)).String(), "0.0100 1.2445 2.5352 4.0219 5.6928 6.5345 4.8454"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPropertyInferiorityTextComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := drawInferiority(t)
		text := i.String()
		if len(text) > maxText {
			t.Fatalf("%d bytes: %s", len(text), text)
		}
		back, err := ParseInferiority(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		near := func(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }
		same := near(i.cash, back.cash, 1e-3) && i.margin == back.margin &&
			near(i.stable.Bad, back.stable.Bad, 1e-6*i.stable.Bad) && near(i.stable.Total, back.stable.Total, 1e-6*i.stable.Total)
		for k := range bets {
			same = same && near(i.bets[k], back.bets[k], 1e-3)
		}
		if !same || !near(i.Wealth(), back.Wealth(), 1e-3*i.Wealth()) {
			t.Fatalf("%q: wrote %#v and read %#v", text, i, back)
		}
		if again := back.String(); again != text {
			t.Fatalf("%q, and read and written again %q", text, again)
		}
	})
}

func TestParseInferiorityRejects(t *testing.T) {
	for text, want := range map[string]string{
		"x":                        "1 fields",
		"0 0 0 0 0 0":              "6 fields",
		"0 0 0 0 0 0 0 0":          "8 fields",
		"0 0 0 x 0 0 0":            `field 4 of the evidence, "x", is not a finite number`,
		"0 NaN 0 0 0 0 0":          `field 2 of the evidence, "NaN"`,
		"Inf 0 0 0 0 0 0":          `field 1 of the evidence, "Inf"`,
		"0 0 0 0 0 0 1e999":        `field 7`,
		"0 0 0 0 0 0 100":          "a wealth of exp(",
		"23 0 0 0 0 0 0":           "a wealth of exp(",
		"0 0 -1e5 0 0 0 0":         "below -10000",
		"0 0 0 0 0 0 0 0 0 0":      "the margin 0, which",
		"0 0 0 0 0 0 0 1.5 0 0":    "the margin 1.5, which",
		"0 0 0 0 0 0 0 0.01 5 4":   "counts of stable",
		"0 0 0 0 0 0 0 0.01 -1 4":  "counts of stable",
		"0 0 0 0 0 0 0 0.01 0 1e9": "counts of stable",
		"0 0 0 0 0 0 " + strings.Repeat("0", maxText): "bytes",
	} {
		got, err := ParseInferiority(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "start it over") {
			t.Errorf("%q: %v, %v; want an error with %q", text, got, err, want)
		}
	}
}

func FuzzParseInferiority(f *testing.F) {
	for _, text := range []string{
		"", "0 0 0 0 0 0 0", "0 0 0 0 0 0 0 0.005 3 400", "NaN 0 0 0 0 0 0", "1e308 0 0 0 0 0 0", "-0 0x1p-2 0 0 0 0 0", " 20 0 0\t0 0 0 0 ",
		Inferiority{}.Add(block(119, 11_880, 7, 120)).String(),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		i, err := ParseInferiority(text)
		if err != nil {
			return
		}
		if w := i.Wealth(); !(w >= 0 && w <= maxWealth) {
			t.Fatalf("%q is a wealth of %v", text, w)
		}
		back, err := ParseInferiority(i.String())
		if err != nil || back.String() != i.String() {
			t.Fatalf("%q is written as %q, which is read as %q, %v", text, i, back, err)
		}
		next := i.Add(block(119, 11_880, 7, 120))
		if w := next.Wealth(); !(w >= 0 && w <= maxWealth) || len(next.String()) > maxText {
			t.Fatalf("%q becomes %q, a wealth of %v", text, next, w)
		}
	})
}
