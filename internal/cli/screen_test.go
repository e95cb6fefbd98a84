package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text          string
		width, indent int
		want          []string
	}{
		{"", 10, 0, []string{""}},
		{"one two three", 7, 0, []string{"one two", "three"}},
		{"one two three", 13, 0, []string{"one two three"}},
		{"one two three four", 9, 4, []string{"one two", "three", "four"}},
		{"abcdefghij", 4, 0, []string{"abcd", "efgh", "ij"}},
		{"ab cdefghij kl", 4, 1, []string{"ab", "cde", "fgh", "ij", "kl"}},
		{"日本語のリリース", 7, 0, []string{"日本語", "のリリ", "ース"}},
		{"日", 1, 0, []string{"日", ""}},
		{"e\u0301e\u0301 x", 2, 0, []string{"e\u0301e\u0301", "x"}},
		{"ä ö ü", 3, 0, []string{"ä ö", "ü"}},
	} {
		if diff := cmp.Diff(test.want, wrap(test.text, test.width, test.indent)); diff != "" {
			t.Errorf("wrap(%q, %d, %d) (-want +got):\n%s", test.text, test.width, test.indent, diff)
		}
	}
}

// TestScreenKeepsItsWidth shows that no text makes a line that is too wide, moves the
// cursor, or loses a word when it is wrapped.
func TestScreenKeepsItsWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &screen{width: rapid.IntRange(minWidth, 200).Draw(t, "width")}
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("a 版🚀한\u0301…")))).Draw(t, "text")
		s.line(plain, text)
		s.head(text)
		s.prose(rapid.IntRange(0, 20).Draw(t, "indent"), "%s", text)
		s.table([]column{{"A", true}, {"B", false}}, [][]string{{text, "x"}, {"1", text}})
		for line := range strings.Lines(s.text.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := cells(line); n > s.width {
				t.Fatalf("a line of %d characters on a screen of %d: %q", n, s.width, line)
			}
			if clean(line) != line {
				t.Fatalf("a line moves the cursor: %q", line)
			}
		}
		whole := strings.Join(strings.Fields(clean(text)), "")
		if got := strings.ReplaceAll(strings.Join(wrap(clean(text), s.width, 0), ""), " ", ""); got != whole {
			t.Fatalf("wrapped, %q becomes %q", whole, got)
		}
	})
}

func TestTable(t *testing.T) {
	s := &screen{width: 20}
	s.table([]column{{"NAME", false}, {"COUNT", true}, {"NOTE", false}}, [][]string{
		{"a", "1", "short"}, {"longer", "1,000", "too long for it"}, {"e\x1b[31m", "", ""},
	})
	const want = `NAME    COUNT  NOTE
a           1  short
longer  1,000  too …
e [31m
`
	if diff := cmp.Diff(want, s.text.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPaint(t *testing.T) {
	s := &screen{width: 80}
	if got := s.paint(red, "x"); got != "x" {
		t.Errorf("without colours it is %q", got)
	}
	s.color = true
	if got := s.paint(red, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("in red it is %q", got)
	}
	if got := s.paint(plain, "x") + s.paint(red, ""); got != "x" {
		t.Errorf("what has no colour, or no text, is %q", got)
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9]*m")
