package simulate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/weights/pick"
)

// DefaultPicker is the picker of a run that names none.
const DefaultPicker = "smooth"

// Options say how to simulate.
type Options struct {
	// Name of the rollout. Default: rollout.
	Name string
	// RPS, if above 0, replaces the scenario's traffic by so many requests per second,
	// at most 1000000.
	RPS float64
	// Picker names what chooses the backend of each request: one of pick.Names.
	// Default: DefaultPicker.
	Picker string
	// Seed of all randomness.
	Seed uint64
	// Exact draws nothing: requests, failures and response times are expected values,
	// so that the result has no noise. Picker is then not used.
	Exact bool
	// Approve gives every approval as soon as it is awaited.
	Approve bool
	// Progress, if set, is told again and again how far the simulation is.
	Progress func(Elapsed)
}

// longest is the longest time of a simulation.
const longest = 72 * time.Hour

// maxDrawnRPS is the most traffic of a simulation that picks request by request: an
// hour of it takes about a second.
const maxDrawnRPS = 10_000

// RolloutError says what is wrong with a rollout, or what keeps it from being simulated.
type RolloutError struct{ problem error }

// Error names the field of the spec, where it is about one.
func (e *RolloutError) Error() string { return e.problem.Error() }

// Unwrap returns the same without saying that it is about the rollout.
func (e *RolloutError) Unwrap() error { return e.problem }

// Run simulates a rollout with the given spec, which it does not change, in the world
// of the scenario; nil is a quiet world. The spec's defaults must be filled in. It
// fails on a spec that the controller would not carry out, with a *RolloutError, on a bad
// scenario, with a *ScenarioError, and on bad options, and says what to change.
func Run(spec *v1alpha1.WeightedRolloutSpec, scenario *Scenario, o Options) (*Result, error) {
	s, err := compile(scenario)
	if err != nil {
		return nil, &ScenarioError{err}
	}
	if o, err = o.complete(); err != nil {
		return nil, err
	}
	if o.RPS > 0 {
		s.rps = constant(o.RPS)
	}
	if err := tooMany(s, o); err != nil {
		return nil, err
	}
	r, err := runIn(spec, s, o)
	if _, bad := errors.AsType[*ScenarioError](err); err != nil && !bad {
		return nil, &RolloutError{err}
	}
	return r, err
}

// runIn simulates a rollout with what the scenario and the options say.
func runIn(spec *v1alpha1.WeightedRolloutSpec, s script, o Options) (*Result, error) {
	spec = Named(spec)
	config, err := checkSpec(spec, s)
	if err != nil {
		return nil, err
	}
	w, err := newWorld(spec, s, config, o)
	if err != nil {
		return nil, err
	}
	interval, err := spec.Ramp.Interval.Parse()
	if err != nil {
		return nil, fmt.Errorf("spec.ramp.interval: %w", err)
	}
	warmup, err := spec.Ramp.Warmup.Soak.Parse()
	if err != nil {
		return nil, fmt.Errorf("spec.ramp.warmup.soak: %w", err)
	}
	return w.play(newJournal(w, interval, warmup))
}

