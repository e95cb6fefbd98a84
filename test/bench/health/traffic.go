package main

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/weightedrollout/weightedrollout/internal/health/compare"
)

const (
	perSecond = 200
	seconds   = 60
	perBlock  = perSecond * seconds

	// A run of 200,000 requests, and one of 2,000,000, in whole blocks.
	shortRun = 17
	longRun  = 167
)

// split is a way to divide the traffic: the canary's share in each block of a run.
type split struct {
	name  string
	share func(block int) float64
}

func steady(name string, share float64) split {
	return split{name, func(int) float64 { return share }}
}

// ramp goes through five shares in equal parts of a short run.
var ramp = split{"ramp", func(block int) float64 {
	shares := []float64{0.01, 0.05, 0.1, 0.2, 0.5}
	return shares[min(block*len(shares)/shortRun, len(shares)-1)]
}}

// world is what happens in a run: rates of bad requests, and how they are divided.
type world struct {
	split          split
	stable, canary float64
	blocks         int
	badTime        bool // both rates are ten times as high in blocks 6 to 11
}

// times says how much higher than usual both rates are in a block.
func (w world) times(block int) float64 {
	if w.badTime && block >= 6 && block < 12 {
		return 10
	}
	return 1
}

// block draws what happens in one block. Each request goes to the canary with the
// chance that is its share, and is bad with the chance that is the track's rate.
func (w world) block(k int, source rand.Source) compare.Block {
	draw := func(n, p float64) float64 {
		if n < 1 {
			return 0
		}
		return distuv.Binomial{N: n, P: p, Src: source}.Rand()
	}
	canary := draw(perBlock, w.split.share(k))
	stable := perBlock - canary
	return compare.Block{
		Stable: compare.Counts{Bad: draw(stable, min(1, w.stable*w.times(k))), Total: stable},
		Canary: compare.Counts{Bad: draw(canary, min(1, w.canary*w.times(k))), Total: canary},
	}
}

// outcome is how a run ended for each judge: after how many of the canary's requests
// it was rolled back, or never.
type outcome [judges]struct {
	rolledBack bool
	requests   float64
}

// play lets all judges see the same run.
func play(w world, source rand.Source) outcome {
	var result outcome
	panel := newPanel(w.stable)
	requests, left := 0.0, judges
	for k := 0; k < w.blocks && left > 0; k++ {
		b := w.block(k, source)
		requests += b.Canary.Total
		for j, judge := range panel {
			if !result[j].rolledBack && judge.worse(b) {
				result[j].rolledBack, result[j].requests = true, requests
				left--
			}
		}
	}
	return result
}

// playAll plays a world many times, on every core. The line of the table and the
// number of the run choose the traffic, so the result does not depend on the cores.
func playAll(w world, opts options, line uint64) []outcome {
	results := make([]outcome, opts.runs)
	var next atomic.Int64
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for {
				k := int(next.Add(1)) - 1
				if k >= len(results) {
					return
				}
				results[k] = play(w, rand.NewPCG(opts.seed, line<<32+uint64(k)))
			}
		})
	}
	wait.Wait()
	return results
}
