package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

const (
	// soakUnderTest is the stage whose share is compared with what the gateway
	// counted, and shareTolerance by how many points the two may differ.
	soakUnderTest  = 1000
	shareTolerance = 1.0
	// settling is left out at the start of a hold: the gateway takes new weights a
	// moment after the route has them.
	settling = 1500 * time.Millisecond
	// tooSlow, in seconds, is a p99 that stable only has where the demo gets too
	// little of the processor.
	tooSlow = 0.5
)

// stageRow is one stage as it went.
type stageRow struct {
	weight string
	began  time.Duration // since the rollout's first stage
	lasted time.Duration
	shares []string // that the route had, in order
	// measured is the canary's share in percent, counted by the gateway while the
	// route had the stage's own share. NaN if it never had.
	measured float64
	counted  sample
}

// result is what a scenario came to.
type result struct {
	scenario scenario
	phase    v1alpha1.Phase
	why      string
	rows     []stageRow
	lasted   time.Duration
	gateway  sample
	client   clientCount
	// highest is the canary's largest share in basis points, and exposed how long
	// it had any traffic, before the rollback if there was one.
	highest int
	exposed time.Duration
	// busy is true if something was amiss and stable was slow too, so that it says
	// more of this machine than of the canary.
	busy bool
	// problems says what was not as it should be.
	problems []string
}

// judge sums up a scenario and checks it against what the spec promises.
func judge(s scenario, spec v1alpha1.WeightedRolloutSpec, seen *observation) *result {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	r := &result{scenario: s, client: seen.client, rows: stageRows(seen)}
	if seen.rollout != nil {
		r.phase, r.why = seen.rollout.Status.Phase, seen.rollout.Status.OutcomeMessage
	}
	if len(seen.entries) > 0 {
		r.lasted = seen.endedAt.Sub(seen.entries[0].at)
	}
	if n := len(seen.samples); n > 1 {
		r.gateway = seen.samples[n-1].minus(seen.samples[0])
	}
	for _, step := range seen.steps {
		r.highest = max(r.highest, step.basisPoints())
	}
	r.exposed = exposure(seen)

	r.expect(r.phase == s.want, "the rollout ended %s, not %s: %s", orNone(string(r.phase)), s.want, r.why)
	r.checkRamp(spec, seen)
	r.expect(seen.unnamed == 0, "%d answers came from neither track", seen.unnamed)
	r.expect(r.client.lost == 0, "%d requests had no answer: %s", r.client.lost, r.client.whyLost)
	switch {
	case r.phase != s.want: // all else that is amiss follows from that
	case s.want == v1alpha1.PhasePromoted:
		r.checkPromotion(spec, seen)
	default:
		r.checkRollback(s, seen)
	}
	r.busy = !r.good() && seen.slowestStable >= tooSlow
	return r
}

func (r *result) expect(ok bool, format string, args ...any) {
	if !ok {
		r.problems = append(r.problems, fmt.Sprintf(format, args...))
	}
}

func (r *result) good() bool { return len(r.problems) == 0 }

// checkRamp compares every change of the route with the caps of the plan: this
// holds for good and bad canaries.
func (r *result) checkRamp(spec v1alpha1.WeightedRolloutSpec, seen *observation) {
	minIncrease, maxIncrease := points(spec.Ramp.MinIncrease), points(spec.Ramp.MaxIncrease)
	for i, now := range seen.steps {
		r.expect(now.weights[stable]+now.weights[canary] > 0, "the route had no weight at all at %s", clock(now.at.Sub(seen.began)))
		if now.basisPoints() > 0 {
			limit := stageLimit(seen.entries, now.version)
			r.expect(now.basisPoints() <= limit, "the canary had %s in a stage of %s", percent(now.basisPoints()), percent(limit))
		}
		if i == 0 || now.basisPoints() <= seen.steps[i-1].basisPoints() {
			continue
		}
		before := seen.steps[i-1].basisPoints()
		most := max(minIncrease, min(maxIncrease, before*points(spec.Ramp.MaxChangePercent)/10000))
		r.expect(now.basisPoints()-before <= most, "the share rose from %s to %s, by more than the ramp allows", percent(before), percent(now.basisPoints()))
	}
}

