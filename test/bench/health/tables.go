package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/weightedrollout/weightedrollout/internal/health/compare"
)

var splits = []split{steady("1:99", 0.01), steady("10:90", 0.1), steady("50:50", 0.5), ramp}

const settings = `  %d requests per second in all; a block is %d s, looked at every 15 s and counted once, when
  it is complete; requests fail independently of each other. %d runs in each line, seed %d.
`

const judgesText = `  ours      the comparison of this project, confidence 95: at most 5 % false rollbacks promised
  5 failed  5 of the canary's minutes above a fixed limit, in all: Argo Rollouts' failureLimit 4,
            Flagger's threshold 5; the limit is twice the usual rate, at least half a point more
  in a row  the same 5, but one after the other
  ranks     Mann-Whitney over the minutes so far, as Kayenta judges: 98 % confidence, tolerance 0.25
`

// falseRollbacks prints how often a canary that is as good as stable is rolled back.
func falseRollbacks(opts options, out io.Writer) []promise {
	allowed := allowance(opts.runs)
	fmt.Fprintf(out, "1. No difference: the part of good canaries that are rolled back\n\n")
	fmt.Fprintf(out, settings, perSecond, seconds, opts.runs, opts.seed)
	fmt.Fprint(out, judgesText)
	fmt.Fprintf(out, "  the bad time is six minutes in which both fail ten times as often\n\n")
	fmt.Fprintf(out, "  %-18s %-7s %10s", "both fail", "split", "requests")
	heads(out, 11)
	var kept []promise
	for line, w := range goodWorlds() {
		results := playAll(w, opts, uint64(line))
		what := fmt.Sprintf("%g %%", 100*w.stable)
		if w.badTime {
			what += ", bad time"
		}
		fmt.Fprintf(out, "  %-18s %-7s %10s", what, w.split.name, thousands(w.blocks*perBlock))
		for j := range judges {
			fmt.Fprintf(out, "%11s", percent(part(results, j)))
		}
		fmt.Fprintln(out)
		kept = append(kept, promise{
			what: fmt.Sprintf("false rollbacks at %s, %s: %s, allowed are %s", what, w.split.name, percent(part(results, 0)), percent(allowed)),
			held: part(results, 0) <= allowed,
		})
	}
	fmt.Fprintf(out, "\n  With 5 %% and three standard errors of %d runs up to %s are allowed.\n\n", opts.runs, percent(allowed))
	return kept
}

// allowance is the largest part of false rollbacks that 5 % can be seen as.
func allowance(runs int) float64 {
	return alpha + 3*math.Sqrt(alpha*(1-alpha)/float64(runs))
}

func goodWorlds() []world {
	var list []world
	for _, rate := range []float64{0.001, 0.01, 0.05} {
		for _, s := range splits {
			list = append(list, world{split: s, stable: rate, canary: rate, blocks: shortRun})
		}
	}
	for _, s := range splits {
		list = append(list, world{split: s, stable: 0.01, canary: 0.01, blocks: shortRun, badTime: true})
	}
	for _, s := range []split{splits[0], splits[2]} {
		list = append(list, world{split: s, stable: 0.01, canary: 0.01, blocks: longRun})
	}
	return list
}

// detections prints how many of the canary's requests it takes to find a bad one.
func detections(opts options, out io.Writer) []promise {
	fmt.Fprintf(out, "2. A difference: the median number of the canary's requests until it is found, and the part of\n   runs in which it is not (-: in more than half)\n\n")
	fmt.Fprintf(out, settings, perSecond, seconds, opts.runs, opts.seed)
	fmt.Fprintf(out, "  p99 x 2: response times are exponential, a request above stable's p99 is slow, and the canary\n"+
		"  takes twice as long: 1 %% of stable's requests are slow, and %g %% of the canary's\n", 100*slowWhenDoubled)
	fmt.Fprintf(out, "  bound: Wald's ln(1/0.05)/KL(canary||stable), for a test that knows both rates beforehand\n\n")
	fmt.Fprintf(out, "  %-10s %-6s %9s %6s", "stable/can.", "split", "requests", "bound")
	heads(out, 15)
	var kept []promise
	for line, d := range badWorlds() {
		results := playAll(d.world, opts, 1000+uint64(line))
		bound := wald(d.canary, d.stable)
		fmt.Fprintf(out, "  %-11s %-6s %9s %6.0f", d.name, d.split.name, thousands(d.blocks*perBlock), math.Ceil(bound))
		for j := range judges {
			fmt.Fprintf(out, "%8s %6s", count(median(results, j)), percent(1-part(results, j)))
		}
		fmt.Fprintln(out)
		if d.split.name == "1:99" && d.blocks == longRun {
			within := 2*bound + perBlock*d.split.share(0)
			kept = append(kept, promise{
				what: fmt.Sprintf("%s at 1:99: found after %s requests, promised are %.0f", d.name, count(median(results, 0)), within),
				held: median(results, 0) <= within,
			})
		}
	}
	fmt.Fprintf(out, "\n  Promised at 1:99 with enough requests: twice the bound and one block.\n\n")
	return kept
}

