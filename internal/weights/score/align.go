package score

import (
	"fmt"
	"math"
	"time"
)

// maxBuckets bounds what Align allocates.
const maxBuckets = 1_000_000

// Align brings a signal to a period, so that it can be combined with signals of other
// periods: a load per second with an error rate per minute makes a score swing. The
// time from start on is cut into n buckets of one period each, which hold their first
// moment and not their last. A bucket's value is the mean of the points in it. A bucket
// without any is missing (NaN), and not 0.
//
// The points may come in any order. Points outside the buckets and missing values are
// left out. It fails on a period that is not above 0, and on n that is not from 1 to a
// million or reaches further than a time.Duration can.
func Align(points []Point, start time.Time, period time.Duration, n int) ([]float64, error) {
	if period <= 0 {
		return nil, fmt.Errorf("the period is %v; it must be above 0", period)
	}
	if n < 1 || n > maxBuckets {
		return nil, fmt.Errorf("%d buckets were asked for; take 1 to %d", n, maxBuckets)
	}
	if period > math.MaxInt64/time.Duration(n) {
		return nil, fmt.Errorf("%d buckets of %v reach too far; take fewer or shorter ones", n, period)
	}
	means, counts := make([]float64, n), make([]float64, n)
	for _, p := range points {
		since := p.At.Sub(start)
		if since < 0 || since/period >= time.Duration(n) || !finite(p.Value) {
			continue
		}
		i := since / period
		counts[i]++
		// The mean so far moves towards the value. Divided one by one, nothing overflows.
		means[i] += p.Value/counts[i] - means[i]/counts[i]
	}
	for i := range means {
		if counts[i] == 0 {
			means[i] = math.NaN()
		}
	}
	return means, nil
}
