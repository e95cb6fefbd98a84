package score

import "fmt"

const (
	// HealthFloor is the least health: a backend that still takes traffic keeps a
	// fifth of its weight, so that its recovery can be seen.
	HealthFloor = 0.2
	// HealthFull is the health of a backend without errors and within its threshold.
	HealthFull = 1.0

	// DefaultErrorPenalty is what an error rate of 1 costs.
	DefaultErrorPenalty = 2.0
	// DefaultLatencyPenalty is what a response time of twice the threshold costs.
	DefaultLatencyPenalty = 0.5

	minErrorPenalty = 1.0
	maxErrorPenalty = 3.0
)

// Penalties say how much of the health errors and slowness cost.
type Penalties struct {
	// Error is the cost of an error rate of 1, from 1 to 3. Higher ones make a few
	// errors take most of the weight away, and the way back long.
	Error float64
	// Latency is the cost of a response time of twice the threshold, at least 0. With
	// 0 the response time and its threshold are not looked at.
	Latency float64
}

// DefaultPenalties returns an error penalty of 2 and a latency penalty of 0.5.
func DefaultPenalties() Penalties {
	return Penalties{Error: DefaultErrorPenalty, Latency: DefaultLatencyPenalty}
}

func (p Penalties) validate() error {
	if !(p.Error >= minErrorPenalty && p.Error <= maxErrorPenalty) {
		return fmt.Errorf("the error penalty is %v; take one from %v to %v", p.Error, minErrorPenalty, maxErrorPenalty)
	}
	if !finite(p.Latency) || p.Latency < 0 {
		return fmt.Errorf("the latency penalty is %v; take a finite one of at least 0", p.Latency)
	}
	return nil
}

// Health returns the health of a backend, from HealthFloor to HealthFull:
//
//	1 − Error × errorRate − Latency × max(0, (responseTime − threshold) / threshold)
//
// clamped. The error rate is the part of requests that failed, from 0 to 1. The
// response time and its threshold are in one unit of the caller's choice, the first
// at least 0, the second above 0. Health never rises with the error rate or with
// the response time.
//
// It fails on a number outside its range; NaN and the infinities are outside every
// range.
func Health(errorRate, responseTime, threshold float64, p Penalties) (float64, error) {
	if err := p.validate(); err != nil {
		return 0, err
	}
	if !(errorRate >= 0 && errorRate <= 1) {
		return 0, fmt.Errorf("the error rate is %v; it is a part of the requests, from 0 to 1", errorRate)
	}
	health := HealthFull - p.Error*errorRate
	if p.Latency > 0 {
		if !finite(responseTime) || responseTime < 0 {
			return 0, fmt.Errorf("the response time is %v; it must be finite and at least 0", responseTime)
		}
		if !finite(threshold) || threshold <= 0 {
			return 0, fmt.Errorf("the response time's threshold is %v; it must be finite and above 0", threshold)
		}
		// A product that overflows is an infinite penalty, and the floor holds.
		health -= p.Latency * max(0, (responseTime-threshold)/threshold)
	}
	return min(max(health, HealthFloor), HealthFull), nil
}
