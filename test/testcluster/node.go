package testcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// The addresses of the cluster. They are the same for each, since each has a network of
// its own.
const (
	// NodeName is the name of the only node.
	NodeName = "node0"

	nodeAddress  = "10.250.0.1"
	serviceRange = "10.96.0.0/16"
	podRange     = "10.244.0.0/24"

	dialTimeout = 10 * time.Second
)

// setUpNode runs in the node's namespaces. The folders that the kubelet and containerd
// write to at fixed places are the node's own, and so are all mounts.
const setUpNode = `set -e
mount -t proc proc /proc
mount --make-rshared /
for dir in /run /var/lib /var/log; do mount -t tmpfs tmpfs $dir; done
ip link set lo up
ip link add node0 type bridge
ip address add ` + nodeAddress + `/24 dev node0
ip link set node0 up
ip route add default dev node0
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet
`

// startNode makes the namespaces that everything runs in. They belong to one process:
// the kernel ends it with this one, and all that is in them with it.
func (c *Cluster) startNode(ctx context.Context) error {
	pause := filepath.Join(c.Dir, "pause")
	if err := c.buildPause(ctx, pause); err != nil {
		return err
	}
	if err := c.startSweeper(pause); err != nil {
		return err
	}
	holder, err := c.supervisor.Start(ctx, testbed.Command{Name: "node", Binary: pause, Apart: true})
	if err != nil {
		return err
	}
	c.nodePID = holder.PID()
	if c.network, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", c.nodePID)); err != nil {
		return fmt.Errorf("finding the node's network: %w", err)
	}
	return c.onNode(ctx, "sh", "-c", setUpNode)
}

func (c *Cluster) buildPause(ctx context.Context, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "./test/testcluster/pause")
	cmd.Dir = c.options.Module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	return run(cmd)
}

// startSweeper starts the process that removes the cluster's folder after this one has
// died. It notices by the end of its input.
func (c *Cluster) startSweeper(pause string) error {
	cmd := exec.CommandContext(context.Background(), pause, "sweep", c.Dir)
	// In a group of its own, so that Ctrl-C in a terminal does not reach it.
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting the sweeper: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the sweeper: %w", err)
	}
	c.dismissSweeper = func() error { return errors.Join(input.Close(), cmd.Wait()) }
	return nil
}

// entering returns the arguments of nsenter for a command in the node's network.
func (c *Cluster) entering(command ...string) []string {
	return append([]string{fmt.Sprintf("--target=%d", c.nodePID), "--net", "--"}, command...)
}

// enteringNode is for a command in all of the node's namespaces.
func (c *Cluster) enteringNode(command ...string) []string {
	return append([]string{fmt.Sprintf("--target=%d", c.nodePID), "--net", "--mount", "--pid", "--"}, command...)
}

// onNode runs a command in all of the node's namespaces.
func (c *Cluster) onNode(ctx context.Context, command ...string) error {
	return run(exec.CommandContext(ctx, "nsenter", c.enteringNode(command...)...))
}

// Command returns a command that is to run in the cluster's network, with KUBECONFIG set
// to an administrator's. A program of the folder of programs needs no path.
func (c *Cluster) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	if path, err := c.program(name); err == nil {
		name = path
	}
	cmd := exec.CommandContext(ctx, "nsenter", c.entering(append([]string{name}, args...)...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	return cmd
}

// DialContext connects to an IP address and a port in the cluster's network, such as
// those of a Service.
func (c *Cluster) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil || net.ParseIP(host) == nil {
		return nil, fmt.Errorf("connecting to %s: it is no IP address with a port, and the cluster has no DNS", address)
	}
	var conn net.Conn
	err = inNetwork(c.network, func() (err error) {
		conn, err = (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// run runs a command and returns an error with what it printed.
func run(cmd *exec.Cmd) error {
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(output.Bytes()))
	}
	return nil
}
