// Package traffic says whether the requests that a gateway has counted are divided as
// the weights say. It is pure.
//
// A gateway that draws a backend for each request gives the canary a binomial number of
// them; one that takes turns smoothly deviates by less. What is outside of what chance
// allows therefore has a cause: weights that the gateway ignores, another route that
// sends traffic to the same Services, sessions that stick to a backend.
package traffic

import (
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/weightedrollout/weightedrollout/internal/weights"
)

const (
	// level is the chance, per look, that traffic is found to differ that does not. The
	// counts are looked at every 15 s, at each of the 20 or so shares of a rollout; a look
	// has most of its requests in common with the one before, so that half an hour of
	// them alarms some ten times as often as one. At 1 in 100,000 a rollout with the
	// default plan alarms wrongly less than once in 1,000 times: the tests compute it. That
	// leaves room for soaks of days.
	level = 1e-5
	// enough is the number of requests beyond which more do not make the bounds narrower.
	// They are within a tenth of a point then, and the distribution is computed exactly.
	enough = 1e6
	// material is the part of the smaller of the two parts that does not matter: what whole
	// basis points round away of a share, retries, and a gateway that is sampled while it
	// works, move a count by less than that.
	material = 1.0 / 20
	// stragglers are requests to a track without any share that are of no concern: they
	// were under way when the share was confirmed. Of many requests, straying is the part.
	stragglers = 5
	straying   = 1e-3

	// basisPoints are in a whole.
	basisPoints = float64(weights.ShareAll)
	// slack absorbs what a number loses that is divided and multiplied again.
	slack = 1e-6
)

// State is whether the traffic is divided as the weights say.
type State string

const (
	// Matches says that the traffic is divided as the weights say, as exactly as the
	// number of requests can tell.
	Matches State = "Matches"
	// Differs says that chance does not explain how the traffic is divided.
	Differs State = "Differs"
	// TooFew says that there are too few requests to tell the share from another that is
	// twice as large, or half as large.
	TooFew State = "TooFew"
)

// Finding is what the requests say of a share.
type Finding struct {
	// State sums it up.
	State State
	// Observed is the canary's part of the requests, to the nearest basis point; 0 if
	// there are none.
	Observed weights.Share
	// Low and High bound the canary's part of so many requests, if they are divided as
	// the weights say.
	Low, High weights.Share
}

// Judge compares the requests of the two tracks with the canary's share. The requests
// must all have come since the gateway took the share; negative numbers count as 0. The
// share is the one that the weights in the route stand for: with a small sum of weights
// it can be less than what the plan says. A share outside of 0 to 100 % is clamped.
//
// The bounds are exact ones of a binomial number (C. J. Clopper, E. S. Pearson, "The use
// of confidence or fiducial limits illustrated in the case of the binomial", Biometrika
// 26, 1934), at a level of 1 in 100,000 for both sides together, about a share that may be
// off by a twentieth of itself or of what it leaves to stable, whichever is less. The
// traffic differs if it is out of bounds, of however few requests. It matches if it is
// within, and the bounds exclude a share twice or half as large: that takes about 7,600
// requests at 1 %, 1,500 at 5 %, 710 at 10 %, 330 at 20 % and 94 at 50 %. See Needed.
//
// A gateway that ignores the weights, and gives each track one request in two, is found in
// 999 of 1,000 cases with 30 requests at 1 %, 45 at 5 %, 70 at 10 % and 150 at 20 %.
//
// At 0 and at 100 % some stragglers do not count: 5 requests, and one in 1,000.
func Judge(canary, stable int64, share weights.Share) Finding {
	x, y := math.Max(0, float64(canary)), math.Max(0, float64(stable))
	n := x + y
	if n == 0 {
		return Finding{State: TooFew, Low: weights.ShareNone, High: weights.ShareAll}
	}
	share = share.Clamp()
	part, total := x/n, math.Min(n, enough)
	low, high := allowed(share, total)
	f := Finding{
		State:    Matches,
		Observed: weights.Share(math.Round(part * basisPoints)),
		Low:      weights.Share(math.Floor(low*basisPoints + slack)),
		High:     weights.Share(math.Ceil(high*basisPoints - slack)),
	}
	switch {
	case part*total < low*total-slack || part*total > high*total+slack:
		f.State = Differs
	case vague(share, low, high):
		f.State = TooFew
	}
	return f
}

// Needed is about how many requests of both tracks together it takes to tell that they
// are divided as the weights say, to two digits.
func Needed(share weights.Share) int64 {
	share = share.Clamp()
	tells := func(n int64) bool {
		low, high := allowed(share, float64(n))
		return !vague(share, low, high)
	}
	n := int64(1)
	for n < enough && !tells(n) {
		n *= 2
	}
	for step := n / 4; step >= 1; step /= 2 {
		if tells(n - step) {
			n -= step
		}
	}
	digits := int64(1)
	for n/digits >= 100 {
		digits *= 10
	}
	return (n + digits - 1) / digits * digits
}

// allowed returns the least and the largest part of n requests that the canary can have.
// n is a whole number from 1 to enough.
func allowed(share weights.Share, n float64) (low, high float64) {
	p := float64(share) / basisPoints
	off, astray := material*math.Min(p, 1-p), 0.0
	if share == weights.ShareNone || share == weights.ShareAll {
		off, astray = straying, stragglers
	}
	low, high = math.Max(0, p-off), math.Min(1, p+off)
	if low > 0 {
		low = math.Max(0, 1-(most(n, 1-low)+astray)/n)
	}
	if high < 1 {
		high = math.Min(1, (most(n, high)+astray)/n)
	}
	return low, high
}

// vague says whether a share twice or half as large is within the bounds. Of a canary
// with more than half of the traffic it is stable's part that is meant. A share of
// nothing is told from 1 %.
func vague(share weights.Share, low, high float64) bool {
	p := float64(share) / basisPoints
	if p > 0.5 {
		p, low, high = 1-p, 1-high, 1-low
	}
	if p == 0 {
		return high >= 0.01
	}
	return low <= p/2 || high >= 2*p
}

// most returns the largest number of n requests that chance allows a backend with the
// part p: the largest that is seen, or exceeded, in half of level of all cases.
func most(n, p float64) float64 {
	low, high := math.Floor(n*p), n+1 // low is allowed, high is not
	for high-low > 1 {
		if k := math.Floor((low + high) / 2); atLeast(k, n, p) >= level/2 {
			low = k
		} else {
			high = k
		}
	}
	return low
}

// atLeast returns the chance of at least k successes, 0 < k <= n, in n trials with
// success probability p: the upper tail of the binomial distribution is the regularised
// incomplete beta function I(p; k, n-k+1) (M. Abramowitz, I. A. Stegun, Handbook of
// Mathematical Functions, 26.5.24).
func atLeast(k, n, p float64) float64 { return mathext.RegIncBeta(k, n-k+1, p) }
