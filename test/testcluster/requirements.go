package testcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// cniDirs are where distributions keep the programs that connect pods.
var cniDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// programs are what a cluster is made of: built by hack/build-tools.sh.
var programs = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl",
}

// packages are the programs that the machine must have, and Debian's packages of them.
var packages = []struct{ program, from string }{
	{"containerd", "containerd"},
	{"containerd-shim-runc-v2", "containerd"},
	{"ctr", "containerd"},
	{"runc", "runc"},
	{"nft", "nftables"},
	{"ip", "iproute2"},
	{"nsenter", "util-linux"},
	{"mount", "mount"},
	{"go", "golang"},
}

// Check says in one line what this machine lacks to run a cluster, and how to get it.
func Check() error {
	if runtime.GOOS != "linux" {
		return errors.New("a cluster needs Linux: run it in a virtual machine")
	}
	if os.Geteuid() != 0 {
		return errors.New("a cluster needs root, for namespaces, mounts and cgroups: run it with sudo, or in a virtual machine")
	}
	var missing, install []string
	for _, p := range packages {
		if _, err := exec.LookPath(p.program); err != nil {
			missing, install = append(missing, p.program), append(install, p.from)
		}
	}
	if _, err := findCNI(); err != nil {
		missing, install = append(missing, "the CNI plugins ptp, host-local and loopback"), append(install, "containernetworking-plugins")
	}
	if len(missing) > 0 {
		slices.Sort(install)
		return fmt.Errorf("a cluster needs %s: apt-get install %s",
			strings.Join(missing, ", "), strings.Join(slices.Compact(install), " "))
	}
	return nil
}

// findCNI returns the folder that has the plugins which connect pods.
func findCNI() (string, error) {
	for _, dir := range cniDirs {
		found := 0
		for _, plugin := range []string{"ptp", "host-local", "loopback"} {
			if _, err := exec.LookPath(filepath.Join(dir, plugin)); err == nil {
				found++
			}
		}
		if found == 3 {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no folder has the CNI plugins: looked in %s", strings.Join(cniDirs, ", "))
}

// program finds a program that was built for the cluster, and says how to get it if
// there is none.
func (c *Cluster) program(name string) (string, error) {
	path, err := filepath.Abs(filepath.Join(c.options.BinDir, name))
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", name, err)
	}
	if _, err := exec.LookPath(path); err != nil {
		return "", fmt.Errorf("%s is not in %s: hack/build-tools.sh %s", name, c.options.BinDir, name)
	}
	return path, nil
}
