package diagnose

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// through returns windows of a minute, with the canary's requests of so many.
func through(n int, requests float64, canary func(i int) float64) func(*Input) {
	return func(in *Input) {
		start := time.Unix(1_800_000_000, 0).UTC()
		in.Windows = nil
		for i := range n {
			at := start.Add(time.Duration(i) * time.Minute)
			c := canary(i)
			in.Windows = append(in.Windows, Window{Start: at, End: at.Add(time.Minute), Canary: c, Stable: requests - c})
		}
	}
}

// draws is what a gateway that draws at random gives the canary.
func draws(random *rand.Rand, requests int, part float64) float64 {
	n := 0.0
	for range requests {
		if random.Float64() < part {
			n++
		}
	}
	return n
}

func TestSequence(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct {
		in   Input
		want Verdict
		says []string
	}{
		"turns":      {atTwenty(through(30, 1000, func(int) float64 { return 200 })), OK, []string{"no bursts from window to window; a cycle of these weights is shorter than two windows", "5 requests by the weights, about 300ms", "0 times that of random draws"}},
		"draws":      {atTwenty(through(60, 500, func(int) float64 { return draws(random, 500, 0.2) })), OK, []string{"60 of 1m0s, with 30000 requests"}},
		"bursts":     {atTwenty(through(12, 1000, func(i int) float64 { return []float64{100, 380, 120, 90, 330, 180}[i*i%6] })), Problem, []string{"changes from window to window", "sessions stick"}},
		"a period":   {atTwenty(through(60, 1000, func(i int) float64 { return 200 + 100*math.Sin(2*math.Pi*float64(i)/6) })), Problem, []string{"goes up and down every 6m0s", "correlation 0.9"}},
		"too short":  {atTwenty(through(7, 1000, func(int) float64 { return 200 })), CannotTell, []string{"it takes 8 windows at one share to see bursts, and there are 7"}},
		"no windows": {atTwenty(func(in *Input) { in.NoWindows = "the status has none" }), CannotTell, []string{"the status has none"}},
		"silence":    {atTwenty(through(20, 0, func(int) float64 { return 0 })), CannotTell, []string{"there are 0"}},
		"one track":  {atTwenty(through(20, 100, func(int) float64 { return 100 })), CannotTell, []string{"one track has all requests"}},
		"few":        {atTwenty(through(20, 10, func(i int) float64 { return float64(i % 5) })), CannotTell, []string{"too few requests in a window (2 on average)"}},
		// 617 of 5,000 requests in a row, at 1,000 per window.
		"naive, with a long cycle": {
			atTwenty(through(60, 1000, func(i int) float64 { return float64(i%5/4) * 617 }), func(in *Input) {
				in.Rules[0].Stable, in.Rules[0].Canary = 8766, 1234
			}),
			Problem, []string{"5000 requests by the weights", "naive weighted round robin gives each backend its whole weight in a row; a cycle lasts about 5m0s", "goes up and down every 5m0s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := Sequence(c.in)
			if f.Verdict != c.want {
				t.Errorf("verdict %s, want %s", f.Verdict, c.want)
			}
			for _, want := range c.says {
				if !strings.Contains(text(f), want) {
					t.Errorf("%q is not in\n%s", want, text(f))
				}
			}
			if (f.Verdict == Problem) != (len(f.Remedies) > 0) {
				t.Errorf("verdict %s with %d remedies", f.Verdict, len(f.Remedies))
			}
		})
	}
}

// A gateway that draws at random is not taken for one that sends bursts.
func TestRandomDrawsAreNoBursts(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	wrong := 0
	for range 2000 {
		in := atTwenty(through(30, 60, func(int) float64 { return draws(random, 60, 0.2) }))
		if Sequence(in).Verdict == Problem {
			wrong++
		}
	}
	if wrong > 2 {
		t.Errorf("%d of 2000 sequences of random draws are taken for bursts", wrong)
	}
}

// Whatever the windows say, there is an answer.
func TestPropertySequence(t *testing.T) {
	number := rapid.OneOf(rapid.Float64Range(0, 1000), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), -1, 1e300}))
	rapid.Check(t, func(t *rapid.T) {
		in := atTwenty(through(rapid.IntRange(0, 70).Draw(t, "windows"), 0, func(int) float64 { return 0 }))
		for i := range in.Windows {
			in.Windows[i].Canary, in.Windows[i].Stable = number.Draw(t, "canary"), number.Draw(t, "stable")
		}
		in.Rules[0].Stable, in.Rules[0].Canary = rapid.Int64().Draw(t, "stable"), rapid.Int64().Draw(t, "canary")
		if f := Sequence(in); f.Verdict == "" || f.Says == "" {
			t.Fatalf("%+v", f)
		}
	})
}
