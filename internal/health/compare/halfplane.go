package compare

import "math"

// ratio returns the log of the e-value of a block against a null that is a
// half-plane of rates, bounded by: the canary's rate is stable's plus margin. The null
// is the side on which the alternative, the rates a and b of stable and the canary,
// does not lie. An alternative on the boundary bets nothing: the result is 0.
//
// The e-value is the likelihood ratio of the alternative to the point of the null that
// is nearest to it in relative entropy, weighted by the totals (R. Turner, A. Ly,
// P. Grünwald, "Generic E-variables for exact sequential k-sample tests that allow for
// optional stopping", Journal of Statistical Planning and Inference 230, 2024;
// R. Turner, P. Grünwald, "Exact anytime-valid confidence intervals for contingency
// tables and beyond", arXiv:2203.09785). Its mean is at most 1 everywhere in the null:
// with the nearest point (p, q) and true rates (x, y), the mean is
//
//	(1 + (x-p)(a-p)/(p(1-p)))^totalA (1 + (y-q)(b-q)/(q(1-q)))^totalB,
//
// whose log is at most totalA (x-p)(a-p)/(p(1-p)) + totalB (y-q)(b-q)/(q(1-q)). That
// is the derivative of the relative entropy from (p, q) towards (x, y), with the sign
// turned; since the null is convex and (p, q) the nearest point, it is not above 0.
//
// It needs 0 < a, b < 1 and 0 <= margin < 1.
func (t table) ratio(a, b, margin float64) float64 {
	p := t.nearest(a, b, margin)
	return gain(t.badA, t.totalA, a, p) + gain(t.badB, t.totalB, b, p+margin)
}

// gain is the log likelihood ratio of two rates.
func gain(bad, total, rate, null float64) float64 {
	return bad*math.Log(rate/null) + (total-bad)*(math.Log1p(-rate)-math.Log1p(-null))
}

// nearest returns stable's rate at that point of the boundary which is nearest to the
// alternative: where the derivative of
//
//	totalA KL(a || p) + totalB KL(b || p+margin)
//
// is 0. The sum is convex, and its derivative rises from below 0 to above 0 between
// the points that lie straight under and beside the alternative.
func (t table) nearest(a, b, margin float64) float64 {
	low, high := max(min(a, b-margin), 0), min(max(a, b-margin), 1-margin)
	for range 200 {
		p := low + (high-low)/2
		if p <= low || p >= high {
			break
		}
		q := p + margin
		if t.totalA*(p-a)/(p*(1-p))+t.totalB*(q-b)/(q*(1-q)) > 0 {
			high = p
		} else {
			low = p
		}
	}
	// The end at which the derivative is finite: neither 0 nor 1-margin.
	if low > 0 {
		return low
	}
	return high
}

// staked is the part of the wealth that is bet on a ratio; the rest is kept. The rates
// in the alternative are guessed from earlier blocks, and where they change all of a
// sudden for both tracks, a ratio can be lost many times over in one block; so no
// more than this part is. Of the growth through small gains, which is in proportion
// to 2 staked - staked², it costs a sixteenth.
const staked = 0.75

// stake returns the log of what is left of a wealth of 1 of which a part is bet.
func stake(log float64) float64 {
	if log > 0 {
		return log + math.Log(staked+(1-staked)*math.Exp(-log))
	}
	return math.Log1p(staked * math.Expm1(log))
}

// memory is how many requests the rates of earlier blocks are taken from, for a
// margin: enough to know a rate to a fraction of the margin, and few enough to follow
// a bad hour.
func memory(margin float64) float64 { return 200 / margin }

// withOdds returns the rate whose odds are psi times those of the given rate.
func withOdds(rate, psi float64) float64 { return psi * rate / (1 + (psi-1)*rate) }
