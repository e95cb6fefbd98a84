//go:build !linux

package testcluster

import (
	"errors"
	"os"
)

// inNetwork lets the package compile; Check refuses to start a cluster elsewhere.
func inNetwork(*os.File, func() error) error { return errors.New("there are no network namespaces") }
