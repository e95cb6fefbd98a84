package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/live"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// lookAround leaves everything running, with the load of the scenarios that were played,
// until the user has seen enough.
func lookAround(interrupted context.Context, bed *testbed.Bed, manager *testbed.Manager, shown scenario, results []*result, opts options, screen *screen, err error) {
	if interrupted.Err() != nil || bed.Err() != nil {
		return
	}
	if err != nil {
		screen.say("%s", screen.red(err.Error()))
	}
	watching, err := watchLines(bed, manager, shown.name, opts)
	if err != nil {
		screen.say("%s", screen.red(err.Error()))
	}
	screen.print(sights(bed, manager, shown, results, opts, watching)...)
	watched, release := bed.Context(interrupted)
	defer release()
	group, running := errgroup.WithContext(watched)
	group.Go(func() error {
		<-running.Done()
		return nil
	})
	for _, r := range results {
		group.Go(func() error { return sendLoad(running, bed.Gateway.URL, r.scenario, func(answer) {}) })
	}
	failed := group.Wait()
	if cause := context.Cause(watched); cause != nil {
		failed = cause
	}
	if !errors.Is(failed, errInterrupted) {
		screen.print(failed.Error())
	}
}

// sights says what there is to look at, and how.
func sights(bed *testbed.Bed, manager *testbed.Manager, shown scenario, results []*result, opts options, watching []string) []string {
	kubectl, err := filepath.Abs(filepath.Join(opts.binDir, "kubectl"))
	if err != nil {
		kubectl = "kubectl"
	}
	lines := []string{
		"", "Everything goes on until Ctrl-C, the load too. In another terminal:", "",
		"  export KUBECONFIG=" + bed.Kubeconfig,
		"  alias k=" + kubectl,
		"  k get wr -A",
		"  k describe wr -n " + namespace + " " + shown.name,
		"  k events -n " + namespace,
		"  k get httproute -n " + namespace + " " + shown.name + " -o yaml",
	}
	lines = append(lines, watching...)
	lines = append(lines,
		"",
		"  gateway     "+bed.Gateway.URL,
		"              curl -H 'Host: "+shown.host()+"' \\",
		"                "+bed.Gateway.URL+answersPath,
		"  its metrics "+bed.Gateway.MetricsURL,
		"  evidence    curl -sk -H 'Authorization: Bearer "+bed.EvidenceToken()+"' \\",
		"                https://"+manager.MetricsAddress+live.Prefix+namespace+"/"+shown.name,
	)
	for _, r := range results {
		if r.phase == v1alpha1.PhaseRolledBack {
			lines = append(lines, retryLines(r.scenario.name)...)
			lines = append(lines, "              and ask for its evidence, as above with "+r.scenario.name)
			break
		}
	}
	return append(lines, "  prometheus  "+bed.Prometheus.URL, "  logs        "+bed.LogDir(), "")
}

// watchLines are the command that shows a rollout live. The manager is no pod, so that the
// API server cannot pass questions on to it: the plugin asks at its address, with a token
// in a file that nobody else can read.
func watchLines(bed *testbed.Bed, manager *testbed.Manager, name string, opts options) ([]string, error) {
	token := filepath.Join(bed.Dir, "evidence-token")
	if err := os.WriteFile(token, []byte(bed.EvidenceToken()), 0o600); err != nil {
		return nil, fmt.Errorf("write the token for the plugin: %w", err)
	}
	plugin, err := filepath.Abs(filepath.Join(opts.binDir, "kubectl-weightedrollout"))
	if err != nil {
		return nil, fmt.Errorf("find the plugin: %w", err)
	}
	return pluginLines(plugin, manager.MetricsAddress, token, name), nil
}

// pluginLines are watchLines without a look at the disk.
func pluginLines(plugin, address, token, name string) []string {
	return []string{
		"  " + plugin + " watch " + name + " -n " + namespace + " \\",
		"    --evidence https://" + address + " --token-file " + token + " --insecure-skip-tls-verify",
		"    (status, diagnose and dashboard take the same flags; make plugin builds it)",
	}
}

// retryLines are the command that starts another attempt of a rollout that was rolled
// back. It can be given again after the next rollback.
func retryLines(name string) []string {
	return []string{
		"  retry       k annotate wr " + name + " -n " + namespace + " --overwrite \\",
		"                " + v1alpha1.CommandAnnotation + "=\"$(printf \\",
		`                '{"id":"%s","verb":"retry","attempt":%s}' $(date +%s) \`,
		"                $(k get wr " + name + " -n " + namespace + " -o jsonpath='{.status.attempt}'))\"",
	}
}
