package simulate

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/weightedrollout/weightedrollout/internal/weights"
	"github.com/weightedrollout/weightedrollout/internal/weights/pick"
)

const (
	// sampleMillis is the length of the sample on which pickers are compared, and
	// maxSample the largest number of requests in it.
	sampleMillis = 60_000
	maxSample    = 60_000
)

// compare plays the same requests with every picker at every share that was held. It
// returns nil if there is nothing to compare.
func compare(r *Result, o Options) (*PickerComparison, error) {
	rps := r.Outcome.Total().Requests / r.Outcome.Duration.Seconds()
	n := int(min(math.Round(rps*sampleMillis/1000), maxSample))
	shares := held(r)
	if n == 0 || len(shares) == 0 {
		return nil, nil //nolint:nilnil // nothing to compare is a normal answer
	}
	c := &PickerComparison{Sample: fmt.Sprintf("%d requests at even distances in one minute, at each share that a stage has held, each by another user", n)}
	for _, share := range shares {
		sum := int32(100)
		if !share.Whole() {
			sum = int32(weights.ShareAll)
		}
		var at RouteWeights
		at.Stable, at.Canary = weights.Pair(share, sum)
		for _, name := range pick.Names() {
			row, err := measure(name, at, n, o)
			if err != nil {
				return nil, err
			}
			c.Rows = append(c.Rows, row)
		}
	}
	return c, nil
}

// held lists the shares that stages have held, apart from all traffic.
func held(r *Result) []weights.Share {
	var shares []weights.Share
	for _, s := range r.Stages {
		share := weights.Share(math.Round(s.Weight * 100))
		if s.ReachedAt != nil && share < weights.ShareAll && !slices.Contains(shares, share) {
			shares = append(shares, share)
		}
	}
	slices.Sort(shares)
	return shares
}

// measure plays n requests with one picker.
func measure(name string, at RouteWeights, n int, o Options) (PickerRow, error) {
	pair := backends(at)
	p, err := pick.New(name, pair, pick.Options{Source: source(o.Seed, streamPicker), Salt: o.Name})
	if err != nil {
		return PickerRow{}, err
	}
	m, err := pick.Measure(p, pair, stream(n, o.Seed))
	if err != nil {
		return PickerRow{}, fmt.Errorf("picker %s: %w", name, err)
	}
	load := m.Loads[canaryBackend]
	share := float64(at.Canary) / float64(at.Stable+at.Canary) * 100
	return PickerRow{
		Picker: name, Share: share, Requests: n, Canary: int(load.Requests),
		LongestRun: int(load.LongestRun), LargestBurst: int(load.BusiestSecond),
		Deviation: math.Abs(float64(load.Requests)/float64(n)*100 - share),
	}, nil
}

// stream is the same n requests of different users every time.
func stream(n int, seed uint64) iter.Seq[pick.Request] {
	return func(yield func(pick.Request) bool) {
		keys := source(seed, streamSample)
		for i := range n {
			if !yield(pick.Request{At: int64(i) * sampleMillis / int64(n), Key: keys.Uint64()}) {
				return
			}
		}
	}
}
