// Package health turns evidence into a verdict. It is pure: it has no client, no
// clock and no state, and it never changes its input.
package health

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// Track names one of the two versions.
type Track string

const (
	// TrackStable is the version that served before the rollout.
	TrackStable Track = "stable"
	// TrackCanary is the version under test.
	TrackCanary Track = "canary"
)

// Names that a verdict gives to the checks of a preset, beside the names of the
// spec's own checks.
const (
	// CheckRequests is the count of requests itself.
	CheckRequests = "requests"
	// CheckErrorRate is health.errorRate.
	CheckErrorRate = "error-rate"
	// CheckLatency is health.latency.
	CheckLatency = "latency"
)

// Problem says why something could not be measured. It is never a pass and never
// a failure.
type Problem struct {
	// Reason is one of the API's reasons of a verdict, such as NoData.
	Reason string
	// Message says it in words, without times and secrets.
	Message string
	// OnlyTimes says that a Reading's counts can be used, and only its response times cannot.
	OnlyTimes bool
}

// Bucket is a bucket of a cumulative histogram.
type Bucket struct {
	// UpperBound is the longest response time that the bucket counts, in seconds; the
	// last one is +Inf.
	UpperBound float64
	// Count is the increase, over the window, of the requests within the bound.
	Count float64
}

// Reading is what a preset's metrics say of one track over one window.
type Reading struct {
	// Found says that the metrics have series for the track, with enough samples in
	// the window to tell an increase. A silent track with series is found.
	Found bool
	// Requests is the increase of all requests, 0 or more. It can be a fraction.
	Requests float64
	// Errors is the part of Requests that failed.
	Errors float64
	// Buckets are the response times, in any order. Empty: not read, or no series.
	Buckets []Bucket
	// Quantile is the response time in seconds at the configured percentile. Compact
	// keeps it when it drops buckets; 0: it is still to be read from Buckets.
	Quantile float64
	// NewestSample is the time of the newest sample, whether in the window or not.
	// Zero: there is none, and then nothing is known.
	NewestSample Instant
	// OldestSample is the time of the oldest sample that the counts start from: the
	// last one at or before the window's start. Zero: not known, and then the window's
	// start stands for it.
	OldestSample Instant
	// Problem, when set, says why the reading cannot be used, or its response times.
	Problem *Problem
}

// CheckResult is the answer to one of the spec's own checks.
type CheckResult struct {
	// Name of the check.
	Name string
	// Value is the number that the query gave. It is ignored when there is a problem.
	Value float64
	// SampleAt is the time of the sample.
	SampleAt time.Time
	// Problem, when set, says why there is no value.
	Problem *Problem
}

// Window is everything that was read of one span of time (Start, End].
type Window struct {
	// Start and End bound the window. Its length must be Config.Window.
	Start, End time.Time
	// Problem, when set, says that the preset's metrics could not be read at all.
	Problem *Problem
	// Stable and Canary are the preset's metrics. They are unused without a preset.
	Stable, Canary Reading
	// Beyond is how many of the canary's requests took longer than
	// latency.maxRatioToStable allows. Compact fills it in; nil: it is still to be read
	// from the buckets of both tracks.
	Beyond *Beyond
	// Checks are the answers to the spec's own checks, in any order.
	Checks []CheckResult
}

// Reading returns the preset's metrics of a track.
func (w *Window) Reading(t Track) *Reading {
	if t == TrackStable {
		return &w.Stable
	}
	return &w.Canary
}

// answer returns the answer to a check, or nil.
func (w *Window) answer(name string) *CheckResult {
	for i := range slices.Backward(w.Checks) {
		if w.Checks[i].Name == name {
			return &w.Checks[i]
		}
	}
	return nil
}

// Compact returns the window without the buckets that no evaluation under this
// configuration can look at, so that an hour of windows stays small. Latency needs
// the bucket that decides, the total, and the response time at the percentile; where
// no bucket can decide, those are kept that the verdict names.
func (c Config) Compact(w Window) Window {
	if c.Latency != nil && c.Latency.MaxRatio > 0 && w.Beyond == nil {
		limit, count := c.beyond(&w)
		w.Beyond = &Beyond{Limit: limit, Count: count}
	}
	c.compact(&w.Stable)
	c.compact(&w.Canary)
	return w
}

func (c Config) compact(r *Reading) {
	if c.Latency == nil {
		r.Buckets = nil // another rollout's
	}
	if len(r.Buckets) <= 2 {
		return
	}
	sorted := sortedBuckets(r.Buckets)
	at := decidingBucket(sorted, c.Latency.Max)
	last := len(sorted) - 1
	odd := slices.IndexFunc(sorted, func(b Bucket) bool { return math.IsNaN(b.UpperBound) || !isCount(b.Count) })
	switch {
	case odd >= 0:
		r.Buckets = []Bucket{sorted[odd]}
	case !math.IsInf(sorted[last].UpperBound, 1):
		r.Buckets = []Bucket{sorted[last]}
	case at < 0:
		r.Buckets = append(slices.Clone(sorted[:min(last, maxNamed+1)]), sorted[last])
	default:
		r.Quantile = quantile(sorted, c.Latency.Percentile)
		r.Buckets = []Bucket{sorted[at], sorted[last]}
	}
}

