package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// StatusOptions are those of the command status.
type StatusOptions struct {
	genericiooptions.IOStreams
	cluster  clusterFlags
	evidence evidenceFlags
	output   output

	name    string
	wait    bool
	timeout time.Duration
	goal    string
	now     func() time.Time
}

func newStatusCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &StatusOptions{IOStreams: streams, now: time.Now}
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Say on one screen how a rollout goes, what it waits for and what to do",
		Long: `Say on one screen how a rollout goes, what it waits for and what to do.

With --wait it first waits until the revision is promoted, or with --for completed
until stable runs it as well. Each change is told on standard error meanwhile.

The exit code is 0 once that is reached (without --wait: whenever the rollout could be
read), 1 after an error, 2 after --timeout, and 3 if the rollout was rolled back or is
stalled, so that a person has to do something. A status that is older than the last
change of the spec is not taken for an answer. An API server that cannot be reached is
asked again.`,
		Example: `  # How does it go?
  kubectl weightedrollout status checkout -n shop

  # In a pipeline: wait for the end, for four hours at most
  kubectl weightedrollout status checkout -n shop --wait --timeout 4h

  # The same until stable runs the revision
  kubectl weightedrollout status checkout -n shop --wait --for completed`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: o.cluster.completeNames,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.name, err = oneName(cmd, args); err != nil {
				return err
			}
			if !o.wait && (cmd.Flags().Changed("timeout") || cmd.Flags().Changed("for")) {
				return errors.New("--timeout and --for need --wait")
			}
			return o.Run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.wait, "wait", false, "Wait for the end of the rollout first.")
	fs.DurationVar(&o.timeout, "timeout", 0, "Longest wait, such as 4h. Needs --wait. Default: no limit.")
	fs.StringVar(&o.goal, "for", goalPromoted, "What to wait for: "+strings.Join(goals, " or ")+". Needs --wait.")
	complete(cmd, "for", goals)
	complete(cmd, "timeout", nil)
	o.cluster.bind(cmd)
	o.evidence.bind(cmd)
	o.output.bind(cmd)
	return cmd
}

// Run waits, if it is to, and prints the status.
func (o *StatusOptions) Run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	cluster, err := o.cluster.connect()
	if err != nil {
		return err
	}
	controller, err := o.evidence.source(cluster)
	if err != nil {
		return err
	}
	var outcome error
	if o.wait {
		outcome = o.await(ctx, cluster)
		if own, ok := errors.AsType[*exit](outcome); outcome != nil && (!ok || own.code == exitFailed) {
			return outcome
		}
	}
	v, err := lookAt(ctx, cluster, controller, o.name)
	if err != nil {
		return cmp.Or(outcome, err) // what the wait came to says more
	}
	now := o.now()
	report := reportOn(v, now)
	if err := o.output.write(o.Out, report, func(s *screen) { drawStatus(s, v, report, now) }); err != nil {
		return err
	}
	return outcome
}

func (o *StatusOptions) validate() error {
	switch {
	case !slices.Contains(goals, o.goal):
		return fmt.Errorf("--for %q is not known: use one of %s", o.goal, strings.Join(goals, ", "))
	case o.timeout < 0:
		return fmt.Errorf("--timeout %s is negative: give a length of time such as 4h", o.timeout)
	}
	return o.output.validate()
}

// lookAt reads a rollout, its events, and its live evidence.
func lookAt(ctx context.Context, c *cluster, controller evidenceSource, name string) (*view, error) {
	wr, err := c.rollout(ctx, name)
	if err != nil {
		return nil, err
	}
	v := &view{rollout: wr}
	v.events, v.eventsErr = c.events(ctx, wr)
	v.document, v.documentErr = controller.ask(ctx, wr)
	return v, nil
}

// await waits for the goal, and tells of every change.
func (o *StatusOptions) await(ctx context.Context, c *cluster) error {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, errTimeout)
		defer cancel()
	}
	var end *ending
	var trouble error
	said, change := "", ""
	tell := func(text string) {
		if text != said {
			said = text
			_, _ = fmt.Fprintf(o.ErrOut, "%s  %s\n", o.now().Format(time.TimeOnly), clean(text))
		}
	}
	err := c.follow(ctx, o.name, func(wr *v1alpha1.WeightedRollout) bool {
		change = changeLine(wr, statusVerdict(wr))
		tell(change)
		if end = ended(wr, o.goal, true); end == nil || end.stalled {
			return end != nil
		}
		why, doubt := c.overtaken(ctx, wr)
		switch {
		case why != "":
			change, end = why, nil
			tell(why)
		case doubt != nil:
			tell(doubt.Error())
		}
		return end != nil
	}, func(err error) {
		if err != nil && trouble == nil { // once, whatever the next ones say
			tell("it is tried again: " + err.Error())
		}
		trouble = err
	})
	switch {
	case errors.Is(err, errTimeout) && change == "":
		return exitWith(exitTimeout, fmt.Errorf("not %s within %s, and nothing was heard of the rollout: %w", o.goal, o.timeout, cmp.Or(trouble, errSilent)))
	case errors.Is(err, errTimeout):
		return exitWith(exitTimeout, fmt.Errorf("not %s within %s; the last change was: %s", o.goal, o.timeout, change))
	case err != nil:
		return err
	case end.code != 0:
		return exitWith(end.code, errors.New(end.says))
	}
	tell(end.says)
	return nil
}

// errSilent says that a request was still waiting.
var errSilent = errors.New("the API server has not answered")

// errTimeout says that a wait was as long as it may be.
var errTimeout = errors.New("the time is up")
