package main

import (
	"context"
	"errors"
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
	screen.print(sights(bed, manager, shown, results, opts)...)
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
func sights(bed *testbed.Bed, manager *testbed.Manager, shown scenario, results []*result, opts options) []string {
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
		"  k get httproute -n " + namespace + " " + shown.name + " -o yaml", "",
		"  gateway     " + bed.Gateway.URL,
		"              curl -H 'Host: " + shown.host() + "' \\",
		"                " + bed.Gateway.URL + answersPath,
		"  its metrics " + bed.Gateway.MetricsURL,
		"  evidence    curl -sk -H 'Authorization: Bearer " + bed.EvidenceToken() + "' \\",
		"                https://" + manager.MetricsAddress + live.Prefix + namespace + "/" + shown.name,
	}
	for _, r := range results {
		if r.phase == v1alpha1.PhaseRolledBack {
			lines = append(lines, retryLines(r.scenario.name)...)
			lines = append(lines, "              and ask for its evidence, as above with "+r.scenario.name)
			break
		}
	}
	return append(lines, "  prometheus  "+bed.Prometheus.URL, "  logs        "+bed.LogDir(), "")
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
