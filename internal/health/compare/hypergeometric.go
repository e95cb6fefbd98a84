package compare

import "math"

// conditional returns the log of the e-value of a block against the null that the
// canary's requests are not bad more often than stable's, betting on the given odds
// ratio psi > 1.
//
// All that is looked at is how many of the bad requests were the canary's. If it is
// like stable, that number Y is hypergeometric, given the totals, whatever the rate
// of bad ones is: it need not be known, and may change from block to block. The
// e-value is psi^y / E[psi^Y], the likelihood ratio of Fisher's noncentral
// hypergeometric distribution (R. A. Fisher, "The logic of inductive inference",
// Journal of the Royal Statistical Society 98, 1935) with psi against 1, so its mean
// is 1. For a canary that is better it is less: Y is then smaller in the likelihood
// ratio order, and psi^y rises with y.
func (t table) conditional(psi float64) float64 {
	h := draw{marked: t.badA + t.badB, drawn: t.totalB, left: t.totalA}
	return t.badB*math.Log(psi) - h.logMean(psi)
}

// draw is a hypergeometric distribution: so many of drawn + left requests are marked,
// and Y counts those among the drawn ones.
type draw struct{ marked, drawn, left float64 }

// logMean returns log E[psi^Y].
//
// The terms of the sum rise to one peak and fall. It is summed from the peak to where
// the terms no longer count. Where the peak is wide, only each stride-th term is
// summed: the generating function of a hypergeometric distribution has real zeros
// only, so that it is the distribution of a sum of independent indicators, also after
// weighing by psi^Y, and then its characteristic function at an angle u is at most
// exp(-2 sd² sin²(u/2)). With strides of a third of the standard deviation sd the part
// that is missed is below 1e-30. So the cost does not grow with the counts. What is
// left is rounding: below 1e-9 up to a million requests, and about 1e-6 at 1e9.
func (d draw) logMean(psi float64) float64 {
	low, high := max(0, d.marked-d.left), min(d.marked, d.drawn)
	logPsi := math.Log(psi)
	if low == high {
		return low * logPsi
	}
	peak := min(max(d.peak(psi), low), high)
	stride := max(1, math.Floor(d.deviation(peak)/3))
	sum := 1 + d.side(psi, peak, stride, high) + d.side(psi, peak, -stride, low)
	return math.Log(sum*math.Abs(stride)) + d.logWays(peak) + peak*logPsi - logChoose(d.drawn+d.left, d.marked)
}

// side sums the terms beyond the peak on one side, in parts of the one at the peak.
// The sign of the stride says which side.
func (d draw) side(psi, peak, stride, end float64) float64 {
	const negligible = 1e-18
	sum, term := 0.0, 1.0
	steps := math.Floor((end - peak) / stride)
	for k := 1.0; k <= steps && (term > negligible || k < 2); k++ {
		y := peak + k*stride
		switch stride {
		case 1:
			term *= psi * d.ratio(y)
		case -1:
			term /= psi * d.ratio(y+1)
		default:
			term = math.Exp(d.logWays(y) - d.logWays(peak) + (y-peak)*math.Log(psi))
		}
		sum += term
	}
	return sum
}

// ratio is that of the probability of y to the one of y-1.
func (d draw) ratio(y float64) float64 {
	return (d.drawn - y + 1) * (d.marked - y + 1) / (y * (d.left - d.marked + y))
}

// peak returns the y at which psi^y times the probability of y is highest: the last
// one at which it still rises, which is where psi times the ratio is 1.
func (d draw) peak(psi float64) float64 {
	a := psi - 1
	b := psi*(d.drawn+d.marked+2) + d.left - d.marked
	c := psi * (d.drawn + 1) * (d.marked + 1)
	return math.Floor(2 * c / (b + math.Sqrt(max(0, b*b-4*a*c))))
}

// deviation is about the standard deviation around the peak. It is at most what it is
// with many of each kind, so a stride is never too wide.
func (d draw) deviation(peak float64) float64 {
	return 1 / math.Sqrt(1/(peak+1)+1/(d.marked-peak+1)+1/(d.drawn-peak+1)+1/(d.left-d.marked+peak+1))
}

// logWays is the log of the number of ways to draw y marked ones.
func (d draw) logWays(y float64) float64 {
	return logChoose(d.drawn, y) + logChoose(d.left, d.marked-y)
}

// logChoose returns the log of the number of ways to choose k of n. It is composed
// of entropies and not of log factorials, which are larger and hence rounded more.
func logChoose(n, k float64) float64 {
	r := n - k
	if k == 0 || r == 0 {
		return 0
	}
	return k*math.Log(n/k) - r*math.Log1p(-k/n) +
		0.5*math.Log(n/(2*math.Pi*k*r)) + stirling(n) - stirling(k) - stirling(r)
}

// stirling is what Stirling's approximation of log n! lacks, for n from 1.
func stirling(n float64) float64 {
	if n < 16 {
		whole, _ := math.Lgamma(n + 1)
		return whole - (n+0.5)*math.Log(n) + n - 0.5*math.Log(2*math.Pi)
	}
	s := 1 / (n * n)
	return (1.0/12 - s*(1.0/360-s*(1.0/1260-s*(1.0/1680)))) / n
}
