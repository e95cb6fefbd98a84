package cli

import (
	"math"
	"runtime/debug"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

func TestFigures(t *testing.T) {
	elapsed := func(d time.Duration) simulate.Elapsed { return simulate.Elapsed(d) }
	for _, test := range []struct{ got, want string }{
		{count(0), "0"}, {count(999.6), "1,000"}, {count(1234567), "1,234,567"}, {count(12), "12"},
		{points(0.5), "0.5"}, {points(12.345), "12.35"}, {points(100), "100"},
		{rate(0.126), "0.13"}, {rate(49), "49.00"},
		{significant(0.0597, 3), "0.0597"}, {significant(1234.5, 3), "1234"}, {significant(0, 3), "0"}, {significant(2, 3), "2.00"}, {significant(-0.25, 1), "-0.2"},
		{significant(math.Inf(1), 3), "+Inf"}, {significant(math.NaN(), 3), "NaN"},
		{significantUpTo(2), "2"}, {significantUpTo(2.5), "2.5"}, {significantUpTo(100), "100"}, {significantUpTo(0.125), "0.125"},
		{span(elapsed(0)), "0s"}, {span(elapsed(time.Minute)), "1m"}, {span(elapsed(90 * time.Minute)), "1h30m"}, {span(elapsed(time.Hour)), "1h"},
		{span(elapsed(61 * time.Second)), "1m1s"}, {span(elapsed(1500 * time.Millisecond)), "1.5s"}, {span(elapsed(10 * time.Hour)), "10h"}, {span(elapsed(20 * time.Minute)), "20m"},
		{clock(elapsed(time.Hour + 2*time.Minute + 3500*time.Millisecond)), "1:02:04"}, {clock(elapsed(100 * time.Hour)), "100:00:00"}, {clockOr(nil), "–"},
		{plural(1, "step", "steps"), "1 step"}, {plural(0, "step", "steps"), "0 steps"},
		{roughly(elapsed(500 * time.Millisecond)), "0.5s"}, {roughly(elapsed(100400 * time.Millisecond)), "1m40s"},
		{milliseconds(0.2331), "233 ms"}, {milliseconds(12), "12.0 s"},
		{clockLabel(90*time.Minute, time.Minute), "1:30"}, {clockLabel(75*time.Second, 15*time.Second), "0:01:15"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

func TestScales(t *testing.T) {
	for value, want := range map[float64]float64{0.011: 0.02, 0.1: 0.1, 1: 1, 1.1: 2, 3: 5, 5.01: 10, 100: 100, 233: 500} {
		if got := niceTop(value); math.Abs(got-want) > 1e-9 {
			t.Errorf("niceTop(%g) = %g, want %g", value, got, want)
		}
	}
	for _, test := range []struct {
		whole time.Duration
		most  int
		want  time.Duration
	}{
		{10 * time.Second, 10, time.Second},
		{3 * time.Hour, 12, 15 * time.Minute},
		{3*time.Hour + 13*time.Minute, 7, 30 * time.Minute},
		{72 * time.Hour, 6, 12 * time.Hour},
		{1000 * time.Hour, 3, 24 * time.Hour},
	} {
		if got := tickStep(simulate.Elapsed(test.whole), test.most); got != test.want {
			t.Errorf("tickStep(%s, %d) = %s, want %s", test.whole, test.most, got, test.want)
		}
	}
}

func TestVersionOf(t *testing.T) {
	module := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	for _, test := range []struct {
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		{"v1.0.0", module("v2.0.0"), "v1.0.0"},
		{"dev", module("v2.0.0"), "v2.0.0"},
		{"dev", module("(devel)", debug.BuildSetting{Key: "vcs.revision", Value: "abc"}), "dev-abc"},
		{"dev", module("(devel)"), "dev"},
		{"dev", nil, "dev"},
	} {
		if got := versionOf(test.linked, test.info); got != test.want {
			t.Errorf("versionOf(%q, %v) = %q, want %q", test.linked, test.info, got, test.want)
		}
	}
}