// stageLimit is the share of the stage that status named when the route got a
// version. Versions of one API server order writes to different objects too.
func stageLimit(entries []entry, version uint64) int {
	limit := 0
	for _, e := range entries {
		if e.version < version {
			limit = points(e.weight)
		}
	}
	return limit
}

func (r *result) checkPromotion(spec v1alpha1.WeightedRolloutSpec, seen *observation) {
	var shares []int
	for _, step := range seen.steps {
		shares = append(shares, step.basisPoints())
	}
	r.expect(slices.IsSorted(shares), "the share fell on the way: %v", seenShares(seen.steps))
	for _, stage := range append(slices.Clone(spec.Plan.Stages), v1alpha1.Stage{Weight: "100"}) {
		r.expect(slices.Contains(shares, points(stage.Weight)), "the route never had the share of stage %s %%", stage.Weight)
	}
	last := len(shares) - 1
	r.expect(last >= 0 && shares[last] == 10000, "the canary does not have all traffic at the end")
	for _, row := range r.rows {
		if row.weight == percent(soakUnderTest) {
			off := math.Abs(row.measured - soakUnderTest/100)
			r.expect(off <= shareTolerance, "in the stage of %s the gateway counted a share of %.2f %%", row.weight, row.measured)
		}
	}
	r.expect(r.client.failed == 0, "%d of %d requests failed", r.client.failed, r.client.total())
	r.expect(seen.evaluated, "the manager never told the numbers of an evaluation")
}

func (r *result) checkRollback(s scenario, seen *observation) {
	last := len(seen.steps) - 1
	r.expect(last >= 0 && seen.steps[last].weights == [2]int32{100, 0}, "the route is not at 100 and 0 at the end")
	r.expect(r.highest > 0, "the canary never had any traffic, so nothing was shown")
	r.expect(r.highest <= s.most, "the %s canary came to %s of the traffic", s.key, percent(r.highest))
	r.expect(strings.Contains(r.why, s.check), "it was rolled back for another reason than %s: %s", s.check, r.why)
	if s.check != health.CheckErrorRate {
		r.expect(r.gateway.tracks[canary].errors == 0, "the gateway counted %.0f errors of the %s canary", r.gateway.tracks[canary].errors, s.key)
		r.expect(r.client.failed == 0, "%d of %d requests failed", r.client.failed, r.client.total())
	}
}

func stageRows(seen *observation) []stageRow {
	var rows []stageRow
	for i, e := range seen.entries {
		end, endVersion := seen.endedAt, uint64(math.MaxUint64)
		if i+1 < len(seen.entries) {
			end, endVersion = seen.entries[i+1].at, seen.entries[i+1].version
		}
		row := stageRow{
			weight: percent(points(e.weight)), began: e.at.Sub(seen.entries[0].at), lasted: end.Sub(e.at),
			measured: math.NaN(),
		}
		for j, s := range seen.steps {
			if s.version < e.version || s.version > endVersion {
				continue
			}
			row.shares = append(row.shares, fmt.Sprint(float64(s.basisPoints())/100))
			if s.basisPoints() != points(e.weight) {
				continue
			}
			until := time.Now()
			if j+1 < len(seen.steps) {
				until = seen.steps[j+1].at
			}
			if counted, ok := between(seen.samples, s.at.Add(settling), until); ok {
				row.measured, row.counted = counted.share(), counted
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// exposure is the time from the canary's first traffic to its last.
func exposure(seen *observation) time.Duration {
	var first, last time.Time
	for _, s := range seen.steps {
		if s.basisPoints() > 0 && first.IsZero() {
			first = s.at
		}
		if s.basisPoints() == 0 && !first.IsZero() {
			last = s.at
		}
	}
	if last.Before(first) {
		last = seen.endedAt
	}
	return last.Sub(first)
}

func seenShares(steps []step) string {
	var shares []string
	for _, s := range steps {
		shares = append(shares, percent(s.basisPoints()))
	}
	return strings.Join(shares, ", ")
}

// points reads a percentage of a spec that the API server has accepted.
func points(p v1alpha1.Percent) int {
	bp, err := p.BasisPoints()
	if err != nil {
		return 0
	}
	return bp
}

func percent(basisPoints int) string {
	return string(v1alpha1.PercentFromBasisPoints(basisPoints)) + " %"
}
