package testbed

import (
	"os"
	"syscall"
)

// childAttributes puts a child into a process group of its own, so that Ctrl-C
// in a terminal reaches only the parent, which then stops its children in order;
// and has the kernel kill it when the parent is gone, however that came about. A child
// apart gets namespaces of its own.
func childAttributes(apart bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if apart {
		attributes.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNET
		// Unshared, not cloned: Go then makes its mounts private before it runs the child.
		attributes.Unshareflags = syscall.CLONE_NEWNS
	}
	return attributes
}

// onFirstThread tells whether the calling thread is the process's first one.
func onFirstThread() bool { return syscall.Gettid() == os.Getpid() }
