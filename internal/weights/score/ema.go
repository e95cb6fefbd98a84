package score

import "fmt"

const (
	// DefaultAlpha is the part that a new value has in an average.
	DefaultAlpha = 0.2

	minAlpha = 0.1
	maxAlpha = 0.3
)

// EMA is an exponential moving average: each value moves it by alpha of the
// difference. It is a value; Add returns the next one and leaves the receiver as it
// is. The zero EMA has not started and has DefaultAlpha.
type EMA struct {
	alpha   float64
	value   float64
	started bool
}

// NewEMA returns an average that has not started. Alpha is from 0.1 to 0.3: a
// smaller one reacts too late, a larger one follows single slow requests. It fails
// on any other.
func NewEMA(alpha float64) (EMA, error) {
	if !(alpha >= minAlpha && alpha <= maxAlpha) {
		return EMA{}, fmt.Errorf("alpha is %v; take one from %v to %v", alpha, minAlpha, maxAlpha)
	}
	return EMA{alpha: alpha}, nil
}

// Add returns the average after x. The first value starts it: it is the average.
// NaN and the infinities are ignored.
func (e EMA) Add(x float64) EMA {
	if !finite(x) {
		return e
	}
	if !e.started {
		return EMA{alpha: e.alpha, value: x, started: true}
	}
	alpha := e.alpha
	if alpha == 0 {
		alpha = DefaultAlpha
	}
	// Two products and not one of the difference, which could overflow. The
	// conversions forbid a fused operation, so that a steady signal stays exact.
	e.value += float64(alpha*x) - float64(alpha*e.value)
	return e
}

// Value returns the average, and whether it has started. Before that it is 0.
func (e EMA) Value() (value float64, started bool) { return e.value, e.started }
