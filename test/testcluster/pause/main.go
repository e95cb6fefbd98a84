// Command pause is the smallest process that a pod, or a node of the package
// testcluster, can be made of: it waits to be told to end, and buries processes whose
// parents have died.
//
//	pause
//	pause sweep DIR
//
// The second form waits for the end of its standard input, which is the end of whoever
// started it, and removes what the cluster in DIR has left.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/weightedrollout/weightedrollout/test/testcluster/remains"
)

func main() {
	switch {
	case len(os.Args) == 1:
		pause()
	case len(os.Args) == 3 && os.Args[1] == "sweep":
		if err := sweep(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "pause:", err)
			os.Exit(1)
		}
	default:
		fmt.Fprintln(os.Stderr, "usage: pause [sweep DIR]")
		os.Exit(2)
	}
}

func pause() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && err != syscall.EINTR {
				break
			}
		}
	}
}

func sweep(dir string) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return fmt.Errorf("waiting for the cluster's end: %w", err)
	}
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return nil
	}
	return remains.Remove(dir)
}