// play runs the world to its end.
func (w *world) play(j *journal) (*Result, error) {
	j.result.Mode = w.spec.Mode
	j.result.Notes = w.takeForGranted()
	e := newEngine(w, j)
	if err := e.begin(); err != nil {
		return nil, err
	}
	ending, err := e.run()
	if err != nil {
		return nil, err
	}
	r := j.finish(w, e.controller, ending)
	r.Outcome.Wakeups = e.wakeups
	if !w.options.Exact {
		if r.Pickers, err = compare(r, w.options); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// tooMany refuses traffic that would take too long to pick request by request.
func tooMany(s script, o Options) error {
	most := s.rps.highest()
	if o.Exact || most <= maxDrawnRPS {
		return nil
	}
	err := fmt.Errorf("%g requests per second are too many to pick one by one, at most %d can be: scale the traffic down, or ask for an exact simulation, which picks none", most, maxDrawnRPS)
	if o.RPS > 0 {
		return err
	}
	return &ScenarioError{fmt.Errorf("traffic: %w", err)}
}

// complete fills in the defaults.
func (o Options) complete() (Options, error) {
	if o.Name == "" {
		o.Name = "rollout"
	}
	if o.Picker == "" {
		o.Picker = DefaultPicker
	}
	if !slices.Contains(pick.Names(), o.Picker) {
		return o, fmt.Errorf("there is no picker %q: use one of %s", o.Picker, strings.Join(pick.Names(), ", "))
	}
	if !(o.RPS >= 0 && o.RPS <= maxRPS) {
		return o, fmt.Errorf("%g requests per second: give a number from 0 to %d", o.RPS, maxRPS)
	}
	return o, nil
}

// Named returns the spec with a name for its revision, where that follows from the pod
// template of canary.workload, which is not at hand.
func Named(spec *v1alpha1.WeightedRolloutSpec) *v1alpha1.WeightedRolloutSpec {
	if spec == nil || spec.Revision != "" || spec.Canary == nil || spec.Canary.Workload == nil {
		return spec
	}
	spec = spec.DeepCopy()
	spec.Revision = "pod template of " + spec.Canary.Workload.Name
	return spec
}

// checkSpec makes sure that there is something to simulate, and reads the health
// section. What else can be wrong with a spec is found by the first decision.
func checkSpec(spec *v1alpha1.WeightedRolloutSpec, s script) (health.Config, error) {
	switch {
	case spec == nil:
		return health.Config{}, errors.New("there is no spec to simulate")
	case spec.Stable == nil || spec.Canary == nil:
		return health.Config{}, errors.New("spec.stable and spec.canary are required: name the Services and ports of the two versions")
	case len(spec.Routes) == 0:
		return health.Config{}, errors.New("spec.routes is required: name the HTTPRoute whose weights are to be managed")
	case spec.Revision == "":
		return health.Config{}, errors.New("spec.revision is required: name the version that the canary runs")
	}
	config, err := health.ConfigFrom(spec.Health, spec.OnUnhealthy.For)
	if err != nil {
		return config, fmt.Errorf("spec.%w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(s.checks)) {
		if !slices.ContainsFunc(config.Checks, func(k health.Check) bool { return k.Name == name }) {
			return config, &ScenarioError{fmt.Errorf("checks.%s: spec.health.checks has no check of that name: correct the name or remove it", name)}
		}
	}
	return config, nil
}

// begin takes the first decision, and fails if it finds that the spec cannot be
// carried out.
func (e *engine) begin() error {
	w := e.world
	w.meter.checks, _ = gauges(w.evidence.config, w.script.checks)
	if _, err := e.moment(); err != nil {
		return err
	}
	if ready := readyOf(&w.status); ready.Reason == v1alpha1.ReasonInvalidSpec {
		return errors.New(ready.Message)
	}
	return nil
}

// takeForGranted lists what the simulation assumes beyond the spec and the scenario.
func (w *world) takeForGranted() []string {
	var notes []string
	if len(w.spec.Plan.Windows) > 0 {
		note := "the simulation begins on " + w.script.start.Format("Monday, 2 January 2006, at 15:04 MST")
		if w.script.start.Equal(DefaultStart) {
			note += "; start in a scenario sets another time"
		}
		notes = append(notes, note)
	}
	if w.spec.Canary.Workload != nil || w.spec.Stable.Workload != nil {
		notes = append(notes, "workloads are not simulated: there are always enough ready replicas, and stable is updated by a person (finish)")
	}
	if _, unset := gauges(w.evidence.config, w.script.checks); len(unset) > 0 {
		notes = append(notes, fmt.Sprintf("the scenario has no values for the checks %s: each gives a value inside its limits", strings.Join(unset, ", ")))
	}
	if w.spec.Mode == v1alpha1.ModeObserve {
		w.spec.Mode = v1alpha1.ModeEnforce
		notes = append(notes, "spec.mode is Observe, in which nothing is written: this is what Enforce would do")
	}
	return notes
}

// highest returns the largest value of the timeline.
func (l timeline) highest() float64 {
	most := l[0].onTo
	for _, k := range l {
		most = max(most, k.from, k.onTo)
	}
	return most
}
