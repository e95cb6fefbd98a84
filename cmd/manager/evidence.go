package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/weightedrollout/weightedrollout/controllers"
	"github.com/weightedrollout/weightedrollout/internal/secrets"
	"github.com/weightedrollout/weightedrollout/internal/telemetry"
)

// evidenceOptions say which metrics servers are asked, and how.
type evidenceOptions struct {
	address   string
	tokenFile string
	caFile    string
	allow     string
	timeout   time.Duration
}

func (o *evidenceOptions) bind(fs *flag.FlagSet) {
	fs.StringVar(&o.address, "prometheus-address", "", "Prometheus for rollouts that name none in health.prometheus.address, such as http://prometheus.monitoring:9090.")
	fs.StringVar(&o.tokenFile, "prometheus-bearer-token-file", "", "File with a bearer token for --prometheus-address, read anew when it changes. Rollouts that name an address or credentials of their own do not get it.")
	fs.StringVar(&o.caFile, "prometheus-ca-file", "", "File with the certificate authorities, in PEM, that --prometheus-address is trusted by instead of the system's; read anew when it changes.")
	fs.StringVar(&o.allow, "metrics-address-allow", "*", "Comma-separated addresses that rollouts may name in health.prometheus.address, such as http://prometheus.monitoring:9090 or https://*.example.com/prometheus; * allows any, and an empty text none but --prometheus-address.")
	fs.DurationVar(&o.timeout, "prometheus-timeout", 10*time.Second, "Longest wait for one answer of a Prometheus.")
}

// config checks the options. The error names the flag, and says what is wrong with it.
func (o *evidenceOptions) config() (telemetry.Config, error) {
	cfg := telemetry.Config{
		DefaultAddress: o.address, BearerTokenFile: o.tokenFile, CAFile: o.caFile, Timeout: o.timeout,
		Clock: clock.RealClock{}, Log: ctrl.Log.WithName("telemetry"),
	}
	if err := checkWait("prometheus-timeout", o.timeout, "10s"); err != nil {
		return cfg, err
	}
	var err error
	if cfg.Allow, err = telemetry.ParseAllowlist(o.allow); err != nil {
		return cfg, fmt.Errorf("--metrics-address-allow: %w", err)
	}
	if o.address == "" {
		if o.tokenFile != "" || o.caFile != "" {
			return cfg, errors.New("--prometheus-bearer-token-file and --prometheus-ca-file are for the server of --prometheus-address: set that too")
		}
		return cfg, nil
	}
	if err := telemetry.CheckAddress(o.address, o.caFile != ""); err != nil {
		return cfg, fmt.Errorf("--prometheus-address: %w", err)
	}
	return cfg, nil
}

// newCollector returns the collector of evidence. Its watches of Secrets end with the
// context.
func newCollector(ctx context.Context, mgr ctrl.Manager, cfg telemetry.Config, wakeups controllers.Wakeups) (*telemetry.Collector, error) {
	core, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client for Secrets: %w", err)
	}
	cfg.Secrets = secrets.NewWatcher(ctx, secrets.FromAPI(core.RESTClient()))
	cfg.Notify = wakeups.Notify
	collector := telemetry.New(cfg)
	if err := mgr.Add(collector); err != nil {
		return nil, fmt.Errorf("add the collector of evidence: %w", err)
	}
	return collector, nil
}
