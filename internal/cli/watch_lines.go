package cli

import (
	"fmt"
	"io"
	"time"
)

// lines shows a view as one line for each change.
type lines struct {
	out  io.Writer
	said string
}

func (l *lines) show(v *view, now time.Time) error {
	state, _ := v.verdictWords()
	text := changeLine(v.rollout, state)
	if v.trouble != nil {
		text = "the API server cannot be asked; it is tried again: " + v.trouble.Error()
	}
	if text == l.said {
		return nil
	}
	l.said = text
	if _, err := fmt.Fprintf(l.out, "%s  %s\n", now.Format(time.TimeOnly), clean(text)); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

func (l *lines) keys() <-chan struct{} { return nil }
func (l *lines) close()                {}
