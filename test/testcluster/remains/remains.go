// Package remains removes what a cluster of the package testcluster leaves on the
// machine once its processes are gone: its folder, and the cgroups of its pods.
// Everything else, the network and the mounts, ends with the processes.
package remains

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Prefix starts the names of the folders of all clusters.
const Prefix = "weightedrollout-cluster-"

const (
	// patience is how long processes that were killed may take to be gone.
	patience  = 20 * time.Second
	pollEvery = 50 * time.Millisecond

	cgroupRoot = "/sys/fs/cgroup"
	// containerParent is the cgroup in which containerd makes those of a node's containers.
	containerParent = "k8s.io"
)

// ErrInUse says that the cluster of a folder is running.
var ErrInUse = errors.New("its cluster is running")

// Lock marks a folder as that of a running cluster, until the file is closed or the
// process ends, however it does.
func Lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrInUse
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", dir, err), f.Close())
	}
	return f, nil
}

// RemoveDead removes what clusters have left in a folder for temporary files that are
// not running any more, and returns their folders.
func RemoveDead(temporary string) ([]string, error) {
	dirs, err := filepath.Glob(filepath.Join(temporary, Prefix+"*"))
	if err != nil {
		return nil, fmt.Errorf("looking for earlier clusters in %s: %w", temporary, err)
	}
	var removed []string
	var errs []error
	for _, dir := range dirs {
		lock, err := Lock(dir)
		if errors.Is(err, ErrInUse) || errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = errors.Join(Remove(dir), lock.Close())
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, dir)
	}
	return removed, errors.Join(errs...)
}

// Remove removes a cluster's folder and its containers' cgroups. It waits for the end of processes that
// have just been killed.
func Remove(dir string) error {
	if !strings.HasPrefix(filepath.Base(dir), Prefix) {
		return fmt.Errorf("removing %s: it is no folder of a cluster", dir)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(pollEvery) {
		err := removeOnce(dir)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

func removeOnce(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	// What a mount shows may belong to somebody else.
	if strings.Contains(string(mounts), " "+dir+"/") {
		return fmt.Errorf("removing %s: something is mounted in it", dir)
	}
	if err := removeCgroups(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the cluster's folder: %w", err)
	}
	return nil
}

// removeCgroups removes the cgroups of the containers that containerd, which was killed,
// could not remove itself. A cgroup is a folder whose files cannot, and need not, be
// removed.
func removeCgroups(dir string) error {
	containers, err := filepath.Glob(filepath.Join(dir, "containerd", "io.containerd.grpc.v1.cri", "*", "*"))
	if err != nil {
		return fmt.Errorf("looking for containers in %s: %w", dir, err)
	}
	// Version 2 has one tree, and version 1 one for each controller.
	parents, err := filepath.Glob(filepath.Join(cgroupRoot, "*", containerParent))
	if err != nil {
		return fmt.Errorf("looking for cgroups: %w", err)
	}
	var errs []error
	for _, parent := range append(parents, filepath.Join(cgroupRoot, containerParent)) {
		for _, container := range containers {
			errs = append(errs, removeTree(filepath.Join(parent, filepath.Base(container))))
		}
		// It stays if another containerd has containers in it.
		_ = syscall.Rmdir(parent)
	}
	return errors.Join(errs...)
}

func removeTree(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("looking for cgroups: %w", err)
	}
	var errs []error
	for _, dir := range slices.Backward(dirs) {
		if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("removing cgroup %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}
