package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

const (
	namespace   = "shop"
	gatewayName = "public"

	// scenarioTimeout is far beyond what a scenario takes on a slow machine.
	scenarioTimeout = 4 * time.Minute
	// afterwards is how long the load goes on after the outcome, to see that it lasts.
	afterwards = 4 * time.Second
)

// scenario is one rollout and how it should end.
type scenario struct {
	key      string
	name     string // of the route, of the rollout, and of its services with -stable and -canary
	revision string
	title    string
	// canary holds the flags of the canary's podinfo.
	canary []string
	want   v1alpha1.Phase
	// check is what a rollback has to be because of, and most the largest share, in
	// basis points, that the canary may have come to by then.
	check string
	most  int
}

var allScenarios = []scenario{
	{
		key: "good", name: "checkout", revision: "2.4.1",
		title: "a good canary is promoted",
		want:  v1alpha1.PhasePromoted,
	},
	{
		key: "bad", name: "payments", revision: "3.0.0",
		title:  "a bad canary is rolled back",
		canary: []string{"--random-error"},
		want:   v1alpha1.PhaseRolledBack, check: health.CheckErrorRate, most: 4900,
	},
	{
		key: "slow", name: "search", revision: "1.9.0",
		title: "a slow canary without errors is rolled back",
		// Every answer takes 2 to 3 s, and all of one second take the same time.
		canary: []string{"--random-delay", "--random-delay-unit=ms", "--random-delay-min=2000", "--random-delay-max=3000"},
		want:   v1alpha1.PhaseRolledBack, check: health.CheckLatency, most: 1000,
	},
}

// everyScenario plays all of them, one after the other.
const everyScenario = "all"

func chooseScenarios(key string) ([]scenario, error) {
	// It was called both when there were two.
	if key == everyScenario || key == "both" {
		return allScenarios, nil
	}
	for _, s := range allScenarios {
		if s.key == key {
			return []scenario{s}, nil
		}
	}
	return nil, fmt.Errorf("--scenario is %q: choose good, bad, slow or %s", key, everyScenario)
}

func (s scenario) host() string { return s.name + ".shop.example" }

func (s scenario) objectKey() client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: s.name}
}

// service is the Service of a track.
func (s scenario) service(t track) string { return s.name + "-" + t.String() }

// prepare makes what the scenarios share.
func prepare(ctx context.Context, bed *testbed.Bed) (*testbed.Manager, error) {
	if err := bed.CreateNamespace(ctx, namespace); err != nil {
		return nil, err
	}
	if err := bed.Gateway.Create(ctx, namespace, gatewayName); err != nil {
		return nil, err
	}
	return bed.StartManager(ctx, testbed.ManagerOptions{Metrics: true})
}

// perform plays one scenario to its end.
func perform(ctx context.Context, bed *testbed.Bed, manager *testbed.Manager, screen *screen, s scenario) (*result, error) {
	screen.say("")
	screen.say("%s", screen.bold(fmt.Sprintf("Scenario %s: %s (%s %s)", s.key, s.title, s.name, s.revision)))
	if _, err := bed.StartPodinfo(ctx, namespace, s.service(stable)); err != nil {
		return nil, err
	}
	if _, err := bed.StartPodinfo(ctx, namespace, s.service(canary), s.canary...); err != nil {
		return nil, err
	}
	route, rollout, err := manifests(s)
	if err != nil {
		return nil, err
	}
	if err := bed.Client.Create(ctx, route); err != nil {
		return nil, fmt.Errorf("creating the HTTPRoute: %w", err)
	}
	if err := awaitRoute(ctx, bed.Gateway.URL, s.host()); err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeoutCause(ctx, scenarioTimeout, fmt.Errorf("it did not come to its end within %s", scenarioTimeout))
	defer cancel()
	seen, err := observe(ctx, bed, manager, screen, s, rollout)
	if err != nil {
		return nil, err
	}
	r := judge(s, rollout.Spec, seen)
	screen.say("%s", screen.outcome(r))
	return r, nil
}

// observe creates the rollout under load, and records what happens until it has
// come to an end.
func observe(ctx context.Context, bed *testbed.Bed, manager *testbed.Manager, screen *screen, s scenario, rollout *v1alpha1.WeightedRollout) (*observation, error) {
	seen := newObservation(s, screen)
	over, stop := context.WithCancel(ctx)
	defer stop()
	group, running := errgroup.WithContext(over)
	group.Go(func() error { return sendLoad(running, bed.Gateway.URL, s, seen.answer) })
	group.Go(func() error { return countAtGateway(running, bed.Gateway.MetricsURL, s, seen) })
	group.Go(func() error { return readQuality(running, bed.Prometheus.URL, s, seen) })
	group.Go(func() error { return readEvidence(running, manager, bed.EvidenceToken(), s, seen) })
	group.Go(func() error { return followRoute(running, bed.Client, s, seen) })
	group.Go(func() error { return followRollout(running, bed.Client, s, seen) })
	group.Go(func() error { return screen.show(running, seen) })
	group.Go(func() error {
		// The load comes first, so that the first stage has all of it.
		if err := pause(running, time.Second); err != nil {
			return err
		}
		if err := bed.Client.Create(running, rollout); err != nil {
			return fmt.Errorf("creating the WeightedRollout: %w", err)
		}
		select {
		case <-seen.ended:
		case <-running.Done():
			return context.Cause(running)
		}
		err := pause(running, afterwards)
		stop()
		return err
	})
	err := group.Wait()
	screen.clear()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w\nthe last that was seen: %s", context.Cause(ctx), seen.lastWords())
	}
	return seen, err
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// rest pauses, and tells whether there is anything left to do afterwards.
func rest(ctx context.Context, d time.Duration) bool { return pause(ctx, d) == nil }
