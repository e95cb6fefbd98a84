package simulate_test

import (
	"testing"

	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// BenchmarkFiveHours simulates five hours of the default plan at 500 requests per
// second, which are nine million: picked one by one, and as expected values.
func BenchmarkFiveHours(b *testing.B) {
	spec := rolloutIn(b, "plan-1-5-10-20-50")
	for name, o := range map[string]simulate.Options{
		"picked": {RPS: 500, Seed: 1},
		"exact":  {RPS: 500, Exact: true},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r, err := simulate.Run(spec, &simulate.Scenario{Duration: "5h"}, o)
				if err != nil {
					b.Fatal(err)
				}
				if n := r.Outcome.Total().Requests; n < 8_999_999 || n > 9_000_001 {
					b.Fatalf("%g requests", n)
				}
			}
		})
	}
}
