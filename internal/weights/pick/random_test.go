package pick_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/weightedrollout/weightedrollout/internal/weights/pick"
)

// A chi-square test: with right shares a statistic this far out comes once in a
// million seeds, and the seed is fixed.
func TestRandomIsRightInExpectation(t *testing.T) {
	for _, given := range [][]int32{
		{1, 1},
		{99, 1},
		{4, 2, 1},
		{0, 5, 0, 3, 2, 0},
		{1_000_000, 300_000, 2_147_483_647},
	} {
		t.Run(fmt.Sprint(given), func(t *testing.T) {
			const draws = 100_000
			p, err := pick.NewRandom(backends(given...), rand.NewPCG(3, 4))
			if err != nil {
				t.Fatal(err)
			}
			counts := make([]float64, len(given))
			for range draws {
				counts[p.Pick(0)]++
			}
			var sum, statistic, degrees float64
			for _, w := range given {
				sum += float64(w)
			}
			for i, w := range given {
				if w == 0 {
					if counts[i] != 0 {
						t.Errorf("weight 0 was picked %v times", counts[i])
					}
					continue
				}
				exact := draws * float64(w) / sum
				statistic += (counts[i] - exact) * (counts[i] - exact) / exact
				degrees++
			}
			if p := (distuv.ChiSquared{K: degrees - 1}).Survival(statistic); p < 1e-6 {
				t.Errorf("counts %v: chi-square %.1f has p = %g", counts, statistic, p)
			}
		})
	}
}

// script is a source that yields the bits of a number as draws in the lower or the
// upper half.
type script struct{ bits, at uint }

func (s *script) Uint64() uint64 {
	half := uint64(s.bits >> s.at & 1)
	s.at++
	return half<<63 | 1<<62
}

// With 5:5 each draw takes a side by its upper half, so the 1024 scripts of ten draws
// are all equally likely starts. One of them goes ten times to A, one to B. Smooth
// never goes twice to one side.
func TestRandomBursts(t *testing.T) {
	runs := map[string]int{}
	for bits := range uint(1024) {
		p, err := pick.NewRandom(backends(5, 5), &script{bits: bits})
		if err != nil {
			t.Fatal(err)
		}
		runs[letters(p, 10)]++
	}
	if len(runs) != 1024 || runs["AAAAAAAAAA"] != 1 || runs["BBBBBBBBBB"] != 1 {
		t.Errorf("%d sequences, ten times A %d and ten times B %d of 1024 starts, want 1024, 1 and 1", len(runs), runs["AAAAAAAAAA"], runs["BBBBBBBBBB"])
	}
	if got := letters(must(t, "smooth", backends(5, 5)), 10); got != "ABABABABAB" {
		t.Errorf("smooth 5:5 picks %s", got)
	}
}

// The same seed gives the same picks.
func TestRandomRepeats(t *testing.T) {
	a, b := must(t, "random", backends(5, 3, 2)), must(t, "random", backends(5, 3, 2))
	if x, y := letters(a, 100), letters(b, 100); x != y {
		t.Errorf("one seed, two sequences:\n%s\n%s", x, y)
	}
}
