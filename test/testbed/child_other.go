//go:build !linux

package testbed

import "syscall"

// childAttributes lets the package compile; Start refuses to run elsewhere.
func childAttributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func onFirstThread() bool { return false }
