package cli

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// planned is a rollout with stages, at one of them.
func planned(outcome v1alpha1.Outcome, index int32, weights ...v1alpha1.Percent) *v1alpha1.WeightedRollout {
	wr := &v1alpha1.WeightedRollout{}
	for _, w := range weights {
		wr.Spec.Plan.Stages = append(wr.Spec.Plan.Stages, v1alpha1.Stage{Weight: w})
	}
	wr.Status.Outcome, wr.Status.Stage = outcome, &v1alpha1.StageStatus{Index: index}
	return wr
}

func TestStageBar(t *testing.T) {
	long := []v1alpha1.Percent{"1", "2", "3", "5", "8", "10", "20", "30", "50", "75"}
	for name, test := range map[string]struct {
		wr    *v1alpha1.WeightedRollout
		width int
		want  string
	}{
		"the first":                 {planned(v1alpha1.OutcomeInProgress, 0, "1", "50"), 40, "[1] › 50 › 100"},
		"the second":                {planned(v1alpha1.OutcomeInProgress, 1, "1", "50"), 40, "✓1 › [50] › 100"},
		"the implied last":          {planned(v1alpha1.OutcomeInProgress, 2, "1", "50"), 40, "✓1 › ✓50 › [100]"},
		"100 in the plan":           {planned(v1alpha1.OutcomeInProgress, 1, "1", "100"), 40, "✓1 › [100]"},
		"promoted":                  {planned(v1alpha1.OutcomePromoted, 2, "1", "50"), 40, "✓1 › ✓50 › ✓100"},
		"rolled back":               {planned(v1alpha1.OutcomeRolledBack, 1, "1", "50"), 40, "1 › 50 › 100"},
		"not begun":                 {planned("", 0, "1"), 40, "1 › 100"},
		"long, at its start":        {planned(v1alpha1.OutcomeInProgress, 0, long...), 22, "[1] › 2 › 3 › 5 › …"},
		"long, in the midst":        {planned(v1alpha1.OutcomeInProgress, 5, long...), 22, "… › ✓8 › [10] › 20 › …"},
		"long, at its end":          {planned(v1alpha1.OutcomeInProgress, 10, long...), 22, "… › ✓50 › ✓75 › [100]"},
		"a record that is no stage": {planned(v1alpha1.OutcomeInProgress, 99, "1"), 40, "✓1 › ✓100"},
	} {
		if got := stageBar(stops(test.wr), test.width); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestShareBar(t *testing.T) {
	for _, test := range []struct {
		percent float64
		width   int
		want    string
	}{{0, 4, "░░░░"}, {0.01, 4, "█░░░"}, {50, 4, "██░░"}, {99.9, 4, "███░"}, {100, 4, "████"}, {250, 4, "████"}, {-3, 4, "░░░░"}, {50, 0, ""}, {50, 1, "░"}} {
		if got := shareBar(test.percent, test.width); got != test.want {
			t.Errorf("%g of %d: %q, want %q", test.percent, test.width, got, test.want)
		}
	}
}

// TestBarsKeepTheirWidth: no plan and no share makes them too wide.
func TestBarsKeepTheirWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var plan []v1alpha1.Percent
		for range rapid.IntRange(0, 20).Draw(t, "stages") {
			plan = append(plan, v1alpha1.Percent(rapid.SampledFrom([]string{"1", "12.25", "99.99"}).Draw(t, "weight")))
		}
		width := rapid.IntRange(1, 120).Draw(t, "width")
		bar := stageBar(stops(planned(v1alpha1.OutcomeInProgress, rapid.Int32Range(0, 25).Draw(t, "index"), plan...)), width)
		if n := cells(bar); n > width {
			t.Fatalf("%q is %d wide, more than %d", bar, n, width)
		}
		if n := cells(shareBar(rapid.Float64().Draw(t, "percent"), width)); n != width {
			t.Fatalf("the bar is %d wide, want %d", n, width)
		}
	})
}
