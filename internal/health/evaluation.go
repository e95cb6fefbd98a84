package health

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// outcome is what one evaluation says.
type outcome int

const (
	passed outcome = iota
	missed         // a target is missed, though no limit is exceeded
	unknown
	breached
)

// finding is the outcome of one evaluation and the check that decided it.
type finding struct {
	outcome                outcome
	check, reason, message string
}

func unknownBecause(check string, p *Problem) finding {
	return finding{outcome: unknown, check: check, reason: p.Reason, message: p.Message}
}

func breach(check, format string, args ...any) finding {
	return finding{outcome: breached, check: check, reason: v1alpha1.ReasonBreach, message: fmt.Sprintf(format, args...)}
}

// miss is a finding about a target or the score.
func miss(check, reason, format string, args ...any) finding {
	return finding{outcome: missed, check: check, reason: reason, message: fmt.Sprintf(format, args...)}
}

// worse keeps the first breach, or else the first unknown, or else the first miss.
func (f finding) worse(g finding) finding {
	if g.outcome > f.outcome {
		return g
	}
	return f
}

// tally counts requests: all and failed ones, timed and slow ones.
type tally struct {
	requests, errors, timed, slow float64
}

func (t tally) add(u tally) tally {
	return tally{t.requests + u.requests, t.errors + u.errors, t.timed + u.timed, t.slow + u.slow}
}

// measurement is what one window says before it is compared with the limits.
type measurement struct {
	counts   tally
	readable bool    // the counts are known, as far as the configuration needs them
	missing  finding // the first reason why they are not
	bound    float64 // seconds: the bucket bound that stands for latency.max
	quantile float64 // seconds: the response time at the percentile; 0: not known
}

// counted says that the requests and the failed ones among them are known, though the
// response times need not be: what they say counts all the same.
func (m measurement) counted() bool { return m.readable || m.missing.check == CheckLatency }

// measure reads the counts of the subject.
func (c Config) measure(w *Window, subject Track) measurement {
	if c.Preset == "" {
		return measurement{readable: true}
	}
	if p := c.readable(w, subject); p != nil {
		return measurement{missing: unknownBecause(CheckRequests, p)}
	}
	r := w.Reading(subject)
	m := measurement{readable: true, counts: tally{requests: r.Requests, errors: r.Errors}}
	if c.Latency == nil {
		return m
	}
	timed, slow, bound, p := c.slowRequests(r.Buckets)
	if r.Problem != nil {
		p = r.Problem
	}
	if p != nil {
		return measurement{counts: m.counts, missing: unknownBecause(CheckLatency, p)}
	}
	m.counts.timed, m.counts.slow, m.bound = timed, slow, bound
	if timed >= minBad-slack {
		if m.quantile = r.Quantile; m.quantile == 0 {
			m.quantile = quantile(sortedBuckets(r.Buckets), c.Latency.Percentile)
		}
	}
	return m
}

// readable says why the counts of the subject cannot be used, or nil.
func (c Config) readable(w *Window, subject Track) *Problem {
	r := w.Reading(subject)
	if w.Problem != nil {
		return w.Problem
	}
	if r.Problem != nil && !r.Problem.OnlyTimes {
		return r.Problem
	}
	if !r.Found && r.NewestSample.IsZero() {
		return problem(v1alpha1.ReasonNoData, noSeries(w, subject))
	}
	if p := c.stale(r.NewestSample.Time(), w.End); p != nil {
		return p
	}
	if !r.Found {
		return problem(v1alpha1.ReasonNoData, fmt.Sprintf("the metrics have no two samples between which requests of the %s could be counted: health.window must be longer than the scrape interval", subject))
	}
	if math.IsNaN(r.Requests) || math.IsNaN(r.Errors) {
		return problem(v1alpha1.ReasonNoData, fmt.Sprintf("the metrics give NaN, which is no number, for the requests of the %s", subject))
	}
	if !isCount(r.Requests) || !isCount(r.Errors) || r.Errors > r.Requests*(1+slack)+slack {
		return problem(v1alpha1.ReasonUnsupportedResult, fmt.Sprintf("the metrics give impossible counts for the %s", subject))
	}
	return nil
}

