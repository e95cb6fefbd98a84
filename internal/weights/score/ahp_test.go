package score_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

// The published numbers have two or three decimals. Each table is also computed here
// in another way, by powers of the matrix.
func TestAHP(t *testing.T) {
	for _, tc := range []struct {
		name        string
		comparisons [][]float64
		weights     []float64
		decimals    float64
		lambda      float64
		ratio       float64
	}{
		{
			// The 3 candidates by experience in the leader example of Wikipedia's article on
			// the analytic hierarchy process: Tom .217, Dick .717, Harry .066.
			"three candidates", [][]float64{
				{1, 1. / 4, 4},
				{4, 1, 9},
				{1. / 4, 1. / 9, 1},
			}, []float64{0.217, 0.717, 0.066}, 0.0005, 3.037, 0.032,
		},
		{
			// The 4 criteria of the same example: experience .547, education .127, charisma
			// .270, age .056.
			"four criteria", [][]float64{
				{1, 4, 3, 7},
				{1. / 4, 1, 1. / 3, 3},
				{1. / 3, 3, 1, 5},
				{1. / 7, 1. / 3, 1. / 5, 1},
			}, []float64{0.547, 0.127, 0.270, 0.056}, 0.001, 4.118, 0.044,
		},
		{
			// Saaty, A scaling method for priorities in hierarchical structures, Journal of
			// Mathematical Psychology 15, 1977: the second trial of comparing the brightness
			// of four chairs at growing distances from a lamp: .62 .22 .10 .06.
			"four chairs", [][]float64{
				{1, 4, 6, 7},
				{1. / 4, 1, 3, 4},
				{1. / 6, 1. / 3, 1, 2},
				{1. / 7, 1. / 4, 1. / 2, 1},
			}, []float64{0.62, 0.22, 0.10, 0.06}, 0.005, 4.102, 0.038,
		},
		{"one signal", [][]float64{{1}}, []float64{1}, 1e-12, 1, 0},
		{"two signals never contradict each other", [][]float64{{1, 9}, {1. / 9, 1}}, []float64{0.9, 0.1}, 1e-12, 2, 0},
		{"all the same", [][]float64{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, []float64{1. / 3, 1. / 3, 1. / 3}, 1e-12, 3, 0},
		{"two decimals will do", [][]float64{{1, 3, 7}, {0.33, 1, 2.33}, {0.14, 0.43, 1}}, []float64{0.68, 0.22, 0.10}, 0.006, 3, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := score.AHP(tc.comparisons)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.weights, got.Weights, cmpopts.EquateApprox(0, tc.decimals)); diff != "" {
				t.Errorf("weights (-published +got):\n%s", diff)
			}
			if diff := cmp.Diff([]float64{tc.lambda, tc.ratio}, []float64{got.LambdaMax, got.Ratio}, cmpopts.EquateApprox(0, 0.0006)); diff != "" {
				t.Errorf("largest eigenvalue and ratio (-want +got):\n%s", diff)
			}
			lambda, weights := byPowers(tc.comparisons)
			if diff := cmp.Diff(weights, got.Weights, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("weights (-powers +got):\n%s", diff)
			}
			if math.Abs(max(lambda, float64(len(weights)))-got.LambdaMax) > 1e-9 {
				t.Errorf("largest eigenvalue %v, by powers %v", got.LambdaMax, lambda)
			}
			if n := float64(len(weights)); n > 1 && math.Abs(got.Index-(got.LambdaMax-n)/(n-1)) > 1e-12 {
				t.Errorf("index %v", got.Index)
			}
		})
	}
}

// byPowers finds the largest eigenvalue and its vector by multiplying a vector by the
// matrix until it keeps its direction.
func byPowers(a [][]float64) (lambda float64, weights []float64) {
	weights = make([]float64, len(a))
	for i := range weights {
		weights[i] = 1 / float64(len(a))
	}
	for range 300 {
		next := make([]float64, len(a))
		lambda = 0
		for i, row := range a {
			for j, v := range row {
				next[i] += v * weights[j]
			}
			lambda += next[i]
		}
		for i := range next {
			next[i] /= lambda
		}
		weights = next
	}
	return lambda, weights
}

