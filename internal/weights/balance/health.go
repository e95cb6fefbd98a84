package balance

import (
	"fmt"
	"math"

	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

// minBaseParts is the floor of a health-scaled weight as a divisor of its base: a
// fifth.
const minBaseParts = 5

// HealthScaled returns base times health, rounded to the nearest. It is never above
// base and never under a fifth of it. A base of 1 therefore cannot be lowered at all;
// bases of about 100 leave room. Health is what score.Health gives. A health outside
// score.HealthFloor to score.HealthFull is clamped to it.
//
// It fails on a negative base and on a health that is not a number.
func HealthScaled(base int64, health float64) (int64, error) {
	if base < 0 {
		return 0, fmt.Errorf("the base weight is %d; it must be at least 0", base)
	}
	if math.IsNaN(health) {
		return 0, fmt.Errorf("the health is %v; hold the present weight where there is none", health)
	}
	health = min(max(health, score.HealthFloor), score.HealthFull)
	floor := base / minBaseParts
	if base%minBaseParts != 0 {
		floor++
	}
	if health == score.HealthFull {
		return base, nil // A large base is not exact as a float64.
	}
	return min(max(int64(math.Round(float64(base)*health)), floor), base), nil
}