func noSeries(w *Window, subject Track) string {
	other := TrackStable
	if subject == TrackStable {
		other = TrackCanary
	}
	if w.Reading(other).Found {
		return fmt.Sprintf("the gateway's metrics have no series for the %s, though the %s has some: it has had no request yet, or they are no longer scraped", subject, other)
	}
	return fmt.Sprintf("the gateway's metrics have no series for the %s: it has had no request yet, or the gateway does not report metrics per service, or is no longer scraped", subject)
}

// isCount says whether a number can be a count. Counts beyond 1e15 are not exact.
func isCount(f float64) bool { return f >= 0 && f <= 1e15 }

// slowRequests returns how many requests were timed, how many of them were slower
// than the bound that stands for latency.max, and that bound in seconds.
func (c Config) slowRequests(buckets []Bucket) (timed, slow, bound float64, p *Problem) {
	if len(buckets) == 0 {
		return 0, 0, 0, problem(v1alpha1.ReasonNoData, "the gateway's metrics have no response times")
	}
	for _, b := range buckets {
		if math.IsNaN(b.UpperBound) || !isCount(b.Count) {
			return 0, 0, 0, problem(v1alpha1.ReasonUnsupportedResult, "the histogram of response times has a bucket that is no number")
		}
	}
	sorted := sortedBuckets(buckets)
	last := sorted[len(sorted)-1]
	if !math.IsInf(last.UpperBound, 1) {
		return 0, 0, 0, problem(v1alpha1.ReasonUnsupportedResult, "the histogram of response times has no bucket without a bound, so its total is not known")
	}
	at := decidingBucket(sorted, c.Latency.Max)
	if at < 0 {
		return 0, 0, 0, problem(v1alpha1.ReasonUnsupportedResult, fmt.Sprintf("health.latency.max of %s is below every bucket bound of the gateway's histogram (%s): raise it, or give the gateway finer buckets",
			seconds(c.Latency.Max.Seconds()), boundList(sorted)))
	}
	fast := sorted[at].Count
	// Extrapolation can give a bucket slightly more than the total, but not much more.
	if fast > last.Count*1.1+1 {
		return 0, 0, 0, problem(v1alpha1.ReasonUnsupportedResult, "the histogram of response times counts more fast requests than requests")
	}
	return last.Count, math.Max(0, last.Count-fast), sorted[at].UpperBound, nil
}

// maxNamed is how many bounds of buckets a message names.
const maxNamed = 12

