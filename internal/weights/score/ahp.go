package score

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

const (
	// MaxComparisonRatio is the consistency ratio above which comparisons contradict
	// each other too much to be used, by Saaty.
	MaxComparisonRatio = 0.1

	// reciprocalTolerance lets a comparison be written with two decimals: 0.33 for 1/3
	// and 0.14 for 1/7.
	reciprocalTolerance = 0.025
	// largestComparison and its reciprocal bound a comparison. Saaty's scale ends at 9.
	largestComparison = 1e6
)

// randomIndex is the mean consistency index of random comparisons of 1 to 15
// signals: Saaty, The Analytic Hierarchy Process, 1980.
var randomIndex = [...]float64{0, 0, 0.58, 0.90, 1.12, 1.24, 1.32, 1.41, 1.45, 1.49, 1.51, 1.48, 1.56, 1.57, 1.59}

// Judgement is what pairwise comparisons say.
type Judgement struct {
	// Weights of the signals; each is above 0, together they are 1.
	Weights []float64
	// LambdaMax is the largest eigenvalue, at least the number of signals; it is equal
	// to that where no comparison contradicts another.
	LambdaMax float64
	// Index is the consistency index, (LambdaMax - n) / (n - 1).
	Index float64
	// Ratio is Index as a part of that of random comparisons. It is 0 for 1 and 2
	// signals, which cannot contradict each other.
	Ratio float64
}

// InconsistentError says that comparisons contradict each other, and which of them
// most.
type InconsistentError struct {
	// Ratio is the consistency ratio, above MaxComparisonRatio.
	Ratio float64
	// Row and Column are those of the comparison that fits the others least, from 0.
	Row, Column int
	// Given is that comparison, and Fitting what the weights that follow from all of
	// them would have it be.
	Given, Fitting float64
}

func (e *InconsistentError) Error() string {
	return fmt.Sprintf("the comparisons contradict each other (consistency ratio %.3g, at most %v is allowed): most of all signal %d against %d, which is %.3g where %.3g would fit the others",
		e.Ratio, MaxComparisonRatio, e.Row, e.Column, e.Given, e.Fitting)
}

// AHP returns the weights of up to 15 signals from pairwise comparisons, by Saaty's
// analytic hierarchy process: comparisons[i][j] says how many times as important
// signal i is as signal j. The weights are the principal eigenvector.
//
// The table must be square, its diagonal 1, each entry from 1e-6 to 1e6, and each the
// reciprocal of its opposite within 2.5 %. Otherwise it fails, naming the entry. With
// a consistency ratio above MaxComparisonRatio it fails with an InconsistentError.
func AHP(comparisons [][]float64) (Judgement, error) {
	if err := checkComparisons(comparisons); err != nil {
		return Judgement{}, err
	}
	n := len(comparisons)
	lambda, weights, err := principal(comparisons)
	if err != nil {
		return Judgement{}, err
	}
	// Rounding, and reciprocals written with few decimals, may go a little below n.
	j := Judgement{Weights: weights, LambdaMax: max(lambda, float64(n))}
	if n > 2 {
		j.Index = (j.LambdaMax - float64(n)) / float64(n-1)
		j.Ratio = j.Index / randomIndex[n-1]
	}
	if j.Ratio > MaxComparisonRatio {
		return Judgement{}, worst(comparisons, j)
	}
	return j, nil
}

func checkComparisons(a [][]float64) error {
	if len(a) < 1 || len(a) > len(randomIndex) {
		return fmt.Errorf("%d signals are compared; take 1 to %d", len(a), len(randomIndex))
	}
	for i, row := range a {
		if len(row) != len(a) {
			return fmt.Errorf("row %d of the comparisons has %d entries; a table of %d signals has %d", i, len(row), len(a), len(a))
		}
		if row[i] != 1 {
			return fmt.Errorf("signal %d against itself is %v; it must be 1", i, row[i])
		}
		for j, v := range row {
			if !(v >= 1/largestComparison && v <= largestComparison) {
				return fmt.Errorf("signal %d against %d is %v; it must be from %v to %v", i, j, v, 1/largestComparison, largestComparison)
			}
		}
	}
	for i, row := range a {
		for j := range i {
			if math.Abs(row[j]*a[j][i]-1) > reciprocalTolerance {
				return fmt.Errorf("signal %d against %d is %v, but %d against %d is %v; one must be the reciprocal of the other", j, i, a[j][i], i, j, row[j])
			}
		}
	}
	return nil
}

// principal returns the largest eigenvalue, and its eigenvector scaled to add up to 1.
// By Perron's theorem it is real, and the vector's entries have one sign.
func principal(a [][]float64) (float64, []float64, error) {
	n := len(a)
	dense := mat.NewDense(n, n, nil)
	for i, row := range a {
		dense.SetRow(i, row)
	}
	var eigen mat.Eigen
	if !eigen.Factorize(dense, mat.EigenRight) {
		return 0, nil, errors.New("the comparisons have no eigenvalues that can be computed; take less extreme ones")
	}
	largest, values := 0, eigen.Values(nil)
	for i, v := range values {
		if real(v) > real(values[largest]) {
			largest = i
		}
	}
	var vectors mat.CDense
	eigen.VectorsTo(&vectors)
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = math.Abs(real(vectors.At(i, largest)))
	}
	floats.Scale(1/floats.Sum(weights), weights)
	for i, w := range weights {
		if !(w > 0) {
			return 0, nil, fmt.Errorf("signal %d would weigh %v; take less extreme comparisons", i, w)
		}
	}
	return real(values[largest]), weights, nil
}

// worst finds the comparison that is farthest, as a factor, from the ratio of its
// signals' weights.
func worst(a [][]float64, judged Judgement) *InconsistentError {
	found, farthest := &InconsistentError{Ratio: judged.Ratio}, 0.0
	for i := range a {
		for j := i + 1; j < len(a); j++ {
			fitting := judged.Weights[i] / judged.Weights[j]
			if off := math.Abs(math.Log(a[i][j] / fitting)); off > farthest {
				farthest = off
				found.Row, found.Column, found.Given, found.Fitting = i, j, a[i][j], fitting
			}
		}
	}
	return found
}
