package score_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

// near compares numbers that were computed in another order.
var near = cmpopts.EquateApprox(1e-12, 1e-12)

func TestHealth(t *testing.T) {
	defaults := score.DefaultPenalties()
	for _, tc := range []struct {
		name                    string
		errors, time, threshold float64
		penalties               score.Penalties
		want                    float64
	}{
		{"nothing wrong", 0, 0.1, 0.2, defaults, 1},
		{"at the threshold", 0, 0.2, 0.2, defaults, 1},
		{"a tenth of errors", 0.1, 0.1, 0.2, defaults, 0.8},
		{"half as slow again", 0, 0.3, 0.2, defaults, 0.75},
		{"twice the threshold", 0, 0.4, 0.2, defaults, 0.5},
		{"both", 0.1, 0.3, 0.2, defaults, 0.55},
		{"the unit is the caller's", 0.1, 300, 200, defaults, 0.55},
		{"fast does not make up for errors", 0.1, 0, 0.2, defaults, 0.8},
		{"only errors", 1, 0, 0.2, defaults, 0.2},
		{"far too slow", 0, 20, 0.2, defaults, 0.2},
		{"an overflow is the floor", 0, math.MaxFloat64, math.SmallestNonzeroFloat64, defaults, 0.2},
		{"the mildest error penalty", 0.1, 0.1, 0.2, score.Penalties{Error: 1, Latency: 0.5}, 0.9},
		{"the hardest error penalty", 0.1, 0.1, 0.2, score.Penalties{Error: 3, Latency: 0.5}, 0.7},
		{"no latency penalty, no latency needed", 0.1, math.NaN(), 0, score.Penalties{Error: 2}, 0.8},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := score.Health(tc.errors, tc.time, tc.threshold, tc.penalties)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, near); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHealthErrors(t *testing.T) {
	defaults := score.DefaultPenalties()
	nan, inf := math.NaN(), math.Inf(1)
	for _, tc := range []struct {
		name                    string
		errors, time, threshold float64
		penalties               score.Penalties
		want                    string
	}{
		{"NaN errors", nan, 1, 1, defaults, "the error rate is NaN"},
		{"negative errors", -0.1, 1, 1, defaults, "the error rate is -0.1"},
		{"a percentage", 5, 1, 1, defaults, "the error rate is 5"},
		{"NaN time", 0, nan, 1, defaults, "the response time is NaN"},
		{"negative time", 0, -1, 1, defaults, "the response time is -1"},
		{"infinite time", 0, inf, 1, defaults, "the response time is +Inf"},
		{"no threshold", 0, 1, 0, defaults, "threshold is 0"},
		{"NaN threshold", 0, 1, nan, defaults, "threshold is NaN"},
		{"infinite threshold", 0, 1, inf, defaults, "threshold is +Inf"},
		{"error penalty too low", 0, 1, 1, score.Penalties{Error: 0.9}, "the error penalty is 0.9"},
		{"error penalty too high", 0, 1, 1, score.Penalties{Error: 5}, "the error penalty is 5"},
		{"NaN error penalty", 0, 1, 1, score.Penalties{Error: nan}, "the error penalty is NaN"},
		{"negative latency penalty", 0, 1, 1, score.Penalties{Error: 2, Latency: -1}, "the latency penalty is -1"},
		{"NaN latency penalty", 0, 1, 1, score.Penalties{Error: 2, Latency: nan}, "the latency penalty is NaN"},
		{"infinite latency penalty", 0, 1, 1, score.Penalties{Error: 2, Latency: inf}, "the latency penalty is +Inf"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := score.Health(tc.errors, tc.time, tc.threshold, tc.penalties)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want an error with %q", got, err, tc.want)
			}
		})
	}
}

// Whatever it is given, Health is in its range or an error, and worse numbers never
// give a better health.
func TestHealthProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := score.Penalties{Error: rapid.Float64Range(1, 3).Draw(t, "p_err"), Latency: rapid.Float64Range(0, 10).Draw(t, "p_lat")}
		threshold := rapid.Float64Range(1e-6, 1e6).Draw(t, "threshold")
		errors := rapid.Float64Range(0, 1).Draw(t, "errors")
		time := rapid.Float64Range(0, 1e7).Draw(t, "time")
		better, err := score.Health(errors, time, threshold, p)
		if err != nil {
			t.Fatal(err)
		}
		moreErrors := rapid.Float64Range(errors, 1).Draw(t, "more errors")
		moreTime := rapid.Float64Range(time, 1e8).Draw(t, "more time")
		worse, err := score.Health(moreErrors, moreTime, threshold, p)
		if err != nil {
			t.Fatal(err)
		}
		if better < score.HealthFloor || better > score.HealthFull || worse > better {
			t.Fatalf("health %v, and worse numbers give %v", better, worse)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		p := score.Penalties{Error: anyFloat().Draw(t, "p_err"), Latency: anyFloat().Draw(t, "p_lat")}
		got, err := score.Health(anyFloat().Draw(t, "errors"), anyFloat().Draw(t, "time"), anyFloat().Draw(t, "threshold"), p)
		if err == nil && !(got >= score.HealthFloor && got <= score.HealthFull) {
			t.Fatalf("health %v", got)
		}
	})
}

// anyFloat draws any float64 at all, and often one that does harm.
func anyFloat() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.Float64(),
		rapid.Float64Range(0, 3),
		rapid.SampledFrom([]float64{
			math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), -1,
			math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 0x1p-1022,
		}),
	)
}
