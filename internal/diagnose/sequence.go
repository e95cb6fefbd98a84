package diagnose

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mathext"
)

const (
	// fewestWindows is the number of windows without which nothing is said of bursts, and
	// fewestForPeriod that without which nothing is said of a period.
	fewestWindows   = 8
	fewestForPeriod = 24
	// busy is the expected variance of the canary's requests in a window from which on
	// their distribution is near enough to a normal one.
	busy = 5
	// doubt is the chance that random draws are taken for bursts, or for a period.
	doubt = 1e-4
	// burst is how many times as uneven as random draws a sequence must be to matter.
	burst = 2
)

// Sequence asks whether the requests of a track come in bursts, or with a period. It
// looks at whole windows: what goes on within one does not show.
func Sequence(in Input) Finding {
	f := &Finding{Question: "Are the requests of each backend spread evenly over time?"}
	s := summarize(in.Windows)
	if s.n < fewestWindows {
		why := fmt.Sprintf("it takes %d windows at one share to see bursts, and there are %d", fewestWindows, s.n)
		if s.n == 0 && in.NoWindows != "" {
			why = in.NoWindows
		}
		return f.concludes(CannotTell, "%s", why)
	}
	f.number("windows", "%d of %s, with %s", s.n, s.length, many(int64(s.requests+0.5), "request"))
	unseen := in.unseen(f, s)
	if s.part <= 0 || s.part >= 1 {
		return f.concludes(CannotTell, "one track has all requests, so there is nothing to spread")
	}
	if s.variance < busy {
		return f.concludes(CannotTell, "the lighter track has too few requests in a window (%s on average) to tell bursts from chance", short(s.requests/float64(s.n)*math.Min(s.part, 1-s.part)))
	}
	f.number("unevenness", "%s times that of random draws (below 1: the gateway takes turns)", short(s.dispersion))
	period, correlation := s.period()
	if period > 0 {
		f.number("period", "every %s or so (correlation %s)", time.Duration(period)*s.length, short(correlation))
	}
	if !s.bursts() && period == 0 {
		return f.concludes(OK, "no bursts from window to window%s", unseen)
	}
	in.spread(f, s)
	if period > 0 {
		return f.concludes(Problem, "the canary's part of the requests goes up and down every %s or so", time.Duration(period)*s.length)
	}
	return f.concludes(Problem, "the canary's part of the requests changes from window to window, %s times as much as random draws make it", short(s.dispersion))
}

// spread lists what makes a sequence uneven.
func (in Input) spread(f *Finding, s summary) {
	if cycle := in.cycle(s); cycle >= s.length {
		f.remedy(fmt.Sprintf("naive weighted round robin gives each backend its whole weight in a row; a cycle lasts about %s here", cycle.Round(time.Second)),
			"use a gateway that takes turns smoothly or draws at random, or weights with a smaller sum")
	}
	f.remedy("sessions stick to a backend, so that a few busy clients decide",
		"switch off session persistence, or cookies of the gateway's own, while the rollout runs")
	f.remedy("another route sends requests to the same Services at times",
		"look for other routes, and for jobs, that use these Services")
}

// unseen says which bursts windows are too long to show.
func (in Input) unseen(f *Finding, s summary) string {
	cycle := in.cycle(s)
	if cycle <= 0 {
		return ""
	}
	f.number("cycle", "%s by the weights, about %s at this rate", many(in.turns(), "request"), cycle.Round(time.Millisecond))
	if cycle >= 2*s.length {
		return ""
	}
	return "; a cycle of these weights is shorter than two windows, so bursts within it show in the gateway's access log only"
}

// turns is how many requests it takes until a gateway that takes turns begins anew: the
// sum of the weights, divided by what they have in common.
func (in Input) turns() int64 {
	if len(in.Rules) == 0 {
		return 0
	}
	stable, canary := max(in.Rules[0].Stable, 0), max(in.Rules[0].Canary, 0)
	a, b := stable, canary
	for b != 0 {
		a, b = b, a%b
	}
	if a == 0 || stable > math.MaxInt64/2 || canary > math.MaxInt64/2 {
		return 0
	}
	return (stable + canary) / a
}

func (in Input) cycle(s summary) time.Duration {
	if !(s.requests > 0) {
		return 0
	}
	whole := float64(s.length) * float64(s.n)
	return time.Duration(math.Min(float64(in.turns())*whole/s.requests, float64(24*time.Hour)))
}

// summary is what the windows have in common.
type summary struct {
	n          int           // windows with requests
	length     time.Duration // of the first
	requests   float64       // of both tracks
	part       float64       // the canary's
	variance   float64       // of the canary's requests in a window, by random draws, on average
	dispersion float64       // observed variance by that of random draws
	residuals  []float64     // by window, in standard deviations
	unbroken   bool          // every window begins where the one before ends
}

func summarize(windows []Window) summary {
	s := summary{unbroken: true}
	var canary float64
	var end time.Time
	for _, w := range windows {
		if !(w.Canary+w.Stable > 0) {
			s.unbroken = false
			continue
		}
		if s.n == 0 {
			s.length = w.End.Sub(w.Start)
		} else if !w.Start.Equal(end) {
			s.unbroken = false
		}
		end = w.End
		s.n++
		canary, s.requests = canary+w.Canary, s.requests+w.Canary+w.Stable
	}
	if s.n < 2 {
		return s
	}
	s.part = canary / s.requests
	s.variance = s.requests / float64(s.n) * s.part * (1 - s.part)
	var sum float64
	for _, w := range windows {
		n := w.Canary + w.Stable
		if !(n > 0) {
			continue
		}
		r := (w.Canary - n*s.part) / math.Sqrt(math.Max(n*s.part*(1-s.part), 1e-9))
		s.residuals = append(s.residuals, r)
		sum += r * r
	}
	s.dispersion = sum / float64(s.n-1)
	return s
}

// bursts says whether the windows differ more than random draws make them: Pearson's
// chi-squared test of one proportion in all of them.
func (s summary) bursts() bool {
	freedom := float64(s.n - 1)
	return s.dispersion >= burst && mathext.GammaIncRegComp(freedom/2, s.dispersion*freedom/2) < doubt
}

// period returns the number of windows after which the sequence is most like itself, and
// how much it is, from 0 to 1; 0 if that can be chance. The correlation of random
// residuals has a variance of 1/n (M. S. Bartlett, "On the theoretical specification and
// sampling properties of autocorrelated time-series", 1946).
func (s summary) period() (windows int, correlation float64) {
	if s.n < fewestForPeriod || !s.unbroken || !s.bursts() {
		return 0, 0
	}
	most := s.n / 3
	var power float64
	for _, r := range s.residuals {
		power += r * r
	}
	limit := math.Sqrt2 * math.Erfcinv(2*doubt/float64(most)) / math.Sqrt(float64(s.n))
	for lag := 2; lag <= most; lag++ {
		var sum float64
		for i := lag; i < s.n; i++ {
			sum += s.residuals[i] * s.residuals[i-lag]
		}
		if c := sum / power; c > limit && c > correlation {
			windows, correlation = lag, c
		}
	}
	return windows, correlation
}
