package health

import (
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health/compare"
)

// Comparison is what the disjoint windows so far have shown of the canary's requests
// beside those of stable at the same time. It is one test over a whole attempt. The
// zero value is its start.
type Comparison struct {
	// Errors compares failed requests, and Slow those slower than latency.max.
	Errors, Slow compare.Inferiority
	// Through is the end of the newest window that is in it; zero: none is.
	Through time.Time
}

// ComparisonFrom reads a comparison that was recorded in a status. What cannot be read
// starts over, as an attempt does.
func ComparisonFrom(s *v1alpha1.ComparisonStatus) Comparison {
	if s == nil {
		return Comparison{}
	}
	errors, err := compare.ParseInferiority(s.Errors)
	if err != nil {
		return Comparison{}
	}
	slow, err := compare.ParseInferiority(s.Slow)
	if err != nil {
		return Comparison{}
	}
	k := Comparison{Errors: errors, Slow: slow}
	if s.Through != nil {
		k.Through = s.Through.Time
	}
	return k
}

// Status returns the record of the comparison, or nil if there is nothing to record.
func (k Comparison) Status() *v1alpha1.ComparisonStatus {
	if k.Through.IsZero() {
		return nil
	}
	through := metav1.NewMicroTime(k.Through.UTC())
	return &v1alpha1.ComparisonStatus{Errors: k.Errors.String(), Slow: k.Slow.String(), Through: &through}
}

// Past is what windows have shown that are not kept any more.
type Past struct {
	// Comparison is that of this attempt, from earlier shares too.
	Comparison Comparison
	// NotWorseErrors and NotWorseSlow are proofs at the present share, up to Through.
	NotWorseErrors, NotWorseSlow compare.NotWorse
	Through                      time.Time
}

// Begin returns the past of a share that has no window yet, in an attempt that has
// come to this comparison. One that was made with another margin starts over.
func (c Config) Begin(earlier Comparison) Past {
	p := Past{Comparison: earlier}
	if c.ErrorRate == nil || earlier.Errors.Margin() != c.ErrorRate.MaxAboveStable {
		p.Comparison.Errors = compare.Inferiority{}
		if c.ErrorRate != nil {
			p.Comparison.Errors = compare.NewInferiority(c.ErrorRate.MaxAboveStable)
		}
	}
	if c.Latency == nil || earlier.Slow.Margin() != 0 {
		p.Comparison.Slow = compare.Inferiority{}
	}
	if c.ErrorRate != nil {
		p.NotWorseErrors = compare.NewNotWorse(c.ErrorRate.margin())
	}
	if c.Latency != nil {
		p.NotWorseSlow = compare.NewNotWorse(c.Latency.maxSlow())
	}
	return p
}

// margin is by how much the error rate may be above that of stable for the canary not
// to be worse: what the spec says, or else the whole limit.
func (e *ErrorRate) margin() float64 {
	if e.MaxAboveStable > 0 {
		return e.MaxAboveStable
	}
	return e.Max
}

// beside is what a window says of both tracks: of their requests at the same time.
type beside struct {
	canary, stable tally
	// beyond counts the canary's requests that took longer than latency.maxRatioToStable
	// allows. It is known where limit, in seconds, is above 0.
	beyond, limit float64
}

func (b beside) add(o beside) beside {
	return beside{b.canary.add(o.canary), b.stable.add(o.stable), b.beyond + o.beyond, max(b.limit, o.limit)}
}

// errors are the failed requests of both tracks.
func (b beside) errors() pair {
	return pair{compare.Block{
		Stable: compare.Counts{Bad: b.stable.errors, Total: b.stable.requests},
		Canary: compare.Counts{Bad: b.canary.errors, Total: b.canary.requests},
	}}
}

// slow are the slow requests of both tracks.
func (b beside) slow() pair {
	return pair{compare.Block{
		Stable: compare.Counts{Bad: b.stable.slow, Total: b.stable.timed},
		Canary: compare.Counts{Bad: b.canary.slow, Total: b.canary.timed},
	}}
}

