// Package testbed runs a small real world on loopback, as an ordinary user: an
// API server with its etcd, a gateway, Prometheus, services to divide traffic
// between, and this project's manager. Tests and the demo drive the same bed.
//
// Every process listens on loopback only, and none outlives the process that
// started the bed.
package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options says what a bed consists of. The zero value is an API server with the
// CRDs of the Gateway API and of this project.
type Options struct {
	// BinDir holds the binaries: etcd, kube-apiserver, kube-controller-manager,
	// traefik, prometheus, podinfo, manager. Default: $WEIGHTEDROLLOUT_BIN, then
	// bin in the root of this module.
	BinDir string
	// Assets holds etcd and kube-apiserver. Default: $KUBEBUILDER_ASSETS, then BinDir.
	Assets string
	// Dir is where data, logs and kubeconfigs go. Default: a new temporary
	// directory, which Stop removes unless something failed.
	Dir string
	// KeepDir leaves a temporary directory in place.
	KeepDir bool

	// Gateway starts Traefik.
	Gateway bool
	// Prometheus starts Prometheus, which scrapes the gateway.
	Prometheus bool
	// ScrapeInterval of Prometheus. Default: 500ms.
	ScrapeInterval time.Duration

	// CRDDirs holds further CRDs.
	CRDDirs []string
	// ManagerRBAC is the directory with the roles that the manager runs under.
	// Default: config/rbac of this module; if there is none, the manager may do
	// anything.
	ManagerRBAC string
	// APIServerArgs are added to the API server's flags, and win over them.
	APIServerArgs []string
	// GatewayArgs are added to Traefik's flags.
	GatewayArgs []string

	// Log gets one line per component that is ready.
	Log io.Writer
	// Progress is called for every component that is ready.
	Progress func(component string, took time.Duration)
}

// Bed is a running world. Its methods may be called from several goroutines.
type Bed struct {
	// Dir holds everything that the bed writes; logs are in its folder logs.
	Dir string
	// Config reaches the API server as an administrator.
	Config *rest.Config
	// Client is an administrator's client with every type that the bed knows.
	Client client.WithWatch
	// Kubeconfig is the path of an administrator's kubeconfig file.
	Kubeconfig string
	// ManagerKubeconfig is the path of the manager's kubeconfig file.
	ManagerKubeconfig string
	// Gateway is nil unless it was asked for.
	Gateway *Gateway
	// Prometheus is nil unless it was asked for.
	Prometheus *Prometheus

	options Options
	paths   modulePaths
	access  *access
	network *network
	ownDir  bool
	began   time.Time

	*supervisor

	played   []func() // each ends a part that the bed plays itself
	stopOnce sync.Once
	stopErr  error
}

// Start brings a bed up. ctx bounds the start only; Stop ends the bed. Whatever
// was started is stopped again when Start fails.
func Start(ctx context.Context, options Options) (*Bed, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("the testbed needs Linux: services are reached at loopback addresses that only Linux has without set-up")
	}
	bed, err := newBed(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := bed.startAll(ctx); err != nil {
		// Whoever calls it off does not need the logs.
		if !errors.Is(ctx.Err(), context.Canceled) {
			bed.fail(err)
			err = fmt.Errorf("%w\nthe logs are in %s", err, bed.LogDir())
		}
		return nil, errors.Join(err, bed.Stop())
	}
	return bed, nil
}

func newBed(ctx context.Context, options Options) (*Bed, error) {
	paths, err := findModules(ctx)
	if err != nil {
		return nil, err
	}
	bed := &Bed{options: withDefaults(options, paths), paths: paths, Dir: options.Dir, began: time.Now()}
	if err := bed.checkBinaries(); err != nil {
		return nil, err
	}
	if bed.Dir == "" {
		if bed.Dir, err = os.MkdirTemp("", "weightedrollout-bed-"); err != nil {
			return nil, fmt.Errorf("making the bed's directory: %w", err)
		}
		bed.ownDir = true
	}
	if bed.Dir, err = filepath.Abs(bed.Dir); err != nil {
		return nil, fmt.Errorf("finding the bed's directory: %w", err)
	}
	if bed.network, err = reserveNetwork(ctx); err != nil {
		return nil, err
	}
	if bed.supervisor, err = newSupervisor(bed.Dir); err != nil {
		return nil, errors.Join(err, bed.network.release())
	}
	return bed, nil
}