// quantile returns the response time, in seconds, that the given part of the
// requests does not exceed, by linear interpolation within a bucket, as PromQL's
// histogram_quantile does. Beyond the last finite bound nothing is known but that
// bound. It returns 0 where the buckets count nothing or do not rise.
func quantile(sorted []Bucket, part float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	total := sorted[len(sorted)-1].Count
	rank := part * total
	if !(total > 0) || math.IsInf(total, 0) {
		return 0
	}
	var low Bucket
	for _, b := range sorted {
		if math.IsInf(b.UpperBound, 1) {
			break
		}
		if b.Count >= rank && b.Count > low.Count {
			return low.UpperBound + (b.UpperBound-low.UpperBound)*(rank-low.Count)/(b.Count-low.Count)
		}
		if b.Count > low.Count {
			low.Count = b.Count
		}
		low.UpperBound = max(low.UpperBound, b.UpperBound)
	}
	return low.UpperBound
}

// sortedBuckets returns the buckets by rising bound, without changing its input.
func sortedBuckets(buckets []Bucket) []Bucket {
	byBound := func(a, b Bucket) int { return cmp.Compare(a.UpperBound, b.UpperBound) }
	if slices.IsSortedFunc(buckets, byBound) {
		return buckets
	}
	sorted := slices.Clone(buckets)
	slices.SortStableFunc(sorted, byBound)
	return sorted
}

// decidingBucket returns the index of the last bucket that counts no request
// slower than limit, or -1 when every bound is above it.
func decidingBucket(sorted []Bucket, limit time.Duration) int {
	// Bounds are decimal texts of seconds, so that 0.3 need not be 300ms to the bit.
	const tolerance = 1e-9
	at := -1
	for i, b := range sorted {
		if b.UpperBound <= limit.Seconds()+tolerance {
			at = i
		}
	}
	return at
}

// counted returns the windows that are evidence for the confirmed share, by rising
// End and each End once. A window counts if it lies wholly after the confirmation
// plus the delay of the metrics, has the configured length, and does not end in a
// future that only a clock that was set back can explain.
func (in *Input) counted() []Window {
	earliest := in.ConfirmedAt.Add(in.Config.SampleDelay)
	latest := in.Now.Add(in.Config.SampleDelay + in.Config.Interval)
	counts := func(w *Window) bool {
		return in.within(w) && !w.Start.Before(earliest) && w.End.Sub(w.Start) == in.Config.Window && !w.End.After(latest)
	}
	inOrder := true
	for i := range in.Windows {
		inOrder = inOrder && counts(&in.Windows[i]) && (i == 0 || in.Windows[i].End.After(in.Windows[i-1].End))
	}
	if inOrder {
		return in.Windows // the usual case needs no copy
	}
	windows := make([]Window, 0, len(in.Windows))
	for i := range in.Windows {
		if counts(&in.Windows[i]) {
			windows = append(windows, in.Windows[i])
		}
	}
	slices.SortStableFunc(windows, func(a, b Window) int { return a.End.Compare(b.End) })
	return slices.CompactFunc(windows, func(a, b Window) bool { return a.End.Equal(b.End) })
}

// within says whether the counts of a window start after the confirmation. Those that
// reach further back, because the metrics are sampled seldom or were not for a while,
// speak for another share. That the metrics have stopped coming is not hidden by it.
func (in *Input) within(w *Window) bool {
	if in.Config.Preset == "" {
		return true
	}
	r := w.Reading(in.Subject)
	return r.OldestSample.IsZero() || !r.OldestSample.Time().Before(in.ConfirmedAt) || in.Config.stale(r.NewestSample.Time(), w.End) != nil
}

// onGrid says whether a window is one of the disjoint windows that are summed:
// those that end at a whole multiple of their length since the Unix epoch.
func (c Config) onGrid(end time.Time) bool {
	return end.Nanosecond()%int(time.Millisecond) == 0 && end.UnixMilli()%c.Window.Milliseconds() == 0
}

// OnGrid says whether a window that ends at end is one of the disjoint windows
// whose counts are summed: those that end at a whole multiple of Window since the
// Unix epoch. It is false for a configuration without a window.
func (c Config) OnGrid(end time.Time) bool {
	return c.Window >= time.Millisecond && c.onGrid(end)
}

func problem(reason, message string) *Problem {
	return &Problem{Reason: reason, Message: message}
}

// stale judges the age of a sample against the window that it should speak for.
func (c Config) stale(newest, end time.Time) *Problem {
	switch {
	case newest.IsZero():
		return problem(v1alpha1.ReasonNoData, "the metrics have no sample")
	case newest.After(end.Add(c.SampleDelay + c.Interval)):
		return problem(v1alpha1.ReasonStale, "the newest sample lies in the future: the clock of the metrics server or of the controller is wrong")
	case end.Sub(newest) > c.Window+c.SampleDelay:
		return problem(v1alpha1.ReasonStale, "the newest sample is older than health.window plus health.sampleDelay: the metrics have stopped coming")
	}
	return nil
}
