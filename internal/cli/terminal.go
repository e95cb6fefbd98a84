package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// Sequences that every terminal of today knows.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // another screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toTop       = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// terminal draws a view over and over on a screen of its own.
type terminal struct {
	out    *os.File
	color  bool
	quit   chan struct{}
	leave  func()
	before string
}

// openTerminal turns to another screen, and reads keys where the input is a terminal
// too. What it changes, close puts back.
func openTerminal(in, out *os.File, color bool) (*terminal, error) {
	t := &terminal{out: out, color: color, quit: make(chan struct{}), leave: func() {}}
	if in != nil && term.IsTerminal(int(in.Fd())) {
		state, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return nil, fmt.Errorf("read keys from the terminal: %w; say --plain", err)
		}
		// If that fails there is nobody to tell.
		t.leave = func() { _ = term.Restore(int(in.Fd()), state) }
		go waitForQuit(in, t.quit)
	}
	if _, err := out.WriteString(enterScreen); err != nil {
		t.leave()
		return nil, fmt.Errorf("write to the terminal: %w", err)
	}
	return t, nil
}

// waitForQuit closes a channel once q, Q or the interrupt key is pressed.
func waitForQuit(in io.Reader, quit chan<- struct{}) {
	key := make([]byte, 1)
	for {
		n, err := in.Read(key)
		if err != nil {
			return
		}
		if n == 1 && (key[0] == 'q' || key[0] == 'Q' || key[0] == 3) {
			close(quit)
			return
		}
	}
}

func (t *terminal) keys() <-chan struct{} { return t.quit }

func (t *terminal) close() {
	_, _ = t.out.WriteString(leaveScreen)
	t.leave()
}

// show draws a view, unless the screen shows it already.
func (t *terminal) show(v *view, now time.Time) error {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	drawn := overdraw(watchFrame(v, width, height, now, t.color))
	if drawn == t.before {
		return nil
	}
	t.before = drawn
	if _, err := t.out.WriteString(drawn); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	return nil
}

// overdraw writes a frame over the one before.
func overdraw(frame []string) string {
	return toTop + strings.Join(frame, clearLine+"\r\n") + clearLine + clearBelow
}
