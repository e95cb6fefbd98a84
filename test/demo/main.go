// Command demo shows what WeightedRollout does with a good, a bad and a slow canary.
// It runs an API server, a gateway, Prometheus, the services and the manager as
// real processes on loopback, sends a steady load through the gateway, and checks
// what it shows.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weightedrollout/weightedrollout/test/testbed"
)

const (
	overallTimeout = 10 * time.Minute

	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

const usage = `demo runs canary rollouts on this machine and checks that they go as they should.

Everything runs as processes of yours on loopback addresses: an API server with
its etcd, Traefik as the gateway, Prometheus, the services, and the manager. A
steady load of %d requests per second goes through the gateway. No root, no
containers; nothing is left behind.

  good   checkout 2.4.1 is as good as stable: it is promoted, by stages of 1, 5,
         10, 20, 50 and 100 percent. The soaks are seconds, not half hours.
  bad    payments 3.0.0 fails one request in three: stable gets all traffic back.
         Two thirds of these answers are of 4xx, which are no failures of the
         server: what counts is one request in nine, so the evidence shows about
         11 percent, and from 9 to 13 in most runs.
  slow   search 1.9.0 fails no request, but takes 2 to 3 seconds for each: stable
         gets all traffic back.

Usage: demo [flags]

`

var (
	errInterrupted = errors.New("interrupted")
	errTimeout     = fmt.Errorf("the demo did not come to its end within %s", overallTimeout)
)

type options struct {
	binDir   string
	scenario string
	keep     bool
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out *os.File, errOut io.Writer) int {
	opts, err := parseFlags(args, errOut)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return exitUsage
	}
	// What the demo has to say it says itself.
	log.SetLogger(logr.Discard())
	interrupted, cancel := untilInterrupted()
	defer cancel()
	switch err := demo(interrupted, opts, newScreen(out)); {
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(errOut, "demo: interrupted; every process has been stopped")
		return exitInterrupted
	case err != nil:
		fmt.Fprintf(errOut, "demo: %v\n", err)
		return exitFailed
	}
	return 0
}

func parseFlags(args []string, errOut io.Writer) (options, error) {
	opts := options{}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.StringVar(&opts.binDir, "bin", "bin", "`directory` with the binaries (make demo builds them)")
	flags.StringVar(&opts.scenario, "scenario", everyScenario, "what to show: good, bad, slow or "+everyScenario)
	flags.BoolVar(&opts.keep, "keep", false, "leave everything running afterwards, the load too, to look around with kubectl")
	flags.Usage = func() {
		fmt.Fprintf(errOut, usage, requestsPerSecond)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("demo takes flags only, not %q; see demo --help", flags.Arg(0))
		fmt.Fprintln(errOut, err)
		return opts, err
	}
	if _, err := chooseScenarios(opts.scenario); err != nil {
		fmt.Fprintln(errOut, err)
		return opts, err
	}
	return opts, nil
}

// untilInterrupted returns a context that a signal cancels. A second signal ends
// the process at once; the kernel then kills its children.
func untilInterrupted() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case <-signals:
			signal.Stop(signals)
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(context.Canceled)
	}
}

// demo brings the world up, plays the scenarios and takes the world down again.
func demo(interrupted context.Context, opts options, screen *screen) (err error) {
	scenarios, err := chooseScenarios(opts.scenario)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(interrupted, overallTimeout, errTimeout)
	defer cancel()

	screen.say("%s", screen.bold("Starting the parts, each a process on loopback"))
	began := time.Now()
	bed, err := testbed.Start(ctx, testbed.Options{
		BinDir: opts.binDir, Gateway: true, Prometheus: true,
		Progress: func(component string, took time.Duration) {
			screen.say("  %5.1fs  %-28s %s", time.Since(began).Seconds(), component, screen.dim(fmt.Sprintf("took %.1fs", took.Seconds())))
		},
	})
	if err != nil {
		return because(ctx, err)
	}
	defer func() {
		err = finish(interrupted, bed, screen, err)
	}()

	watched, release := bed.Context(ctx)
	defer release()
	manager, err := prepare(watched, bed)
	if err != nil {
		return because(watched, err)
	}
	results, err := play(watched, bed, manager, screen, scenarios)
	err = because(watched, err)
	screen.say("%s", screen.dim(fmt.Sprintf("  The whole took %s.", clock(time.Since(began)))))
	if opts.keep && !errors.Is(err, errInterrupted) {
		lookAround(interrupted, bed, manager, scenarios[0], results, opts, screen, err)
	}
	return err
}

func play(ctx context.Context, bed *testbed.Bed, manager *testbed.Manager, screen *screen, scenarios []scenario) ([]*result, error) {
	var results []*result
	var failures []error
	for _, s := range scenarios {
		r, err := perform(ctx, bed, manager, screen, s)
		if err != nil {
			return results, fmt.Errorf("scenario %s: %w", s.key, err)
		}
		results = append(results, r)
		for _, problem := range r.problems {
			failures = append(failures, fmt.Errorf("scenario %s: %s", s.key, problem))
		}
	}
	screen.report(results)
	return results, errors.Join(failures...)
}

// finish stops the bed. Its logs stay where something went wrong.
func finish(interrupted context.Context, bed *testbed.Bed, screen *screen, err error) error {
	failed := err != nil && !errors.Is(err, errInterrupted)
	if failed {
		bed.Keep()
	}
	if context.Cause(interrupted) != nil {
		screen.say("Stopping every process")
	}
	err = errors.Join(err, bed.Stop())
	if failed {
		err = fmt.Errorf("%w\nthe logs are in %s", err, bed.LogDir())
	}
	return err
}

// because puts the reason for the end of a context in the place of the error that
// the end led to, which is of no interest then.
func because(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}
