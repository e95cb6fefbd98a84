package cli

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// cells is how many columns of a terminal a text takes: two for a character that is wide
// in East Asia, as in UAX #11, none for a mark that is put onto the one before it, and
// one for all others.
func cells(text string) int {
	n := 0
	for _, r := range text {
		n += cellsOf(r)
	}
	return n
}

func cellsOf(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) || r >= '\u1160' && r <= '\u11ff' { // the latter end a Hangul syllable
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	case width.Neutral, width.EastAsianAmbiguous, width.EastAsianNarrow, width.EastAsianHalfwidth:
	}
	return 1
}

// split parts a text after as many characters as fit into a number of columns.
func split(text string, room int) (fits, rest string) {
	for i, r := range text {
		if room -= cellsOf(r); room < 0 {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// splitWord is split, but takes one character at least.
func splitWord(word string, room int) (fits, rest string) {
	if fits, rest = split(word, room); fits != "" {
		return fits, rest
	}
	_, size := utf8.DecodeRuneInString(word)
	marks, rest := split(word[size:], 0)
	return word[:size] + marks, rest
}

// cut shortens a text to a number of columns.
func cut(text string, room int) string {
	if cells(text) <= room {
		return text
	}
	fits, _ := split(text, max(room-1, 0))
	return fits + "…"
}

// pad fills a text up to a number of columns.
func pad(text string, room int, right bool) string {
	space := strings.Repeat(" ", max(0, room-cells(text)))
	if right {
		return space + text
	}
	return text + space
}
