package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// EventsOptions are those of the command events.
type EventsOptions struct {
	genericiooptions.IOStreams
	cluster clusterFlags
	output  output

	name  string
	watch bool
	now   func() time.Time
}

func newEventsCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &EventsOptions{IOStreams: streams, now: time.Now}
	cmd := &cobra.Command{
		Use:   "events NAME",
		Short: "List what the controller has told of a rollout",
		Long: `List what the controller has told of a rollout.

The oldest event comes first. Those about an earlier rollout of the same name are left
out. The API server keeps events for an hour, as a rule; what happened earlier is in the
history. With --watch, new events are told as they come, one line each.`,
		Example: `  # What has happened?
  kubectl weightedrollout events checkout -n shop`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: o.cluster.completeNames,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.name, err = oneName(cmd, args); err != nil {
				return err
			}
			if o.watch && o.output.format != formatTable {
				return errors.New("--watch writes lines: leave out --output")
			}
			return o.Run(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Go on with new events as they come.")
	o.cluster.bind(cmd)
	o.output.bind(cmd)
	return cmd
}

// Run lists the events, and follows them.
func (o *EventsOptions) Run(ctx context.Context) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	c, err := o.cluster.connect()
	if err != nil {
		return err
	}
	wr, err := c.rollout(ctx, o.name)
	if err != nil {
		return err
	}
	list, err := c.eventList(ctx, o.name)
	if err != nil {
		return fmt.Errorf("read the events of the namespace %q: %w", c.namespace, err)
	}
	found := newest(about(wr, list.Items), len(list.Items))
	if o.watch {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go o.untilGone(ctx, c, wr, cancel)
		err := o.follow(ctx, c, wr, list.ResourceVersion, found)
		if errors.Is(err, errGone) {
			_, _ = fmt.Fprintln(o.ErrOut, "The rollout is gone.")
			return nil
		}
		return err
	}
	return o.output.write(o.Out, struct {
		Events []Event `json:"events"`
	}{found}, func(s *screen) { drawEventLog(s, found, o.now()) })
}

// errGone says that a rollout was deleted, or that another one has its name.
var errGone = errors.New("the rollout is gone")

// untilGone ends the context once the rollout is gone, and says when the API server does
// not answer.
func (o *EventsOptions) untilGone(ctx context.Context, c *cluster, wr *v1alpha1.WeightedRollout, end context.CancelCauseFunc) {
	told := false
	err := c.follow(ctx, wr.Name, func(next *v1alpha1.WeightedRollout) bool { return next.UID != wr.UID }, func(err error) {
		if err != nil && !told {
			_, _ = fmt.Fprintln(o.ErrOut, "it is tried again:", clean(err.Error()))
		}
		told = err != nil
	})
	if _, missing := errors.AsType[*missingError](err); missing || err == nil {
		end(errGone)
	}
}

func drawEventLog(s *screen, found []Event, now time.Time) {
	if len(found) == 0 {
		s.prose(0, "There is no event: the API server keeps them for an hour, as a rule.")
		return
	}
	for _, e := range found {
		s.event(e, human(now.Sub(e.At))+" ago")
	}
}

// event writes an event after its time, a warning in colour.
func (s *screen) event(e Event, when string) {
	const indent = 12
	left := pad(when, indent-2, true) + "  "
	for _, l := range wrap(clean(e.words()), s.width-indent, 0) {
		color := plain
		if e.warning() {
			color = yellow
		}
		s.raw(left + s.paint(color, l))
		left = pad("", indent, false)
	}
}

// follow writes the events there are, and then each new one, until the rollout is gone
// or the context ends.
func (o *EventsOptions) follow(ctx context.Context, c *cluster, wr *v1alpha1.WeightedRollout, version string, found []Event) error {
	told := map[string]bool{}
	var failed error
	tell := func(e Event) {
		key := e.At.String() + e.words()
		if failed != nil || told[key] {
			return
		}
		told[key] = true
		s := o.output.screen(o.Out)
		s.event(e, e.At.Local().Format(time.TimeOnly))
		_, failed = o.Out.Write([]byte(s.text.String()))
	}
	for {
		for _, e := range found {
			tell(e)
		}
		err := c.watch(ctx, eventsv1.SchemeGroupVersion.String(), "events", "regarding.name="+wr.Name, version, func(next change) bool {
			var e eventsv1.Event
			if err := json.Unmarshal(next.Object, &e); err == nil && next.Type != "DELETED" && isAbout(wr, e) {
				tell(eventOf(e))
			}
			return failed != nil
		})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case failed != nil:
			return fmt.Errorf("write the output: %w", failed)
		case err != nil && apierrors.IsForbidden(err):
			return fmt.Errorf("watch the events of the namespace %q: %w", c.namespace, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(rereadEvery):
		}
		list, err := c.eventList(ctx, o.name)
		if err != nil {
			continue // the API server is asked again
		}
		version, found = list.ResourceVersion, newest(about(wr, list.Items), len(list.Items))
	}
}
