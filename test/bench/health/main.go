// Command health measures how the comparison of two tracks decides: how often it
// rolls a good canary back, how many requests it needs to find a bad one, and what a
// block costs, beside two other ways to judge a canary on the same made-up traffic.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const (
	exitBroken = 1
	exitUsage  = 2

	defaultRuns = 5000
	quickRuns   = 200
)

const usage = `health measures the comparison of a canary with stable on made-up traffic.

Four tables: how often a good canary is rolled back, how many of its requests it
takes to find a bad one, what a block costs, and how often whole verdicts roll back a
canary at half of its limit. The last lines say whether the
promises hold; if one does not, the exit status is 1. The same seed and number of
runs give the same tables on every machine, but for the costs.

Usage: health [flags]

`

type options struct {
	seed uint64
	runs int
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errOut io.Writer) int {
	opts, err := parseFlags(args, errOut)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return exitUsage
	}
	kept := falseRollbacks(opts, out)
	kept = append(kept, detections(opts, out)...)
	costs(out)
	kept = append(kept, verdicts(opts, out)...)
	if !promises(kept, out) {
		return exitBroken
	}
	return 0
}

func parseFlags(args []string, errOut io.Writer) (options, error) {
	opts, quick := options{}, false
	flags := flag.NewFlagSet("health", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Uint64Var(&opts.seed, "seed", 1, "what the traffic is drawn from")
	flags.IntVar(&opts.runs, "runs", defaultRuns, "how many `rollouts` to play in each line of a table: at least 1")
	flags.BoolVar(&quick, "quick", false, fmt.Sprintf("play %d rollouts in each line", quickRuns))
	flags.Usage = func() {
		fmt.Fprint(errOut, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if quick {
		opts.runs = quickRuns
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("there are no arguments: %q", flags.Args())
	case opts.runs < 1:
		err = fmt.Errorf("--runs is %d; at least 1 is needed", opts.runs)
	}
	if err != nil {
		fmt.Fprintf(errOut, "health: %v\n", err)
	}
	return opts, err
}

// promise is something that must hold.
type promise struct {
	what string
	held bool
}

// promises prints those that do not hold, and returns whether all do.
func promises(list []promise, out io.Writer) bool {
	broken := 0
	for _, p := range list {
		if !p.held {
			fmt.Fprintf(out, "BROKEN: %s\n", p.what)
			broken++
		}
	}
	if broken > 0 {
		fmt.Fprintf(out, "\n%d of %d promises are broken.\n", broken, len(list))
		return false
	}
	fmt.Fprintf(out, "All %d promises hold.\n", len(list))
	return true
}
