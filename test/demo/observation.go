package main

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

// track is one of the two versions.
type track int

const (
	stable track = iota
	canary
)

var tracks = [2]track{stable, canary}

func (t track) String() string { return [2]string{"stable", "canary"}[t] }

// step is one state of the route's weights.
type step struct {
	at      time.Time
	version uint64
	weights [2]int32
}

// basisPoints is the canary's share in hundredths of a percent, rounded down.
func (s step) basisPoints() int {
	sum := int(s.weights[stable]) + int(s.weights[canary])
	if sum == 0 {
		return 0
	}
	return 10000 * int(s.weights[canary]) / sum
}

// entry is the beginning of a stage, as status tells it.
type entry struct {
	at      time.Time
	version uint64
	index   int
	weight  v1alpha1.Percent
}

// clientCount is what a client has seen.
type clientCount struct {
	answered [2]int // successes by track
	failed   int
	refused  int // of those, by an answer of 4xx
	lost     int
	whyLost  string // the first reason
}

func (c clientCount) total() int { return c.answered[stable] + c.answered[canary] + c.failed }

// observation is everything that was seen of one scenario. Several goroutines
// write it.
type observation struct {
	scenario scenario
	screen   *screen
	began    time.Time
	// ended is closed when the rollout has come to an end, good or bad.
	ended chan struct{}

	mu      sync.Mutex
	steps   []step
	entries []entry
	samples []sample
	quality [2]quality
	// evidence is what the manager gathers at present, nil if it gathers none, last the
	// newest with an evaluation, and evaluated whether there was one of both tracks.
	evidence  *live.Document
	last      *live.Document
	evaluated bool
	// slowestStable is stable's worst p99 so far, in seconds.
	slowestStable float64
	client        clientCount
	// unnamed is the number of successes that no track put its name to.
	unnamed int
	rollout *v1alpha1.WeightedRollout
	endedAt time.Time
}

func newObservation(s scenario, screen *screen) *observation {
	unknown := quality{requests: math.NaN(), errorPercent: math.NaN(), p99: math.NaN()}
	return &observation{
		scenario: s, screen: screen, began: time.Now(), ended: make(chan struct{}),
		quality: [2]quality{unknown, unknown},
	}
}

func (o *observation) answer(a answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case a.lost != "":
		if o.client.lost == 0 {
			o.client.whyLost = fmt.Sprintf("%s, at %s", a.lost, clock(time.Since(o.began)))
		}
		o.client.lost++
		o.client.failed++
	case a.failed:
		o.client.failed++
		if a.refused {
			o.client.refused++
		}
	case a.known:
		o.client.answered[a.by]++
	default:
		o.unnamed++
	}
}

func (o *observation) count(s sample) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.samples = append(o.samples, s)
}

func (o *observation) judgeQuality(q [2]quality) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.quality = q
	if p99 := q[stable].p99; !math.IsNaN(p99) {
		o.slowestStable = max(o.slowestStable, p99)
	}
}

func (o *observation) evidenceSeen(d *live.Document) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.evidence = d
	if d != nil && len(d.Evaluations) > 0 {
		o.last = d
		o.evaluated = o.evaluated || newest(d, stable) != nil && newest(d, canary) != nil
	}
}

// routeSeen records the weights, if they have changed.
func (o *observation) routeSeen(version uint64, weights [2]int32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.steps); n > 0 && o.steps[n-1].weights == weights {
		return
	}
	o.steps = append(o.steps, step{at: time.Now(), version: version, weights: weights})
	o.screen.say("%s", o.changeLine(fmt.Sprintf("route  stable %3d   canary %3d", weights[stable], weights[canary])))
}

// rolloutSeen records the state of the rollout.
func (o *observation) rolloutSeen(version uint64, rollout *v1alpha1.WeightedRollout) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.rollout
	o.rollout = rollout
	if stage := rollout.Status.Stage; stage != nil {
		n := len(o.entries)
		if n == 0 || o.entries[n-1].index != int(stage.Index) {
			o.entries = append(o.entries, entry{at: time.Now(), version: version, index: int(stage.Index), weight: stage.Weight})
			o.screen.say("%s", o.changeLine(fmt.Sprintf("stage  %s, %s %% for the canary", stage.Position, stage.Weight)))
		}
	}
	if before != nil && before.Status.Phase != rollout.Status.Phase {
		for _, line := range beside(o.changeLine("phase  "), phaseText(&rollout.Status), defaultWidth-1) {
			o.screen.say("%s", line)
		}
	}
	if o.endedAt.IsZero() && isEnd(rollout.Status.Phase) {
		o.endedAt = time.Now()
		close(o.ended)
	}
}

// phaseText is a phase, and why the rollout came to it if that is a rollback.
func phaseText(status *v1alpha1.WeightedRolloutStatus) string {
	if status.Phase == v1alpha1.PhaseRolledBack && status.OutcomeMessage != "" {
		return string(status.Phase) + ": " + status.OutcomeMessage
	}
	return string(status.Phase)
}

func isEnd(phase v1alpha1.Phase) bool {
	switch phase {
	case v1alpha1.PhasePromoted, v1alpha1.PhaseCompleted, v1alpha1.PhaseRolledBack, v1alpha1.PhaseIdle:
		return true
	default:
		return false
	}
}

// changeLine is a line for something that has just happened. The lock is held.
func (o *observation) changeLine(what string) string {
	return fmt.Sprintf("  %5s  %-8s %s", clock(time.Since(o.began)), o.scenario.name, what)
}

// lastWords says where the rollout stood, for when it did not come to an end.
func (o *observation) lastWords() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rollout == nil {
		return "no WeightedRollout"
	}
	status := o.rollout.Status
	return fmt.Sprintf("phase %s, %s", orNone(string(status.Phase)), orNone(waitingFor(o.rollout)))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// between returns what the gateway counted in a span of time, by the readings
// that lie within it. It is false if there are not two of them.
func between(samples []sample, from, to time.Time) (sample, bool) {
	first, last := -1, -1
	for i, s := range samples {
		if s.at.Before(from) || s.at.After(to) {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
	}
	if first < 0 || first == last {
		return sample{}, false
	}
	return samples[last].minus(samples[first]), true
}

// clock writes a length of time as minutes and seconds.
func clock(d time.Duration) string {
	s := int(d.Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
