package testbed

import (
	"os/exec"
	"runtime"
	"sync"
)

// launcher starts processes from one operating-system thread. Linux sends a
// child its parent-death signal when the thread that forked it ends, not when
// the process does, so that thread has to live exactly as long as the bed.
type launcher struct {
	jobs chan func()
	once sync.Once
}

func newLauncher() *launcher {
	l := &launcher{jobs: make(chan func())}
	ready := make(chan struct{})
	go l.run(ready)
	<-ready
	return l
}

// run carries out the jobs on a thread of its own, once it has one.
func (l *launcher) run(ready chan<- struct{}) {
	// Never unlocked: when this goroutine ends its thread ends too, and with it every
	// child that is still there.
	runtime.LockOSThread()
	if onFirstThread() {
		// The process's first thread does not end before the process does. While this
		// goroutine holds it, another one gets another thread.
		next := make(chan struct{})
		go l.run(next)
		<-next
		runtime.UnlockOSThread()
		close(ready)
		return
	}
	close(ready)
	for job := range l.jobs {
		job()
	}
}

// start starts a command, as childAttributes says unless it has attributes of its own.
// It must not be called after close.
func (l *launcher) start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = childAttributes(false)
	}
	started := make(chan error, 1)
	l.jobs <- func() { started <- cmd.Start() }
	return <-started
}

func (l *launcher) close() { l.once.Do(func() { close(l.jobs) }) }
