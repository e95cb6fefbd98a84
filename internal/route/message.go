package route

import (
	"strings"
	"unicode/utf8"
)

const (
	// maxMessage bounds a whole message, in bytes.
	maxMessage = 500
	// maxQuoted bounds what a message quotes from somebody else, in bytes, so that
	// one talkative gateway does not crowd out the others.
	maxQuoted = 200
)

// bounded returns the text on one line, in valid UTF-8, of at most limit bytes. A
// text that is too long ends in an ellipsis.
func bounded(text string, limit int) string {
	const ellipsis = "…"
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, string(utf8.RuneError))), " ")
	if len(text) <= limit {
		return text
	}
	cut := limit - len(ellipsis)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + ellipsis
}
