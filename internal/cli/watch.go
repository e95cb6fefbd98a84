package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const (
	// evidenceEvery is how often the live evidence is asked for, and eventsEvery how often
	// events are read where the rollout itself does not change.
	evidenceEvery = 3 * time.Second
	eventsEvery   = 20 * time.Second
	// redrawEvery lets ages and countdowns go on.
	redrawEvery = time.Second
)

// WatchOptions are those of the command watch.
type WatchOptions struct {
	genericiooptions.IOStreams
	cluster  clusterFlags
	evidence evidenceFlags

	name    string
	plain   bool
	exit    bool
	noColor bool
	now     func() time.Time
}

func newWatchCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &WatchOptions{IOStreams: streams, now: time.Now}
	cmd := &cobra.Command{
		Use:   "watch NAME",
		Short: "Follow a rollout live: stages, traffic, errors, response times, verdict",
		Long: `Follow a rollout live: stages, traffic, errors, response times, verdict.

At a terminal the screen is drawn anew with each change: the stages, the canary's weight
and what it really gets, both versions' error rate and response time over the last
evaluations, the verdict, what is awaited and for how long, and the last events. The key q
ends it. Elsewhere, and with --plain, each change is one line.

With --exit it ends when the rollout does, with the exit code 0 if the revision is
promoted or completed, and 3 if it was rolled back. 1 stands for an error, and for a watch
that was ended before.`,
		Example: `  # Look on
  kubectl weightedrollout watch checkout -n shop --exit

  # In a log
  kubectl weightedrollout watch checkout -n shop --plain --exit`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: o.cluster.completeNames,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.name, err = oneName(cmd, args); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.plain, "plain", false, "Write a line for each change, and do not draw.")
	fs.BoolVar(&o.exit, "exit", false, "End when the rollout does.")
	fs.BoolVar(&o.noColor, "no-color", false, "Write no colours. They are left out as well with the environment variable NO_COLOR.")
	o.cluster.bind(cmd)
	o.evidence.bind(cmd)
	return cmd
}

// display shows a view each time that it has changed.
type display interface {
	show(v *view, now time.Time) error
	// keys tells of a person who wants to end it; nil: nobody can.
	keys() <-chan struct{}
	close()
}

// Run follows the rollout until somebody ends it, or it ends.
func (o *WatchOptions) Run(ctx context.Context) error {
	c, err := o.cluster.connect()
	if err != nil {
		return err
	}
	controller, err := o.evidence.source(c)
	if err != nil {
		return err
	}
	wr, err := c.rollout(ctx, o.name) // an error is better told before the screen is drawn
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d, err := o.display()
	if err != nil {
		return err
	}
	end, err := o.loop(ctx, d, gather(ctx, c, controller, wr), &view{rollout: wr})
	d.close()
	switch {
	case err != nil:
		return err
	case end == nil:
		return nil
	case end.code != 0:
		return exitWith(end.code, errors.New(end.says))
	}
	_, err = fmt.Fprintln(o.Out, clean(capital(end.says))+".")
	return err
}

// display is a screen at a terminal, and lines elsewhere.
func (o *WatchOptions) display() (display, error) {
	if o.plain || !isTerminal(o.Out) {
		return &lines{out: o.Out}, nil
	}
	out, _ := o.Out.(*os.File)
	in, _ := o.In.(*os.File)
	return openTerminal(in, out, !o.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

// loop shows each change until the end. It returns how the rollout ended, if that is why.
func (o *WatchOptions) loop(ctx context.Context, d display, changes <-chan update, v *view) (*ending, error) {
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	for {
		if err := d.show(v, o.now()); err != nil {
			return nil, err
		}
		if end := ended(v.rollout, goalPromoted, false); o.exit && end != nil {
			return end, nil
		}
		select {
		case <-ctx.Done():
			return nil, o.interrupted()
		case <-d.keys():
			return nil, o.interrupted()
		case <-tick.C:
		case next := <-changes:
			if err := next(v); err != nil {
				return nil, err
			}
		}
	}
}

// interrupted is an error where the exit code was to tell how the rollout ended.
func (o *WatchOptions) interrupted() error {
	if !o.exit {
		return nil
	}
	return errors.New("the watch was ended before the rollout")
}
