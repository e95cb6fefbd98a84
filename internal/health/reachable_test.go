package health

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// defaultConfig is what a spec with limits and targets and nothing else comes to.
func defaultConfig(t *testing.T) Config {
	t.Helper()
	c, err := ConfigFrom(&v1alpha1.Health{
		Preset:    v1alpha1.PresetTraefik,
		ErrorRate: &v1alpha1.ErrorRate{TargetPercent: "0.5", MaxPercent: "1"},
		Latency:   &v1alpha1.Latency{Max: "500ms"},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// timed sets the response times of the canary: a tenth of the requests takes up to the
// given time, the others are quick.
func timed(requests float64, upTo func(tick int) float64) func(*Window) {
	return func(w *Window) {
		tick := int(w.End.Sub(epoch) / (15 * time.Second))
		w.Canary = reading(w.End, requests, 0, 0)
		w.Canary.Buckets = []Bucket{{0.01, requests * 0.9}, {upTo(tick), requests}, {math.Inf(1), requests}}
	}
}

// TestDefaultsReachEveryVerdict: with the defaults there is evidence for every verdict
// and every reason that a preset's metrics can have.
func TestDefaultsReachEveryVerdict(t *testing.T) {
	c := defaultConfig(t)
	proof := c
	proof.NotWorse = true
	own := c
	own.Checks = []Check{{Name: "queue", Max: new(10.0)}}
	answer := func(p *Problem) func(*Window) {
		return func(w *Window) { w.Checks = []CheckResult{{Name: "queue", Problem: p}} }
	}
	tests := []struct {
		state  v1alpha1.VerdictState
		reason string
		in     Input
	}{
		{healthy, v1alpha1.ReasonChecksPassed, opposed(c, windows(5, 12, canary(100, 0, 0)))},
		{healthy, v1alpha1.ReasonChecksDisabled, opposed(Config{Disabled: true}, nil)},
		{degraded, v1alpha1.ReasonBreach, input(c, windows(8, 8, canary(100, 9, 0)))},
		{degraded, v1alpha1.ReasonAboveLimit, input(c, concat(windows(5, 11, canary(100, 4, 0)), windows(12, 14, canary(100, 0, 0))))},
		{degraded, v1alpha1.ReasonAboveTarget, input(c, windows(5, 12, canary(10000, 80, 0)))},
		{degraded, v1alpha1.ReasonLowScore, input(c, windows(5, 8, canary(30, 0, 2)))},
		{unhealthy, v1alpha1.ReasonBreach, input(c, windows(5, 20, canary(100, 9, 0)))},
		{unhealthy, v1alpha1.ReasonWorseThanStable, opposed(c, windows(5, 40, tracks(10000, 10, 0, 1000, 8, 0)))},
		{v1alpha1.VerdictUnknown, v1alpha1.ReasonAwaitingWindow, opposed(c, nil)},
		{v1alpha1.VerdictUnknown, v1alpha1.ReasonInsufficientRequests, opposed(c, windows(5, 8, canary(30, 0, 0)))},
		{v1alpha1.VerdictUnknown, v1alpha1.ReasonNotProven, opposed(proof, windows(5, 12, canary(60, 0, 0)))},
		{v1alpha1.VerdictUnknown, v1alpha1.ReasonTrendingUp, input(c, windows(5, 48, timed(1000, func(tick int) float64 { return 0.1 + 0.0075*float64(tick) })))},
		{v1alpha1.VerdictUnknown, v1alpha1.ReasonNoData, opposed(c, windows(5, 12, reads(func(r *Reading) { *r = Reading{} })))},
		{v1alpha1.VerdictUnknown, v1alpha1.ReasonStale, opposed(c, windows(5, 12, reads(func(r *Reading) { r.NewestSample = At(r.NewestSample.Time().Add(-2 * time.Minute)) })))},
		{v1alpha1.VerdictUnknown, v1alpha1.ReasonUnsupportedResult, opposed(c, windows(5, 12, reads(func(r *Reading) { r.Requests = -1 })))},
		{v1alpha1.VerdictUnknown, v1alpha1.ReasonAmbiguousResult, opposed(own, windows(5, 12, answer(problem(v1alpha1.ReasonAmbiguousResult, "two series"))))},
		{v1alpha1.VerdictUnknown, v1alpha1.ReasonProviderError, opposed(c, windows(5, 12, lost))},
		{v1alpha1.VerdictUnknown, v1alpha1.ReasonProviderAuth, opposed(own, windows(5, 12, answer(problem(v1alpha1.ReasonProviderAuth, "refused"))))},
	}
	reached := map[string]bool{}
	for _, tc := range tests {
		t.Run(string(tc.state)+" "+tc.reason, func(t *testing.T) {
			if v := Evaluate(tc.in); v.State != tc.state || v.Reason != tc.reason {
				t.Errorf("got %+v", v)
			}
		})
		reached[tc.reason] = true
	}
	all := reasonsOfAVerdict(t)
	slices.Sort(all)
	if diff := cmp.Diff(all, slices.Sorted(maps.Keys(reached))); diff != "" {
		t.Errorf("reasons of a verdict (-API +reached):\n%s", diff)
	}
}

// reasonsOfAVerdict reads them from the API's source: the constants of that section.
func reasonsOfAVerdict(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "api", "v1alpha1", "conditions.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, d := range f.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || !strings.HasPrefix(group.Doc.Text(), "Reasons of a verdict.") {
			continue
		}
		for _, spec := range group.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok || len(value.Values) != 1 {
				t.Fatalf("an unexpected declaration: %v", spec)
			}
			reasons = append(reasons, strings.Trim(value.Values[0].(*ast.BasicLit).Value, `"`))
		}
	}
	return reasons
}
