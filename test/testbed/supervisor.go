package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// supervisor starts processes, notices when one ends, and ends them. What they print
// goes to dir/logs, and each works in a folder of dir/work.
type supervisor struct {
	dir      string
	launcher *launcher

	failed context.Context
	fail   context.CancelCauseFunc

	mu        sync.Mutex
	processes []*Process
	stopping  bool
}

func newSupervisor(dir string) (*supervisor, error) {
	s := &supervisor{dir: dir}
	if err := os.MkdirAll(s.LogDir(), 0o755); err != nil {
		return nil, fmt.Errorf("making the log directory: %w", err)
	}
	s.failed, s.fail = context.WithCancelCause(context.Background())
	s.launcher = newLauncher()
	return s, nil
}

// LogDir holds one log per process.
func (s *supervisor) LogDir() string { return filepath.Join(s.dir, "logs") }

// start starts a process and waits until it is ready.
func (s *supervisor) start(ctx context.Context, c command) (*Process, error) {
	p, err := s.launch(c)
	if err != nil {
		return nil, err
	}
	if err := p.waitReady(ctx, c.ready); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	// From here on an end that nobody asked for is a failure of the bed.
	go func() {
		<-p.done
		if !p.expected.Load() {
			s.fail(p.exitError())
		}
	}()
	return p, nil
}

func (s *supervisor) launch(c command) (*Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil, fmt.Errorf("starting %s: the bed has been stopped", c.name)
	}
	workDir := filepath.Join(s.dir, "work", c.name)
	if err := os.MkdirAll(workDir, 0o755); err != nil {
		return nil, fmt.Errorf("making a directory for %s: %w", c.name, err)
	}
	p := &Process{
		Name: c.name, LogPath: filepath.Join(s.LogDir(), c.name+".log"),
		grace: c.grace, done: make(chan struct{}),
	}
	log, err := os.OpenFile(p.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", c.name, err)
	}
	defer log.Close() // the child has its own descriptor
	// It outlives the context that bounds its start.
	p.cmd = exec.CommandContext(context.Background(), c.binary, c.args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = workDir, log, log
	p.cmd.SysProcAttr = childAttributes(c.apart)
	if err := s.launcher.start(p.cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	s.processes = append(s.processes, p)
	return p, nil
}

// Context returns a context that is also cancelled, with the reason as its
// cause, when a process ends without having been told to.
func (s *supervisor) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	release := context.AfterFunc(s.failed, func() { cancel(context.Cause(s.failed)) })
	return ctx, func() {
		release()
		cancel(context.Canceled)
	}
}

// Err says which process ended without having been told to, if one did.
func (s *supervisor) Err() error {
	if s.failed.Err() == nil {
		return nil
	}
	return context.Cause(s.failed)
}

// end lets no further process start, and ends all, the last started first.
func (s *supervisor) end() error {
	s.mu.Lock()
	s.stopping = true
	processes := slices.Clone(s.processes)
	s.mu.Unlock()
	var errs []error
	for _, p := range slices.Backward(processes) {
		errs = append(errs, p.Stop())
	}
	s.launcher.close()
	return errors.Join(errs...)
}

// Command describes a process to start.
type Command struct {
	// Name of the process in messages, and of its log.
	Name   string
	Binary string
	Args   []string
	// Grace is how long the process may take to end after SIGTERM. With 0 it is
	// killed at once.
	Grace time.Duration
	// Ready is asked until it gives no error. It may be nil.
	Ready func(context.Context) error
	// Apart gives the process a network, a mount and a PID namespace of its own, of
	// which it is the first process: when it ends, so does everything in them. It needs
	// root.
	Apart bool
}

// Supervisor starts and ends the processes of another world than a Bed, by the same
// rules: none outlives the process that started it, and an end that nobody asked for
// is a failure.
type Supervisor struct{ *supervisor }

// NewSupervisor returns a supervisor that keeps its logs in the folder logs of dir.
func NewSupervisor(dir string) (*Supervisor, error) {
	s, err := newSupervisor(dir)
	if err != nil {
		return nil, err
	}
	return &Supervisor{s}, nil
}

// Start starts a process and waits until it is ready. ctx bounds the start only.
func (s *Supervisor) Start(ctx context.Context, c Command) (*Process, error) {
	return s.start(ctx, command{
		name: c.Name, binary: c.Binary, args: c.Args, grace: c.Grace, ready: c.Ready, apart: c.Apart,
	})
}

// Stop ends every process, the last started first. Nothing can be started afterwards.
func (s *Supervisor) Stop() error { return s.end() }
