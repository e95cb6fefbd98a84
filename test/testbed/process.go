package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// readyTimeout bounds the start of one process, on a machine that is busy.
	readyTimeout = 3 * time.Minute
	pollInterval = 50 * time.Millisecond

	tailLines     = 8
	tailLineWidth = 400
)

// command describes a process to start.
type command struct {
	name   string
	binary string
	args   []string
	// grace is how long the process may take to end after SIGTERM. With 0 it is
	// killed at once.
	grace time.Duration
	// ready is asked until it gives no error. It may be nil.
	ready func(context.Context) error
	// apart gives the process namespaces of its own: see Command.Apart.
	apart bool
}

// Process is a running child, or one that has ended.
type Process struct {
	// Name of the process in messages and of its log.
	Name string
	// LogPath is the file with what the process printed.
	LogPath string

	cmd      *exec.Cmd
	grace    time.Duration
	expected atomic.Bool
	done     chan struct{}
	err      error // set before done is closed
}

// ExitError says that a process ended without having been told to.
type ExitError struct {
	Name    string
	LogPath string
	// Tail holds the last lines of the log.
	Tail string
	Err  error
}

// Error names the process and shows the end of its log.
func (e *ExitError) Error() string {
	how := "ended"
	if e.Err != nil {
		how = e.Err.Error()
	}
	return fmt.Sprintf("%s ended unexpectedly (%s); the end of %s:\n%s", e.Name, how, e.LogPath, e.Tail)
}

// Unwrap returns the state that the process ended with.
func (e *ExitError) Unwrap() error { return e.Err }

func (p *Process) waitReady(ctx context.Context, ready func(context.Context) error) error {
	if ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	last := errors.New("it has not been asked yet")
	for {
		select {
		case <-p.done:
			return p.exitError()
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready: %w: %w (log: %s)", p.Name, context.Cause(ctx), last, p.LogPath)
		case <-tick.C:
			if last = ready(ctx); last == nil {
				return nil
			}
		}
	}
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running says whether the process is still there.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Wait waits for the process to end by itself or otherwise, and returns how it
// ended: nil after exit code 0. Whoever waits expects the end, so it is no
// failure of the bed.
func (p *Process) Wait(ctx context.Context) error {
	p.expected.Store(true)
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("waiting for %s to end: %w", p.Name, context.Cause(ctx))
	}
}

// Stop asks the process to end, and kills it if it does not within its grace.
func (p *Process) Stop() error {
	p.expected.Store(true)
	if p.grace == 0 {
		return p.Kill()
	}
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(p.grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return p.Kill()
	}
}

// Kill ends the process at once, as a crash would, and waits until it is gone.
func (p *Process) Kill() error {
	p.expected.Store(true)
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

func (p *Process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s: %w", sig, p.Name, err)
	}
	return nil
}

func (p *Process) exitError() error {
	return &ExitError{Name: p.Name, LogPath: p.LogPath, Tail: p.LogTail(), Err: p.err}
}

// LogTail returns the last lines of the log, for messages.
func (p *Process) LogTail() string {
	const most = tailLines * tailLineWidth * 4
	f, err := os.Open(p.LogPath)
	if err != nil {
		return fmt.Sprintf("  (no log: %v)", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return fmt.Sprintf("  (no log: %v)", err)
		}
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return fmt.Sprintf("  (no log: %v)", err)
	}
	text = bytes.TrimRight(text, "\n")
	if len(text) == 0 {
		return "  (it printed nothing)"
	}
	lines := strings.Split(string(text), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	for i, line := range lines {
		lines[i] = "  " + line[:min(len(line), tailLineWidth)]
	}
	return strings.Join(lines, "\n")
}
