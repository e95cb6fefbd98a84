package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/diagnose"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

// Exit codes of diagnose.
const (
	exitProblem = 1
	exitError   = 2
)

// DiagnoseOptions are those of the command diagnose.
type DiagnoseOptions struct {
	genericiooptions.IOStreams
	cluster  clusterFlags
	evidence evidenceFlags
	output   output

	name string
	now  func() time.Time
}

func newDiagnoseCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &DiagnoseOptions{IOStreams: streams, now: time.Now}
	cmd := &cobra.Command{
		Use:   "diagnose NAME",
		Args:  cobra.ArbitraryArgs,
		Short: "Say what a running rollout waits for, and whether the traffic keeps to its weights",
		Long: `Say what a running rollout waits for, and whether the traffic keeps to its weights.

First comes what the rollout waits for now, and what to do about it. Then three
questions are asked: are the requests of each backend, divided by its weight, the same;
do they come in bursts, or with a period; does the weight go up and down. Each answer
comes with what was looked at, and where something is wrong, with causes and cures.

The numbers of requests are in the controller's live evidence, which it is asked for
through the API server (the Role weightedrollout-evidence-proxy), or with --evidence at
the address of its metrics. Otherwise the status has to do: it is as old as the last
change, and has no sequence of requests.

The exit code is 0 if nothing is wrong, 1 if something is, and 2 after an error.`,
		Example: `  # What does it wait for?
  kubectl weightedrollout diagnose checkout -n shop

  # With a token, where the API server does not let you ask. First, in another terminal:
  #   kubectl port-forward -n weightedrollout-system service/weightedrollout-metrics 8443
  #   kubectl create token evidence -n shop >token
  kubectl weightedrollout diagnose checkout -n shop --evidence https://localhost:8443 --token-file token --insecure-skip-tls-verify

  # As data
  kubectl weightedrollout diagnose checkout -n shop -o json`,
		ValidArgsFunction: o.cluster.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := oneName(cmd, args)
			if err != nil {
				return exitWith(exitError, err)
			}
			o.name = name
			found, err := o.Run(cmd.Context())
			switch {
			case err != nil:
				return exitWith(exitError, err)
			case found:
				return exitWith(exitProblem, nil)
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exitWith(exitError, fmt.Errorf("%w\nSee '%s --help' for usage", err, cmd.CommandPath()))
	})
	o.cluster.bind(cmd)
	o.evidence.bind(cmd)
	o.output.bind(cmd)
	return cmd
}

// Diagnosis is what diagnose has found out.
type Diagnosis struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Revision  string    `json:"revision,omitempty"`
	Attempt   int64     `json:"attempt,omitempty"`
	At        time.Time `json:"at"`
	// Source says where the numbers come from.
	Source Source `json:"source"`
	// Situation is what the rollout waits for, and Findings answer the questions.
	Situation diagnose.Situation `json:"situation"`
	Findings  []diagnose.Finding `json:"findings"`
	// Problems is how many of them are problems.
	Problems int `json:"problems"`
}

// Source is where numbers about a rollout come from.
type Source struct {
	// Live says that it is the controller's live evidence, and not the status.
	Live bool `json:"live"`
	// At is when they were written; absent if that is not known.
	At *time.Time `json:"at,omitempty"`
}

// statusSource is the status, and when it was written.
func statusSource(wr *v1alpha1.WeightedRollout) Source {
	var at time.Time
	for _, f := range wr.ManagedFields {
		if f.Subresource == "status" && f.Time != nil && f.Time.After(at) {
			at = f.Time.Time
		}
	}
	if at.IsZero() {
		return Source{}
	}
	return Source{At: &at}
}

// Run looks at the rollout and prints what it has found. It returns whether that is a
// problem.
func (o *DiagnoseOptions) Run(ctx context.Context) (problem bool, err error) {
	if err := o.output.validate(); err != nil {
		return false, err
	}
	cluster, err := o.cluster.connect()
	if err != nil {
		return false, err
	}
	controller, err := o.evidence.source(cluster)
	if err != nil {
		return false, err
	}
	seen, err := cluster.look(ctx, o.name)
	if err != nil {
		return false, err
	}
	now := o.now().UTC()
	d := Diagnosis{
		Namespace: cluster.namespace, Name: o.name, Revision: seen.rollout.Status.Revision, Attempt: seen.rollout.Status.Attempt,
		At: now, Situation: situate(seen.rollout, now),
	}
	if document, err := controller.ask(ctx, seen.rollout); err != nil {
		d.Source = statusSource(seen.rollout)
		seen.input.Traffic.Why = "the live evidence cannot be read"
		seen.warn("the live evidence cannot be used, so the status has to do: %v", err)
	} else {
		seen.take(document)
		d.Source = Source{Live: true, At: &document.At}
		d.Situation.Numbers = append(d.Situation.Numbers, gates(document)...)
	}
	d.Findings = []diagnose.Finding{diagnose.Requests(seen.input), diagnose.Sequence(seen.input), diagnose.Swings(seen.input)}
	d.count()
	for _, w := range seen.warnings {
		_, _ = fmt.Fprintf(o.ErrOut, "Warning: %s\n", clean(w))
	}
	return d.Problems > 0, o.output.write(o.Out, d, func(s *screen) { drawDiagnosis(s, &d) })
}

// gates says what the verdict is now, and what a raise still lacks.
func gates(d *live.Document) []diagnose.Number {
	numbers := []diagnose.Number{{What: "verdict now", Value: fmt.Sprintf("%s (%s): %s", d.Verdict.State, d.Verdict.Reason, d.Verdict.Message)}}
	for _, gate := range []struct {
		what  string
		waits live.Awaited
	}{{"a ramp step awaits", d.Ramp}, {"the stage awaits", d.Stage}} {
		if gate.waits.Open {
			continue
		}
		text := gate.waits.What
		if about := gate.waits.AboutSeconds; about > 0 {
			text += fmt.Sprintf(", about %s", time.Duration(about*float64(time.Second)).Round(time.Second))
		}
		numbers = append(numbers, diagnose.Number{What: gate.what, Value: text})
	}
	return numbers
}

func (d *Diagnosis) count() {
	if d.Situation.Verdict == diagnose.Problem {
		d.Problems++
	}
	for _, f := range d.Findings {
		if f.Verdict == diagnose.Problem {
			d.Problems++
		}
	}
}
