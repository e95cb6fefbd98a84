package testbed

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// ManagerOptions says how the manager is started.
type ManagerOptions struct {
	// Binary is the path of the manager. Default: manager in the bed's BinDir.
	Binary string
	// Kubeconfig is what it reaches the API server with. Default: that of the
	// manager's own user.
	Kubeconfig string
	// Metrics serves the manager's metrics, and with them the evidence of rollouts.
	Metrics bool
	// Args are added to the manager's flags, and win over them.
	Args []string
}

// Manager is a running manager.
type Manager struct {
	*Process
	// HealthURL serves /healthz and /readyz.
	HealthURL string
	// MetricsAddress is the host and port of its metrics, if they were asked for.
	MetricsAddress string
}

// StartManager starts this project's manager and waits until it is ready. It may
// be called again, after the first was stopped or killed or beside it.
func (b *Bed) StartManager(ctx context.Context, options ManagerOptions) (*Manager, error) {
	binary := options.Binary
	if binary == "" {
		var err error
		if binary, err = b.binary("manager"); err != nil {
			return nil, err
		}
	}
	kubeconfig := options.Kubeconfig
	if kubeconfig == "" {
		kubeconfig = b.ManagerKubeconfig
	}
	args := []string{"--kubeconfig=" + kubeconfig, "--leader-elect=false"}
	if b.Prometheus != nil {
		args = append(args, "--prometheus-address="+b.Prometheus.URL)
	}
	began := time.Now()
	m := &Manager{}
	var err error
	m.Process, err = b.startOnFreePorts(ctx, 2, func(ports []int) command {
		m.HealthURL = "http://" + loopback(ports[0])
		metrics := "0"
		if options.Metrics {
			m.MetricsAddress = loopback(ports[1])
			metrics = m.MetricsAddress
		}
		return command{
			name: "manager", binary: binary, grace: 10 * time.Second,
			args: slices.Concat(args, []string{
				"--health-probe-bind-address=" + loopback(ports[0]),
				"--metrics-bind-address=" + metrics,
			}, options.Args),
			ready: answersOK(http.DefaultClient, m.HealthURL+"/readyz"),
		}
	})
	if err != nil {
		return nil, fmt.Errorf("starting the manager: %w", err)
	}
	b.report("manager", time.Since(began))
	return m, nil
}
