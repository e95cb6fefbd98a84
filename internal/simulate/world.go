package simulate

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// DefaultStart is when a simulation starts whose scenario does not say: a Monday morning,
// on the grid of every usual health.interval.
var DefaultStart = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)

// handEditor is who edits a route by hand.
const handEditor = "kubectl-edit"

// world is a cluster with one rollout in it: the object, its routes and the gateway
// that serves them, the pods, the metrics, and the traffic. Nothing in it runs by
// itself; the engine moves it.
type world struct {
	script  script
	options Options

	// now is the time since the start.
	now time.Duration

	spec        v1alpha1.WeightedRolloutSpec
	status      v1alpha1.WeightedRolloutStatus
	generation  int64
	annotations map[string]string
	commands    int

	routes                   []*served
	pickers                  *pickers
	stableReady, canaryReady bool
	// coldUntil is when the canary's pods have warmed up.
	coldUntil time.Duration
	mood      Metrics

	keys           *rand.PCG
	dice           dice
	stable, canary counts
	meter          *meter
	evidence       evidence
}

// newWorld returns a world in which all is well and the routes carry 100/0.
func newWorld(spec *v1alpha1.WeightedRolloutSpec, s script, c health.Config, o Options) (*world, error) {
	bounds := boundsFor(spec.Health)
	w := &world{
		script: s, options: o,
		spec: *spec.DeepCopy(), generation: 1, annotations: map[string]string{},
		stableReady: true, canaryReady: true, mood: MetricsFine,
		keys: source(o.Seed, streamKeys), dice: dice{bounds: bounds},
		stable: counts{within: make([]float64, len(bounds))}, canary: counts{within: make([]float64, len(bounds))},
	}
	if !o.Exact {
		w.dice.source = source(o.Seed, streamOutcomes)
		w.pickers = &pickers{name: o.Picker, salt: o.Name, source: source(o.Seed, streamPicker)}
	}
	w.meter = newMeter(c, bounds, health.Ceil(s.start, c.Interval))
	w.evidence = evidence{config: c, meter: w.meter}
	for _, ref := range spec.Routes {
		r := newServed(spec, ref)
		if err := w.pickers.configure(r); err != nil {
			return nil, err
		}
		w.routes = append(w.routes, r)
	}
	return w, nil
}

func (w *world) clock() time.Time { return w.script.start.Add(w.now) }

// advance lets time pass up to a moment: requests come and are answered by what the
// gateway serves. Nothing else happens in between.
func (w *world) advance(to time.Duration) {
	for w.now < to {
		end := to
		if w.now < w.coldUntil && w.coldUntil < to {
			end = w.coldUntil
		}
		w.serve(w.now, end)
		w.now = end
	}
}

// serve answers the requests of a span in which nothing changes.
func (w *world) serve(from, to time.Duration) {
	requests := w.script.rps.area(from, to) / float64(len(w.routes))
	var stable, canary float64
	for _, r := range w.routes {
		n := requests
		if !w.options.Exact {
			// Whole requests; what is left over comes with the next ones. The margin keeps the
			// rounding of sums from holding one back.
			n = math.Floor(requests + r.rest + 1e-9)
			r.rest = max(0, requests+r.rest-n)
		}
		s, c := r.divide(n, w.keys)
		stable, canary = stable+s, canary+c
	}
	w.stable.add(w.dice.outcomes(stable, w.behaviour(w.script.stable, w.stableReady, from, to, false)))
	w.canary.add(w.dice.outcomes(canary, w.behaviour(w.script.canary, w.canaryReady, from, to, from < w.coldUntil)))
}

func (w *world) behaviour(p profile, ready bool, from, to time.Duration, isCold bool) behaviour {
	b := p.during(from, to, isCold)
	if !ready {
		b.failed = 1
	}
	return b
}

