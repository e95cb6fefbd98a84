package pick_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestTurnsSequences(t *testing.T) {
	for _, tc := range []struct {
		picker string
		given  []int32
		want   string
	}{
		{"round-robin", []int32{5, 3, 2}, "ABCABCA"},
		{"round-robin", []int32{0, math.MaxInt32, 0, 1, 0}, "BDBDB"},
		{"round-robin", []int32{7}, "AAA"},
		{"naive", []int32{5, 3, 2}, "AAAAABBBCCAAAAABBBCC"},
		{"naive", []int32{0, 2, 0, 0, 1}, "BBEBBE"},
		{"naive", []int32{1, 1, 1}, "ABCABC"},
		{"naive", []int32{2}, "AAAAA"},
	} {
		if got := letters(must(t, tc.picker, backends(tc.given...)), len(tc.want)); got != tc.want {
			t.Errorf("%s %v picks %s, want %s", tc.picker, tc.given, got, tc.want)
		}
	}
}

// The naive form is the list in which each backend is repeated, weight times.
func TestNaiveIsTheRepetition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := weightsOf(t, "weights", 10, 50)
		p := must(t, "naive", backends(given...))
		for cycle := range 2 {
			for i, w := range given {
				for n := range w {
					if got := p.Pick(0); got != i {
						t.Fatalf("%v, cycle %d: picked %d instead of %d for the time %d", given, cycle, got, i, n+1)
					}
				}
			}
		}
	})
}
