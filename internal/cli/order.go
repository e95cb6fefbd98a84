package cli

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// OrderOptions are those of the commands that tell the controller what to do.
type OrderOptions struct {
	genericiooptions.IOStreams
	cluster clusterFlags
	order   order

	name    string
	bound   bound
	yes     bool
	wait    bool
	timeout time.Duration
	// terminal tells whether somebody sits before it who can be asked.
	terminal func() bool
}

func newOrderCommands(streams genericiooptions.IOStreams) []*cobra.Command {
	var all []*cobra.Command
	for _, o := range orders() {
		all = append(all, newOrderCommand(o, streams))
	}
	return all
}

func newOrderCommand(order order, streams genericiooptions.IOStreams) *cobra.Command {
	o := &OrderOptions{IOStreams: streams, order: order, terminal: func() bool { return isInput(streams.In) && isTerminal(streams.ErrOut) }}
	example := fmt.Sprintf("  kubectl weightedrollout %s checkout -n shop", order.verb)
	if order.grave {
		example += " --yes"
	}
	switch order.binds {
	case toStage:
		example += fmt.Sprintf("\n\n  # In a pipeline: for the stage that was looked at, and no other\n  kubectl weightedrollout %s checkout -n shop --attempt 2 --stage 1/2", order.verb)
	case toAttempt, toNothing:
	}
	cmd := &cobra.Command{
		Use:   order.verb + " NAME",
		Short: order.short,
		Long: order.long + `

The order is for the attempt and the stage that are there when you give it, and is written
onto nothing else. It says what will happen, and waits until the controller has taken it.

The exit code is 0 once it has, 1 if it was refused or ignored, and 2 if it has not within
--timeout.`,
		Example:           example,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: o.cluster.completeNames,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.name, err = oneName(cmd, args); err != nil {
				return err
			}
			if err := o.bound.validate(cmd); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	if order.grave || order.asksBack != nil {
		fs.BoolVarP(&o.yes, "yes", "y", false, "Do not ask back.")
	}
	o.bound.bind(cmd, order.binds)
	fs.BoolVar(&o.wait, "wait", true, "Wait until the controller has taken it.")
	fs.DurationVar(&o.timeout, "timeout", orderPatience, "Longest wait for the controller, above 0.")
	complete(cmd, "timeout", nil)
	o.cluster.bind(cmd)
	return cmd
}

// isInput tells whether what is read comes from a terminal.
func isInput(r io.Reader) bool {
	file, ok := r.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Run gives the order, and says what came of it.
func (o *OrderOptions) Run(ctx context.Context) error {
	if o.timeout <= 0 {
		return fmt.Errorf("--timeout %s is not above 0: give a length of time such as 30s", o.timeout)
	}
	c, err := o.cluster.connect()
	if err != nil {
		return err
	}
	seen, err := c.rollout(ctx, o.name)
	if err != nil {
		return err
	}
	if err := o.check(seen); err != nil {
		return err
	}
	o.say("WeightedRollout %s/%s: %s.", seen.Namespace, seen.Name, o.order.effect(seen))
	if err := o.confirm(seen); err != nil {
		return err
	}
	id := "kubectl-" + rand.Text()
	given, err := o.give(ctx, c, seen, id)
	if err != nil {
		return err
	}
	if !o.wait {
		_, err := fmt.Fprintf(o.Out, "%s is written; nothing was waited for.\n", capital(o.order.verb))
		return err
	}
	return o.await(ctx, c, given, id)
}

func (o *OrderOptions) say(format string, args ...any) {
	_, _ = fmt.Fprintln(o.ErrOut, clean(fmt.Sprintf(format, args...)))
}

// check refuses an order that makes no sense now.
func (o *OrderOptions) check(wr *v1alpha1.WeightedRollout) error {
	if err := o.bound.refusal(wr); err != nil {
		return err
	}
	if why := o.order.refusal(wr); why != "" {
		return fmt.Errorf("%s makes no sense for WeightedRollout %s/%s now: %s", o.order.verb, wr.Namespace, wr.Name, why)
	}
	if waiting := untaken(wr); waiting != "" && o.order.write(wr, "").annotation == v1alpha1.CommandAnnotation {
		return fmt.Errorf("the controller has not taken the command %q before it, which this one would overwrite: wait a moment; if it stays so, look whether the controller runs, or remove the annotation %s", waiting, v1alpha1.CommandAnnotation)
	}
	return nil
}

// untaken is the verb of a command that the controller has not read yet, or empty.
func untaken(wr *v1alpha1.WeightedRollout) string {
	text := wr.Annotations[v1alpha1.CommandAnnotation]
	var c v1alpha1.Command
	if text == "" || json.Unmarshal([]byte(text), &c) != nil || c.ID == "" {
		return ""
	}
	if done := wr.Status.Command; done != nil && done.ID == c.ID {
		return ""
	}
	return string(c.Verb)
}

// confirm asks back before a grave order, and before one that comes too early and does
// not say which stage it means.
func (o *OrderOptions) confirm(wr *v1alpha1.WeightedRollout) error {
	why, cure := "it is a grave order", "--yes"
	if !o.order.grave {
		why = ""
		if o.order.asksBack != nil && o.bound.stage == "" {
			why, cure = o.order.asksBack(wr), "--yes, or --stage "+positionOf(wr)
		}
	}
	switch {
	case why == "" || o.yes:
		return nil
	case !o.terminal():
		return fmt.Errorf("%s is asked back, since %s, and there is no terminal to ask at: say %s", o.order.verb, why, cure)
	case !o.order.grave:
		o.say("%s.", capital(why))
	}
	_, _ = fmt.Fprint(o.ErrOut, "Go on? [y/N] ")
	answer, err := bufio.NewReader(o.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("nothing was done")
}

// await waits until the controller has taken the order.
func (o *OrderOptions) await(ctx context.Context, c *cluster, given *v1alpha1.WeightedRollout, id string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, errTimeout)
	defer cancel()
	var came result
	var trouble error
	err := c.follow(ctx, given.Name, func(wr *v1alpha1.WeightedRollout) bool {
		r, ok := o.order.taken(wr, given, id)
		came = r
		return ok
	}, func(err error) { trouble = err })
	switch {
	case errors.Is(err, errTimeout) && trouble != nil:
		return exitWith(exitTimeout, fmt.Errorf("%s is written, and what came of it cannot be told after %s: %w", o.order.verb, o.timeout, trouble))
	case errors.Is(err, errTimeout):
		return exitWith(exitTimeout, fmt.Errorf("%s is written, and the controller has not taken it within %s: does it run, and look after the namespace %q? It will take it once it does", o.order.verb, o.timeout, given.Namespace))
	case err != nil:
		return err
	case !came.accepted:
		return fmt.Errorf("%s had no effect: %s", o.order.verb, came.says)
	}
	_, err = fmt.Fprintf(o.Out, "%s: %s\n", o.order.verb, clean(came.says))
	return err
}