// confirm lets the gateways take what is due. It tells whether anything changed.
func (w *world) confirm() (bool, error) {
	changed := false
	before := w.canaryServed()
	for _, r := range w.routes {
		if !r.pending || r.due > w.now {
			continue
		}
		r.report()
		if err := w.pickers.configure(r); err != nil {
			return false, fmt.Errorf("route %s: %w", r.name, err)
		}
		changed = true
	}
	if !before && w.canaryServed() {
		w.coldUntil = w.now + w.script.canary.cold.lasts
	}
	return changed, nil
}

// canaryServed tells whether the gateway sends anything to the canary.
func (w *world) canaryServed() bool {
	for _, r := range w.routes {
		if r.wire.Canary > 0 {
			return true
		}
	}
	return false
}

// happen lets an incident happen. It returns what to tell of it.
func (w *world) happen(in incident) (string, error) {
	switch {
	case in.Canary != "":
		w.canaryReady = (in.Canary == Ready) != in.over
		return "the canary " + endpoints(w.canaryReady), nil
	case in.Stable != "":
		w.stableReady = (in.Stable == Ready) != in.over
		return "stable " + endpoints(w.stableReady), nil
	case in.Metrics != "":
		w.mood = in.Metrics
		if in.over {
			w.mood = MetricsFine
		}
		return moodText(w.mood), nil
	case in.Revision != "":
		w.edit(func(s *v1alpha1.WeightedRolloutSpec) { s.Revision = in.Revision })
		return fmt.Sprintf("spec.revision is set to %q", in.Revision), nil
	case in.Paused != nil:
		w.edit(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = *in.Paused })
		return fmt.Sprintf("spec.paused is set to %t", *in.Paused), nil
	case in.RouteWeights != "":
		for _, r := range w.routes {
			r.edit(in.stable, in.canary, handEditor, w.now+w.script.delay)
		}
		return fmt.Sprintf("%s sets the weights of the routes to %s", handEditor, in.RouteWeights), nil
	}
	return fmt.Sprintf("a person gives the command %s", in.Command), w.say(in.Command)
}

func endpoints(ready bool) string {
	if ready {
		return "has a ready endpoint again"
	}
	return "has no ready endpoint"
}

func moodText(m Metrics) string {
	switch m {
	case MetricsOutage:
		return "the metrics server cannot be reached"
	case MetricsNaN:
		return "the metrics server answers every query with NaN"
	case MetricsEmpty:
		return "the metrics server answers every query with no series"
	case MetricsFine:
	}
	return "the metrics server answers as it should"
}

// edit changes the spec.
func (w *world) edit(change func(*v1alpha1.WeightedRolloutSpec)) {
	change(&w.spec)
	w.generation++
}

// say gives a command as a person does with the plugin: most of them are put into the
// annotation, for the present attempt and stage.
func (w *world) say(c Command) error {
	switch c {
	case CommandAbort:
		w.annotations[v1alpha1.AbortAnnotation] = fmt.Sprint(w.status.Attempt)
		return nil
	case CommandPause:
		w.edit(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = true })
		return nil
	case Command(v1alpha1.VerbResume):
		if w.spec.Paused {
			w.edit(func(s *v1alpha1.WeightedRolloutSpec) { s.Paused = false })
			if !w.stopped() {
				return nil // the controller would find nothing to resume
			}
		}
	}
	w.commands++
	order := v1alpha1.Command{ID: fmt.Sprint(w.commands), Verb: v1alpha1.Verb(c), Attempt: w.status.Attempt}
	if s := w.status.Stage; s != nil && (order.Verb == v1alpha1.VerbApprove || order.Verb == v1alpha1.VerbSkip) {
		order.Stage = &s.Index
	}
	text, err := json.Marshal(order)
	if err != nil {
		return fmt.Errorf("encode the command %s: %w", c, err)
	}
	w.annotations[v1alpha1.CommandAnnotation] = string(text)
	return nil
}

// stopped tells whether the rollout goes on only after the command resume.
func (w *world) stopped() bool {
	stalled := meta.FindStatusCondition(w.status.Conditions, v1alpha1.ConditionStalled)
	contended := stalled != nil && stalled.Status == metav1.ConditionTrue && stalled.Reason == v1alpha1.ReasonWeightContention
	return w.status.Pause != nil || contended
}
