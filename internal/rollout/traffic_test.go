package rollout_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/traffic"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// division is how a gateway divides the requests that it counts.
type division string

const (
	uncounted division = ""     // there are no metrics of the gateway
	fair      division = "fair" // as the weights say
	even      division = "even" // one to each, whatever the weights say
	thin      division = "thin" // as the weights say, and too few to tell
)

var divisions = []division{uncounted, fair, even, thin}

// traffic is what the gateway has counted at the present share.
func (w *world) traffic(v health.Verdict) health.Traffic {
	switch {
	case w.counts == uncounted:
		return health.Traffic{NotCounted: "health.preset is not set, so no requests are counted where they are divided"}
	case v.Reason == v1alpha1.ReasonAwaitingWindow:
		return health.Traffic{}
	}
	share := rollout.CanaryShare(w.status())
	requests := int64(100_000)
	if w.counts == thin {
		requests = 20
	}
	canary := requests * int64(share) / int64(weights.ShareAll)
	if w.counts == even {
		canary = requests / 2
	}
	t := health.Traffic{Counted: true, Canary: canary, Stable: requests - canary}
	if share > 0 {
		t.Finding = traffic.Judge(t.Canary, t.Stable, share)
	}
	return t
}

// shareSeen is the observed share and where it comes from.
func (w *world) shareSeen() string {
	s := w.status().Share
	if s.Observed == nil {
		return "none"
	}
	return string(*s.Observed) + " " + string(s.ObservedFrom)
}

// TestTrafficMatchesWeights: what the gateway counts is compared with the weights, where
// it can be told.
func TestTrafficMatchesWeights(t *testing.T) {
	for name, tc := range map[string]struct {
		counts   division
		crossing string
		status   metav1.ConditionStatus
		reason   string
		share    string
	}{
		"as the weights say":  {fair, "", metav1.ConditionTrue, v1alpha1.ReasonTrafficMatches, "10 Requests"},
		"one to each":         {even, "", metav1.ConditionFalse, v1alpha1.ReasonTrafficDiffers, "50 Requests"},
		"too few":             {thin, "", metav1.ConditionUnknown, v1alpha1.ReasonTrafficNotMeasured, "10 Weights"},
		"not counted":         {uncounted, "", metav1.ConditionUnknown, v1alpha1.ReasonTrafficNotMeasured, "10 Weights"},
		"another rule's, too": {even, `rule "testers" of HTTPRoute "web"`, metav1.ConditionUnknown, v1alpha1.ReasonTrafficNotMeasured, "10 Weights"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, smallSpec())
			w.counts, w.crossing = tc.counts, tc.crossing
			w.until(time.Hour, "it soaks at 10 percent", w.atShare("10"))
			if c := conditionOf(w.status(), v1alpha1.ConditionTrafficMatchesWeights); c.Status != metav1.ConditionUnknown || w.shareSeen() != "10 Weights" {
				t.Errorf("right after the raise: %s: %s; share %s", c.Status, c.Message, w.shareSeen())
			}
			w.runFor(3 * time.Minute)
			c := conditionOf(w.status(), v1alpha1.ConditionTrafficMatchesWeights)
			if c.Status != tc.status || c.Reason != tc.reason || w.shareSeen() != tc.share {
				t.Errorf("%s, %s: %s; share %s", c.Status, c.Reason, c.Message, w.shareSeen())
			}
			// It stands at the next share until there are enough requests.
			w.until(time.Hour, "it soaks at 20 percent", w.atShare("20"))
			if c := conditionOf(w.status(), v1alpha1.ConditionTrafficMatchesWeights); c.Status != tc.status || w.shareSeen() != "20 Weights" {
				t.Errorf("right after the next raise: %s: %s; share %s", c.Status, c.Message, w.shareSeen())
			}
			// It holds nothing.
			w.until(24*time.Hour, "it is promoted", w.reason(v1alpha1.ReasonPromoted))
		})
	}
}

// TestTrafficIsNoNewsInARamp: that all is well is not worth a write between two stages;
// that it is not is, once.
func TestTrafficIsNoNewsInARamp(t *testing.T) {
	ramp := func(counts division) (*world, int) {
		spec := coldSpec()
		spec.Ramp.Warmup.InitialPercent = "100"
		w := newWorld(t, spec)
		w.counts = counts
		w.until(24*time.Hour, "it ramps", w.atShare("24"))
		before := w.journal.statusWrites
		w.until(24*time.Hour, "it ramps on", w.atShare("46"))
		return w, w.journal.statusWrites - before
	}
	_, without := ramp(uncounted)
	if _, with := ramp(fair); with != without {
		t.Errorf("%d writes to the status of the ramp, and %d without any counts", with, without)
	}
	w := newWorld(t, smallSpec())
	w.counts = even
	w.until(24*time.Hour, "it ramps", w.atShare("40"))
	for range 100 {
		w.runFor(time.Second)
		w.settle()
	}
	if n := w.times(v1alpha1.ReasonTrafficDiffers); n != 1 {
		t.Errorf("told %d times: %v", n, w.journal.told)
	}
}