// besides returns what a window says of both tracks. The problem says why stable's
// part of it cannot be told.
func (in *Input) besides(w *Window, m measurement) (beside, *Problem) {
	c := in.Config
	if oldest := w.Stable.OldestSample; !oldest.IsZero() && oldest.Time().Before(in.ConfirmedAt) {
		return beside{}, problem(v1alpha1.ReasonAwaitingWindow, "the counts of stable reach back to before the share was confirmed")
	}
	s := c.measure(w, TrackStable)
	if !s.readable && (!s.counted() || c.relative()) {
		return beside{}, problem(s.missing.reason, s.missing.message)
	}
	b := beside{canary: m.counts, stable: s.counts}
	if c.Latency != nil && c.Latency.MaxRatio > 0 {
		b.limit, b.beyond = c.beyond(w)
	}
	return b, nil
}

// Never is a time that does not come.
func Never() time.Time { return time.Unix(1<<40, 0) }

// compares reports whether a window is part of the comparison, as one that begins before the
// canary has had the time of its warm-up is not.
func (in *Input) compares(w *Window) bool {
	return in.compared() && !w.Start.Before(in.ComparedFrom)
}

// compared reports whether the two tracks are compared: while the canary is under test
// and stable has traffic of its own.
func (in *Input) compared() bool {
	return in.Config.Preset != "" && in.Subject == TrackCanary && !in.Unopposed
}

// fold adds a disjoint window to what the earlier ones have shown.
func (c Config) fold(p Past, b beside, end time.Time) Past {
	errors, slow := b.errors(), b.slow()
	if k := &p.Comparison; end.After(k.Through) {
		k.Through = end
		if c.ErrorRate != nil {
			k.Errors = k.Errors.Add(errors.Block)
		}
		if c.Latency != nil {
			k.Slow = k.Slow.Add(slow.Block)
		}
	}
	if c.NotWorse && end.After(p.Through) {
		p.Through = end
		p.NotWorseErrors, p.NotWorseSlow = p.NotWorseErrors.Add(errors.Block), p.NotWorseSlow.Add(slow.Block)
	}
	return p
}

// wealth is the evidence that the canary is worse: 1 at the start, and at least
// 1/(1 − confidence) once it is proven. It is 0 where nothing is compared.
func (c Config) wealth(k Comparison) float64 {
	switch {
	case c.ErrorRate != nil && c.Latency != nil:
		return compare.Combined(k.Errors, k.Slow)
	case c.ErrorRate != nil:
		return k.Errors.Wealth()
	case c.Latency != nil:
		return k.Slow.Wealth()
	}
	return 0
}

// With much traffic the smallest difference can be proven, and not each is worth a
// rollback. It matters if, beyond doubt, it is more than half of the limit, but not more
// than a point is asked for. Where the spec gives a margin, that is in the test itself.
const (
	negligible    = 0.5
	maxNegligible = 0.01
)

// matters is by how much a rate must be above that of stable, where the limit is this.
func matters(limit float64) float64 { return min(negligible*limit, maxNegligible) }

// proven reports whether the canary is proven to be worse in some way.
func (c Config) proven(k Comparison) bool { return c.wealth(k)*c.doubt() >= 1 }

// worse says that the canary is proven to be worse than stable, if it is, and if that
// is seen at the present share. The counts are those that were compared at this share,
// since what the text says. Together the two comparisons are the proof; each that has
// grown can be what is told.
func (c Config) worse(k Comparison, here beside, since string) finding {
	if !c.proven(k) {
		return finding{}
	}
	f := finding{}
	if c.ErrorRate != nil && k.Errors.Wealth() > 1 {
		f = c.worseErrors(here.errors(), since)
	}
	if f.outcome == passed && c.Latency != nil && k.Slow.Wealth() > 1 {
		f = c.worseTimes(here, since)
	}
	return f
}

