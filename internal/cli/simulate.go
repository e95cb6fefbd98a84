package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/manifest/yamltext"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
	"github.com/weightedrollout/weightedrollout/internal/weights/pick"
)

// SimulateOptions are those of the command simulate.
type SimulateOptions struct {
	genericiooptions.IOStreams
	input  input
	output output

	scenario string
	rps      float64
	picker   string
	seed     uint64
	exact    bool
	approve  bool
	svg      string
	expect   string
	strict   bool

	knowsTraffic bool
}

const defaultPicker = "smooth"

// endings are the phases in which a simulation can end.
var endings = []v1alpha1.Phase{
	v1alpha1.PhasePromoted, v1alpha1.PhaseRolledBack, v1alpha1.PhaseCompleted, v1alpha1.PhaseAwaitingApproval, v1alpha1.PhasePaused,
	v1alpha1.PhaseProgressing, v1alpha1.PhaseCoolingDown, v1alpha1.PhaseReturning, v1alpha1.PhasePending, v1alpha1.PhaseIdle,
}

func newSimulateCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &SimulateOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "simulate -f FILE",
		Short: "Run a rollout against made-up traffic",
		Long: `Run a rollout against made-up traffic.

The decisions are the controller's own, under a virtual clock: hours pass in a
moment. Only the world around them is made up. Without --scenario it is a quiet one:
100 requests per second, of which 0.1 % fail on either version. A scenario is a YAML
file that says at what date and time it begins, how traffic, errors and response times
change, when the gateway, the pods or the metrics fail, and what people do. It begins
on ` + simulate.DefaultStart.Format("Monday, 2006-01-02T15:04:05Z07:00") + `, unless the scenario has another start:
by that plan.windows are open or closed.

What is shown: the canary's share over time, the verdicts, the canary's failures and
response times, the events, and how evenly each way to choose a backend (--picker)
spreads the canary's requests. The same file, scenario and --seed give the same
output, byte for byte.

The HTTPRoutes of the file are not simulated: every rollout gets a rule of its own
with the two backends. Standard error has the warnings that plan gives for the same
file and --rps, those about its HTTPRoutes too.

The exit code is 0 whenever the simulation ran, whatever became of the rollout,
unless --expect names another ending, or --strict meets a warning.`,
		Example: `  # A good version
  kubectl weightedrollout simulate -f config/samples/first.yaml --approve

  # A version that fails for 5 % of its requests from minute 15 on; fail unless it
  # is rolled back
  echo '{canary: {errorPercent: [{at: 15m, value: 5}]}}' >bad.yaml
  kubectl weightedrollout simulate -f config/samples/first.yaml --approve --scenario bad.yaml --expect RolledBack

  # A picture, with 500 requests per second
  kubectl weightedrollout simulate -f config/samples/first.yaml --approve --rps 500 --svg run.svg`,
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
	o.bind(cmd)
	return cmd
}

func (o *SimulateOptions) bind(cmd *cobra.Command) {
	fs := cmd.Flags()
	o.input.bind(cmd)
	fs.StringVar(&o.scenario, "scenario", "", "File that says what the rollout meets, in YAML or JSON; - reads standard input. Default: a quiet world.")
	fs.Float64Var(&o.rps, "rps", 0, "Requests per second, in place of the scenario's traffic.")
	fs.StringVar(&o.picker, "picker", defaultPicker, "What chooses the backend of each request: "+strings.Join(pick.Names(), ", ")+".")
	fs.Uint64Var(&o.seed, "seed", 1, "Seed of all randomness.")
	fs.BoolVar(&o.exact, "exact", false, "Draw nothing: requests and failures are expected values, without noise.")
	fs.BoolVar(&o.approve, "approve", false, "Give every approval as soon as it is awaited.")
	fs.StringVar(&o.svg, "svg", "", "File to write a picture to, as SVG.")
	fs.StringVar(&o.expect, "expect", "", "Fail unless the rollout ends in this phase: "+strings.Join(endingNames(), ", ")+". Case does not matter.")
	bindStrict(fs, &o.strict)
	o.output.bind(cmd)
	complete(cmd, "picker", pick.Names())
	complete(cmd, "expect", endingNames())
}

func endingNames() []string {
	names := make([]string, len(endings))
	for i, e := range endings {
		names[i] = string(e)
	}
	return names
}

// Complete notes which flags were given.
func (o *SimulateOptions) Complete(cmd *cobra.Command) error {
	o.knowsTraffic = cmd.Flags().Changed("rps")
	if o.exact && cmd.Flags().Changed("picker") {
		return errors.New("--picker and --exact exclude each other: an exact simulation chooses no single request's backend")
	}
	return nil
}

