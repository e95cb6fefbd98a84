package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// longRollout is the time above which a rollout is worth a warning.
const longRollout = 24 * time.Hour

// warnings lists what is doubtful about a plan, in the order of the spec.
func (p *plan) warnings(wr *v1alpha1.WeightedRollout, s *Schedule, o Options) []Warning {
	var all []Warning
	add := func(field, format string, args ...any) {
		all = append(all, Warning{field, fmt.Sprintf(format, args...)})
	}
	if wr.Spec.Mode == v1alpha1.ModeObserve {
		add("spec.mode", "Observe writes no route and never advances: set Enforce to let the plan run")
	}
	if wr.Spec.Paused {
		add("spec.paused", "nothing rises while it is true: set it to false")
	}
	warnOfNames(wr.Spec.Routes, o, add)
	warnOfKinds(wr.Spec.Routes, o.GRPCRoutes, add)
	p.warnOfRoutes(s, add)
	warnOfTracks(wr, add)
	p.warnOfStages(s, add)
	warnOfZones(wr.Spec.Plan.Windows, add)
	warnOfGRPC(&wr.Spec, add)
	p.warnOfBuckets(add)
	p.warnOfChecks(wr.Spec.Health, add)
	p.warnOfHealth(s, add)
	if time.Duration(s.Duration) > longRollout {
		add("spec.plan", "the rollout takes %s at least: shorten soaks, leave out stages, or raise ramp.maxIncrease and ramp.maxChangePercent, unless that is what you want", short(time.Duration(s.Duration)))
	}
	return all
}

type adder func(field, format string, args ...any)

// warnOfRoutes looks at the weights that the routes can carry.
func (p *plan) warnOfRoutes(s *Schedule, add adder) {
	for i, r := range p.routes {
		field := r.title
		if r.found == nil {
			continue
		}
		if problem := p.problem(r); problem != nil {
			add(field, "%s", problem.Message)
			continue
		}
		for _, a := range s.Adjustments {
			share := weights.Share(a.To*float64(weights.SharePoint) + 0.5)
			if problem := r.found.Express(share); problem != nil {
				add(field, "%s", problem.Message)
				break
			}
			got := a.Weights[i]
			sum := int64(got.Stable) + int64(got.Canary)
			if low, _ := weights.Part(int64(got.Canary), sum); low != share {
				add(field, "beside a third backend the pair's weights keep their sum of %d, so that %s becomes %s: multiply every weight of the rule so that the pair's add up to 100 or more", sum, share, low)
				break
			}
		}
	}
	unread := false
	for _, r := range p.routes {
		unread = unread || r.found == nil
	}
	if !p.limits.WholePoints && unread {
		add("spec.plan", "shares that are no whole points need weights that add up to 10000: in a rule that a third backend shares, the pair's weights must already add up to that")
	}
}

// warnOfStages looks at soaks and approvals.
func (p *plan) warnOfStages(s *Schedule, add adder) {
	approvals, blind := 0, false
	for i, st := range p.stages {
		if st.approval {
			approvals++
		}
		if st.soak == 0 || p.health.Disabled {
			continue
		}
		field := fmt.Sprintf("spec.plan.stages[%d].soak", i)
		if first := p.health.SampleDelay + p.health.Window; first > st.soak {
			add(field, "the soak of %s is shorter than health.sampleDelay and health.window, %s together, so the stage lasts longer than it says: lengthen the soak or shorten health.window", short(st.soak), short(first))
			continue
		}
		if !p.warnOfRequests(s, i, field, add) && !blind {
			blind = p.warnOfBlindness(s, i, field, add)
		}
	}
	if approvals > 0 && approvals >= len(p.stages)-1 && len(p.stages) > 1 {
		add("spec.plan.stages", "every stage waits for a person (approval: Required), so nothing goes on by itself: leave approval out where the checks are enough")
	}
	if p.warmsUp() && p.warmupSoak > p.stages[0].soak && p.stages[0].soak > 0 {
		add("spec.ramp.warmup.soak", "the warm-up of %s is longer than the first stage's soak of %s, and until it is over the canary is not compared with stable: shorten it, or lengthen plan.stages[0].soak", short(p.warmupSoak), short(p.stages[0].soak))
	}
}

