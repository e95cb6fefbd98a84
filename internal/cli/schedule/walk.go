package schedule

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
	"github.com/weightedrollout/weightedrollout/internal/weights"
	"github.com/weightedrollout/weightedrollout/internal/window"
)

// Options say what is known beside the spec.
type Options struct {
	// RPS is the traffic of both tracks together in requests per second, above 0; 0: it
	// is not known.
	RPS float64
	// ErrorPercent is the error rate of stable, above 0 and below 100.
	ErrorPercent float64
	// Routes are the routes of the spec as far as they could be read, by RouteKey.
	Routes map[string]route.Inspection
	// GRPCRoutes are the names in spec.routes of which only a GRPCRoute is at hand.
	GRPCRoutes []string
	// Absent are the names in spec.routes of which no route is at hand, and Holders the
	// routes at hand, beside those of the spec, that hold both backends, such as
	// HTTPRoute "checkout".
	Absent, Holders []string
}

// For returns the schedule of a rollout whose defaults are filled in. It fails,
// naming the field, on a spec that the API would not accept, and on options out of
// their range.
func For(wr *v1alpha1.WeightedRollout, o Options) (*Schedule, error) {
	if !(o.RPS >= 0) || math.IsInf(o.RPS, 0) {
		return nil, fmt.Errorf("%g requests per second: give a number above 0", o.RPS)
	}
	if o.RPS > 0 && !(o.ErrorPercent > 0 && o.ErrorPercent < 100) {
		return nil, fmt.Errorf("an error rate of %g percent: give a number above 0 and below 100", o.ErrorPercent)
	}
	spec := simulate.Named(&wr.Spec)
	p, err := planFrom(spec, o.Routes)
	if err != nil {
		return nil, err
	}
	windows, err := window.Parse(spec.Plan.Windows)
	if err != nil {
		return nil, err
	}
	w := walker{plan: p, rps: o.RPS, cold: true, out: &Schedule{
		Name: wr.Name, Revision: spec.Revision, RequestsPerSecond: o.RPS, Adjustments: []Adjustment{},
	}}
	if o.RPS > 0 {
		w.out.ErrorPercent = &o.ErrorPercent
	}
	if len(spec.Plan.Windows) > 0 {
		w.out.Windows = windows.String()
	}
	w.out.Unmeasured = p.health.Disabled
	w.out.Stalled = p.stalled()
	w.walk()
	if w.out.Stuck == "" {
		w.out.Return = p.comeBack(o.RPS)
		w.out.Return.ByItself = returnsByItself(spec)
	}
	w.out.Warnings = p.warnings(wr, w.out, o)
	return w.out, nil
}

// walker goes through a plan as the controller would, if nothing kept it.
type walker struct {
	plan
	rps float64
	out *Schedule

	now   time.Duration
	share weights.Share
	waits []Wait
	// cold is true until the canary has come as far as its stage goes; soaked, once its
	// first share has been held for the warm-up's soak.
	cold, soaked bool
}

func (w *walker) walk() {
	// From 0, the next raise has only the interval to wait for.
	if !w.wait(Wait{simulate.CauseInterval, simulate.Elapsed(w.interval)}) {
		return
	}
	for i := range w.stages {
		if w.stages[i].approval {
			w.out.Approvals++
		}
		if w.out.Stuck == "" {
			w.enter(i)
		} else {
			w.out.Stages = append(w.out.Stages, w.describe(i))
		}
	}
	w.out.Duration = simulate.Elapsed(w.now)
}

// enter ramps to a stage's share and holds it.
func (w *walker) enter(i int) {
	s, out := w.stages[i], w.describe(i)
	out.BeginsAt = elapsed(w.now)
	for w.share < s.share {
		w.raise(i)
		out.Steps++
		if w.share < s.share && !w.wait(w.rampWaits()...) {
			w.stick(out.Position, "spec.health.minRampRequests", w.health.MinRampRequests)
			w.out.Stages = append(w.out.Stages, out)
			return
		}
	}
	w.cold = false
	reached := w.now
	out.ReachedAt = elapsed(reached)
	if w.wait(w.stageWaits(s)...) {
		out.EndsAt = elapsed(w.now)
		out.Traffic = w.traffic(s, w.now-reached)
	} else {
		w.stick(out.Position, "spec.health.minRequests", w.health.MinRequests)
		out.Traffic = w.traffic(s, 0)
	}
	w.out.Stages = append(w.out.Stages, out)
}

// stick says that the rollout goes no further, since a field asks for more requests
// than are remembered.
func (w *walker) stick(position, field string, requests int64) {
	w.out.stuckBy = field
	w.out.Stuck = fmt.Sprintf("at %s in stage %s the canary has %s", w.share, position, w.tooFew(field, requests))
}

// tooFew compares the requests that the share gets with those that a field asks for.
func (w *walker) tooFew(field string, requests int64) string {
	return fmt.Sprintf("%s requests an hour, and never the %d of %s within one", number(w.rps*part(w.share)*time.Hour.Seconds()), requests, field)
}

func (w *walker) describe(i int) Stage {
	s := w.stages[i]
	return Stage{
		Position: fmt.Sprintf("%d/%d", i+1, len(w.stages)), Weight: percent(s.share),
		Soak: simulate.Elapsed(s.soak), Approval: s.approval,
	}
}

