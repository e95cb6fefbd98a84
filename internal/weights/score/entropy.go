package score

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// Entropy returns the weights of signals from what was seen of them, by Shannon's
// entropy: a signal that varies more tells more and weighs more. A row is an
// observation of all signals, a column a signal. Each column is first brought to 0 to
// 1 by its smallest and largest value. With p the parts that m rows have in a column's
// sum, its entropy is -Σ p ln p / ln m, and its weight is in proportion to 1 less
// that.
//
// The weights add up to 1. A column that is constant weighs 0. When all are constant
// the data prefer none, and all weigh the same. A row with a missing value is left
// out; with fewer than 2 rows left it fails, as it does on rows of unequal length or
// of none.
func Entropy(rows [][]float64) ([]float64, error) {
	complete, err := completeRows(rows)
	if err != nil {
		return nil, err
	}
	weights := make([]float64, len(rows[0]))
	column := make([]float64, len(complete))
	for j := range weights {
		for i, row := range complete {
			column[i] = row[j]
		}
		weights[j] = divergence(column)
	}
	sum := floats.Sum(weights)
	if sum == 0 {
		for j := range weights {
			weights[j] = 1 / float64(len(weights))
		}
		return weights, nil
	}
	floats.Scale(1/sum, weights)
	return weights, nil
}

func completeRows(rows [][]float64) ([][]float64, error) {
	complete := make([][]float64, 0, len(rows))
	for i, row := range rows {
		if len(row) == 0 || len(row) != len(rows[0]) {
			return nil, fmt.Errorf("row %d has %d signals, row 0 has %d; each needs the same ones, at least 1", i, len(row), len(rows[0]))
		}
		missing := false
		for _, v := range row {
			missing = missing || !finite(v)
		}
		if !missing {
			complete = append(complete, row)
		}
	}
	if len(complete) < 2 {
		return nil, fmt.Errorf("%d of %d rows have all their values, at least 2 are needed: %w", len(complete), len(rows), ErrNoValue)
	}
	return complete, nil
}

// divergence returns 1 less the entropy of a column of at least 2 finite values, and
// leaves their parts in it. That of a constant column is 0.
func divergence(column []float64) float64 {
	low, high, _ := limits(column)
	if low == high {
		return 0
	}
	for i, v := range column {
		column[i] = position(v, low, high)
	}
	floats.Scale(1/floats.Sum(column), column)
	var entropy float64
	for _, p := range column {
		if p > 0 {
			entropy -= p * math.Log(p)
		}
	}
	return max(0, 1-entropy/math.Log(float64(len(column))))
}
