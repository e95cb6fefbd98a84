package testcluster

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// inNetwork calls do with the calling thread in another network namespace. A socket
// that do opens stays in that namespace. do must not start goroutines that open one.
func inNetwork(network *os.File, do func() error) error {
	runtime.LockOSThread()
	// The thread's own: another thread of the process may be away at the same time.
	home, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("finding the way back from the cluster's network: %w", err)
	}
	defer home.Close()
	if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("entering the cluster's network: %w", err)
	}
	err = do()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		// Locked as it is, the thread ends with its goroutine: nobody else gets it.
		return errors.Join(err, fmt.Errorf("leaving the cluster's network: %w", back))
	}
	runtime.UnlockOSThread()
	return err
}
