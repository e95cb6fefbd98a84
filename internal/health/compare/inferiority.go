package compare

import "math"

const bets = 6

// odds are the odds ratios that are bet on: how many times as often as stable's the
// canary's requests are bad. In trials three to six of them, spread like these, were
// about equal. With a first one of 1.5 the slowest tenth of canaries that were 1.3 times
// as bad took twice as many blocks. A ratio above the last is found by the last almost
// as soon.
var odds = [bets]float64{1.25, 1.6, 2.2, 3.5, 6, 12}

const (
	// startCash is the part of the wealth that is not bet at the start.
	startCash = 0.25
	startBet  = (1 - startCash) / bets
	// moved is the part of the cash that is put into the bets before each block, and
	// of the bets that is taken out. The larger it is, the sooner a canary is found
	// that turns bad after a few blocks, and the less cash is left for one that turns
	// bad after hundreds, since bets on a good canary lose nearly all of it. In trials
	// with turns after 0 to 400 blocks, 1/500 to 1/100 were about equal, and 1/50
	// took a quarter longer after 400.
	moved = 0.005

	// maxWealth is the largest wealth: what goes beyond is thrown away.
	maxWealth = 1e9
	// minLog is the log below which a part of the wealth is as good as lost.
	minLog = -10_000
)

// Inferiority is the evidence that the canary is worse than stable, or worse by more
// than a margin. It is a value, and comparable; Add returns the next one. The zero
// Inferiority has no margin and has seen nothing.
//
// Its wealth is divided among bets on several odds ratios, and cash. Without cash, a
// canary that turns bad after a long good time would be found late or never: its bets
// would have been lost. So before each block a part of the cash goes into the bets,
// and the same part of the bets back (M. Herbster, M. K. Warmuth, "Tracking the best
// expert", Machine Learning 32, 1998). What is moved is decided before the block is
// seen, so that as long as the canary is not worse the wealth is at most 1 on average.
type Inferiority struct {
	margin float64
	// stable is what is remembered of stable's requests. It is kept for a margin only.
	stable Counts
	// cash and bets are logs of the parts of the wealth, each relative to its start.
	cash float64
	bets [bets]float64
}

// NewInferiority returns the evidence, so far none, that the canary's rate of bad
// requests is above stable's by more than margin, a part from 0 to 1. Below 0 and NaN
// are taken as 0: worse is then any difference. By more than 1 no canary is worse.
func NewInferiority(margin float64) Inferiority {
	if !(margin > 0) {
		return Inferiority{}
	}
	return Inferiority{margin: min(margin, 1)}
}

// Margin is by how much the canary must be worse, a part from 0 to 1.
func (i Inferiority) Margin() float64 { return i.margin }

// Add returns the evidence with one more block. Blocks must not overlap. A block in
// which a track had less than one request, or that is not a number, changes nothing.
func (i Inferiority) Add(b Block) Inferiority {
	t, ok := b.table()
	if !ok {
		return i
	}
	gains, ok := i.gains(t)
	if ok {
		i = i.divided()
		for k, gain := range gains {
			i.bets[k] += gain
		}
		i = i.bounded()
	}
	if i.margin > 0 {
		i.stable = i.stable.remember(t.badA, t.totalA, memory(i.margin))
	}
	return i
}

// gains returns the log by which each bet is multiplied, and whether there are bets on
// this block. With a margin the alternative needs stable's rate, so that the first
// block is only looked at.
func (i Inferiority) gains(t table) (gains [bets]float64, ok bool) {
	if i.margin == 0 {
		for k, psi := range odds {
			gains[k] = t.conditional(psi)
		}
		return gains, true
	}
	rate := i.stable.rate()
	if i.stable.Total == 0 || rate+i.margin >= 1 {
		return gains, false
	}
	for k, psi := range odds {
		gains[k] = stake(t.ratio(rate, withOdds(rate+i.margin, psi), i.margin))
	}
	return gains, true
}

// divided moves wealth between the cash and the bets.
func (i Inferiority) divided() Inferiority {
	const perBet = startCash / (startBet * bets)
	cash, all := i.cash, i.bets[0]
	for _, bet := range i.bets[1:] {
		all = logAdd(all, bet)
	}
	i.cash = logAdd(math.Log1p(-moved)+cash, math.Log(moved*startBet/startCash)+all)
	for k, bet := range i.bets {
		i.bets[k] = logAdd(math.Log1p(-moved)+bet, math.Log(moved*perBet)+cash)
	}
	return i
}

// bounded throws away what is above the largest wealth, which can be no gain, and
// stops logs from falling forever.
func (i Inferiority) bounded() Inferiority {
	excess := max(0, i.log()-math.Log(maxWealth))
	i.cash = max(i.cash-excess, minLog)
	for k := range i.bets {
		i.bets[k] = max(i.bets[k]-excess, minLog)
	}
	return i
}

// log is the log of the wealth.
func (i Inferiority) log() float64 {
	sum := i.cash + math.Log(startCash)
	for _, bet := range i.bets {
		sum = logAdd(sum, bet+math.Log(startBet))
	}
	return sum
}

// Wealth is the evidence: what has become of a wealth of 1 that was bet on the canary
// being worse. It is an e-value, 1 at the start and at most 1e9.
func (i Inferiority) Wealth() float64 {
	sum := startCash * math.Exp(i.cash)
	for _, bet := range i.bets {
		sum += startBet * math.Exp(bet)
	}
	return min(sum, maxWealth)
}

// Proven says whether the canary is worse, now: the wealth is at least 1/alpha. If it
// is not worse, then the chance that this is ever so is at most alpha, however often
// one looks. Alpha is above 0 and below 1; with any other nothing is proven.
func (i Inferiority) Proven(alpha float64) bool { return proven(i.Wealth(), alpha) }

// Combined is the evidence of several streams that the canary is worse in at least
// one: the average of their wealths, which is an e-value whatever their dependence.
// That of none is 1.
func Combined(list ...Inferiority) float64 {
	if len(list) == 0 {
		return 1
	}
	sum := 0.0
	for _, i := range list {
		sum += i.Wealth()
	}
	return sum / float64(len(list))
}

func proven(wealth, alpha float64) bool { return alpha > 0 && alpha < 1 && wealth >= 1/alpha }

// logAdd returns log(exp(x) + exp(y)).
func logAdd(x, y float64) float64 {
	if x < y {
		x, y = y, x
	}
	return x + math.Log1p(math.Exp(y-x))
}