// raise takes the share one step closer to the stage's.
func (w *walker) raise(i int) {
	from, target := w.share, w.stages[i].share
	next, bound := weights.NextRaise(from, target, w.limits), w.limits.Bound(from, target)
	if w.cold {
		next, bound = w.warmup.Next(from, target, w.limits), w.warmup.Bound(from, target, w.limits)
		w.soaked = from > weights.ShareNone
		if from == weights.ShareNone {
			next = w.warmup.First(target, w.limits)
			// A warm-up that asks for the whole at once is none, even where the ramp alone
			// makes the first share less.
			w.cold = w.warmup.Initial < weights.ShareAll
		}
	}
	a := Adjustment{
		At: simulate.Elapsed(w.now), Stage: fmt.Sprintf("%d/%d", i+1, len(w.stages)),
		From: percent(from), To: percent(next), Bound: bound, Waits: w.waits,
	}
	for _, r := range w.routes {
		stable, canary := r.rule().Target(next)
		a.Weights = append(a.Weights, simulate.RouteWeights{Route: r.name, Stable: stable, Canary: canary})
	}
	w.out.Adjustments = append(w.out.Adjustments, a)
	w.share = next
}

// never is longer than anything.
const never = simulate.Elapsed(math.MaxInt64)

// wait lets the longest of the waits pass, and keeps them for the next raise. It is
// false if one never ends.
func (w *walker) wait(waits ...Wait) bool {
	slices.SortStableFunc(waits, func(a, b Wait) int { return cmp.Compare(b.Lasts, a.Lasts) })
	if waits[0].Lasts == never {
		return false
	}
	w.now += time.Duration(waits[0].Lasts)
	w.waits = waits
	return true
}

// rampWaits are what a raise within a stage waits for, once the share is confirmed.
func (w *walker) rampWaits() []Wait {
	waits := []Wait{{simulate.CauseInterval, simulate.Elapsed(w.interval)}}
	if w.cold && !w.soaked {
		waits = append([]Wait{{simulate.CauseWarmup, simulate.Elapsed(w.warmupSoak)}}, waits...)
	}
	return append(waits, w.evidence(w.health.MinRampRequests)...)
}

// stageWaits are what the end of a stage waits for, once its share is confirmed.
func (w *walker) stageWaits(s stage) []Wait {
	var waits []Wait
	if s.soak > 0 {
		waits = append(waits, Wait{simulate.CauseSoak, simulate.Elapsed(s.soak)})
	}
	if s.share < weights.ShareAll {
		waits = append(waits, Wait{simulate.CauseInterval, simulate.Elapsed(w.interval)})
	}
	waits = append(waits, w.evidence(w.health.MinRequests)...)
	if s.approval {
		waits = append(waits, Wait{For: simulate.CauseApproval})
	}
	if len(waits) == 0 { // the last step to 100 percent, unmeasured
		waits = append(waits, Wait{For: simulate.CauseInterval})
	}
	return waits
}

// evidence is the wait until the present share, confirmed now, has been measured on
// enough requests. Evidence is counted in windows of the grid that begin at least
// health.sampleDelay after the confirmation, and is forgotten after an hour.
func (w *walker) evidence(requests int64) []Wait {
	if w.health.Disabled {
		return nil
	}
	window := w.health.Window
	begin := w.now + w.health.SampleDelay
	if rest := begin % window; rest != 0 {
		begin += window - rest
	}
	lasts := never
	if n := w.windows(requests); n <= float64(health.Memory/window) {
		lasts = simulate.Elapsed(begin + time.Duration(n)*window - w.now)
	}
	return []Wait{{simulate.CauseEvidence, lasts}}
}

// windows is the number of windows in which the canary has so many requests; 1 where
// requests are not counted or their rate is not known.
func (w *walker) windows(requests int64) float64 {
	if w.rps == 0 || !w.counted() {
		return 1
	}
	const slack = 1e-9 // as the verdict has it, so that 20 of 20 are enough
	perWindow := w.rps * part(w.share) * w.health.Window.Seconds()
	return max(1, math.Ceil(float64(requests)/perWindow-slack))
}

// traffic says what a stage sees while it holds its share for a time, as far as it is
// remembered.
func (w *walker) traffic(s stage, held time.Duration) *Traffic {
	if w.rps == 0 || w.health.Disabled {
		return nil
	}
	all, canary := w.rps*min(held, health.Memory).Seconds(), part(s.share)
	t := &Traffic{CanaryRequests: all * canary, StableRequests: all * (1 - canary)}
	if w.counted() {
		if seconds := float64(w.health.MinRequests) / (w.rps * canary); seconds < time.Duration(never).Seconds() {
			t.MinRequestsAfter = elapsed(time.Duration(seconds * float64(time.Second)))
		}
	}
	if d, ok := SmallestDifference(*w.out.ErrorPercent/100, t.StableRequests, t.CanaryRequests); ok {
		points := d * 100
		t.SmallestDifference = &points
	}
	return t
}

func part(s weights.Share) float64 { return float64(s) / float64(weights.ShareAll) }

func percent(s weights.Share) float64 { return float64(s) / float64(weights.SharePoint) }

func elapsed(d time.Duration) *simulate.Elapsed {
	e := simulate.Elapsed(d)
	return &e
}
