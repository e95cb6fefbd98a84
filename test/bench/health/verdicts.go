package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

const (
	// halfTheLimit is the true error rate of both tracks, and maxErrors the limit.
	halfTheLimit, maxErrors = 0.005, v1alpha1.Percent("1")
	// perWindow is the number of the canary's requests in a window.
	perWindow = 100
	soak      = 5 * time.Hour
)

// verdicts plays canaries at half of the limit against whole verdicts: windows of a
// minute that are read every 15 seconds, the limit, and the comparison. It prints how
// many are rolled back.
func verdicts(opts options, out io.Writer) []promise {
	runs := max(opts.runs/5, 1)
	fmt.Fprintf(out, `4. Half of the limit: the part of good canaries that whole verdicts roll back in five hours

  both tracks fail %s %% of their requests, and the limit is %s %%; the canary has %d requests a
  window of a minute, read every 15 s, and stable 99 times as many. %d runs, seed %d.

`, number(100*halfTheLimit), string(maxErrors), perWindow, runs, opts.seed)
	kept := []promise{}
	for _, c := range []struct {
		what      string
		unopposed bool
	}{{"limit and comparison", false}, {"limit alone", true}} {
		rolledBack := playVerdicts(opts, runs, c.unopposed)
		part := float64(rolledBack) / float64(runs)
		fmt.Fprintf(out, "  %-22s %d of %d, %s\n", c.what, rolledBack, runs, percent(part))
		if runs >= 100 { // fewer runs cannot tell one in a hundred
			kept = append(kept, promise{fmt.Sprintf("%s: fewer than 1 in 100 good canaries are rolled back in five hours: %s", c.what, percent(part)), part < 0.01})
		}
	}
	fmt.Fprintln(out)
	return kept
}

func number(x float64) string { return fmt.Sprintf("%g", x) }

func playVerdicts(opts options, runs int, unopposed bool) int {
	var next, rolledBack atomic.Int64
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for {
				k := next.Add(1) - 1
				if k >= int64(runs) {
					return
				}
				if playVerdict(rand.NewPCG(opts.seed, uint64(k)|1<<40), unopposed) {
					rolledBack.Add(1)
				}
			}
		})
	}
	wait.Wait()
	return int(rolledBack.Load())
}

// playVerdict plays one canary, and says whether it was ever unhealthy.
func playVerdict(source rand.Source, unopposed bool) bool {
	config, err := health.ConfigFrom(&v1alpha1.Health{Preset: v1alpha1.PresetTraefik, ErrorRate: &v1alpha1.ErrorRate{MaxPercent: maxErrors}}, "")
	if err != nil {
		panic(err) // the configuration above is a valid one
	}
	began := time.Unix(0, 0)
	record := health.Share{Config: config, Subject: health.TrackCanary, Unopposed: unopposed, ConfirmedAt: began}.Record()
	quarters := int(config.Window / config.Interval)
	canary, stable := make([]float64, quarters), make([]float64, quarters)
	fails := func(requests int) float64 {
		return distuv.Binomial{N: float64(requests), P: halfTheLimit, Src: source}.Rand()
	}
	for tick := 1; tick <= int(soak/config.Interval); tick++ {
		canary[tick%quarters], stable[tick%quarters] = fails(perWindow/quarters), fails(99*perWindow/quarters)
		end := began.Add(time.Duration(tick) * config.Interval)
		reading := func(requests float64, failed []float64) health.Reading {
			r := health.Reading{Found: true, Requests: requests, NewestSample: health.At(end)}
			for _, n := range failed {
				r.Errors += n
			}
			return r
		}
		if tick <= quarters {
			continue
		}
		record.Add([]health.Window{{Start: end.Add(-config.Window), End: end, Canary: reading(perWindow, canary), Stable: reading(99*perWindow, stable)}}, end)
		if health.Evaluate(record.Input(end)).State == v1alpha1.VerdictUnhealthy {
			return true
		}
	}
	return false
}
