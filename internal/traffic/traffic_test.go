package traffic

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights"
)

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		canary, stable int64
		share          weights.Share
		want           Finding
	}{
		"nothing":                          {0, 0, 2000, Finding{TooFew, 0, 0, 10000}},
		"exactly":                          {200, 800, 2000, Finding{Matches, 2000, 1370, 2690}},
		"chance":                           {240, 760, 2000, Finding{Matches, 2400, 1370, 2690}},
		"the last that chance allows":      {269, 731, 2000, Finding{Matches, 2690, 1370, 2690}},
		"one more":                         {270, 730, 2000, Finding{Differs, 2700, 1370, 2690}},
		"the fewest that chance allows":    {137, 863, 2000, Finding{Matches, 1370, 1370, 2690}},
		"one fewer":                        {136, 864, 2000, Finding{Differs, 1360, 1370, 2690}},
		"few, and they tell nothing":       {20, 80, 2000, Finding{TooFew, 2000, 400, 4000}},
		"few, and they do":                 {50, 50, 2000, Finding{Differs, 5000, 400, 4000}},
		"1 % of 5,000":                     {50, 4950, 100, Finding{TooFew, 100, 40, 174}},
		"1 % of 10,000":                    {100, 9900, 100, Finding{Matches, 100, 55, 153}},
		"1 %, and all go to stable":        {0, 5000, 100, Finding{Differs, 0, 40, 174}},
		"99 %":                             {9900, 100, 9900, Finding{Matches, 9900, 9847, 9945}},
		"20 %, and the canary has 80":      {800, 200, 2000, Finding{Differs, 8000, 1370, 2690}},
		"a twentieth more does not matter": {210_000, 790_000, 2000, Finding{Matches, 2100, 1882, 2119}},
		"a tenth more does":                {220_000, 780_000, 2000, Finding{Differs, 2200, 1882, 2119}},
		"no more than a million count":     {210_000_000, 790_000_000, 2000, Finding{Matches, 2100, 1882, 2119}},
		"0 %":                              {0, 10_000, 0, Finding{Matches, 0, 0, 32}},
		"0 %, with stragglers":             {5, 1_995, 0, Finding{Matches, 25, 0, 80}},
		"0 %, with more":                   {50, 1_950, 0, Finding{Differs, 250, 0, 80}},
		"0 %, a few requests":              {5, 100, 0, Finding{TooFew, 476, 0, 762}},
		"100 %":                            {10_000, 5, 10_000, Finding{Matches, 9995, 9968, 10_000}},
		"100 %, and half goes to stable":   {5_000, 5_000, 10_000, Finding{Differs, 5000, 9968, 10_000}},
		"numbers that no gateway counts":   {-5, math.MaxInt64, -7, Finding{Matches, 0, 0, 12}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Judge(c.canary, c.stable, c.share)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNeeded(t *testing.T) {
	for share, want := range map[weights.Share]int64{
		0: 1500, 1: 770_000, 100: 7600, 500: 1500, 1000: 710, 2000: 330, 5000: 94, 9000: 710, 10_000: 1500,
	} {
		if got := Needed(share); got != want {
			t.Errorf("Needed(%s) is %d, want %d", share, got, want)
		}
	}
}

// binomial returns the chance of each number of n requests to go to a canary with the
// part p.
func binomial(n int, p float64) []float64 {
	logChoose := func(k int) float64 {
		all, _ := math.Lgamma(float64(n + 1))
		some, _ := math.Lgamma(float64(k + 1))
		rest, _ := math.Lgamma(float64(n - k + 1))
		return all - some - rest
	}
	chances := make([]float64, n+1)
	for k := range chances {
		chances[k] = math.Exp(logChoose(k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	}
	return chances
}

// alarms is the exact chance that traffic with just the right share is found to differ
// in one of so many looks, each at all requests so far. It follows the chances of all
// numbers of canary requests that have not alarmed yet.
func alarms(share weights.Share, perLook, looks int) float64 {
	step := binomial(perLook, float64(share)/basisPoints)
	now, alarm := []float64{1}, 0.0
	for look := 1; look <= looks; look++ {
		n := float64(look * perLook)
		low, high := allowed(share, n)
		fewest, most := int(math.Ceil(low*n-slack)), int(math.Floor(high*n+slack))
		next := make([]float64, len(now)+perLook)
		for k, chance := range now {
			if chance < 1e-15 {
				continue
			}
			for more, part := range step {
				next[k+more] += chance * part
			}
		}
		for k := range next {
			if k < fewest || k > most {
				alarm += next[k]
				next[k] = 0
			}
		}
		now = next
	}
	return alarm
}

// A rollout with the default plan and ramp, looked at every 15 s, alarms wrongly less
// than once in 1,000 times, however many requests there are.
func TestAWholeRolloutSeldomAlarmsWrongly(t *testing.T) {
	const perMinute, soak = 4, 30 * 4
	for _, perLook := range []int{1, 10, 60} {
		sum := 0.0
		for _, stage := range []weights.Share{100, 500, 1000, 2000, 5000} {
			sum += alarms(stage, perLook, soak)
		}
		for _, step := range []weights.Share{200, 300, 400, 600, 700, 800, 900, 1200, 1400, 1600, 1900, 2400, 2800, 3300, 3900, 4600, 6000, 7000, 8000, 9000} {
			sum += alarms(step, perLook, 2*perMinute)
		}
		t.Logf("%d requests per look: %.2g", perLook, sum)
		if sum > 0.001 {
			t.Errorf("with %d requests per look a rollout alarms wrongly in %.2g of all cases", perLook, sum)
		}
	}
}

// A gateway that gives each track one request in two is found with the numbers that the
// documentation of Judge names.
func TestIgnoredWeightsAreFound(t *testing.T) {
	for share, requests := range map[weights.Share]int{100: 30, 500: 45, 1000: 70, 2000: 150} {
		for n := requests; n < 2*requests; n++ {
			found := 0.0
			for canary, chance := range binomial(n, 0.5) {
				if Judge(int64(canary), int64(n-canary), share).State == Differs {
					found += chance
				}
			}
			if found < 0.999 {
				t.Errorf("at %s, %d requests find it in %.5f of all cases", share, n, found)
			}
		}
	}
}

// A gateway that takes turns smoothly is never a request away from its share.
func TestPropertySmoothTurnsNeverDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := weights.Share(rapid.IntRange(0, 10_000).Draw(t, "share"))
		n := rapid.Int64Range(1, 1e9).Draw(t, "requests")
		low, high := weights.Part(int64(share), 10_000)
		canary := n*int64(low)/10_000 + rapid.Int64Range(0, 1).Draw(t, "more")
		if low != high || canary > n {
			return
		}
		if f := Judge(canary, n-canary, share); f.State == Differs {
			t.Fatalf("%d of %d requests at %s: %+v", canary, n, share, f)
		}
	})
}

func TestPropertyJudge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := weights.Share(rapid.IntRange(-1, 10_001).Draw(t, "share"))
		n := rapid.OneOf(rapid.Int64Range(1, 5000), rapid.Int64Range(1, math.MaxInt64)).Draw(t, "requests")
		canary := rapid.Int64Range(0, n).Draw(t, "canary")
		f := Judge(canary, n-canary, share)
		if want := share.Clamp(); f.Low > want || f.High < want || f.Low < 0 || f.High > weights.ShareAll {
			t.Fatalf("the bounds do not hold the share: %+v", f)
		}
		if f.State == Differs && (f.Observed > f.Low+1 && f.Observed < f.High-1) {
			t.Fatalf("it differs within its bounds: %+v", f)
		}
		if f.State != Differs && (f.Observed < f.Low || f.Observed > f.High) {
			t.Fatalf("it does not differ outside of its bounds: %+v", f)
		}
		// The tracks are alike: the other way round it is the same.
		mirrored := Judge(n-canary, canary, weights.ShareAll-share)
		if mirrored.State != f.State || mirrored.Low != weights.ShareAll-f.High || mirrored.High != weights.ShareAll-f.Low {
			t.Fatalf("%+v, and the other way round %+v", f, mirrored)
		}
		// Further away from the share it still differs.
		if f.State == Differs {
			further := max(canary-1, 0)
			if f.Observed > share.Clamp() {
				further = min(canary+1, n)
			}
			if g := Judge(further, n-further, share); g.State != Differs {
				t.Fatalf("%d of %d differ, and %d do not: %+v", canary, n, further, g)
			}
		}
	})
}