// comparedSince says since when the counts at the present share are compared.
func (in *Input) comparedSince() string {
	if in.ComparedFrom.After(in.ConfirmedAt) {
		return "since the comparison with stable began"
	}
	return "since the share was confirmed"
}

func (c Config) worseErrors(errors pair, since string) finding {
	margin := c.ErrorRate.MaxAboveStable
	if margin > 0 && !errors.above(margin) || margin == 0 && !c.provenAbove(errors, matters(c.ErrorRate.Max)) {
		return finding{}
	}
	return c.isWorse(CheckErrorRate, "failed "+since, errors)
}

func (c Config) worseTimes(here beside, since string) finding {
	within := c.Latency.MaxRatio > 0 && here.limit > 0 && !(here.beyond > c.Latency.maxSlow()*here.canary.timed)
	if within || !c.provenAbove(here.slow(), matters(c.Latency.maxSlow())) {
		return finding{} // the spec has said how much slower is still acceptable
	}
	return c.isWorse(CheckLatency, "took longer than "+seconds(c.Latency.Max.Seconds())+" "+since, here.slow())
}

// proofWaits says what keeps a proof from being acted upon, if there is one.
func (c Config) proofWaits(k Comparison, here beside) string {
	if !c.proven(k) || c.worse(k, here, "").outcome == breached {
		return ""
	}
	bad := math.Max(here.canary.errors, here.canary.slow)
	if bad < minBad-slack {
		return fmt.Sprintf("%d bad requests of the canary at this share; there have been %s", minBad, about(bad))
	}
	return "a difference at this share that matters: by all that it has shown here it may be within what the limits allow"
}

func (c Config) isWorse(check, what string, b pair) finding {
	return finding{outcome: breached, check: check, reason: v1alpha1.ReasonWorseThanStable,
		message: fmt.Sprintf("%s of %s requests %s (%s), and %s of %s of stable's (%s): the canary is worse than stable, with %s%% confidence over the whole attempt",
			about(b.Canary.Bad), about(b.Canary.Total), what, rate(b.Canary.Bad, b.Canary.Total),
			about(b.Stable.Bad), about(b.Stable.Total), rate(b.Stable.Bad, b.Stable.Total), number(c.confidence()*100))}
}

// notProven says what is missing to the proof that the canary is not worse than
// stable, if anything is.
func (c Config) notProven(p Past) (check, message, wait string) {
	if c.ErrorRate != nil {
		if message, wait := c.unproven(p.NotWorseErrors, "fail", c.ErrorRate.margin()); message != "" {
			return CheckErrorRate, message, wait
		}
	}
	if c.Latency != nil {
		if message, wait := c.unproven(p.NotWorseSlow, "are slow", c.Latency.maxSlow()); message != "" {
			return CheckLatency, message, wait
		}
	}
	return "", "", ""
}

func (c Config) unproven(p compare.NotWorse, what string, margin float64) (message, wait string) {
	if p.Proven(c.doubt()) {
		return "", ""
	}
	message = fmt.Sprintf("it is not proven yet that of the canary's requests at most %s more %s than of stable's", percent(margin), what)
	more := p.MoreRequests(c.doubt())
	if math.IsInf(more, 1) || math.IsNaN(more) {
		return message, fmt.Sprintf("fewer of the canary's requests that %s: at the present rates the proof will not come", what)
	}
	return message, fmt.Sprintf("about %s more requests, until it is proven that the canary is not worse than stable", count(math.Ceil(more)))
}

// pastWith adds a window that is not kept any more to the past, if it is evidence.
func (in *Input) pastWith(p Past, w *Window) Past {
	if !in.compares(w) || w.Start.Before(in.ConfirmedAt.Add(in.Config.SampleDelay)) || !in.within(w) {
		return p
	}
	m := in.Config.measure(w, in.Subject)
	if !m.counted() {
		return p
	}
	both, wanting := in.besides(w, m)
	if wanting != nil {
		return p
	}
	return in.Config.fold(p, both, w.End)
}
