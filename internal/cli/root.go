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

// The groups of commands in the help.
const (
	groupLook  = "look"
	groupOrder = "order"
	groupFile  = "file"
)

// Main runs the command that the arguments name and returns the exit code: 0, or 1
// after an error, which it has printed; some commands have exit codes of their own.
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
		Short: "Look at WeightedRollouts, before they run and while they do, and steer them",
		Long: `Look at WeightedRollouts, before they run and while they do, and steer them.

lint, plan and simulate read a file only: no cluster and no kubeconfig. All others take a
cluster as kubectl does, and no more rights than to read, or for an order to patch, the
WeightedRollouts of a namespace. A NAME may be written wr/NAME.`,
		Example: `  # How does it go, and what is it waiting for?
  kubectl weightedrollout status checkout -n shop

  # Is the file right, and is there enough traffic for it?
  kubectl weightedrollout lint -f config/samples/first.yaml
  kubectl weightedrollout plan -f config/samples/first.yaml --rps 20

  # How would it go?
  kubectl weightedrollout simulate -f config/samples/first.yaml --approve`,
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
	cmd.AddGroup(&cobra.Group{ID: groupLook, Title: "Look at rollouts in a cluster:"}, &cobra.Group{ID: groupOrder, Title: "Tell the controller what to do:"}, &cobra.Group{ID: groupFile, Title: "Look at a file, without a cluster:"})
	for id, commands := range map[string][]*cobra.Command{
		groupLook:  {newGetCommand(streams), newStatusCommand(streams), newWatchCommand(streams), newHistoryCommand(streams), newEventsCommand(streams), newDiagnoseCommand(streams), newDashboardCommand(streams)},
		groupOrder: newOrderCommands(streams),
		groupFile:  {newLintCommand(streams), newPlanCommand(streams), newSimulateCommand(streams)},
	} {
		for _, c := range commands {
			c.GroupID = id
			cmd.AddCommand(c)
		}
	}
	cmd.AddCommand(newVersionCommand(version, streams))
	refuseOtherShells(cmd)
	return cmd
}

// refuseOtherShells makes the command completion fail on a shell that it has no script
// for.
func refuseOtherShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, completion := range root.Commands() {
		if completion.Name() != "completion" {
			continue
		}
		var shells []string
		for _, c := range completion.Commands() {
			shells = append(shells, c.Name())
		}
		completion.Use = "completion SHELL"
		completion.Example = "  kubectl weightedrollout completion bash"
		completion.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return fmt.Errorf("there is no completion for %q: use one of %s", args[0], strings.Join(shells, ", "))
		}
		completion.Args = cobra.ArbitraryArgs
	}
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
