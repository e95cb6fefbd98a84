package balance_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights/balance"
	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

func TestHealthScaled(t *testing.T) {
	for _, tc := range []struct {
		name   string
		base   int64
		health float64
		want   int64
	}{
		{"healthy", 100, 1, 100},
		{"half", 100, 0.5, 50},
		{"rounded to the nearest", 10, 0.55, 6},
		{"the floor", 100, 0.2, 20},
		{"a health under the floor", 100, -3, 20},
		{"a health above 1", 100, 7, 100},
		{"an infinite health", 100, math.Inf(-1), 20},
		{"a fifth is rounded up", 6, 0.2, 2},
		{"a base of 1 cannot be lowered", 1, 0.2, 1},
		{"nothing of nothing", 0, 0.5, 0},
		{"the largest base", math.MaxInt64, 1, math.MaxInt64},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := balance.HealthScaled(tc.base, tc.health); err != nil || got != tc.want {
				t.Errorf("HealthScaled(%d, %v) = %d, %v, want %d", tc.base, tc.health, got, err, tc.want)
			}
		})
	}
	for _, tc := range []struct {
		base   int64
		health float64
		want   string
	}{
		{-1, 1, "the base weight is -1"},
		{100, math.NaN(), "the health is NaN"},
	} {
		if got, err := balance.HealthScaled(tc.base, tc.health); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("HealthScaled(%d, %v) = %d, %v, want an error with %q", tc.base, tc.health, got, err, tc.want)
		}
	}
}

// From an error rate and a response time to a weight: never above the base, never under a
// fifth of it, and never higher for worse numbers.
func TestHealthScaledProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Range(0, math.MaxInt64).Draw(t, "base")
		errors, time := rapid.Float64Range(0, 1).Draw(t, "errors"), rapid.Float64Range(0, 1).Draw(t, "time")
		better := scaled(t, base, errors, time)
		worse := scaled(t, base, rapid.Float64Range(errors, 1).Draw(t, "more errors"), rapid.Float64Range(time, 1).Draw(t, "more time"))
		if worse > better {
			t.Fatalf("worse numbers give %d, better ones %d", worse, better)
		}
		if got, err := balance.HealthScaled(base, anyFloat().Draw(t, "any")); err == nil && (got > base || got < base/5) {
			t.Fatalf("%d of %d", got, base)
		}
	})
}

func scaled(t *rapid.T, base int64, errors, time float64) int64 {
	t.Helper()
	health, err := score.Health(errors, time, 0.05, score.DefaultPenalties())
	if err != nil {
		t.Fatal(err)
	}
	got, err := balance.HealthScaled(base, health)
	if err != nil {
		t.Fatal(err)
	}
	if got > base || got < base/5 || base > 0 && got == 0 {
		t.Fatalf("%d of %d", got, base)
	}
	return got
}
