// Package cli is the kubectl plugin: its commands, and how they show what the other
// packages find out. Nothing here decides about a rollout.
package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// exit is the end of a command with an exit code of its own. Without an error there is
// nothing to print.
type exit struct {
	code int
	err  error
}

func exitWith(code int, err error) error { return &exit{code, err} }

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// Main runs the command that the arguments name and returns the exit code: 0, or 1
// after an error, which it has printed; diagnose has exit codes of its own.
func Main(args []string, version string, streams genericiooptions.IOStreams) int {
	cmd := NewCommand(version, streams)
	cmd.SetArgs(append([]string{}, args...)) // nil would stand for the program's own
	err := cmd.Execute()
	if err == nil {
		return 0
	}
	code := 1
	if e, own := errors.AsType[*exit](err); own {
		code = e.code
	}
	if text := strings.TrimSpace(err.Error()); text != "" {
		lines := strings.Split(text, "\n")
		for i := range lines {
			lines[i] = clean(lines[i])
		}
		_, _ = fmt.Fprintf(streams.ErrOut, "error: %s\n", strings.Join(lines, "\n"))
	}
	return code
}

// NewCommand returns the root command with all others below it.
func NewCommand(version string, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubectl-weightedrollout",
		Short: "Look at a WeightedRollout before it runs, and while it does",
		Long: `Look at a WeightedRollout before it runs, and while it does.

plan prints every step of a rollout and when it can happen at the earliest.
simulate runs the controller's own decisions against made-up traffic.
Both need a file only: no cluster and no kubeconfig.
diagnose says what a rollout in the cluster waits for, and whether the traffic keeps
to its weights.`,
		Example: `  # What would this rollout do, and how long would it take?
  kubectl weightedrollout plan -f config/samples/first.yaml

  # Is there enough traffic for it?
  kubectl weightedrollout plan -f config/samples/first.yaml --rps 20

  # How would it go?
  kubectl weightedrollout simulate -f config/samples/first.yaml --approve

  # How does it go?
  kubectl weightedrollout diagnose checkout -n shop`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl weightedrollout"},
		Args:          knownCommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.SetIn(streams.In)
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w\nSee '%s --help' for usage", err, cmd.CommandPath())
	})
	cmd.AddCommand(newPlanCommand(streams), newSimulateCommand(streams), newDiagnoseCommand(streams), newVersionCommand(version, streams))
	return cmd
}

// knownCommand refuses a command that there is none of, and names those that are
// spelt alike.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	if alike := cmd.SuggestionsFor(args[0]); len(alike) > 0 {
		text += ": did you mean " + strings.Join(alike, " or ") + "?"
	}
	return fmt.Errorf("%s\nSee '%s --help' for usage", text, cmd.CommandPath())
}
