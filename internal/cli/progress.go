package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// patience is how long a command may be silent at a terminal.
const patience = 2 * time.Second

// progress keeps a line at a terminal that says how far a simulation is, once that
// takes a while.
type progress struct {
	w io.Writer // nil: there is no terminal
	// hint is added to the line.
	hint  string
	clock func() time.Time
	due   time.Time
	shown bool
}

// progress returns the line of this simulation.
func (o *SimulateOptions) progress() *progress {
	p := &progress{clock: time.Now}
	if isTerminal(o.ErrOut) {
		p.w = o.ErrOut
	}
	if !o.exact {
		p.hint = "; --exact draws nothing and is faster"
	}
	p.due = p.clock().Add(patience)
	return p
}

// at shows how far the simulation is, if it is time to.
func (p *progress) at(e simulate.Elapsed) {
	if p.w == nil {
		return
	}
	now := p.clock()
	if now.Before(p.due) {
		return
	}
	p.due, p.shown = now.Add(patience), true
	_, _ = fmt.Fprintf(p.w, "\rSimulated so far: %s%s", clock(e), p.hint)
}

// clear takes the line away.
func (p *progress) clear() {
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
	}
}

// isTerminal tells whether what is written is seen at once.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