func withDefaults(options Options, paths modulePaths) Options {
	if options.BinDir == "" {
		options.BinDir = os.Getenv("WEIGHTEDROLLOUT_BIN")
	}
	if options.BinDir == "" {
		options.BinDir = filepath.Join(paths.self, "bin")
	}
	if options.Assets == "" {
		options.Assets = os.Getenv("KUBEBUILDER_ASSETS")
	}
	if options.Assets == "" {
		options.Assets = options.BinDir
	}
	if options.ScrapeInterval <= 0 {
		options.ScrapeInterval = 500 * time.Millisecond
	}
	if options.ManagerRBAC == "" {
		options.ManagerRBAC = filepath.Join(paths.self, "config", "rbac")
	}
	return options
}

func (b *Bed) startAll(ctx context.Context) error {
	steps := []struct {
		component string
		wanted    bool
		start     func(context.Context) error
	}{
		{"etcd and kube-apiserver", true, b.startControlPlane},
		{"custom resources and roles", true, b.installResources},
		{"traefik (gateway)", b.options.Gateway, b.startGateway},
		{"prometheus", b.options.Prometheus, b.startPrometheus},
	}
	for _, step := range steps {
		if !step.wanted {
			continue
		}
		began := time.Now()
		if err := step.start(ctx); err != nil {
			return fmt.Errorf("starting %s: %w", step.component, err)
		}
		b.report(step.component, time.Since(began))
	}
	return nil
}

// report tells whoever watches the start that a component is ready.
func (b *Bed) report(component string, took time.Duration) {
	if b.options.Progress != nil {
		b.options.Progress(component, took)
	}
	if b.options.Log != nil {
		// Progress is a courtesy: a closed pipe must not end a test.
		_, _ = fmt.Fprintf(b.options.Log, "%6.1fs  %s ready\n", time.Since(b.began).Seconds(), component)
	}
}

// Keep leaves the bed's directory in place when the bed stops.
func (b *Bed) Keep() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.options.KeepDir = true
}

// Stop ends every process, the last started first, and removes the directory if
// the bed made it and nothing failed. It may be called more than once.
func (b *Bed) Stop() error {
	b.stopOnce.Do(func() { b.stopErr = b.stop() })
	return b.stopErr
}

func (b *Bed) stop() error {
	b.mu.Lock()
	b.stopping = true
	played := slices.Clone(b.played)
	keep := b.options.KeepDir || b.Err() != nil
	b.mu.Unlock()

	for _, end := range slices.Backward(played) {
		end()
	}
	errs := []error{b.end(), b.network.release()}
	if b.ownDir && !keep {
		if err := os.RemoveAll(b.Dir); err != nil {
			errs = append(errs, fmt.Errorf("removing the bed's directory: %w", err))
		}
	}
	return errors.Join(errs...)
}

// checkBinaries looks for everything that Start will need, before anything runs.
func (b *Bed) checkBinaries() error {
	names := []string{"etcd", "kube-apiserver"}
	if b.options.Gateway {
		names = append(names, "traefik")
	}
	if b.options.Prometheus {
		names = append(names, "prometheus")
	}
	for _, name := range names {
		if _, err := b.binary(name); err != nil {
			return err
		}
	}
	return nil
}

// binary finds an executable, and says how to get it if there is none.
func (b *Bed) binary(name string) (string, error) {
	dir := b.options.BinDir
	if name == "etcd" || name == "kube-apiserver" {
		dir = b.options.Assets
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", name, err)
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return "", fmt.Errorf("%s is not in %s: build it first, or name the directory that holds it", name, dir)
	}
	return path, nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(port)) }
