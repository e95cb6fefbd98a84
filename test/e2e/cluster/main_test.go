// Package cluster tests the whole product where people run it: pods of the controller's
// image, installed by Helm's chart into a real cluster, with a gateway, Prometheus and
// two versions of a service as pods beside it. It needs root, or a cluster that is given:
// make e2e-cluster.
package cluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weightedrollout/weightedrollout/test/testbed"
	"github.com/weightedrollout/weightedrollout/test/testcluster"
)

const (
	// wanted is the variable of the environment without which nothing is started.
	wanted = "WEIGHTEDROLLOUT_E2E_CLUSTER"

	// patience bounds every wait: it says when a test has failed, not how fast it has
	// to be. Traefik repeats a write that has failed only after ten minutes.
	patience  = 12 * time.Minute
	pollEvery = 100 * time.Millisecond
)

// images are what the pods run, made of the programs in bin/. Those of others have the
// names under which a given cluster finds them.
var images = []testcluster.Image{
	{Tag: managerRepository + ":" + managerTag, Program: "manager"},
	{Tag: managerRepository + ":" + earlierTag, Program: "manager"},
	// What the chart, config/ and the sample name.
	{Tag: managerRepository + ":dev", Program: "manager"},
	{Tag: "ghcr.io/stefanprodan/podinfo:6.7.0", Program: "podinfo"},
	{Tag: "ghcr.io/stefanprodan/podinfo:6.7.1", Program: "podinfo"},
	{Tag: "docker.io/prom/prometheus:v3.16.0", Program: "prometheus"},
	{Tag: "docker.io/library/traefik:v3.6.12", Program: "traefik"},
}

var (
	cluster *site
	// moduleDir is the root of this repository, and gatewayAPIDir that of the Gateway API.
	moduleDir, gatewayAPIDir string
)

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	if os.Getenv(wanted) == "" {
		fmt.Println("not run: these tests start a cluster and need root: make e2e-cluster")
		os.Exit(0)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	var err error
	moduleDir, gatewayAPIDir, err = testbed.ModuleDirs(ctx)
	if err == nil && os.Getenv(wanted) == victim {
		return beVictim(ctx)
	}
	if err == nil && os.Getenv(wanted) == given {
		return beGuest(ctx, m)
	}
	var own *testcluster.Cluster
	if err == nil {
		own, err = testcluster.Start(ctx, testcluster.Options{Module: moduleDir, Images: images, Log: os.Stderr})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "make e2e-cluster builds what is needed:", err)
		return 1
	}
	cluster = &site{own: own, Client: own.Client, Dir: own.Dir}
	ended := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			fmt.Fprintln(os.Stderr, "stopped: removing the cluster")
			if err := own.Stop(false); err != nil {
				fmt.Fprintln(os.Stderr, "stopping the cluster:", err)
			}
			os.Exit(130)
		case <-ended:
		}
	}()
	code := m.Run()
	close(ended)
	if err := own.Stop(code != 0); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the cluster:", err)
		return 1
	}
	return code
}

// TestCluster installs the product, and goes through a cluster's life with it. The order
// matters: the last steps look back at the earlier ones, and take the product away.
func TestCluster(t *testing.T) {
	installGateway(t)
	installProduct(t)
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Killed", testKilled},
		{"Rollouts", testRollouts},
		{"LeaderKilled", testLeaderKilled},
		{"Outages", testOutages},
		{"Upgrade", testUpgrade},
		{"Metrics", testMetrics},
		{"Rights", testRights},
		{"Uninstall", testUninstall},
		{"Pages", testPages},
		{"Given", testGiven},
	} {
		t.Run(step.name, step.run)
		if err := cluster.Err(); err != nil {
			t.Fatalf("the cluster has failed: %v", err)
		}
	}
}
