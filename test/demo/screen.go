package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	redrawInterval = 250 * time.Millisecond
	plainInterval  = 5 * time.Second
	defaultWidth   = 80
)

// escapes are the colours that paint writes.
var escapes = regexp.MustCompile("\x1b\\[[0-9]*m")

// screen prints lines, and on a terminal keeps a live block of lines below them.
type screen struct {
	out   io.Writer
	file  *os.File
	live  bool
	color bool

	mu    sync.Mutex
	block []string // what is drawn at present
}

func newScreen(out *os.File) *screen {
	terminal := term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb"
	return &screen{out: out, file: out, live: terminal, color: terminal && os.Getenv("NO_COLOR") == ""}
}

// say prints a line that stays. On a terminal it is cut to fit.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf(format, args...)
	block := s.block
	s.erase()
	if s.live {
		width, _ := s.size()
		line = cut(line, width)
	}
	fmt.Fprintln(s.out, line)
	s.draw(block)
}

// show shows an observation until ctx ends: live on a terminal, and otherwise by
// some lines now and then.
func (s *screen) show(ctx context.Context, seen *observation) error {
	interval := plainInterval
	if s.live {
		interval = redrawInterval
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !s.live {
			s.print(seen.lines()...)
			continue
		}
		frame := seen.frame(s)
		s.mu.Lock()
		s.erase()
		s.draw(frame)
		s.mu.Unlock()
	}
}

// clear removes the live block.
func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
}

func (s *screen) erase() {
	if len(s.block) > 0 {
		// To the block's first line, and clear from there on.
		fmt.Fprintf(s.out, "\x1b[%dA\r\x1b[J", len(s.block))
	}
	s.block = nil
}

func (s *screen) draw(lines []string) {
	if !s.live || len(lines) == 0 {
		return
	}
	width, height := s.size()
	lines = lines[:min(len(lines), max(height-2, 0))]
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(cut(line, width))
		text.WriteByte('\n')
	}
	fmt.Fprint(s.out, text.String())
	s.block = lines
}

func (s *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(s.file.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return defaultWidth, 24
	}
	// The last column stays free: some terminals wrap when it is written.
	return width - 1, height
}

func (s *screen) paint(code, text string) string {
	if !s.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s *screen) bold(text string) string   { return s.paint("1", text) }
func (s *screen) dim(text string) string    { return s.paint("2", text) }
func (s *screen) red(text string) string    { return s.paint("31", text) }
func (s *screen) green(text string) string  { return s.paint("32", text) }
func (s *screen) yellow(text string) string { return s.paint("33", text) }

// cut shortens a line to a number of columns, not counting colours. Every
// character that the demo prints is one column wide.
func cut(line string, width int) string {
	var text strings.Builder
	columns, escape, painted := 0, false, false
	for _, r := range line {
		switch {
		case escape:
			escape = r != 'm'
		case r == '\x1b':
			escape, painted = true, true
		default:
			if columns == width {
				if painted {
					text.WriteString("\x1b[0m")
				}
				return text.String()
			}
			columns++
		}
		text.WriteRune(r)
	}
	return text.String()
}

// wrap breaks a text between words into lines of at most a number of columns, not
// counting colours.
func wrap(text string, width int) []string {
	var lines []string
	line, columns := "", 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(escapes.ReplaceAllString(word, ""))
		if columns > 0 && columns+1+n > width {
			lines = append(lines, line)
			line, columns = "", 0
		}
		if columns > 0 {
			line += " "
			columns++
		}
		line += word
		columns += n
	}
	return append(lines, line)
}

// print prints lines as they are: what will be copied from the terminal, or is not
// shown on one.
func (s *screen) print(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprintln(s.out, strings.Join(lines, "\n"))
}
