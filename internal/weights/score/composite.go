package score

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

const (
	// SixToFour is the usual part of the judgement in a Union.
	SixToFour = 0.6
	// SevenToThree is the part of a judgement that is well founded.
	SevenToThree = 0.7

	minJudged = 0.5
	// weightTolerance is how far weights may be from adding up to 1.
	weightTolerance = 1e-9
)

// Union returns the weights between those that were judged and those that the data
// gave: lambda of the first and the rest of the second. Lambda is from 0.5, so that
// the data never outweigh the judgement, to 1. The result adds up to 1, and is for
// each signal between the two.
//
// It fails on another lambda, on weights of unequal number, and on weights that are
// negative, missing, or do not add up to 1.
func Union(judged, measured []float64, lambda float64) ([]float64, error) {
	if !(lambda >= minJudged && lambda <= 1) {
		return nil, fmt.Errorf("lambda is %v; take one from %v to 1, such as %v", lambda, minJudged, SixToFour)
	}
	if len(judged) != len(measured) {
		return nil, fmt.Errorf("%d judged weights do not fit %d measured ones; give one of each for each signal", len(judged), len(measured))
	}
	if err := checkWeights(judged); err != nil {
		return nil, fmt.Errorf("judged: %w", err)
	}
	if err := checkWeights(measured); err != nil {
		return nil, fmt.Errorf("measured: %w", err)
	}
	union := make([]float64, len(judged))
	for i := range union {
		union[i] = lambda*judged[i] + (1-lambda)*measured[i]
	}
	return union, nil
}

// Composite returns the weighted sum of normalised signals, from 0 to 1. The signals
// are from 0 to 1, and the weights add up to 1.
//
// It fails on a signal outside that range or missing: a signal that says nothing is
// not a good one, and the caller decides whether the others may speak without it. It
// also fails on weights of another number, and as Union does on bad ones.
func Composite(signals, weights []float64) (float64, error) {
	if len(signals) != len(weights) {
		return 0, fmt.Errorf("%d signals do not fit %d weights; give one for each", len(signals), len(weights))
	}
	if err := checkWeights(weights); err != nil {
		return 0, err
	}
	for i, s := range signals {
		if !(s >= 0 && s <= 1) {
			return 0, fmt.Errorf("signal %d is %v; it must be from 0 to 1, normalise it first", i, s)
		}
	}
	return min(max(floats.Dot(signals, weights), 0), 1), nil
}

func checkWeights(weights []float64) error {
	for i, w := range weights {
		if !(w >= 0 && w <= 1+weightTolerance) {
			return fmt.Errorf("the weight of signal %d is %v; it must be from 0 to 1", i, w)
		}
	}
	if sum := floats.Sum(weights); math.Abs(sum-1) > weightTolerance {
		return fmt.Errorf("the %d weights add up to %v; divide each by that, so that they add up to 1", len(weights), sum)
	}
	return nil
}
