package main

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/internal/health/compare"
)

func TestThreshold(t *testing.T) {
	const good, bad = 10.0, 21.0 // of 1000, at a limit of 2 %
	tests := map[string]struct {
		inARow bool
		canary []float64
		want   int
	}{
		"five in all":             {false, []float64{bad, good, bad, good, bad, bad, good, bad}, 8},
		"four":                    {false, []float64{bad, bad, bad, bad, good}, 0},
		"five, but not in a row":  {true, []float64{bad, good, bad, bad, bad, bad, good, bad}, 0},
		"five in a row":           {true, []float64{good, bad, bad, bad, bad, bad}, 6},
		"at the limit all passes": {false, []float64{20, 20, 20, 20, 20, 20}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			judge, got := threshold{limit: 0.02, inARow: tc.inARow}, 0
			for k, x := range tc.canary {
				if judge.worse(minute(0, x)) {
					got = k + 1
					break
				}
			}
			if got != tc.want {
				t.Errorf("worse in minute %d, want %d", got, tc.want)
			}
		})
	}
}

func TestThresholdWithoutTraffic(t *testing.T) {
	judge := threshold{}
	for range 2 * failures {
		if judge.worse(compare.Block{}) {
			t.Fatal("no request is a failed one")
		}
	}
}

func TestLimit(t *testing.T) {
	for nominal, want := range map[float64]float64{0.001: 0.006, 0.005: 0.01, 0.01: 0.02, 0.05: 0.1} {
		if got := limit(nominal); math.Abs(got-want) > 1e-12 {
			t.Errorf("at %v: %v, want %v", nominal, got, want)
		}
	}
}

// ln 20 = 2.9957, and KL(5 % || 1 %) = 0.05 ln 5 + 0.95 ln(0.95/0.99) = 0.041292.
func TestWald(t *testing.T) {
	if got := wald(0.05, 0.01); math.Abs(got-2.995732/0.041292) > 0.01 {
		t.Errorf("%v", got)
	}
}

// The traffic is what the table says it is.
func TestBlocksAreAsDescribed(t *testing.T) {
	w := world{split: steady("10:90", 0.1), stable: 0.01, canary: 0.05, blocks: shortRun, badTime: true}
	source := rand.NewPCG(5, 6)
	var usual, bad compare.Block
	add := func(sum *compare.Block, b compare.Block) {
		if b.Stable.Total+b.Canary.Total != perBlock {
			t.Fatalf("%+v has not %d requests", b, perBlock)
		}
		sum.Stable.Bad, sum.Stable.Total = sum.Stable.Bad+b.Stable.Bad, sum.Stable.Total+b.Stable.Total
		sum.Canary.Bad, sum.Canary.Total = sum.Canary.Bad+b.Canary.Bad, sum.Canary.Total+b.Canary.Total
	}
	for range 200 {
		add(&usual, w.block(5, source))
		add(&bad, w.block(6, source))
	}
	for name, part := range map[string][3]float64{
		"share":           {usual.Canary.Total, 200 * perBlock, 0.1},
		"stable":          {usual.Stable.Bad, usual.Stable.Total, 0.01},
		"canary":          {usual.Canary.Bad, usual.Canary.Total, 0.05},
		"stable, badTime": {bad.Stable.Bad, bad.Stable.Total, 0.1},
		"canary, badTime": {bad.Canary.Bad, bad.Canary.Total, 0.5},
	} {
		p := part[2]
		if got := part[0] / part[1]; math.Abs(got-p) > 5*math.Sqrt(p*(1-p)/part[1]) {
			t.Errorf("%s: %v, want about %v", name, got, p)
		}
	}
}

func TestRampTakesEqualParts(t *testing.T) {
	var got []float64
	for k := range shortRun {
		got = append(got, ramp.share(k))
	}
	want := []float64{0.01, 0.01, 0.01, 0.01, 0.05, 0.05, 0.05, 0.1, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.5, 0.5, 0.5}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMedianAndPart(t *testing.T) {
	results := make([]outcome, 5)
	for k, requests := range []float64{300, 100, 200} {
		results[k][0].rolledBack, results[k][0].requests = true, requests
	}
	results[0][1].rolledBack, results[0][1].requests = true, 50
	if got := median(results, 0); got != 300 {
		t.Errorf("the median is %v, want 300", got)
	}
	if got := median(results, 1); !math.IsInf(got, 1) {
		t.Errorf("the median of one of five is %v, want infinity", got)
	}
	if got := part(results, 0); got != 0.6 {
		t.Errorf("the part is %v, want 0.6", got)
	}
}

func TestRunIsRepeatableAndFits(t *testing.T) {
	play := func() string {
		var out, errOut bytes.Buffer
		if code := run([]string{"--runs", "25", "--seed", "1"}, &out, &errOut); code != 0 || errOut.Len() > 0 {
			t.Fatalf("exit status %d, %s\n%s", code, errOut.String(), out.String())
		}
		tables, _, found := strings.Cut(out.String(), "3. Cost")
		if !found || !strings.HasSuffix(out.String(), "All 22 promises hold.\n") {
			t.Fatalf("not all is there:\n%s", out.String())
		}
		return tables
	}
	first := play()
	if diff := cmp.Diff(first, play()); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
	for line := range strings.Lines(first) {
		if len(line) > 101 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
}

func TestBrokenPromises(t *testing.T) {
	var out bytes.Buffer
	if promises([]promise{{"as said", true}, {"too slow", false}}, &out) {
		t.Error("a broken promise is overlooked")
	}
	if want := "BROKEN: too slow\n\n1 of 2 promises are broken.\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestFlags(t *testing.T) {
	for text, want := range map[string]struct {
		code int
		says string
	}{
		"--help":   {0, "Four tables"},
		"--runs 0": {exitUsage, "at least 1"},
		"--runs x": {exitUsage, "invalid value"},
		"all":      {exitUsage, "no arguments"},
	} {
		var out, errOut bytes.Buffer
		if code := run(strings.Fields(text), &out, &errOut); code != want.code || !strings.Contains(errOut.String(), want.says) {
			t.Errorf("%s: exit status %d, %q", text, code, errOut.String())
		}
	}
}
