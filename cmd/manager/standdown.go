package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/standdown"
)

const (
	// standDownName is the command that runs before the controller is uninstalled.
	standDownName = "stand-down"
	usageExitCode = 2
	// answerTimeout is how long an answer of the API server is waited for before it is asked
	// again.
	answerTimeout = 30 * time.Second
)

// standDownOptions are the flags of the command.
type standDownOptions struct {
	namespaces         string
	delete, finalizers bool
	timeout            time.Duration
}

// standDown runs the command and returns the exit code.
func standDown(args []string, out, errOut io.Writer) int {
	var o standDownOptions
	fs := flag.NewFlagSet("manager "+standDownName, flag.ContinueOnError)
	fs.SetOutput(errOut)
	fs.Usage = func() {
		_, _ = fmt.Fprintln(errOut, "Leaves the traffic safe before the controller is uninstalled: aborts every rollout that is\nunder way, and waits until the controller has given stable all traffic.")
		fs.PrintDefaults()
	}
	fs.StringVar(&o.namespaces, "namespaces", "", "Comma-separated namespaces to look after. Default: all.")
	fs.BoolVar(&o.delete, "delete", false, "Delete every rollout, by what its onDelete says, and wait until it is gone.")
	fs.BoolVar(&o.finalizers, "finalizers", false, "Take the controller's finalizer from every rollout, and do nothing else: for when the controller is gone and the rollouts stay.")
	fs.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long all of it may take.")
	config.RegisterFlags(fs)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return usageExitCode
	}
	if err := o.check(fs.Args()); err != nil {
		_, _ = fmt.Fprintln(errOut, "error:", err)
		return usageExitCode
	}
	if err := o.run(ctrl.SetupSignalHandler(), out); err != nil {
		_, _ = fmt.Fprintln(errOut, "error:", err)
		return 1
	}
	return 0
}

// check looks at the flags, and at what is left of the command line after them. The error
// names what is wrong, and the cure.
func (o standDownOptions) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%s takes flags only, not %q", standDownName, rest[0])
	case o.delete && o.finalizers:
		return errors.New("stand-down takes either --delete or --finalizers")
	}
	if err := checkWait("timeout", o.timeout, "5m"); err != nil {
		return err
	}
	return checkNamespaces(o.namespaces)
}

func (o standDownOptions) run(ctx context.Context, out io.Writer) error {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster (set --kubeconfig or KUBECONFIG): %w", err)
	}
	// What is asked for is one request after another, about every rollout once.
	cfg.QPS, cfg.Timeout = -1, answerTimeout
	scheme := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	// The API server is not asked which kinds it has: nothing could end that in time.
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	mapper.Add(v1alpha1.GroupVersion.WithKind("WeightedRollout"), meta.RESTScopeNamespace)
	c, err := client.New(cfg, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	what := standdown.Options{Namespaces: splitNames(o.namespaces), Delete: o.delete, Timeout: o.timeout, Out: out}
	if o.finalizers {
		return standdown.Finalizers(ctx, c, what)
	}
	return standdown.Run(ctx, c, what)
}
