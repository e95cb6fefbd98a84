package route_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

func TestTarget(t *testing.T) {
	for _, tc := range []struct {
		name           string
		rule           route.ManagedRule
		share          weights.Share
		stable, canary int32
	}{
		{"whole points", route.ManagedRule{StableWeight: 1, CanaryWeight: 1}, percent(5), 95, 5},
		{"a fraction", route.ManagedRule{StableWeight: 95, CanaryWeight: 5}, 550, 9450, 550},
		{"from a fraction to whole points", route.ManagedRule{StableWeight: 9450, CanaryWeight: 550}, percent(6), 94, 6},
		{"above all", route.ManagedRule{}, weights.ShareAll + 1, 0, 100},
		{"below none", route.ManagedRule{}, -1, 100, 0},
		{"a third keeps the sum", route.ManagedRule{StableWeight: 8, CanaryWeight: 0, Others: true, OthersWeight: 2}, percent(50), 4, 4},
		{"rounded down", route.ManagedRule{StableWeight: 9, CanaryWeight: 1, Others: true, OthersWeight: 2}, percent(19), 9, 1},
		{"a third at 0 keeps the sum too", route.ManagedRule{StableWeight: 8, Others: true}, percent(25), 6, 2},
		{"a third, and the pair at 0", route.ManagedRule{Others: true, OthersWeight: 2}, percent(50), 0, 0},
		{"all at 0", route.ManagedRule{Others: true}, percent(5), 95, 5},
		{"above the limit", route.ManagedRule{StableWeight: route.MaxWeight, CanaryWeight: route.MaxWeight, Others: true, OthersWeight: 1}, percent(0), route.MaxWeight, 0},
		{"far above the limit", route.ManagedRule{StableWeight: math.MaxInt32, CanaryWeight: math.MaxInt32, Others: true, OthersWeight: 1}, percent(40), 600_000, 400_000},
		{"negative", route.ManagedRule{StableWeight: math.MinInt32, CanaryWeight: -1, Others: true, OthersWeight: 1}, percent(40), 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stable, canary := tc.rule.Target(tc.share)
			if stable != tc.stable || canary != tc.canary {
				t.Errorf("got %d, %d, want %d, %d", stable, canary, tc.stable, tc.canary)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	five, alsoFive := route.ManagedRule{StableWeight: 95, CanaryWeight: 5}, route.ManagedRule{Index: 1, StableWeight: 19, CanaryWeight: 1, Others: true, OthersWeight: 80}
	for _, tc := range []struct {
		name  string
		rules []route.ManagedRule
		share weights.Share
		want  bool
	}{
		{"none", nil, 0, false},
		{"all", []route.ManagedRule{five, alsoFive}, percent(5), true},
		{"another share", []route.ManagedRule{five, alsoFive}, percent(6), false},
		{"one of two", []route.ManagedRule{five, {StableWeight: 94, CanaryWeight: 6}}, percent(5), false},
		{"in another sum", []route.ManagedRule{{StableWeight: 9500, CanaryWeight: 500}}, percent(5), false},
		{"rounded down beside a third", []route.ManagedRule{alsoFive}, 999, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := (route.Inspection{Rules: tc.rules}).Matches(tc.share); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestObserved(t *testing.T) {
	for _, tc := range []struct {
		name      string
		rules     []route.ManagedRule
		low, high weights.Share
	}{
		{"none", nil, 0, 0},
		{"agreed", []route.ManagedRule{{StableWeight: 95, CanaryWeight: 5}, {StableWeight: 19, CanaryWeight: 1}}, 500, 500},
		{"apart", []route.ManagedRule{{StableWeight: 80, CanaryWeight: 20}, {StableWeight: 95, CanaryWeight: 5}, {StableWeight: 1, CanaryWeight: 1}}, 500, 5000},
		{"no whole basis point", []route.ManagedRule{{StableWeight: 2, CanaryWeight: 1}}, 3333, 3334},
		{"a trace", []route.ManagedRule{{StableWeight: route.MaxWeight, CanaryWeight: 1}}, 0, 1},
		{"a pair of zeros", []route.ManagedRule{{}, {StableWeight: 1, CanaryWeight: 1}}, 0, 5000},
		{"negative", []route.ManagedRule{{StableWeight: -1, CanaryWeight: -1}, {StableWeight: -5, CanaryWeight: 1}}, 0, 10000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			low, high := route.Inspection{Rules: tc.rules}.Observed()
			if low != tc.low || high != tc.high {
				t.Errorf("got %d to %d, want %d to %d", low, high, tc.low, tc.high)
			}
		})
	}
}

func TestExpress(t *testing.T) {
	names := route.Pair{
		Stable: route.Backend{Namespace: "shop", Service: "web-stable", Port: 80},
		Canary: route.Backend{Namespace: "shop", Service: "web-canary", Port: 80},
	}
	for _, tc := range []struct {
		name  string
		rule  route.ManagedRule
		share weights.Share
		want  string
	}{
		{"alone", route.ManagedRule{StableWeight: 1}, 1, ""},
		{"none is always possible", route.ManagedRule{StableWeight: 1, Others: true, OthersWeight: 1}, 0, ""},
		{"large enough", route.ManagedRule{StableWeight: 100, Others: true, OthersWeight: 1}, percent(1), ""},
		{"just large enough", route.ManagedRule{StableWeight: 2, CanaryWeight: 1, Others: true, OthersWeight: 1}, 3334, ""},
		{"all at 0", route.ManagedRule{Others: true}, percent(1), ""},
		{
			"too small", route.ManagedRule{Index: 2, Name: "main", StableWeight: 9, CanaryWeight: 1, Others: true, OthersWeight: 90}, percent(5),
			`the weights of shop/web-stable:80 and shop/web-canary:80 in rule 2 ("main") of HTTPRoute shop/web add up to 10, of which 5% is less than 1: ` +
				"they need a sum of at least 20 (multiply every weight of the rule by 2)",
		},
		{
			"too small by a little", route.ManagedRule{StableWeight: 3, Others: true, OthersWeight: 1}, 3333,
			"the weights of shop/web-stable:80 and shop/web-canary:80 in rule 0 of HTTPRoute shop/web add up to 3, of which 33.33% is less than 1: " +
				"they need a sum of at least 4 (multiply every weight of the rule by 2)",
		},
		{
			"too small, and no room to multiply", route.ManagedRule{StableWeight: 1, Others: true, OthersWeight: route.MaxWeight}, percent(1),
			"the weights of shop/web-stable:80 and shop/web-canary:80 in rule 0 of HTTPRoute shop/web add up to 1, of which 1% is less than 1: " +
				"they need a sum of at least 100",
		},
		{
			"cut off", route.ManagedRule{Others: true, OthersWeight: 1}, percent(1),
			"rule 0 of HTTPRoute shop/web gives no traffic to shop/web-stable:80 and shop/web-canary:80 (their weights are 0) and all to its other backends: " +
				"give shop/web-stable:80 a weight of at least 100",
		},
		{
			"too large", route.ManagedRule{StableWeight: route.MaxWeight, CanaryWeight: 1, Others: true, OthersWeight: 1}, percent(1),
			"the weights of shop/web-stable:80 and shop/web-canary:80 in rule 0 of HTTPRoute shop/web add up to 1000001, more than the 1000000 that one of them may have: " +
				"divide every weight of the rule by 2",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// A rule that can express everything comes first and hides nothing.
			i := route.Inspection{Route: "HTTPRoute shop/web", Pair: names, Rules: []route.ManagedRule{{StableWeight: 1}, tc.rule}}
			var want *route.Problem
			if tc.want != "" {
				want = &route.Problem{Reason: v1alpha1.ReasonWeightResolution, Message: tc.want}
			}
			if diff := cmp.Diff(want, i.Express(tc.share)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