func boundList(sorted []Bucket) string {
	var texts []string
	for _, b := range sorted {
		if math.IsInf(b.UpperBound, 0) {
			continue
		}
		if len(texts) == maxNamed {
			texts = append(texts, "…")
			break
		}
		texts = append(texts, seconds(b.UpperBound))
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

// seconds writes a response time: "300ms", "1.2s".
func seconds(s float64) string {
	if s < 1 {
		return number(s*1000) + "ms"
	}
	return number(s) + "s"
}

// judge compares one window with the limits. The sum of the disjoint windows up to
// it is asked for only where it can matter.
func (c Config) judge(w *Window, m measurement, sum func() tally) finding {
	f := finding{outcome: passed}
	if m.missing.outcome != passed {
		f = f.worse(m.missing)
	}
	// Counts that are known are judged even where the response times are not.
	if c.Preset != "" && c.ErrorRate != nil && m.counted() {
		f = f.worse(c.judgeErrorRate(m.counts, sum))
	}
	if c.Latency != nil && m.readable {
		f = f.worse(c.judgeLatency(m, sum))
	}
	for _, k := range c.Checks {
		f = f.worse(c.judgeCheck(k, w))
	}
	return f
}

func (c Config) judgeErrorRate(t tally, sum func() tally) finding {
	limit := c.ErrorRate.Max
	if c.exceeds(t.errors, t.requests, limit) {
		return breach(CheckErrorRate, "%s of %s requests failed in one window (%s); the limit is %s",
			about(t.errors), about(t.requests), rate(t.errors, t.requests), percent(limit))
	}
	// Slow traffic spreads its failures over many windows, none of which proves
	// anything. Failures that are over prove nothing about now.
	if !above(t.errors, t.requests, limit) {
		return finding{}
	}
	if s := sum(); c.exceeds(s.errors, s.requests, limit) {
		return breach(CheckErrorRate, "%s of %s requests failed since the share was confirmed (%s), and still do; the limit is %s",
			about(s.errors), about(s.requests), rate(s.errors, s.requests), percent(limit))
	}
	return finding{}
}

// above says whether a window is above a limit by its plain quotient.
func above(bad, total, limit float64) bool { return bad > 1-slack && bad > limit*total }

func (c Config) judgeLatency(m measurement, sum func() tally) finding {
	limit := c.Latency.maxSlow()
	if t := m.counts; c.exceeds(t.slow, t.timed, limit) {
		return breach(CheckLatency, "%s of %s requests took longer than %s in one window (%s); the limit is %s",
			about(t.slow), about(t.timed), seconds(m.bound), rate(t.slow, t.timed), percent(limit))
	}
	if !above(m.counts.slow, m.counts.timed, limit) {
		return finding{}
	}
	if s := sum(); c.exceeds(s.slow, s.timed, limit) {
		return breach(CheckLatency, "%s of %s requests took longer than %s since the share was confirmed (%s), and still do; the limit is %s",
			about(s.slow), about(s.timed), seconds(m.bound), rate(s.slow, s.timed), percent(limit))
	}
	return finding{}
}

func (c Config) judgeCheck(k Check, w *Window) finding {
	value, p := c.valueOf(k, w)
	if p != nil {
		return unknownBecause(k.Name, p)
	}
	if k.Max != nil && value > *k.Max {
		return breach(k.Name, "the value is %s; the limit is at most %s", number(value), number(*k.Max))
	}
	if k.Min != nil && value < *k.Min {
		return breach(k.Name, "the value is %s; the limit is at least %s", number(value), number(*k.Min))
	}
	return finding{}
}

// valueOf reads the answer to a check, or says why it is none.
func (c Config) valueOf(k Check, w *Window) (float64, *Problem) {
	result := w.answer(k.Name)
	switch {
	case result == nil:
		return 0, problem(v1alpha1.ReasonNoData, "the query has not been answered")
	case result.Problem != nil:
		return 0, result.Problem
	case math.IsNaN(result.Value):
		return 0, problem(v1alpha1.ReasonNoData, "the query gave NaN, which is no number: often a division of 0 by 0")
	case math.IsInf(result.Value, 0):
		return 0, problem(v1alpha1.ReasonUnsupportedResult, "the query gave an infinity: often a division by 0")
	}
	if p := c.stale(result.SampleAt, w.End); p != nil {
		return 0, p
	}
	if !k.Signed() && result.Value < -slack {
		return 0, problem(v1alpha1.ReasonUnsupportedResult, fmt.Sprintf("the value is %s, and a check without min cannot be below 0: correct the query, or set min to the lowest acceptable value", number(result.Value)))
	}
	return result.Value, nil
}

// number writes a value with four significant digits.
func number(f float64) string { return strconv.FormatFloat(f, 'g', 4, 64) }

// percent writes a part as a percentage.
func percent(f float64) string { return number(f*100) + "%" }

// rate writes an observed part as a percentage, with no more digits than it deserves,
// and of the rounded counts, so that a reader can check it.
func rate(bad, total float64) string {
	return strconv.FormatFloat(math.Round(bad)/math.Max(math.Round(total), 1)*100, 'g', 3, 64) + "%"
}

// count writes a number of requests, which extrapolation can make a fraction.
func count(f float64) string { return strconv.FormatInt(whole(f), 10) }

// about writes an observed number of requests to the nearest one, so that it agrees
// with the quotient beside it.
func about(f float64) string { return count(f + 0.5) }

// whole rounds a count down, within the range of an int64.
func whole(f float64) int64 {
	switch {
	case !(f > 0):
		return 0
	case f >= math.MaxInt64/2:
		return math.MaxInt64 / 2
	}
	return int64(f + slack)
}

// since returns the length of time that two windows of one run have between them:
// nothing, if there is a hole.
func since(earlier, later *Window) time.Duration {
	if earlier == nil || later.Start.After(earlier.End) {
		return 0
	}
	return later.End.Sub(earlier.End)
}
