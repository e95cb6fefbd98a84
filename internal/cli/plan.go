package cli

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/weightedrollout/weightedrollout/internal/cli/schedule"
)

// PlanOptions are those of the command plan.
type PlanOptions struct {
	genericiooptions.IOStreams
	input  input
	output output

	rps          float64
	errorPercent float64
	strict       bool

	knowsTraffic bool
}

const defaultErrorPercent = 0.1

func newPlanCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &PlanOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Print every step of a rollout and when it can happen at the earliest",
		Long: `Print every step of a rollout and when it can happen at the earliest.

The file is checked as the API server would check it, and by the same rules. Then
every change of the canary's share is listed: when it can happen, the weights that
the routes then carry, what bounds it (the stage's weight, ramp.minIncrease,
ramp.maxIncrease, ramp.maxChangePercent or ramp.warmup), and what it waits for
before (the soak, ramp.interval, evidence, the warm-up, an approval). Gateways are
taken to confirm at once, checks to pass, and people to approve at once.

With --rps the traffic is known, and the plan says what each stage can prove: the
requests it gets, how long health.minRequests takes, and the smallest difference
between the error rates of canary and stable that it can tell from noise. That is
the difference that a one-sided test of two proportions with 95 % confidence finds
in 80 % of all cases, where stable fails for --error-percent of its requests. The
controller remembers requests for an hour, so a longer stage proves no more.

Warnings about a plan that cannot work as written go to standard error. If the file
holds the routes as well, their rules are looked at too: what keeps the rollout
from starting is said first.`,
		Example: `  # Every step, and the earliest end
  kubectl weightedrollout plan -f config/samples/first.yaml

  # Are 20 requests per second enough?
  kubectl weightedrollout plan -f config/samples/first.yaml --rps 20

  # In CI: fail if anything about the plan is doubtful
  kubectl weightedrollout plan -f config/samples/first.yaml --rps 200 --strict

  # The rollout that is in the cluster
  kubectl get wr checkout -n shop -o yaml | kubectl weightedrollout plan -f -

  # As data
  kubectl weightedrollout plan -f config/samples/first.yaml -o json`,
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Complete(cmd); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run()
		},
	}
	fs := cmd.Flags()
	o.input.bind(cmd)
	fs.Float64Var(&o.rps, "rps", 0, "Requests per second of stable and canary together. Default: not known.")
	fs.Float64Var(&o.errorPercent, "error-percent", defaultErrorPercent, "Error rate of stable in percent, above 0 and below 100, that differences are measured against. Needs --rps.")
	bindStrict(fs, &o.strict)
	o.output.bind(cmd)
	return cmd
}

// Complete notes which flags were given.
func (o *PlanOptions) Complete(cmd *cobra.Command) error {
	o.knowsTraffic = cmd.Flags().Changed("rps")
	if cmd.Flags().Changed("error-percent") && !o.knowsTraffic {
		return fmt.Errorf("--error-percent needs --rps: without the traffic no difference can be told")
	}
	return nil
}

// Validate checks the flags.
func (o *PlanOptions) Validate() error {
	if err := o.input.validate(); err != nil {
		return err
	}
	if err := validRPS(o.rps, o.knowsTraffic); err != nil {
		return err
	}
	if !(o.errorPercent > 0 && o.errorPercent < 100) {
		return fmt.Errorf("--error-percent %g is out of range: give a number above 0 and below 100", o.errorPercent)
	}
	return o.output.validate()
}

// maxRPS is the highest traffic, as the simulation has it.
const maxRPS = 1_000_000

func validRPS(rps float64, given bool) error {
	if given && !(rps > 0 && rps <= maxRPS) || math.IsNaN(rps) {
		return fmt.Errorf("--rps %g is out of range: give the number of requests per second, above 0 and up to %d", rps, maxRPS)
	}
	return nil
}

// Run prints the plan.
func (o *PlanOptions) Run() error {
	if err := o.input.read(o.IOStreams); err != nil {
		return err
	}
	s, err := o.input.plan(o.rps, o.errorPercent)
	if err != nil {
		return o.input.about(err)
	}
	if err := o.output.write(o.Out, s, func(out *screen) { drawPlan(out, s) }); err != nil {
		return err
	}
	return warn(o.ErrOut, s.Warnings, o.strict)
}

// plan works out the schedule of the rollout that was read.
func (i *input) plan(rps, errorPercent float64) (*schedule.Schedule, error) {
	options := schedule.Options{RPS: rps, ErrorPercent: errorPercent, Routes: i.routes(), Holders: i.holders()}
	options.GRPCRoutes, options.Absent = i.unlike()
	return schedule.For(i.rollout, options)
}
