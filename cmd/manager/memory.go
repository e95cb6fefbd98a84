package main

import (
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// What the answers of metrics servers may take while they are read: a fourth of the
	// memory, within these bounds.
	leastAnswers, mostAnswers = 32 << 20, 256 << 20
	// unlimitedAnswers is what they may take where there is no limit.
	unlimitedAnswers = 128 << 20
)

// limitMemory has the runtime keep to nine tenths of the memory that the container may
// have, unless the environment variable GOMEMLIMIT says otherwise, and returns the limit.
// Without one, or where it cannot be read, that is math.MaxInt64.
func limitMemory() (int64, error) { return memlimit.Set() }

// memoryOfAnswers is what of a limit the answers of metrics servers may take.
func memoryOfAnswers(limit int64) int64 {
	if limit == math.MaxInt64 {
		return unlimitedAnswers
	}
	return min(max(limit/4, leastAnswers), mostAnswers)
}
