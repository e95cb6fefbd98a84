package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	promconfig "go.yaml.in/yaml/v3"
)

// Prometheus scrapes the gateway. It can be stopped and started again, with the
// same address and the same data, to play an outage.
type Prometheus struct {
	// URL is its address.
	URL string

	bed    *Bed
	port   int
	binary string
	config string

	mu      sync.Mutex
	process *Process
}

func (b *Bed) startPrometheus(ctx context.Context) error {
	binary, err := b.binary("prometheus")
	if err != nil {
		return err
	}
	p := &Prometheus{bed: b, binary: binary, config: filepath.Join(b.Dir, "prometheus.yml")}
	if err := b.writePrometheusConfig(p.config); err != nil {
		return err
	}
	p.process, err = b.startOnFreePorts(ctx, 1, func(ports []int) command {
		p.port = ports[0]
		p.URL = "http://" + loopback(ports[0])
		return p.command()
	})
	if err != nil {
		return err
	}
	b.Prometheus = p
	return nil
}

func (b *Bed) writePrometheusConfig(path string) error {
	scrapes := []any{}
	if b.Gateway != nil {
		target, err := url.Parse(b.Gateway.MetricsURL)
		if err != nil {
			return fmt.Errorf("reading the gateway's address: %w", err)
		}
		scrapes = append(scrapes, map[string]any{
			"job_name":       "traefik",
			"static_configs": []any{map[string]any{"targets": []string{target.Host}}},
		})
	}
	interval := b.options.ScrapeInterval.String()
	text, err := promconfig.Marshal(map[string]any{
		"global":         map[string]any{"scrape_interval": interval, "scrape_timeout": interval},
		"scrape_configs": scrapes,
	})
	if err != nil {
		return fmt.Errorf("writing the configuration of prometheus: %w", err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("writing the configuration of prometheus: %w", err)
	}
	return nil
}

func (p *Prometheus) command() command {
	return command{
		name: "prometheus", binary: p.binary, grace: 10 * time.Second,
		args: []string{
			"--config.file=" + p.config,
			"--storage.tsdb.path=" + filepath.Join(p.bed.Dir, "prometheus"),
			"--web.listen-address=" + loopback(p.port),
			"--log.level=warn",
		},
		ready: answersOK(http.DefaultClient, p.URL+"/-/ready"),
	}
}

// Stop ends Prometheus; its data stays.
func (p *Prometheus) Stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process.Stop()
}

// Start starts Prometheus again after Stop, at the same address.
func (p *Prometheus) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process.Running() {
		return errors.New("starting prometheus: it is running")
	}
	process, err := p.bed.start(ctx, p.command())
	if err != nil {
		return fmt.Errorf("starting prometheus again: %w", err)
	}
	p.process = process
	return nil
}

// Process returns the running process.
func (p *Prometheus) Process() *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}