// Validate checks the flags.
func (o *SimulateOptions) Validate() error {
	if err := o.input.validate(); err != nil {
		return err
	}
	if o.scenario == standardInput && o.input.filename == standardInput {
		return errors.New("-f and --scenario both read standard input: give one of them as a file")
	}
	if err := validRPS(o.rps, o.knowsTraffic); err != nil {
		return err
	}
	if !slices.Contains(pick.Names(), o.picker) {
		return fmt.Errorf("there is no picker %q: use one of %s", o.picker, strings.Join(pick.Names(), ", "))
	}
	if _, ok := o.expected(); o.expect != "" && !ok {
		return fmt.Errorf("a rollout never ends as %q: --expect takes one of %s", o.expect, strings.Join(endingNames(), ", "))
	}
	return o.output.validate()
}

// expected is the phase that --expect names.
func (o *SimulateOptions) expected() (v1alpha1.Phase, bool) {
	for _, e := range endings {
		if strings.EqualFold(string(e), o.expect) {
			return e, true
		}
	}
	return "", false
}

// Run simulates the rollout and shows what happened.
func (o *SimulateOptions) Run() error {
	if err := o.input.read(o.IOStreams); err != nil {
		return err
	}
	scenario, err := o.readScenario()
	if err != nil {
		return err
	}
	plan, err := o.input.plan(o.rps, defaultErrorPercent)
	if err != nil {
		return o.input.about(err)
	}
	if err := o.spared(); err != nil {
		return err
	}
	options := simulate.Options{Name: o.input.rollout.Name, RPS: o.rps, Seed: o.seed, Exact: o.exact, Approve: o.approve}
	if !o.exact {
		options.Picker = o.picker
	}
	p := o.progress()
	options.Progress = p.at
	r, err := simulate.Run(&o.input.rollout.Spec, scenario, options)
	p.clear()
	if _, bad := errors.AsType[*simulate.RolloutError](err); bad {
		return o.input.about(err)
	} else if err != nil {
		return o.ofScenario(err)
	}
	if o.svg != "" {
		if err := os.WriteFile(o.svg, svgOf(r, o.input.limits()), 0o644); err != nil { //nolint:gosec // a picture is for everyone to read
			return fmt.Errorf("--svg: %w", err)
		}
	}
	if err := o.output.write(o.Out, r, func(s *screen) { drawSimulation(s, r, o.input.limits()) }); err != nil {
		return err
	}
	doubtful := warn(o.ErrOut, plan.Warnings, o.strict)
	if want, ok := o.expected(); ok && r.Outcome.Phase != want {
		return fmt.Errorf("the rollout ended as %s, and not as %s", r.Outcome.Phase, want)
	}
	return doubtful
}

// spared makes sure that the picture replaces none of the files that are read, by
// whatever path.
func (o *SimulateOptions) spared() error {
	picture, err := os.Stat(o.svg)
	if err != nil || !picture.Mode().IsRegular() {
		return nil //nolint:nilerr // a file that is not there yet replaces none
	}
	for _, read := range []struct{ flag, filename string }{{"-f", o.input.filename}, {"--scenario", o.scenario}} {
		if of, err := o.stat(read.filename); err == nil && os.SameFile(of, picture) {
			return fmt.Errorf("--svg %s is the file that %s reads: give the picture a name of its own", o.svg, read.flag)
		}
	}
	return nil
}

// stat looks at a file that is read, or at standard input where that is one.
func (o *SimulateOptions) stat(filename string) (os.FileInfo, error) {
	if file, ok := o.In.(*os.File); ok && filename == standardInput {
		return file.Stat()
	}
	return os.Stat(filename)
}

// limits are those of the health section that the drawings show; 0: there is none.
type limits struct {
	percentile string  // that response times are measured at: "p99"
	failed     float64 // in percent
	slow       float64 // in seconds
}

func (i *input) limits() limits {
	l := limits{percentile: "p99"}
	h := i.rollout.Spec.Health
	if h == nil || h.Disabled {
		return l
	}
	if h.ErrorRate != nil {
		if bp, err := h.ErrorRate.MaxPercent.BasisPoints(); err == nil {
			l.failed = float64(bp) / 100
		}
	}
	if h.Latency != nil {
		l.percentile = "p" + string(h.Latency.Percentile)
		if d, err := h.Latency.Max.Parse(); err == nil {
			l.slow = d.Seconds()
		}
	}
	return l
}

// readScenario reads the scenario; nil is the quiet world.
func (o *SimulateOptions) readScenario() (*simulate.Scenario, error) {
	if o.scenario == "" {
		return nil, nil //nolint:nilnil // no scenario is the quiet world
	}
	file, err := open(o.scenario, o.IOStreams)
	if err != nil {
		return nil, fmt.Errorf("--scenario: %w", err)
	}
	defer file.Close()
	text, err := yamltext.Load(file)
	if err != nil {
		return nil, fmt.Errorf("--scenario %s: %w", o.scenario, bare(err))
	}
	s, err := simulate.ParseScenario(text)
	return s, o.ofScenario(err)
}

// ofScenario names the file of a scenario that is wrong; other errors stay as they are.
func (o *SimulateOptions) ofScenario(err error) error {
	if bad, ok := errors.AsType[*simulate.ScenarioError](err); ok && o.scenario != "" {
		return fmt.Errorf("--scenario %s: %w", o.scenario, bad.Unwrap())
	}
	return err
}