// warnOfRequests compares a stage's soak with the time that minRequests takes. It
// reports whether it warned.
func (p *plan) warnOfRequests(s *Schedule, i int, field string, add adder) bool {
	out := s.Stages[i]
	if out.Traffic == nil || out.Traffic.MinRequestsAfter == nil || out.ReachedAt == nil {
		return false
	}
	need := time.Duration(*out.Traffic.MinRequestsAfter)
	if out.EndsAt == nil || time.Duration(*out.EndsAt-*out.ReachedAt) <= p.stages[i].soak {
		return false
	}
	add(field, "at %s requests per second and %s, %d canary requests (health.minRequests) take %s, and are counted in whole windows, so the stage lasts %s and not %s: lengthen the soak, raise the weight, or lower health.minRequests",
		number(s.RequestsPerSecond), p.stages[i].share, p.health.MinRequests, short(need), short(time.Duration(*out.EndsAt-*out.ReachedAt)), short(p.stages[i].soak))
	return true
}

// warnOfBlindness looks at a stage that is over before a canary which fails as often as
// the limit allows could be told from stable. It reports whether it warned.
func (p *plan) warnOfBlindness(s *Schedule, i int, field string, add adder) bool {
	out, limit := s.Stages[i], p.health.ErrorRate
	if out.Traffic == nil || out.Traffic.SmallestDifference == nil || out.EndsAt == nil || limit == nil {
		return false
	}
	rise := limit.Max*100 - *s.ErrorPercent
	if !(*out.Traffic.SmallestDifference > rise) {
		return false
	}
	add(field, "at %s requests per second the canary has about %s requests in stage %s, too few to tell it from stable if it fails for errorRate.maxPercent (%s%%) of them: only a rise of %s points would show; lengthen the soak, or raise the weight",
		number(s.RequestsPerSecond), number(out.Traffic.CanaryRequests), out.Position, number(limit.Max*100), number(*out.Traffic.SmallestDifference))
	return true
}

// warnOfHealth looks at what is measured.
func (p *plan) warnOfHealth(s *Schedule, add adder) {
	if p.health.Disabled {
		add("spec.health.disabled", "nothing is measured: a bad revision is promoted like a good one; leave disabled out and set errorRate, latency or checks")
		return
	}
	if e := p.health.ErrorRate; e != nil && e.MaxAboveStable > 0 && e.MaxAboveStable >= e.Max {
		add("spec.health.errorRate.maxAboveStablePercent", "a canary may fail for %s points more than stable before the comparison finds it worse, and the limit of maxPercent is %s: the comparison finds nothing that the limit does not; lower it, or leave it out", number(e.MaxAboveStable*100), number(e.Max*100))
	}
	if s.Stuck != "" {
		add(s.stuckBy, "%s, which is how long requests are remembered: lower it, or raise the weights of the plan", s.Stuck)
		return
	}
	if s.RequestsPerSecond > 0 && p.counted() {
		p.warnOfRampRequests(s, add)
	}
	if s.Return != nil && s.Return.Stuck != "" {
		add(s.Return.stuckBy, "after %s %s, which is how long requests are remembered: lower it, or raise ramp.minIncrease", s.Return.Begins(), s.Return.Stuck)
	}
}

// warnOfRampRequests looks at the shares at which a ramp step awaits its requests:
// those that another step of the same stage follows.
func (p *plan) warnOfRampRequests(s *Schedule, add adder) {
	for i, a := range s.Adjustments[:max(len(s.Adjustments)-1, 0)] {
		if s.Adjustments[i+1].Stage != a.Stage {
			continue
		}
		if has := s.RequestsPerSecond * a.To / 100 * p.health.Window.Seconds(); has < float64(p.health.MinRampRequests) {
			add("spec.health.minRampRequests", "at %s requests per second a canary with %s%% has about %s requests in a window of %s, fewer than the %d that a ramp step needs, so that it takes several windows: lower minRampRequests, or lengthen health.window",
				number(s.RequestsPerSecond), number(a.To), number(has), short(p.health.Window), p.health.MinRampRequests)
			return
		}
	}
}

// number writes a number with three significant digits, large ones in full.
func number(f float64) string {
	if f >= 100 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}

// short writes a duration without the units that are 0: "1h30m", "45s".
func short(d time.Duration) string {
	text := d.Round(time.Millisecond).String()
	if d >= time.Minute {
		text = d.Round(time.Second).String()
	}
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
