package testbed

import (
	"os"
	"syscall"
)

// childAttributes puts a child into a process group of its own, so that Ctrl-C
// in a terminal reaches only the parent, which then stops its children in order;
// and has the kernel kill it when the parent is gone, however that came about.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// onFirstThread tells whether the calling thread is the process's first one.
func onFirstThread() bool { return syscall.Gettid() == os.Getpid() }
