package cli

import (
	"math"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// bucket is what happened in one of n equal parts of a simulation's time.
type bucket struct {
	// share is the canary's share at the end, in percent.
	share float64
	// state is the worst verdict.
	state v1alpha1.VerdictState
	// stable and canary are what the tracks did.
	stable, canary lane
}

// lane is what a track did in a bucket's time.
type lane struct {
	traffic simulate.Traffic
	// failed is the part of the requests that failed, in percent, and slow the longest
	// response time at the percentile, in seconds; below 0 without a request.
	failed, slow float64
}

// buckets sorts a simulation into n parts of its time. Where a part is shorter than
// the time between two samples, it has what the next sample says, which is about the
// time that the part lies in.
func buckets(r *simulate.Result, n int) []bucket {
	all := make([]bucket, n)
	whole := float64(r.Outcome.Duration)
	sample, adjustment := 0, 0
	var share float64
	for i := range all {
		b := &all[i]
		end := simulate.Elapsed(whole * float64(i+1) / float64(n))
		for ; adjustment < len(r.Adjustments) && r.Adjustments[adjustment].At <= end; adjustment++ {
			share = r.Adjustments[adjustment].To
		}
		b.share = share
		before := sample
		for ; sample < len(r.Samples) && r.Samples[sample].At <= end; sample++ {
			b.add(r.Samples[sample])
		}
		if sample == before && len(r.Samples) > 0 {
			b.add(r.Samples[min(sample, len(r.Samples)-1)])
		}
		b.stable.sum()
		b.canary.sum()
	}
	return all
}

// add takes in a sample.
func (b *bucket) add(s simulate.Sample) {
	if badness(s.Verdict.State) >= badness(b.state) {
		b.state = s.Verdict.State
	}
	b.stable.add(s.Stable)
	b.canary.add(s.Canary)
}

func (l *lane) add(t simulate.TrackSample) {
	l.traffic.Requests += t.Requests
	l.traffic.Failed += t.Failed
	l.slow = max(l.slow, t.Latency)
}

// sum works out the rates.
func (l *lane) sum() {
	l.failed = l.traffic.FailedPercent()
	if l.traffic.Requests == 0 {
		l.failed, l.slow = -1, -1
	}
}

// badness orders the verdicts: the worst is shown. One that is not known is no news
// beside any other.
func badness(v v1alpha1.VerdictState) int {
	switch v {
	case v1alpha1.VerdictUnhealthy:
		return 3
	case v1alpha1.VerdictDegraded:
		return 2
	case v1alpha1.VerdictHealthy:
		return 1
	default:
		return 0
	}
}

func verdictSign(v v1alpha1.VerdictState) (sign, color string) {
	switch v {
	case v1alpha1.VerdictHealthy:
		return "=", green
	case v1alpha1.VerdictDegraded:
		return "~", yellow
	case v1alpha1.VerdictUnhealthy:
		return "#", red
	default:
		return "·", grey
	}
}

// columnOf is the part, of n, that a time lies in; the end lies in the last one.
func columnOf(at, whole simulate.Elapsed, n int) int {
	i := int(float64(at) / float64(whole) * float64(n))
	return min(max(i, 0), n-1)
}

// largest returns the largest value, 0 or more; what is no number is left out.
func largest(values []float64) float64 {
	var most float64
	for _, v := range values {
		if v > most {
			most = v
		}
	}
	return most
}

// niceTop returns the end of a scale from 0 that holds a value above 0: 1, 2 or 5
// times a power of ten.
func niceTop(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, times := range []float64{1, 2, 5} {
		if v <= times*power*(1+1e-9) {
			return times * power
		}
	}
	return 10 * power
}

// tickSteps are the distances that the ticks of a time axis may have.
var tickSteps = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
	15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// tickStep returns the smallest distance that gives no more than so many ticks.
func tickStep(whole simulate.Elapsed, most int) time.Duration {
	for _, step := range tickSteps {
		if time.Duration(whole) <= step*time.Duration(most) {
			return step
		}
	}
	return tickSteps[len(tickSteps)-1]
}