// Saaty's first trial of the four chairs, in the paper of 1977, has a largest
// eigenvalue of 4.39, so an index of .13 and a ratio of .145. What contradicts most there is the first
// chair against the last: 7, where the weights say 13.7.
func TestAHPRefusesContradictions(t *testing.T) {
	comparisons := [][]float64{
		{1, 5, 6, 7},
		{1. / 5, 1, 4, 6},
		{1. / 6, 1. / 4, 1, 4},
		{1. / 7, 1. / 6, 1. / 4, 1},
	}
	_, err := score.AHP(comparisons)
	var got *score.InconsistentError
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want an InconsistentError", err)
	}
	lambda, weights := byPowers(comparisons)
	want := &score.InconsistentError{Ratio: (lambda - 4) / 3 / 0.9, Row: 0, Column: 3, Given: 7, Fitting: weights[0] / weights[3]}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if math.Abs(lambda-4.39) > 0.005 || math.Abs(got.Fitting-13.7) > 0.05 {
		t.Errorf("largest eigenvalue %v and fitting value %v, published 4.39, by powers 13.7", lambda, got.Fitting)
	}
	text := "the comparisons contradict each other (consistency ratio 0.145, at most 0.1 is allowed): most of all signal 0 against 3, which is 7 where 13.7 would fit the others"
	if diff := cmp.Diff(text, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// A is 3 times B, B is 3 times C, but C is 3 times A.
	_, err = score.AHP([][]float64{{1, 3, 1. / 3}, {1. / 3, 1, 3}, {3, 1. / 3, 1}})
	if !errors.As(err, &got) || got.Ratio < 1 {
		t.Errorf("a circle: %v", err)
	}
}

func TestAHPErrors(t *testing.T) {
	sixteen := make([][]float64, 16)
	for i := range sixteen {
		sixteen[i] = make([]float64, 16)
	}
	for _, tc := range []struct {
		name        string
		comparisons [][]float64
		want        string
	}{
		{"nothing", nil, "0 signals are compared"},
		{"too many", sixteen, "16 signals are compared; take 1 to 15"},
		{"not square", [][]float64{{1, 2}, {0.5}}, "row 1 of the comparisons has 1 entries"},
		{"diagonal", [][]float64{{1, 2}, {0.5, 2}}, "signal 1 against itself is 2"},
		{"zero", [][]float64{{1, 0}, {0, 1}}, "signal 0 against 1 is 0"},
		{"negative", [][]float64{{1, -2}, {-0.5, 1}}, "signal 0 against 1 is -2"},
		{"NaN", [][]float64{{1, 2}, {math.NaN(), 1}}, "signal 1 against 0 is NaN"},
		{"infinite", [][]float64{{1, math.Inf(1)}, {0, 1}}, "signal 0 against 1 is +Inf"},
		{"not reciprocal", [][]float64{{1, 2}, {2, 1}}, "signal 0 against 1 is 2, but 1 against 0 is 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := score.AHP(tc.comparisons); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want an error with %q", got, err, tc.want)
			}
		})
	}
}

// On comparisons that follow from weights, AHP finds those weights, the method of the
// geometric mean agrees, and the ratio is 0. With one comparison changed enough to be
// refused, it is that one which is named, and its old value fits better than the new.
func TestAHPProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 15).Draw(t, "n")
		weights := make([]float64, n)
		var sum float64
		for i := range weights {
			weights[i] = rapid.Float64Range(1, 9).Draw(t, "weight")
			sum += weights[i]
		}
		a := make([][]float64, n)
		means := make([]float64, n)
		var meanSum float64
		for i := range a {
			a[i] = make([]float64, n)
			product := 1.0
			for j := range a[i] {
				a[i][j] = weights[i] / weights[j]
				product *= a[i][j]
			}
			means[i] = math.Pow(product, 1/float64(n))
			meanSum += means[i]
		}
		got, err := score.AHP(a)
		if err != nil {
			t.Fatal(err)
		}
		var total float64
		for i, w := range got.Weights {
			total += w
			if math.Abs(w-weights[i]/sum) > 1e-9 || math.Abs(w-means[i]/meanSum) > 1e-9 {
				t.Fatalf("signal %d weighs %v, want %v; the geometric mean says %v", i, w, weights[i]/sum, means[i]/meanSum)
			}
		}
		if math.Abs(total-1) > 1e-12 || got.Ratio > 1e-9 {
			t.Fatalf("the weights add up to %v, the ratio is %v", total, got.Ratio)
		}

		if n < 4 {
			return // With 3 signals each comparison is as far off as the others.
		}
		i, j := 0, rapid.IntRange(1, n-1).Draw(t, "changed")
		a[i][j] *= 60
		a[j][i] /= 60
		var refused *score.InconsistentError
		if _, err := score.AHP(a); errors.As(err, &refused) {
			if refused.Row != i || refused.Column != j || !(refused.Fitting < refused.Given) {
				t.Fatalf("changed %d against %d, but %v", i, j, err)
			}
		} else if err != nil || n < 8 {
			t.Fatalf("a comparison of %d signals was changed 60 times, got %v", n, err)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.SliceOfN(anyFloat(), 0, 4), 0, 4).Draw(t, "rows")
		for i, row := range rows {
			if i < len(row) && rapid.Bool().Draw(t, "diagonal") {
				row[i] = 1
			}
		}
		if got, err := score.AHP(rows); err == nil && (math.IsNaN(got.Ratio) || len(got.Weights) != len(rows)) {
			t.Fatalf("got %v", got)
		}
	})
}
