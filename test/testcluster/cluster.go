// Package testcluster runs a real Kubernetes cluster of one node on this machine: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, containerd, the kubelet and
// kube-proxy, with pods, Services and the API server's audit log. It needs root.
//
// Everything is in namespaces of its own, so that several clusters and any other
// container engine get along. They belong to one process, which the kernel ends with
// the process that started the cluster: no process, mount or network interface outlives
// that, however it ended. There is no DNS; pods find each other by Service addresses.
package testcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/test/auditlog"
	"github.com/weightedrollout/weightedrollout/test/testbed"
	"github.com/weightedrollout/weightedrollout/test/testcluster/remains"
)

// startTimeout bounds the start of each part, on a machine that is busy.
const startTimeout = 3 * time.Minute

// Options says what is needed to start a cluster, and what is to be in it.
type Options struct {
	// Module is the root folder of this repository.
	Module string
	// BinDir holds the programs. Default: $WEIGHTEDROLLOUT_BIN, then bin in Module.
	BinDir string
	// Images are those that pods can run.
	Images []Image
	// Log gets one line per part that is ready.
	Log io.Writer
}

// Cluster is a running cluster. Its methods may be called from several goroutines,
// apart from those that kill and start parts of it.
type Cluster struct {
	// Dir holds everything that the cluster writes; logs are in its folder logs, and
	// those of the pods in logs/pods.
	Dir string
	// Config reaches the API server as an administrator, from this process alone.
	Config *rest.Config
	// Client is an administrator's client with every type that the tests know.
	Client client.WithWatch
	// Kubeconfig is the path of an administrator's kubeconfig file, for commands in the
	// cluster's network: see Command.
	Kubeconfig string

	options    Options
	began      time.Time
	lock       *os.File
	supervisor *testbed.Supervisor
	nodePID    int
	network    *os.File
	tokens     map[string]string // by user
	apiServer  *testbed.Process
	starts     []auditlog.Period // of the API server

	dismissSweeper func() error

	reporting sync.Mutex
	stopOnce  sync.Once
	stopErr   error
}

// Start starts a cluster, after it has removed what clusters have left that were killed.
// ctx bounds the start only; Stop ends the cluster. Whatever was started is stopped again
// when Start fails.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	c := &Cluster{options: options, began: time.Now()}
	if c.options.BinDir == "" {
		c.options.BinDir = os.Getenv("WEIGHTEDROLLOUT_BIN")
	}
	if c.options.BinDir == "" {
		c.options.BinDir = filepath.Join(options.Module, "bin")
	}
	for _, name := range programs {
		if _, err := c.program(name); err != nil {
			return nil, err
		}
	}
	removed, err := remains.RemoveDead(os.TempDir())
	if err != nil {
		return nil, err
	}
	for _, dir := range removed {
		c.report("removed what an earlier cluster left in %s", dir)
	}
	if err := c.makeDir(); err != nil {
		return nil, err
	}
	if err := c.startAll(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(ctx.Err() == nil))
	}
	return c, nil
}

// makeDir makes the cluster's folder. It gets its name once it is locked, so that nobody
// takes it for that of a dead cluster.
func (c *Cluster) makeDir() error {
	unlocked, err := os.MkdirTemp("", "."+remains.Prefix)
	if err != nil {
		return fmt.Errorf("making the cluster's folder: %w", err)
	}
	c.Dir = filepath.Join(filepath.Dir(unlocked), strings.TrimPrefix(filepath.Base(unlocked), "."))
	// Pods run as other users, and read what is mounted from here.
	err = os.Chmod(unlocked, 0o755)
	if err == nil {
		c.lock, err = remains.Lock(unlocked)
	}
	if err == nil {
		err = os.Rename(unlocked, c.Dir)
	}
	if err == nil {
		c.supervisor, err = testbed.NewSupervisor(c.Dir)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("making the cluster's folder: %w", err), os.RemoveAll(unlocked), os.RemoveAll(c.Dir))
	}
	return nil
}

func (c *Cluster) startAll(ctx context.Context) error {
	if err := c.step(ctx, "namespaces", c.startNode); err != nil {
		return err
	}
	// The control plane and the images take about as long.
	containerd := make(chan struct{})
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		if err := c.step(ctx, "containerd", c.startContainerd); err != nil {
			return err
		}
		close(containerd)
		return c.step(ctx, "images", c.loadImages)
	})
	both.Go(func() error {
		if err := c.step(ctx, "etcd and kube-apiserver", c.startControlPlane); err != nil {
			return err
		}
		if err := c.step(ctx, "kube-controller-manager and kube-scheduler", c.startControllers); err != nil {
			return err
		}
		select {
		case <-containerd:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return c.step(ctx, "kubelet and kube-proxy", c.startKubelet)
	})
	return both.Wait()
}

func (c *Cluster) step(ctx context.Context, part string, start func(context.Context) error) error {
	if err := start(ctx); err != nil {
		return fmt.Errorf("starting %s: %w", part, err)
	}
	c.report("%s ready", part)
	return nil
}

// report tells whoever watches the start what has come of it.
func (c *Cluster) report(format string, args ...any) {
	if c.options.Log == nil {
		return
	}
	c.reporting.Lock()
	defer c.reporting.Unlock()
	// Progress is a courtesy: a closed pipe must not end a test.
	_, _ = fmt.Fprintf(c.options.Log, "%6.1fs  %s\n", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
}

// Err says which part of the cluster ended without having been told to, if one did.
func (c *Cluster) Err() error { return c.supervisor.Err() }

// LogDir holds one log per process, the audit log, and the logs of the pods.
func (c *Cluster) LogDir() string { return c.supervisor.LogDir() }

// Stop ends the cluster and removes what it wrote. The logs are kept, if wanted, and it
// says where. It may be called more than once.
func (c *Cluster) Stop(keepLogs bool) error {
	c.stopOnce.Do(func() { c.stopErr = c.stop(keepLogs) })
	return c.stopErr
}

func (c *Cluster) stop(keepLogs bool) error {
	errs := []error{c.supervisor.Stop()}
	if c.network != nil {
		errs = append(errs, c.network.Close())
	}
	if keepLogs {
		kept := filepath.Join(os.TempDir(), "weightedrollout-logs-"+strings.TrimPrefix(filepath.Base(c.Dir), remains.Prefix))
		if err := os.Rename(c.LogDir(), kept); err != nil {
			errs = append(errs, fmt.Errorf("keeping the logs: %w", err))
		} else {
			c.report("the logs are kept in %s", kept)
		}
	}
	errs = append(errs, remains.Remove(c.Dir))
	if c.dismissSweeper != nil {
		errs = append(errs, c.dismissSweeper())
	}
	return errors.Join(append(errs, c.lock.Close())...)
}