// slowWhenDoubled is the part of exponential response times that are longer than what
// 1 % was before they doubled.
var slowWhenDoubled = math.Sqrt(0.01)

type difference struct {
	name string
	world
}

func badWorlds() []difference {
	var list []difference
	for _, d := range []difference{
		{name: "1 %/2 %", world: world{stable: 0.01, canary: 0.02}},
		{name: "1 %/5 %", world: world{stable: 0.01, canary: 0.05}},
		{name: "0.1 %/1 %", world: world{stable: 0.001, canary: 0.01}},
		{name: "p99 x 2", world: world{stable: 0.01, canary: slowWhenDoubled}},
	} {
		d.blocks = shortRun
		for _, s := range splits {
			d.split = s
			list = append(list, d)
			if s.name == "1:99" {
				long := d
				long.blocks = longRun
				list = append(list, long)
			}
		}
	}
	return list
}

// wald is the least number of requests that any test needs on average which knows both
// rates and errs with the chance alpha (A. Wald, "Sequential tests of statistical
// hypotheses", Annals of Mathematical Statistics 16, 1945).
func wald(canary, stable float64) float64 {
	kl := canary*math.Log(canary/stable) + (1-canary)*math.Log((1-canary)/(1-stable))
	return math.Log(1/alpha) / kl
}

// costs prints what a block costs on this machine.
func costs(out io.Writer) {
	fmt.Fprintf(out, "3. Cost of a block on this machine\n\n")
	for _, c := range []struct {
		what   string
		margin float64
		block  compare.Block
	}{
		{"1:99, 12,000 requests", 0, compare.Block{Stable: compare.Counts{Bad: 119, Total: 11_880}, Canary: compare.Counts{Bad: 1, Total: 120}}},
		{"50:50, 12,000 requests", 0, compare.Block{Stable: compare.Counts{Bad: 60, Total: 6000}, Canary: compare.Counts{Bad: 60, Total: 6000}}},
		{"50:50, 2,000,000,000 requests", 0, compare.Block{Stable: compare.Counts{Bad: 1e7, Total: 1e9}, Canary: compare.Counts{Bad: 1e7, Total: 1e9}}},
		{"1:99, 12,000 requests, margin", 0.005, compare.Block{Stable: compare.Counts{Bad: 119, Total: 11_880}, Canary: compare.Counts{Bad: 1, Total: 120}}},
	} {
		const blocks = 1000
		evidence := compare.NewInferiority(c.margin)
		start := time.Now()
		for range blocks {
			evidence = evidence.Add(c.block)
		}
		each := time.Since(start) / blocks
		fmt.Fprintf(out, "  %-32s %8d ns, and %d bytes when written down\n", c.what, each.Nanoseconds(), len(evidence.String()))
	}
	fmt.Fprintln(out)
}

func heads(out io.Writer, width int) {
	for _, name := range judgeNames {
		fmt.Fprintf(out, "%*s", width, name)
	}
	fmt.Fprintln(out)
}

// part is the part of runs in which a judge has rolled back.
func part(results []outcome, judge int) float64 {
	n := 0
	for _, r := range results {
		if r[judge].rolledBack {
			n++
		}
	}
	return float64(n) / float64(len(results))
}

// median is that of the requests until a judge rolled back, where never is infinite.
func median(results []outcome, judge int) float64 {
	all := make([]float64, len(results))
	for k, r := range results {
		all[k] = math.Inf(1)
		if r[judge].rolledBack {
			all[k] = r[judge].requests
		}
	}
	slices.SortFunc(all, cmp.Compare)
	return all[len(all)/2]
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

func count(x float64) string {
	if math.IsInf(x, 0) {
		return "-"
	}
	return thousands(int(math.Round(x)))
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
