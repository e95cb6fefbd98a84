package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// screen collects lines that are no wider than it is. Widths are in columns of a
// terminal.
type screen struct {
	width int
	color bool
	text  strings.Builder
}

// Colours, as the terminal's own palette has them.
const (
	plain  = ""
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	grey   = "90"
)

// paint colours a text, if colours are wanted.
func (s *screen) paint(color, text string) string {
	if !s.color || color == plain || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// line writes one line, cut to the width.
func (s *screen) line(color, text string) {
	s.raw(s.paint(color, cut(clean(text), s.width)))
}

// raw writes a line as it is; the caller has seen to its width.
func (s *screen) raw(text string) {
	s.text.WriteString(strings.TrimRight(text, " "))
	s.text.WriteByte('\n')
}

func (s *screen) gap() { s.text.WriteByte('\n') }

// head writes a headline with a gap before it.
func (s *screen) head(text string) {
	s.gap()
	s.line(bold, text)
}

// prose writes a text in as many lines as it needs, the later ones indented.
func (s *screen) prose(indent int, format string, args ...any) {
	for i, l := range wrap(clean(fmt.Sprintf(format, args...)), s.width, indent) {
		if i > 0 {
			l = strings.Repeat(" ", indent) + l
		}
		s.raw(l)
	}
}

// wrap breaks a text at spaces, so that the first line is no wider than width and the
// others leave room for the indent. A word that is too long is cut in pieces.
func wrap(text string, width, indent int) []string {
	var lines []string
	line, room := "", width
	for word := range strings.FieldsSeq(text) {
		for {
			joined := strings.TrimPrefix(line+" "+word, " ")
			if cells(joined) <= room {
				line = joined
				break
			}
			if line == "" {
				line, word = splitWord(word, room)
			}
			lines = append(lines, line)
			line, room = "", width-indent
		}
	}
	return append(lines, line)
}

// clean takes out of a text what would move a terminal's cursor: names and messages
// come from files.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
}

// column is a column of a table.
type column struct {
	header string
	// right aligns to the right, as numbers should be.
	right bool
}

// table writes rows in aligned columns, two spaces apart.
func (s *screen) table(columns []column, rows [][]string) {
	s.tableColored(columns, rows, func(int, int) string { return plain })
}

// tableColored is table with a colour for each cell.
func (s *screen) tableColored(columns []column, rows [][]string, color func(row, col int) string) {
	widths := make([]int, len(columns))
	header := make([]string, len(columns))
	for i, c := range columns {
		header[i] = c.header
	}
	for _, row := range append([][]string{header}, rows...) {
		for i := range columns {
			widths[i] = max(widths[i], cells(clean(row[i])))
		}
	}
	s.row(columns, widths, header, func(int) string { return bold })
	for n, row := range rows {
		s.row(columns, widths, row, func(col int) string { return color(n, col) })
	}
}

// row writes one row, cut to the width.
func (s *screen) row(columns []column, widths []int, texts []string, color func(col int) string) {
	var padded []string
	for i, c := range columns {
		padded = append(padded, pad(clean(texts[i]), widths[i], c.right))
	}
	room, end := s.width, ""
	if cells(strings.TrimRight(strings.Join(padded, "  "), " ")) > s.width {
		room, end = s.width-1, "…"
	}
	var line strings.Builder
	for i, cell := range padded {
		if i > 0 {
			cell = "  " + cell
		}
		shown, rest := split(cell, room)
		room -= cells(shown)
		if rest != "" {
			room = 0
		}
		if i == len(padded)-1 && end == "" {
			shown = strings.TrimRight(shown, " ")
		}
		line.WriteString(s.paint(color(i), shown))
	}
	s.raw(line.String() + end)
}
