package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/dashboard"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

// DashboardOptions are those of the command dashboard.
type DashboardOptions struct {
	genericiooptions.IOStreams
	cluster  clusterFlags
	evidence evidenceFlags

	port   int
	open   bool
	orders bool
}

func newDashboardCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &DashboardOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Show rollouts on a page in your browser, live",
		Long: `Show rollouts on a page in your browser, live.

It serves the page on 127.0.0.1 until it is interrupted, and reads with your own rights in
the cluster. The address that it prints has a secret in it: whoever has it sees what you
see. The page only shows, unless --allow-actions is given: then it can give the same
orders as pause, approve, abort and the others, each of which is asked back.`,
		// As remarks, since none of them ends by itself.
		Example: `  # All rollouts; then open the address that it prints:
  #   kubectl weightedrollout dashboard -A
  # One namespace, with orders, in the browser at once:
  #   kubectl weightedrollout dashboard -n shop --allow-actions --open`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context()) },
	}
	fs := cmd.Flags()
	fs.IntVar(&o.port, "port", 0, "Port on 127.0.0.1, from 1 to 65535. Default: any that is free.")
	fs.BoolVar(&o.open, "open", false, "Open the page in the browser.")
	fs.BoolVar(&o.orders, "allow-actions", false, "Let the page give orders, too.")
	complete(cmd, "port", nil)
	o.cluster.bind(cmd)
	o.cluster.bindEverywhere(cmd)
	o.evidence.bind(cmd)
	return cmd
}

// Run serves the page until it is interrupted.
func (o *DashboardOptions) Run(ctx context.Context) error {
	c, err := o.cluster.connect()
	if err != nil {
		return err
	}
	controller, err := o.evidence.source(c)
	if err != nil {
		return err
	}
	source := &dashboardSource{cluster: c, controller: controller}
	if err := source.try(ctx); err != nil { // an error is better told here than on the page
		return err
	}
	options := dashboard.Options{Source: source, Scope: "all namespaces", Port: o.port}
	if c.namespace != "" {
		options.Scope = "namespace " + c.namespace
	}
	says := "The page only shows: --allow-actions lets it give orders."
	if o.orders {
		options.Orders = &dashboardOrders{cluster: c}
		says = "The page can give orders, with your rights."
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	server, err := dashboard.Listen(ctx, options)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(o.ErrOut, "The dashboard of %s. %s\nOpen this address, and keep it to yourself. Ctrl-C ends it.\n", clean(options.Scope), says)
	_, _ = fmt.Fprintln(o.Out, server.Address())
	if o.open {
		// The program that opens it shows the address to everybody on this machine, so it
		// is good for one time.
		if err := startBrowser(ctx, server.OneTimeAddress()); err != nil {
			_, _ = fmt.Fprintf(o.ErrOut, "No browser can be started: %s. Open the address yourself.\n", clean(err.Error()))
		}
	}
	return server.Serve(ctx)
}

// startBrowser opens an address as the desktop does.
func startBrowser(ctx context.Context, address string) error {
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), name, args...) //nolint:gosec // one of three names, and an address that this program has made
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // how the browser ends is its own affair
	return nil
}

// dashboardSource reads for the page what the other commands read.
type dashboardSource struct {
	cluster    *cluster
	controller evidenceSource
}

// List reads all rollouts.
func (s *dashboardSource) List(ctx context.Context) (*v1alpha1.WeightedRolloutList, error) {
	list := &v1alpha1.WeightedRolloutList{}
	return list, s.explain(s.cluster.read(ctx, v1alpha1.GroupVersion.String(), "weightedrollouts", "", "", list))
}

// try asks for one rollout, to see whether the cluster answers.
func (s *dashboardSource) try(ctx context.Context) error {
	request := s.cluster.aim(s.cluster.client.Get(), v1alpha1.GroupVersion.String(), "weightedrollouts").Param("limit", "1")
	return s.explain(answer(ctx, request, &v1alpha1.WeightedRolloutList{}))
}

func (s *dashboardSource) explain(err error) error {
	switch {
	case errors.Is(err, errNoSuchKind):
		return s.cluster.explain("", err)
	case err != nil:
		return fmt.Errorf("list the WeightedRollouts: %w", err)
	}
	return nil
}

// Watch tells of every change.
func (s *dashboardSource) Watch(ctx context.Context, version string, each func(dashboard.Change)) error {
	return s.cluster.watch(ctx, v1alpha1.GroupVersion.String(), "weightedrollouts", "", version, func(next change) (stop bool) {
		wr := &v1alpha1.WeightedRollout{}
		if err := json.Unmarshal(next.Object, wr); err != nil {
			return true // all are read again
		}
		each(dashboard.Change{Rollout: wr, Gone: next.Type == "DELETED"})
		return false
	})
}

// Events reads the events about a rollout.
func (s *dashboardSource) Events(ctx context.Context, wr *v1alpha1.WeightedRollout) ([]eventsv1.Event, error) {
	return s.cluster.within(wr.Namespace).events(ctx, wr)
}

// Evidence asks the controller.
func (s *dashboardSource) Evidence(ctx context.Context, wr *v1alpha1.WeightedRollout) (*live.Document, error) {
	document, err := s.controller.ask(ctx, wr)
	if errors.Is(err, errNoRight) {
		return nil, fmt.Errorf("%w: %w", dashboard.ErrNoRight, err)
	}
	return document, err
}

// within is the cluster as seen from a namespace.
func (c *cluster) within(namespace string) *cluster {
	return &cluster{namespace: namespace, client: c.client}
}

// dashboardOrders gives the orders of the commands.
type dashboardOrders struct{ cluster *cluster }

// For says of each order whether it makes sense.
func (d *dashboardOrders) For(wr *v1alpha1.WeightedRollout) []dashboard.Order {
	var all []dashboard.Order
	for _, o := range orders() {
		is := dashboard.Order{Verb: o.verb, Short: o.short, Refusal: o.refusal(wr)}
		if is.Refusal == "" {
			is.Effect = o.effect(wr)
			if o.asksBack != nil && o.asksBack(wr) != "" {
				is.Effect += "; " + o.asksBack(wr)
			}
		}
		all = append(all, is)
	}
	return all
}

// Give writes an order as its command does, but asks nobody and waits for nothing.
func (d *dashboardOrders) Give(ctx context.Context, verb string, seen *v1alpha1.WeightedRollout) error {
	all := orders()
	i := slices.IndexFunc(all, func(o order) bool { return o.verb == verb })
	if i < 0 {
		return fmt.Errorf("there is no order %q", verb)
	}
	o := &OrderOptions{order: all[i], name: seen.Name}
	if err := o.check(seen); err != nil {
		return err
	}
	_, err := o.give(ctx, d.cluster.within(seen.Namespace), seen, "dashboard-"+rand.Text())
	return err
}
