package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
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
	fs.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait for the controller.")
	config.RegisterFlags(fs)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return usageExitCode
	}
	if fs.NArg() > 0 || o.delete && o.finalizers || o.timeout <= 0 {
		_, _ = fmt.Fprintln(errOut, "error: stand-down takes flags only, either --delete or --finalizers, and a --timeout above 0")
		return usageExitCode
	}
	for _, name := range splitNames(o.namespaces) {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			_, _ = fmt.Fprintf(errOut, "error: --namespaces: %q is no namespace: %s\n", name, problems[0])
			return usageExitCode
		}
	}
	if err := o.run(ctrl.SetupSignalHandler(), out); err != nil {
		_, _ = fmt.Fprintln(errOut, "error:", err)
		return 1
	}
	return 0
}

func (o standDownOptions) run(ctx context.Context, out io.Writer) error {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster (set --kubeconfig or KUBECONFIG): %w", err)
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	what := standdown.Options{Namespaces: splitNames(o.namespaces), Delete: o.delete, Timeout: o.timeout, Out: out}
	if o.finalizers {
		return standdown.Finalizers(ctx, c, what)
	}
	return standdown.Run(ctx, c, what)
}
